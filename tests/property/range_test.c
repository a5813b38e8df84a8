/* SPDX-License-Identifier: MIT
 *
 * Random Range fields compared with a bitmap of the requested bytes of a small file. The result
 * must be exactly the runs of requested bytes, each once, in the order in which the field first
 * touched them. Then the promises that hold for files of any size.
 */
#include "http/range.h"

#include "support/guard.h"
#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SIZE_MAX_MODEL = 96, ROUNDS = 20000, FIELD_SIZE = 8192, UNTOUCHED = 1000 };

static struct random_source rng;

/* The requested bytes, recorded while the field's text is written. */
struct model {
    unsigned size;
    unsigned touched_by[SIZE_MAX_MODEL]; /* index of the first range that has this byte */
    unsigned range_count;
    bool malformed;
    bool of_none; /* a suffix of an empty file */
    char text[FIELD_SIZE];
    size_t len;
};

__attribute__((format(printf, 2, 3))) static void append(struct model *m, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int len = vsnprintf(m->text + m->len, sizeof m->text - m->len, format, list);
    va_end(list);
    assert_in_range(len, 0, sizeof m->text - m->len - 1);
    m->len += (size_t)len;
}

static void touch(struct model *m, uint64_t first, uint64_t last)
{
    for (uint64_t at = first; at <= last && at < m->size; at++)
        if (m->touched_by[at] == UNTOUCHED)
            m->touched_by[at] = m->range_count;
}

static void append_range(struct model *m)
{
    static const char *const wrong[] = { "x", "-", "1", "5-2", "--1", "1-2-3", "+1-2", "1 -2" };
    unsigned kind = (unsigned)random_below(&rng, 200);
    unsigned a = (unsigned)random_below(&rng, m->size + 8);
    unsigned b = a + (unsigned)random_below(&rng, 6);

    if (kind == 0) {
        append(m, "%s", wrong[random_below(&rng, sizeof(wrong) / sizeof(wrong[0]))]);
        m->malformed = true;
    } else if (kind < 6) {
        append(m, "%u-", a);
        touch(m, a, m->size);
    } else if (kind < 12) {
        append(m, "-%u", b);
        m->of_none |= m->size == 0 && b > 0;
        if (b > 0)
            touch(m, b < m->size ? m->size - b : 0, m->size);
    } else if (kind < 16) {
        append(m, "%u-%u0000000000000000000", a, b + 1);
        touch(m, a, m->size);
    } else {
        append(m, "%0*u-%u", (int)random_below(&rng, 5) + 1, a, b);
        touch(m, a, b);
    }
    m->range_count++;
}

static void make_model(struct model *m)
{
    static const char *const commas[] = { ",", ", ", " ,", ",,", " \t, ,\t" };
    m->size = (unsigned)random_below(&rng, SIZE_MAX_MODEL + 1);
    for (unsigned i = 0; i < SIZE_MAX_MODEL; i++)
        m->touched_by[i] = UNTOUCHED;
    m->range_count = 0;
    m->malformed = false;
    m->of_none = false;
    m->len = 0;
    append(m, "%s", random_one_in(&rng, 4) ? "Bytes=" : "bytes=");
    unsigned count = (unsigned)random_below(&rng, random_one_in(&rng, 8) ? 80 : 12);
    for (unsigned i = 0; i < count; i++) {
        if (i > 0)
            append(m, "%s", commas[random_below(&rng, sizeof(commas) / sizeof(commas[0]))]);
        append_range(m);
    }
}

/* The maximal runs of requested bytes, ordered by the range that first touched them. A range
 * touches one run only, so no two are equal. */
static unsigned runs_of(const struct model *m, struct http_range *runs)
{
    unsigned count = 0;
    unsigned order[SIZE_MAX_MODEL];
    for (unsigned at = 0; at < m->size; at++) {
        if (m->touched_by[at] == UNTOUCHED)
            continue;
        struct http_range run = { .first = at, .len = 0 };
        unsigned earliest = UNTOUCHED;
        for (; at < m->size && m->touched_by[at] != UNTOUCHED; at++, run.len++)
            if (m->touched_by[at] < earliest)
                earliest = m->touched_by[at];
        unsigned place = count++;
        for (; place > 0 && order[place - 1] > earliest; place--) {
            order[place] = order[place - 1];
            runs[place] = runs[place - 1];
        }
        order[place] = earliest;
        runs[place] = run;
    }
    return count;
}

