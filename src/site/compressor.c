/* SPDX-License-Identifier: MIT */
#include "site/compressor.h"

#include "os/clock.h"
#include "site/compressing.h"
#include "site/entry.h"
#include "site/load.h"
#include "site/made.h"

#include <stdlib.h>

/* ---- the thread: one variant ---- */

static enum site_compressing_outcome compress_entry(struct site_compressor *c,
                                                    const struct site_entry *entry,
                                                    enum site_variant coding, char *out,
                                                    size_t room, size_t *ret_len)
{
    struct site_coder coder;
    const uint64_t began_ns = os_clock_thread_ns();
    const bool opened = site_coder_open(&coder, coding, entry->plain->size, out, room);
    site_compressing_spend_since(c, began_ns);
    return opened ? site_compressing_encode(c, entry, &coder, ret_len) : SITE_OUTCOME_BROKEN;
}

static void make_variant(struct site_compressor *c, struct site_entry *entry,
                         enum site_variant coding)
{
    const uint64_t size = entry->plain->size;
    const size_t room = site_compress_largest(size);
    struct site_made *made = site_entry_made(entry);
    if (made->form[coding].len > 0) {
        site_made_return(made, 1u << coding);
        return;
    }
    char *out = site_made_allocate(room);
    size_t len = 0;
    enum site_compressing_outcome outcome = SITE_OUTCOME_BROKEN;
    if (out != NULL)
        outcome = compress_entry(c, entry, coding, out, room, &len);
    const bool fits = site_compressing_request_space(c, entry, len);
    site_compressing_count(c, outcome);
    site_compressing_add_total(c, SITE_TOTAL_SHARE_REFUSED, outcome == SITE_OUTCOME_MADE && !fits);
    if (outcome == SITE_OUTCOME_MADE && fits) {
        site_made_give(entry, made, coding, out, room, len);
        site_compressing_add_total(c, SITE_TOTAL_BEFORE_BYTES, size);
        site_compressing_add_total(c, SITE_TOTAL_AFTER_BYTES, len);
        site_compressing_add_total(c, SITE_TOTAL_VARIANTS, 1);
        return;
    }
    atomic_fetch_or_explicit(&made->rejected, (uint8_t)(1u << coding), memory_order_relaxed);
    if (out != NULL)
        site_made_free(out, room);
}

/* ---- the thread: tags ---- */

static enum site_coder_result digest_piece(void *digest, struct span piece, bool last)
{
    site_content_digest_add(digest, piece);
    return last ? SITE_CODER_DONE : SITE_CODER_MORE;
}

static void make_tags(struct site_compressor *c, struct site_entry *entry)
{
    struct site_made *made = site_entry_made(entry);
    unsigned tagged = 0;
    if (made->tagged != 0) {
        site_made_return(made, SITE_MADE_TAGS);
        return;
    }
    for (int v = 0; v < SITE_VARIANTS; v++) {
        if (!site_load_lacks_tag(entry, v))
            continue;
        made->digest[v] = site_content_digest_begin(v);
        const enum site_compressing_outcome outcome =
            site_compressing_read(c, entry, v, digest_piece, &made->digest[v]);
        site_compressing_count(c, outcome);
        site_compressing_add_total(c, SITE_TOTAL_TAGS, outcome == SITE_OUTCOME_MADE);
        tagged |= (outcome == SITE_OUTCOME_MADE ? 1u : 0u) << v;
    }
    if (tagged != 0)
        site_made_give_tags(entry, made, tagged);
}

/* ---- the thread: the queue ---- */

static bool take_job(struct site_compressor *c, struct site_compressing_job *ret_job)
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
    struct site_compressing_job job;
    while (!take_job(compressor, &job)) {
        if (site_compressing_is_stopping(compressor))
            return false;
        (void)sem_wait(&compressor->wake); /* after a signal it looks again */
    }
    for (unsigned v = 0; v < SITE_PLAIN && !site_compressing_is_stopping(compressor); v++)
        if ((job.codings & 1u << v) != 0)
            make_variant(compressor, job.entry, (enum site_variant)v);
    if ((job.codings & SITE_MADE_TAGS) != 0)
        make_tags(compressor, job.entry);
    if (job.place != NULL)
        site_delta_make(compressor, job.entry, job.place);
    if (job.family != NULL)
        site_delta_copy(compressor, job.entry, job.family);
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
    c->dictionaries.bytes_most = plan.share_bytes / 2;
    c->budget = site_compress_budget_of(plan.cpu_percent, os_clock_now_ns());
    CHECK(sem_init(&c->wake, 0, 0) == 0);
    CHECK(pthread_mutex_init(&c->lock, NULL) == 0); /* no default mutex of Linux needs memory */
    return c;
}

