/* SPDX-License-Identifier: MIT
 *
 * Measures the cost of a shared counter, and the updates that are lost without
 * synchronisation. N threads or processes add to one counter, each the same number of
 * times. Each run uses one way of synchronisation:
 *
 *   none       a plain read, an addition, a write: concurrent updates are lost
 *   semaphore  a named POSIX semaphore, as in the source documents
 *   mutex      a process-shared mutex
 *   atomic     one atomic addition
 *   block      a block for each, which the reader sums: weir's way
 *
 * weir-lab runs the program and reads the line of JSON that it prints.
 *
 *   sync WAY threads|processes WORKERS ADDITIONS
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS_MAX = 64, CACHE_LINE = 64 };

struct block {
    _Alignas(CACHE_LINE) _Atomic uint64_t count;
    uint64_t began_ns, ended_ns, cpu_ns;
};

/* The memory that all threads or processes share. */
struct shared {
    pthread_barrier_t start;
    pthread_mutex_t mutex;
    _Alignas(CACHE_LINE) volatile uint64_t plain;
    _Alignas(CACHE_LINE) _Atomic uint64_t atomic;
    struct block block[WORKERS_MAX];
};

struct task {
    struct shared *shared;
    sem_t *semaphore;
    uint64_t additions;
    unsigned worker;
};

/* An addition is that of a statistics counter: one number plus one. */
static void add_none(const struct task *task)
{
    for (uint64_t i = 0; i < task->additions; i++)
        task->shared->plain = task->shared->plain + 1;
}

static void add_semaphore(const struct task *task)
{
    for (uint64_t i = 0; i < task->additions; i++) {
        while (sem_wait(task->semaphore) != 0 && errno == EINTR)
            continue;
        task->shared->plain = task->shared->plain + 1;
        sem_post(task->semaphore);
    }
}

static void add_mutex(const struct task *task)
{
    for (uint64_t i = 0; i < task->additions; i++) {
        pthread_mutex_lock(&task->shared->mutex);
        task->shared->plain = task->shared->plain + 1;
        pthread_mutex_unlock(&task->shared->mutex);
    }
}

static void add_atomic(const struct task *task)
{
    for (uint64_t i = 0; i < task->additions; i++)
        atomic_fetch_add_explicit(&task->shared->atomic, 1, memory_order_relaxed);
}

/* Each block has one writer, so a load and a store are enough. */
static void add_block(const struct task *task)
{
    _Atomic uint64_t *mine = &task->shared->block[task->worker].count;
    for (uint64_t i = 0; i < task->additions; i++) {
        uint64_t now = atomic_load_explicit(mine, memory_order_relaxed);
        atomic_store_explicit(mine, now + 1, memory_order_relaxed);
    }
}

static const struct {
    const char *name;
    void (*add)(const struct task *task);
} ways[] = {
    { "none", add_none },     { "semaphore", add_semaphore }, { "mutex", add_mutex },
    { "atomic", add_atomic }, { "block", add_block },
};

static void (*chosen)(const struct task *task);

