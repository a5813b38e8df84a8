/* SPDX-License-Identifier: MIT
 *
 * A thread of the generator: its users, one epoll, and the steps in their order. All threads know
 * when each step starts, is measured and ends before the first one starts. With --requests they
 * know the end once the last request has ended. So no thread waits for another.
 */
#include "load/thread.h"

#include "base/duration.h"
#include "load/connection.h"
#include "load/ends.h"
#include "load/multiplex.h"
#include "load/wait.h"
#include "os/clock.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

enum { EVENTS = 256, SWEEP_USERS = 4096, SWEEPS_OF_LIMIT = 32 };

#define SECOND   DURATION_SECOND
#define DRAIN_NS SECOND /* the time that requests under way have at the end */

/* ---- start and end ---- */

int load_thread_init(struct load_thread *thread, struct load_shared *shared, unsigned index)
{
    const struct load_plan *plan = shared->plan;
    unsigned most = 0;
    for (size_t i = 0; i < plan->step_count; i++)
        most = plan->steps[i].users > most ? plan->steps[i].users : most;
    *thread = (struct load_thread){
        .plan = plan,
        .shared = shared,
        .index = index,
        .epoll_fd = epoll_create1(EPOLL_CLOEXEC),
        .user_size = sizeof(struct load_user) + plan->pipeline * sizeof(struct load_asked),
        .user_count = (uint32_t)load_schedule_share(most, index, plan->threads),
        .buffer = malloc(HTTP_RESPONSE_HEAD_MAX + LOAD_BUFFER_SIZE),
        .plain = plan->tls != LOAD_TLS_NONE ? malloc(HTTP_RESPONSE_HEAD_MAX + LOAD_BUFFER_SIZE)
                                            : NULL,
        .out = plan->http2 ? malloc(LOAD_OUT_SIZE) : NULL,
        .frames = plan->http2 ? calloc(1, sizeof(*thread->frames)) : NULL
    };
    if (thread->epoll_fd < 0)
        return -errno;
    uint32_t count = thread->user_count;
    thread->users = calloc(count + 1u, thread->user_size);
    thread->free_ring = calloc(count + 1u, sizeof(*thread->free_ring));
    thread->tally.portion = load_tally_portion_new(0);
    thread->tally.slice = load_tally_slice_new(0, 0, false);
    if (!thread->buffer || (plan->tls != LOAD_TLS_NONE && !thread->plain) ||
        (plan->http2 && (!thread->out || !thread->frames)) || !thread->users ||
        !thread->free_ring || !thread->tally.portion || !thread->tally.slice ||
        load_heap_init(&thread->heap, count) < 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        struct load_user *user = load_thread_user(thread, i);
        user->number = i;
        user->global = (i * plan->threads + index) * plan->shards + plan->shard;
        user->random = load_schedule_random_of(plan->seed, user->global);
    }
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = NULL };
    return epoll_ctl(thread->epoll_fd, EPOLL_CTL_ADD, shared->thread_fds[index], &event) < 0
               ? -errno
               : 0;
}

void load_thread_done(struct load_thread *thread)
{
    for (uint32_t i = 0; thread->users && i < thread->user_count; i++) {
        struct load_user *user = load_thread_user(thread, i);
        if (user->multiplex)
            load_multiplex_end(thread, user);
        load_connection_close(user);
        load_multiplex_free(user->multiplex);
        load_tls_free(user->tls);
    }
    tls_chunks_trim(&thread->chunks, 0);
    load_heap_done(&thread->heap);
    free(thread->users);
    free(thread->free_ring);
    free(thread->buffer);
    free(thread->plain);
    free(thread->out);
    free(thread->frames);
    free(thread->tally.slice);
    load_tally_portion_free(thread->tally.portion);
    if (thread->epoll_fd >= 0)
        close(thread->epoll_fd);
}

