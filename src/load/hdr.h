/* SPDX-License-Identifier: MIT
 *
 * Durations as HdrHistogram's compressed V2 encoding in base64, which its Java, Python
 * and other libraries read and add: 3 digits, 1 ns to 1 h. Their counters are ours,
 * one for one, so nothing is lost on the way there or back.
 */
#pragma once

#include "base/span.h"
#include "load/result.h"

/* Gives the text, ended by a NUL; NULL: no memory. */
MUST_USE char *load_hdr_encode(const struct load_durations *durations);

/* The same of one second's buckets, LOAD_SECOND_BUCKETS of them: 2 digits. */
MUST_USE char *load_hdr_encode_second(const uint64_t *bucket);

/* Adds what `text` holds to `durations`, with sums as its buckets have them, least and most to the
 * width of a bucket. 0; -EINVAL: it is no such encoding, or of another range or precision, and
 * nothing is added; -ENOMEM. */
MUST_USE int load_hdr_decode(struct span text, struct load_durations *durations);

/* The same of one second's buckets. */
MUST_USE int load_hdr_decode_second(struct span text, uint64_t *bucket);
