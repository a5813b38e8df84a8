/* SPDX-License-Identifier: MIT */
#include "site/compressor.h"

#include "base/duration.h"
#include "os/clock.h"
#include "os/file.h"
#include "site/coder.h"
#include "site/compress.h"
#include "site/content.h"
#include "site/load.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>

_Static_assert((int)SITE_CONTENT_PIECE == (int)SITE_CODER_PIECE,
               "read_piece reads pieces for both");

struct job {
    struct site_entry *entry; /* with a reference */
    unsigned codings;
};

enum total {
    TOTAL_VARIANTS,
    TOTAL_BEFORE_BYTES,
    TOTAL_AFTER_BYTES,
    TOTAL_CPU_NS,
    TOTAL_PAUSES,
    TOTAL_USELESS,
    TOTAL_TAGS,
    TOTAL_BROKEN,
    TOTAL_SHARE_REFUSED,
    TOTALS
};

struct site_compressor {
    struct site_compressor_plan plan;
    sem_t wake; /* a job or the stop may be there */
    _Atomic bool stopping;
    _Atomic uint64_t total[TOTALS];

    pthread_mutex_t lock; /* guards the rest of this group */
    bool started;
    unsigned first, count; /* of `queue` */
    struct job queue[SITE_COMPRESSOR_QUEUE];

    /* Of the thread alone. */
    struct site_compress_budget budget;
    char piece[SITE_CODER_PIECE];
};

static void add_total(struct site_compressor *c, enum total total, uint64_t more)
{
    atomic_fetch_add_explicit(&c->total[total], more, memory_order_relaxed);
}

static bool is_stopping(struct site_compressor *c)
{
    return atomic_load_explicit(&c->stopping, memory_order_acquire);
}

/* ---- the thread: CPU time ---- */

static void wait_until(struct site_compressor *c, uint64_t due_ns)
{
    const struct timespec due = { .tv_sec = (time_t)(due_ns / DURATION_SECOND),
                                  .tv_nsec = (long)(due_ns % DURATION_SECOND) };
    (void)sem_clockwait(&c->wake, CLOCK_MONOTONIC, &due); /* the caller looks again */
}

/* Waits until the budget allows the next piece. False: it is not needed any more, because the
 * compressor stops, or because the entry has left the cache. */
static bool may_continue(struct site_compressor *c, const struct site_entry *entry)
{
    bool paused = false;
    while (!is_stopping(c) &&
           atomic_load_explicit(&entry->cache.references, memory_order_relaxed) > 1) {
        const uint64_t now_ns = os_clock_now_ns();
        const uint64_t wait_ns = site_compress_budget_wait_ns(&c->budget, now_ns);
        if (wait_ns == 0)
            return true;
        if (!paused)
            add_total(c, TOTAL_PAUSES, 1);
        paused = true;
        wait_until(c, now_ns + wait_ns);
    }
    return false;
}

static void spend_since(struct site_compressor *c, uint64_t began_ns)
{
    const uint64_t spent_ns = os_clock_thread_ns() - began_ns;
    site_compress_budget_spend(&c->budget, spent_ns);
    add_total(c, TOTAL_CPU_NS, spent_ns);
}

/* Whether there is space for a variant of so many bytes. */
static bool has_space(const struct site_compressor *c, const struct site_entry *entry, size_t len)
{
    return site_made_bytes() + len <= c->plan.share_bytes &&
           entry->cache.size_bytes + SITE_HEAD_ROOM + len <= c->plan.entry_bytes;
}

/* ---- the thread: one variant ---- */

enum outcome { MADE, USELESS, BROKEN, DROPPED };

/* The next bytes of the plain file. False: the open file is shorter now, or cannot be read. */
static bool read_piece(struct site_compressor *c, const struct site_file *file, uint64_t at,
                       struct span *ret_piece)
{
    const uint64_t left = file->size - at;
    const size_t len = left < SITE_CODER_PIECE ? (size_t)left : SITE_CODER_PIECE;
    if (file->body != NULL) {
        *ret_piece = span_of(file->body + at, len);
        return true;
    }
    *ret_piece = span_of(c->piece, len);
    return os_file_read_at(file->fd, c->piece, len, at) == 0;
}

static enum outcome feed_all(struct site_compressor *c, const struct site_entry *entry,
                             struct site_coder *coder)
{
    const struct site_file *file = &entry->file[SITE_PLAIN];
    enum site_coder_result result = SITE_CODER_MORE;
    for (uint64_t at = 0; at < file->size && result == SITE_CODER_MORE; at += SITE_CODER_PIECE) {
        struct span piece;
        if (!may_continue(c, entry))
            return DROPPED;
        const uint64_t began_ns = os_clock_thread_ns();
        const bool read = read_piece(c, file, at, &piece);
        if (read)
            result = site_coder_feed(coder, piece, at + piece.len == file->size);
        spend_since(c, began_ns);
        if (!read)
            return BROKEN;
    }
    if (result == SITE_CODER_FULL)
        return USELESS;
    const bool whole = file->body != NULL || site_load_is_current(entry, SITE_PLAIN);
    return result == SITE_CODER_DONE && whole ? MADE : BROKEN;
}

