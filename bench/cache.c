/* SPDX-License-Identifier: MIT
 *
 * Measures the cost and the hits of a cache that several threads share. The program replays
 * a trace, which holds the numbers of the requested objects. One thread replays the first
 * `WARM` requests, untimed. Then `WORKERS` threads replay the rest `PASSES` times: of N
 * threads, each takes every N-th request. With one thread and one pass, the policy alone
 * decides the number of hits, and weir-lab compares its simulation with that number.
 *
 * weir-lab runs the program and reads the line of JSON that it prints.
 *
 *   cache CONTESTANT TRACE WARM CAPACITY WORKERS PASSES
 *
 * TRACE is a file of 32-bit numbers as the machine writes them.
 */
#include "cache.h"

#include "base/check.h"
#include "base/histogram.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    SAMPLE = 31, /* every 31st operation is timed; a prime meets no pattern */
    BITS = 7,
    CLOCK_LOOKS = 1001,
    CAPACITY_MIN = 8 /* weir keeps no entry in fewer: an entry may use an eighth of the cache */
};

enum { MISSES, HITS, KINDS };

#define SLOWEST_NS UINT64_C(10000000000)

static const struct contestant *const contestants[] = {
    &contestant_sieve,  &contestant_lru,       &contestant_rwlock,
    &contestant_stamps, &contestant_semaphore,
};

struct trace {
    const uint32_t *objects;
    size_t length, warm;
    char (*names)[NAME_BYTES];
    size_t name_length;
};

struct worker {
    _Alignas(CACHE_LINE) const struct trace *trace;
    const struct contestant *contestant;
    void *cache;
    pthread_barrier_t *start;
    unsigned number, workers, passes;
    uint64_t clock_ns;
    uint64_t hits, began_ns, ended_ns, cpu_ns;
    uint64_t *times[KINDS];
};

uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

void *allocate(size_t bytes)
{
    void *memory = malloc(bytes);
    if (memory == NULL)
        fail("malloc");
    return memory;
}

void bring_in(char name_out[NAME_BYTES], char body_out[BODY_BYTES], struct span name)
{
    static const char content[BODY_BYTES] = { 1 };
    memcpy(name_out, name.at, name.len);
    memcpy(body_out, content, sizeof(content));
}

void look_at(const char body[BODY_BYTES])
{
    (void)*(const volatile char *)body;
}

/* ---- the trace ---- */

static struct trace open_trace(const char *path, size_t warm)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat facts;
    if (fd < 0 || fstat(fd, &facts) != 0)
        fail(path);
    struct trace trace = { .length = (size_t)facts.st_size / sizeof(uint32_t), .warm = warm };
    if (warm >= trace.length) {
        fprintf(stderr, "%s: no request is left after the first %zu\n", path, warm);
        exit(2);
    }
    trace.objects = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    if (trace.objects == MAP_FAILED)
        fail(path);
    close(fd);
    uint32_t last = 0;
    for (size_t i = 0; i < trace.length; i++)
        last = trace.objects[i] > last ? trace.objects[i] : last;
    trace.names = allocate(((size_t)last + 1) * NAME_BYTES);
    for (size_t i = 0; i <= last; i++)
        trace.name_length = (size_t)snprintf(trace.names[i], NAME_BYTES, "/%08zx.html", i);
    return trace;
}

static bool ask(const struct worker *worker, size_t at)
{
    const struct trace *trace = worker->trace;
    const struct span name = { trace->names[trace->objects[at]], trace->name_length };
    return worker->contestant->ask(worker->cache, worker->number, name);
}

/* ---- replaying ---- */

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The time of one reading of the clock, which every measurement includes. */
static uint64_t cost_of_clock(void)
{
    static uint64_t looks[CLOCK_LOOKS];
    for (size_t i = 0; i < CLOCK_LOOKS; i++) {
        const uint64_t before_ns = now_ns();
        looks[i] = now_ns() - before_ns;
    }
    qsort(looks, CLOCK_LOOKS, sizeof(looks[0]), compare);
    return looks[CLOCK_LOOKS / 2];
}

