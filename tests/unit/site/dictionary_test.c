/* SPDX-License-Identifier: MIT
 *
 * The versions that the compressor knows: what is added, found and dropped.
 */
#include "site/dictionary.h"

#include <openssl/sha.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BYTES = 2000, MOST = 10 * BYTES };

static struct site_dictionaries all;
static const int one, other; /* families */

static void begin(void)
{
    all = (struct site_dictionaries){ .bytes_most = MOST };
}

static void end(void)
{
    site_dictionary_done(&all);
    assert_int_equal(all.bytes, 0);
}

static void add(const void *family, char fill, size_t len)
{
    char *bytes = malloc(len);
    assert_non_null(bytes);
    memset(bytes, fill, len);
    site_dictionary_add(&all, family, bytes, len);
}

static bool knows(const void *family, char fill, size_t len)
{
    unsigned char digest[SITE_CODER_DIGEST];
    char bytes[BYTES];
    memset(bytes, fill, len);
    SHA256((const unsigned char *)bytes, len, digest);
    const struct span found = site_dictionary_find(&all, family, digest);
    assert_true(found.len == 0 || span_equal(found, span_of(bytes, len)));
    return found.len > 0;
}

static void finds_what_was_added_and_nothing_else(void **state)
{
    (void)state;
    begin();
    add(&one, 'a', BYTES);
    add(&one, 'a', BYTES);
    assert_int_equal(all.bytes, BYTES);
    assert_true(knows(&one, 'a', BYTES));
    assert_false(knows(&one, 'b', BYTES));
    end();
}

static void a_version_of_one_family_is_unknown_to_another(void **state)
{
    (void)state;
    begin();
    add(&one, 'a', BYTES);
    assert_false(knows(&other, 'a', BYTES));
    add(&other, 'a', BYTES);
    assert_true(knows(&other, 'a', BYTES));
    end();
}

static void drops_the_least_recently_used_when_bytes_are_many(void **state)
{
    (void)state;
    begin();
    for (char fill = 'a'; fill < 'a' + 10; fill++)
        add(&one, fill, BYTES);
    assert_true(knows(&one, 'a', BYTES));
    add(&one, 'z', BYTES);
    assert_int_equal(all.bytes, MOST);
    assert_true(knows(&one, 'a', BYTES));
    assert_false(knows(&one, 'b', BYTES));
    assert_true(knows(&one, 'c', BYTES));
    end();
}

static void adds_nothing_larger_than_all_may_be(void **state)
{
    (void)state;
    begin();
    all.bytes_most = BYTES - 1;
    add(&one, 'a', BYTES);
    assert_int_equal(all.bytes, 0);
    end();
}

static void drops_the_least_recently_used_when_they_are_many(void **state)
{
    (void)state;
    begin();
    for (unsigned i = 0; i <= SITE_DICTIONARIES_MAX; i++)
        add(&one, 'x', i + 1);
    assert_false(knows(&one, 'x', 1));
    assert_true(knows(&one, 'x', 2));
    assert_true(knows(&one, 'x', SITE_DICTIONARIES_MAX + 1));
    end();
}

static void a_folder_is_read_again_only_after_some_time(void **state)
{
    (void)state;
    const uint64_t now_ns = 1000 * SITE_DICTIONARY_AGAIN_NS;
    begin();
    assert_true(site_dictionary_claim(&all, &one, 7, now_ns));
    assert_false(site_dictionary_claim(&all, &one, 7, now_ns + SITE_DICTIONARY_AGAIN_NS - 1));
    assert_true(site_dictionary_claim(&all, &one, 8, now_ns));
    assert_true(site_dictionary_claim(&all, &other, 7, now_ns));
    assert_true(site_dictionary_claim(&all, &one, 7, now_ns + SITE_DICTIONARY_AGAIN_NS));
    end();
}

static void more_folders_than_places_replace_the_oldest(void **state)
{
    (void)state;
    begin();
    for (uint64_t i = 0; i <= SITE_DICTIONARY_FOLDERS; i++)
        assert_true(site_dictionary_claim(&all, &one, i, 1));
    assert_false(site_dictionary_claim(&all, &one, 1, 1));
    assert_true(site_dictionary_claim(&all, &one, 0, 1));
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_was_added_and_nothing_else),
        cmocka_unit_test(a_version_of_one_family_is_unknown_to_another),
        cmocka_unit_test(drops_the_least_recently_used_when_bytes_are_many),
        cmocka_unit_test(adds_nothing_larger_than_all_may_be),
        cmocka_unit_test(drops_the_least_recently_used_when_they_are_many),
        cmocka_unit_test(a_folder_is_read_again_only_after_some_time),
        cmocka_unit_test(more_folders_than_places_replace_the_oldest),
    };
    return cmocka_run_group_tests_name("site/dictionary", tests, NULL, NULL);
}