static enum outcome compress_entry(struct site_compressor *c, const struct site_entry *entry,
                                   enum site_variant coding, char *out, size_t room,
                                   size_t *ret_len)
{
    struct site_coder coder;
    const uint64_t began_ns = os_clock_thread_ns();
    const bool opened = site_coder_open(&coder, coding, entry->file[SITE_PLAIN].size, out, room);
    spend_since(c, began_ns);
    if (!opened)
        return BROKEN;
    const enum outcome outcome = feed_all(c, entry, &coder);
    *ret_len = coder.len;
    site_coder_close(&coder);
    return outcome;
}

static void make_variant(struct site_compressor *c, struct site_entry *entry,
                         enum site_variant coding)
{
    const uint64_t size = entry->file[SITE_PLAIN].size;
    const size_t room = site_compress_largest(size);
    struct site_made *made = site_load_made(entry);
    if (made->form[coding].len > 0) {
        site_made_return(made, 1u << coding);
        return;
    }
    char *out = site_made_allocate(room);
    size_t len = 0;
    enum outcome outcome = BROKEN;
    if (out != NULL)
        outcome = compress_entry(c, entry, coding, out, room, &len);
    const bool fits = has_space(c, entry, len);
    add_total(c, TOTAL_USELESS, outcome == USELESS);
    add_total(c, TOTAL_BROKEN, outcome == BROKEN || (outcome == DROPPED && !is_stopping(c)));
    add_total(c, TOTAL_SHARE_REFUSED, outcome == MADE && !fits);
    if (outcome == MADE && fits) {
        site_made_give(entry, made, coding, out, room, len);
        add_total(c, TOTAL_BEFORE_BYTES, size);
        add_total(c, TOTAL_AFTER_BYTES, len);
        add_total(c, TOTAL_VARIANTS, 1);
        return;
    }
    atomic_fetch_or_explicit(&made->rejected, (uint8_t)(1u << coding), memory_order_relaxed);
    if (out != NULL)
        site_made_free(out, room);
}

/* ---- the thread: tags ---- */

static enum outcome digest_form(struct site_compressor *c, const struct site_entry *entry, int v,
                                struct site_content_digest *ret_digest)
{
    const struct site_file *file = &entry->file[v];
    struct site_content_digest digest = site_content_digest_begin(v);
    for (uint64_t at = 0; at < file->size; at += SITE_CONTENT_PIECE) {
        struct span piece;
        if (!may_continue(c, entry))
            return DROPPED;
        const uint64_t began_ns = os_clock_thread_ns();
        const bool read = read_piece(c, file, at, &piece);
        if (read)
            site_content_digest_add(&digest, piece);
        spend_since(c, began_ns);
        if (!read)
            return BROKEN;
    }
    *ret_digest = digest;
    return site_load_is_current(entry, v) ? MADE : BROKEN;
}

static void make_tags(struct site_compressor *c, struct site_entry *entry)
{
    struct site_made *made = site_load_made(entry);
    unsigned tagged = 0;
    if (made->tagged != 0) {
        site_made_return(made, SITE_MADE_TAGS);
        return;
    }
    for (int v = 0; v < SITE_VARIANTS; v++) {
        if (!site_load_lacks_tag(entry, v))
            continue;
        const enum outcome outcome = digest_form(c, entry, v, &made->digest[v]);
        add_total(c, TOTAL_BROKEN, outcome == BROKEN || (outcome == DROPPED && !is_stopping(c)));
        add_total(c, TOTAL_TAGS, outcome == MADE);
        tagged |= (outcome == MADE ? 1u : 0u) << v;
    }
    if (tagged != 0)
        site_made_give_tags(entry, made, tagged);
}

/* ---- the thread: the queue ---- */

static bool take_job(struct site_compressor *c, struct job *ret_job)
{
    CHECK(pthread_mutex_lock(&c->lock) == 0);
    const bool taken = c->count > 0;
    if (taken) {
        *ret_job = c->queue[c->first];
        c->first = (c->first + 1) % SITE_COMPRESSOR_QUEUE;
        c->count--;
    }
    CHECK(pthread_mutex_unlock(&c->lock) == 0);
    return taken;
}

bool site_compressor_work(struct site_compressor *compressor)
{
    struct job job;
    while (!take_job(compressor, &job)) {
        if (is_stopping(compressor))
            return false;
        (void)sem_wait(&compressor->wake); /* after a signal it looks again */
    }
    for (unsigned v = 0; v < SITE_PLAIN && !is_stopping(compressor); v++)
        if ((job.codings & 1u << v) != 0)
            make_variant(compressor, job.entry, (enum site_variant)v);
    if ((job.codings & SITE_MADE_TAGS) != 0)
        make_tags(compressor, job.entry);
    site_cache_release(&job.entry->cache);
    return true;
}

