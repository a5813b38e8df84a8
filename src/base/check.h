/* SPDX-License-Identifier: MIT
 *
 * CHECK is for our own bugs, and is always on: a broken invariant stops the
 * process rather than serve something wrong. What the world does is a return
 * code and what the peer sends is a status; neither ever reaches a CHECK.
 */
#pragma once

/* Writes one line with the place and the condition to standard error, then aborts. */
_Noreturn void check_failed(const char *condition, const char *file, int line);

#define CHECK(condition) \
    do { \
        if (__builtin_expect(!(condition), 0)) \
            check_failed(#condition, __FILE__, __LINE__); \
    } while (0)

/* A condition the compiler checks; C17 has it as a keyword with an underscore. */
#ifndef static_assert
#define static_assert _Static_assert
#endif

/* The result says whether it worked; the compiler insists that somebody looks. */
#define MUST_USE __attribute__((warn_unused_result))

/* Set beside data that is known to be written by one thread and read by others. */
#define CACHE_LINE 64
