/* SPDX-License-Identifier: MIT
 *
 * The cache's contract, one sentence at a time: bounds, both orders of eviction,
 * and how long what was found stays valid. Long random histories are in
 * tests/property, several threads in tests/concurrency.
 */
#include "site/cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <stdio.h>

struct value {
    struct site_cache_entry cache;
    char name[16];
    unsigned *released;
    struct site_cache_link link;
};

static unsigned released; /* values of this test that are gone */

static void release_value(struct site_cache_entry *entry)
{
    struct value *value = (struct value *)entry;
    (*value->released)++;
    free(value);
}

static struct site_cache_link *open_link_of(struct site_cache_entry *entry)
{
    return &((struct value *)entry)->link;
}

static const struct site_cache_kind kind = { release_value, open_link_of };

/* A value with its creator's reference. */
static struct site_cache_entry *make(struct site_cache *cache, const char *name, size_t size_bytes,
                                     uint32_t descriptors)
{
    struct value *value = calloc(1, sizeof(*value));
    assert_non_null(value);
    (void)snprintf(value->name, sizeof(value->name), "%s", name);
    value->released = &released;
    const struct span key = span_text(value->name);
    site_cache_init(&value->cache, &kind, site_cache_hash(cache, key), key);
    value->cache.size_bytes = (uint32_t)size_bytes;
    value->cache.descriptors = (uint8_t)descriptors;
    return &value->cache;
}

/* Makes a value and leaves it to the cache alone. */
static bool put(struct site_cache_reader *reader, struct site_cache *cache, const char *name,
                size_t size_bytes, uint32_t descriptors)
{
    struct site_cache_entry *entry = make(cache, name, size_bytes, descriptors);
    const bool kept = site_cache_insert(reader, entry);
    site_cache_release(entry);
    return kept;
}

static struct site_cache_entry *find(struct site_cache_reader *reader, struct site_cache *cache,
                                     const char *name)
{
    const struct span key = span_text(name);
    return site_cache_find(reader, site_cache_hash(cache, key), key);
}

static struct site_cache *new_cache(enum site_cache_policy policy, size_t bytes, size_t entries,
                                    uint32_t descriptors)
{
    const struct site_cache_limits limits = { policy, bytes, entries, descriptors };
    struct site_cache *cache = site_cache_new(limits, 2);
    assert_non_null(cache);
    released = 0;
    return cache;
}

static void finds_what_was_put_in_and_nothing_else(void **state)
{
    (void)state;
    for (int policy = SITE_CACHE_SIEVE; policy <= SITE_CACHE_LRU; policy++) {
        struct site_cache *cache = new_cache((enum site_cache_policy)policy, 8000, 10, 10);
        struct site_cache_reader *reader = site_cache_reader(cache, 0);
        assert_null(find(reader, cache, "a"));
        assert_true(put(reader, cache, "a", 100, 0));
        assert_true(put(reader, cache, "b", 100, 2));
        assert_string_equal(((struct value *)find(reader, cache, "a"))->name, "a");
        assert_string_equal(((struct value *)find(reader, cache, "b"))->name, "b");
        assert_null(find(reader, cache, ""));
        assert_null(find(reader, cache, "ab"));
        const struct site_cache_totals totals = site_cache_totals(cache);
        assert_int_equal(totals.bytes, 200);
        assert_int_equal(totals.entries, 2);
        assert_int_equal(totals.descriptors, 2);
        assert_int_equal(totals.inserted, 2);
        site_cache_free(cache);
        assert_int_equal(released, 2);
    }
}

/* Whole hashes collide once in 2^64; the key decides. Taking entries out of the
 * middle, the end and the front of one chain leaves the others in it. */
static void tells_keys_with_the_same_hash_apart(void **state)
{
    (void)state;
    static const char *const names[] = { "a", "b", "c", "d" };
    static const unsigned leave[] = { 1, 0, 3, 2 };
    struct site_cache *cache = new_cache(SITE_CACHE_SIEVE, 8000, 10, 10);
    struct site_cache_reader *reader = site_cache_reader(cache, 0);
    bool present[4] = { true, true, true, true };
    for (unsigned i = 0; i < 4; i++) {
        struct site_cache_entry *entry = make(cache, names[i], 10, 0);
        entry->hash = 7;
        assert_true(site_cache_insert(reader, entry));
        site_cache_release(entry);
    }
    for (unsigned round = 0; round < 4; round++) {
        for (unsigned i = 0; i < 4; i++) {
            struct site_cache_entry *found = site_cache_find(reader, 7, span_text(names[i]));
            assert_int_equal(found != NULL, present[i]);
            if (found != NULL)
                assert_string_equal(((struct value *)found)->name, names[i]);
        }
        const struct span key = span_text(names[leave[round]]);
        site_cache_remove(reader, site_cache_find(reader, 7, key));
        present[leave[round]] = false;
    }
    assert_int_equal(site_cache_totals(cache).entries, 0);
    site_cache_free(cache);
}

