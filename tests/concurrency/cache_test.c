/* SPDX-License-Identifier: MIT
 *
 * Several threads use one cache. Some find and hold entries, some insert, replace and
 * remove them. Every word of a value names the value. A value that is released is
 * overwritten before it is freed. So the test finds a use after free, or a mixture of
 * two values, even without a sanitizer. It runs for a bounded time, also under
 * ThreadSanitizer and AddressSanitizer.
 */
#include "site/cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

enum { THREADS = 6, WRITERS = 2, KEYS = 64, WORDS = 16, HELD = 8, RUN_MS = 400 };

struct value {
    struct site_cache_entry cache;
    char name[8];
    struct site_cache_link link;
    unsigned key;
    uint64_t words[WORDS]; /* all the serial */
};

static _Atomic uint64_t made;
static _Atomic uint64_t released;
static _Atomic uint64_t wrong; /* asserting is for the main thread only */

static void note_if(bool is_wrong)
{
    if (is_wrong)
        atomic_fetch_add(&wrong, 1);
}

static void release_value(struct site_cache_entry *entry)
{
    struct value *value = (struct value *)entry;
    for (unsigned i = 0; i < WORDS; i++)
        value->words[i] = UINT64_MAX - i;
    value->key = KEYS;
    atomic_fetch_add(&released, 1);
    free(value);
}

static void verify(const struct value *value, unsigned key)
{
    note_if(value->key != key);
    for (unsigned i = 1; i < WORDS; i++)
        note_if(value->words[i] != value->words[0]);
}

struct thread {
    pthread_t id;
    struct site_cache *cache;
    unsigned index;
    bool one_chain; /* all keys have the same hash */
    uint64_t random;
    uint64_t hits;
    struct value *held[HELD];
};

static unsigned below(struct thread *t, unsigned bound)
{
    t->random ^= t->random << 13;
    t->random ^= t->random >> 7;
    t->random ^= t->random << 17;
    return (unsigned)((t->random >> 16) % bound);
}

static struct span key_name(unsigned key, char name[8])
{
    return span_of(name, (size_t)snprintf(name, 8, "/%u", key));
}

static uint64_t hash(const struct thread *t, struct span key)
{
    return t->one_chain ? 7 : site_cache_hash(t->cache, key);
}

static struct value *look(struct thread *t, struct site_cache_reader *reader, unsigned key)
{
    char name[8];
    const struct span text = key_name(key, name);
    return (struct value *)site_cache_find(reader, hash(t, text), text);
}

static struct site_cache_link *open_link_of(struct site_cache_entry *entry)
{
    return &((struct value *)entry)->link;
}

static const struct site_cache_kind kind = { release_value, open_link_of };

static void put(struct thread *t, struct site_cache_reader *reader, unsigned key)
{
    struct value *value = calloc(1, sizeof(*value));
    if (value == NULL)
        abort();
    const uint64_t serial = atomic_fetch_add(&made, 1) + 1;
    for (unsigned i = 0; i < WORDS; i++)
        value->words[i] = serial;
    value->key = key;
    const struct span name = key_name(key, value->name);
    site_cache_init(&value->cache, &kind, hash(t, name), name);
    value->cache.size_bytes = (uint32_t)(sizeof(*value) + below(t, 200));
    value->cache.descriptors = below(t, 4) == 0;
    const bool kept = site_cache_insert(reader, &value->cache);
    verify(value, key);
    site_cache_release(&value->cache);
    if (!kept) /* too much is retired: normal when a thread sleeps in the middle of a turn */
        (void)sched_yield();
}

/* One found value: looked at, perhaps held across turns in place of an older one. */
static void use(struct thread *t, struct value *value, unsigned key)
{
    verify(value, key);
    t->hits++;
    struct value **place = &t->held[below(t, HELD)];
    if (below(t, 8) != 0)
        return;
    if (*place != NULL) {
        verify(*place, (*place)->key);
        site_cache_release(&(*place)->cache);
    }
    site_cache_hold(&value->cache);
    *place = value;
}

static void change(struct thread *t, struct site_cache_reader *reader, unsigned key)
{
    struct value *value = look(t, reader, key);
    if (value != NULL && below(t, 3) == 0)
        site_cache_remove(reader, &value->cache);
    else
        put(t, reader, key);
    if (value != NULL)
        verify(value, key); /* replaced, evicted or removed, it is still ours until we are quiet */
}

static bool time_is_up(const struct timespec *start)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - start->tv_sec) * 1000 + (now.tv_nsec - start->tv_nsec) / 1000000 >= RUN_MS;
}

/* One turn of a loop: several keys, then quiet. */
static void turn(struct thread *t, struct site_cache_reader *reader)
{
    struct value *seen[4];
    unsigned keys[4];
    for (unsigned i = 0; i < 4; i++) {
        keys[i] = below(t, KEYS);
        seen[i] = look(t, reader, keys[i]);
        if (seen[i] != NULL)
            use(t, seen[i], keys[i]);
        if (t->index < WRITERS)
            change(t, reader, keys[i]);
        else if (seen[i] == NULL && below(t, 4) == 0)
            put(t, reader, keys[i]);
    }
    for (unsigned i = 0; i < 4; i++)
        if (seen[i] != NULL)
            verify(seen[i], keys[i]);
    if (below(t, 16) == 0) {
        site_cache_offline(reader);
        site_cache_online(reader);
    } else {
        site_cache_quiesce(reader);
    }
}

