/* SPDX-License-Identifier: MIT
 *
 * Finding the first byte of a class in a run of bytes, 16 at a time on machines with SSE2. Each
 * routine has a scalar twin (`scan_*_scalar`), which is the definition. A property test proves the
 * two equal. No routine reads a byte outside [at, at + len).
 *
 * The routines are inline, because the runs are short and a call costs as much as a step.
 */
#pragma once

#include "base/span.h"

/* Each returns the index of the first byte that is in the class, or `len`. */

/* A byte that a field value cannot contain: controls other than HTAB, and DEL
 * (RFC 9110 section 5.5). CR and LF are such bytes, so this finds a line's end. */
static inline size_t scan_field_value_end(const char *at, size_t len);
size_t scan_field_value_end_scalar(const char *at, size_t len);

/* A byte that a request target cannot contain: anything at or below SP, and DEL. Bytes above DEL
 * should be percent-encoded (RFC 9112 section 3.2). They are accepted, because people type them
 * and they cannot be mistaken for framing. */
static inline size_t scan_target_end(const char *at, size_t len);
size_t scan_target_end_scalar(const char *at, size_t len);

/* A byte that is not an ASCII letter, digit or `-`: where nearly every field name ends. */
static inline size_t scan_plain_name_end(const char *at, size_t len);
size_t scan_plain_name_end_scalar(const char *at, size_t len);

/* A byte that a log line must escape: `"`, `\`, below SP, and at or above DEL. */
static inline size_t scan_log_unsafe(const char *at, size_t len);
size_t scan_log_unsafe_scalar(const char *at, size_t len);

/* A byte that makes a path need decoding or normalisation: `%`, `?`, `#`, NUL,
 * or a `/` followed by `/` or `.`. (The last byte being `/` is fine.) */
static inline size_t scan_path_special(const char *at, size_t len);
size_t scan_path_special_scalar(const char *at, size_t len);

#ifdef __SSE2__

#include <emmintrin.h>
#include <stdint.h>

#define SCAN_INLINE static inline __attribute__((always_inline))

/* The bytes of `v` from `low` to `high`, as 0xff. */
SCAN_INLINE __m128i scan_between(__m128i v, char low, char high)
{
    __m128i from_low = _mm_sub_epi8(v, _mm_set1_epi8(low));

    return _mm_cmpeq_epi8(_mm_min_epu8(from_low, _mm_set1_epi8((char)(high - low))), from_low);
}

SCAN_INLINE __m128i scan_is(__m128i v, char c)
{
    return _mm_cmpeq_epi8(v, _mm_set1_epi8(c));
}

/* Each gives 0xff for the bytes that are in its class. */

SCAN_INLINE __m128i scan_class_field_value(__m128i v)
{
    __m128i control = _mm_andnot_si128(scan_is(v, '\t'), scan_between(v, 0, 0x1f));

    return _mm_or_si128(control, scan_is(v, 0x7f));
}

SCAN_INLINE __m128i scan_class_target(__m128i v)
{
    return _mm_or_si128(scan_between(v, 0, ' '), scan_is(v, 0x7f));
}

SCAN_INLINE __m128i scan_class_plain_name(__m128i v)
{
    __m128i letter = scan_between(_mm_or_si128(v, _mm_set1_epi8(0x20)), 'a', 'z');
    __m128i rest = _mm_or_si128(scan_between(v, '0', '9'), scan_is(v, '-'));

    return _mm_cmpeq_epi8(_mm_or_si128(letter, rest), _mm_setzero_si128());
}

SCAN_INLINE __m128i scan_class_log(__m128i v)
{
    /* Signed: bytes from 0x80 on are below SP as well. */
    __m128i outside = _mm_or_si128(_mm_cmplt_epi8(v, _mm_set1_epi8(' ')), scan_is(v, 0x7f));

    return _mm_or_si128(outside, _mm_or_si128(scan_is(v, '"'), scan_is(v, '\\')));
}

SCAN_INLINE __m128i scan_class_path(__m128i v)
{
    return _mm_or_si128(_mm_or_si128(scan_is(v, '%'), scan_is(v, '?')),
                        _mm_or_si128(scan_is(v, '#'), scan_is(v, 0)));
}

/* A '/' in `v` whose neighbour in `next` is '/' or '.'. */
SCAN_INLINE __m128i scan_class_path_pair(__m128i v, __m128i next)
{
    return _mm_and_si128(scan_is(v, '/'), _mm_or_si128(scan_is(next, '/'), scan_is(next, '.')));
}

