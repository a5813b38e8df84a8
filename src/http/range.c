/* SPDX-License-Identifier: MIT
 *
 * Reading the Range field (RFC 9110 section 14). Ranges are merged while they are read, so that
 * they never add up to more than the file, however a client orders or repeats them. If-Range is
 * in precondition.h, and Content-Range in head.h.
 */
#include "http/range.h"

#include "base/check.h"
#include "http/list.h"

/* The ranges read so far, as offsets. No two overlap or touch. */
struct range_set {
    struct {
        uint64_t first;
        uint64_t end; /* one past the last byte */
    } part[HTTP_RANGES_READ_MAX];
    unsigned count;
};

enum range_kind {
    RANGE_MALFORMED,
    RANGE_INSIDE,  /* at least one byte is in the file */
    RANGE_OUTSIDE, /* well formed, and no byte is in the file */
    RANGE_OF_NONE, /* the last bytes of an empty file */
};

/* Reads digits, clamped at UINT64_MAX. No file is that large, so a clamped number has the same
 * effect. */
static bool read_position(struct span text, uint64_t *ret_value)
{
    if (text.len == 0)
        return false;
    uint64_t value = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
        unsigned digit = (unsigned)(text.at[i] - '0');
        if (value > (UINT64_MAX - digit) / 10)
            value = UINT64_MAX;
        else
            value = value * 10 + digit;
    }
    *ret_value = value;
    return true;
}

/* Reads one range-spec (RFC 9110 section 14.1.1), cut to the file. */
static enum range_kind read_range(struct span spec, uint64_t size, uint64_t *ret_first,
                                  uint64_t *ret_end)
{
    size_t dash = 0;
    while (dash < spec.len && spec.at[dash] != '-')
        dash++;
    if (dash == spec.len)
        return RANGE_MALFORMED;
    struct span before = span_first(spec, dash);
    struct span behind = span_skip(spec, dash + 1);

    uint64_t first = 0;
    uint64_t last = UINT64_MAX;
    if (before.len == 0) {
        uint64_t suffix_len = 0;
        if (!read_position(behind, &suffix_len))
            return RANGE_MALFORMED;
        if (suffix_len == 0)
            return RANGE_OUTSIDE;
        if (size == 0)
            return RANGE_OF_NONE;
        *ret_first = suffix_len < size ? size - suffix_len : 0;
        *ret_end = size;
        return RANGE_INSIDE;
    }
    if (!read_position(before, &first))
        return RANGE_MALFORMED;
    if (behind.len > 0 && !read_position(behind, &last))
        return RANGE_MALFORMED;
    if (last < first)
        return RANGE_MALFORMED;
    if (first >= size)
        return RANGE_OUTSIDE;
    *ret_first = first;
    *ret_end = last < size ? last + 1 : size;
    return RANGE_INSIDE;
}

/* Adds one range. It is merged with every range that it overlaps or touches, at the place of the
 * first of these. One pass is enough. If the merged range reached a further range, a range
 * inside it would already have been merged with that range. */
static void add_range(struct range_set *set, uint64_t first, uint64_t end)
{
    unsigned place = set->count;
    unsigned kept = 0;
    for (unsigned i = 0; i < set->count; i++) {
        bool reaches = first <= set->part[i].end && set->part[i].first <= end;
        if (!reaches) {
            set->part[kept++] = set->part[i];
            continue;
        }
        if (set->part[i].first < first)
            first = set->part[i].first;
        if (set->part[i].end > end)
            end = set->part[i].end;
        if (place == set->count)
            place = kept++;
    }
    if (place == set->count)
        place = kept++;
    set->count = kept;
    set->part[place].first = first;
    set->part[place].end = end;
}

/* Reads the list behind `bytes=`. */
static enum http_range_result read_set(struct span list, uint64_t size, struct range_set *set)
{
    bool of_none = false;
    unsigned read_count = 0;
    struct span spec;
    while (http_list_next(&list, &spec)) {
        uint64_t first = 0;
        uint64_t end = 0;
        if (++read_count > HTTP_RANGES_READ_MAX)
            return HTTP_RANGE_IGNORE;
        switch (read_range(spec, size, &first, &end)) {
        case RANGE_MALFORMED:
            return HTTP_RANGE_IGNORE;
        case RANGE_INSIDE:
            add_range(set, first, end);
            break;
        case RANGE_OUTSIDE:
            break;
        case RANGE_OF_NONE:
            of_none = true;
            break;
        }
    }
    if (read_count == 0 || set->count > HTTP_RANGES_MAX)
        return HTTP_RANGE_IGNORE;
    if (set->count > 0)
        return HTTP_RANGE_SATISFIABLE;
    return of_none ? HTTP_RANGE_IGNORE : HTTP_RANGE_UNSATISFIABLE;
}

enum http_range_result http_range_parse(struct span field, uint64_t size,
                                        struct http_ranges *ret_ranges)
{
    const struct span unit = SPAN("bytes=");
    if (field.len < unit.len || !span_equal_nocase(span_first(field, unit.len), unit))
        return HTTP_RANGE_IGNORE;

    struct range_set set;
    set.count = 0;
    enum http_range_result result = read_set(span_skip(field, unit.len), size, &set);
    if (result != HTTP_RANGE_SATISFIABLE)
        return result;

    CHECK(set.count <= HTTP_RANGES_MAX);
    ret_ranges->count = set.count;
    for (unsigned i = 0; i < set.count; i++) {
        ret_ranges->range[i].first = set.part[i].first;
        ret_ranges->range[i].len = set.part[i].end - set.part[i].first;
    }
    return result;
}
