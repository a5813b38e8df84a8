/* SPDX-License-Identifier: MIT
 *
 * A thread may read a slot while another one writes it, and then sees a part of each. Such a mark
 * belongs to no credentials: it would have to be equal in 128 bits. A time that belongs to another
 * mark is at most AUTH_REMEMBER_S ahead, too.
 */
#include "auth/memory.h"

#include "base/duration.h"
#include "base/hash.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

enum {
    SETS = 256,
    WAYS = 4,
    ROWS = 2,
    PLACES = 4096,
    KEY_BYTES = 32,
    NETWORK_BYTES = 8, /* of an IPv6 address */
    COMPARED = 64,     /* places of credentials that are being compared */
    TIME_BITS = 28,    /* seconds, for 8 years */
    LOOK_MS = 5,       /* from one look at a comparison to the next */
};

/* A word of credentials that are being compared has bits of their mark, whether the comparison has
 * begun, and the second at which they are forgotten. */
#define TIME_MASK ((UINT64_C(1) << TIME_BITS) - 1)
#define BEGUN     (UINT64_C(1) << TIME_BITS)
#define MARK_MASK (~(TIME_MASK | BEGUN))

#define ATTEMPT_NS (AUTH_ATTEMPT_S * DURATION_SECOND)
#define AHEAD_NS   (AUTH_ATTEMPTS * ATTEMPT_NS)

struct slot {
    _Atomic uint64_t tag[2];
    _Atomic uint64_t until_ns;
};

/* Children of the process share it. */
struct shared {
    struct slot slot[SETS][WAYS];
    _Atomic unsigned next; /* the way that is replaced next */
    _Atomic uint64_t used_until_ns[ROWS][PLACES];
    _Atomic uint64_t compared[COMPARED]; /* 0: none */
};

struct auth_memory {
    struct shared *shared;
    EVP_MAC_CTX *keyed; /* is copied for each mark */
    uint64_t seed;      /* of the places of addresses */
    _Atomic unsigned holders, followers;
};

/* ---- making ---- */

/* 0 or -errno. */
static int fill_random(void *bytes, size_t len)
{
    ssize_t got;
    do
        got = getrandom(bytes, len, 0);
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)len ? 0 : -errno;
}

static EVP_MAC_CTX *make_keyed(unsigned char key[KEY_BYTES])
{
    static char digest[] = "SHA256";
    const OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end(),
    };
    EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    EVP_MAC_CTX *context = mac ? EVP_MAC_CTX_new(mac) : NULL;
    EVP_MAC_free(mac);
    if (context && EVP_MAC_init(context, key, KEY_BYTES, params) == 1)
        return context;
    EVP_MAC_CTX_free(context);
    return NULL;
}

static int fill_memory(struct auth_memory *memory)
{
    unsigned char key[KEY_BYTES];
    void *shared = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return -errno;
    memory->shared = shared;
    int rc = fill_random(&memory->seed, sizeof(memory->seed));
    if (rc == 0)
        rc = fill_random(key, sizeof(key));
    if (rc == 0)
        memory->keyed = make_keyed(key);
    explicit_bzero(key, sizeof(key));
    return rc < 0 ? rc : memory->keyed ? 0 : -ENOMEM;
}

int auth_memory_new(struct auth_memory **ret_memory)
{
    struct auth_memory *memory = calloc(1, sizeof(*memory));
    if (!memory)
        return -ENOMEM;
    atomic_init(&memory->holders, 1);
    const int rc = fill_memory(memory);
    if (rc < 0)
        auth_memory_free(memory);
    else
        *ret_memory = memory;
    return rc;
}

void auth_memory_free(struct auth_memory *memory)
{
    if (!memory)
        return;
    EVP_MAC_CTX_free(memory->keyed); /* not later: another thread may outlive the library */
    memory->keyed = NULL;
    auth_memory_release(memory);
}

void auth_memory_hold(struct auth_memory *memory)
{
    atomic_fetch_add(&memory->holders, 1);
}

