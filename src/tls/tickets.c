/* SPDX-License-Identifier: MIT */
#include "tls/tickets.h"

#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC        UINT64_C(0x3174656b63697477) /* of this layout */
#define ROTATION_NS  (TLS_TICKETS_ROTATION_S * UINT64_C(1000000000))
#define SEALS        (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define MEMORY_BYTES sizeof(struct tls_tickets_memory)

enum {
    SLOTS = 4, /* three keys, and the one that is being written */
    KEY_WORDS = sizeof(struct tls_tickets_key) / sizeof(uint64_t),
    READ_TRIES = 8 /* only two rotations during one copy make a try fail */
};
static_assert(sizeof(struct tls_tickets_key) % sizeof(uint64_t) == 0, "a key is whole words");

struct slot {
    _Atomic uint64_t number; /* of the key; 0: none, or it is being written */
    _Atomic uint64_t word[KEY_WORDS];
};

/* Key number n is in slot n % SLOTS. */
struct tls_tickets_memory {
    uint64_t magic;
    _Atomic uint64_t current; /* the number of the current key */
    _Atomic uint64_t due_ns;
    struct slot slot[SLOTS];
};

/* ---- writing ---- */

/* Each store orders those before it, so a reader that copied a part of the new key sees that the
 * number has changed. */
static bool write_key(struct tls_tickets_memory *memory, uint64_t number)
{
    uint64_t word[KEY_WORDS];
    struct slot *slot = &memory->slot[number % SLOTS];
    if (RAND_priv_bytes((unsigned char *)word, sizeof(word)) != 1) {
        ERR_clear_error();
        return false;
    }
    atomic_store_explicit(&slot->number, 0, memory_order_relaxed);
    for (unsigned i = 0; i < KEY_WORDS; i++)
        atomic_store_explicit(&slot->word[i], word[i], memory_order_release);
    atomic_store_explicit(&slot->number, number, memory_order_release);
    OPENSSL_cleanse(word, sizeof(word));
    return true;
}

/* An attacker that reads the memory later cannot open older tickets. */
static void erase_key(struct tls_tickets_memory *memory, uint64_t number)
{
    struct slot *slot = &memory->slot[number % SLOTS];
    atomic_store_explicit(&slot->number, 0, memory_order_relaxed);
    for (unsigned i = 0; i < KEY_WORDS; i++)
        atomic_store_explicit(&slot->word[i], 0, memory_order_release);
}

/* The process that moves the time of the next rotation rotates. If it dies before it has done so,
 * the keys stay until then. */
bool tls_tickets_rotate(struct tls_tickets *tickets, uint64_t now_ns)
{
    struct tls_tickets_memory *memory = tickets->memory;
    uint64_t due_ns = atomic_load(&memory->due_ns);
    if (now_ns < due_ns ||
        !atomic_compare_exchange_strong(&memory->due_ns, &due_ns, now_ns + ROTATION_NS))
        return false;
    uint64_t current = atomic_load(&memory->current);
    if (!write_key(memory, current + 2))
        return false;
    atomic_store(&memory->current, current + 1);
    erase_key(memory, current - 1);
    return true;
}

uint64_t tls_tickets_due_ns(const struct tls_tickets *tickets)
{
    return atomic_load(&tickets->memory->due_ns);
}

/* ---- mapping ---- */

static int map_tickets(struct tls_tickets *tickets)
{
    void *at = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, tickets->fd, 0);
    if (at == MAP_FAILED)
        return -errno;
    tickets->memory = at;
    (void)madvise(at, MEMORY_BYTES, MADV_DONTDUMP); /* both are precautions that may fail */
    (void)mlock(at, MEMORY_BYTES);
    return 0;
}