static void a_value_lives_until_its_creator_and_the_cache_release_it(void **state)
{
    (void)state;
    struct site_cache *cache = new_cache(SITE_CACHE_SIEVE, 8000, 10, 10);
    struct site_cache_reader *reader = site_cache_reader(cache, 0);
    struct site_cache_entry *entry = make(cache, "a", 100, 0);
    assert_true(site_cache_insert(reader, entry));
    site_cache_remove(reader, entry);
    site_cache_quiesce(reader);
    assert_int_equal(released, 0);
    assert_string_equal(((struct value *)entry)->name, "a");
    site_cache_release(entry);
    assert_int_equal(released, 1);
    site_cache_free(cache);
}

static void a_found_entry_stays_valid_until_the_next_quiesce(void **state)
{
    (void)state;
    for (int policy = SITE_CACHE_SIEVE; policy <= SITE_CACHE_LRU; policy++) {
        struct site_cache *cache = new_cache((enum site_cache_policy)policy, 8000, 10, 10);
        struct site_cache_reader *reader = site_cache_reader(cache, 0);
        assert_true(put(reader, cache, "a", 100, 0));
        struct site_cache_entry *found = find(reader, cache, "a");
        site_cache_remove(reader, found);
        assert_null(find(reader, cache, "a"));
        assert_string_equal(((struct value *)found)->name, "a");
        assert_int_equal(released, 0);
        assert_int_equal(site_cache_totals(cache).retired_bytes, 100);
        site_cache_quiesce(reader);
        assert_int_equal(released, 1);
        assert_int_equal(site_cache_totals(cache).retired_bytes, 0);
        site_cache_free(cache);
    }
}

static void reclamation_waits_for_every_online_reader(void **state)
{
    (void)state;
    struct site_cache *cache = new_cache(SITE_CACHE_SIEVE, 8000, 10, 10);
    struct site_cache_reader *first = site_cache_reader(cache, 0);
    struct site_cache_reader *second = site_cache_reader(cache, 1);
    assert_true(put(first, cache, "a", 100, 0));
    site_cache_remove(first, find(first, cache, "a"));
    site_cache_quiesce(first);
    site_cache_quiesce(first);
    assert_int_equal(released, 0);
    site_cache_quiesce(second);
    assert_int_equal(released, 1);

    assert_true(put(first, cache, "b", 100, 0));
    site_cache_remove(first, find(first, cache, "b"));
    site_cache_quiesce(first);
    assert_int_equal(released, 1);
    site_cache_offline(second); /* going away is as good as a quiesce */
    assert_int_equal(released, 2);

    assert_true(put(first, cache, "c", 100, 0));
    site_cache_remove(first, find(first, cache, "c"));
    site_cache_quiesce(first); /* an offline reader delays nothing */
    assert_int_equal(released, 3);

    site_cache_online(second);
    assert_true(put(first, cache, "d", 100, 0));
    site_cache_remove(first, find(second, cache, "d"));
    site_cache_quiesce(first);
    assert_int_equal(released, 3);
    site_cache_free(cache);
    assert_int_equal(released, 4);
}

static void a_held_entry_outlives_eviction_and_the_cache(void **state)
{
    (void)state;
    struct site_cache *cache = new_cache(SITE_CACHE_LRU, 8000, 1, 10);
    struct site_cache_reader *reader = site_cache_reader(cache, 0);
    assert_true(put(reader, cache, "a", 100, 0));
    struct site_cache_entry *first = find(reader, cache, "a");
    site_cache_hold(first);
    assert_true(put(reader, cache, "b", 100, 0));
    struct site_cache_entry *second = find(reader, cache, "b");
    site_cache_hold(second);
    site_cache_quiesce(reader);
    assert_int_equal(site_cache_totals(cache).retired_bytes, 0);
    site_cache_free(cache);
    assert_int_equal(released, 0);
    assert_string_equal(((struct value *)first)->name, "a");
    assert_string_equal(((struct value *)second)->name, "b");
    site_cache_release(first);
    site_cache_release(second);
    assert_int_equal(released, 2);
}

