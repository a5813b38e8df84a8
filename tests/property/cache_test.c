/* SPDX-License-Identifier: MIT
 *
 * Both policies against a model of the cache that is too plain to be wrong: an
 * array in queue order and nothing else. After each of several hundred thousand
 * random operations the two agree on the hit, the victim, every total and every
 * bound, and at the end on what is still there and what has been released.
 *
 * SEED=n replays a run.
 */
#include "site/cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <stdio.h>
#include <time.h>

enum { KEYS = 200, OPERATIONS = 200 * 1000, RESIDENT_MAX = 64 };

static uint64_t random_state;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static unsigned below(unsigned bound)
{
    return (unsigned)((next_random() >> 16) % bound);
}

struct value {
    struct site_cache_entry cache;
    uint64_t serial;
    char name[8];
    struct site_cache_link link;
};

static uint64_t released;

static void release_value(struct site_cache_entry *entry)
{
    released++;
    free(entry);
}

/* The model. Index 0 is the oldest. */
struct model_entry {
    unsigned key;
    uint64_t serial;
    size_t size_bytes;
    uint32_t descriptors;
    bool visited;
};

struct model {
    struct site_cache_limits limits;
    struct model_entry at[RESIDENT_MAX + 1];
    size_t count;
    uint64_t hand_serial[2]; /* who the hands of sieve point at, 0: the oldest */
    struct site_cache_totals totals;
};

static struct model_entry *model_find(struct model *m, unsigned key)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->at[i].key == key)
            return &m->at[i];
    return NULL;
}

static bool model_counts(const struct model_entry *e, unsigned queue)
{
    return queue == 0 || e->descriptors > 0;
}

/* The first entry of the queue that is no older than `from`. */
static size_t model_next(const struct model *m, size_t from, unsigned queue)
{
    while (from < m->count && !model_counts(&m->at[from], queue))
        from++;
    return from;
}

static void model_take_out(struct model *m, size_t index)
{
    for (unsigned queue = 0; queue < 2; queue++) {
        if (m->hand_serial[queue] != m->at[index].serial)
            continue;
        const size_t next = model_next(m, index + 1, queue);
        m->hand_serial[queue] = next < m->count ? m->at[next].serial : 0;
    }
    m->totals.bytes -= m->at[index].size_bytes;
    m->totals.descriptors -= m->at[index].descriptors;
    m->totals.retired_bytes += m->at[index].size_bytes;
    m->count--;
    m->totals.entries = m->count;
    memmove(&m->at[index], &m->at[index + 1], (m->count - index) * sizeof(m->at[0]));
}

static size_t model_victim(struct model *m, unsigned queue)
{
    if (m->limits.policy == SITE_CACHE_LRU)
        return model_next(m, 0, queue);
    size_t at = 0;
    for (size_t i = 0; m->hand_serial[queue] != 0 && i < m->count; i++)
        if (m->at[i].serial == m->hand_serial[queue])
            at = i;
    for (;;) {
        at = model_next(m, at, queue);
        if (at == m->count)
            at = model_next(m, 0, queue);
        if (!m->at[at].visited)
            break;
        m->at[at].visited = false;
        at++;
    }
    m->hand_serial[queue] = m->at[at].serial;
    return at;
}

static bool model_insert(struct model *m, struct model_entry new)
{
    const struct site_cache_limits *l = &m->limits;
    m->totals.refused++; /* taken back at the end */
    if (new.size_bytes > l->bytes / 8 || new.descriptors > l->descriptors)
        return false;
    struct model_entry *old;
    for (;;) {
        if (m->totals.retired_bytes > l->bytes) /* a small cache */
            return false;
        old = model_find(m, new.key);
        const size_t bytes = m->totals.bytes - (old != NULL ? old->size_bytes : 0);
        const size_t entries = m->count - (old != NULL ? 1 : 0);
        const uint32_t descriptors = m->totals.descriptors - (old != NULL ? old->descriptors : 0);
        if (bytes + new.size_bytes > l->bytes || entries + 1 > l->entries)
            model_take_out(m, model_victim(m, 0));
        else if (descriptors + new.descriptors > l->descriptors)
            model_take_out(m, model_victim(m, 1));
        else
            break;
        m->totals.evicted++;
    }
    if (old != NULL) {
        new.visited = old->visited;
        model_take_out(m, (size_t)(old - m->at));
    }
    m->at[m->count++] = new;
    m->totals.entries = m->count;
    m->totals.bytes += new.size_bytes;
    m->totals.descriptors += new.descriptors;
    m->totals.inserted++;
    m->totals.refused--;
    return true;
}

static bool model_hit(struct model *m, unsigned key, uint64_t *ret_serial)
{
    struct model_entry *found = model_find(m, key);
    if (found == NULL)
        return false;
    *ret_serial = found->serial;
    found->visited = true;
    if (m->limits.policy == SITE_CACHE_LRU) {
        const struct model_entry used = *found;
        const size_t index = (size_t)(found - m->at);
        memmove(found, found + 1, (m->count - index - 1) * sizeof(*found));
        m->at[m->count - 1] = used;
    }
    return true;
}

/* The two side by side. */
struct pair {
    struct model model;
    struct site_cache *cache;
    struct site_cache_reader *reader;
    uint64_t made; /* values so far; the last serial */
};

static struct span key_name(unsigned key, char name[8])
{
    return span_of(name, (size_t)snprintf(name, 8, "/%u", key));
}

static struct value *look(struct pair *p, unsigned key)
{
    char name[8];
    const struct span text = key_name(key, name);
    return (struct value *)site_cache_find(p->reader, site_cache_hash(p->cache, text), text);
}

