/* SPDX-License-Identifier: MIT */
#include "session/thread.h"

#include "base/hash.h"
#include "http/status.h"
#include "session/buffer.h"
#include "session/tally.h"

#include <errno.h>
#include <sys/random.h>
#include <unistd.h>

/* How long a log line may wait in memory: with the turn of a loop on top it
 * stays below the promised second. */
#define LOG_WAIT_NS UINT64_C(500000000)

static void format_second(struct session_thread *worker)
{
    struct span line = http_status_line(HTTP_OK);
    CHECK(line.len + 6 + HTTP_DATE_LEN + 2 <= sizeof(worker->ok_prefix));
    char *at = worker->ok_prefix;
    memcpy(at, line.at, line.len);
    char *date = at + line.len;
    memcpy(date, "Date: ", 6);
    http_date_format(date + 6, worker->wall_s);
    memcpy(date + 6 + HTTP_DATE_LEN, "\r\n", 2);
    worker->date_field = span_of(date, 6 + HTTP_DATE_LEN + 2);
    worker->ok_prefix_len = line.len + worker->date_field.len;
}

/* Ids begin at random. Only in the first moments after boot there may be no randomness yet; then no
 * two workers are at one address of one process, at least. */
static void begin_ids(struct session_thread *worker)
{
    const struct {
        const struct session_thread *at;
        uint64_t process;
    } place = { worker, (uint64_t)getpid() };
    uint64_t seed[2] = { 0 };
    if (getrandom(seed, sizeof(seed), GRND_NONBLOCK) != (ssize_t)sizeof(seed))
        memset(seed, 0, sizeof(seed));
    worker->id = hash_bytes(span_of((const char *)&place, sizeof(place)), seed[0]);
    worker->id_key = seed[1];
}

/* Ids begin where no other worker's do that branches off from `from`, which has taken a step for
 * this one. */
static void branch_ids(struct session_thread *worker, const struct session_thread *from)
{
    const uint64_t step = from->id;
    worker->id_key = from->id_key;
    worker->id = hash_bytes(span_of((const char *)&step, sizeof(step)), worker->id_key);
}

int session_thread_start(struct session_thread *worker, struct session_shared *shared,
                         unsigned index)
{
    *worker = (struct session_thread){ .shared = shared, .wall_s = -1 };
    worker->log = &worker->own_log;
    begin_ids(worker);
    stats_writer_open(&worker->stats, shared->stats);
    worker->reader = site_cache_reader(shared->cache, index);
    site_cache_online(worker->reader);
    return log_access_start(&worker->own_log, shared->log);
}

void session_thread_share_log(struct session_thread *owner)
{
    CHECK(pthread_mutex_init(&owner->log_lock, NULL) == 0);
    log_access_share(&owner->own_log, &owner->log_lock);
}

void session_thread_start_beside(struct session_thread *worker, struct session_thread *owner,
                                 unsigned index)
{
    *worker =
        (struct session_thread){ .shared = owner->shared, .log = &owner->own_log, .wall_s = -1 };
    session_thread_divide(owner);
    branch_ids(worker, owner);
    stats_writer_open(&worker->stats, owner->shared->stats);
    worker->reader = site_cache_reader(owner->shared->cache, index);
    site_cache_offline(worker->reader);
}

void session_thread_prepare(struct session_thread *worker)
{
    struct session_buffer *buffer = session_buffer_take(worker);
    if (buffer)
        session_buffer_give(worker, buffer);
}

void session_thread_divide(struct session_thread *worker)
{
    (void)session_thread_next_id(worker);
}

void session_thread_inherit(struct session_thread *worker)
{
    log_access_forget(worker->log);
    branch_ids(worker, worker);
    stats_writer_open(&worker->stats, worker->shared->stats);
    session_totals_inherit(worker);
    worker->log_due_ns = 0;
}

void session_thread_stop(struct session_thread *worker)
{
    log_access_stop(&worker->own_log);
    session_buffer_free(worker->spare);
    worker->spare = NULL;
    worker->spare_count = 0;
    site_cache_offline(worker->reader);
    session_totals_publish(worker->shared);
    stats_writer_close(&worker->stats);
}

void session_thread_tick(struct session_thread *worker, uint64_t now_ns, int64_t wall_s)
{
    worker->now_ns = now_ns;
    if (wall_s != worker->wall_s) {
        worker->wall_s = wall_s;
        format_second(worker);
    }
    site_cache_quiesce(worker->reader);
    if (session_thread_due_ns(worker) <= now_ns) {
        log_access_flush(worker->log);
        worker->log_due_ns = 0;
        session_totals_publish(worker->shared);
    }
}

uint64_t session_thread_due_ns(struct session_thread *worker)
{
    if (worker->log != &worker->own_log || !log_access_pending(worker->log)) {
        worker->log_due_ns = 0;
        return UINT64_MAX;
    }
    if (worker->log_due_ns == 0)
        worker->log_due_ns = worker->now_ns + LOG_WAIT_NS;
    return worker->log_due_ns;
}

void session_thread_rest(struct session_thread *worker)
{
    site_cache_offline(worker->reader);
}

void session_thread_resume(struct session_thread *worker)
{
    site_cache_online(worker->reader);
}
