/* SPDX-License-Identifier: MIT
 *
 * Another thread ends a blocked call by shutdown(2). Unlike a signal, a shutdown lasts: it cannot
 * arrive too early, between the decision to wait and the wait. Input that arrived before is still
 * read and answered.
 */
#include "model/pump.h"

#include "base/duration.h"
#include "model/transfer.h"
#include "os/clock.h"
#include "os/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define SLACK_NS UINT64_C(125000000) /* a wait may end this much late */

enum { SEND_WAITS = 4 }; /* a blocked send reads the clock this often within its deadline */

int model_pump_open_drain(void)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

/* No pump reads the descriptor, so it stays readable for those that wait later. */
void model_pump_report_drain(int drain_fd)
{
    const uint64_t one = 1;
    (void)!write(drain_fd, &one, sizeof(one)); /* fails only when the count is at its limit */
}

void model_pump_init(struct model_pump *pump, int fd, int drain_fd, uint64_t drain_idle_ns,
                     uint64_t now_ns)
{
    *pump = (struct model_pump){
        .fd = fd,
        .drain_fd = drain_fd,
        .drain_idle_ns = drain_idle_ns,
        .receive_timeout_ns = UINT64_MAX,
    };
    atomic_init(&pump->own_idle_since_ns, now_ns);
    pump->idle_since_ns = &pump->own_idle_since_ns;
}

bool model_pump_end_idle(struct model_pump *pump)
{
    const bool idle = atomic_load(pump->idle_since_ns) != MODEL_IDLE_NEVER;
    if (idle)
        (void)shutdown(pump->fd, SHUT_RD); /* fails only when the peer is gone */
    return idle;
}

bool model_pump_end(struct model_pump *pump)
{
    (void)shutdown(pump->fd, SHUT_RDWR); /* likewise */
    return true;
}

/* ---- time ---- */

static void read_pump_clock(struct model_pump *p)
{
    p->now_ns = os_clock_now_ns();
    session_thread_tick(p->session.thread, p->now_ns, os_clock_wall_s());
}

static bool set_timeout(const struct model_pump *p, int option, uint64_t timeout_ns)
{
    uint64_t ms = timeout_ns / DURATION_MS + 1; /* 0 would mean no timeout */
    struct timeval time = { .tv_sec = (time_t)(ms / 1000),
                            .tv_usec = (suseconds_t)(ms % 1000 * 1000) };
    return setsockopt(p->fd, SOL_SOCKET, option, &time, sizeof(time)) == 0;
}

static bool make_blocking(struct model_pump *p)
{
    if (p->blocking)
        return true;
    p->blocking = true;
    uint64_t send_ns = p->session.thread->shared->send_timeout_ns / SEND_WAITS;
    return fcntl(p->fd, F_SETFL, O_RDWR) == 0 && set_timeout(p, SO_SNDTIMEO, send_ns);
}

static bool is_draining(const struct model_pump *p)
{
    return atomic_load(&p->session.thread->shared->draining);
}

static uint64_t sooner_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The time at which waiting for input ends. */
static uint64_t wait_until_ns(struct model_pump *p)
{
    uint64_t due =
        sooner_of(session_deadline_ns(&p->session), session_thread_due_ns(p->session.thread));
    if (__builtin_expect(is_draining(p), 0) && session_idle(&p->session)) {
        if (p->leave_ns == 0)
            p->leave_ns = p->now_ns + p->drain_idle_ns;
        due = sooner_of(due, p->leave_ns);
    }
    return due;
}

/* Makes recv return in time. */
static bool limit_wait(struct model_pump *p)
{
    uint64_t due = wait_until_ns(p);
    uint64_t wait_ns = due > p->now_ns ? due - p->now_ns : 0;
    if (__builtin_expect(p->receive_timeout_ns <= wait_ns + SLACK_NS, 1))
        return true;
    p->receive_timeout_ns = wait_ns;
    return set_timeout(p, SO_RCVTIMEO, wait_ns);
}