static void hand_over_counts(struct load_thread *thread, struct load_slice *slice,
                             struct load_portion *portion)
{
    struct load_shared *shared = thread->shared;
    CHECK(pthread_mutex_lock(&shared->lock) == 0);
    if (slice) {
        slice->next = shared->slices;
        shared->slices = slice;
    }
    if (portion) {
        portion->next = shared->portions;
        shared->portions = portion;
    }
    CHECK(pthread_mutex_unlock(&shared->lock) == 0);
    if (portion)
        (void)eventfd_write(shared->main_fd, 1);
}

/* ---- measuring ---- */

static uint64_t ns_of(struct timeval time)
{
    return (uint64_t)time.tv_sec * SECOND + (uint64_t)time.tv_usec * 1000;
}

static void begin_counting(struct load_thread *thread)
{
    struct load_portion *portion = load_tally_portion_new(thread->step);
    struct load_slice *slice = load_tally_slice_new(thread->step, 0, true);
    if (!portion || !slice) {
        load_tally_portion_free(portion);
        free(slice);
        thread->error = -ENOMEM;
        return;
    }
    hand_over_counts(thread, thread->tally.slice, NULL);
    load_tally_portion_free(thread->tally.portion);
    thread->tally.portion = portion;
    thread->tally.slice = slice;
    thread->tally.gap_from_ns = thread->now_ns;
    thread->measured_from_ns = thread->now_ns;
    thread->thought_ns = 0;
    thread->away_ns = 0;
    thread->spun_ns = 0;
    struct load_arrivals next = thread->arrivals;
    thread->overdue = thread->has_arrivals ? load_schedule_arrivals_pass(&next, thread->now_ns) : 0;
    load_ends_clip(thread, thread->now_ns, 1);
    struct rusage usage;
    CHECK(getrusage(RUSAGE_THREAD, &usage) == 0);
    thread->cpu_user_ns = ns_of(usage.ru_utime);
    thread->cpu_system_ns = ns_of(usage.ru_stime);
}

/* How many of `due` requests --requests still allows. No other thread gets these. */
static uint64_t take_from_quota(struct load_thread *thread, uint64_t due)
{
    if (thread->plan->requests == 0)
        return due;
    uint64_t asked = atomic_fetch_add(&thread->shared->quota[thread->step].asked, due);
    uint64_t left = asked < thread->shared->requests ? thread->shared->requests - asked : 0;
    return due < left ? due : left;
}

/* Requests that were overdue at the start of the measured time count only if they are sent in it.
 * So `requests` and `unsent` add up to the rate times the measured time, or to --requests. */
static uint64_t count_unsent(struct load_thread *thread, uint64_t until_ns)
{
    if (!thread->has_arrivals)
        return 0;
    uint64_t overdue = load_schedule_arrivals_pass(&thread->arrivals, until_ns);
    return take_from_quota(thread, overdue > thread->overdue ? overdue - thread->overdue : 0);
}

static void end_counting(struct load_thread *thread)
{
    struct load_portion *portion = thread->tally.portion;
    struct load_outcome *outcome = &portion->outcome;
    /* Nothing is counted after the end of the phase, even if this thread notices the end late. */
    uint64_t end_ns = thread->phase_end_ns < thread->now_ns ? thread->phase_end_ns : thread->now_ns;
    struct rusage usage;
    CHECK(getrusage(RUSAGE_THREAD, &usage) == 0);
    outcome->generator_user_ns = ns_of(usage.ru_utime) - thread->cpu_user_ns;
    outcome->generator_system_ns = ns_of(usage.ru_stime) - thread->cpu_system_ns;
    uint64_t used_ns = outcome->generator_user_ns + outcome->generator_system_ns;
    outcome->busiest_thread_ns = used_ns > thread->spun_ns ? used_ns - thread->spun_ns : 0;
    outcome->measured_ns = end_ns > thread->measured_from_ns ? end_ns - thread->measured_from_ns
                                                             : 0;
    outcome->began_unix_ns = thread->shared->from_unix_ns +
                             (int64_t)(thread->measured_from_ns - thread->shared->from_ns);
    load_ends_clip(thread, end_ns, -1);
    outcome->thought_ns = (double)thread->thought_ns;
    outcome->user_ns = (double)thread->active * thread->plan->pipeline *
                           (double)outcome->measured_ns -
                       (double)thread->away_ns;
    outcome->unsent = count_unsent(thread, end_ns);
    load_ends_count(thread, end_ns, outcome);
    load_tally_end_gap(&thread->tally, end_ns, true, 0);

    struct load_portion *next = load_tally_portion_new(thread->step);
    struct load_slice *slice = load_tally_slice_new(thread->step, 0, false);
    if (!next || !slice) {
        load_tally_portion_free(next);
        free(slice);
        thread->error = -ENOMEM;
        return;
    }
    hand_over_counts(thread, thread->tally.slice, NULL);
    hand_over_counts(thread, NULL, portion);
    thread->tally.portion = next;
    thread->tally.slice = slice;
}