static enum site_compressor_reply queue_job(struct site_compressor *c, struct site_entry *entry,
                                            unsigned codings)
{
    if (site_entry_made(entry) == NULL)
        return SITE_COMPRESSOR_BUSY;
    if (codings != SITE_MADE_TAGS &&
        !site_compressing_request_space(c, entry,
                                        (size_t)entry->plain->size / 4)) /* a usual result */
        return SITE_COMPRESSOR_SHARE_IN_USE;
    if (pthread_mutex_trylock(&c->lock) != 0)
        return SITE_COMPRESSOR_BUSY;
    const struct site_compressing_job job = { .entry = entry, .codings = codings };
    const bool added = site_compressing_add_job(c, job);
    CHECK(pthread_mutex_unlock(&c->lock) == 0);
    return added ? SITE_COMPRESSOR_TAKEN : SITE_COMPRESSOR_QUEUE_FULL;
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
        site_made_offer_later(site_entry_made(entry), codings);
    return reply;
}

unsigned site_compressor_awaited(const struct site_entry *entry)
{
    const struct site_entry_rest *rest = site_entry_rest(entry);
    if (rest == NULL)
        return 0;
    const unsigned settled = atomic_load_explicit(&entry->missing, memory_order_relaxed) |
                             atomic_load_explicit(&rest->made.refused, memory_order_relaxed) |
                             atomic_load_explicit(&rest->made.rejected, memory_order_relaxed);
    return site_options(site_of(entry))->compress & ~entry->variants & ~settled;
}

/* Each request for an entry that is not fresh moves its time. */
static bool is_idle(const struct site_cache_entry *cached, uint64_t now_ns)
{
    const struct site_entry *entry = (const struct site_entry *)cached;
    const struct site_entry_rest *rest = site_entry_rest(entry);
    const bool holds = entry->made != 0 || (rest != NULL && site_made_has_forms(&rest->made));
    const uint64_t used_ns = atomic_load_explicit(&entry->checked_ns, memory_order_relaxed);
    return holds && (int64_t)(now_ns - used_ns) >= (int64_t)SITE_COMPRESSOR_IDLE_NS;
}

void site_compressor_make_space(struct site_compressor *c, struct site_cache_reader *reader,
                                uint64_t now_ns)
{
    uint64_t swept_ns = atomic_load_explicit(&c->swept_ns, memory_order_relaxed);
    if (!atomic_load_explicit(&c->crowded, memory_order_relaxed) ||
        (int64_t)(now_ns - swept_ns) < (int64_t)SITE_COMPRESSOR_SWEEP_NS ||
        !atomic_compare_exchange_strong_explicit(&c->swept_ns, &swept_ns, now_ns,
                                                 memory_order_relaxed, memory_order_relaxed))
        return;
    atomic_store_explicit(&c->crowded, false, memory_order_relaxed);
    site_cache_sweep(reader, is_idle, now_ns);
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
    struct site_compressing_job job;
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
    site_deltas_done(&compressor->deltas);
    site_dictionary_done(&compressor->dictionaries);
    free(compressor);
}

struct site_compressor_totals site_compressor_totals(const struct site_compressor *compressor)
{
    uint64_t total[SITE_TOTALS];
    for (unsigned i = 0; i < SITE_TOTALS; i++)
        total[i] = atomic_load_explicit(&compressor->total[i], memory_order_relaxed);
    return (struct site_compressor_totals){
        .variants = total[SITE_TOTAL_VARIANTS],
        .before_bytes = total[SITE_TOTAL_BEFORE_BYTES],
        .after_bytes = total[SITE_TOTAL_AFTER_BYTES],
        .cpu_ns = total[SITE_TOTAL_CPU_NS],
        .pauses = total[SITE_TOTAL_PAUSES],
        .useless = total[SITE_TOTAL_USELESS],
        .tags = total[SITE_TOTAL_TAGS],
        .broken = total[SITE_TOTAL_BROKEN],
        .share_refused = total[SITE_TOTAL_SHARE_REFUSED],
        .deltas = total[SITE_TOTAL_DELTAS],
        .unknown = total[SITE_TOTAL_UNKNOWN],
        .notes = total[SITE_TOTAL_NOTES],
    };
}