/* A drain has begun. Returns what the session wants then; 0: nothing has changed. */
static unsigned begin_drain(struct model_pump *p)
{
    if (__builtin_expect(!is_draining(p), 1) || p->drained)
        return 0;
    p->drained = true;
    return session_drain(&p->session, p->now_ns);
}

/* A wait has ended without input. */
static unsigned act_on_time(struct model_pump *p)
{
    const unsigned want = begin_drain(p);
    if (want != 0)
        return want;
    if (p->leave_ns != 0 && p->now_ns >= p->leave_ns && session_idle(&p->session))
        return SESSION_CLOSE;
    if (p->now_ns >= session_deadline_ns(&p->session))
        return model_transfer_expire(&p->session, p->fd, p->now_ns);
    p->receive_timeout_ns = UINT64_MAX; /* it was too short for the next deadline */
    return SESSION_READ;
}

/* ---- moving bytes ---- */

/* Bytes, 0 at the end of input, or -errno. */
static ssize_t receive_at_once(struct model_pump *p, char *input, size_t room)
{
    ssize_t len = recv(p->fd, input, room, MSG_DONTWAIT);
    return len < 0 ? -errno : len;
}

/* Before it waits, and before it reads whether a drain has begun. */
static void publish_idle(struct model_pump *p)
{
    atomic_store(p->idle_since_ns, session_idle_since_ns(&p->session));
}

/* Whether a drain must end the wait: a receive that blocks would not notice it. */
static bool awaits_drain(const struct model_pump *p)
{
    return __builtin_expect(session_announces_end(&p->session), 0) && !p->drained;
}

/* Waits for events of the socket, and for a drain. Returns the events. */
static int poll_socket(struct model_pump *p, short events)
{
    struct pollfd waits[] = { { .fd = p->fd, .events = events },
                              { .fd = p->drain_fd, .events = POLLIN } };
    const int timeout_ms = os_clock_wait_from_ms(wait_until_ns(p), p->now_ns);
    session_thread_rest(p->session.thread);
    const int count = poll(waits, awaits_drain(p) ? 2 : 1, timeout_ms);
    session_thread_resume(p->session.thread);
    read_pump_clock(p);
    return count > 0 ? waits[0].revents : 0;
}

static ssize_t receive_waiting(struct model_pump *p, char *input, size_t room)
{
    publish_idle(p);
    const bool polls = awaits_drain(p);
    if (!make_blocking(p) || (!polls && !limit_wait(p)))
        return -errno;
    if (polls)
        return poll_socket(p, POLLIN) != 0 ? receive_at_once(p, input, room) : -EAGAIN;
    session_thread_rest(p->session.thread);
    ssize_t len = recv(p->fd, input, room, 0);
    if (len < 0)
        len = -errno;
    session_thread_resume(p->session.thread);
    read_pump_clock(p);
    return len;
}

/* `len` is the result of a receive that has not just found nothing. */
static unsigned feed_received(struct model_pump *p, const char *input, ssize_t len)
{
    if (__builtin_expect(len >= 0, 1)) {
        atomic_store_explicit(p->idle_since_ns, MODEL_IDLE_NEVER, memory_order_relaxed);
        const unsigned want = session_feed(&p->session, span_of(input, (size_t)len), p->now_ns);
        return model_transfer_limit(&p->session, p->fd, want, p->now_ns);
    }
    session_failed(&p->session, (int)-len);
    return SESSION_CLOSE;
}

static unsigned receive_and_feed(struct model_pump *p, char *input)
{
    size_t room = session_room(&p->session);
    ssize_t len = p->blocking ? -EAGAIN : receive_at_once(p, input, room);
    if (len == -EAGAIN)
        len = receive_waiting(p, input, room);
    else
        read_pump_clock(p); /* the thread may have been preempted since it began */
    if (__builtin_expect(len == -EAGAIN || len == -EINTR, 0))
        return act_on_time(p);
    return feed_received(p, input, len);
}