/* Ends a second. */
static void turn_slice(struct load_thread *thread)
{
    struct load_slice *old = thread->tally.slice;
    struct load_slice *slice = load_tally_slice_new(old->step, old->index + 1, old->measured);
    if (!slice) {
        thread->error = -ENOMEM;
        return;
    }
    hand_over_counts(thread, old, NULL);
    thread->tally.slice = slice;
}

/* ---- steps ---- */

/* Starts the idle users of this step, spread over their think time. */
static void start_users(struct load_thread *thread)
{
    const struct load_plan *plan = thread->plan;
    uint64_t span_ns = plan->loop == LOAD_PACED ? plan->pace_ns
                                                : load_schedule_think_mean_ns(&plan->think);
    for (uint32_t i = 0; i < thread->active; i++) {
        struct load_user *user = load_thread_user(thread, i);
        if (user->mood != LOAD_IDLE)
            continue;
        uint64_t wait_ns = load_schedule_stagger_ns(user->global, span_ns);
        if (plan->loop == LOAD_OPEN) {
            load_user_rest(thread, user);
            continue;
        }
        user->mood = wait_ns > 0
                         ? LOAD_THINKING
                         : LOAD_AWAY; /* all at once: the lateness is no fault of the generator */
        user->due_ns = thread->now_ns + wait_ns;
        thread->thought_ns += (int64_t)wait_ns;
        load_user_set_timer(thread, user);
    }
}

static void begin_step(struct load_thread *thread)
{
    const struct load_plan *plan = thread->plan;
    const struct load_step *step = &plan->steps[thread->step];
    thread->phase = LOAD_PHASE_WARM;
    thread->phase_end_ns = thread->step_ns + plan->warmup_ns;
    thread->tally.portion->step = thread->tally.slice->step = thread->step;
    thread->active = (uint32_t)load_schedule_share(step->users, thread->index, plan->threads);
    if (plan->loop == LOAD_OPEN) {
        load_schedule_arrivals_begin(&thread->arrivals, plan, thread->step, thread->index,
                                     thread->step_ns);
        thread->has_arrivals = true;
    }
    if (plan->warmup_ns > 0) /* else the users start with the measured time */
        start_users(thread);
}

static void begin_drain(struct load_thread *thread)
{
    thread->phase = LOAD_PHASE_DRAIN;
    thread->phase_end_ns = thread->now_ns + DRAIN_NS;
    thread->has_arrivals = false;
}

/* The end of the measured time. With --requests it is UINT64_MAX until the last one has ended. */
static uint64_t measured_end_ns(const struct load_thread *thread)
{
    if (thread->plan->requests == 0)
        return thread->step_ns + thread->plan->warmup_ns + thread->plan->duration_ns;
    uint64_t over_ns = atomic_load(&thread->shared->quota[thread->step].over_ns);
    return over_ns > 0 ? over_ns : UINT64_MAX;
}