static void a_newer_value_replaces_one_with_the_same_key(void **state)
{
    (void)state;
    for (int policy = SITE_CACHE_SIEVE; policy <= SITE_CACHE_LRU; policy++) {
        struct site_cache *cache = new_cache((enum site_cache_policy)policy, 8000, 10, 10);
        struct site_cache_reader *reader = site_cache_reader(cache, 0);
        assert_true(put(reader, cache, "a", 100, 1));
        struct site_cache_entry *old = find(reader, cache, "a");
        assert_true(put(reader, cache, "a", 70, 0));
        struct site_cache_entry *new = find(reader, cache, "a");
        assert_ptr_not_equal(old, new);
        assert_string_equal(((struct value *)old)->name, "a");
        struct site_cache_totals totals = site_cache_totals(cache);
        assert_int_equal(totals.entries, 1);
        assert_int_equal(totals.bytes, 70);
        assert_int_equal(totals.descriptors, 0);
        assert_int_equal(totals.retired_bytes, 100);
        assert_int_equal(totals.inserted, 2);
        assert_int_equal(totals.evicted, 0);

        site_cache_remove(reader, old); /* no longer the one: nothing happens */
        assert_ptr_equal(find(reader, cache, "a"), new);
        site_cache_free(cache);
        assert_int_equal(released, 2);
    }
}

static void a_replacement_in_a_full_cache_evicts_no_entry(void **state)
{
    (void)state;
    struct site_cache *cache = new_cache(SITE_CACHE_SIEVE, 800, 2, 2);
    struct site_cache_reader *reader = site_cache_reader(cache, 0);
    assert_true(put(reader, cache, "a", 100, 1));
    assert_true(put(reader, cache, "b", 100, 1));
    assert_true(put(reader, cache, "b", 100, 1));
    assert_non_null(find(reader, cache, "a"));
    assert_int_equal(site_cache_totals(cache).evicted, 0);
    site_cache_free(cache);
}

static void refuses_an_entry_above_its_share(void **state)
{
    (void)state;
    struct site_cache *cache = new_cache(SITE_CACHE_SIEVE, 800, 10, 2);
    struct site_cache_reader *reader = site_cache_reader(cache, 0);
    assert_true(put(reader, cache, "fits", 100, 2));
    assert_false(put(reader, cache, "large", 101, 0));
    assert_false(put(reader, cache, "open", 100, 3));
    assert_false(put(reader, cache, "fits", 101, 0));
    assert_non_null(find(reader, cache, "fits")); /* a refused replacement changes nothing */
    assert_null(find(reader, cache, "large"));
    assert_int_equal(site_cache_totals(cache).refused, 3);
    assert_int_equal(released, 3);
    site_cache_free(cache);
}

static void keeps_nothing_without_bytes_or_entries(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct site_cache *cache =
            new_cache(SITE_CACHE_SIEVE, i == 0 ? 0 : 8000, i == 0 ? 10 : 0, 1);
        struct site_cache_reader *reader = site_cache_reader(cache, 0);
        assert_false(put(reader, cache, "a", 0, 0));
        assert_null(find(reader, cache, "a"));
        assert_int_equal(site_cache_totals(cache).refused, 1);
        site_cache_free(cache);
        assert_int_equal(released, 1);
    }
}

static void an_entry_is_inserted_once(void **state)
{
    (void)state;
    struct site_cache *cache = new_cache(SITE_CACHE_SIEVE, 8000, 10, 10);
    struct site_cache_reader *reader = site_cache_reader(cache, 0);
    struct site_cache_entry *entry = make(cache, "a", 100, 0);
    assert_true(site_cache_insert(reader, entry));
    assert_false(site_cache_insert(reader, entry));
    site_cache_remove(reader, entry);
    assert_false(site_cache_insert(reader, entry)); /* readers may still walk through it */
    site_cache_quiesce(reader);
    assert_false(site_cache_insert(reader, entry));
    site_cache_release(entry);
    assert_int_equal(released, 1);
    site_cache_free(cache);
}

/* A thread that is stopped in the middle of a turn delays freeing. The other threads insert until
 * the removed entries are more than their limit. */
