/* SPDX-License-Identifier: MIT */
#include "top/screens.h"

static const struct {
    const char *key, *what;
} keys[] = {
    { "1 to 5", "Overview, Counters, Sites, Workers, Latency" },
    { "Tab, left, right", "the next screen, or the one before" },
    { "up, down, k, j", "choose a line; what it means is told below" },
    { "PgUp, PgDn, g, G", "a page further, the beginning, the end" },
    { "+, -", "read less often, more often" },
    { "space", "pause, and go on" },
    { "?, h", "this help, and back" },
    { "q, Ctrl-C", "quit" },
    { "Ctrl-Z", "leave it standing, until fg" },
};
enum { KEYS = sizeof(keys) / sizeof(keys[0]), KEY_AT = 1, WHAT_AT = 19 };

const char *top_help_draw(struct top_frame *frame, struct top_canvas *canvas, struct top_area area)
{
    (void)frame;
    for (unsigned i = 0; i < KEYS && i < area.rows; i++) {
        top_canvas_text(canvas, area.row + i, KEY_AT, WHAT_AT, TOP_BOLD, keys[i].key);
        top_canvas_text(canvas, area.row + i, WHAT_AT, canvas->columns, TOP_PLAIN, keys[i].what);
    }
    return "Rates and percentiles are of the time between two readings; charts have a column for "
           "each interval. weir-top(1) tells more.";
}
