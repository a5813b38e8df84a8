/* SPDX-License-Identifier: MIT
 *
 * Model `thread`: one thread for each connection, with blocking calls. A reactor accepts, and
 * starts the threads.
 *
 * A thread that ends leaves its slot to a later thread. The slot that was released last is used
 * first. A slot that was free for a few seconds gives the memory of its stack back to the
 * kernel. The reactor joins a thread when it uses its slot again, or when the slot gives its memory
 * back, and the rest before the model returns.
 *
 * Cost: for each connection the start and end of a thread, and a stack; for each request a switch
 * of threads. The threads share the cache, the access log's buffer (under a lock) and a descriptor
 * table. While connections are open the reactor wakes up four times a second, to write the log.
 * Failure: when the system allows no more threads, new connections get 503. A crash loses every
 * connection of the process.
 */
#include "log/error.h"
#include "model/model.h"
#include "model/pump.h"
#include "model/reactor.h"
#include "os/file.h"
#include "os/process.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

int model_thread_serve(struct server *server);

enum {
    GUARD_BYTES = 4096, /* below each stack, without access: an overflow ends the process */

/* The size of a slot, which is mostly its stack. The deepest call (a folder's listing) needs less
     * than half of it, beside the input. Pages that are never touched cost nothing. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    SLOT_BYTES = 1024 * 1024,
#else
    SLOT_BYTES = 128 * 1024,
#endif
    COOLED_AT_ONCE = 256, /* slots, in about 1 ms */
    CROWD = 64,           /* slots whose clients leave memory that is worth a search in the heaps */
};
#define TURN_NS    UINT64_C(250000000)
#define COOLING_NS UINT64_C(2000000000)

/* Whether the stack of a slot has memory, which a slot that stays free gives back. */
enum warmth { SLOT_COLD, SLOT_WARM, SLOT_COOLING };

/* Placed at the end of its memory, above the stack. */
struct slot {
    struct model_pump pump;
    struct session_thread thread;
    struct threads *all;
    struct slot *next; /* in the list of free slots */
    struct session_origin origin;
    pthread_t id;
    /* The reactor's: */
    bool displaced; /* its connection ends to make space */
    bool joinable;  /* a thread was started, and not joined yet */
    enum warmth warmth;
    int fd; /* that other threads may shut down; -1: none */
};

struct threads {
    struct server *server;
    struct model_reactor *reactor;
    char *memory; /* of all slots */
    int drain_fd; /* model/pump.h */
    unsigned slots_max;
    unsigned slots_made;  /* slots that have ever been used */
    pthread_mutex_t lock; /* guards what follows, and `fd` in the slots */
    struct slot *free;
    struct session_spares spares; /* a slot without a client keeps no memory */

    /* The reactor's: */
    struct model_wheel_node cooling; /* in the wheel while slots are not cold */
    unsigned warm;                   /* slots that are not cold */
    unsigned cooled;                 /* slots, since the heaps were last trimmed */
};

static struct slot *slot_at(const struct threads *t, unsigned index)
{
    char *end = t->memory + ((size_t)index + 1) * SLOT_BYTES;
    return (struct slot *)(void *)(end - sizeof(struct slot));
}

/* ---- a thread's life ---- */

static void release_slot(struct slot *slot)
{
    struct threads *t = slot->all;
    session_thread_shrink(&slot->thread);
    CHECK(pthread_mutex_lock(&t->lock) == 0);
    session_spares_give(&t->spares, &slot->thread);
    slot->fd = -1;
    slot->next = t->free;
    t->free = slot;
    CHECK(pthread_mutex_unlock(&t->lock) == 0);
}

static void end_client(struct slot *slot)
{
    struct threads *t = slot->all;
    int fd = slot->fd;
    stats_writer_add(&slot->thread.stats, STATS_connections_closed, 1);
    release_slot(slot); /* first, so that no other thread shuts the descriptor down */
    os_file_close(fd);
    model_loop_ended(&t->reactor->loop);
}

