/* SPDX-License-Identifier: MIT */
#include "session/listing.h"

#include "base/hash.h"
#include "session/fetch.h"
#include "session/guard.h"
#include "session/rules.h"
#include "session/tally.h"

#include <errno.h>
#include <limits.h>
#include <time.h>

/* The entry of a listing is published as soon as it is rendered, so that others find it. */
static enum site_result take_listing(struct session_exchange *x, enum site_result result,
                                     struct session_listing *listing)
{
    if (result != SITE_FILE) {
        session_tally_follow_cache(x->thread->shared);
        return result;
    }
    stats_writer_add(&x->thread->stats, STATS_listings_rendered, listing->fresh);
    listing->published = listing->fresh ? session_head_publish(x, &listing->entry)
                                        : SESSION_PUBLISHED;
    return result;
}

/* Whether the cache has this entry. What a fetch has found may be outside of it. */
static bool is_cached(const struct session_exchange *x, const struct site_entry *entry)
{
    return site_cache_find(x->thread->reader, entry->cache.hash, site_cache_key(&entry->cache)) ==
           &entry->cache;
}

/* In a loop. A fetch counts its listing until a request takes it. From then on each answer counts
 * that has the listing outside of the cache. */
static enum site_result fetch_listing(struct session_exchange *x, struct site_query *query,
                                      struct session_listing *listing)
{
    enum site_result result = session_fetch_find(x, query, &listing->entry, &listing->fresh);
    result = take_listing(x, result, listing);
    if (result == SITE_FILE && x->resumed && !listing->fresh && !is_cached(x, listing->entry))
        listing->published = SESSION_REFUSED;
    listing->counts = result == SITE_FILE && listing->published != SESSION_PUBLISHED;
    if (listing->counts)
        site_listing_count(&x->thread->shared->listings);
    return result;
}

static enum site_result find_listing(struct session_exchange *x, struct site_query *query,
                                     bool may_render, struct session_listing *listing)
{
    query->may_render = may_render;
    const enum site_result result = site_find_query(x->site->site, x->thread->reader, query,
                                                    x->thread->now_ns, SITE_MAY_WAIT,
                                                    &listing->entry, &listing->fresh);
    return take_listing(x, result, listing);
}

/* A thread waits for one to two seconds for another one that renders, perhaps the same listing.
 * That one may wait for a disk that hangs, and this listing may be on another disk. */
enum { RENDERING_WAIT_S = 2 };

/* With the wall clock: neither gcc's TSan nor Helgrind knows pthread_mutex_clocklock. */
static bool lock_rendering(const struct session_thread *thread, pthread_mutex_t *rendering)
{
    const struct timespec until = { .tv_sec = (time_t)thread->wall_s + RENDERING_WAIT_S };
    const int error = pthread_mutex_timedlock(rendering, &until);
    CHECK(error == 0 || error == ETIMEDOUT);
    return error == 0;
}

/* In a thread of one connection. */
static enum site_result render_listing(struct session_exchange *x, struct site_query *query,
                                       struct session_listing *listing)
{
    struct session_shared *shared = x->thread->shared;
    const uint64_t hash = hash_bytes(query->path, (uintptr_t)x->site);
    pthread_mutex_t *rendering = &shared->rendering[hash % SESSION_RENDERINGS];
    enum site_result result = find_listing(x, query, false, listing);
    if (result != SITE_BUSY)
        return result;
    if (!site_listing_begin(&shared->listings)) {
        stats_writer_add(&x->thread->stats, STATS_listings_refused, 1);
        return SITE_BUSY;
    }
    const bool locked = lock_rendering(x->thread, rendering);
    result = find_listing(x, query, true, listing);
    CHECK(!locked || pthread_mutex_unlock(rendering) == 0);
    listing->counts = result == SITE_FILE;
    if (!listing->counts)
        site_listing_end(&shared->listings);
    return result;
}

enum site_result session_listing_find(struct session_exchange *x, enum site_listing_form form,
                                      struct session_listing *ret_listing)
{
    char key[PATH_MAX];
    struct site_view storage;
    struct site_query query;
    const struct session_guard_scope scope = session_guard_scope_of(x);
    const struct site_listing_request request = {
        .path = x->target.path,
        .query = x->target.query,
        .form = form,
        .view = session_rules_view(x, &storage),
        .shows = x->site->access_by_path ? session_guard_shows : NULL,
        .quotes = x->match ? session_rules_quote : NULL,
        .context = &scope,
        .context_bytes = sizeof(scope),
    };
    *ret_listing = (struct session_listing){ .published = SESSION_PUBLISHED };
    if (!site_query_listing(&request, true, key, sizeof(key), &query))
        return SITE_ABSENT;
    return x->thread->patience == SITE_CACHED_ONLY ? fetch_listing(x, &query, ret_listing)
                                                   : render_listing(x, &query, ret_listing);
}

void session_listing_answered(struct session_exchange *x, const struct session_listing *listing)
{
    struct session_answer *answer = &x->out->answer;
    if (!listing->counts)
        return;
    answer->listing = listing->published != SESSION_PUBLISHED && answer->open &&
                      answer->entry == listing->entry;
    if (!answer->listing)
        site_listing_end(&x->thread->shared->listings);
}
