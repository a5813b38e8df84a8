/* SPDX-License-Identifier: MIT
 *
 * Everything that is on the screen at one time, and drawing it: a title, the screens' names, a
 * line when something is not as usual, the screen that was chosen, what its chosen line means,
 * and the keys.
 */
#pragma once

#include "top/canvas.h"
#include "top/history.h"
#include "top/rates.h"
#include "top/state.h"
#include "view/verdict.h"

enum { TOP_ROWS_LEAST = 10, TOP_COLUMNS_LEAST = 40 };

enum top_health {
    TOP_HEALTH_RUNS,
    TOP_HEALTH_DIED, /* its numbers are there, and nobody counts */
    TOP_HEALTH_GONE  /* it has stopped, and taken them with it; shown is what was read last */
};

/* What processes take of the machine, as parts of a CPU; NAN: not known. */
struct top_load {
    pid_t pid;
    double cpu;
};

struct top_machine {
    double cpu; /* of all */
    size_t count;
    struct top_load process[TOP_WORKERS_MAX]; /* by their ids */
};

struct top_frame {
    const struct view *now, *before; /* before: comparable, or NULL */
    enum top_health health;
    pid_t predecessor; /* whose place the server has taken; 0: it was watched from the beginning */
    uint64_t taken_ns; /* when that was seen */
    bool waits;        /* another server is taken when there is one */
    uint64_t clock_ns; /* when it is drawn */
    struct top_rates rates;
    struct top_workers workers;
    struct top_machine machine;
    struct top_history history;
    size_t verdict_count;
    struct view_verdict verdict[VIEW_VERDICTS_MAX]; /* the gravest first */
    char meaning[sizeof(struct view_verdict)];      /* storage for what a screen says of its line */
    struct top_state state;
};

/* The rows that a screen has. */
struct top_area {
    unsigned row, rows;
};

void top_frame_draw(struct top_frame *frame, struct top_canvas *canvas);
