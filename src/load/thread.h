/* SPDX-License-Identifier: MIT
 *
 * A thread of the generator: it runs its share of the users through all steps.
 */
#pragma once

#include "load/frames.h"
#include "load/headcache.h"
#include "load/heap.h"
#include "load/tally.h"
#include "load/user.h"
#include "os/clock.h"
#include "tls/wire.h"

#include <pthread.h>
#include <stdatomic.h>

/* The state that all threads of a run share. */
struct load_shared {
    const struct load_plan *plan;
    struct load_choice choice;
    uint64_t from_ns; /* start of the first step */
    int64_t from_unix_ns;
    uint64_t requests;            /* of each step, of this shard; 0: by duration */
    _Atomic uint64_t *first_body; /* of each target, for --verify; 0: none has arrived */
    struct load_quota {
        _Atomic uint64_t asked, ended; /* of `requests` */
        _Atomic uint64_t over_ns;      /* when the last one ended; 0: not yet */
    } * quota;                         /* of each step */
    atomic_int stop;                   /* 1: once the requests under way have ended; 2: at once */
    atomic_uint running;               /* number of threads */
    int main_fd;                       /* eventfd: a thread has handed over a step, or has ended */
    int *thread_fds;                   /* eventfds */
    pthread_mutex_t lock;              /* of the two lists */
    struct load_slice *slices;
    struct load_portion *portions;
};

enum load_phase { LOAD_PHASE_WAIT, LOAD_PHASE_WARM, LOAD_PHASE_MEASURE, LOAD_PHASE_DRAIN };

struct load_thread {
    const struct load_plan *plan;
    struct load_shared *shared;
    unsigned index;
    int error; /* the -errno that ended the thread; 0: none */
    int epoll_fd;
    pthread_t id;
    uint64_t now_ns; /* as last read */

    enum load_phase phase;
    size_t step;
    uint64_t step_ns, phase_end_ns; /* start of the step, end of the phase */
    uint64_t edge_ns;               /* the next end of a phase or a second */
    uint64_t measured_from_ns;
    int64_t thought_ns, away_ns; /* sums, without the parts outside of the measured time */
    uint64_t cpu_user_ns, cpu_system_ns;
    uint64_t spun_ns; /* --spin: time in polls that found nothing, since measured_from_ns */
    bool was_idle;    /* the last poll found nothing */

    char *users;
    size_t user_size;
    uint32_t user_count, active; /* active: the users of this step */
    struct load_heap heap;
    uint32_t *free_ring; /* open loop; user_count places */
    uint32_t free_first, free_count;
    struct load_arrivals arrivals;
    bool has_arrivals;
    uint64_t overdue; /* arrivals without a free user, at the start of the measured time */

    struct load_tally tally;
    struct load_headcache headcache;
    char *buffer; /* LOAD_BUFFER_SIZE behind HTTP_RESPONSE_HEAD_MAX */
    char *plain;  /* the same, for what was decrypted; NULL without TLS */
    char *out;    /* LOAD_OUT_SIZE: frames to send, during one call; NULL without HTTP/2 */
    struct load_frames_memory *frames; /* NULL without HTTP/2 */
    struct tls_chunks chunks;
    struct load_agreed agreed[LOAD_AGREED_MAX]; /* what its connections have agreed on */
    uint64_t sweep_ns, sweep_gap_ns;
    uint32_t sweep_at;
};

/* No frame makes the generator send more bytes than it has received, so the replies to a full
 * buffer and a tail fit into LOAD_OUT_SIZE. */
enum { LOAD_BUFFER_SIZE = 256 * 1024, LOAD_OUT_SIZE = 320 * 1024 };

static inline struct load_user *load_thread_user(const struct load_thread *thread, uint32_t number)
{
    return (struct load_user *)(void *)(thread->users + number * thread->user_size);
}

/* Allocates what the thread needs, before it starts. 0 or -errno; end with load_thread_done. */
MUST_USE int load_thread_init(struct load_thread *thread, struct load_shared *shared,
                              unsigned index);
void load_thread_done(struct load_thread *thread);

/* Runs all steps; for pthread_create. An error is left in thread->error. */
void *load_thread_run(void *thread);

/* Handles the end of a phase or a second. */
void load_thread_edge(struct load_thread *thread);

/* Reads the clock, and handles the edge if its time has come. */
static inline void load_thread_read_clock(struct load_thread *thread)
{
    thread->now_ns = os_clock_now_ns();
    if (thread->now_ns >= thread->edge_ns)
        load_thread_edge(thread);
}

/* Whether one more request may start now. `ret_counted`: it is one of --requests. */
bool load_thread_admits(struct load_thread *thread, bool *ret_counted);

/* Whether `limit_ns` has passed since `from_ns`. 0: there is no limit. */
static inline bool load_thread_is_past(const struct load_thread *thread, uint64_t from_ns,
                                       uint64_t limit_ns)
{
    return limit_ns > 0 && thread->now_ns >= from_ns && thread->now_ns - from_ns >= limit_ns;
}

/* One of --requests has ended. */
void load_thread_ended(struct load_thread *thread);
