/* SPDX-License-Identifier: MIT
 *
 * The source documents' caches, for comparison; weir uses none of this. All of them are
 * strict in least-recently-used order:
 *
 *   rwlock     hash table with chains and a doubly linked list, below a reader-writer lock:
 *              a hit finds its entry with the read lock, and takes the write lock to move
 *              the entry
 *   stamps     a table of slots below a reader-writer lock: a hit writes the time into its
 *              slot with the read lock. An eviction searches all slots, and a miss is
 *              filled with the lock held
 *   semaphore  the table and list of the first below one named semaphore
 *
 * Where the documents leave a choice, this code takes the faster one: one hash function for
 * all, short use of a found object under the lock, and memory freed outside the lock.
 */
#include "cache.h"

#include "base/check.h"
#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct node {
    struct node *chain, *newer, *older;
    uint64_t hash;
    size_t slot; /* stamps */
    struct span key;
    char name[NAME_BYTES];
    char body[BODY_BYTES];
};

struct slot {
    _Atomic uint64_t used_ns;
    struct node *node;
};

struct shelf {
    size_t capacity, count, bucket_mask;
    struct node **buckets;
    struct node *newest, *oldest;
    struct slot *slots; /* stamps */
    sem_t *semaphore;
    pthread_rwlock_t lock;
};

/* ---- the table ---- */

static struct shelf *make(size_t capacity, unsigned workers)
{
    (void)workers;
    struct shelf *shelf = allocate(sizeof(*shelf));
    size_t buckets = 1;
    while (buckets < capacity)
        buckets *= 2;
    *shelf = (struct shelf){ .capacity = capacity, .bucket_mask = buckets - 1 };
    shelf->buckets = calloc(buckets, sizeof(struct node *));
    shelf->slots = calloc(capacity, sizeof(struct slot));
    CHECK(shelf->buckets != NULL && shelf->slots != NULL);
    CHECK(pthread_rwlock_init(&shelf->lock, NULL) == 0);
    return shelf;
}

static struct node *find(const struct shelf *shelf, uint64_t hash, struct span name)
{
    struct node *node = shelf->buckets[hash & shelf->bucket_mask];
    while (node != NULL && (node->hash != hash || !span_equal(node->key, name)))
        node = node->chain;
    return node;
}

static struct node *bring(uint64_t hash, struct span name)
{
    struct node *node = allocate(sizeof(*node));
    bring_in(node->name, node->body, name);
    node->hash = hash;
    node->key = (struct span){ node->name, name.len };
    return node;
}

static void put_into_table(struct shelf *shelf, struct node *node)
{
    struct node **bucket = &shelf->buckets[node->hash & shelf->bucket_mask];
    node->chain = *bucket;
    *bucket = node;
    shelf->count++;
}

static void take_from_table(struct shelf *shelf, struct node *node)
{
    struct node **link = &shelf->buckets[node->hash & shelf->bucket_mask];
    while (*link != node)
        link = &(*link)->chain;
    *link = node->chain;
    shelf->count--;
}

/* ---- the list ---- */

static void push(struct shelf *shelf, struct node *node)
{
    node->newer = NULL;
    node->older = shelf->newest;
    if (shelf->newest != NULL)
        shelf->newest->newer = node;
    else
        shelf->oldest = node;
    shelf->newest = node;
}

static void pull(struct shelf *shelf, struct node *node)
{
    if (node->newer != NULL)
        node->newer->older = node->older;
    else
        shelf->newest = node->older;
    if (node->older != NULL)
        node->older->newer = node->newer;
    else
        shelf->oldest = node->newer;
}

static void touch(struct shelf *shelf, struct node *node)
{
    if (shelf->newest == node)
        return;
    pull(shelf, node);
    push(shelf, node);
}

/* Inserts a node. Returns the node to free: an evicted one, or the new one when another
 * thread has inserted the same name first. */
static struct node *put(struct shelf *shelf, struct node *node)
{
    if (find(shelf, node->hash, node->key) != NULL)
        return node;
    struct node *victim = shelf->count == shelf->capacity ? shelf->oldest : NULL;
    if (victim != NULL) {
        take_from_table(shelf, victim);
        pull(shelf, victim);
    }
    put_into_table(shelf, node);
    push(shelf, node);
    return victim;
}

/* ---- rwlock ---- */

static void *make_rwlock(size_t capacity, unsigned workers)
{
    return make(capacity, workers);
}

static void lock_for_reading(struct shelf *shelf)
{
    CHECK(pthread_rwlock_rdlock(&shelf->lock) == 0);
}

static void lock_for_writing(struct shelf *shelf)
{
    CHECK(pthread_rwlock_wrlock(&shelf->lock) == 0);
}

static void unlock(struct shelf *shelf)
{
    CHECK(pthread_rwlock_unlock(&shelf->lock) == 0);
}

