/* SPDX-License-Identifier: MIT
 *
 * Theory of operation. The dispatch has an epoll set, which the master waits for as for one
 * descriptor. The set watches the listeners while a connection can be passed, and each full channel
 * until it has space.
 *
 * At most one connection is held: accepted, and not passed yet. Meanwhile no other is accepted, and
 * clients wait in the backlogs. A worker at its limit gets no connection, because another worker
 * could serve that connection earlier. The kernel bounds each channel, and so the number of
 * connections that wait for a worker that hangs.
 *
 * A worker may have been taken over. It holds its end of the channel and its eventfd, and can
 * change them for the master, too: shut the channel, or make the eventfd block. So the master never
 * reads an eventfd, and a successor gets a new channel.
 */
#include "server/dispatch.h"

#include "base/duration.h"
#include "log/error.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    EVENTS = 64,
    ACCEPTS = 64,        /* from one listener, before the master continues its loop */
    LAST_ACCEPTS = 4096, /* from one listener at the stop: its backlog */
    LISTENER = -1,       /* in place of a worker's index, in an event */
    WAKE = -2            /* and less: -2 - index */
};
#define PAUSE_NS (DURATION_SECOND / 10)

/* The tally and the eventfd belong to one worker: a worker shares nothing with other workers. */
struct slot {
    struct ipc_fdpass_channel channel;
    struct ipc_fdpass_tally *tally; /* shared with the worker */
    int wake_fd;     /* an eventfd: the worker was at its limit, and has space again */
    uint32_t number; /* of the last message */
    bool up;         /* a worker is there */
    bool full;       /* the channel is full, and watched */
    bool shut;       /* the worker has shut the channel; it gets no connection until it ends */
};

struct server_dispatch {
    int epoll_fd;
    int *listeners;
    const bool *tls; /* for each listener; NULL: none is for TLS */
    unsigned listener_count;
    unsigned workers;
    struct slot *slots;
    struct server_dispatch_candidate *candidates;
    unsigned next;  /* where the search for a worker begins */
    unsigned up;    /* workers that are up */
    bool listening; /* the listeners are watched */
    bool stopping;
    int held_fd; /* accepted and not passed yet; -1: none */
    struct ipc_fdpass_origin held;
    uint64_t again_ns; /* end of a pause; 0: no pause */
};

/* ---- what is watched ---- */

/* Every descriptor is added to the set in advance: a later change of its events cannot fail. */
static int change_watch(const struct server_dispatch *d, int how, int fd, int whose,
                        uint32_t events)
{
    struct epoll_event event = { .events = events,
                                 .data.u64 = (uint64_t)(uint32_t)whose << 32 | (uint32_t)fd };
    return epoll_ctl(d->epoll_fd, how, fd, &event) < 0 ? -errno : 0;
}

static int watch_listeners(const struct server_dispatch *d, int how, uint32_t events)
{
    int rc = 0;
    for (unsigned i = 0; i < d->listener_count && rc == 0; i++)
        rc = change_watch(d, how, d->listeners[i], LISTENER, events);
    return rc;
}

/* Watches the listeners exactly when an accepted connection could be passed. */
static void update_listening(struct server_dispatch *d)
{
    bool listening = !d->stopping && d->listener_count > 0 && d->up > 0 && d->held_fd < 0 &&
                     d->again_ns == 0;
    if (listening == d->listening)
        return;
    int rc = watch_listeners(d, EPOLL_CTL_MOD, listening ? EPOLLIN : 0);
    CHECK(rc == 0);
    d->listening = listening;
}

/* One-shot: the set reports once that the channel has space. */
static void mark_full(struct server_dispatch *d, unsigned index)
{
    struct slot *slot = &d->slots[index];
    int rc = change_watch(d, EPOLL_CTL_MOD, slot->channel.sending_fd, (int)index,
                          EPOLLOUT | EPOLLONESHOT);
    CHECK(rc == 0);
    slot->full = true;
}

/* ---- making and ending ---- */

/* On failure the caller closes the channel. */
static int open_channel(const struct server_dispatch *d, unsigned index,
                        struct ipc_fdpass_channel *ret_channel)
{
    int rc = ipc_fdpass_open(ret_channel);
    return rc < 0
               ? rc
               : change_watch(d, EPOLL_CTL_ADD, ret_channel->sending_fd, (int)index, EPOLLONESHOT);
}

