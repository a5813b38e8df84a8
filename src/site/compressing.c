/* SPDX-License-Identifier: MIT */
#include "site/compressing.h"

#include "base/duration.h"
#include "os/clock.h"
#include "os/file.h"
#include "site/load.h"
#include "site/made.h"

#include <time.h>

bool site_compressing_request_space(struct site_compressor *c, const struct site_entry *entry,
                                    size_t len)
{
    const bool fits = site_made_bytes() + len <= c->plan.share_bytes;
    if (!fits)
        atomic_store_explicit(&c->crowded, true, memory_order_relaxed);
    return fits && entry->cache.size_bytes + SITE_HEAD_ROOM + len <= c->plan.entry_bytes;
}

/* Under the lock. */
static bool thread_runs(struct site_compressor *c)
{
    if (!c->started)
        c->started = c->plan.start(c->plan.context);
    return c->started;
}

bool site_compressing_add_job(struct site_compressor *c, struct site_compressing_job job)
{
    if (c->count == SITE_COMPRESSOR_QUEUE || !thread_runs(c))
        return false;
    site_cache_hold(&job.entry->cache);
    c->queue[(c->first + c->count) % SITE_COMPRESSOR_QUEUE] = job;
    c->count++;
    CHECK(sem_post(&c->wake) == 0);
    return true;
}

static void wait_until(struct site_compressor *c, uint64_t due_ns)
{
    const struct timespec due = { .tv_sec = (time_t)(due_ns / DURATION_SECOND),
                                  .tv_nsec = (long)(due_ns % DURATION_SECOND) };
    (void)sem_clockwait(&c->wake, CLOCK_MONOTONIC, &due); /* the caller looks again */
}

bool site_compressing_may_continue(struct site_compressor *c, const struct site_entry *entry)
{
    bool paused = false;
    while (!site_compressing_is_stopping(c) &&
           atomic_load_explicit(&entry->cache.references, memory_order_relaxed) > 1) {
        const uint64_t now_ns = os_clock_now_ns();
        const uint64_t wait_ns = site_compress_budget_wait_ns(&c->budget, now_ns);
        if (wait_ns == 0)
            return true;
        if (!paused)
            site_compressing_add_total(c, SITE_TOTAL_PAUSES, 1);
        paused = true;
        wait_until(c, now_ns + wait_ns);
    }
    return false;
}

void site_compressing_spend_since(struct site_compressor *c, uint64_t began_ns)
{
    const uint64_t spent_ns = os_clock_thread_ns() - began_ns;
    site_compress_budget_spend(&c->budget, spent_ns);
    site_compressing_add_total(c, SITE_TOTAL_CPU_NS, spent_ns);
}

/* The next bytes of a form. False: the open file is shorter now, or cannot be read. */
static bool read_piece(struct site_compressor *c, const struct site_file *file, uint64_t at,
                       struct span *ret_piece)
{
    const uint64_t left = file->size - at;
    const size_t len = left < SITE_CONTENT_PIECE ? (size_t)left : SITE_CONTENT_PIECE;
    if (!file->open) {
        *ret_piece = span_of(site_file_body(file) + at, len);
        return true;
    }
    *ret_piece = span_of(c->piece, len);
    return os_file_read_at(site_file_fd(file), c->piece, len, at) == 0;
}

enum site_compressing_outcome site_compressing_read(
    struct site_compressor *c, const struct site_entry *entry, int v,
    enum site_coder_result (*take)(void *context, struct span piece, bool last), void *context)
{
    const struct site_file *file = site_entry_file(entry, v);
    enum site_coder_result result = SITE_CODER_MORE;
    for (uint64_t at = 0; at < file->size && result == SITE_CODER_MORE; at += SITE_CONTENT_PIECE) {
        struct span piece;
        if (!site_compressing_may_continue(c, entry))
            return SITE_OUTCOME_DROPPED;
        const uint64_t began_ns = os_clock_thread_ns();
        const bool read = read_piece(c, file, at, &piece);
        if (read)
            result = take(context, piece, at + piece.len == file->size);
        site_compressing_spend_since(c, began_ns);
        if (!read)
            return SITE_OUTCOME_BROKEN;
    }
    if (result == SITE_CODER_FULL)
        return SITE_OUTCOME_USELESS;
    const bool whole = !file->open || site_load_is_current(entry, v);
    return result == SITE_CODER_DONE && whole ? SITE_OUTCOME_MADE : SITE_OUTCOME_BROKEN;
}

static enum site_coder_result feed_coder(void *coder, struct span piece, bool last)
{
    return site_coder_feed(coder, piece, last);
}

enum site_compressing_outcome site_compressing_encode(struct site_compressor *c,
                                                      const struct site_entry *entry,
                                                      struct site_coder *coder, size_t *ret_len)
{
    const enum site_compressing_outcome outcome =
        site_compressing_read(c, entry, SITE_PLAIN, feed_coder, coder);
    *ret_len = coder->len;
    site_coder_close(coder);
    return outcome;
}

void site_compressing_count(struct site_compressor *c, enum site_compressing_outcome outcome)
{
    const bool dropped = outcome == SITE_OUTCOME_DROPPED && !site_compressing_is_stopping(c);
    site_compressing_add_total(c, SITE_TOTAL_USELESS, outcome == SITE_OUTCOME_USELESS);
    site_compressing_add_total(c, SITE_TOTAL_BROKEN, outcome == SITE_OUTCOME_BROKEN || dropped);
}
