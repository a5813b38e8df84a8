/* SPDX-License-Identifier: MIT
 *
 * Lookups that would wait for the disk, and listings of folders, made in the fetching threads: the
 * lanes TASK_FETCHES and TASK_LISTINGS of the pool (task/task.h). So an event loop that looks up
 * files only in memory never waits.
 *
 * A fetch is one lookup and all that it loads. All requests of the process that need the same
 * lookup share one fetch, and each has a ticket. The fetching thread loads into an entry that no
 * other thread sees. It never uses the cache. The request that resumes first gets that entry as
 * a new one, and publishes it. The other requests then get the same entry, also if the cache does
 * not keep it. So no request depends on luck to find what it waited for.
 *
 * A call that waits for the disk cannot be stopped. So a fetch that runs holds the entry that it
 * compares, and borrows its site. A request that gives up drops its ticket, and the last ticket
 * frees what was loaded. A listing makes many calls, and ends after the next one when no ticket is
 * left.
 *
 * Threads: any thread may make any call. One lock guards the tickets and fetches of a process. It
 * is held for some instructions, never while the disk is read.
 */
#pragma once

#include "site/listing.h"
#include "site/query.h"
#include "task/task.h"

struct site_fetch;

/* The fetches of a process. */
struct site_fetches;

/* One request's part in a fetch. `owner` of its task is what task_next_done returns. */
struct site_fetch_ticket {
    struct task task; /* first */
    struct site_fetches *fetches;
    struct site_fetch *fetch;
    struct site_fetch_ticket *newer, *older; /* among the tickets of the fetch */
    struct site_fetch_ticket *next;          /* in a list of its owner */
    uint64_t joined_ns;
    bool late; /* the fetch had begun */
    bool left; /* the request waits no longer, and uses what was found to the end of the turn */
};

/* The tickets of one request, newest first, and the session that waits for them. */
struct site_fetch_wait {
    struct task_home *home;
    void *owner;
    struct site_fetch_ticket **tickets;
    struct site_fetch_ticket *last; /* set with SITE_NOT_IN_MEMORY: the ticket to wait for */
    bool limited; /* set with SITE_BUSY: there are as many listings as the limit allows */
};

/* Borrows the pool, and the limit of listings. NULL: out of memory. */
struct site_fetches *site_fetch_new(struct task_pool *pool, struct site_listing_limit *listings);

/* The caller has freed the pool, and no ticket is left. False: a fetch still runs, and its thread
 * uses the sites. Then neither they nor this are freed: the process is about to end. Accepts
 * NULL. */
bool site_fetch_free(struct site_fetches *fetches);

/* Finds the file or listing that a lookup in memory could not find.
 *
 * SITE_NOT_IN_MEMORY: the request waits for wait->last, which may be a new ticket. SITE_BUSY: too
 * many fetches wait, or wait->limited. Any other result is of a fetch for which this request has a
 * ticket. *ret_entry then stays valid until site_fetch_drop. With *ret_new the caller publishes and
 * releases it, as after site_find. A listing counts in its limit until a request takes the
 * result. */
enum site_result site_fetch_find(struct site_fetches *fetches, struct site_fetch_wait *wait,
                                 const struct site *site, struct site_cache_reader *reader,
                                 struct site_query *query, uint64_t now_ns,
                                 struct site_entry **ret_entry, bool *ret_new);

/* Whether a ticket of the request is for this query. Then site_fetch_find has its result, and the
 * cache may still have an entry that the fetch has found to be old. */
bool site_fetch_has(struct site_fetch_ticket *tickets, const struct site *site,
                    struct site_query *query);

/* Whether the request of this ticket can continue. */
bool site_fetch_is_over(const struct site_fetch_ticket *ticket);

/* The request has just published an entry, which was at the address `found`. If site_fetch_find
 * returned it as new for this ticket, other requests may have it. Each such entry is published in
 * the same plan. */
void site_fetch_published(struct site_fetch_ticket *ticket, const void *found,
                          struct site_entry *entry);

/* The request has its answer, or needs none. It is not woken any more. Returns whether the fetch
 * has a result, which an answer may use until site_fetch_drop. */
bool site_fetch_leave(struct site_fetch_ticket *ticket);

/* Frees a ticket in any state. */
void site_fetch_drop(struct site_fetch_ticket *ticket);