static int open_slot(const struct server_dispatch *d, unsigned index)
{
    struct slot *slot = &d->slots[index];
    void *page =
        mmap(NULL, sizeof(*slot->tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return -errno;
    slot->tally = page;
    slot->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (slot->wake_fd < 0)
        return -errno;
    int rc = change_watch(d, EPOLL_CTL_ADD, slot->wake_fd, WAKE - (int)index, EPOLLIN | EPOLLET);
    return rc < 0 ? rc : open_channel(d, index, &slot->channel);
}

static int open_dispatch(struct server_dispatch *d)
{
    d->slots = calloc(d->workers, sizeof(*d->slots));
    d->candidates = calloc(d->workers, sizeof(*d->candidates));
    if (!d->slots || !d->candidates)
        return -ENOMEM;
    for (unsigned i = 0; i < d->workers; i++)
        d->slots[i] = (struct slot){ .channel = { -1, -1 }, .wake_fd = -1 };
    d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    int rc = d->epoll_fd < 0 ? -errno : 0;
    for (unsigned i = 0; i < d->workers && rc == 0; i++)
        rc = open_slot(d, i);
    return rc;
}

int server_dispatch_new(unsigned workers, struct server_dispatch **ret_dispatch)
{
    struct server_dispatch *d = malloc(sizeof(*d));
    if (!d)
        return -ENOMEM;
    *d = (struct server_dispatch){
        .epoll_fd = -1,
        .workers = workers,
        .held_fd = -1,
    };
    int rc = open_dispatch(d);
    if (rc < 0) {
        server_dispatch_free(d);
        return rc;
    }
    *ret_dispatch = d;
    return 0;
}

static void close_slot(struct slot *slot)
{
    ipc_fdpass_close(&slot->channel);
    os_file_close(slot->wake_fd);
    if (slot->tally)
        (void)munmap(slot->tally, sizeof(*slot->tally));
}

void server_dispatch_free(struct server_dispatch *dispatch)
{
    struct server_dispatch *d = dispatch;
    if (!d)
        return;
    os_file_close(d->held_fd);
    os_file_close(d->epoll_fd);
    for (unsigned i = 0; d->slots && i < d->workers; i++)
        close_slot(&d->slots[i]);
    free(d->listeners);
    free(d->slots);
    free(d->candidates);
    free(d);
}

struct ipc_fdpass_receiver server_dispatch_keep(struct server_dispatch *dispatch, unsigned index)
{
    struct slot *slot = &dispatch->slots[index];
    struct ipc_fdpass_receiver receiver = { .fd = slot->channel.receiving_fd,
                                            .tally = slot->tally,
                                            .wake_fd = slot->wake_fd };
    slot->channel.receiving_fd = slot->wake_fd = -1;
    slot->tally = NULL;
    server_dispatch_free(dispatch);
    return receiver;
}

/* ---- passing connections ---- */

int server_dispatch_choose(const struct server_dispatch_candidate *workers, unsigned count,
                           unsigned from)
{
    int chosen = -1;
    for (unsigned i = 0; i < count; i++) {
        unsigned index = (from + i) % count;
        const struct server_dispatch_candidate *worker = &workers[index];
        if (worker->takes && (chosen < 0 || worker->load < workers[chosen].load))
            chosen = (int)index;
    }
    return chosen;
}

/* The worker for the next connection; -1: none takes any. While no worker is up, the connection
 * that is held, and those taken at a stop, go to the channels of workers to come. */
static int find_worker(struct server_dispatch *d)
{
    for (unsigned i = 0; i < d->workers; i++) {
        const struct slot *slot = &d->slots[i];
        uint32_t most = atomic_load(&slot->tally->most);
        uint32_t load = ipc_fdpass_load(slot->tally, slot->number);
        d->candidates[i] = (struct server_dispatch_candidate){
            .load = load,
            .takes = !slot->full && !slot->shut && (slot->up || d->up == 0) &&
                     (most == 0 || load < most),
        };
    }
    return server_dispatch_choose(d->candidates, d->workers, d->next);
}

/* The same, but if no worker takes any, the workers have to report the next connection that
 * ends. The second search sees a connection that ended before the request. */
static int find_worker_or_ask(struct server_dispatch *d)
{
    int index = find_worker(d);
    if (index >= 0)
        return index;
    for (unsigned i = 0; i < d->workers; i++)
        atomic_store(&d->slots[i].tally->notify, true);
    return find_worker(d);
}

/* Passes the held connection. If no worker takes it, it stays held until a channel has space or a
 * pause is over. */
static void pass_connection(struct server_dispatch *d)
{
    static struct log_error_limit limit;
    int index;
    while (d->held_fd >= 0 && (index = find_worker_or_ask(d)) >= 0) {
        struct slot *slot = &d->slots[index];
        int rc = ipc_fdpass_send(&slot->channel, d->held_fd, &d->held, slot->number + 1);
        if (rc == -EAGAIN) {
            mark_full(d, (unsigned)index);
        } else if (rc == -EPIPE) {
            slot->shut = true;
            log_error(LOG_ERROR, "a worker has shut the channel for its connections; it gets no "
                                 "more, and may have been taken over");
        } else if (rc < 0) {
            log_error_limited(&limit, 10, LOG_ERROR, "cannot pass a connection to a worker: %s",
                              strerror(-rc));
            d->again_ns = os_clock_now_ns() + PAUSE_NS;
            return;
        } else {
            os_file_close(d->held_fd);
            d->held_fd = -1;
            slot->number++;
            d->next = (unsigned)index + 1;
        }
    }
}

static bool is_for_tls(const struct server_dispatch *d, int listener_fd)
{
    for (unsigned i = 0; d->tls && i < d->listener_count; i++)
        if (d->listeners[i] == listener_fd)
            return d->tls[i];
    return false;
}

static void accept_connections(struct server_dispatch *d, int listener_fd, unsigned most)
{
    static struct log_error_limit limit;
    for (unsigned i = 0; i < most && d->held_fd < 0; i++) {
        int fd = os_socket_accept(listener_fd, &d->held.peer);
        if (fd == -EAGAIN)
            return;
        if (fd < 0) {
            log_error_limited(&limit, 10, LOG_ERROR, "cannot accept connections: %s",
                              strerror(-fd));
            d->again_ns = os_clock_now_ns() + PAUSE_NS;
            return;
        }
        d->held_fd = fd;
        d->held.tls = is_for_tls(d, listener_fd);
        pass_connection(d);
    }
}

static void end_channels(const struct server_dispatch *d)
{
    for (unsigned i = 0; i < d->workers; i++)
        ipc_fdpass_end(&d->slots[i].channel);
}

/* Follows each event after which a worker may take a connection. Such events are those of the set,
 * the end of a pause, and the end or the start of a worker. Without it the held connection would
 * wait on, and no other would be accepted. */
static void continue_passing(struct server_dispatch *d)
{
    if (d->again_ns == 0)
        pass_connection(d);
    if (d->stopping && d->held_fd < 0)
        end_channels(d);
    update_listening(d);
}

/* ---- what the master calls ---- */

void server_dispatch_up(struct server_dispatch *dispatch, unsigned index)
{
    dispatch->slots[index].up = true;
    dispatch->up++;
    continue_passing(dispatch);
}

/* What the last worker did to its end of the channel ends with it. */
static void renew_channel(struct server_dispatch *d, unsigned index)
{
    struct slot *slot = &d->slots[index];
    struct ipc_fdpass_channel fresh;
    int rc = open_channel(d, index, &fresh);
    if (rc < 0) {
        log_error(LOG_ERROR, "a worker gets the channel of its predecessor: %s", strerror(-rc));
        ipc_fdpass_close(&fresh);
        return;
    }
    ipc_fdpass_move(&slot->channel, &fresh);
    if (d->stopping && d->held_fd < 0)
        ipc_fdpass_end(&fresh);
    (void)change_watch(d, EPOLL_CTL_DEL, slot->channel.sending_fd, 0, 0); /* it was added */
    ipc_fdpass_close(&slot->channel);
    slot->channel = fresh;
    slot->full = slot->shut = false;
}

void server_dispatch_down(struct server_dispatch *dispatch, unsigned index)
{
    struct slot *slot = &dispatch->slots[index];
    slot->up = false;
    dispatch->up--;
    ipc_fdpass_receiver_died(&slot->channel, slot->tally, slot->number);
    renew_channel(dispatch, index);
    continue_passing(dispatch);
}

int server_dispatch_begin(struct server_dispatch *dispatch, int *listeners, const bool *tls,
                          size_t count)
{
    dispatch->listeners = listeners;
    dispatch->tls = tls;
    dispatch->listener_count = (unsigned)count;
    int rc = watch_listeners(dispatch, EPOLL_CTL_ADD, 0);
    if (rc == 0)
        update_listening(dispatch);
    return rc;
}

int server_dispatch_fd(const struct server_dispatch *dispatch)
{
    return dispatch->epoll_fd;
}

uint64_t server_dispatch_due_ns(const struct server_dispatch *dispatch)
{
    return dispatch->again_ns ? dispatch->again_ns : UINT64_MAX;
}

void server_dispatch_act(struct server_dispatch *dispatch)
{
    struct server_dispatch *d = dispatch;
    if (os_clock_now_ns() >= d->again_ns)
        d->again_ns = 0;
    struct epoll_event events[EVENTS];
    int count = epoll_wait(d->epoll_fd, events, EVENTS, 0);
    for (int i = 0; i < count; i++) {
        int whose = (int)(events[i].data.u64 >> 32);
        if (whose == LISTENER)
            accept_connections(d, (int)(uint32_t)events[i].data.u64, ACCEPTS);
        else if (whose >= 0)
            d->slots[whose].full = false;
    }
    continue_passing(d); /* also after a wake: it reads the new loads */
}

void server_dispatch_stop(struct server_dispatch *dispatch, bool last)
{
    struct server_dispatch *d = dispatch;
    for (unsigned i = 0; i < d->listener_count && last; i++)
        accept_connections(d, d->listeners[i], LAST_ACCEPTS);
    (void)watch_listeners(d, EPOLL_CTL_DEL, 0); /* they were in the set, and are open */
    d->listener_count = 0;
    d->listening = false;
    d->stopping = true;
    if (d->held_fd < 0)
        end_channels(d);
}

bool server_dispatch_waits(const struct server_dispatch *dispatch, unsigned index)
{
    return ipc_fdpass_waits(&dispatch->slots[index].channel);
}
