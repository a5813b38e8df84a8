/* SPDX-License-Identifier: MIT */
#include "top/watch.h"

#include "base/duration.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/signal.h"
#include "top/frame.h"
#include "top/terminal.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One reading of a server, with a count of the pointers to it. */
struct reading {
    struct view view;
    unsigned uses;
};

enum { READINGS = 4 }; /* one for each pointer below, and the next */

struct watch {
    const struct top_source *source;
    struct reading readings[READINGS];
    struct reading *now, *before;
    struct reading *measured; /* the last one that measured resources, for shares of CPU time */
    struct top_frame *frame;
    struct top_canvas canvas;
    int signals;
    int ended_by; /* a signal number; 0: none */
    uint64_t due_ns;
};

static struct reading *use_reading(struct reading *reading)
{
    reading->uses++;
    return reading;
}

static void release_reading(struct reading **reading)
{
    if (*reading && --(*reading)->uses == 0)
        view_done(&(*reading)->view);
    *reading = NULL;
}

static void replace(struct reading **place, struct reading *reading)
{
    release_reading(place);
    *place = use_reading(reading);
}

/* ---- reading ---- */

static double cpu_share(uint64_t before_ns, uint64_t now_ns, double taken_ns)
{
    return now_ns > before_ns ? (double)(now_ns - before_ns) / taken_ns : 0;
}

/* Both lists are in the order of process ids. */
static void compare_machine(struct top_machine *machine, const struct view *before,
                            const struct view *now)
{
    double taken_ns = (double)(now->used_ns - before->used_ns);
    size_t at = 0;
    machine->cpu = cpu_share(before->usage.user_ns + before->usage.system_ns,
                             now->usage.user_ns + now->usage.system_ns, taken_ns);
    machine->count = 0;
    for (size_t i = 0; i < now->process_count && machine->count < TOP_WORKERS_MAX; i++) {
        const struct view_process *process = &now->process[i];
        while (at < before->process_count && before->process[at].pid < process->pid)
            at++;
        bool same = at < before->process_count && before->process[at].pid == process->pid;
        machine->process[machine->count++] = (struct top_load){
            .pid = process->pid,
            .cpu = same ? cpu_share(before->process[at].cpu_ns, process->cpu_ns, taken_ns) : NAN,
        };
    }
}

static void measure_cpu(struct watch *watch)
{
    const struct view *now = &watch->now->view;
    if (watch->measured && watch->measured->view.used_ns == now->used_ns)
        return;
    struct top_frame *frame = watch->frame;
    const struct view *before = watch->measured ? &watch->measured->view : NULL;
    if (before)
        compare_machine(&frame->machine, before, now);
    frame->verdict_count = view_verdicts(now, before, frame->verdict);
    replace(&watch->measured, watch->now);
}

static void compare_readings(struct watch *watch)
{
    struct top_frame *frame = watch->frame;
    frame->now = &watch->now->view;
    frame->before = watch->before ? &watch->before->view : NULL;
    top_rates_between(&frame->rates, frame->before, frame->now);
    top_rates_workers(&frame->workers, frame->before, frame->now);
    top_history_go_on(&frame->history, frame->now, frame->rates.latency_ns);
    measure_cpu(watch);
}

static struct reading *unused(struct watch *watch)
{
    size_t i = 0;
    while (i < READINGS && watch->readings[i].uses > 0)
        i++;
    CHECK(i < READINGS);
    return &watch->readings[i];
}

/* Notes that another master continues the same totals. */
static void note_successor(struct top_frame *frame, const struct view *before,
                           const struct view *now)
{
    if (now->snapshot->master == before->snapshot->master)
        return;
    frame->predecessor = before->snapshot->master;
    frame->taken_ns = now->read_ns;
}

/* Takes `snapshot`. */
static void adopt_reading(struct watch *watch, struct stats_snapshot *snapshot)
{
    struct reading *reading = unused(watch);
    view_init_next(&reading->view, snapshot, watch->now ? &watch->now->view : NULL);
    release_reading(&watch->before);
    if (watch->now && top_rates_comparable(&watch->now->view, &reading->view)) {
        watch->before = use_reading(watch->now);
        note_successor(watch->frame, &watch->now->view, &reading->view);
    } else {
        release_reading(&watch->measured);
        top_history_break(&watch->frame->history);
        watch->frame->machine = (struct top_machine){ .cpu = NAN };
    }
    replace(&watch->now, reading);
    compare_readings(watch);
}