static void check_against_model(const struct model *m)
{
    struct guard guard;
    struct http_ranges ranges = { .count = 0 };
    enum http_range_result result =
        http_range_parse(guard_copy(&guard, span_of(m->text, m->len)), m->size, &ranges);
    guard_done(&guard);

    struct http_range runs[SIZE_MAX_MODEL];
    unsigned count = runs_of(m, runs);
    enum http_range_result expected = HTTP_RANGE_SATISFIABLE;
    if (m->malformed || m->range_count == 0 || m->range_count > HTTP_RANGES_READ_MAX ||
        count > HTTP_RANGES_MAX || (count == 0 && m->of_none))
        expected = HTTP_RANGE_IGNORE;
    else if (count == 0)
        expected = HTTP_RANGE_UNSATISFIABLE;

    bool same = result == expected;
    if (same && result == HTTP_RANGE_SATISFIABLE) {
        same = ranges.count == count;
        for (unsigned i = 0; same && i < count; i++)
            same = ranges.range[i].first == runs[i].first && ranges.range[i].len == runs[i].len;
    }
    if (!same)
        fail_msg("`%.*s` of %u: differs from the model", (int)m->len, m->text, m->size);
}

static void gives_exactly_the_requested_bytes(void **state)
{
    (void)state;
    static struct model m;
    for (int round = 0; round < ROUNDS; round++) {
        make_model(&m);
        check_against_model(&m);
    }
}

static uint64_t random_magnitude(void)
{
    return random_u64(&rng) >> random_below(&rng, 64);
}

static void assert_promises(struct span field, uint64_t size, const struct http_ranges *ranges)
{
    uint64_t sum = 0;
    bool good = ranges->count >= 1 && ranges->count <= HTTP_RANGES_MAX;
    for (unsigned i = 0; good && i < ranges->count; i++) {
        struct http_range r = ranges->range[i];
        good = r.len >= 1 && r.first < size && r.len <= size - r.first && r.len <= size - sum;
        sum += r.len;
    }
    if (!good)
        fail_msg("`%.*s` of %llu breaks a promise", (int)field.len, field.at,
                 (unsigned long long)size);
}

static void never_gives_more_than_the_file(void **state)
{
    (void)state;
    int satisfiable = 0;
    for (int round = 0; round < ROUNDS; round++) {
        char text[1024];
        uint64_t size = random_magnitude();
        size_t len = (size_t)snprintf(text, sizeof text, "bytes=");
        unsigned count = 1 + (unsigned)random_below(&rng, 20);
        for (unsigned i = 0; i < count; i++) {
            uint64_t a = random_magnitude();
            uint64_t b = random_magnitude();
            unsigned long long least = a < b ? a : b;
            unsigned long long most = a < b ? b : a;
            if (random_one_in(&rng, 5))
                len += (size_t)snprintf(text + len, sizeof text - len, "-%llu,", least);
            else
                len += (size_t)snprintf(text + len, sizeof text - len, "%llu-%llu,", least, most);
        }
        struct http_ranges ranges;
        struct guard guard;
        struct span field = guard_copy(&guard, span_of(text, len));
        if (http_range_parse(field, size, &ranges) == HTTP_RANGE_SATISFIABLE) {
            assert_promises(field, size, &ranges);
            satisfiable++;
        }
        guard_done(&guard);
    }
    assert_in_range(satisfiable, ROUNDS / 100, ROUNDS);
}

static void keeps_its_promises_for_any_bytes(void **state)
{
    (void)state;
    static const char alphabet[] = "0123456789--,, \t\"\\=;x\xff";
    for (int round = 0; round < ROUNDS; round++) {
        char text[64] = "bytes=";
        size_t len = 6 + random_below(&rng, 40);
        for (size_t i = 6; i < len; i++)
            text[i] = alphabet[random_below(&rng, sizeof(alphabet) - 1)];
        uint64_t size = random_magnitude();
        struct http_ranges ranges;
        struct guard guard;
        struct span field = guard_copy(&guard, span_of(text, len));
        if (http_range_parse(field, size, &ranges) == HTTP_RANGE_SATISFIABLE)
            assert_promises(field, size, &ranges);
        guard_done(&guard);
    }
}

int main(void)
{
    rng = random_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_exactly_the_requested_bytes),
        cmocka_unit_test(never_gives_more_than_the_file),
        cmocka_unit_test(keeps_its_promises_for_any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