static bool ask_rwlock(void *cache, unsigned worker, struct span name)
{
    (void)worker;
    struct shelf *shelf = cache;
    const uint64_t hash = hash_bytes(name, 0);
    lock_for_reading(shelf);
    struct node *node = find(shelf, hash, name);
    const bool hit = node != NULL;
    const bool newest = hit && node == shelf->newest;
    if (hit)
        look_at(node->body);
    unlock(shelf);
    if (newest)
        return true;

    struct node *gone = NULL;
    struct node *fresh = hit ? NULL : bring(hash, name);
    lock_for_writing(shelf);
    if (fresh != NULL)
        gone = put(shelf, fresh);
    else if ((node = find(shelf, hash, name)) != NULL) /* evicted between the locks? */
        touch(shelf, node);
    unlock(shelf);
    free(gone);
    return hit;
}

/* ---- stamps ---- */

static void *make_stamps(size_t capacity, unsigned workers)
{
    return make(capacity, workers);
}

/* The free slots are the last ones. */
static size_t slot_for_newcomer(const struct shelf *shelf)
{
    if (shelf->count < shelf->capacity)
        return shelf->count;
    size_t least = 0;
    uint64_t least_ns = UINT64_MAX;
    for (size_t i = 0; i < shelf->capacity; i++) {
        const uint64_t used_ns =
            atomic_load_explicit(&shelf->slots[i].used_ns, memory_order_relaxed);
        if (used_ns < least_ns) {
            least_ns = used_ns;
            least = i;
        }
    }
    return least;
}

static void stamp(struct shelf *shelf, const struct node *node)
{
    atomic_store_explicit(&shelf->slots[node->slot].used_ns, now_ns(), memory_order_relaxed);
}

static struct node *put_into_slot(struct shelf *shelf, struct node *node)
{
    node->slot = slot_for_newcomer(shelf);
    struct node *victim = shelf->slots[node->slot].node;
    if (victim != NULL)
        take_from_table(shelf, victim);
    put_into_table(shelf, node);
    shelf->slots[node->slot].node = node;
    stamp(shelf, node);
    return victim;
}

static bool ask_stamps(void *cache, unsigned worker, struct span name)
{
    (void)worker;
    struct shelf *shelf = cache;
    const uint64_t hash = hash_bytes(name, 0);
    lock_for_reading(shelf);
    struct node *node = find(shelf, hash, name);
    const bool hit = node != NULL;
    if (hit) {
        look_at(node->body);
        stamp(shelf, node);
    }
    unlock(shelf);
    if (hit)
        return true;

    struct node *gone = NULL;
    lock_for_writing(shelf);
    if (find(shelf, hash, name) == NULL)
        gone = put_into_slot(shelf, bring(hash, name));
    unlock(shelf);
    free(gone);
    return false;
}

/* ---- semaphore ---- */

/* Removes the name at once, so that nothing stays in the system. */
static void *make_semaphore(size_t capacity, unsigned workers)
{
    struct shelf *shelf = make(capacity, workers);
    char name[48];
    snprintf(name, sizeof(name), "/weir-cache-%ld", (long)getpid());
    shelf->semaphore = sem_open(name, O_CREAT | O_EXCL, 0600, 1);
    if (shelf->semaphore == SEM_FAILED) {
        perror("sem_open");
        exit(1);
    }
    sem_unlink(name);
    return shelf;
}

static void down(struct shelf *shelf)
{
    while (sem_wait(shelf->semaphore) != 0)
        CHECK(errno == EINTR);
}

static void up(struct shelf *shelf)
{
    CHECK(sem_post(shelf->semaphore) == 0);
}

static bool ask_semaphore(void *cache, unsigned worker, struct span name)
{
    (void)worker;
    struct shelf *shelf = cache;
    const uint64_t hash = hash_bytes(name, 0);
    down(shelf);
    struct node *node = find(shelf, hash, name);
    const bool hit = node != NULL;
    if (hit) {
        look_at(node->body);
        touch(shelf, node);
    }
    up(shelf);
    if (hit)
        return true;

    struct node *fresh = bring(hash, name);
    down(shelf);
    struct node *gone = put(shelf, fresh);
    up(shelf);
    free(gone);
    return false;
}

/* ---- what they share ---- */

static void come_or_go(void *cache, unsigned worker)
{
    (void)cache;
    (void)worker;
}

static uint64_t refused(void *cache)
{
    (void)cache;
    return 0;
}

static void end(void *cache)
{
    struct shelf *shelf = cache;
    for (size_t i = 0; i <= shelf->bucket_mask; i++) {
        struct node *node = shelf->buckets[i];
        while (node != NULL) {
            struct node *next = node->chain;
            free(node);
            node = next;
        }
    }
    if (shelf->semaphore != NULL)
        sem_close(shelf->semaphore);
    pthread_rwlock_destroy(&shelf->lock);
    free(shelf->buckets);
    free(shelf->slots);
    free(shelf);
}

const struct contestant contestant_rwlock = {
    .name = "rwlock",
    .make = make_rwlock,
    .enter = come_or_go,
    .ask = ask_rwlock,
    .leave = come_or_go,
    .refused = refused,
    .end = end,
};

const struct contestant contestant_stamps = {
    .name = "stamps",
    .make = make_stamps,
    .enter = come_or_go,
    .ask = ask_stamps,
    .leave = come_or_go,
    .refused = refused,
    .end = end,
};

const struct contestant contestant_semaphore = {
    .name = "semaphore",
    .make = make_semaphore,
    .enter = come_or_go,
    .ask = ask_semaphore,
    .leave = come_or_go,
    .refused = refused,
    .end = end,
};
