/* SPDX-License-Identifier: MIT
 *
 * The whole content of the terminal at one time, and drawing it. From top to bottom: a title,
 * the names of the screens, a line for news, the selected screen, the meaning of its selected
 * line, and the keys.
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
    TOP_HEALTH_DIED, /* the segment exists, but its master is dead */
    TOP_HEALTH_GONE  /* it has stopped and removed the segment; the last reading is shown */
};

/* The CPU time of a process, as a share of one CPU; NAN: unknown. */
struct top_load {
    pid_t pid;
    double cpu;
};

struct top_machine {
    double cpu; /* of all processes */
    size_t count;
    struct top_load process[TOP_WORKERS_MAX]; /* in the order of their ids */
};

struct top_frame {
    const struct view *now, *before; /* `before` is comparable, or NULL */
    enum top_health health;
    pid_t predecessor; /* the master that this one replaced while it was watched; 0: none */
    uint64_t taken_ns; /* when the replacement was seen */
    bool waits;        /* waits for another server after the end of this one */
    uint64_t clock_ns; /* when the frame is drawn */
    struct top_rates rates;
    struct top_workers workers;
    struct top_machine machine;
    struct top_history history;
    size_t verdict_count;
    struct view_verdict verdict[VIEW_VERDICTS_MAX]; /* the gravest first */
    char meaning[sizeof(struct view_verdict)];      /* storage for the meaning of a line */
    struct top_state state;
};

/* The rows of a screen. */
struct top_area {
    unsigned row, rows;
};

void top_frame_draw(struct top_frame *frame, struct top_canvas *canvas);
