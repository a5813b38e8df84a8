/* SPDX-License-Identifier: MIT */
#include "model/loop.h"

#include "base/duration.h"
#include "log/error.h"
#include "model/model.h"
#include "model/owner.h"
#include "model/threads.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/signal.h"
#include "session/limits.h"
#include "session/proxy.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define PAUSE_NS       (DURATION_SECOND / 10) /* after a failure to accept */
#define CLOSE_AGAIN_NS (DURATION_SECOND / 10)

/* ---- waking ---- */

static void wake_loop(const struct model_loop *loop)
{
    uint64_t one = 1;
    (void)!write(loop->wake_fd, &one, sizeof(one)); /* fails only when the count is at its limit */
}

/* Makes every loop of the process read the phase, and what was handed over to it. */
static void wake_all_loops(const struct model_loop *loop)
{
    for (unsigned i = 0; i < loop->count; i++)
        wake_loop(model_loop_at(loop, i));
}

/* ---- making ---- */

struct model_loop *model_loops_new(struct server *server, unsigned count,
                                   const struct model_loop_kind *kind)
{
    CHECK(count <= server->listener_sets || server->passed.fd >= 0);
    CHECK(server->passed.fd < 0 || kind->end_passing);
    struct model_loop *first = aligned_alloc(CACHE_LINE, count * kind->bytes);
    if (!first)
        return NULL;
    memset(first, 0, count * kind->bytes);
    first->kind = kind;
    first->first = first;
    for (unsigned i = 0; i < count; i++) {
        struct model_loop *loop = model_loop_at(first, i);
        loop->kind = kind;
        loop->server = server;
        loop->first = first;
        loop->count = count;
        loop->index = loop->next_choice = i;
        loop->connections_max = server->connections_max / count +
                                (i < server->connections_max % count);
        loop->files_max = SIZE_MAX;
        loop->wake_fd = -1;
        pthread_mutex_init(&loop->handed_lock, NULL);
        model_wheel_init(&loop->wheel, os_clock_now_ns());
    }
    return first;
}

int model_loop_open(struct model_loop *loop)
{
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->wake_fd < 0)
        return -errno;
    loop->home.wake_fd = loop->wake_fd;
    int rc = session_thread_start(&loop->thread, loop->server->shared, loop->index);
    session_thread_use_home(&loop->thread, &loop->home);
    return rc;
}

void model_loop_close(struct model_loop *loop)
{
    if (loop->thread.reader)
        session_thread_stop(&loop->thread);
    os_file_close(loop->wake_fd);
    pthread_mutex_destroy(&loop->handed_lock);
}

struct serving {
    struct model_loop *first;
    int (*serve)(struct model_loop *loop);
};

static int serve_one_loop(void *context, unsigned index)
{
    const struct serving *serving = context;
    return serving->serve(model_loop_at(serving->first, index));
}

static void stop_all_loops(void *context)
{
    const struct serving *serving = context;
    atomic_store(&serving->first->server->phase, SERVER_STOPPING);
    wake_all_loops(serving->first);
}

int model_loops_serve(struct model_loop *first, int (*serve)(struct model_loop *loop))
{
    struct serving serving = { first, serve };
    struct model_threads threads = {
        .count = first->count, .serve = serve_one_loop, .stop = stop_all_loops, .context = &serving
    };
    return model_threads_serve(&threads);
}

/* ---- signals ---- */

void model_loop_read_signals(struct model_loop *loop)
{
    int signal;
    while ((signal = os_signal_read(loop->server->signal_fd)) > 0) {
        if (server_signal(loop->server, signal))
            wake_all_loops(loop);
        if (loop->kind->signal)
            loop->kind->signal(loop, signal);
    }
}

/* ---- counting connections ---- */

void model_loop_count_out(struct model_loop *loop)
{
    unsigned live = atomic_fetch_sub_explicit(&loop->live, 1, memory_order_release);
    if (live == loop->connections_max && loop->count > 1)
        wake_all_loops(loop); /* loops that paused because all were full accept again */
}

void model_loop_ended(struct model_loop *loop)
{
    ipc_fdpass_ended(&loop->server->passed);
    unsigned live = atomic_fetch_sub_explicit(&loop->live, 1, memory_order_release);
    bool drained = live == 1 && atomic_load(&loop->server->phase) != SERVER_RUNNING;
    if (drained || live >= loop->connections_max)
        wake_loop(loop);
}

