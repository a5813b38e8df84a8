/* SPDX-License-Identifier: MIT
 *
 * Model `thread`: one thread for each connection, with blocking calls. A loop
 * accepts, and starts them.
 *
 * A thread that ends leaves its slot, its stack and the buffers of its worker to
 * a thread to come, the last one first, so that memory is what the most
 * connections at a time have needed. It is joined by whoever takes its slot, and
 * at the end by the model: none is left when the process goes.
 *
 * Cost: a thread's start and end for each connection, a switch of threads for
 * each request, a stack for each connection; the threads share the cache, the
 * access log's buffer (under a lock) and a descriptor table. While connections
 * are open the loop wakes four times a second, to write the log.
 * Failure: no more threads to be had is 503 for new connections; a crash loses
 * every connection of the process.
 */
#include "log/error.h"
#include "model/model.h"
#include "model/pump.h"
#include "model/reactor.h"
#include "os/file.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

int model_thread_serve(struct server *server);

enum {
    GUARD_BYTES = 4096, /* below each stack, and never touched: an overflow ends the process */

/* What a slot takes: mostly its stack, of which the longest path (a folder's
     * listing) needs less than half beside the input. Untouched pages cost nothing. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    SLOT_BYTES = 1024 * 1024
#else
    SLOT_BYTES = 128 * 1024
#endif
};
#define TURN_NS UINT64_C(250000000)

/* At the end of its memory, behind the stack. */
struct slot {
    struct model_pump pump;
    struct session_thread worker;
    struct threads *all;
    struct slot *next; /* among those that are free */
    struct session_peer peer;
    pthread_t thread;
    bool joinable; /* a thread was started, and not joined yet */
    int fd;        /* -1: none that others may end */
};

struct threads {
    struct server *server;
    struct model_reactor *reactor;
    char *memory; /* of all slots */
    unsigned slots_max;
    unsigned slots_made;  /* those that were ever used */
    pthread_mutex_t lock; /* guards `free`, and `fd` in the slots */
    struct slot *free;
};

static struct slot *slot_at(const struct threads *t, unsigned index)
{
    char *end = t->memory + ((size_t)index + 1) * SLOT_BYTES;
    return (struct slot *)(void *)(end - sizeof(struct slot));
}

/* ---- a thread's life ---- */

static void put_back(struct slot *slot)
{
    struct threads *t = slot->all;
    CHECK(pthread_mutex_lock(&t->lock) == 0);
    slot->fd = -1;
    slot->next = t->free;
    t->free = slot;
    CHECK(pthread_mutex_unlock(&t->lock) == 0);
}

static void leave(struct slot *slot)
{
    struct threads *t = slot->all;
    int fd = slot->fd;
    stats_add(&slot->worker.stats, STATS_connections_closed, 1);
    put_back(slot); /* first: from now on nobody shuts the descriptor down */
    os_file_close(fd);
    model_loop_ended(&t->reactor->loop);
}

static void *serve(void *argument)
{
    struct slot *slot = argument;
    char input[SESSION_READ_MAX];
    session_thread_resume(&slot->worker);
    model_pump_serve(&slot->pump, &slot->worker, slot->peer, input);
    session_thread_rest(&slot->worker);
    leave(slot);
    return NULL;
}

static void join(struct slot *slot)
{
    if (slot->joinable)
        CHECK(pthread_join(slot->thread, NULL) == 0);
    slot->joinable = false;
}

static int start(struct slot *slot)
{
    char *begin = (char *)slot + sizeof(*slot) - SLOT_BYTES + GUARD_BYTES;
    size_t stack_bytes = (size_t)((char *)slot - begin);
    pthread_attr_t attributes;
    int rc = -pthread_attr_init(&attributes);
    if (rc < 0)
        return rc;
    CHECK(pthread_attr_setstack(&attributes, begin, stack_bytes) == 0);
    rc = -pthread_create(&slot->thread, &attributes, serve, slot);
    (void)pthread_attr_destroy(&attributes); /* cannot fail on Linux */
    slot->joinable = rc == 0;
    return rc;
}

/* ---- slots ---- */

static struct slot *make_slot(struct threads *t)
{
    if (t->slots_made == t->slots_max)
        return NULL;
    char *begin = t->memory + (size_t)t->slots_made * SLOT_BYTES;
    if (mprotect(begin + GUARD_BYTES, SLOT_BYTES - GUARD_BYTES, PROT_READ | PROT_WRITE) < 0)
        return NULL;
    struct slot *slot = slot_at(t, t->slots_made);
    *slot = (struct slot){ .all = t, .fd = -1 };
    t->slots_made++;
    session_thread_start_beside(&slot->worker, &t->reactor->loop.thread, t->slots_made);
    return slot;
}

static struct slot *take_slot(struct threads *t)
{
    CHECK(pthread_mutex_lock(&t->lock) == 0);
    struct slot *slot = t->free;
    if (slot)
        t->free = slot->next;
    CHECK(pthread_mutex_unlock(&t->lock) == 0);
    if (!slot)
        return make_slot(t);
    join(slot); /* it may have a few instructions to go */
    return slot;
}

static void set_fd(struct slot *slot, int fd)
{
    CHECK(pthread_mutex_lock(&slot->all->lock) == 0);
    slot->fd = fd;
    CHECK(pthread_mutex_unlock(&slot->all->lock) == 0);
}

/* ---- what the loop asks for ---- */

static bool place(struct model_reactor *r, int fd, struct session_peer peer)
{
    static struct log_error_limit limit;
    struct threads *t = r->place;
    struct slot *slot = take_slot(t);
    int rc = slot ? 0 : -ENOMEM;
    if (slot) {
        model_pump_init(&slot->pump, fd, t->server->drain_idle_ns);
        slot->peer = peer;
        set_fd(slot, fd);
        rc = start(slot);
        if (rc < 0)
            put_back(slot);
    }
    if (rc < 0)
        log_error_limited(&limit, 10, LOG_ERROR, "cannot start a thread: %s; answering 503",
                          strerror(-rc));
    return rc == 0;
}

static void end_each(struct threads *t, void (*end)(struct model_pump *pump))
{
    CHECK(pthread_mutex_lock(&t->lock) == 0);
    for (unsigned i = 0; i < t->slots_made; i++)
        if (slot_at(t, i)->fd >= 0)
            end(&slot_at(t, i)->pump);
    CHECK(pthread_mutex_unlock(&t->lock) == 0);
}

static void close_idle(struct model_reactor *r)
{
    end_each(r->place, model_pump_end_idle);
}

static void close_all(struct model_reactor *r)
{
    end_each(r->place, model_pump_end);
}

static const struct model_placement placement = {
    .turn_ns = TURN_NS,
    .place = place,
    .close_idle = close_idle,
    .close_all = close_all,
};

static void end_slots(struct threads *t)
{
    for (unsigned i = 0; i < t->slots_made; i++) {
        join(slot_at(t, i));
        session_thread_stop(&slot_at(t, i)->worker);
    }
}

int model_thread_serve(struct server *server)
{
    struct threads t = { .server = server, .slots_max = server->cache_readers - server->threads };
    if (t.slots_max > MODEL_PER_CONNECTION_MAX)
        t.slots_max = MODEL_PER_CONNECTION_MAX;
    if (server->connections_max > t.slots_max)
        server->connections_max = t.slots_max;
    size_t bytes = (size_t)t.slots_max * SLOT_BYTES;
    t.memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (t.memory == MAP_FAILED)
        return -errno;
    CHECK(pthread_mutex_init(&t.lock, NULL) == 0);
    int rc = model_reactors_new(server, 1, &placement, &t, &t.reactor);
    if (rc == 0) {
        session_thread_share_log(&t.reactor->loop.thread);
        rc = model_reactor_serve(&t.reactor->loop);
        end_each(&t, model_pump_end); /* there are some only when the loop has failed */
        end_slots(&t);
    }
    model_reactors_free(t.reactor);
    CHECK(pthread_mutex_destroy(&t.lock) == 0);
    munmap(t.memory, bytes);
    return rc;
}