static uint64_t clock_ns(clockid_t which)
{
    struct timespec now;
    clock_gettime(which, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void *work(void *argument)
{
    const struct task *task = argument;
    struct block *mine = &task->shared->block[task->worker];
    pthread_barrier_wait(&task->shared->start);
    const uint64_t before_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    mine->began_ns = clock_ns(CLOCK_MONOTONIC);
    chosen(task);
    mine->ended_ns = clock_ns(CLOCK_MONOTONIC);
    mine->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns;
    return NULL;
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static struct shared *share(unsigned workers)
{
    struct shared *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        fail("mmap");
    pthread_barrierattr_t together;
    pthread_mutexattr_t apart;
    pthread_barrierattr_init(&together);
    pthread_mutexattr_init(&apart);
    pthread_barrierattr_setpshared(&together, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setpshared(&apart, PTHREAD_PROCESS_SHARED);
    if (pthread_barrier_init(&shared->start, &together, workers) != 0 ||
        pthread_mutex_init(&shared->mutex, &apart) != 0)
        fail("pthread");
    return shared;
}

/* Removes the name at once, so that nothing stays in the system. */
static sem_t *open_semaphore(void)
{
    char name[48];
    snprintf(name, sizeof(name), "/weir-sync-%ld", (long)getpid());
    sem_t *semaphore = sem_open(name, O_CREAT | O_EXCL, 0600, 1);
    if (semaphore == SEM_FAILED)
        fail("sem_open");
    sem_unlink(name);
    return semaphore;
}

static void run_threads(struct task *tasks, unsigned workers)
{
    pthread_t threads[WORKERS_MAX];
    for (unsigned i = 0; i < workers; i++)
        if (pthread_create(&threads[i], NULL, work, &tasks[i]) != 0)
            fail("pthread_create");
    for (unsigned i = 0; i < workers; i++)
        pthread_join(threads[i], NULL);
}

static void run_processes(struct task *tasks, unsigned workers)
{
    const pid_t parent = getpid();
    for (unsigned i = 0; i < workers; i++) {
        pid_t pid = fork();
        if (pid < 0)
            fail("fork");
        if (pid == 0) {
            /* Otherwise it would wait without end for threads that did not start. */
            if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
                _exit(1);
            work(&tasks[i]);
            _exit(0);
        }
    }
    for (unsigned i = 0; i < workers; i++) {
        int status;
        if (wait(&status) < 0 || status != 0)
            fail("wait");
    }
}

static uint64_t total(struct shared *shared)
{
    uint64_t sum = shared->plain + atomic_load(&shared->atomic);
    for (unsigned i = 0; i < WORKERS_MAX; i++)
        sum += atomic_load(&shared->block[i].count);
    return sum;
}

/* From the start of the first to the end of the last. */
static uint64_t took_ns(const struct shared *shared, unsigned workers)
{
    uint64_t began_ns = UINT64_MAX, ended_ns = 0;
    for (unsigned i = 0; i < workers; i++) {
        const struct block *block = &shared->block[i];
        began_ns = block->began_ns < began_ns ? block->began_ns : began_ns;
        ended_ns = block->ended_ns > ended_ns ? block->ended_ns : ended_ns;
    }
    return ended_ns - began_ns;
}

static uint64_t cpu_ns(const struct shared *shared, unsigned workers)
{
    uint64_t sum_ns = 0;
    for (unsigned i = 0; i < workers; i++)
        sum_ns += shared->block[i].cpu_ns;
    return sum_ns;
}

static int usage(void)
{
    fprintf(stderr, "usage: sync none|semaphore|mutex|atomic|block threads|processes "
                    "WORKERS ADDITIONS\n");
    return 2;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return usage();
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        if (strcmp(argv[1], ways[i].name) == 0)
            chosen = ways[i].add;
    const bool threads = strcmp(argv[2], "threads") == 0;
    const unsigned workers = (unsigned)strtoul(argv[3], NULL, 10);
    const uint64_t additions = strtoull(argv[4], NULL, 10);
    if (!chosen || (!threads && strcmp(argv[2], "processes") != 0) || workers == 0 ||
        workers > WORKERS_MAX || additions == 0)
        return usage();
    struct shared *shared = share(workers);
    sem_t *semaphore = open_semaphore();
    struct task tasks[WORKERS_MAX];
    for (unsigned i = 0; i < workers; i++)
        tasks[i] = (struct task){ shared, semaphore, additions, i };
    if (threads)
        run_threads(tasks, workers);
    else
        run_processes(tasks, workers);
    printf("{\"way\":\"%s\",\"kind\":\"%s\",\"workers\":%u,\"expected\":%llu,\"counted\":%llu,"
           "\"ns\":%llu,\"cpu_ns\":%llu}\n",
           argv[1], argv[2], workers, (unsigned long long)(additions * workers),
           (unsigned long long)total(shared), (unsigned long long)took_ns(shared, workers),
           (unsigned long long)cpu_ns(shared, workers));
    return 0;
}