static void *run_thread(void *argument)
{
    struct thread *t = argument;
    struct site_cache_reader *reader = site_cache_reader(t->cache, t->index);
    struct timespec start_time;
    (void)clock_gettime(CLOCK_MONOTONIC, &start_time);
    /* No thread ends before everything that is tested has happened, however busy the machine is. */
    while (!time_is_up(&start_time) || t->hits == 0 || site_cache_totals(t->cache).evicted == 0)
        for (unsigned i = 0; i < 64; i++)
            turn(t, reader);
    site_cache_offline(reader);
    for (unsigned i = 0; i < HELD; i++) {
        if (t->held[i] == NULL)
            continue;
        verify(t->held[i], t->held[i]->key);
        site_cache_release(&t->held[i]->cache);
    }
    return NULL;
}

static struct site_cache *new_cache(struct site_cache_limits limits, unsigned readers)
{
    atomic_store(&made, 0);
    atomic_store(&released, 0);
    atomic_store(&wrong, 0);
    struct site_cache *cache = site_cache_new(limits, readers);
    assert_non_null(cache);
    return cache;
}

static void start(struct thread *threads, struct site_cache *cache, bool one_chain,
                  void *(*run)(void *))
{
    for (unsigned i = 0; i < THREADS; i++) {
        threads[i] = (struct thread){
            .cache = cache, .index = i, .one_chain = one_chain, .random = 88172645463325252u + i
        };
        assert_int_equal(pthread_create(&threads[i].id, NULL, run, &threads[i]), 0);
    }
}

static void join(struct thread *threads)
{
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i].id, NULL), 0);
    assert_int_equal(atomic_load(&wrong), 0);
}

static void run(enum site_cache_policy policy)
{
    const struct site_cache_limits limits = { policy, 40 * sizeof(struct value), KEYS / 2,
                                              KEYS / 8 };
    struct site_cache *cache = new_cache(limits, THREADS);
    struct thread threads[THREADS];
    start(threads, cache, false, run_thread);
    join(threads);

    const struct site_cache_totals totals = site_cache_totals(cache);
    assert_true(totals.bytes <= limits.bytes);
    assert_true(totals.entries <= limits.entries);
    assert_true(totals.descriptors <= limits.descriptors);
    assert_int_equal(totals.inserted + totals.refused, atomic_load(&made));
    site_cache_free(cache);
    assert_int_equal(atomic_load(&released), atomic_load(&made));
}

static void a_found_value_is_whole_under_sieve(void **state)
{
    (void)state;
    run(SITE_CACHE_SIEVE);
}

static void a_found_value_is_whole_under_lru(void **state)
{
    (void)state;
    run(SITE_CACHE_LRU);
}

/* One thread replaces one key all the time. It also inserts and removes other keys that
 * come before it in the same chain. The other threads find the key every time, and never
 * an older value than they have seen. */
static void *follow_one_key(void *argument)
{
    struct thread *t = argument;
    struct site_cache_reader *reader = site_cache_reader(t->cache, t->index);
    struct timespec start_time;
    (void)clock_gettime(CLOCK_MONOTONIC, &start_time);
    uint64_t latest = 0;
    do {
        for (unsigned i = 0; i < 64; i++) {
            if (t->index == 0) {
                put(t, reader, 0);
                change(t, reader, 1 + below(t, 4));
                change(t, reader, 1 + below(t, 4));
            }
            const struct value *value = look(t, reader, 0);
            note_if(value == NULL || value->words[0] < latest);
            if (value != NULL) {
                verify(value, 0);
                latest = value->words[0];
                t->hits++;
            }
            site_cache_quiesce(reader);
        }
    } while (!time_is_up(&start_time));
    site_cache_offline(reader);
    return NULL;
}

static void a_replaced_key_is_always_found(void **state)
{
    (void)state;
    for (int policy = SITE_CACHE_SIEVE; policy <= SITE_CACHE_LRU; policy++) {
        const struct site_cache_limits limits = { (enum site_cache_policy)policy, 1 << 20, KEYS,
                                                  KEYS };
        struct site_cache *cache = new_cache(limits, THREADS + 1);
        struct thread threads[THREADS];
        struct thread first = { .cache = cache, .one_chain = true, .random = 1 };
        struct site_cache_reader *reader = site_cache_reader(cache, THREADS);
        put(&first, reader, 0);
        site_cache_offline(reader);
        start(threads, cache, true, follow_one_key);
        join(threads);
        assert_true(site_cache_totals(cache).inserted > 1);
        site_cache_free(cache);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_found_value_is_whole_under_sieve),
        cmocka_unit_test(a_found_value_is_whole_under_lru),
        cmocka_unit_test(a_replaced_key_is_always_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
