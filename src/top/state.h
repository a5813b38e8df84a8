/* SPDX-License-Identifier: MIT
 *
 * What whoever looks has chosen, and how keys change it. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum top_screen { TOP_OVERVIEW, TOP_COUNTERS, TOP_SITES, TOP_WORKERS, TOP_LATENCY, TOP_SCREENS };

extern const char *const top_screen_names[TOP_SCREENS];

/* Keys that are no characters; those that are, are themselves. */
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

#define TOP_INTERVAL_LEAST_NS UINT64_C(100000000)
#define TOP_INTERVAL_MOST_NS  UINT64_C(60000000000)

/* The line that is chosen on a screen, and the first that is shown. The screen, when it is drawn,
 * keeps both within what there is. */
struct top_choice {
    unsigned line, first;
    unsigned page; /* lines that were shown last */
};

struct top_state {
    enum top_screen screen;
    struct top_choice choice[TOP_SCREENS];
    uint64_t interval_ns;
    bool paused, help, quit;
};

void top_state_key(struct top_state *state, unsigned key);

/* Keeps a choice within `count` lines, of which `page` are shown. */
void top_state_settle(struct top_choice *choice, unsigned count, unsigned page);
