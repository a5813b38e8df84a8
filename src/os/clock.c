/* SPDX-License-Identifier: MIT
 *
 * Thin wrappers over clock_gettime. The vDSO answers all of these ids without a system call, except
 * that of CPU time. No time is cached here: a caller that needs one time for a whole loop reads it
 * once.
 */
#include "os/clock.h"

#include "base/check.h"
#include "base/duration.h"

#include <time.h>

static struct timespec read_clock(clockid_t id)
{
    struct timespec now;
    CHECK(clock_gettime(id, &now) == 0); /* fails only for an unknown id or a bad pointer */
    return now;
}

uint64_t os_clock_now_ns(void)
{
    const struct timespec now = read_clock(CLOCK_MONOTONIC);
    const uint64_t now_ns = (uint64_t)now.tv_sec * DURATION_SECOND + (uint64_t)now.tv_nsec;
    return now_ns > 0 ? now_ns : 1; /* 0 means "never" in fields that hold a time */
}

uint64_t os_clock_thread_ns(void)
{
    const struct timespec used = read_clock(CLOCK_THREAD_CPUTIME_ID);
    return (uint64_t)used.tv_sec * DURATION_SECOND + (uint64_t)used.tv_nsec;
}

int os_clock_wait_from_ms(uint64_t due_ns, uint64_t now_ns)
{
    enum { DAY_MS = 24 * 3600 * 1000 };
    if (due_ns == UINT64_MAX)
        return -1;
    if (due_ns <= now_ns)
        return 0;
    const uint64_t wait_ms = (due_ns - now_ns) / DURATION_MS + 1;
    return wait_ms < DAY_MS ? (int)wait_ms : DAY_MS;
}

int os_clock_wait_ms(uint64_t due_ns)
{
    return os_clock_wait_from_ms(due_ns, os_clock_now_ns());
}

int64_t os_clock_wall_s(void)
{
    return read_clock(CLOCK_REALTIME_COARSE).tv_sec;
}

int64_t os_clock_wall_ms(void)
{
    const struct timespec now = read_clock(CLOCK_REALTIME);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t os_clock_wall_ns(void)
{
    const struct timespec now = read_clock(CLOCK_REALTIME);
    return (int64_t)now.tv_sec * (int64_t)DURATION_SECOND + now.tv_nsec;
}