static void keep_time(struct worker *worker, bool hit, uint64_t took_ns)
{
    took_ns = took_ns > worker->clock_ns ? took_ns - worker->clock_ns : 0;
    took_ns = took_ns < SLOWEST_NS ? took_ns : SLOWEST_NS;
    worker->times[hit ? HITS : MISSES][histogram_index(took_ns, BITS)]++;
}

static void replay(struct worker *worker)
{
    unsigned until_timed = SAMPLE;
    for (unsigned pass = 0; pass < worker->passes; pass++) {
        size_t at = worker->trace->warm + worker->number;
        for (; at < worker->trace->length; at += worker->workers) {
            if (--until_timed > 0) {
                worker->hits += ask(worker, at);
                continue;
            }
            until_timed = SAMPLE;
            const uint64_t before_ns = now_ns();
            const bool hit = ask(worker, at);
            keep_time(worker, hit, now_ns() - before_ns);
            worker->hits += hit;
        }
    }
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    /* A thread that waits must not delay reclamation: enter the cache after the start. */
    pthread_barrier_wait(worker->start);
    worker->began_ns = now_ns();
    const uint64_t before_ns = cpu_ns();
    worker->contestant->enter(worker->cache, worker->number);
    replay(worker);
    worker->contestant->leave(worker->cache, worker->number);
    worker->cpu_ns = cpu_ns() - before_ns;
    worker->ended_ns = now_ns();
    return NULL;
}

static uint64_t warm_up(const struct worker *worker)
{
    uint64_t hits = 0;
    worker->contestant->enter(worker->cache, worker->number);
    for (size_t i = 0; i < worker->trace->warm; i++)
        hits += ask(worker, i);
    worker->contestant->leave(worker->cache, worker->number);
    return hits;
}

static void run(struct worker *workers, unsigned count)
{
    pthread_barrier_t start;
    pthread_t threads[WORKERS_MAX];
    if (pthread_barrier_init(&start, NULL, count) != 0)
        fail("pthread_barrier_init");
    for (unsigned i = 0; i < count; i++) {
        workers[i].start = &start;
        const int error = pthread_create(&threads[i], NULL, work, &workers[i]);
        if (error != 0) {
            errno = error;
            fail("pthread_create");
        }
    }
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&start);
}

/* ---- the result ---- */

/* Prints the count and the percentiles. The names of the members begin with `prefix`. */
static void print_quantiles(const char *prefix, const uint64_t *counts, size_t buckets)
{
    static const struct {
        const char *name;
        double part;
    } quantiles[] = { { "p50", 0.5 }, { "p90", 0.9 }, { "p99", 0.99 }, { "p999", 0.999 } };
    const uint64_t total = histogram_total(counts, buckets);
    printf(",\"%stimed\":%llu", prefix, (unsigned long long)total);
    for (size_t i = 0; total > 0 && i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
        const size_t at = histogram_quantile(counts, buckets, total, quantiles[i].part);
        printf(",\"%s%s_ns\":%llu", prefix, quantiles[i].name,
               (unsigned long long)histogram_middle(at, BITS));
    }
}

static void add_up(uint64_t *sum, const uint64_t *counts, size_t buckets)
{
    for (size_t i = 0; i < buckets; i++)
        sum[i] += counts[i];
}

static uint64_t *new_histogram(void)
{
    uint64_t *counts = calloc(histogram_buckets(SLOWEST_NS, BITS), sizeof(*counts));
    CHECK(counts != NULL);
    return counts;
}

