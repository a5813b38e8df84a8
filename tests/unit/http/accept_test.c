/* SPDX-License-Identifier: MIT
 *
 * Content negotiation, row by row. tests/property/accept_test.c compares random fields with a
 * model.
 */
#include "http/accept.h"

#include "support/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum {
    BR = 1 << HTTP_CODING_BR,
    ZSTD = 1 << HTTP_CODING_ZSTD,
    GZIP = 1 << HTTP_CODING_GZIP,
    PLAIN = 1 << HTTP_CODING_IDENTITY,
    ALL = BR | ZSTD | GZIP | PLAIN,
};

static void assert_coding(const char *field, unsigned available, enum http_coding expected)
{
    struct guard guard;
    enum http_coding got = http_accept_coding(true, guard_text(&guard, field), available);
    guard_done(&guard);
    if (got != expected)
        fail_msg("`%s` of %#x: expected %d, got %d", field, available, (int)expected, (int)got);
}

static void assert_weight(const char *field, const char *type, int expected)
{
    struct guard guard;
    int got = http_accept_weight(true, guard_text(&guard, field), span_text(type));
    guard_done(&guard);
    if (got != expected)
        fail_msg("`%s` for %s: expected %d, got %d", field, type, expected, got);
}

static void sends_identity_without_the_field(void **state)
{
    (void)state;
    assert_int_equal(http_accept_coding(false, SPAN(""), ALL), HTTP_CODING_IDENTITY);
    assert_coding("", ALL, HTTP_CODING_IDENTITY);
    assert_coding(" , ,", ALL, HTTP_CODING_IDENTITY);
}

static void prefers_the_better_coding_among_equal_weights(void **state)
{
    (void)state;
    assert_coding("gzip, deflate, br, zstd", ALL, HTTP_CODING_BR);
    assert_coding("gzip, deflate, br, zstd", ALL & ~BR, HTTP_CODING_ZSTD);
    assert_coding("gzip, deflate, br, zstd", GZIP | PLAIN, HTTP_CODING_GZIP);
    assert_coding("gzip, deflate, br, zstd", PLAIN, HTTP_CODING_IDENTITY);
    assert_coding("identity, gzip", ALL, HTTP_CODING_GZIP);
    assert_coding("gzip", ALL, HTTP_CODING_GZIP);
    assert_coding("deflate", ALL, HTTP_CODING_IDENTITY);
}

static void prefers_the_highest_weight(void **state)
{
    (void)state;
    assert_coding("br;q=0.5, gzip;q=0.8", ALL, HTTP_CODING_GZIP);
    assert_coding("br;q=0.5, gzip;q=0.501", ALL, HTTP_CODING_GZIP);
    assert_coding("br;q=0.5, gzip;q=0.8, identity", ALL, HTTP_CODING_IDENTITY);
    assert_coding("gzip;q=0.001", ALL, HTTP_CODING_GZIP);
    assert_coding("gzip;q=1.000, br;q=0.999", ALL, HTTP_CODING_GZIP);
    assert_coding("gzip;q=0.2, gzip;q=0.9, br;q=0.5", ALL, HTTP_CODING_GZIP);
}

static void never_sends_a_coding_with_weight_zero(void **state)
{
    (void)state;
    assert_coding("gzip;q=0", ALL, HTTP_CODING_IDENTITY);
    assert_coding("br;q=0.0, zstd;q=0.000, gzip;q=0.", ALL, HTTP_CODING_IDENTITY);
    assert_coding("br;q=0, *", ALL, HTTP_CODING_ZSTD);
}

static void applies_the_star_to_codings_that_are_not_listed(void **state)
{
    (void)state;
    assert_coding("*", ALL, HTTP_CODING_BR);
    assert_coding("*;q=0.5, gzip", ALL, HTTP_CODING_GZIP);
    assert_coding("gzip;q=0.5, *;q=0.7", ALL, HTTP_CODING_BR);
    assert_coding("gzip;q=0.5, *;q=0", ALL, HTTP_CODING_GZIP);
    assert_coding("*;q=0.5, identity", ALL, HTTP_CODING_IDENTITY);
}

static void sends_identity_as_the_last_resort_even_when_excluded(void **state)
{
    (void)state;
    assert_coding("identity;q=0", ALL, HTTP_CODING_IDENTITY);
    assert_coding("*;q=0", ALL, HTTP_CODING_IDENTITY);
    assert_coding("br, identity;q=0", GZIP | PLAIN, HTTP_CODING_IDENTITY);
    assert_coding("br, identity;q=0", 0, HTTP_CODING_IDENTITY);
}

static void reads_names_in_any_case_and_the_old_name_of_gzip(void **state)
{
    (void)state;
    assert_coding("GZip", ALL, HTTP_CODING_GZIP);
    assert_coding("x-gzip", ALL, HTTP_CODING_GZIP);
    assert_coding("gzip ; Q=0.5 , br\t;\tq=0.4", ALL, HTTP_CODING_GZIP);
}

