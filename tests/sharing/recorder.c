/* SPDX-License-Identifier: MIT */
#include "sharing/recorder.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { USES = 1 << 14, BLOCKS_MAX = 1 << 12 };

struct record {
    struct recorder_use use[USES]; /* a hash table; line 0: free */
    unsigned used, allocations;
    _Atomic unsigned receives;
};

static struct record records[RECORDER_THREADS_MAX];
static _Atomic unsigned thread_count;
static unsigned first_thread;
static _Atomic bool recording;

static _Thread_local struct record *mine;
static _Thread_local bool left_out;

#define CALLER __builtin_return_address(0)

/* ---- accesses ---- */

static void stop(const char *why)
{
    (void)fprintf(stderr, "recorder: %s\n", why);
    abort();
}

static struct record *record_of_this_thread(void)
{
    if (!mine) {
        const unsigned number = atomic_fetch_add(&thread_count, 1);
        if (number >= RECORDER_THREADS_MAX)
            stop("more threads than RECORDER_THREADS_MAX");
        mine = &records[number];
    }
    return mine;
}

static struct recorder_use *place_of(const struct record *record, uintptr_t line)
{
    size_t at = (size_t)(line / RECORDER_LINE * UINT64_C(0x9e3779b97f4a7c15) >> 40) % USES;
    while (record->use[at].line != 0 && record->use[at].line != line)
        at = (at + 1) % USES;
    return (struct recorder_use *)(uintptr_t)&record->use[at];
}

static bool is_recorded(void)
{
    return atomic_load_explicit(&recording, memory_order_acquire) && !left_out;
}

static void note(uintptr_t address, size_t len, enum recorder_kind kind, const void *code)
{
    if (!is_recorded() || len == 0)
        return;
    struct record *record = record_of_this_thread();
    for (uintptr_t line = address & ~(uintptr_t)(RECORDER_LINE - 1); line < address + len;
         line += RECORDER_LINE) {
        struct recorder_use *use = place_of(record, line);
        if (use->line == 0 && ++record->used > USES / 2)
            stop("more lines than USES / 2");
        use->line = line;
        if (!use->by[kind]) {
            use->by[kind] = code;
            use->offset[kind] = address > line ? (unsigned)(address - line) : 0;
        }
    }
}

static void note_at(const volatile void *at, size_t len, enum recorder_kind kind, const void *code)
{
    note((uintptr_t)at, len, kind, code);
}

static void note_allocation(void)
{
    if (is_recorded())
        record_of_this_thread()->allocations++;
}

/* ---- the interface of -fsanitize=thread ---- */

void __tsan_init(void);
void __tsan_func_entry(void *code);
void __tsan_func_exit(void);
void __tsan_read_range(void *at, size_t len);
void __tsan_write_range(void *at, size_t len);
void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_signal_fence(int order);

void __tsan_init(void)
{
}

void __tsan_func_entry(void *code)
{
    (void)code;
}

void __tsan_func_exit(void)
{
}

void __tsan_read_range(void *at, size_t len)
{
    note_at(at, len, RECORDER_READ, CALLER);
}

void __tsan_write_range(void *at, size_t len)
{
    note_at(at, len, RECORDER_WRITE, CALLER);
}

void __tsan_atomic_thread_fence(int order)
{
    (void)order;
    atomic_thread_fence(memory_order_seq_cst);
}

void __tsan_atomic_signal_fence(int order)
{
    (void)order;
    atomic_signal_fence(memory_order_seq_cst);
}

#define PLAIN(name, len, kind) \
    void __tsan_##name(void *at); \
    void __tsan_##name(void *at) \
    { \
        note_at(at, len, kind, CALLER); \
    }
