/* SPDX-License-Identifier: MIT
 *
 * Lookups of an exchange. In a loop, a lookup never waits for the disk. Another thread fetches a
 * file that is not in memory (site/fetch.h), and the answer is pending meanwhile.
 *
 * Private to session/.
 */
#pragma once

#include "session/answer.h"
#include "site/query.h"

/* For each disk, in each process: the threads that fetch, and the lookups that wait for one of
 * them. A disk does more work in a second with some requests at a time than with one. More threads
 * would only wait in its queue. */
enum { SESSION_FETCHERS = 4, SESSION_FETCHES_MAX = 256 };

/* The same: the threads that render listings. A listing makes up to 10,000 calls, and uses
 * no thread that lookups need. */
enum { SESSION_LISTERS = 2 };

/* The rare cases of session_fetch_find. */
enum site_result session_fetch_known(struct session_exchange *x, struct site_query *query,
                                     struct site_entry **ret_entry, bool *ret_new);
enum site_result session_fetch_otherwise(struct session_exchange *x, struct site_query *query,
                                         enum site_result result, struct site_entry **ret_entry,
                                         bool *ret_new);

/* As site_find_query, for the site of the exchange. If x->pending is set afterwards, the answer is
 * pending, and the result is SITE_BUSY. The plan then ends without an answer: it calls nothing, or
 * session_answer_page, which writes nothing. */
static inline enum site_result session_fetch_find(struct session_exchange *x,
                                                  struct site_query *query,
                                                  struct site_entry **ret_entry, bool *ret_new)
{
    const struct session_thread *thread = x->thread;
    if (__builtin_expect(x->fetches, 0))
        return session_fetch_known(x, query, ret_entry, ret_new);
    const enum site_result result = site_find_query(
        x->site->site, thread->reader, query, thread->now_ns, thread->patience, ret_entry, ret_new);
    return __builtin_expect(result == SITE_FILE, 1)
               ? result
               : session_fetch_otherwise(x, query, result, ret_entry, ret_new);
}

/* The same for the page of an error. Where a connection cannot be served, too many lookups wait, or
 * the time of the request is over, the page is sent only if it is in memory. The same holds for the
 * answer to bytes that are no request. */
enum site_result session_fetch_page(struct session_exchange *x, enum http_status status,
                                    struct site_query *query, struct site_entry **ret_entry,
                                    bool *ret_new);

/* The exchange has published this entry, which was at the address `found` before. If a ticket of it
 * has found the entry, other requests may use that from now on. */
void session_fetch_publish(const struct session_exchange *x, const void *found,
                           struct site_entry *entry);
