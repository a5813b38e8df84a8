/* SPDX-License-Identifier: MIT
 *
 * The state of the user interface (screen, selected lines, interval), and how keys change it.
 * Pure.
 */
#pragma once

#include "base/duration.h"

#include <stdbool.h>
#include <stdint.h>

enum top_screen {
    TOP_OVERVIEW,
    TOP_COUNTERS,
    TOP_SITES,
    TOP_WORKERS,
    TOP_LATENCY,
    TOP_RECENT,
    TOP_SCREENS
};

extern const char *const top_screen_names[TOP_SCREENS];

/* Keys that are not characters. A character is its own code. */
enum top_key {
    TOP_KEY_UP = 0x110000,
    TOP_KEY_DOWN,
    TOP_KEY_LEFT,
    TOP_KEY_RIGHT,
    TOP_KEY_PAGE_UP,
    TOP_KEY_PAGE_DOWN,
    TOP_KEY_HOME,
    TOP_KEY_END,
    TOP_KEY_TAB_BACK,
    TOP_KEY_OTHER
};

#define TOP_INTERVAL_LEAST_NS (100 * DURATION_MS)
#define TOP_INTERVAL_MOST_NS  (60 * DURATION_SECOND)

/* The selected line of a screen, and the first line that is shown. Drawing the screen keeps both
 * within range. */
struct top_choice {
    unsigned line, first;
    unsigned page; /* how many lines the screen shows */
};

struct top_state {
    enum top_screen screen;
    struct top_choice choice[TOP_SCREENS];
    uint64_t interval_ns;
    bool paused, help, quit;
};

void top_state_key(struct top_state *state, unsigned key);

/* Keeps a choice within `count` lines, of which the screen shows `page`. */
void top_state_settle(struct top_choice *choice, unsigned count, unsigned page);
