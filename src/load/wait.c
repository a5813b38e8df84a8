/* SPDX-License-Identifier: MIT
 *
 * A thread sleeps until its next user is due, to the microsecond. With --spin it polls instead, so
 * that the server never spends time on waking it. A thread that polls is always busy. Its CPU time
 * without the polls that find nothing shows how near to its limit it is.
 */
#include "load/wait.h"

#include "base/duration.h"
#include "os/clock.h"

#include <errno.h>

static uint64_t next_wake_ns(const struct load_thread *thread)
{
    uint64_t next_ns = load_heap_next_ns(&thread->heap);
    next_ns = thread->edge_ns < next_ns ? thread->edge_ns : next_ns;
    next_ns = thread->sweep_ns < next_ns ? thread->sweep_ns : next_ns;
    if (thread->has_arrivals && thread->free_count > 0) {
        uint64_t due_ns = load_schedule_arrivals_due_ns(&thread->arrivals);
        next_ns = due_ns < next_ns ? due_ns : next_ns;
    }
    return next_ns;
}

/* Counts polls that find nothing, except the first one after work: it ends with that work. */
static void note_idle(struct load_thread *thread, uint64_t from_ns, bool idle)
{
    if (idle && thread->was_idle)
        thread->spun_ns += thread->now_ns - from_ns;
    thread->was_idle = idle;
}

int load_wait_for_events(struct load_thread *thread, struct epoll_event *events, int most)
{
    uint64_t now_ns = thread->now_ns, due_ns = thread->plan->spin ? now_ns : next_wake_ns(thread);
    uint64_t wait_ns = due_ns > now_ns ? due_ns - now_ns : 0;
    struct timespec limit = { (time_t)(wait_ns / DURATION_SECOND),
                              (long)(wait_ns % DURATION_SECOND) };
    int count =
        epoll_pwait2(thread->epoll_fd, events, most, due_ns == UINT64_MAX ? NULL : &limit, NULL);
    if (count < 0 && errno == ENOSYS) /* before Linux 5.11: accurate to the millisecond */
        count = epoll_wait(thread->epoll_fd, events, most, os_clock_wait_ms(due_ns));
    int error = count < 0 && errno != EINTR ? errno : 0;
    thread->now_ns = os_clock_now_ns();
    note_idle(thread, now_ns, thread->plan->spin && count == 0);
    return error != 0 ? -error : count > 0 ? count : 0;
}