static void ignores_malformed_elements(void **state)
{
    (void)state;
    static const char *const fields[] = {
        "br;q=2",     "br;q=1.001", "br;q=-1",    "br;q=0.1234", "br;q=.5",   "br;q=",
        "br;q",       "br;=1",      "br;q=0,5",   "br;q= 1",     "br;q =1",   "br;q=1x",
        "br;level=1", "br br",      "br;q=\"1\"", ";q=1",        "b\xc3\xa9", "br;x=\"unclosed",
        "br;q=00.5",  "br;q=1e0",   "br=1",       "br;q=0x1",    "brr",       "b",
    };
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        assert_coding(fields[i], ALL, HTTP_CODING_IDENTITY);
    assert_coding("br;q=9, gzip;q=0.1", ALL, HTTP_CODING_GZIP);
    assert_coding("br;;q=0.5;", ALL, HTTP_CODING_BR); /* empty parameters are allowed */
}

static void codings_have_names_and_suffixes(void **state)
{
    (void)state;
    assert_true(span_equal(http_accept_coding_name(HTTP_CODING_BR), SPAN("br")));
    assert_true(span_equal(http_accept_coding_name(HTTP_CODING_ZSTD), SPAN("zstd")));
    assert_true(span_equal(http_accept_coding_name(HTTP_CODING_GZIP), SPAN("gzip")));
    assert_true(span_equal(http_accept_coding_name(HTTP_CODING_IDENTITY), SPAN("")));
    assert_true(span_equal(http_accept_coding_suffix(HTTP_CODING_BR), SPAN(".br")));
    assert_true(span_equal(http_accept_coding_suffix(HTTP_CODING_ZSTD), SPAN(".zst")));
    assert_true(span_equal(http_accept_coding_suffix(HTTP_CODING_GZIP), SPAN(".gz")));
    assert_true(span_equal(http_accept_coding_suffix(HTTP_CODING_IDENTITY), SPAN("")));
}

/* The example of RFC 9110 section 12.5.1, for types without parameters. */
static bool prefers_markdown(const char *accept)
{
    struct guard guard;
    const bool prefers =
        http_accept_prefers(guard_text(&guard, accept), SPAN("text/markdown"), SPAN("text/html"));
    guard_done(&guard);
    return prefers;
}

static void prefers_the_type_with_the_higher_weight(void **state)
{
    (void)state;
    assert_true(prefers_markdown("text/markdown"));
    assert_true(prefers_markdown("text/html;q=0.9, text/markdown"));
    assert_true(prefers_markdown("text/html;q=0.5, */*"));
    assert_true(prefers_markdown("text/html;q=0, text/*;q=0.001"));
    assert_true(prefers_markdown("TEXT/MarkDown; charset=utf-8; q=0.8, */*;q=0.1"));
    assert_false(prefers_markdown("text/markdown;q=0.8, text/html"));
    assert_false(prefers_markdown("text/markdown;q=0"));
    assert_false(prefers_markdown("text/markdown;q=0.5, */*;q=0.6"));
    assert_false(prefers_markdown("text/markdown;q=2"));
    assert_false(prefers_markdown("text/markdown-x, text/htm"));
}

static void of_equal_weights_prefers_the_type_that_is_named_first(void **state)
{
    (void)state;
    assert_true(prefers_markdown("text/markdown, text/html, */*"));
    assert_true(prefers_markdown("text/plain, text/markdown, */*"));
    assert_false(prefers_markdown("text/html, text/markdown"));
    assert_false(prefers_markdown("text/html, text/markdown, */*"));
    assert_false(prefers_markdown("*/*"));
    assert_false(prefers_markdown("text/*, */*;q=0.1"));
    assert_false(prefers_markdown("text/html"));
    assert_false(prefers_markdown("image/png"));
    assert_false(prefers_markdown(""));
    assert_false(prefers_markdown("text/markdown;q=0, text/html;q=0"));
}

static void uses_the_weight_of_the_most_specific_range(void **state)
{
    (void)state;
    const char *field = "text/*;q=0.3, text/plain;q=0.7, text/plain;format=flowed, "
                        "text/plain;format=fixed;q=0.4, */*;q=0.5";
    assert_weight(field, "text/plain", 700);
    assert_weight(field, "text/html", 300);
    assert_weight(field, "image/jpeg", 500);
    assert_weight("*/*, text/html;q=0.1, text/*;q=0.2", "text/html", 100);
    assert_weight("*/*, text/*;q=0", "text/html", 0);
    assert_weight("text/html;q=0.1, text/html;q=0.2", "text/html", 200);
}

static void accepts_anything_when_accept_is_absent_or_empty(void **state)
{
    (void)state;
    assert_int_equal(http_accept_weight(false, SPAN("text/html"), SPAN("a/b")), 1000);
    assert_weight("", "text/html", 1000);
    assert_weight(",", "text/html", 1000);
}