static int make_tickets(struct tls_tickets *tickets, uint64_t now_ns)
{
    tickets->fd = memfd_create("weir-tickets", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (tickets->fd < 0)
        return -errno;
    if (ftruncate(tickets->fd, MEMORY_BYTES) < 0)
        return -errno;
    if (fcntl(tickets->fd, F_ADD_SEALS, SEALS) < 0)
        return -errno;
    int rc = map_tickets(tickets);
    if (rc < 0)
        return rc;
    struct tls_tickets_memory *memory = tickets->memory;
    for (uint64_t number = 1; number <= 3; number++)
        if (!write_key(memory, number))
            return -ENOMEM;
    memory->magic = MAGIC;
    atomic_store(&memory->current, 2);
    atomic_store(&memory->due_ns, now_ns + ROTATION_NS);
    return 0;
}

int tls_tickets_open(struct tls_tickets *tickets, uint64_t now_ns)
{
    *tickets = (struct tls_tickets){ .fd = -1 };
    int rc = make_tickets(tickets, now_ns);
    if (rc < 0)
        tls_tickets_close(tickets);
    return rc;
}

/* Without the seals, a process that has the descriptor could shorten the memory, and then a reader
 * would die of a bus error. */
static int check_memory(int fd)
{
    struct stat info;
    int rc = os_file_stat(fd, &info);
    if (rc < 0)
        return rc;
    int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & SEALS) == SEALS && info.st_size == MEMORY_BYTES ? 0 : -EPROTO;
}

int tls_tickets_adopt(struct tls_tickets *tickets, int fd)
{
    *tickets = (struct tls_tickets){ .fd = fd };
    int rc = check_memory(fd);
    if (rc == 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
        rc = -errno;
    if (rc == 0)
        rc = map_tickets(tickets);
    if (rc == 0 && tickets->memory->magic != MAGIC)
        rc = -EPROTO;
    if (rc < 0)
        tls_tickets_close(tickets);
    return rc;
}

void tls_tickets_close(struct tls_tickets *tickets)
{
    if (tickets->memory) {
        (void)munmap(tickets->memory, MEMORY_BYTES);
        os_file_close(tickets->fd);
    } else if (tickets->fd > 0) {
        os_file_close(tickets->fd);
    }
    *tickets = (struct tls_tickets){ .fd = -1 };
}

/* A mapping of a descriptor that is open for reading cannot become writable again. */
static int map_for_reading(struct tls_tickets *tickets)
{
    char path[sizeof("/proc/self/fd/") + 12];
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", tickets->fd);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    void *at = mmap(tickets->memory, MEMORY_BYTES, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0);
    int rc = at == MAP_FAILED ? -errno : 0;
    os_file_close(fd);
    return rc;
}

int tls_tickets_protect(struct tls_tickets *tickets)
{
    int rc = map_for_reading(tickets);
    if (rc < 0) /* without /proc */
        rc = mprotect(tickets->memory, MEMORY_BYTES, PROT_READ) < 0 ? -errno : 0;
    (void)madvise(tickets->memory, MEMORY_BYTES, MADV_DONTDUMP);
    os_file_close(tickets->fd);
    tickets->fd = -1;
    return rc;
}

/* ---- reading ---- */

static bool copy_key(const struct tls_tickets_memory *memory, uint64_t number,
                     struct tls_tickets_key *ret_key)
{
    const struct slot *slot = &memory->slot[number % SLOTS];
    uint64_t word[KEY_WORDS];
    if (number == 0 || atomic_load_explicit(&slot->number, memory_order_acquire) != number)
        return false;
    for (unsigned i = 0; i < KEY_WORDS; i++)
        word[i] = atomic_load_explicit(&slot->word[i], memory_order_acquire);
    bool same = atomic_load_explicit(&slot->number, memory_order_relaxed) == number;
    if (same)
        memcpy(ret_key, word, sizeof(*ret_key));
    OPENSSL_cleanse(word, sizeof(word));
    return same;
}

bool tls_tickets_current(const struct tls_tickets *tickets, struct tls_tickets_key *ret_key)
{
    const struct tls_tickets_memory *memory = tickets->memory;
    for (unsigned try = 0; try < READ_TRIES; try++)
        if (copy_key(memory, atomic_load(&memory->current), ret_key))
            return true;
    return false;
}

enum tls_tickets_found tls_tickets_find(const struct tls_tickets *tickets,
                                        const unsigned char name[16],
                                        struct tls_tickets_key *ret_key)
{
    const struct tls_tickets_memory *memory = tickets->memory;
    uint64_t next = atomic_load(&memory->current) + 1;
    for (unsigned age = 0; age < 3; age++)
        if (copy_key(memory, next - age, ret_key) &&
            memcmp(ret_key->name, name, sizeof(ret_key->name)) == 0)
            return age == 2 ? TLS_TICKETS_PREVIOUS : TLS_TICKETS_FRESH;
    OPENSSL_cleanse(ret_key, sizeof(*ret_key));
    return TLS_TICKETS_UNKNOWN;
}
