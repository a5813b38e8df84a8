/* SPDX-License-Identifier: MIT
 *
 * The allocator of cached files under random use. Every byte of a block has the number of the
 * block, so blocks that overlap show. When all blocks are back, one block of almost the whole
 * memory fits, so none was lost between two that were joined. SEED=n replays a run.
 */
#include "site/allocator.h"

#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <pthread.h>
#include <string.h>

enum { BYTES = 1 << 20, BLOCKS = 3000, STEPS = 200 * 1000, THREADS = 4 };

struct owned {
    unsigned char *at;
    size_t size;
    unsigned char mark;
};

/* Sizes of entries and of files, some of which no block of the mapping can have. */
static size_t pick_size(struct random_source *random)
{
    static const size_t most[] = { 40, 300, 2000, 20000, 200000, 2 * (size_t)BYTES };
    return random_below(random, most[random_below(random, random_one_in(random, 50) ? 6 : 4)]);
}

static bool is_intact(const struct owned *block)
{
    for (size_t i = 0; i < block->size; i++)
        if (block->at[i] != block->mark)
            return false;
    return true;
}

/* Takes or gives back the block. False: a block changed in the hands of its owner. */
static bool step(struct site_allocator *allocator, struct random_source *random,
                 struct owned *block)
{
    if (block->at != NULL) {
        const bool intact = is_intact(block);
        site_allocator_give(allocator, block->at);
        block->at = NULL;
        return intact;
    }
    block->size = pick_size(random);
    block->mark = (unsigned char)random_u64(random);
    block->at = site_allocator_take(allocator, block->size);
    if (block->at == NULL || (uintptr_t)block->at % SITE_ALLOCATOR_ALIGNMENT != 0)
        return false;
    memset(block->at, block->mark, block->size);
    return true;
}

static bool return_all(struct site_allocator *allocator, struct owned *blocks, size_t count)
{
    bool intact = true;
    for (size_t i = 0; i < count; i++)
        if (blocks[i].at != NULL)
            intact = step(allocator, NULL, &blocks[i]) && intact;
    return intact;
}

/* One block of the whole memory, which is in the mapping and not of malloc. */
static void assert_whole(struct site_allocator *allocator)
{
    assert_int_equal(site_allocator_used(allocator), 0);
    void *whole = site_allocator_take(allocator, BYTES - BYTES / 8);
    assert_non_null(whole);
    assert_in_range(site_allocator_used(allocator), BYTES - BYTES / 8, 2 * (uintmax_t)BYTES);
    site_allocator_give(allocator, whole);
    assert_int_equal(site_allocator_used(allocator), 0);
}

static void blocks_never_overlap(void **state)
{
    (void)state;
    static struct owned blocks[BLOCKS];
    struct random_source random = random_start();
    struct site_allocator *allocator = site_allocator_new(BYTES);
    assert_non_null(allocator);
    size_t most = 0;
    for (unsigned i = 0; i < STEPS; i++) {
        /* A few blocks, then many: the memory is almost empty, then too small. */
        const size_t count = (i / 20000) % 2 == 0 ? BLOCKS / 100 : BLOCKS;
        assert_true(step(allocator, &random, &blocks[random_below(&random, count)]));
        const size_t used = site_allocator_used(allocator);
        most = used > most ? used : most;
    }
    /* The blocks filled the memory: less than a tenth was lost between them. */
    assert_in_range(most, BYTES - BYTES / 10, 2 * (uintmax_t)BYTES);
    assert_true(return_all(allocator, blocks, BLOCKS));
    assert_whole(allocator);
    site_allocator_free(allocator);
}

static void a_block_has_eight_bytes_of_administration(void **state)
{
    (void)state;
    struct site_allocator *allocator = site_allocator_new(BYTES);
    static const size_t sizes[] = { 0, 1, 24, 25, 40, 41, 1000, 65536 };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        void *block = site_allocator_take(allocator, sizes[i]);
        assert_non_null(block);
        assert_in_range(site_allocator_used(allocator), sizes[i] + 8,
                        (sizes[i] < 24 ? 24 : sizes[i]) + 8 + SITE_ALLOCATOR_ALIGNMENT - 1);
        site_allocator_give(allocator, block);
    }
    site_allocator_free(allocator);
}

static void a_block_that_does_not_fit_is_one_of_malloc(void **state)
{
    (void)state;
    struct site_allocator *allocator = site_allocator_new(BYTES);
    char *first = site_allocator_take(allocator, BYTES - BYTES / 8);
    const size_t used = site_allocator_used(allocator);
    char *second = site_allocator_take(allocator, BYTES / 2);
    char *third = site_allocator_take(allocator, 64 * (size_t)BYTES);
    assert_non_null(first);
    assert_non_null(second);
    assert_non_null(third);
    assert_int_equal(site_allocator_used(allocator), used);
    memset(second, 1, BYTES / 2);
    site_allocator_give(allocator, second);
    site_allocator_give(allocator, third);
    site_allocator_give(allocator, NULL);
    assert_int_equal(site_allocator_used(allocator), used);
    site_allocator_give(allocator, first);
    site_allocator_free(allocator);
}

static void without_an_allocator_there_is_malloc(void **state)
{
    (void)state;
    void *block = site_allocator_take(NULL, 100);
    assert_non_null(block);
    assert_int_equal(site_allocator_used(NULL), 0);
    site_allocator_give(NULL, block);
    site_allocator_free(NULL);
    assert_null(site_allocator_new((size_t)1 << 60));
}

struct user {
    pthread_t id;
    struct site_allocator *allocator;
    struct random_source random;
    bool failed;
};

static void *use(void *user_)
{
    struct user *user = user_;
    struct owned blocks[100] = { 0 };
    for (unsigned i = 0; i < STEPS / 10 && !user->failed; i++)
        user->failed =
            !step(user->allocator, &user->random, &blocks[random_below(&user->random, 100)]);
    user->failed = !return_all(user->allocator, blocks, 100) || user->failed;
    return NULL;
}

static void threads_share_an_allocator(void **state)
{
    (void)state;
    struct random_source random = random_start();
    struct user users[THREADS];
    struct site_allocator *allocator = site_allocator_new(BYTES);
    for (unsigned i = 0; i < THREADS; i++) {
        users[i] =
            (struct user){ .allocator = allocator, .random = { .state = random_u64(&random) } };
        assert_int_equal(pthread_create(&users[i].id, NULL, use, &users[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(users[i].id, NULL), 0);
        assert_false(users[i].failed);
    }
    assert_whole(allocator);
    site_allocator_free(allocator);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_never_overlap),
        cmocka_unit_test(a_block_has_eight_bytes_of_administration),
        cmocka_unit_test(a_block_that_does_not_fit_is_one_of_malloc),
        cmocka_unit_test(without_an_allocator_there_is_malloc),
        cmocka_unit_test(threads_share_an_allocator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
