/* SPDX-License-Identifier: MIT
 *
 * Numbers for people, in few columns: 12,345 and 1.23 ms and 45.6 MiB.
 */
#pragma once

#include <stdint.h>

struct top_text {
    char text[32];
};

/* 12,345,678 */
struct top_text top_format_count(uint64_t count);

/* A rate per second: 0, 0.25, 12.3, 12,345. NAN: -. */
struct top_text top_format_rate(double rate);

/* 0 B, 12.3 KiB, 456 MiB. NAN: -. */
struct top_text top_format_bytes(double bytes);

/* 12.3 us, 1.23 ms, 45.6 s. 0 means no duration: -. */
struct top_text top_format_duration(uint64_t ns);

/* An age or an interval: 0.1 s, 59 s, 12 min, 3 h 05 min, 12 d 4 h. */
struct top_text top_format_span(uint64_t ns);

/* `part` of `whole`: 99.8 %. A `whole` of 0: -. */
struct top_text top_format_share(double part, double whole);
