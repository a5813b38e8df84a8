/* SPDX-License-Identifier: MIT
 *
 * The workers: the rate of each process and each of its threads, and how even the rates are.
 */
#include "top/screens.h"

#include "top/format.h"

#include <math.h>
#include <stdio.h>

enum { NAME_AT = 1, NAME_END = 18, CPU_END = 26, RATE_END = 39, BAR = 41 };

static double cpu_of(const struct top_machine *machine, pid_t pid)
{
    for (size_t i = 0; i < machine->count; i++)
        if (machine->process[i].pid == pid)
            return machine->process[i].cpu;
    return NAN;
}

static void draw_worker(const struct top_frame *frame, struct top_canvas *canvas, unsigned row,
                        const struct top_worker *worker)
{
    bool process = worker->thread == 0;
    char text[48];
    if (process)
        top_canvas_print(canvas, row, NAME_AT, TOP_BOLD, "process %d", (int)worker->pid);
    else
        top_canvas_print(canvas, row, NAME_AT + 2, TOP_PLAIN, "thread %u", worker->thread);
    if (process)
        top_canvas_right(canvas, row, CPU_END, TOP_PLAIN,
                         top_format_share(cpu_of(&frame->machine, worker->pid), 1).text);
    snprintf(text, sizeof(text), "%s /s", top_format_rate(worker->rate).text);
    top_canvas_right(canvas, row, RATE_END, process ? TOP_BOLD : TOP_PLAIN, text);
    if (process || canvas->columns <= BAR + 1)
        return;
    double most = frame->workers.most;
    top_canvas_bar(canvas, row, BAR, canvas->columns - 1 - BAR, most > 0 ? worker->rate / most : 0,
                   TOP_ACCENT);
}

const char *top_workers_draw(struct top_frame *frame, struct top_canvas *canvas,
                             struct top_area area)
{
    const struct top_workers *workers = &frame->workers;
    struct top_choice *choice = &frame->state.choice[TOP_WORKERS];
    unsigned page = area.rows - 1;
    char fairness[24] = "-";
    if (!isnan(workers->fairness))
        snprintf(fairness, sizeof(fairness), "%.3f", workers->fairness);
    top_canvas_print(canvas, area.row, NAME_AT, TOP_DIM, "fairness");
    top_canvas_print(canvas, area.row, NAME_AT + 9, TOP_BOLD, "%s", fairness);
    top_canvas_right(canvas, area.row, CPU_END, TOP_DIM, "CPU");
    top_canvas_right(canvas, area.row, RATE_END, TOP_DIM, "requests");
    top_state_settle(choice, (unsigned)workers->count, page);
    for (unsigned i = 0; i < page && choice->first + i < workers->count; i++) {
        unsigned row = area.row + 1 + i;
        draw_worker(frame, canvas, row, &workers->worker[choice->first + i]);
        if (choice->first + i == choice->line)
            top_canvas_paint(canvas, row, TOP_SELECTED);
    }
    if (workers->count == 0)
        top_canvas_print(canvas, area.row + 1, NAME_AT, TOP_DIM,
                         "no worker has answered anything yet");
    return "Threads and processes that have answered something. Fairness is Jain's index of their "
           "rates: 1 when all are equal, 1/n when one of n answers everything.";
}
