/* SPDX-License-Identifier: MIT
 *
 * When a number is worth a sentence. Each verdict is a function of the last minute (window.h).
 * The function returns true when the verdict holds, and then has filled the texts, which were
 * empty. A threshold has its reason beside it, or is the value at which an operator would ask.
 */
#include "view/verdict.h"

#include "base/duration.h"
#include "view/advice.h"
#include "view/busy.h"
#include "view/health.h"
#include "view/http2.h"
#include "view/window.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void view_verdict_say(char out[VIEW_VERDICT_TEXT], const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(out, VIEW_VERDICT_TEXT, format, arguments);
    va_end(arguments);
}

static uint64_t rise(const struct view_window *w, enum stats_counter counter)
{
    return w->counter[counter];
}

static double part(uint64_t some, uint64_t all)
{
    return all > 0 ? (double)some / (double)all : 0;
}

static const char *plural_ending(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* ---- connections ---- */

static bool accept_queue_overflow(const struct view_window *w, struct view_verdict *out)
{
    uint64_t overflows = rise(w, STATS_accept_overflows);
    if (overflows == 0)
        return false;
    out->gravity = VIEW_WRONG;
    view_verdict_say(out->text,
                     "the accept queue overflowed %" PRIu64
                     " time%s in %.0f s. These clients wait a second "
                     "or more and try again",
                     overflows, plural_ending(overflows), w->seconds);
    view_busy_say(w, out->why);
    if (w->has_shares && view_busy_count(w) == 0)
        view_verdict_say(out->cure,
                         "raise net.core.somaxconn to 4096, the backlog that weir requests");
    else
        view_busy_say_cure(w, out->cure);
    return true;
}

static bool files_near_limit(const struct view_window *w, struct view_verdict *out)
{
    const struct view_usage *usage = &w->view->usage;
    double full = part(usage->files_most, usage->files_limit);
    if (full < 0.8)
        return false;
    out->gravity = full < 0.95 ? VIEW_WARNING : VIEW_WRONG;
    view_verdict_say(out->text,
                     "open files of a process are at %.0f %% of its limit (%" PRIu64 " of %" PRIu64
                     ")",
                     100 * full, usage->files_most, usage->files_limit);
    view_verdict_say(
        out->why, "each connection and each large file in the cache is an open file. At the limit, "
                  "new connections wait to be accepted");
    view_verdict_say(out->cure,
                     "raise the limit (`ulimit -n`, or LimitNOFILE= of a service), or shorten "
                     "`idle-timeout`");
    return true;
}

static bool idle_displaced(const struct view_window *w, struct view_verdict *out)
{
    uint64_t displaced = rise(w, STATS_connections_displaced);
    if (displaced == 0)
        return false;
    out->gravity = VIEW_WARNING;
    view_verdict_say(out->text,
                     "%" PRIu64 " idle connection%s closed in %.0f s to make space for new ones",
                     displaced, displaced == 1 ? " was" : "s were", w->seconds);
    view_verdict_say(out->why,
                     "the server has as many connections as it may, and most of them may be idle");
    view_verdict_say(out->cure,
                     "shorten `idle-timeout`, or raise `connections` or the limit of open files "
                     "(`ulimit -n`, or LimitNOFILE= of a service)");
    return true;
}

static bool connections_refused(const struct view_window *w, struct view_verdict *out)
{
    uint64_t refused = rise(w, STATS_connections_refused);
    if (refused == 0)
        return false;
    out->gravity = VIEW_WRONG;
    view_verdict_say(
        out->text, "%" PRIu64 " connection%s answered 503 in %.0f s, for lack of a %s to serve %s",
        refused, refused == 1 ? " was" : "s were", w->seconds,
        view_works_in_processes(w->serving) ? "process" : "thread", refused == 1 ? "it" : "them");
    if (w->serving->serves != STATS_SERVES_POOL) {
        view_verdict_say(out->why, "the system allows no more %s",
                         view_works_in_processes(w->serving)
                             ? "processes"
                             : "threads or memory for their stacks");
        view_verdict_say(
            out->cure,
            "raise the limit (`ulimit -u`, or TasksMax= of a service), lower `connections`, or "
            "set `model = percore`, which needs no %s for each connection",
            view_works_in_processes(w->serving) ? "process" : "thread");
    } else {
        view_verdict_say(out->why, "the queue for a thread was full, or with `pool-policy = "
                                   "sticky` a wait in it reached `header-timeout`");
        view_verdict_say(out->cure,
                         "raise `threads`, or raise `pool-queue` if such peaks are short");
    }
    return true;
}

static bool listings_refused(const struct view_window *w, struct view_verdict *out)
{
    uint64_t refused = rise(w, STATS_listings_refused);
    if (refused == 0)
        return false;
    out->gravity = VIEW_WARNING;
    view_verdict_say(out->text, "%" PRIu64 " folder listing%s answered 503 in %.0f s", refused,
                     refused == 1 ? " was" : "s were", w->seconds);
    view_verdict_say(out->why,
                     "a worker rendered, or sent without the cache, as many as `listings` allows");
    view_verdict_say(out->cure,
                     "raise `cache-size`, so that listings are kept, or raise `listings`. A folder "
                     "with an index file needs no listing");
    return true;
}

/* A local disk answers within 20 ms. */
static bool disk_slow(const struct view_window *w, struct view_verdict *out)
{
    enum { ENOUGH = 20, SLOW_MS = 100 };
    const uint64_t waits = rise(w, STATS_fetch_waits_ended);
    const uint64_t refused = rise(w, STATS_fetches_refused) + rise(w, STATS_fetches_late);
    const double mean_ms = part(rise(w, STATS_fetch_waits_us), waits) / 1e3;
    if (refused == 0 && (waits < ENOUGH || mean_ms < SLOW_MS))
        return false;
    out->gravity = refused > 0 ? VIEW_WRONG : VIEW_WARNING;
    if (refused > 0)
        view_verdict_say(out->text,
                         "the disk is slow: %" PRIu64 " request%s answered 503 in %.0f s, and "
                         "%" PRIu64 " wait%s for it took %.0f ms on average",
                         refused, refused == 1 ? " was" : "s were", w->seconds, waits,
                         plural_ending(waits), mean_ms);
    else
        view_verdict_say(out->text,
                         "the disk is slow: requests waited for it %" PRIu64
                         " times in %.0f s, %.0f ms on average",
                         waits, w->seconds, mean_ms);
    view_verdict_say(out->why,
                     "files and folders were not in memory. A request gets 503 after 30 s, or when "
                     "too many others wait");
    view_verdict_say(out->cure,
                     "raise `cache-size`, or give the machine more memory. If the files would fit "
                     "into memory, look for a fault of the disk with `dmesg` and `iostat -x`");
    return true;
}

static bool queue_waits_long(const struct view_window *w, struct view_verdict *out)
{
    enum { ENOUGH = 20 };
    uint64_t wait_ns = stats_snapshot_quantile_ns(&w->queue_wait, 0.9);
    uint64_t latency_ns =
        stats_snapshot_quantile_ns(&w->view->snapshot->histogram[STATS_HISTOGRAM_latency], 0.9);
    if (w->queue_wait.count < ENOUGH || wait_ns <= latency_ns || wait_ns < DURATION_MS)
        return false;
    out->gravity = VIEW_WARNING;
    view_verdict_say(
        out->text,
        "connections wait longer for a thread than for their answer: 90 %% wait up to %.1f ms",
        (double)wait_ns / 1e6);
    view_verdict_say(out->why,
                     "all %u threads of a worker are busy, and 90 %% of answers take up to %.1f ms",
                     w->serving->threads, (double)latency_ns / 1e6);
    view_busy_say_cure(w, out->cure);
    return true;
}

static bool many_resets(const struct view_window *w, struct view_verdict *out)
{
    enum { ENOUGH = 50 };
    uint64_t reset = rise(w, STATS_connections_reset);
    double some = part(reset, rise(w, STATS_connections_closed));
    if (reset < ENOUGH || some < 0.2)
        return false;
    out->gravity = VIEW_NOTE;
    view_verdict_say(out->text, "%.0f %% of connections were broken off (%" PRIu64 " in %.0f s)",
                     100 * some, reset, w->seconds);
    view_verdict_say(
        out->why, "clients give up or are closed, a balancer checks health this way, or a network "
                  "loses connections");
    view_verdict_say(out->cure, "see in the access log which clients they are");
    return true;
}

static bool address_limits(const struct view_window *w, struct view_verdict *out)
{
    uint64_t connections = rise(w, STATS_connections_limited);
    uint64_t requests = rise(w, STATS_requests_limited);
    if (connections == 0 && requests == 0)
        return false;
    out->gravity = VIEW_NOTE;
    view_verdict_say(out->text,
                     "clients reached the limits of their address in %.0f s: %" PRIu64
                     " connection%s reset, and %" PRIu64 " request%s answered 429",
                     w->seconds, connections, connections == 1 ? " was" : "s were", requests,
                     requests == 1 ? " was" : "s were");
    view_verdict_say(
        out->why, "a client floods this server, or many clients share an address behind a proxy");
    view_verdict_say(out->cure,
                     "name the proxy in `proxy-protocol` or `forwarded-from`, if it reports its "
                     "clients, or in `address-exempt`. If honest clients are limited, raise "
                     "%s",
                     requests > 0 ? "`address-request-rate` of [server], or of the [path]"
                                  : "`address-connections` or `address-connection-rate`");
    return true;
}

static bool slow_heads(const struct view_window *w, struct view_verdict *out)
{
    enum { ENOUGH = 10 };
    uint64_t slow = rise(w, STATS_timeouts_head);
    if (slow < ENOUGH)
        return false;
    out->gravity = VIEW_WARNING;
    view_verdict_say(out->text,
                     "the heads of %" PRIu64 " requests did not arrive in time, in %.0f s", slow,
                     w->seconds);
    view_verdict_say(out->why,
                     "honest clients are hardly ever so slow. Slow-request attacks look like this");
    view_verdict_say(out->cure,
                     "shorten `header-timeout`, and block the addresses that the access log lists "
                     "with status 408");
    return true;
}

static bool slow_clients(const struct view_window *w, struct view_verdict *out)
{
    enum { ENOUGH = 10 };
    uint64_t bodies = rise(w, STATS_timeouts_body), sends = rise(w, STATS_timeouts_send);
    if (bodies < ENOUGH && sends < ENOUGH)
        return false;
    out->gravity = VIEW_NOTE;
    view_verdict_say(out->text,
                     "in %.0f s, %" PRIu64 " clients stopped taking their answer, and %" PRIu64
                     " did not send a body in time",
                     w->seconds, sends, bodies);
    view_verdict_say(out->why, "their networks are bad, or they hold connections on purpose");
    view_verdict_say(out->cure,
                     "lengthen `send-timeout` and `body-timeout` for bad networks, or shorten them "
                     "against attackers");
    return true;
}

static bool keep_alive_unused(const struct view_window *w, struct view_verdict *out)
{
    enum { ENOUGH = 1000 };
    uint64_t requests = rise(w, STATS_requests);
    double reusing = part(rise(w, STATS_requests_reusing), requests);
    if (requests < ENOUGH || reusing >= 0.2)
        return false;
    out->gravity = VIEW_NOTE;
    view_verdict_say(out->text, "only %.0f %% of requests reused a connection", 100 * reusing);
    view_verdict_say(out->why,
                     "clients, or the proxy in front of this server, close after each answer. A "
                     "connection costs several times what a request does");
    view_verdict_say(out->cure, "turn keep-alive on in the proxy, or raise `idle-timeout`");
    return true;
}

/* ---- work ---- */

/* The workers use all the CPU time that they can. */
static bool saturated(const struct view_window *w, struct view_verdict *out)
{
    if (!w->has_shares || w->busy < VIEW_BUSY)
        return false;
    out->gravity = VIEW_WARNING;
    view_verdict_say(out->text,
                     "the workers are saturated: they use %.0f %% of the CPU time that they can",
                     100 * w->busy);
    view_busy_say(w, out->why);
    view_busy_say_cure(w, out->cure);
    return true;
}

static bool worker_uneven(const struct view_window *w, struct view_verdict *out)
{
    if (!w->has_shares || w->worker_count < 2 || view_works_in_processes(w->serving))
        return false;
    double index = view_busy_fairness(w), others = view_busy_mean(w, 1);
    if (index >= 0.8 || w->worker[0].busy < 0.5 || others > w->worker[0].busy / 2)
        return false;
    out->gravity = w->worker[0].busy >= VIEW_BUSY ? VIEW_WARNING : VIEW_NOTE;
    view_verdict_say(out->text,
                     "one worker is busy %.0f %%, the others %.0f %% (fairness index %.2f of 1)",
                     100 * w->worker[0].busy, 100 * others, index);
    view_verdict_say(out->why,
                     "a few connections carry most of the work, and a connection stays with its "
                     "worker");
    view_verdict_say(out->cure,
                     "none if there are few clients. Otherwise let the clients, or the proxy in "
                     "front of this server, use more connections");
    return true;
}

static bool answers_5xx(const struct view_window *w, struct view_verdict *out)
{
    uint64_t failed = w->by_class[4];
    /* These are not failures, or have verdicts of their own. */
    uint64_t refused = rise(w, STATS_answers_5xx_expected) + rise(w, STATS_connections_refused) +
                       rise(w, STATS_listings_refused) + rise(w, STATS_fetches_refused) +
                       rise(w, STATS_fetches_late);
    failed = failed > refused ? failed - refused : 0;
    uint64_t answers = rise(w, STATS_requests);
    if (failed == 0)
        return false;
    out->gravity = part(failed, answers) < 0.01 ? VIEW_WARNING : VIEW_WRONG;
    view_verdict_say(out->text,
                     "%" PRIu64 " answer%s with a status of 5xx in %.0f s (%.2g %% of all)", failed,
                     plural_ending(failed), w->seconds, 100 * part(failed, answers));
    view_verdict_say(out->why, "files could not be read, or memory or descriptors ran out");
    view_verdict_say(out->cure, "`error-log` and the access log have each case");
    return true;
}

static bool many_4xx(const struct view_window *w, struct view_verdict *out)
{
    enum { ENOUGH = 100 };
    uint64_t answers = rise(w, STATS_requests);
    double some = part(w->by_class[3], answers);
    if (answers < ENOUGH || some < 0.2)
        return false;
    out->gravity = VIEW_NOTE;
    view_verdict_say(out->text, "%.0f %% of answers have a status of 4xx (%" PRIu64 " in %.0f s)",
                     100 * some, w->by_class[3], w->seconds);
    view_verdict_say(out->why, "a scanner tries out names, or links lead nowhere");
    view_verdict_say(out->cure, "the access log has the paths, and the pages that link to them");
    return true;
}

static bool cache_too_small(const struct view_window *w, struct view_verdict *out)
{
    enum { ENOUGH = 100 };
    uint64_t hits = rise(w, STATS_cache_hits), lookups = hits + rise(w, STATS_cache_misses);
    uint64_t evictions = rise(w, STATS_cache_evictions);
    if (evictions == 0 || lookups < ENOUGH || part(hits, lookups) >= 0.9)
        return false;
    out->gravity = VIEW_WARNING;
    view_verdict_say(out->text,
                     "the cache answers %.0f %% of lookups, and evicted %" PRIu64
                     " entries in %.0f s",
                     100 * part(hits, lookups), evictions, w->seconds);
    char advice[VIEW_ADVICE_MAX];
    view_advice_say(w->view, advice);
    if (view_works_in_processes(w->serving)) {
        view_verdict_say(out->why,
                         "single connections request more than fits into their cache, which begins "
                         "empty for each connection");
        view_verdict_say(out->cure,
                         "set `model = percore`, which has one cache for all, or `prefork`, which "
                         "also isolates faults");
        return true;
    }
    view_verdict_say(out->why, "the files that clients request do not fit into it");
    view_verdict_say(out->cure,
                     "raise `cache-size` if that pays (%s), or `cache-entries` if that limit is "
                     "reached",
                     advice);
    return true;
}

/* ---- all of them ---- */

static const struct {
    const char *name;
    bool (*judge)(const struct view_window *window, struct view_verdict *verdict);
} rules[] = {
#define VERDICT(name, function) { name, function },
#include "view/verdicts.def"
#undef VERDICT
};
static_assert(sizeof(rules) / sizeof(rules[0]) <= VIEW_VERDICTS_MAX, "all of them fit");

const char *view_verdict_gravity_name(enum view_gravity gravity)
{
    static const char *const names[] = { "note", "warning", "wrong" };
    return names[gravity];
}

/* Behind verdicts of the same gravity. */
static void insert_by_gravity(struct view_verdict out[VIEW_VERDICTS_MAX], size_t count,
                              const struct view_verdict *verdict)
{
    size_t at = count;
    while (at > 0 && out[at - 1].gravity < verdict->gravity)
        at--;
    memmove(&out[at + 1], &out[at], (count - at) * sizeof(*out));
    out[at] = *verdict;
}

size_t view_verdicts(const struct view *view, const struct view *before,
                     struct view_verdict out[VIEW_VERDICTS_MAX])
{
    struct view_window window;
    size_t count = 0;
    view_window_open(&window, view, before);
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        struct view_verdict verdict = { .rule = rules[i].name };
        if (rules[i].judge(&window, &verdict))
            insert_by_gravity(out, count++, &verdict);
    }
    return count;
}
