/* SPDX-License-Identifier: MIT
 *
 * Blocks lie one behind the other in the mapping. Each begins with its size and two flags. Free
 * blocks are in lists by their size: the first level is the power of two, the second divides it
 * into 16 parts. Two levels of bitmaps find the first list that has a block which is large enough.
 *
 * The last 8 bytes of a free block hold its size, so that the block behind it can join it. While a
 * block is in use, these bytes are the caller's.
 */
#include "site/allocator.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
    PARTS_LOG2 = 4,
    PARTS = 1 << PARTS_LOG2,
    SMALL_LOG2 = 8, /* below 256 bytes the parts are 16 bytes each */
    POWERS = 40,
    TAG_BYTES = sizeof(size_t),
    LEAST = 24, /* two links, and the size behind them */
};

#define FREE       ((size_t)1)
#define AFTER_FREE ((size_t)2) /* the block before this one is free */
#define FLAGS      (FREE | AFTER_FREE)

static_assert(sizeof(size_t) == 8 && sizeof(void *) == 8, "weir needs 64 bits");

/* `before` belongs to the block before this one, and is its size while that block is free. */
struct block {
    size_t before;
    size_t tag;                    /* size of the block, a multiple of 8, and the flags */
    struct block *next, *previous; /* of a free block: its list */
};

struct site_allocator {
    pthread_mutex_t lock;
    char *memory;
    size_t bytes;
    size_t used;
    uint64_t powers; /* bit: a list of this power of two has a block */
    uint16_t parts[POWERS];
    struct block *first[POWERS][PARTS];
};

static size_t size_of(const struct block *block)
{
    return block->tag & ~FLAGS;
}

static void *bytes_of(struct block *block)
{
    return &block->next;
}

static struct block *block_of(void *bytes)
{
    return (struct block *)(void *)((char *)bytes - offsetof(struct block, next));
}

static struct block *block_after(struct block *block)
{
    return (struct block *)(void *)((char *)bytes_of(block) + size_of(block) - TAG_BYTES);
}

static struct block *block_before(struct block *block)
{
    return (struct block *)(void *)((char *)block - (block->before - TAG_BYTES) -
                                    offsetof(struct block, next));
}

/* ---- lists ---- */

struct place {
    unsigned power, part;
};

static unsigned log2_of(size_t size)
{
    return 63 - (unsigned)__builtin_clzl(size);
}

static struct place place_of(size_t size)
{
    if (size < (size_t)1 << SMALL_LOG2)
        return (struct place){ 0, (unsigned)(size >> (SMALL_LOG2 - PARTS_LOG2)) };
    const unsigned power = log2_of(size);
    return (struct place){ power - SMALL_LOG2 + 1,
                           (unsigned)(size >> (power - PARTS_LOG2)) & (PARTS - 1) };
}

static void insert_free(struct site_allocator *a, struct block *block)
{
    const struct place at = place_of(size_of(block));
    block->previous = NULL;
    block->next = a->first[at.power][at.part];
    if (block->next != NULL)
        block->next->previous = block;
    a->first[at.power][at.part] = block;
    a->powers |= (uint64_t)1 << at.power;
    a->parts[at.power] |= (uint16_t)(1u << at.part);
}

static void remove_free(struct site_allocator *a, struct block *block)
{
    const struct place at = place_of(size_of(block));
    if (block->next != NULL)
        block->next->previous = block->previous;
    if (block->previous != NULL) {
        block->previous->next = block->next;
        return;
    }
    a->first[at.power][at.part] = block->next;
    if (block->next != NULL)
        return;
    a->parts[at.power] &= (uint16_t) ~(1u << at.part);
    if (a->parts[at.power] == 0)
        a->powers &= ~((uint64_t)1 << at.power);
}

/* A free block of at least `size`, the smallest but for the rounding to a list, or NULL. */
static struct block *find_free(const struct site_allocator *a, size_t size)
{
    /* In the list of its own size, a block may be smaller. In the next list none is. */
    const unsigned power_of_part = (size < (size_t)1 << SMALL_LOG2 ? SMALL_LOG2 : log2_of(size)) -
                                   PARTS_LOG2;
    size += ((size_t)1 << power_of_part) - 1;
    const struct place least = place_of(size);
    unsigned power = least.power;
    unsigned parts = a->parts[power] & ~0u << least.part;
    if (parts == 0) {
        const uint64_t powers = a->powers & ~(uint64_t)0 << (power + 1);
        if (powers == 0)
            return NULL;
        power = (unsigned)__builtin_ctzl(powers);
        parts = a->parts[power];
    }
    return a->first[power][__builtin_ctz(parts)];
}