static void gives_a_type_without_a_matching_range_no_weight(void **state)
{
    (void)state;
    assert_weight("application/json", "text/html", 0);
    assert_weight("text/htm", "text/html", 0);
    assert_weight("texts/*", "text/html", 0);
    assert_weight("tex/*", "text/html", 0);
    assert_weight("*/html", "text/html", 0);
    assert_weight("*", "text/html", 0);
    assert_weight("text/", "text/html", 0);
    assert_weight("/*", "text/html", 0);
    assert_weight("text/html;q=2", "text/html", 0);
}

static void reads_media_ranges_in_any_case(void **state)
{
    (void)state;
    assert_weight("TEXT/Html;Q=0.5", "text/html", 500);
    assert_weight("Text/*;q=0.5", "text/html", 500);
}

static void ignores_a_range_with_parameters_other_than_utf8(void **state)
{
    (void)state;
    assert_weight("text/html;level=1", "text/html", 0);
    assert_weight("text/html;level=1, text/html;q=0.4", "text/html", 400);
    assert_weight("application/json;charset=UTF-8", "application/json", 1000);
    assert_weight("application/json; charset=\"utf-8\"; q=0.5", "application/json", 500);
    assert_weight("application/json;q=0.5;charset=utf-8", "application/json", 500);
    assert_weight("application/json;charset=latin1", "application/json", 0);
    assert_weight("a/b;x=\"q=0;,\\\"\";q=0.5, */*;q=0.2", "a/b", 200);
}

static void prefers_html_for_what_browsers_send(void **state)
{
    (void)state;
    const char *browser = "text/html,application/xhtml+xml,application/xml;q=0.9,"
                          "image/avif,image/webp,image/apng,*/*;q=0.8";
    assert_weight(browser, "text/html", 1000);
    assert_weight(browser, "application/json", 800);
    assert_weight("application/json, */*;q=0.5", "text/html", 500);
}

static void a_star_gives_no_weight_to_a_coding_by_its_name(void **state)
{
    (void)state;
    static const struct {
        const char *field;
        int weight;
    } rows[] = {
        { "gzip, br, zstd, dcb, dcz", 1000 },
        { "br, DCZ;q=0.5", 500 },
        { "dcz;q=0.2, dcz;q=0.7", 700 },
        { "dcz;q=0", 0 },
        { "*", -1 },
        { "dczz, zstd", -1 },
        { "dcz;level=1", -1 },
        { "", -1 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct guard guard;
        const int got = http_accept_named_weight(guard_text(&guard, rows[i].field), SPAN("dcz"));
        guard_done(&guard);
        if (got != rows[i].weight)
            fail_msg("`%s`: expected %d, got %d", rows[i].field, rows[i].weight, got);
    }
}

static void reads_the_digest_of_a_dictionary(void **state)
{
    (void)state;
    unsigned char digest[HTTP_ACCEPT_DIGEST];
    struct guard guard;
    /* RFC 9842 section 2.2 has this example. */
    const struct span field = guard_text(&guard, ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=:");
    assert_true(http_accept_dictionary(field, digest));
    assert_int_equal(digest[0], 0xa5);
    assert_int_equal(digest[1], 0x91);
    assert_int_equal(digest[31], 0x6e);
    guard_done(&guard);
}

static void refuses_a_dictionary_in_another_form(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "",
        ":",
        "::",
        "pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=",
        ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=",
        ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4:",
        ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=:;a",
        ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4A:",
        ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG==:",
        ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2-FG4=:",
        "\"pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=\"",
    };
    unsigned char digest[HTTP_ACCEPT_DIGEST];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct guard guard;
        if (http_accept_dictionary(guard_text(&guard, rows[i]), digest))
            fail_msg("`%s` is no SHA-256", rows[i]);
        guard_done(&guard);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sends_identity_without_the_field),
        cmocka_unit_test(prefers_the_better_coding_among_equal_weights),
        cmocka_unit_test(prefers_the_highest_weight),
        cmocka_unit_test(never_sends_a_coding_with_weight_zero),
        cmocka_unit_test(applies_the_star_to_codings_that_are_not_listed),
        cmocka_unit_test(sends_identity_as_the_last_resort_even_when_excluded),
        cmocka_unit_test(reads_names_in_any_case_and_the_old_name_of_gzip),
        cmocka_unit_test(ignores_malformed_elements),
        cmocka_unit_test(codings_have_names_and_suffixes),
        cmocka_unit_test(prefers_the_type_with_the_higher_weight),
        cmocka_unit_test(of_equal_weights_prefers_the_type_that_is_named_first),
        cmocka_unit_test(uses_the_weight_of_the_most_specific_range),
        cmocka_unit_test(accepts_anything_when_accept_is_absent_or_empty),
        cmocka_unit_test(gives_a_type_without_a_matching_range_no_weight),
        cmocka_unit_test(reads_media_ranges_in_any_case),
        cmocka_unit_test(ignores_a_range_with_parameters_other_than_utf8),
        cmocka_unit_test(prefers_html_for_what_browsers_send),
        cmocka_unit_test(a_star_gives_no_weight_to_a_coding_by_its_name),
        cmocka_unit_test(reads_the_digest_of_a_dictionary),
        cmocka_unit_test(refuses_a_dictionary_in_another_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