static void print_times(const struct worker *workers, unsigned count)
{
    static const char *const prefixes[KINDS] = { [MISSES] = "miss_", [HITS] = "hit_" };
    const size_t buckets = histogram_buckets(SLOWEST_NS, BITS);
    uint64_t *all = new_histogram();
    for (unsigned kind = 0; kind < KINDS; kind++) {
        uint64_t *sum = new_histogram();
        for (unsigned i = 0; i < count; i++)
            add_up(sum, workers[i].times[kind], buckets);
        print_quantiles(prefixes[kind], sum, buckets);
        add_up(all, sum, buckets);
        free(sum);
    }
    print_quantiles("", all, buckets);
    free(all);
}

static void print(const struct worker *workers, unsigned count, size_t capacity, uint64_t warm_hits)
{
    const struct worker *first = &workers[0];
    const struct trace *trace = first->trace;
    uint64_t hits = 0, cpu = 0, began_ns = UINT64_MAX, ended_ns = 0;
    for (unsigned i = 0; i < count; i++) {
        hits += workers[i].hits;
        cpu += workers[i].cpu_ns;
        began_ns = workers[i].began_ns < began_ns ? workers[i].began_ns : began_ns;
        ended_ns = workers[i].ended_ns > ended_ns ? workers[i].ended_ns : ended_ns;
    }
    printf("{\"contestant\":\"%s\",\"capacity\":%zu,\"workers\":%u,\"requests\":%zu,\"hits\":%llu,"
           "\"warm_requests\":%zu,\"warm_hits\":%llu,\"refused\":%llu,\"ns\":%llu,\"cpu_ns\":%llu",
           first->contestant->name, capacity, count, (trace->length - trace->warm) * first->passes,
           (unsigned long long)hits, trace->warm, (unsigned long long)warm_hits,
           (unsigned long long)first->contestant->refused(first->cache),
           (unsigned long long)(ended_ns - began_ns), (unsigned long long)cpu);
    print_times(workers, count);
    puts("}");
}

static int usage(void)
{
    fprintf(stderr,
            "usage: cache sieve|lru|rwlock|stamps|semaphore TRACE WARM CAPACITY WORKERS PASSES\n"
            "CAPACITY is %d at least, WORKERS %d at most.\n",
            CAPACITY_MIN, WORKERS_MAX);
    return 2;
}

static void prepare(struct worker *workers, unsigned count, const struct worker *first)
{
    const uint64_t clock_ns = cost_of_clock();
    for (unsigned i = 0; i < count; i++) {
        workers[i] = *first;
        workers[i].number = i;
        workers[i].workers = count;
        workers[i].clock_ns = clock_ns;
        for (unsigned kind = 0; kind < KINDS; kind++)
            workers[i].times[kind] = new_histogram();
    }
}

int main(int argc, char **argv)
{
    if (argc != 7)
        return usage();
    const struct contestant *contestant = NULL;
    for (size_t i = 0; i < sizeof(contestants) / sizeof(contestants[0]); i++)
        if (strcmp(argv[1], contestants[i]->name) == 0)
            contestant = contestants[i];
    const size_t warm = strtoull(argv[3], NULL, 10), capacity = strtoull(argv[4], NULL, 10);
    const unsigned count = (unsigned)strtoul(argv[5], NULL, 10);
    const unsigned passes = (unsigned)strtoul(argv[6], NULL, 10);
    if (contestant == NULL || capacity < CAPACITY_MIN || count == 0 || count > WORKERS_MAX ||
        passes == 0)
        return usage();

    struct trace trace = open_trace(argv[2], warm);
    void *cache = contestant->make(capacity, count);
    static struct worker workers[WORKERS_MAX];
    prepare(workers, count,
            &(struct worker){
                .trace = &trace, .contestant = contestant, .cache = cache, .passes = passes });
    const uint64_t warm_hits = warm_up(&workers[0]);
    run(workers, count);
    print(workers, count, capacity, warm_hits);
    contestant->end(cache);
    for (unsigned i = 0; i < count; i++)
        for (unsigned kind = 0; kind < KINDS; kind++)
            free(workers[i].times[kind]);
    munmap((void *)(uintptr_t)trace.objects, trace.length * sizeof(uint32_t));
    free(trace.names);
    return 0;
}