static void next_phase(struct load_thread *thread)
{
    switch (thread->phase) {
    case LOAD_PHASE_WAIT:
        thread->step_ns = thread->phase_end_ns;
        begin_step(thread);
        break;
    case LOAD_PHASE_WARM:
        begin_counting(thread);
        thread->phase = LOAD_PHASE_MEASURE;
        thread->phase_end_ns = measured_end_ns(thread);
        start_users(thread); /* those that became idle in the warm-up, or have not started yet */
        break;
    case LOAD_PHASE_MEASURE:
        end_counting(thread);
        thread->step_ns = thread->phase_end_ns;
        if (++thread->step < thread->plan->step_count)
            begin_step(thread);
        else
            begin_drain(thread);
        break;
    case LOAD_PHASE_DRAIN:
        break;
    }
}

void load_thread_edge(struct load_thread *thread)
{
    while (thread->now_ns >= thread->phase_end_ns && thread->phase != LOAD_PHASE_DRAIN &&
           thread->error == 0)
        next_phase(thread);
    uint64_t from_ns = thread->phase == LOAD_PHASE_MEASURE ? thread->measured_from_ns
                                                           : thread->step_ns;
    if (thread->phase == LOAD_PHASE_WARM || thread->phase == LOAD_PHASE_MEASURE) {
        while (thread->error == 0 &&
               thread->now_ns >= from_ns + (thread->tally.slice->index + 1) * SECOND)
            turn_slice(thread);
        uint64_t second_ns = from_ns + (thread->tally.slice->index + 1) * SECOND;
        thread->edge_ns = second_ns < thread->phase_end_ns ? second_ns : thread->phase_end_ns;
    } else {
        thread->edge_ns = thread->phase_end_ns;
    }
}

/* ---- --requests ---- */

bool load_thread_admits(struct load_thread *thread, bool *ret_counted)
{
    *ret_counted = thread->plan->requests == 0;
    if (thread->phase == LOAD_PHASE_DRAIN)
        return false;
    if (*ret_counted || thread->phase != LOAD_PHASE_MEASURE)
        return true;
    struct load_quota *quota = &thread->shared->quota[thread->step];
    *ret_counted = atomic_fetch_add(&quota->asked, 1) < thread->shared->requests;
    return *ret_counted;
}

/* After the last of --requests, the arrivals of the step end: no request is due any more. */
static bool ends_arrivals(const struct load_thread *thread)
{
    const struct load_shared *shared = thread->shared;
    return thread->plan->requests > 0 && thread->phase == LOAD_PHASE_MEASURE &&
           atomic_load(&shared->quota[thread->step].asked) >= shared->requests;
}

void load_thread_ended(struct load_thread *thread)
{
    struct load_shared *shared = thread->shared;
    if (thread->plan->requests == 0)
        return;
    struct load_quota *quota = &shared->quota[thread->step];
    if (atomic_fetch_add(&quota->ended, 1) + 1 < shared->requests)
        return;
    atomic_store(&quota->over_ns, thread->now_ns);
    for (unsigned i = 0; i < thread->plan->threads; i++)
        (void)eventfd_write(shared->thread_fds[i], 1);
}

/* ---- the loop ---- */

/* Users due meanwhile wait: many that fail and retry would keep out events and signals. */
static void serve_due_users(struct load_thread *thread)
{
    const uint64_t until_ns = thread->now_ns;
    while (load_heap_next_ns(&thread->heap) <= until_ns && thread->now_ns < thread->edge_ns) {
        struct load_due due = load_heap_take(&thread->heap);
        thread->now_ns = os_clock_now_ns(); /* the user before has taken time to send */
        load_user_wake(thread, load_thread_user(thread, due.user));
    }
    struct load_user *user;
    while (thread->has_arrivals &&
           load_schedule_arrivals_due_ns(&thread->arrivals) <= thread->now_ns) {
        if (ends_arrivals(thread)) {
            thread->has_arrivals = false;
            break;
        }
        user = load_user_take_free(thread);
        if (!user)
            break;
        uint64_t due_ns = load_schedule_arrivals_due_ns(&thread->arrivals);
        load_schedule_arrivals_take(&thread->arrivals);
        thread->now_ns = os_clock_now_ns();
        load_durations_add(&thread->tally.portion->outcome.lag, thread->now_ns - due_ns);
        load_user_begin(thread, user, due_ns);
    }
}

