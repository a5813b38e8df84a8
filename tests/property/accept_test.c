/* SPDX-License-Identifier: MIT
 *
 * Random negotiation fields compared with a model that reads no text. The choices are drawn as
 * data. Then they are spelled with the spaces, cases and damage that the grammar knows.
 */
#include "http/accept.h"

#include "support/guard.h"
#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ROUNDS = 20000, TEXT_SIZE = 2048, CHOICES_MAX = 8 };

static struct random_source rng;

static const char *const coding_names[] = { "br", "zstd", "gzip", "identity", "*", "deflate" };
enum { STAR = HTTP_CODING_COUNT, CODING_NAMES = 6 };

static const char *const range_names[] = { "text/html", "application/json",
                                           "text/*",    "application/*",
                                           "*/*",       "image/png" };
enum { RANGE_NAMES = 6 };

/* One element of a field. */
struct choice {
    unsigned name; /* index of its name */
    int weight;    /* thousandths; -1: damaged, and without effect */
};

struct text {
    char bytes[TEXT_SIZE];
    size_t len;
};

__attribute__((format(printf, 2, 3))) static void append(struct text *t, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int len = vsnprintf(t->bytes + t->len, sizeof t->bytes - t->len, format, list);
    va_end(list);
    assert_in_range(len, 0, sizeof t->bytes - t->len - 1);
    t->len += (size_t)len;
}

static const char *random_space(void)
{
    static const char *const spaces[] = { "", "", "", " ", "\t", "  " };
    return spaces[random_below(&rng, sizeof(spaces) / sizeof(spaces[0]))];
}

static void append_name(struct text *t, const char *name)
{
    bool loud = random_one_in(&rng, 6);
    for (; *name != '\0'; name++)
        append(t, "%c", loud && *name >= 'a' && *name <= 'z' ? *name - 32 : *name);
}

/* Spells a weight in thousandths in one of its forms. */
static void append_weight(struct text *t, int weight)
{
    int digits = 3;
    for (; digits > 0 && weight % 10 == 0 && !random_one_in(&rng, 4); digits--)
        weight /= 10;
    static const int unit[] = { 1, 10, 100, 1000 };
    append(t, "%s;%s%c=%d", random_space(), random_space(), random_one_in(&rng, 8) ? 'Q' : 'q',
           weight / unit[digits]);
    if (digits > 0)
        append(t, ".%0*d", digits, weight % unit[digits]);
    else if (random_one_in(&rng, 4))
        append(t, ".");
}

static void append_choice(struct text *t, const char *name, int weight)
{
    static const char *const damage[] = { ";q=1.5", ";q=",    ";q", ";q=0.1234",
                                          ";q=-1",  ";q=0x1", " x", ";v=\"1" };
    append_name(t, name);
    if (weight < 0)
        append(t, "%s", damage[random_below(&rng, 7)]);
    else if (weight < 1000 || random_one_in(&rng, 3))
        append_weight(t, weight);
}

static unsigned make_choices(struct choice *choices, struct text *t, const char *const *names,
                             unsigned name_count)
{
    unsigned count = (unsigned)random_below(&rng, CHOICES_MAX + 1);
    t->len = 0;
    for (unsigned i = 0; i < count; i++) {
        struct choice c = { .name = (unsigned)random_below(&rng, name_count) };
        switch (random_below(&rng, 6)) {
        case 0:
            c.weight = 1000;
            break;
        case 1:
            c.weight = 0;
            break;
        case 2:
            c.weight = -1;
            break;
        case 3:
            c.weight = (int)random_below(&rng, 11) * 100;
            break;
        default:
            c.weight = (int)random_below(&rng, 1001);
            break;
        }
        choices[i] = c;
        if (i > 0)
            append(t, "%s,%s", random_space(), random_space());
        append_choice(t, names[c.name], c.weight);
    }
    return count;
}

/* The highest weight of a name among the choices; -1: none. */
static int told_of(const struct choice *choices, unsigned count, unsigned name)
{
    int best = -1;
    for (unsigned i = 0; i < count; i++)
        if (choices[i].name == name && choices[i].weight > best)
            best = choices[i].weight;
    return best;
}

static void chooses_the_coding_that_the_model_chooses(void **state)
{
    (void)state;
    int coded = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct choice choices[CHOICES_MAX];
        struct text t;
        unsigned count = make_choices(choices, &t, coding_names, CODING_NAMES);
        unsigned available = (unsigned)random_below(&rng, 1u << HTTP_CODING_COUNT);
        enum http_coding expected = HTTP_CODING_IDENTITY;
        int highest = 0;
        for (unsigned coding = HTTP_CODING_COUNT; coding-- > 0;) {
            int told = told_of(choices, count, coding);
            int weight = told < 0 ? told_of(choices, count, STAR) : told;
            if ((available >> coding & 1) == 0 || weight <= 0 || weight < highest)
                continue;
            highest = weight;
            expected = (enum http_coding)coding;
        }
        struct guard guard;
        enum http_coding got =
            http_accept_coding(true, guard_copy(&guard, span_of(t.bytes, t.len)), available);
        guard_done(&guard);
        if (got != expected)
            fail_msg("`%.*s` of %#x: expected %d, got %d", (int)t.len, t.bytes, available,
                     (int)expected, (int)got);
        coded += got != HTTP_CODING_IDENTITY;
    }
    assert_in_range(coded, ROUNDS / 10, ROUNDS);
}

static void gives_a_type_the_weight_that_the_model_gives(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct choice choices[CHOICES_MAX];
        struct text t;
        unsigned count = make_choices(choices, &t, range_names, RANGE_NAMES);
        unsigned type = (unsigned)random_below(&rng, 2);
        unsigned closest_first[] = { type, type + 2, 4 };
        int expected = count == 0 ? 1000 : 0;
        for (unsigned i = 0; i < 3; i++) {
            int told = told_of(choices, count, closest_first[i]);
            if (told < 0)
                continue;
            expected = told;
            break;
        }
        struct guard guard;
        int got = http_accept_weight(true, guard_copy(&guard, span_of(t.bytes, t.len)),
                                     span_text(range_names[type]));
        guard_done(&guard);
        if (got != expected)
            fail_msg("`%.*s` for %s: expected %d, got %d", (int)t.len, t.bytes, range_names[type],
                     expected, got);
    }
}

static void keeps_its_promises_for_any_bytes(void **state)
{
    (void)state;
    static const char alphabet[] = "gzip*/;=q01.,\" \t\\\xff";
    for (int round = 0; round < ROUNDS; round++) {
        char text[48];
        size_t len = random_below(&rng, sizeof text + 1);
        for (size_t i = 0; i < len; i++)
            text[i] = alphabet[random_below(&rng, sizeof(alphabet) - 1)];
        struct guard guard;
        struct span field = guard_copy(&guard, span_of(text, len));
        enum http_coding coding =
            http_accept_coding(true, field, 1 << HTTP_CODING_GZIP | 1 << HTTP_CODING_IDENTITY);
        assert_true(coding == HTTP_CODING_GZIP || coding == HTTP_CODING_IDENTITY);
        assert_in_range(http_accept_weight(true, field, SPAN("gz/ip")), 0, 1000);
        guard_done(&guard);
    }
}

int main(void)
{
    rng = random_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chooses_the_coding_that_the_model_chooses),
        cmocka_unit_test(gives_a_type_the_weight_that_the_model_gives),
        cmocka_unit_test(keeps_its_promises_for_any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