static void *serve_in_thread(void *argument)
{
    struct slot *slot = argument;
    char input[SESSION_READ_MAX];
    session_thread_resume(&slot->thread);
    model_pump_serve(&slot->pump, &slot->thread, slot->origin, input);
    session_thread_rest(&slot->thread);
    end_client(slot);
    return NULL;
}

static void join_slot(struct slot *slot)
{
    if (slot->joinable)
        CHECK(pthread_join(slot->id, NULL) == 0);
    slot->joinable = false;
}

static char *stack_of(struct slot *slot)
{
    return (char *)slot + sizeof(*slot) - SLOT_BYTES + GUARD_BYTES;
}

static int start_thread(struct slot *slot)
{
    char *begin = stack_of(slot);
    size_t stack_bytes = (size_t)((char *)slot - begin);
    pthread_attr_t attributes;
    int rc = -pthread_attr_init(&attributes);
    if (rc < 0)
        return rc;
    CHECK(pthread_attr_setstack(&attributes, begin, stack_bytes) == 0);
    rc = -pthread_create(&slot->id, &attributes, serve_in_thread, slot);
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
    session_thread_start_beside(&slot->thread, &t->reactor->loop.thread, t->slots_made);
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
    join_slot(slot); /* its thread may have a few instructions left */
    return slot;
}

/* A client begins in the slot, and other threads may shut `fd` down. */
static void open_slot(struct slot *slot, int fd)
{
    CHECK(pthread_mutex_lock(&slot->all->lock) == 0);
    session_spares_take(&slot->all->spares, &slot->thread);
    slot->fd = fd;
    CHECK(pthread_mutex_unlock(&slot->all->lock) == 0);
    slot->all->warm += slot->warmth == SLOT_COLD;
    slot->warmth = SLOT_WARM;
}

/* ---- memory of free slots ---- */

static void cool_slot(struct slot *slot)
{
    char *stack = stack_of(slot);
    const size_t bytes = ((uintptr_t)slot & ~(uintptr_t)4095) - (uintptr_t)stack;
    join_slot(slot);
    (void)madvise(stack, bytes, MADV_DONTNEED); /* else the memory stays */
    slot->warmth = SLOT_COLD;
    slot->all->warm--;
    slot->all->cooled++;
}

/* Cools slots that were free at the last call, too. Only the reactor takes slots out of the list,
 * so it walks behind the first one without the lock. False: it stopped before the end of the
 * list. */
static bool cool_free_slots(struct threads *t)
{
    unsigned left = COOLED_AT_ONCE;
    CHECK(pthread_mutex_lock(&t->lock) == 0);
    struct slot *slot = t->free;
    CHECK(pthread_mutex_unlock(&t->lock) == 0);
    for (; slot && left > 0; slot = slot->next) {
        if (slot->warmth == SLOT_COOLING) {
            cool_slot(slot);
            left--;
        } else if (slot->warmth == SLOT_WARM) {
            slot->warmth = SLOT_COOLING;
        }
    }
    return left > 0;
}

/* A crowd has also left memory in the heaps, between what is still used. */
static void cool_slots(struct model_reactor *r, struct model_wheel_node *timer)
{
    struct threads *t = r->place;
    const bool all_seen = cool_free_slots(t);
    if (t->warm > 0)
        model_wheel_add(&r->loop.wheel, timer,
                        r->loop.now_ns + (all_seen ? COOLING_NS : WHEEL_TICK_NS));
    if (!all_seen || t->cooled < CROWD)
        return;
    os_process_trim_heaps();
    t->cooled = 0;
}

/* ---- the placement ---- */