/* ---- space for new connections ---- */

static bool may_accept(const struct model_loop *loop)
{
    return !loop->draining || model_loop_is_passed(loop);
}

bool model_loop_may_listen(struct model_loop *loop)
{
    if (!may_accept(loop) || loop->now_ns < loop->listen_again_ns)
        return false;
    loop->listen_again_ns = 0;
    if (loop->now_ns < loop->space_again_ns && model_owner_is_full(model_owner_choose(loop)))
        return false;
    loop->space_again_ns = 0;
    return true;
}

/* Another loop has an idle connection perhaps, and wakes this one when it has closed it. */
static void request_space(struct model_loop *loop)
{
    for (unsigned i = 0; i < loop->count; i++) {
        struct model_loop *each = model_loop_at(loop, i);
        if (each == loop)
            continue;
        atomic_store(&each->space_wanted, true);
        wake_loop(each);
    }
}

static void give_space(struct model_loop *loop)
{
    uint64_t again_ns;
    if (atomic_exchange(&loop->space_wanted, false) && model_owner_is_full(loop) && !loop->draining)
        (void)model_idle_close_longest(loop, &again_ns);
}

/* Every loop is full, and a client waits. False: there is no space yet. */
static bool make_space(struct model_loop *loop)
{
    bool closed = !loop->draining && model_idle_close_longest(loop, &loop->space_again_ns);
    if (!closed)
        request_space(loop);
    if (!closed || model_owner_is_full(loop)) /* some models close later */
        return false;
    loop->space_again_ns = 0; /* a loop that accepts waits for nothing */
    return true;
}

/* ---- from loop to loop ---- */

bool model_loop_hand_over(struct model_loop *to, struct model_handed handed)
{
    pthread_mutex_lock(&to->handed_lock);
    bool taken = !to->left && to->handed_count < LOOP_HANDED_MAX;
    bool first = to->handed_count == 0;
    if (taken) {
        to->handed[to->handed_count++] = handed;
        atomic_fetch_add_explicit(&to->live, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&to->handed_lock);
    if (taken && first) /* one wake-up is enough for all that follow */
        wake_loop(to);
    return taken;
}

/* The task that makes the list of ready answers longer than empty wakes the loop. A session that is
 * resumed may submit the next task, which may be done before the list is empty. */
static void resume_ready(struct model_loop *loop)
{
    struct session *s = NULL;
    for (unsigned i = 0; i < LOOP_RESUMES && (s = session_thread_next_ready(&loop->thread)); i++)
        loop->kind->resume(loop, s);
    if (s)
        wake_loop(loop); /* for those that are left */
}

void model_loop_woken(struct model_loop *loop)
{
    uint64_t wakes;
    (void)!read(loop->wake_fd, &wakes, sizeof(wakes)); /* the reasons are found without it */
    struct model_handed handed[LOOP_HANDED_MAX];
    pthread_mutex_lock(&loop->handed_lock);
    unsigned count = loop->handed_count;
    memcpy(handed, loop->handed, count * sizeof(handed[0]));
    loop->handed_count = 0;
    pthread_mutex_unlock(&loop->handed_lock);
    for (unsigned i = 0; i < count; i++)
        if (handed[i].moved)
            loop->kind->adopt(loop, handed[i].fd);
        else
            loop->kind->begin(loop, handed[i].fd, handed[i].origin);
    resume_ready(loop);
    give_space(loop);
}

/* ---- accepting ---- */

bool model_loop_is_passed(const struct model_loop *loop)
{
    return loop->index == 0 && loop->server->passed.fd >= 0;
}

int *model_loop_listeners(const struct model_loop *loop)
{
    return loop->server->listeners + (size_t)loop->index * loop->server->listener_count;
}

/* Whether connections that this process accepts from `listener_fd` begin with TLS. */
static bool is_for_tls(const struct model_loop *loop, int listener_fd)
{
    const struct server *server = loop->server;
    for (unsigned i = 0; server->listener_tls && i < server->listener_count; i++)
        if (model_loop_listeners(loop)[i] == listener_fd)
            return server->listener_tls[i];
    return false;
}

/* The peer's address for the session. An IPv4 address mapped to IPv6 becomes IPv4. */
static struct session_peer peer_of(const struct os_socket_address *address)
{
    struct session_peer peer = { 0 };
    if (address->storage.ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)&address->storage;
        peer.family = 4;
        memcpy(peer.address, &in->sin_addr, 4);
    } else if (address->storage.ss_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)&address->storage;
        bool mapped = IN6_IS_ADDR_V4MAPPED(&in->sin6_addr);
        peer.family = mapped ? 4 : 6;
        memcpy(peer.address, in->sin6_addr.s6_addr + (mapped ? 12 : 0), mapped ? 4 : 16);
    }
    return peer;
}

