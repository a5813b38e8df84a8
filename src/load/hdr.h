/* SPDX-License-Identifier: MIT
 *
 * Durations in HdrHistogram's compressed V2 encoding, in base64: 3 digits, 1 ns to 1 h. The Java,
 * Python and other libraries of HdrHistogram read and add it. Each of their counters is one of our
 * buckets, so no conversion loses anything.
 */
#pragma once

#include "base/span.h"
#include "load/result.h"

/* Gives the text, ended by a NUL; NULL: out of memory. */
MUST_USE char *load_hdr_encode(const struct load_durations *durations);

/* The same for the LOAD_SECOND_BUCKETS buckets of one second: 2 digits. */
MUST_USE char *load_hdr_encode_second(const uint64_t *bucket);

/* Adds the counters in `text` to `durations`. Sums, least and most follow from the buckets, to the
 * width of a bucket. 0; -EINVAL: another encoding, range or precision, and nothing is added;
 * -ENOMEM. */
MUST_USE int load_hdr_decode(struct span text, struct load_durations *durations);

/* The same for the buckets of one second. */
MUST_USE int load_hdr_decode_second(struct span text, uint64_t *bucket);
