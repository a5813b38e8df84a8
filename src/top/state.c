/* SPDX-License-Identifier: MIT */
#include "top/state.h"

#include <stddef.h>

const char *const top_screen_names[TOP_SCREENS] = { "Overview", "Counters", "Sites",
                                                    "Workers",  "Latency",  "Recent" };

enum { FAR = 1u << 20 };

static const uint64_t intervals_ms[] = { 100, 200, 500, 1000, 2000, 5000, 10000, 30000, 60000 };
enum { INTERVALS = sizeof(intervals_ms) / sizeof(intervals_ms[0]) };

static uint64_t longer(uint64_t ns)
{
    for (size_t i = 0; i < INTERVALS; i++)
        if (intervals_ms[i] * DURATION_MS > ns)
            return intervals_ms[i] * DURATION_MS;
    return TOP_INTERVAL_MOST_NS;
}

static uint64_t shorter(uint64_t ns)
{
    for (size_t i = INTERVALS; i-- > 0;)
        if (intervals_ms[i] * DURATION_MS < ns)
            return intervals_ms[i] * DURATION_MS;
    return TOP_INTERVAL_LEAST_NS;
}

static void move(struct top_state *state, int by)
{
    struct top_choice *choice = &state->choice[state->screen];
    unsigned distance = (unsigned)(by < 0 ? -by : by);
    if (state->help)
        return; /* the help hides the lines */
    if (by < 0)
        choice->line = choice->line > distance ? choice->line - distance : 0;
    else
        choice->line += distance; /* drawing brings it back into range */
}

static void show_screen(struct top_state *state, unsigned screen)
{
    state->screen = (enum top_screen)(screen % TOP_SCREENS);
    state->help = false;
}

void top_state_key(struct top_state *state, unsigned key)
{
    int page = (int)state->choice[state->screen].page;
    switch (key) {
    case 'q':
    case 'Q':
        state->quit = true;
        break;
    case '?':
    case 'h':
        state->help = !state->help;
        break;
    case 0x1b:
        state->help = false;
        break;
    case ' ':
        state->paused = !state->paused;
        break;
    case '+':
    case '=':
        state->interval_ns = longer(state->interval_ns);
        break;
    case '-':
    case '_':
        state->interval_ns = shorter(state->interval_ns);
        break;
    case '\t':
    case TOP_KEY_RIGHT:
        show_screen(state, (unsigned)state->screen + 1);
        break;
    case TOP_KEY_TAB_BACK:
    case TOP_KEY_LEFT:
        show_screen(state, (unsigned)state->screen + TOP_SCREENS - 1);
        break;
    case 'k':
    case TOP_KEY_UP:
        move(state, -1);
        break;
    case 'j':
    case TOP_KEY_DOWN:
        move(state, 1);
        break;
    case TOP_KEY_PAGE_UP:
        move(state, -page);
        break;
    case TOP_KEY_PAGE_DOWN:
        move(state, page);
        break;
    case 'g':
    case TOP_KEY_HOME:
        move(state, -FAR);
        break;
    case 'G':
    case TOP_KEY_END:
        move(state, FAR);
        break;
    default:
        if (key >= '1' && key < '1' + TOP_SCREENS)
            show_screen(state, key - '1');
        break;
    }
}

void top_state_settle(struct top_choice *choice, unsigned count, unsigned page)
{
    choice->page = page > 0 ? page : 1;
    if (choice->line >= count)
        choice->line = count > 0 ? count - 1 : 0;
    if (choice->first > choice->line)
        choice->first = choice->line;
    if (choice->line - choice->first >= choice->page)
        choice->first = choice->line - choice->page + 1;
    if (choice->first + choice->page > count)
        choice->first = count > choice->page ? count - choice->page : 0;
}