#define PLAIN_ACCESSES(len) \
    PLAIN(read##len, len, RECORDER_READ) \
    PLAIN(write##len, len, RECORDER_WRITE) \
    PLAIN(unaligned_read##len, len, RECORDER_READ) \
    PLAIN(unaligned_write##len, len, RECORDER_WRITE)
PLAIN_ACCESSES(1)
PLAIN_ACCESSES(2)
PLAIN_ACCESSES(4)
PLAIN_ACCESSES(8)
PLAIN_ACCESSES(16)

/* The order is the strongest one, which every program allows. */
#define MODIFY(bits, type, name) \
    type __tsan_atomic##bits##_##name(volatile type *at, type value, int order); \
    type __tsan_atomic##bits##_##name(volatile type *at, type value, int order) \
    { \
        (void)order; \
        note_at(at, sizeof(type), RECORDER_MODIFY, CALLER); \
        return __atomic_##name(at, value, __ATOMIC_SEQ_CST); \
    }
#define EXCHANGE(bits, type, name, weak) \
    int __tsan_atomic##bits##_compare_exchange_##name(volatile type *at, type *expected, \
                                                      type value, int order, int failed); \
    int __tsan_atomic##bits##_compare_exchange_##name(volatile type *at, type *expected, \
                                                      type value, int order, int failed) \
    { \
        (void)order, (void)failed; \
        note_at(at, sizeof(type), RECORDER_MODIFY, CALLER); \
        return __atomic_compare_exchange_n(at, expected, value, weak, __ATOMIC_SEQ_CST, \
                                           __ATOMIC_SEQ_CST); \
    }
#define ATOMIC_ACCESSES(bits, type) \
    type __tsan_atomic##bits##_load(const volatile type *at, int order); \
    type __tsan_atomic##bits##_load(const volatile type *at, int order) \
    { \
        (void)order; \
        note_at(at, sizeof(type), RECORDER_READ, CALLER); \
        return __atomic_load_n(at, __ATOMIC_SEQ_CST); \
    } \
    void __tsan_atomic##bits##_store(volatile type *at, type value, int order); \
    void __tsan_atomic##bits##_store(volatile type *at, type value, int order) \
    { \
        (void)order; \
        note_at(at, sizeof(type), RECORDER_WRITE, CALLER); \
        __atomic_store_n(at, value, __ATOMIC_SEQ_CST); \
    } \
    type __tsan_atomic##bits##_exchange(volatile type *at, type value, int order); \
    type __tsan_atomic##bits##_exchange(volatile type *at, type value, int order) \
    { \
        (void)order; \
        note_at(at, sizeof(type), RECORDER_MODIFY, CALLER); \
        return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST); \
    } \
    MODIFY(bits, type, fetch_add) \
    MODIFY(bits, type, fetch_sub) \
    MODIFY(bits, type, fetch_and) \
    MODIFY(bits, type, fetch_or) \
    MODIFY(bits, type, fetch_xor) \
    EXCHANGE(bits, type, strong, false) \
    EXCHANGE(bits, type, weak, true)
ATOMIC_ACCESSES(8, uint8_t)
ATOMIC_ACCESSES(16, uint16_t)
ATOMIC_ACCESSES(32, uint32_t)
ATOMIC_ACCESSES(64, uint64_t)

/* ---- functions of libc: the linker's --wrap sends weir's calls here ---- */

#define WRAP(type, name, ...) \
    type __real_##name(__VA_ARGS__); \
    type __wrap_##name(__VA_ARGS__); \
    type __wrap_##name(__VA_ARGS__)

WRAP(void *, memcpy, void *to, const void *from, size_t len)
{
    note_at(from, len, RECORDER_READ, CALLER);
    note_at(to, len, RECORDER_WRITE, CALLER);
    return __real_memcpy(to, from, len);
}

WRAP(void *, memmove, void *to, const void *from, size_t len)
{
    note_at(from, len, RECORDER_READ, CALLER);
    note_at(to, len, RECORDER_WRITE, CALLER);
    return __real_memmove(to, from, len);
}

WRAP(void *, memset, void *at, int value, size_t len)
{
    note_at(at, len, RECORDER_WRITE, CALLER);
    return __real_memset(at, value, len);
}

WRAP(int, memcmp, const void *a, const void *b, size_t len)
{
    note_at(a, len, RECORDER_READ, CALLER);
    note_at(b, len, RECORDER_READ, CALLER);
    return __real_memcmp(a, b, len);
}

WRAP(void *, memchr, const void *at, int value, size_t len)
{
    void *found = __real_memchr(at, value, len);
    note_at(at, found ? (size_t)((char *)found - (const char *)at) + 1 : len, RECORDER_READ,
            CALLER);
    return found;
}

WRAP(size_t, strlen, const char *text)
{
    const size_t len = __real_strlen(text);
    note_at(text, len + 1, RECORDER_READ, CALLER);
    return len;
}

WRAP(ssize_t, recv, int fd, void *to, size_t size, int flags)
{
    const ssize_t len = __real_recv(fd, to, size, flags);
    if (len > 0 && !left_out)
        atomic_fetch_add(&record_of_this_thread()->receives, 1);
    note_at(to, len > 0 ? (size_t)len : 0, RECORDER_WRITE, CALLER);
    return len;
}

WRAP(ssize_t, send, int fd, const void *from, size_t len, int flags)
{
    note_at(from, len, RECORDER_READ, CALLER);
    return __real_send(fd, from, len, flags);
}

WRAP(ssize_t, sendmsg, int fd, const struct msghdr *message, int flags)
{
    for (size_t i = 0; i < message->msg_iovlen; i++)
        note_at(message->msg_iov[i].iov_base, message->msg_iov[i].iov_len, RECORDER_READ, CALLER);
    return __real_sendmsg(fd, message, flags);
}

WRAP(int, epoll_wait, int fd, struct epoll_event *events, int most, int timeout_ms)
{
    const int count = __real_epoll_wait(fd, events, most, timeout_ms);
    note_at(events, count > 0 ? (size_t)count * sizeof(events[0]) : 0, RECORDER_WRITE, CALLER);
    return count;
}

#define WRAP_LOCK(name, type) \
    WRAP(int, name, type *lock) \
    { \
        note_at(lock, sizeof(*lock), RECORDER_LOCK, CALLER); \
        return __real_##name(lock); \
    }
WRAP_LOCK(pthread_mutex_lock, pthread_mutex_t)
WRAP_LOCK(pthread_mutex_trylock, pthread_mutex_t)
WRAP_LOCK(pthread_mutex_unlock, pthread_mutex_t)
WRAP_LOCK(pthread_cond_signal, pthread_cond_t)
WRAP_LOCK(pthread_cond_broadcast, pthread_cond_t)
WRAP_LOCK(sem_post, sem_t)
WRAP_LOCK(sem_wait, sem_t)
WRAP_LOCK(sem_trywait, sem_t)

WRAP(int, sem_clockwait, sem_t *lock, clockid_t clock, const struct timespec *until)
{
    note_at(lock, sizeof(*lock), RECORDER_LOCK, CALLER);
    return __real_sem_clockwait(lock, clock, until);
}

/* ---- memory, and its names ---- */

static struct recorder_block blocks[BLOCKS_MAX];
static unsigned block_count;
static pthread_mutex_t blocks_lock = PTHREAD_MUTEX_INITIALIZER;

static void *named(void *at, size_t size, const void *code)
{
    if (!at || at == MAP_FAILED)
        return at;
    (void)__real_pthread_mutex_lock(&blocks_lock);
    unsigned i = 0;
    while (i < block_count && blocks[i].at != 0)
        i++;
    if (i == BLOCKS_MAX)
        stop("more blocks of memory than BLOCKS_MAX");
    block_count = i < block_count ? block_count : i + 1;
    blocks[i] = (struct recorder_block){ (uintptr_t)at, size, code };
    (void)__real_pthread_mutex_unlock(&blocks_lock);
    return at;
}

static void forget(const void *at)
{
    (void)__real_pthread_mutex_lock(&blocks_lock);
    for (unsigned i = 0; at && i < block_count; i++)
        if (blocks[i].at == (uintptr_t)at)
            blocks[i].at = 0;
    (void)__real_pthread_mutex_unlock(&blocks_lock);
}

WRAP(void *, malloc, size_t size)
{
    note_allocation();
    return named(__real_malloc(size), size, CALLER);
}

WRAP(void *, calloc, size_t count, size_t size)
{
    note_allocation();
    return named(__real_calloc(count, size), count * size, CALLER);
}

WRAP(void *, realloc, void *old, size_t size)
{
    note_allocation();
    forget(old);
    return named(__real_realloc(old, size), size, CALLER);
}

WRAP(void *, aligned_alloc, size_t alignment, size_t size)
{
    note_allocation();
    return named(__real_aligned_alloc(alignment, size), size, CALLER);
}

WRAP(void, free, void *at)
{
    note_allocation();
    forget(at);
    __real_free(at);
}

WRAP(void *, mmap64, void *at, size_t size, int rights, int flags, int fd, off_t offset)
{
    return named(__real_mmap64(at, size, rights, flags, fd, offset), size, CALLER);
}

WRAP(int, munmap, void *at, size_t size)
{
    forget(at);
    return __real_munmap(at, size);
}

const struct recorder_block *recorder_block_at(uintptr_t address)
{
    for (unsigned i = 0; i < block_count; i++)
        if (blocks[i].at != 0 && address - blocks[i].at < blocks[i].size)
            return &blocks[i];
    return NULL;
}

const struct recorder_block *recorder_block_of(size_t size)
{
    for (unsigned i = 0; i < block_count; i++)
        if (blocks[i].at != 0 && blocks[i].size == size)
            return &blocks[i];
    return NULL;
}

extern const char __executable_start;

void recorder_print_code(const void *code)
{
    char command[4096 + 128];
    (void)fflush(NULL);
    /* The address is that behind the call. */
    (void)snprintf(command, sizeof(command),
                   "addr2line -p -f -s -e /proc/%d/exe 0x%zx | sed 's/^/        /'", (int)getpid(),
                   (size_t)((const char *)code - 1 - &__executable_start));
    if (system(command) != 0)
        (void)fprintf(stderr, "        code at %p\n", code);
}

/* ---- the clock ---- */

static _Atomic bool stands;
static struct timespec stood[CLOCK_TAI + 1]; /* since `stands` */
static _Atomic time_t added_s;

WRAP(int, clock_gettime, clockid_t clock, struct timespec *now)
{
    if (!atomic_load(&stands) || clock < 0 || clock > CLOCK_TAI)
        return __real_clock_gettime(clock, now);
    *now = stood[clock];
    now->tv_sec += atomic_load(&added_s);
    return 0;
}

void recorder_stop_clock(void)
{
    for (clockid_t clock = 0; clock <= CLOCK_TAI; clock++)
        (void)__real_clock_gettime(clock, &stood[clock]);
    atomic_store(&added_s, 0);
    atomic_store(&stands, true);
}

void recorder_add_second(void)
{
    atomic_fetch_add(&added_s, 1);
}

void recorder_start_clock(void)
{
    atomic_store(&stands, false);
}

/* ---- a recording ---- */

void recorder_leave_out_this_thread(void)
{
    left_out = true;
}

void recorder_forget_threads(void)
{
    first_thread = atomic_load(&thread_count);
}

void recorder_begin(void)
{
    atomic_store(&recording, true);
}

void recorder_end(void)
{
    atomic_store(&recording, false);
}

unsigned recorder_threads(void)
{
    return atomic_load(&thread_count) - first_thread;
}

unsigned recorder_receives(unsigned thread)
{
    return atomic_load(&records[first_thread + thread].receives);
}

unsigned recorder_allocations(unsigned thread)
{
    return records[first_thread + thread].allocations;
}

const struct recorder_use *recorder_next(unsigned thread, const struct recorder_use *after)
{
    const struct record *record = &records[first_thread + thread];
    size_t at = after ? (size_t)(after - record->use) + 1 : 0;
    while (at < USES && record->use[at].line == 0)
        at++;
    return at < USES ? &record->use[at] : NULL;
}

const struct recorder_use *recorder_find(unsigned thread, uintptr_t line)
{
    const struct recorder_use *use = place_of(&records[first_thread + thread], line);
    return use->line != 0 ? use : NULL;
}