static void pause_accepting(struct model_loop *loop)
{
    if (loop->kind->pause)
        loop->kind->pause(loop);
}

void model_loop_cannot_accept(struct model_loop *loop, int error)
{
    static struct log_error_limit limit;
    log_error_limited(&limit, 10, LOG_ERROR, "cannot accept connections: %s", strerror(error));
    loop->listen_again_ns = loop->now_ns + PAUSE_NS;
    pause_accepting(loop);
}

/* Resets a connection whose address has too many connections, or makes them too fast. */
static bool refuse_address(struct model_loop *loop, int fd, struct session_peer *peer)
{
    if (session_proxy_admit(loop->server->shared, peer, loop->now_ns))
        return false;
    stats_writer_add(&loop->thread.stats, STATS_connections_limited, 1);
    stats_writer_add(&loop->thread.stats, STATS_connections_closed, 1);
    ipc_fdpass_ended(&loop->server->passed);
    os_socket_reset_at_close(fd);
    os_file_close(fd);
    return true;
}

void model_loop_release_address(const struct model_loop *loop, const struct session_peer *peer)
{
    if (peer->limited)
        session_limits_release(loop->server->shared->limits, peer);
}

/* Every accepted connection passes here, once. */
static void place_on(struct model_loop *loop, struct model_loop *owner, int fd,
                     struct session_origin origin)
{
    stats_writer_add(&loop->thread.stats, STATS_connections_accepted, 1);
    origin.proxied = session_proxy_expects(loop->server->shared, &origin.peer);
    if (!origin.proxied && refuse_address(loop, fd, &origin.peer))
        return;
    if (owner != loop && model_loop_hand_over(owner, (struct model_handed){ fd, false, origin }))
        return;
    atomic_fetch_add_explicit(&loop->live, 1, memory_order_relaxed);
    loop->kind->begin(loop, fd, origin);
}

void model_loop_place(struct model_loop *loop, int listener_fd, int fd)
{
    struct os_socket_address address = { .len = sizeof(address.storage) };
    if (getpeername(fd, (struct sockaddr *)&address.storage, &address.len) < 0)
        address.storage.ss_family = AF_UNSPEC; /* the peer is gone */
    place_on(loop, model_owner_choose(loop), fd,
             (struct session_origin){ peer_of(&address), is_for_tls(loop, listener_fd), false });
}

static int accept_one(struct model_loop *loop, int listener_fd, struct ipc_fdpass_origin *origin)
{
    struct ipc_fdpass_receiver *passed = &loop->server->passed;
    int fd = listener_fd == passed->fd ? ipc_fdpass_receive(passed, origin)
                                       : os_socket_accept(listener_fd, &origin->peer);
    if (fd < 0 || (size_t)fd < loop->files_max)
        return fd;
    os_file_close(fd);
    ipc_fdpass_ended(passed);
    return -EMFILE;
}

bool model_loop_accept(struct model_loop *loop, int listener_fd)
{
    struct ipc_fdpass_origin from; /* a message of the master sets `tls`, too */
    from.tls = is_for_tls(loop, listener_fd);
    for (unsigned i = 0; i < LOOP_ACCEPTS; i++) {
        struct model_loop *owner = model_owner_choose(loop);
        if (model_owner_is_full(owner)) {
            if (i > 0)
                return true; /* perhaps none waits: no connection has to make space */
            if (!make_space(loop)) {
                pause_accepting(loop);
                return false;
            }
            owner = loop;
        }
        int fd = accept_one(loop, listener_fd, &from);
        if (fd == -EAGAIN)
            return false;
        if (fd == -EPIPE && listener_fd == loop->server->passed.fd) {
            loop->kind->end_passing(loop);
            return false;
        }
        if (fd < 0) {
            model_loop_cannot_accept(loop, -fd);
            return false;
        }
        place_on(loop, owner, fd, (struct session_origin){ peer_of(&from.peer), from.tls, false });
    }
    return true;
}