void auth_memory_release(struct auth_memory *memory)
{
    if (atomic_fetch_sub(&memory->holders, 1) > 1)
        return;
    if (memory->shared)
        munmap(memory->shared, sizeof(struct shared));
    free(memory);
}

/* ---- right credentials ---- */

static bool add_bytes(EVP_MAC_CTX *context, const void *bytes, size_t len)
{
    return EVP_MAC_update(context, bytes, len) == 1;
}

bool auth_memory_mark(const struct auth_memory *memory, uint32_t list, struct span user,
                      struct span password, struct auth_mark *ret_mark)
{
    /* The length keeps apart what would be the same bytes: a:bc and ab:c. */
    const uint32_t front[2] = { list, (uint32_t)user.len };
    unsigned char tag[EVP_MAX_MD_SIZE];
    size_t len = 0;
    EVP_MAC_CTX *context = EVP_MAC_CTX_dup(memory->keyed);
    const bool made = context && add_bytes(context, front, sizeof(front)) &&
                      add_bytes(context, user.at, user.len) &&
                      add_bytes(context, password.at, password.len) &&
                      EVP_MAC_final(context, tag, &len, sizeof(tag)) == 1;
    EVP_MAC_CTX_free(context);
    if (!made)
        return false;
    CHECK(len >= sizeof(*ret_mark));
    memcpy(ret_mark, tag, sizeof(*ret_mark));
    return true;
}

static struct slot *set_of(const struct auth_memory *memory, const struct auth_mark *mark)
{
    return memory->shared->slot[mark->tag[0] % SETS];
}

/* 1 or 0, without a branch that depends on the mark. */
static unsigned is_same_mark(const struct slot *slot, const struct auth_mark *mark)
{
    return ((atomic_load_explicit(&slot->tag[0], memory_order_relaxed) ^ mark->tag[0]) |
            (atomic_load_explicit(&slot->tag[1], memory_order_relaxed) ^ mark->tag[1])) == 0;
}

bool auth_memory_knows(const struct auth_memory *memory, const struct auth_mark *mark,
                       uint64_t now_ns)
{
    const struct slot *set = set_of(memory, mark);
    unsigned known = 0;
    for (unsigned way = 0; way < WAYS; way++) {
        const unsigned valid = atomic_load_explicit(&set[way].until_ns, memory_order_relaxed) >
                               now_ns;
        known |= is_same_mark(&set[way], mark) & valid;
    }
    return known != 0;
}

void auth_memory_add(struct auth_memory *memory, const struct auth_mark *mark, uint64_t now_ns)
{
    struct slot *set = set_of(memory, mark);
    unsigned way = 0;
    while (way < WAYS && !is_same_mark(&set[way], mark) &&
           atomic_load_explicit(&set[way].until_ns, memory_order_relaxed) > now_ns)
        way++;
    if (way == WAYS)
        way = atomic_fetch_add_explicit(&memory->shared->next, 1, memory_order_relaxed) % WAYS;
    struct slot *slot = &set[way];
    atomic_store_explicit(&slot->tag[0], mark->tag[0], memory_order_relaxed);
    atomic_store_explicit(&slot->tag[1], mark->tag[1], memory_order_relaxed);
    atomic_store_explicit(&slot->until_ns, now_ns + AUTH_REMEMBER_S * DURATION_SECOND,
                          memory_order_relaxed);
}

/* ---- attempts ---- */

static _Atomic uint64_t *place_of(const struct auth_memory *memory, unsigned row, unsigned family,
                                  const uint8_t address[16])
{
    const size_t len = family == 4 ? 4 : NETWORK_BYTES;
    const uint64_t hash = hash_bytes(span_of((const char *)address, len), memory->seed + family);
    return &memory->shared->used_until_ns[row][hash >> (32 * row) & (PLACES - 1)];
}

