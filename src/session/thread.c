/* SPDX-License-Identifier: MIT */
#include "session/thread.h"

#include "base/hash.h"
#include "http/head.h"
#include "session/buffer.h"
#include "session/pages.h"
#include "session/tally.h"
#include "site/fetch.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

/* How long a log line may wait in memory. With the turn of a loop added, the delay stays below
 * the promised second. */
#define LOG_WAIT_NS UINT64_C(500000000)

static void format_second(struct session_thread *thread)
{
    struct buf prefix = buf_over(thread->ok_prefix, sizeof(thread->ok_prefix));
    http_head_add_status(&prefix, HTTP_OK);
    size_t date_at = prefix.len;
    http_head_add_date(&prefix, SPAN("Date"), thread->wall_s);
    CHECK(!prefix.overflow);
    thread->date_field = span_skip(buf_span(&prefix), date_at);
    thread->ok_prefix_len = prefix.len;
    const struct span date = span_skip(thread->date_field, sizeof("Date: ") - 1);
    struct buf block = buf_over(thread->block_prefix, sizeof(thread->block_prefix));
    http2_response_add_status(&block, HTTP_OK);
    http2_response_add_date(&block, date.at);
    CHECK(!block.overflow);
    thread->block_prefix_len = block.len;
}

/* Ids begin at random. Shortly after boot the kernel may have no randomness yet. Then the
 * address and the process id still keep two threads apart. */
static void begin_ids(struct session_thread *thread)
{
    const struct {
        const struct session_thread *at;
        uint64_t process;
    } place = { thread, (uint64_t)getpid() };
    uint64_t seed[2] = { 0 };
    if (getrandom(seed, sizeof(seed), GRND_NONBLOCK) != (ssize_t)sizeof(seed))
        memset(seed, 0, sizeof(seed));
    thread->id = hash_bytes(span_of((const char *)&place, sizeof(place)), seed[0]);
    thread->id_key = seed[1];
}

/* Begins the ids at a hash of an id that `from` has just used up, so that no other thread begins
 * there. */
static void branch_ids(struct session_thread *thread, const struct session_thread *from)
{
    const uint64_t step = from->id;
    thread->id_key = from->id_key;
    thread->id = hash_bytes(span_of((const char *)&step, sizeof(step)), thread->id_key);
}

/* Adding it to a time does not overflow. */
static uint64_t slow_of(const struct session_shared *shared)
{
    return shared->slow_ns > 0 ? shared->slow_ns : UINT64_MAX / 2;
}

int session_thread_start(struct session_thread *thread, struct session_shared *shared,
                         unsigned index)
{
    *thread = (struct session_thread){ .shared = shared, .slow_ns = slow_of(shared), .wall_s = -1 };
    thread->log = &thread->own_log;
    begin_ids(thread);
    stats_writer_open(&thread->stats, shared->stats);
    thread->reader = site_cache_reader(shared->cache, index);
    site_cache_online(thread->reader);
    return log_access_start(&thread->own_log, shared->log);
}

void session_thread_use_home(struct session_thread *thread, struct task_home *home)
{
    thread->home = home;
    thread->patience = home && thread->shared->fetches ? SITE_CACHED_ONLY : SITE_MAY_WAIT;
}

/* No answer lends what these have found. */
static void drop_fetched(struct session_thread *thread)
{
    struct site_fetch_ticket *ticket;
    while (__builtin_expect((ticket = thread->fetched) != NULL, 0)) {
        thread->fetched = ticket->next;
        site_fetch_drop(ticket);
    }
}

void session_thread_share_log(struct session_thread *owner)
{
    CHECK(pthread_mutex_init(&owner->log_lock, NULL) == 0);
    log_access_share(&owner->own_log, &owner->log_lock);
}