void model_loop_accept_rest(struct model_loop *loop, int listener_fd, uint64_t until_ns)
{
    while (model_loop_accept(loop, listener_fd) && os_clock_now_ns() < until_ns)
        continue;
}

/* ---- phases ---- */

static void begin_loop_drain(struct model_loop *loop)
{
    loop->draining = true;
    loop->drain_idle_until_ns = loop->now_ns + loop->server->drain_idle_ns;
    loop->drain_until_ns = loop->now_ns + loop->server->drain_timeout_ns;
}

/* From here on no loop can hand a connection over to this one. False: it still has some. */
static bool leave_loop(struct model_loop *loop, bool failed)
{
    pthread_mutex_lock(&loop->handed_lock);
    loop->left = failed || atomic_load_explicit(&loop->live, memory_order_acquire) == 0;
    bool left = loop->left;
    pthread_mutex_unlock(&loop->handed_lock);
    if (left && loop->index > 0)
        wake_loop(loop->first);
    return left;
}

void model_loop_fail(struct model_loop *loop)
{
    (void)leave_loop(loop, true);
}

static bool has_left(struct model_loop *loop)
{
    pthread_mutex_lock(&loop->handed_lock);
    bool left = loop->left;
    pthread_mutex_unlock(&loop->handed_lock);
    return left;
}

/* The first loop stays until the others have left, because it reads the signals. */
static bool must_stay(const struct model_loop *loop)
{
    for (unsigned i = 1; loop->index == 0 && i < loop->count; i++)
        if (!has_left(model_loop_at(loop, i)))
            return true;
    return false;
}

bool model_loop_continues(struct model_loop *loop)
{
    int phase = atomic_load_explicit(&loop->server->phase, memory_order_acquire);
    if (phase == SERVER_RUNNING)
        return true;
    bool first_turn = !loop->draining;
    if (first_turn)
        begin_loop_drain(loop);
    loop->kind->drain(loop, first_turn);
    if (loop->drain_idle_until_ns != 0 && loop->now_ns >= loop->drain_idle_until_ns) {
        loop->drain_idle_until_ns = 0;
        loop->kind->close_idle(loop);
    }
    if (phase == SERVER_STOPPING || loop->now_ns >= loop->drain_until_ns) {
        loop->kind->close_all(loop);
        loop->drain_until_ns = loop->now_ns + CLOSE_AGAIN_NS;
    }
    return loop->kind->still_accepts(loop) || must_stay(loop) || !leave_loop(loop, false);
}

/* ---- waiting ---- */

static uint64_t earlier_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t model_loop_due_ns(struct model_loop *loop)
{
    uint64_t due =
        earlier_of(model_wheel_next_ns(&loop->wheel), session_thread_due_ns(&loop->thread));
    if (loop->listen_again_ns != 0 && may_accept(loop))
        due = earlier_of(due, loop->listen_again_ns);
    if (loop->space_again_ns != 0 && may_accept(loop))
        due = earlier_of(due, loop->space_again_ns);
    if (loop->draining)
        due = earlier_of(due, loop->drain_until_ns);
    if (loop->draining && loop->drain_idle_until_ns != 0)
        due = earlier_of(due, loop->drain_idle_until_ns);
    return due;
}

void model_loop_rest(struct model_loop *loop)
{
    if (loop->server->cache_readers > 1)
        session_thread_rest(&loop->thread);
}

void model_loop_resume(struct model_loop *loop)
{
    if (loop->server->cache_readers > 1)
        session_thread_resume(&loop->thread);
}

void model_loop_tick(struct model_loop *loop)
{
    loop->now_ns = os_clock_now_ns();
    session_thread_tick(&loop->thread, loop->now_ns, os_clock_wall_s());
}