/* ---- blocks ---- */

/* Writes the tag of a free block, and what the block behind it knows of it. */
static void mark_free(struct block *block, size_t size)
{
    block->tag = size | FREE; /* the block before it is in use, or they would be one */
    struct block *after = block_after(block);
    after->before = size;
    after->tag |= AFTER_FREE;
}

/* Uses `size` bytes of a free block that is in no list, and makes the rest free again. */
static void use_block(struct site_allocator *a, struct block *block, size_t size)
{
    const size_t whole = size_of(block);
    if (whole - size >= LEAST + TAG_BYTES) {
        block->tag = size;
        struct block *rest = block_after(block);
        mark_free(rest, whole - size - TAG_BYTES);
        insert_free(a, rest);
    } else {
        block->tag = whole;
        block_after(block)->tag &= ~AFTER_FREE;
    }
    a->used += size_of(block) + TAG_BYTES;
}

static void free_block(struct site_allocator *a, struct block *block)
{
    CHECK((block->tag & FREE) == 0);
    size_t size = size_of(block);
    a->used -= size + TAG_BYTES;
    struct block *const after = block_after(block);
    if ((after->tag & FREE) != 0) {
        remove_free(a, after);
        size += size_of(after) + TAG_BYTES;
    }
    if ((block->tag & AFTER_FREE) != 0) {
        block = block_before(block);
        remove_free(a, block);
        size += size_of(block) + TAG_BYTES;
    }
    mark_free(block, size);
    insert_free(a, block);
}

/* ---- public ---- */

struct site_allocator *site_allocator_new(size_t bytes)
{
    bytes = (bytes | (64 * 1024 - 1)) + 1;
    struct site_allocator *a = calloc(1, sizeof(*a));
    if (a == NULL || bytes >> (SMALL_LOG2 + POWERS - 2) != 0 ||
        pthread_mutex_init(&a->lock, NULL) != 0) {
        free(a);
        return NULL;
    }
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        (void)pthread_mutex_destroy(&a->lock);
        free(a);
        return NULL;
    }
    a->memory = memory;
    a->bytes = bytes;
    /* One free block, and behind it the head of an empty block that is never free. */
    struct block *whole = memory;
    mark_free(whole, bytes - offsetof(struct block, next) - TAG_BYTES);
    insert_free(a, whole);
    return a;
}

void site_allocator_free(struct site_allocator *a)
{
    if (a == NULL || a->used > 0)
        return;
    (void)munmap(a->memory, a->bytes);
    (void)pthread_mutex_destroy(&a->lock);
    free(a);
}

void *site_allocator_take(struct site_allocator *a, size_t size)
{
    if (a == NULL || size > a->bytes)
        return malloc(size);
    size = size < LEAST ? LEAST
                        : ((size + TAG_BYTES - 1) | (SITE_ALLOCATOR_ALIGNMENT - 1)) + 1 - TAG_BYTES;
    CHECK(pthread_mutex_lock(&a->lock) == 0);
    struct block *block = find_free(a, size);
    if (block != NULL) {
        remove_free(a, block);
        use_block(a, block, size);
    }
    CHECK(pthread_mutex_unlock(&a->lock) == 0);
    return block != NULL ? bytes_of(block) : malloc(size);
}

void site_allocator_give(struct site_allocator *a, void *bytes)
{
    /* A pointer of malloc is below the mapping or behind it. */
    if (a == NULL || (uintptr_t)bytes - (uintptr_t)a->memory >= a->bytes) {
        free(bytes);
        return;
    }
    CHECK(pthread_mutex_lock(&a->lock) == 0);
    free_block(a, block_of(bytes));
    CHECK(pthread_mutex_unlock(&a->lock) == 0);
}

size_t site_allocator_used(struct site_allocator *a)
{
    if (a == NULL)
        return 0;
    CHECK(pthread_mutex_lock(&a->lock) == 0);
    const size_t used = a->used;
    CHECK(pthread_mutex_unlock(&a->lock) == 0);
    return used;
}