static bool start_client(struct model_reactor *r, int fd, struct session_origin origin)
{
    static struct log_error_limit limit;
    struct threads *t = r->place;
    struct slot *slot = take_slot(t);
    int rc = slot ? 0 : -ENOMEM;
    if (slot) {
        model_pump_init(&slot->pump, fd, t->drain_fd, t->server->drain_idle_ns, r->loop.now_ns);
        slot->displaced = false;
        slot->origin = origin;
        if (slot->all->warm == 0)
            model_wheel_add(&r->loop.wheel, &slot->all->cooling, r->loop.now_ns + COOLING_NS);
        open_slot(slot, fd);
        rc = start_thread(slot);
        if (rc < 0)
            release_slot(slot);
    }
    if (rc < 0)
        log_error_limited(&limit, 10, LOG_ERROR, "cannot start a thread: %s; answering 503",
                          strerror(-rc));
    return rc == 0;
}

static void end_each(struct threads *t, bool (*end)(struct model_pump *pump))
{
    CHECK(pthread_mutex_lock(&t->lock) == 0);
    for (unsigned i = 0; i < t->slots_made; i++)
        if (slot_at(t, i)->fd >= 0)
            (void)end(&slot_at(t, i)->pump);
    CHECK(pthread_mutex_unlock(&t->lock) == 0);
}

static void drain_clients(struct model_reactor *r)
{
    const struct threads *t = r->place;
    model_pump_report_drain(t->drain_fd);
}

static void end_idle_clients(struct model_reactor *r)
{
    end_each(r->place, model_pump_end_idle);
}

static void end_all_clients(struct model_reactor *r)
{
    end_each(r->place, model_pump_end);
}

/* ---- making space ---- */

static struct threads *threads_of(struct model_loop *loop)
{
    return ((struct model_reactor *)loop)->place;
}

static void search_idle_slots(struct model_loop *loop)
{
    struct threads *t = threads_of(loop);
    CHECK(pthread_mutex_lock(&t->lock) == 0);
    for (unsigned i = 0; i < t->slots_made; i++)
        if (slot_at(t, i)->fd >= 0)
            model_idle_offer(loop, slot_at(t, i));
    CHECK(pthread_mutex_unlock(&t->lock) == 0);
}

static uint64_t slot_idle_since_ns(struct model_loop *loop, void *who)
{
    (void)loop;
    const struct slot *slot = who;
    return slot->displaced ? MODEL_IDLE_NEVER
                           : atomic_load_explicit(slot->pump.idle_since_ns, memory_order_relaxed);
}

static void displace_slot(struct model_loop *loop, void *who)
{
    struct threads *t = threads_of(loop);
    struct slot *slot = who;
    CHECK(pthread_mutex_lock(&t->lock) == 0);
    slot->displaced = slot->fd >= 0 && model_pump_end_idle(&slot->pump);
    stats_writer_add(&loop->thread.stats, STATS_connections_displaced, slot->displaced);
    CHECK(pthread_mutex_unlock(&t->lock) == 0);
}

static const struct model_idle_kind thread_idle = {
    .search = search_idle_slots,
    .since_ns = slot_idle_since_ns,
    .close = displace_slot,
};

static const struct model_placement thread_placement = {
    .idle = &thread_idle,
    .turn_ns = TURN_NS,
    .place = start_client,
    .drain = drain_clients,
    .due = cool_slots,
    .close_idle = end_idle_clients,
    .close_all = end_all_clients,
};

static void end_slots(struct threads *t)
{
    for (unsigned i = 0; i < t->slots_made; i++) {
        join_slot(slot_at(t, i));
        session_thread_stop(&slot_at(t, i)->thread);
    }
    session_spares_trim(&t->spares, 0);
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
    t.drain_fd = model_pump_open_drain();
    int rc = t.drain_fd < 0 ? t.drain_fd
                            : model_reactors_new(server, 1, &thread_placement, &t, &t.reactor);
    if (rc == 0) {
        session_thread_share_log(&t.reactor->loop.thread);
        rc = model_reactor_serve(&t.reactor->loop);
        end_each(&t, model_pump_end); /* connections are left only when the reactor has failed */
        end_slots(&t);
    }
    model_reactors_free(t.reactor);
    os_file_close(t.drain_fd);
    CHECK(pthread_mutex_destroy(&t.lock) == 0);
    munmap(t.memory, bytes);
    return rc;
}
