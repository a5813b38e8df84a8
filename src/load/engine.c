/* SPDX-License-Identifier: MIT */
#include "load/engine.h"

#include "base/duration.h"
#include "load/aggregate.h"
#include "load/thread.h"
#include "os/clock.h"
#include "os/process.h"
#include "os/signal.h"
#include "os/usage.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define PROGRESS_EVERY_NS (DURATION_SECOND / 2)
#define LEAD_NS           (DURATION_SECOND / 100) /* time for all threads to start */

/* The CPU time of the server, step by step. */
struct server_watch {
    size_t step;
    bool inside;      /* the measured time of the step */
    uint64_t from_ns; /* its start */
    uint64_t user_ns, system_ns;
};

struct engine {
    const struct load_plan *plan;
    const struct load_engine *how;
    struct load_shared shared;
    struct load_thread *threads;
    unsigned started;
    struct load_aggregate aggregate;
    struct server_watch server;
    int stops; /* number of stop requests */
};

/* ---- start and end ---- */

static bool may_run_on_its_cpus(const struct load_plan *plan)
{
    cpu_set_t set;
    if (plan->cpu_count == 0 || sched_getaffinity(0, sizeof(set), &set) < 0)
        return true;
    for (unsigned i = 0; i < plan->cpu_count; i++)
        if (plan->cpus[i] < 0 || plan->cpus[i] >= CPU_SETSIZE ||
            !CPU_ISSET((unsigned)plan->cpus[i], &set))
            return false;
    return true;
}