/* Counts one attempt if there is none too many. Another thread may count at the same time. */
static bool use_attempt(_Atomic uint64_t *until, uint64_t now_ns)
{
    uint64_t old = atomic_load_explicit(until, memory_order_relaxed), moved;
    do {
        moved = (old > now_ns ? old : now_ns) + ATTEMPT_NS;
        if (moved > now_ns + AHEAD_NS)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(until, &old, moved, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

static bool has_limit(unsigned family)
{
    return family == 4 || family == 6;
}

/* The address is refused when both of its places are full. */
bool auth_memory_take_attempt(struct auth_memory *memory, unsigned family,
                              const uint8_t address[16], uint64_t now_ns)
{
    bool taken = !has_limit(family);
    for (unsigned row = 0; row < ROWS && has_limit(family); row++)
        taken |= use_attempt(place_of(memory, row, family, address), now_ns);
    return taken;
}

void auth_memory_return_attempt(struct auth_memory *memory, unsigned family,
                                const uint8_t address[16])
{
    for (unsigned row = 0; row < ROWS && has_limit(family); row++)
        (void)atomic_fetch_sub_explicit(place_of(memory, row, family, address), ATTEMPT_NS,
                                        memory_order_relaxed);
}

/* ---- comparisons under way ---- */

static _Atomic uint64_t *word_of(const struct auth_memory *memory, const struct auth_mark *mark)
{
    return &memory->shared->compared[mark->tag[1] % COMPARED];
}

static uint64_t second_of(uint64_t now_ns)
{
    return now_ns / DURATION_SECOND & TIME_MASK;
}

static bool is_word_of(uint64_t word, const struct auth_mark *mark)
{
    return word != 0 && ((word ^ mark->tag[0]) & MARK_MASK) == 0;
}

bool auth_memory_compare_later(struct auth_memory *memory, const struct auth_mark *mark,
                               uint64_t now_ns)
{
    const uint64_t now_s = second_of(now_ns);
    const uint64_t mine = (mark->tag[0] & MARK_MASK) | ((now_s + AUTH_COMPARE_S) & TIME_MASK);
    _Atomic uint64_t *word = word_of(memory, mark);
    uint64_t old = atomic_load(word);
    return (old & TIME_MASK) <= now_s && atomic_compare_exchange_strong(word, &old, mine);
}

void auth_memory_compare_begins(struct auth_memory *memory, const struct auth_mark *mark)
{
    _Atomic uint64_t *word = word_of(memory, mark);
    uint64_t old = atomic_load(word);
    if (is_word_of(old, mark))
        (void)atomic_compare_exchange_strong(word, &old, old | BEGUN);
}

void auth_memory_compare_ends(struct auth_memory *memory, const struct auth_mark *mark)
{
    _Atomic uint64_t *word = word_of(memory, mark);
    uint64_t old = atomic_load(word);
    if (is_word_of(old, mark))
        (void)atomic_compare_exchange_strong(word, &old, 0);
}

bool auth_memory_is_comparing(const struct auth_memory *memory, const struct auth_mark *mark,
                              uint64_t now_ns, bool begun)
{
    const uint64_t word = atomic_load(word_of(memory, mark));
    return is_word_of(word, mark) && (word & TIME_MASK) > second_of(now_ns) &&
           (!begun || (word & BEGUN) != 0);
}

bool auth_memory_follow(struct auth_memory *memory, const struct auth_mark *mark, uint64_t now_ns)
{
    if (!auth_memory_is_comparing(memory, mark, now_ns, false))
        return false;
    if (atomic_fetch_add(&memory->followers, 1) < AUTH_FOLLOWERS_MAX)
        return true;
    auth_memory_unfollow(memory);
    return false;
}

void auth_memory_unfollow(struct auth_memory *memory)
{
    atomic_fetch_sub(&memory->followers, 1);
}

/* The process that compares may die, so no lock and no message can end the wait for certain. */
void auth_memory_await(const struct auth_memory *memory, const struct auth_mark *mark,
                       uint64_t now_ns, bool begun)
{
    for (unsigned i = 0; i < AUTH_COMPARE_S * 1000 / LOOK_MS; i++) {
        if (!auth_memory_is_comparing(memory, mark, now_ns, begun))
            return;
        (void)poll(NULL, 0, LOOK_MS);
    }
}