static void refuses_entries_only_while_too_much_is_retired(void **state)
{
    static const struct {
        size_t bytes, retired;
    } cases[] = { { 800, 800 }, { 8 << 20, 4 << 20 }, { 64 << 20, 16 << 20 } };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const size_t bytes = cases[i].bytes / 8;
        struct site_cache *cache = new_cache(SITE_CACHE_SIEVE, cases[i].bytes, 100, 0);
        struct site_cache_reader *reader = site_cache_reader(cache, 0);
        struct site_cache_reader *stopped = site_cache_reader(cache, 1);
        unsigned kept = 0;
        for (unsigned n = 0; n < 50; n++) {
            const char name[] = { (char)('A' + n), '\0' };
            kept += put(reader, cache, name, bytes, 0);
            site_cache_quiesce(reader);
        }
        /* Eight fill the cache. Each one after them removes another. The last removal finds the
         * limit exceeded. */
        assert_int_equal(kept, 8 + cases[i].retired / bytes);
        assert_int_equal(site_cache_totals(cache).refused, 50 - kept);
        assert_int_equal(site_cache_totals(cache).retired_bytes, cases[i].retired + bytes);
        site_cache_quiesce(stopped);
        assert_true(put(reader, cache, "z", bytes, 0));
        site_cache_quiesce(reader);
        site_cache_quiesce(stopped);
        assert_int_equal(site_cache_totals(cache).retired_bytes, 0);
        site_cache_free(cache);
    }
}

/* Fills a cache of four with a b c d, uses some, adds others, and tells who is left. */
struct order_case {
    enum site_cache_policy policy;
    const char *used;
    const char *added;
    const char *left;
};