/* ---- any thread ---- */

struct site_compressor *site_compressor_new(struct site_compressor_plan plan)
{
    CHECK(plan.cpu_percent > 0);
    struct site_compressor *c = calloc(1, sizeof(*c));
    if (c == NULL)
        return NULL;
    c->plan = plan;
    c->budget = site_compress_budget_of(plan.cpu_percent, os_clock_now_ns());
    CHECK(sem_init(&c->wake, 0, 0) == 0);
    if (pthread_mutex_init(&c->lock, NULL) != 0) {
        free(c);
        return NULL;
    }
    return c;
}

/* Under the lock. False: the thread cannot start now. */
static bool thread_runs(struct site_compressor *c)
{
    if (!c->started)
        c->started = c->plan.start(c->plan.context);
    return c->started;
}

/* Under the lock. */
static bool add_job(struct site_compressor *c, struct site_entry *entry, unsigned codings)
{
    if (c->count == SITE_COMPRESSOR_QUEUE || !thread_runs(c))
        return false;
    site_cache_hold(&entry->cache);
    c->queue[(c->first + c->count) % SITE_COMPRESSOR_QUEUE] = (struct job){ entry, codings };
    c->count++;
    return true;
}

static enum site_compressor_reply queue_job(struct site_compressor *c, struct site_entry *entry,
                                            unsigned codings)
{
    if (codings != SITE_MADE_TAGS &&
        !has_space(c, entry, (size_t)entry->file[SITE_PLAIN].size / 4)) /* a usual result */
        return SITE_COMPRESSOR_SHARE_IN_USE;
    if (pthread_mutex_trylock(&c->lock) != 0)
        return SITE_COMPRESSOR_BUSY;
    const bool added = add_job(c, entry, codings);
    CHECK(pthread_mutex_unlock(&c->lock) == 0);
    if (!added)
        return SITE_COMPRESSOR_QUEUE_FULL;
    CHECK(sem_post(&c->wake) == 0);
    return SITE_COMPRESSOR_TAKEN;
}

enum site_compressor_reply site_compressor_request(struct site_compressor *compressor,
                                                   struct site_entry *entry, unsigned codings)
{
    codings &= atomic_fetch_and_explicit(&entry->missing, (uint8_t)~codings, memory_order_relaxed);
    if (codings == 0)
        return SITE_COMPRESSOR_TAKEN;
    const enum site_compressor_reply reply = queue_job(compressor, entry, codings);
    if (reply == SITE_COMPRESSOR_BUSY)
        atomic_fetch_or_explicit(&entry->missing, (uint8_t)codings, memory_order_relaxed);
    else if (reply != SITE_COMPRESSOR_TAKEN)
        site_made_offer_later(site_load_made(entry), codings);
    return reply;
}

enum site_compressor_reply site_compressor_request_tags(struct site_compressor *compressor,
                                                        struct site_entry *entry)
{
    if (atomic_exchange_explicit(&entry->untagged, 0, memory_order_relaxed) == 0)
        return SITE_COMPRESSOR_TAKEN;
    const enum site_compressor_reply reply = queue_job(compressor, entry, SITE_MADE_TAGS);
    if (reply != SITE_COMPRESSOR_TAKEN)
        atomic_store_explicit(&entry->untagged, 1, memory_order_relaxed);
    return reply;
}

void site_compressor_stop(struct site_compressor *compressor)
{
    struct job job;
    atomic_store_explicit(&compressor->stopping, true, memory_order_release);
    CHECK(sem_post(&compressor->wake) == 0);
    while (take_job(compressor, &job))
        site_cache_release(&job.entry->cache);
}

void site_compressor_free(struct site_compressor *compressor)
{
    if (compressor == NULL)
        return;
    CHECK(pthread_mutex_destroy(&compressor->lock) == 0);
    CHECK(sem_destroy(&compressor->wake) == 0);
    free(compressor);
}

struct site_compressor_totals site_compressor_totals(const struct site_compressor *compressor)
{
    uint64_t total[TOTALS];
    for (unsigned i = 0; i < TOTALS; i++)
        total[i] = atomic_load_explicit(&compressor->total[i], memory_order_relaxed);
    return (struct site_compressor_totals){
        .variants = total[TOTAL_VARIANTS],
        .before_bytes = total[TOTAL_BEFORE_BYTES],
        .after_bytes = total[TOTAL_AFTER_BYTES],
        .cpu_ns = total[TOTAL_CPU_NS],
        .pauses = total[TOTAL_PAUSES],
        .useless = total[TOTAL_USELESS],
        .tags = total[TOTAL_TAGS],
        .broken = total[TOTAL_BROKEN],
        .share_refused = total[TOTAL_SHARE_REFUSED],
    };
}
