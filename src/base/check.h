/* SPDX-License-Identifier: MIT
 *
 * CHECK is for faults of our own, and is always on. A broken invariant stops the process before
 * it serves something wrong. An error of the system is a return code, and bad input from a peer
 * is a status. Neither ever reaches a CHECK.
 */
#pragma once

/* Writes one line with the place and the condition to standard error, then aborts. */
_Noreturn void check_failed(const char *condition, const char *file, int line);

#define CHECK(condition) \
    do { \
        if (__builtin_expect(!(condition), 0)) \
            check_failed(#condition, __FILE__, __LINE__); \
    } while (0)

/* A condition that the compiler checks. The keyword of C17 has an underscore. */
#ifndef static_assert
#define static_assert _Static_assert
#endif

/* The result says whether the call succeeded. The compiler warns if it is ignored. */
#define MUST_USE __attribute__((warn_unused_result))

/* The alignment of data that one thread writes and others read. */
#define CACHE_LINE 64