void session_thread_start_beside(struct session_thread *thread, struct session_thread *owner,
                                 unsigned index)
{
    *thread = (struct session_thread){
        .shared = owner->shared, .log = &owner->own_log, .slow_ns = owner->slow_ns, .wall_s = -1
    };
    session_thread_divide(owner);
    branch_ids(thread, owner);
    stats_writer_open(&thread->stats, owner->shared->stats);
    thread->reader = site_cache_reader(owner->shared->cache, index);
    site_cache_offline(thread->reader);
}

void session_thread_prepare(struct session_thread *thread)
{
    struct session_buffer *buffer = session_buffer_take(thread);
    if (buffer)
        session_buffer_give(thread, buffer);
}

void session_thread_divide(struct session_thread *thread)
{
    (void)session_thread_next_id(thread);
}

void session_thread_inherit(struct session_thread *thread)
{
    log_access_forget(thread->log);
    session_thread_use_home(thread, NULL); /* the child has no other thread */
    branch_ids(thread, thread);
    stats_writer_open(&thread->stats, thread->shared->stats);
    session_tally_inherit(thread);
    thread->log_due_ns = 0;
}

/* Frees what the thread keeps for its next session, but for its spare buffers. */
static void free_unused(struct session_thread *thread)
{
    tls_chunks_trim(&thread->tls_chunks, 0);
    free(thread->tls_plain);
    thread->tls_plain = NULL;
    free(thread->http2_streams);
    thread->http2_streams = NULL;
    free(thread->http2_scratch);
    thread->http2_scratch = NULL;
    free(thread->file_bytes);
    thread->file_bytes = NULL;
    session_pages_forget(thread->pages_known);
    thread->pages_known = NULL;
}

void session_thread_stop(struct session_thread *thread)
{
    log_access_stop(&thread->own_log);
    drop_fetched(thread);
    session_spares_trim(&thread->spares, 0);
    free_unused(thread);
    site_cache_offline(thread->reader);
    session_tally_publish(thread->shared);
    stats_writer_close(&thread->stats);
}

void session_thread_shrink(struct session_thread *thread)
{
    session_spares_trim(&thread->spares, 1);
    free_unused(thread);
}

/* A thread keeps for its next answers what it used for those before. A burst leaves much more. In
 * each second with work half of it is freed. */
static void free_half(struct session_thread *thread)
{
    enum { LEAST = 4 };
    const unsigned buffers = thread->spares.count / 2, chunks = thread->tls_chunks.count / 2;
    session_spares_trim(&thread->spares, buffers > LEAST ? buffers : LEAST);
    tls_chunks_trim(&thread->tls_chunks, chunks > LEAST ? chunks : LEAST);
}

void session_thread_tick(struct session_thread *thread, uint64_t now_ns, int64_t wall_s)
{
    thread->now_ns = now_ns;
    session_turn_end(&thread->turn);
    drop_fetched(thread);
    if (wall_s != thread->wall_s) {
        thread->wall_s = wall_s;
        format_second(thread);
        free_half(thread);
    }
    site_cache_quiesce(thread->reader);
    if (session_thread_due_ns(thread) <= now_ns) {
        log_access_flush(thread->log);
        thread->log_due_ns = 0;
        session_tally_publish(thread->shared);
    }
}

uint64_t session_thread_due_ns(struct session_thread *thread)
{
    if (thread->log != &thread->own_log || !log_access_pending(thread->log)) {
        thread->log_due_ns = 0;
        return UINT64_MAX;
    }
    if (thread->log_due_ns == 0)
        thread->log_due_ns = thread->now_ns + LOG_WAIT_NS;
    return thread->log_due_ns;
}

struct session *session_thread_next_ready(const struct session_thread *thread)
{
    struct task_pool *tasks = thread->shared->tasks;
    return tasks && thread->home ? task_next_done(tasks, thread->home) : NULL;
}

void session_thread_rest(struct session_thread *thread)
{
    drop_fetched(thread);
    site_cache_offline(thread->reader);
}

void session_thread_resume(struct session_thread *thread)
{
    site_cache_online(thread->reader);
}