static int make_shared(struct load_shared *shared, const struct load_plan *plan)
{
    *shared = (struct load_shared){ .plan = plan,
                                    .requests = load_schedule_share(plan->requests, plan->shard,
                                                                    plan->shards),
                                    .lock = PTHREAD_MUTEX_INITIALIZER };
    shared->main_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    shared->first_body = calloc(plan->target_count, sizeof(*shared->first_body));
    shared->quota = calloc(plan->step_count, sizeof(*shared->quota));
    shared->thread_fds = calloc(plan->threads, sizeof(*shared->thread_fds));
    if (shared->main_fd < 0)
        return -errno;
    if (!shared->first_body || !shared->quota || !shared->thread_fds)
        return -ENOMEM;
    for (unsigned i = 0; i < plan->threads; i++) {
        shared->thread_fds[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (shared->thread_fds[i] < 0)
            return -errno;
    }
    return load_schedule_choice_init(&shared->choice, plan->targets, plan->target_count,
                                     plan->zipf);
}

static void close_shared(struct load_shared *shared, unsigned threads)
{
    for (unsigned i = 0; shared->thread_fds && i < threads; i++)
        if (shared->thread_fds[i] > 0)
            close(shared->thread_fds[i]);
    if (shared->main_fd >= 0)
        close(shared->main_fd);
    free(shared->thread_fds);
    free(shared->quota);
    free(shared->first_body);
    load_schedule_choice_done(&shared->choice);
}

static void set_start(struct load_shared *shared)
{
    uint64_t now_ns = os_clock_now_ns();
    int64_t unix_ns = os_clock_wall_ns(), wait_ns = shared->plan->start_at_unix_ns - unix_ns;
    shared->from_ns = now_ns + (wait_ns > 0 ? (uint64_t)wait_ns : LEAD_NS);
    shared->from_unix_ns = unix_ns + (int64_t)(shared->from_ns - now_ns);
}

static int start_threads(struct engine *engine)
{
    const struct load_plan *plan = engine->plan;
    engine->threads = calloc(plan->threads, sizeof(*engine->threads));
    if (!engine->threads)
        return -ENOMEM;
    for (unsigned i = 0; i < plan->threads; i++)
        engine->threads[i].epoll_fd = -1;
    for (unsigned i = 0; i < plan->threads; i++) {
        int rc = load_thread_init(&engine->threads[i], &engine->shared, i);
        if (rc < 0)
            return rc;
    }
    set_start(&engine->shared);
    engine->server.from_ns = engine->shared.from_ns + plan->warmup_ns;
    for (; engine->started < plan->threads; engine->started++) {
        struct load_thread *thread = &engine->threads[engine->started];
        atomic_fetch_add(&engine->shared.running, 1);
        int error = pthread_create(&thread->id, NULL, load_thread_run, thread);
        if (error != 0) {
            atomic_fetch_sub(&engine->shared.running, 1);
            return -error;
        }
    }
    return 0;
}

static void stop_threads(struct engine *engine)
{
    atomic_store(&engine->shared.stop, ++engine->stops);
    for (unsigned i = 0; i < engine->started; i++)
        (void)eventfd_write(engine->shared.thread_fds[i], 1);
}

/* ---- the server ---- */

static void sample_server(struct engine *engine, struct load_outcome *ret_outcome)
{
    struct server_watch *server = &engine->server;
    uint64_t user_ns, system_ns;
    if (os_usage_of_family(engine->plan->server_pid, &user_ns, &system_ns) < 0)
        return;
    if (ret_outcome && user_ns >= server->user_ns && system_ns >= server->system_ns) {
        ret_outcome->server_user_ns = user_ns - server->user_ns;
        ret_outcome->server_system_ns = system_ns - server->system_ns;
    }
    server->user_ns = user_ns;
    server->system_ns = system_ns;
}

/* The end of the measured time of the server's step; UINT64_MAX: not known yet. */
static uint64_t server_step_end_ns(const struct engine *engine)
{
    const struct server_watch *server = &engine->server;
    if (engine->stops > 0)
        return 0;
    if (engine->plan->requests == 0)
        return server->from_ns + engine->plan->duration_ns;
    uint64_t over_ns = atomic_load(&engine->shared.quota[server->step].over_ns);
    return over_ns > 0 ? over_ns : UINT64_MAX;
}

/* Reads the server's CPU time at the start and end of each step. Returns when to call again. */
static uint64_t sample_server_steps(struct engine *engine, uint64_t now_ns)
{
    struct server_watch *server = &engine->server;
    while (engine->plan->server_pid > 0 && server->step < engine->plan->step_count) {
        uint64_t ends_ns = server_step_end_ns(engine);
        if (!server->inside && now_ns < server->from_ns)
            return server->from_ns;
        if (!server->inside) {
            sample_server(engine, NULL);
            server->inside = true;
        }
        if (now_ns < ends_ns)
            return ends_ns;
        sample_server(engine, &engine->aggregate.outcomes[server->step]);
        server->from_ns = ends_ns + engine->plan->warmup_ns;
        server->inside = false;
        if (engine->stops > 0)
            server->step = engine->plan->step_count;
        else
            server->step++;
    }
    return UINT64_MAX;
}

/* ---- during the run ---- */

static int collect_counts(struct engine *engine)
{
    struct load_shared *shared = &engine->shared;
    eventfd_t ignored;
    (void)eventfd_read(shared->main_fd, &ignored);
    CHECK(pthread_mutex_lock(&shared->lock) == 0);
    struct load_slice *slices = shared->slices;
    struct load_portion *portions = shared->portions;
    shared->slices = NULL;
    shared->portions = NULL;
    CHECK(pthread_mutex_unlock(&shared->lock) == 0);
    return load_aggregate_take(&engine->aggregate, slices, portions);
}

static void report_progress(struct engine *engine, uint64_t now_ns)
{
    const struct load_plan *plan = engine->plan;
    const struct load_aggregate *sums = &engine->aggregate;
    if (!engine->how->progress)
        return;
    uint64_t from_ns = engine->shared.from_ns, each_ns = plan->warmup_ns + plan->duration_ns;
    uint64_t end_ns = from_ns + plan->step_count * each_ns;
    struct load_progress progress = { .step = sums->step,
                                      .step_count = plan->step_count,
                                      .left_ns = end_ns > now_ns ? end_ns - now_ns : 0,
                                      .answers = sums->step_answers,
                                      .errors = sums->step_errors,
                                      .latest = sums->latest };
    if (plan->requests > 0)
        progress.left_ns = UINT64_MAX;
    else if (now_ns > from_ns && now_ns < end_ns)
        progress.step = (size_t)((now_ns - from_ns) / each_ns);
    progress.warming = plan->requests == 0 &&
                       (now_ns < from_ns || (now_ns - from_ns) % each_ns < plan->warmup_ns);
    progress.load = plan->steps[progress.step];
    engine->how->progress(engine->how->context, &progress);
}

static void handle_signals(struct engine *engine)
{
    if (engine->how->signal_fd >= 0 && os_signal_read(engine->how->signal_fd) > 0)
        stop_threads(engine);
}

static int supervise_threads(struct engine *engine)
{
    uint64_t report_ns = os_clock_now_ns() + PROGRESS_EVERY_NS;
    int rc = 0;
    while (atomic_load(&engine->shared.running) > 0) {
        uint64_t now_ns = os_clock_now_ns(), sample_ns = sample_server_steps(engine, now_ns);
        if (now_ns >= report_ns) {
            report_progress(engine, now_ns);
            report_ns = now_ns + PROGRESS_EVERY_NS;
        }
        struct pollfd fds[] = { { .fd = engine->shared.main_fd, .events = POLLIN },
                                { .fd = engine->how->signal_fd, .events = POLLIN } };
        if (poll(fds, 2, os_clock_wait_ms(sample_ns < report_ns ? sample_ns : report_ns)) < 0 &&
            errno != EINTR)
            rc = -errno;
        handle_signals(engine);
        int gathered = collect_counts(engine);
        rc = gathered < 0 ? gathered : rc;
        if (rc < 0 && engine->stops < 2)
            stop_threads(engine);
    }
    (void)sample_server_steps(engine, os_clock_now_ns());
    return rc;
}

/* ---- the run ---- */

int load_engine_run(const struct load_plan *plan, const struct load_engine *how,
                    struct load_run *ret_run)
{
    *ret_run = (struct load_run){ .plan = plan };
    if (plan->server_pid > 0)
        ret_run->server_cpus = os_process_cpus(plan->server_pid);
    if (!may_run_on_its_cpus(plan))
        return -ENXIO;
    struct engine engine = { .plan = plan, .how = how };
    int rc = make_shared(&engine.shared, plan);
    if (rc == 0)
        rc = load_aggregate_init(&engine.aggregate, plan->step_count, plan->threads);
    if (rc == 0)
        rc = start_threads(&engine);
    if (rc < 0 && engine.started > 0) {
        engine.stops = 1;
        stop_threads(&engine);
    }
    if (engine.started > 0) {
        int watched = supervise_threads(&engine);
        rc = rc < 0 ? rc : watched;
    }
    for (unsigned i = 0; i < engine.started; i++) {
        CHECK(pthread_join(engine.threads[i].id, NULL) == 0);
        rc = rc == 0 ? engine.threads[i].error : rc;
    }
    int gathered = engine.started > 0 ? collect_counts(&engine) : 0;
    rc = rc == 0 ? gathered : rc;
    if (rc == 0)
        load_aggregate_finish(&engine.aggregate, ret_run);
    ret_run->interrupted = engine.stops > 0;
    for (unsigned i = 0; engine.threads && i < plan->threads; i++)
        load_thread_done(&engine.threads[i]);
    free(engine.threads);
    load_aggregate_done(&engine.aggregate);
    close_shared(&engine.shared, plan->threads);
    return rc;
}

void load_engine_done(struct load_run *run)
{
    for (size_t i = 0; run->outcomes && i < run->plan->step_count; i++)
        load_result_free_outcome(&run->outcomes[i]);
    free(run->outcomes);
    run->outcomes = NULL;
}