static ssize_t send_at_once(struct model_pump *p, const struct session_out *out)
{
    ssize_t sent = model_transfer_some(p->fd, out, MSG_DONTWAIT, &p->stuck);
    if (__builtin_expect(p->stuck, 0)) {
        session_hold(&p->session); /* reading the clock releases the entry */
        read_pump_clock(p);
    }
    return sent;
}

/* A send that may wait lets other threads reclaim entries meanwhile. */
static ssize_t send_waiting(struct model_pump *p, const struct session_out *out)
{
    bool full;
    session_hold(&p->session);
    session_thread_rest(p->session.thread);
    ssize_t sent = model_transfer_some(p->fd, out, 0, &full);
    if (sent > 0)
        os_socket_lift_unsent(p->fd); /* the socket was full, and the client has read since */
    session_thread_resume(p->session.thread);
    read_pump_clock(p);
    return sent;
}

/* The socket is full, and the session wants input as well. Waits for what comes first, and takes
 * the input. A send or a receive that blocks would wait for one of the two only. */
static unsigned wait_for_either(struct model_pump *p, char *input, unsigned want)
{
    size_t room = session_room(&p->session);
    publish_idle(p);
    session_hold(&p->session);
    const int found = poll_socket(p, room > 0 ? POLLIN | POLLOUT : POLLOUT);
    bool readable = room > 0 && (found & ~POLLOUT) != 0;
    p->stuck = (found & ~POLLIN) == 0;
    ssize_t len = readable ? receive_at_once(p, input, room) : -EAGAIN;
    if (len != -EAGAIN && len != -EINTR)
        return feed_received(p, input, len);
    if (p->now_ns >= session_deadline_ns(&p->session))
        return model_transfer_expire(&p->session, p->fd, p->now_ns);
    const unsigned drained = begin_drain(p);
    return drained != 0 ? drained : want;
}

static unsigned send_pending(struct model_pump *p, char *input, unsigned want)
{
    if (__builtin_expect(p->stuck, 0) && want & SESSION_READ)
        return wait_for_either(p, input, want);
    struct session_out out = session_output(&p->session);
    bool file_blocks = p->blocking && out.count == 0;
    if (p->stuck && !make_blocking(p))
        return SESSION_CLOSE;
    ssize_t sent = p->stuck || file_blocks ? send_waiting(p, &out) : send_at_once(p, &out);
    if (sent == -ENODATA)
        return session_cut(&p->session);
    if (sent < 0) {
        session_failed(&p->session, (int)-sent);
        return SESSION_CLOSE;
    }
    if (session_thread_is_timed(p->session.thread))
        p->session.thread->now_ns = p->now_ns = os_clock_now_ns(); /* response times end here */
    want = session_sent(&p->session, (size_t)sent, p->now_ns);
    if (!(want & SESSION_WRITE))
        p->stuck = false;
    else if (p->now_ns >= session_deadline_ns(&p->session))
        want = model_transfer_expire(&p->session, p->fd, p->now_ns);
    return want;
}

void model_pump_serve(struct model_pump *p, struct session_thread *thread,
                      struct session_origin origin, char *input)
{
    p->now_ns = os_clock_now_ns();
    session_thread_tick(thread, p->now_ns, os_clock_wall_s());
    session_open(&p->session, thread, origin, p->now_ns);
    unsigned want = SESSION_READ;
    while (want != SESSION_CLOSE) {
        if (want & SESSION_WRITE) {
            want = send_pending(p, input, want);
            continue;
        }
        if (want == SESSION_HALF_CLOSE)
            (void)shutdown(p->fd, SHUT_WR); /* fails only when the peer is gone */
        want = receive_and_feed(p, input);
    }
    session_close(&p->session);
}