static void evicts_in_the_order_of_its_policy(void **state)
{
    (void)state;
    static const struct order_case cases[] = {
        { SITE_CACHE_SIEVE, "", "e", "bcde" },
        { SITE_CACHE_SIEVE, "a", "e", "acde" },
        /* the hand goes on behind c, to d */
        { SITE_CACHE_SIEVE, "ab", "ef", "abef" },
        /* d was the newest: the hand begins again at a */
        { SITE_CACHE_SIEVE, "abc", "efg", "cefg" },
        /* all are marked: round once, and a goes */
        { SITE_CACHE_SIEVE, "abcd", "e", "bcde" },
        { SITE_CACHE_LRU, "", "e", "bcde" },
        { SITE_CACHE_LRU, "a", "e", "acde" },
        { SITE_CACHE_LRU, "ab", "ef", "abef" },
        { SITE_CACHE_LRU, "dcba", "ef", "abef" },
        { SITE_CACHE_LRU, "abcd", "e", "bcde" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct order_case *c = &cases[i];
        struct site_cache *cache = new_cache(c->policy, 80000, 4, 10);
        struct site_cache_reader *reader = site_cache_reader(cache, 0);
        for (const char *name = "abcd"; *name != '\0'; name++)
            assert_true(put(reader, cache, (char[]){ *name, '\0' }, 10, 0));
        for (const char *name = c->used; *name != '\0'; name++)
            assert_non_null(find(reader, cache, (char[]){ *name, '\0' }));
        for (const char *name = c->added; *name != '\0'; name++)
            assert_true(put(reader, cache, (char[]){ *name, '\0' }, 10, 0));
        for (const char *name = "abcdefg"; *name != '\0'; name++)
            if ((find(reader, cache, (char[]){ *name, '\0' }) != NULL) !=
                (strchr(c->left, *name) != NULL))
                fail_msg("case %zu: %c", i, *name);
        assert_int_equal(site_cache_totals(cache).evicted, strlen(c->added));
        site_cache_free(cache);
    }
}

static void a_descriptor_is_freed_by_an_entry_that_holds_one(void **state)
{
    (void)state;
    for (int policy = SITE_CACHE_SIEVE; policy <= SITE_CACHE_LRU; policy++) {
        struct site_cache *cache = new_cache((enum site_cache_policy)policy, 80000, 100, 3);
        struct site_cache_reader *reader = site_cache_reader(cache, 0);
        assert_true(put(reader, cache, "plain", 10, 0));
        assert_true(put(reader, cache, "open1", 10, 1));
        assert_true(put(reader, cache, "open2", 10, 2));
        assert_non_null(find(reader, cache, "open1"));
        assert_true(put(reader, cache, "open3", 10, 1));
        assert_non_null(find(reader, cache, "plain"));
        assert_non_null(find(reader, cache, "open1"));
        assert_null(find(reader, cache, "open2"));
        assert_int_equal(site_cache_totals(cache).descriptors, 2);
        site_cache_free(cache);
    }
}

static void each_cache_hashes_with_its_own_seed(void **state)
{
    (void)state;
    struct site_cache *one = new_cache(SITE_CACHE_SIEVE, 800, 1, 0);
    struct site_cache *other = new_cache(SITE_CACHE_SIEVE, 800, 1, 0);
    assert_int_not_equal(site_cache_hash(one, SPAN("/index.html")),
                         site_cache_hash(other, SPAN("/index.html")));
    site_cache_free(one);
    site_cache_free(other);
    site_cache_free(NULL);
}

static void a_table_beyond_all_memory_is_refused(void **state)
{
    (void)state;
    assert_null(site_cache_new((struct site_cache_limits){ .entries = SIZE_MAX }, 1));
}

static unsigned asked; /* entries in a sweep */

static bool is_of_one_byte(const struct site_cache_entry *entry, uint64_t now_ns)
{
    assert_int_equal(now_ns, 7);
    asked++;
    return entry->size_bytes == 1;
}

/* Whether a sweep evicts an entry. */
static bool sweeps_one(struct site_cache_reader *reader, struct site_cache *cache)
{
    (void)site_cache_totals(cache); /* forgets earlier removals */
    site_cache_sweep(reader, is_of_one_byte, 7);
    return site_cache_has_shrunk(cache);
}

static void a_sweep_asks_for_some_entries_and_continues(void **state)
{
    enum { ENTRIES = 300, STEPS = 256, IDLE = 280 };
    char name[16];
    (void)state;
    for (int policy = SITE_CACHE_SIEVE; policy <= SITE_CACHE_LRU; policy++) {
        struct site_cache *cache = new_cache((enum site_cache_policy)policy, 8000, ENTRIES, 10);
        struct site_cache_reader *reader = site_cache_reader(cache, 0);
        asked = 0;
        assert_false(sweeps_one(reader, cache));
        assert_int_equal(asked, 0);
        for (int i = 0; i < ENTRIES; i++) {
            (void)snprintf(name, sizeof(name), "e%d", i);
            assert_true(put(reader, cache, name, i == IDLE ? 1 : 2, 0));
        }
        assert_false(sweeps_one(reader, cache));
        assert_int_equal(asked, STEPS);
        (void)snprintf(name, sizeof(name), "e%d", STEPS); /* where it continues */
        site_cache_remove(reader, find(reader, cache, name));
        assert_true(sweeps_one(reader, cache));
        assert_int_equal(asked, 2 * STEPS);
        (void)snprintf(name, sizeof(name), "e%d", IDLE);
        assert_null(find(reader, cache, name));
        assert_int_equal(site_cache_totals(cache).entries, ENTRIES - 2);
        assert_int_equal(site_cache_totals(cache).evicted, 1);
        assert_false(sweeps_one(reader, cache));
        site_cache_free(cache);
        assert_int_equal(released, ENTRIES);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_was_put_in_and_nothing_else),
        cmocka_unit_test(tells_keys_with_the_same_hash_apart),
        cmocka_unit_test(a_value_lives_until_its_creator_and_the_cache_release_it),
        cmocka_unit_test(a_found_entry_stays_valid_until_the_next_quiesce),
        cmocka_unit_test(reclamation_waits_for_every_online_reader),
        cmocka_unit_test(a_held_entry_outlives_eviction_and_the_cache),
        cmocka_unit_test(a_newer_value_replaces_one_with_the_same_key),
        cmocka_unit_test(a_replacement_in_a_full_cache_evicts_no_entry),
        cmocka_unit_test(refuses_an_entry_above_its_share),
        cmocka_unit_test(keeps_nothing_without_bytes_or_entries),
        cmocka_unit_test(an_entry_is_inserted_once),
        cmocka_unit_test(refuses_entries_only_while_too_much_is_retired),
        cmocka_unit_test(evicts_in_the_order_of_its_policy),
        cmocka_unit_test(a_descriptor_is_freed_by_an_entry_that_holds_one),
        cmocka_unit_test(each_cache_hashes_with_its_own_seed),
        cmocka_unit_test(a_table_beyond_all_memory_is_refused),
        cmocka_unit_test(a_sweep_asks_for_some_entries_and_continues),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
