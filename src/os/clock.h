/* SPDX-License-Identifier: MIT
 *
 * The two clocks. A model reads them once for each wake-up and passes the numbers
 * down; no layer below a model reads a clock.
 */
#pragma once

#include <stdint.h>

/* CLOCK_MONOTONIC: for deadlines and durations. Never 0. */
uint64_t os_clock_now_ns(void);

/* CLOCK_THREAD_CPUTIME_ID: the CPU time of the calling thread. A system call. */
uint64_t os_clock_thread_ns(void);

/* The timeout for poll until `due_ns` (of os_clock_now_ns), in milliseconds, rounded up. 0: it has
 * passed. -1: `due_ns` is UINT64_MAX, no timeout. At most a day. */
int os_clock_wait_ms(uint64_t due_ns);

/* The same at the time `now_ns`, without reading the clock. */
int os_clock_wait_from_ms(uint64_t due_ns, uint64_t now_ns);

/* CLOCK_REALTIME_COARSE in seconds: for Date and the logs. Cheap, exact to one
 * timer tick. */
int64_t os_clock_wall_s(void);

/* CLOCK_REALTIME in milliseconds since 1970: for the error log, where the order of
 * lines matters. */
int64_t os_clock_wall_ms(void);

/* CLOCK_REALTIME in nanoseconds since 1970: for a start on several machines at
 * the same time. */
int64_t os_clock_wall_ns(void);