SCAN_INLINE __m128i scan_load(const char *at)
{
    return _mm_loadu_si128((const __m128i *)at);
}

/* 4 to 15 bytes in one register: the first half-word (8 bytes, or 4 when there
 * are fewer than 8), then the last one, which may overlap it. */
SCAN_INLINE __m128i scan_load_short(const char *at, size_t len)
{
    if (len >= 8)
        return _mm_unpacklo_epi64(_mm_loadl_epi64((const __m128i *)at),
                                  _mm_loadl_epi64((const __m128i *)(at + len - 8)));
    int32_t first, last;
    memcpy(&first, at, 4);
    memcpy(&last, at + len - 4, 4);
    return _mm_unpacklo_epi32(_mm_cvtsi32_si128(first), _mm_cvtsi32_si128(last));
}

/* The index that the lowest bit of `mask`, made from scan_load_short, stands for. */
SCAN_INLINE size_t scan_short_index(unsigned mask, size_t len)
{
    size_t half = len >= 8 ? 8 : 4;

    mask &= (1u << (2 * half)) - 1;
    if (mask == 0)
        return len;
    size_t bit = (size_t)__builtin_ctz(mask);
    return bit < half ? bit : len - 2 * half + bit;
}

SCAN_INLINE size_t scan_for(__m128i (*in_class)(__m128i), const char *at, size_t len,
                            size_t (*scalar)(const char *, size_t))
{
    if (len < 16) {
        if (len < 4)
            return scalar(at, len);
        return scan_short_index((unsigned)_mm_movemask_epi8(in_class(scan_load_short(at, len))),
                                len);
    }
    for (size_t i = 0;; i += 16) {
        if (i > len - 16)
            i = len - 16; /* the last step overlaps the one before */
        unsigned mask = (unsigned)_mm_movemask_epi8(in_class(scan_load(at + i)));
        if (mask != 0)
            return i + (size_t)__builtin_ctz(mask);
        if (i == len - 16)
            return len;
    }
}

static inline size_t scan_field_value_end(const char *at, size_t len)
{
    return scan_for(scan_class_field_value, at, len, scan_field_value_end_scalar);
}

static inline size_t scan_target_end(const char *at, size_t len)
{
    return scan_for(scan_class_target, at, len, scan_target_end_scalar);
}

static inline size_t scan_plain_name_end(const char *at, size_t len)
{
    return scan_for(scan_class_plain_name, at, len, scan_plain_name_end_scalar);
}

static inline size_t scan_log_unsafe(const char *at, size_t len)
{
    return scan_for(scan_class_log, at, len, scan_log_unsafe_scalar);
}

static inline size_t scan_path_special(const char *at, size_t len)
{
    if (len < 16) {
        if (len < 4)
            return scan_path_special_scalar(at, len);
        __m128i v = scan_load_short(at, len);
        __m128i pair = scan_class_path_pair(v, _mm_srli_si128(v, 1));
        /* At the seam of the two halves the neighbour is wrong. The second half has the byte
         * again, beside its true neighbour. */
        unsigned seam = len >= 8 ? 1u << 7 : 1u << 3;
        unsigned mask = (unsigned)_mm_movemask_epi8(scan_class_path(v)) |
                        ((unsigned)_mm_movemask_epi8(pair) & ~seam);
        return scan_short_index(mask, len);
    }
    for (size_t i = 0;; i += 16) {
        if (i > len - 16)
            i = len - 16;
        __m128i v = scan_load(at + i);
        __m128i next = i == len - 16 ? _mm_srli_si128(v, 1) : scan_load(at + i + 1);
        unsigned mask = (unsigned)_mm_movemask_epi8(
            _mm_or_si128(scan_class_path(v), scan_class_path_pair(v, next)));
        if (mask != 0)
            return i + (size_t)__builtin_ctz(mask);
        if (i == len - 16)
            return len;
    }
}

#undef SCAN_INLINE

#else

static inline size_t scan_field_value_end(const char *at, size_t len)
{
    return scan_field_value_end_scalar(at, len);
}

static inline size_t scan_target_end(const char *at, size_t len)
{
    return scan_target_end_scalar(at, len);
}

static inline size_t scan_plain_name_end(const char *at, size_t len)
{
    return scan_plain_name_end_scalar(at, len);
}

static inline size_t scan_log_unsafe(const char *at, size_t len)
{
    return scan_log_unsafe_scalar(at, len);
}

static inline size_t scan_path_special(const char *at, size_t len)
{
    return scan_path_special_scalar(at, len);
}

#endif