/* Few keys are asked for often and many seldom, as with real sites. */
static unsigned pick_key(void)
{
    return below(2) == 0 ? below(KEYS / 10) : below(KEYS);
}

static void step_find(struct pair *p)
{
    const unsigned key = pick_key();
    uint64_t serial = 0;
    const bool expected = model_hit(&p->model, key, &serial);
    const struct value *found = look(p, key);
    assert_int_equal(found != NULL, expected);
    if (found != NULL)
        assert_int_equal(found->serial, serial);
}

static struct site_cache_link *open_link_of(struct site_cache_entry *entry)
{
    return &((struct value *)entry)->link;
}

static const struct site_cache_kind kind = { release_value, open_link_of };

static void step_insert(struct pair *p)
{
    const unsigned key = pick_key();
    struct value *value = calloc(1, sizeof(*value));
    assert_non_null(value);
    value->serial = ++p->made;
    const struct span name = key_name(key, value->name);
    site_cache_init(&value->cache, &kind, site_cache_hash(p->cache, name), name);
    value->cache.size_bytes = (uint32_t)(1 + below(below(20) == 0 ? 1500 : 300));
    value->cache.descriptors = (uint8_t)(below(3) == 0 ? 1 + below(3) : 0);
    const struct model_entry entry = {
        .key = key,
        .serial = value->serial,
        .size_bytes = value->cache.size_bytes,
        .descriptors = value->cache.descriptors,
    };
    const bool expected = model_insert(&p->model, entry);
    assert_int_equal(site_cache_insert(p->reader, &value->cache), expected);
    site_cache_release(&value->cache);
}

static void step_remove(struct pair *p)
{
    const unsigned key = pick_key();
    uint64_t serial = 0;
    const bool expected = model_hit(&p->model, key, &serial);
    struct value *found = look(p, key);
    assert_int_equal(found != NULL, expected);
    if (found == NULL)
        return;
    model_take_out(&p->model, (size_t)(model_find(&p->model, key) - p->model.at));
    site_cache_remove(p->reader, &found->cache);
}

static void step_quiesce(struct pair *p)
{
    site_cache_quiesce(p->reader);
    p->model.totals.retired_bytes = 0;
}

static void compare_totals(struct pair *p)
{
    const struct site_cache_totals got = site_cache_totals(p->cache);
    const struct site_cache_totals *want = &p->model.totals;
    const struct site_cache_limits *limits = &p->model.limits;
    assert_int_equal(got.bytes, want->bytes);
    assert_int_equal(got.entries, want->entries);
    assert_int_equal(got.descriptors, want->descriptors);
    assert_int_equal(got.retired_bytes, want->retired_bytes);
    assert_int_equal(got.inserted, want->inserted);
    assert_int_equal(got.evicted, want->evicted);
    assert_int_equal(got.refused, want->refused);
    assert_true(got.bytes <= limits->bytes);
    assert_true(got.entries <= limits->entries);
    assert_true(got.descriptors <= limits->descriptors);
}

/* Everything that was made is in the cache, retired, or released. */
static void compare_contents(struct pair *p)
{
    step_quiesce(p);
    assert_int_equal(released, p->made - p->model.count);
    for (unsigned key = 0; key < KEYS; key++) {
        uint64_t serial = 0;
        const bool expected = model_hit(&p->model, key, &serial);
        const struct value *found = look(p, key);
        assert_int_equal(found != NULL, expected);
        if (found != NULL)
            assert_int_equal(found->serial, serial);
    }
}

static void run(struct site_cache_limits limits)
{
    struct pair p = { .model.limits = limits, .cache = site_cache_new(limits, 1) };
    assert_non_null(p.cache);
    p.reader = site_cache_reader(p.cache, 0);
    released = 0;
    for (unsigned i = 0; i < OPERATIONS; i++) {
        const unsigned dice = below(100);
        if (dice < 50)
            step_find(&p);
        else if (dice < 85)
            step_insert(&p);
        else if (dice < 90)
            step_remove(&p);
        else
            step_quiesce(&p);
        compare_totals(&p);
        if (i % 1000 == 0)
            compare_contents(&p);
    }
    compare_contents(&p);
    /* The run went through what it is meant to try. */
    assert_true(p.model.totals.evicted > OPERATIONS / 100);
    assert_true(p.model.totals.refused > 0);
    site_cache_free(p.cache);
    assert_int_equal(released, p.made);
}

static void agrees_with_the_model_when_bytes_are_short(void **state)
{
    (void)state;
    run((struct site_cache_limits){ SITE_CACHE_SIEVE, 6000, RESIDENT_MAX, 1000 });
    run((struct site_cache_limits){ SITE_CACHE_LRU, 6000, RESIDENT_MAX, 1000 });
}

static void agrees_with_the_model_when_entries_are_short(void **state)
{
    (void)state;
    run((struct site_cache_limits){ SITE_CACHE_SIEVE, 11000, 30, 1000 });
    run((struct site_cache_limits){ SITE_CACHE_LRU, 11000, 30, 1000 });
}

static void agrees_with_the_model_when_descriptors_are_short(void **state)
{
    (void)state;
    run((struct site_cache_limits){ SITE_CACHE_SIEVE, 11000, RESIDENT_MAX, 10 });
    run((struct site_cache_limits){ SITE_CACHE_LRU, 11000, RESIDENT_MAX, 10 });
}

int main(void)
{
    const char *seed = getenv("SEED");
    random_state = seed != NULL ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL);
    printf("SEED=%llu\n", (unsigned long long)random_state);
    random_state = random_state * UINT64_C(0x9e3779b97f4a7c15) | 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_the_model_when_bytes_are_short),
        cmocka_unit_test(agrees_with_the_model_when_entries_are_short),
        cmocka_unit_test(agrees_with_the_model_when_descriptors_are_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