static void read_server(struct watch *watch)
{
    struct stats_snapshot *snapshot = watch->source->take(watch->source->context);
    struct top_frame *frame = watch->frame;
    frame->health = !snapshot            ? TOP_HEALTH_GONE
                    : !snapshot->running ? TOP_HEALTH_DIED
                                         : TOP_HEALTH_RUNS;
    /* For a dead server, the rates before its end stay on the screen. */
    if (snapshot && snapshot->running)
        adopt_reading(watch, snapshot);
    else
        stats_snapshot_free(snapshot);
}

/* ---- the terminal ---- */

static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH };

static int measure_screen(struct watch *watch)
{
    unsigned rows, columns;
    top_terminal_measure(&rows, &columns);
    return top_canvas_resize(&watch->canvas, rows, columns);
}

static void draw(struct watch *watch)
{
    watch->frame->clock_ns = os_clock_now_ns();
    top_frame_draw(watch->frame, &watch->canvas);
    top_terminal_show(&watch->canvas);
}

/* Stops until SIGCONT. If no process could send it, the kernel continues this one at once. */
static void suspend(void)
{
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    top_terminal_leave();
    (void)raise(SIGTSTP);
    (void)pthread_sigmask(SIG_UNBLOCK, &stop, NULL);
    (void)pthread_sigmask(SIG_BLOCK, &stop, NULL);
    top_terminal_return();
}

static int take_signals(struct watch *watch)
{
    int number, rc = 0;
    while (rc == 0 && (number = os_signal_read(watch->signals)) > 0) {
        switch (number) {
        case SIGTSTP:
            suspend();
            rc = measure_screen(watch);
            break;
        case SIGCONT: /* after a SIGSTOP, which cannot be caught */
            top_terminal_return();
            rc = measure_screen(watch);
            break;
        case SIGWINCH:
            rc = measure_screen(watch);
            break;
        default:
            watch->ended_by = number;
            break;
        }
    }
    return rc;
}

static void take_keys(struct watch *watch)
{
    struct top_state *state = &watch->frame->state;
    struct top_state before = *state;
    unsigned key;
    while (!state->quit && (key = top_terminal_key()) != 0)
        top_state_key(state, key);
    if (state->interval_ns != before.interval_ns)
        watch->due_ns = watch->frame->now->read_ns + state->interval_ns;
    if (before.paused && !state->paused)
        watch->due_ns = 0;
}

/* Waits until the next reading, a key or a signal. */
static int wait_for_event(struct watch *watch)
{
    struct pollfd from[] = {
        { .fd = STDIN_FILENO, .events = POLLIN },
        { .fd = watch->signals, .events = POLLIN },
    };
    const struct top_state *state = &watch->frame->state;
    int wait_ms =
        os_clock_wait_ms(state->paused ? os_clock_now_ns() + DURATION_SECOND : watch->due_ns);
    if (poll(from, 2, wait_ms) < 0 && errno != EINTR)
        return -errno;
    if (from[0].revents & (POLLHUP | POLLERR | POLLNVAL))
        watch->ended_by = SIGHUP;
    take_keys(watch);
    return take_signals(watch);
}

static int read_again(struct watch *watch)
{
    const struct top_state *state = &watch->frame->state;
    int rc = measure_screen(watch);
    draw(watch);
    while (rc == 0 && !state->quit && watch->ended_by == 0) {
        rc = wait_for_event(watch);
        uint64_t now_ns = os_clock_now_ns();
        if (!state->paused && now_ns >= watch->due_ns) {
            read_server(watch);
            /* Equal steps; after a pause they begin now. */
            watch->due_ns += state->interval_ns;
            if (watch->due_ns <= now_ns)
                watch->due_ns = now_ns + state->interval_ns;
        }
        draw(watch);
    }
    return rc;
}

int top_watch(const struct top_source *source, struct stats_snapshot *first, uint64_t interval_ns)
{
    struct watch watch = { .source = source, .signals = -1 };
    watch.frame = calloc(1, sizeof(*watch.frame));
    if (!watch.frame) {
        stats_snapshot_free(first);
        return -ENOMEM;
    }
    watch.frame->waits = source->waits;
    watch.frame->health = first->running ? TOP_HEALTH_RUNS : TOP_HEALTH_DIED;
    watch.frame->state.interval_ns = interval_ns;
    adopt_reading(&watch, first);
    watch.due_ns = os_clock_now_ns() + interval_ns;
    watch.canvas.unicode = top_terminal_unicode();
    int rc = top_terminal_open();
    if (rc == 0)
        rc = watch.signals = os_signal_open(signals, sizeof(signals) / sizeof(signals[0]));
    if (rc >= 0)
        rc = read_again(&watch);
    top_terminal_close();
    os_file_close(watch.signals);
    release_reading(&watch.measured);
    release_reading(&watch.before);
    release_reading(&watch.now);
    top_canvas_done(&watch.canvas);
    free(watch.frame);
    return rc < 0 ? rc : watch.ended_by;
}
