/* SPDX-License-Identifier: MIT
 *
 * The two clocks. Models read them once for each wake-up and pass the numbers
 * down; nothing below a model asks for the time.
 */
#pragma once

#include <stdint.h>

/* CLOCK_MONOTONIC: for deadlines and durations. Never 0. */
uint64_t os_clock_now_ns(void);

/* Milliseconds that poll may wait until `due_ns` (of os_clock_now_ns) and not less; 0 when it
 * has passed, -1 for UINT64_MAX: no matter. At most a day. */
int os_clock_wait_ms(uint64_t due_ns);

/* CLOCK_REALTIME_COARSE in seconds: for Date and the logs. Cheap, right to a tick. */
int64_t os_clock_wall_s(void);

/* CLOCK_REALTIME in milliseconds since 1970: for the error log, whose lines are
 * few and whose order matters. */
int64_t os_clock_wall_ms(void);

/* CLOCK_REALTIME in nanoseconds since 1970: for what several machines begin together. */
int64_t os_clock_wall_ns(void);