/* Checks the limits of some users. All are checked many times within the shortest limit. */
static void check_some_limits(struct load_thread *thread)
{
    if (thread->now_ns < thread->sweep_ns)
        return;
    thread->sweep_ns = thread->now_ns + thread->sweep_gap_ns;
    uint32_t count = thread->user_count < SWEEP_USERS ? thread->user_count : SWEEP_USERS;
    for (uint32_t i = 0; i < count; i++) {
        thread->sweep_at = thread->sweep_at + 1 < thread->user_count ? thread->sweep_at + 1 : 0;
        load_user_check_limits(thread, load_thread_user(thread, thread->sweep_at));
    }
}

static void plan_sweeps(struct load_thread *thread)
{
    const struct load_plan *plan = thread->plan;
    const uint64_t limits_ns[] = { plan->connect_timeout_ns, plan->first_byte_timeout_ns,
                                   plan->response_timeout_ns };
    uint64_t least_ns = UINT64_MAX;
    for (unsigned i = 0; i < 3; i++)
        if (limits_ns[i] > 0 && limits_ns[i] < least_ns)
            least_ns = limits_ns[i];
    if (least_ns == UINT64_MAX) {
        thread->sweep_ns = UINT64_MAX;
        return;
    }
    uint64_t gap_ns = least_ns / SWEEPS_OF_LIMIT / (thread->user_count / SWEEP_USERS + 1);
    gap_ns = gap_ns < SECOND / 4 ? gap_ns : SECOND / 4;
    thread->sweep_gap_ns = gap_ns > SECOND / 1000 ? gap_ns : SECOND / 1000;
    thread->sweep_ns = thread->now_ns + thread->sweep_gap_ns;
}

/* Handles a notice of the main thread or another one: a step has ended, or the run must end. */
static void handle_notice(struct load_thread *thread)
{
    eventfd_t ignored;
    (void)eventfd_read(thread->shared->thread_fds[thread->index], &ignored);
    int stop = atomic_load(&thread->shared->stop);
    if (thread->phase == LOAD_PHASE_MEASURE)
        thread->phase_end_ns = measured_end_ns(thread);
    if (stop > 0) {
        if (thread->phase == LOAD_PHASE_MEASURE) {
            thread->tally.portion->outcome.interrupted = thread->now_ns < thread->phase_end_ns;
            end_counting(thread);
        }
        if (thread->phase != LOAD_PHASE_DRAIN)
            begin_drain(thread);
    }
    if (stop > 1)
        thread->phase_end_ns = thread->now_ns;
    thread->edge_ns = thread->now_ns;
}

static void pin_to_cpu(const struct load_thread *thread)
{
    const struct load_plan *plan = thread->plan;
    if (plan->cpu_count == 0)
        return;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((unsigned)plan->cpus[thread->index % plan->cpu_count], &set);
    (void)sched_setaffinity(0, sizeof(set), &set); /* load_engine_run has checked that it may */
}

void *load_thread_run(void *argument)
{
    struct load_thread *thread = argument;
    struct epoll_event events[EVENTS];
    thread->phase_end_ns = thread->edge_ns = thread->shared->from_ns;
    pin_to_cpu(thread);
    (void)prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); /* the default is 50 us */
    thread->now_ns = os_clock_now_ns();
    plan_sweeps(thread);
    while (thread->error == 0) {
        if (thread->phase == LOAD_PHASE_DRAIN &&
            (thread->tally.awaited == 0 || thread->now_ns >= thread->phase_end_ns))
            break;
        int count = load_wait_for_events(thread, events, EVENTS);
        if (count < 0)
            thread->error = count;
        if (thread->now_ns >= thread->edge_ns)
            load_thread_edge(thread);
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr)
                load_user_event(thread, events[i].data.ptr, events[i].events);
            else
                handle_notice(thread);
        }
        serve_due_users(thread);
        check_some_limits(thread);
    }
    atomic_fetch_sub(&thread->shared->running, 1);
    (void)eventfd_write(thread->shared->main_fd, 1);
    return NULL;
}
