/* SPDX-License-Identifier: MIT
 *
 * The last answers that failed, were slow or were cut. The meaning of the selected one is its
 * cause, with its whole path.
 */
#include "top/screens.h"

#include "top/format.h"
#include "view/recent.h"

#include <inttypes.h>
#include <stdio.h>

enum { AGE_END = 10, KIND_AT = 12, STATUS_AT = 17, TOOK_END = 30, ID_AT = 32, REQUEST_AT = 50 };

/* A narrow terminal shows the path, and not the id. */
static unsigned request_at(const struct top_canvas *canvas)
{
    return canvas->columns >= 80 ? REQUEST_AT : ID_AT;
}

static void draw_answer(struct top_canvas *canvas, unsigned row, const struct view_answer *one)
{
    char text[VIEW_RECENT_TEXT];
    enum top_style style = one->kind == STATS_RECENT_5XX ? TOP_BAD : TOP_NOTICE;
    view_recent_say(one, text);
    top_canvas_right(canvas, row, AGE_END, TOP_PLAIN, top_format_span(one->age_ns).text);
    top_canvas_print(canvas, row, KIND_AT, style, "%s", view_recent_kind_name(one->kind));
    top_canvas_print(canvas, row, STATUS_AT, style, "%u", one->answer->status);
    top_canvas_right(canvas, row, TOOK_END, TOP_PLAIN,
                     top_format_duration(one->answer->duration_ns).text);
    if (request_at(canvas) > ID_AT)
        top_canvas_print(canvas, row, ID_AT, TOP_DIM, "%016" PRIx64, one->answer->id);
    top_canvas_text(canvas, row, request_at(canvas), canvas->columns, TOP_PLAIN, text);
}

static void draw_titles(struct top_canvas *canvas, unsigned row, uint64_t slow_ns)
{
    top_canvas_right(canvas, row, AGE_END, TOP_DIM, "ago");
    top_canvas_print(canvas, row, KIND_AT, TOP_DIM, "why");
    top_canvas_right(canvas, row, TOOK_END, TOP_DIM, "took");
    if (request_at(canvas) > ID_AT)
        top_canvas_print(canvas, row, ID_AT, TOP_DIM, "id");
    if (slow_ns > 0)
        top_canvas_print(canvas, row, request_at(canvas), TOP_DIM, "request, slow from %s on",
                         top_format_duration(slow_ns).text);
    else
        top_canvas_print(canvas, row, request_at(canvas), TOP_DIM, "request");
}

const char *top_recent_draw(struct top_frame *frame, struct top_canvas *canvas,
                            struct top_area area)
{
    struct top_choice *choice = &frame->state.choice[TOP_RECENT];
    struct view_answer found[VIEW_RECENT_MAX];
    unsigned count = (unsigned)view_recent(frame->now, found), page = area.rows - 1;
    draw_titles(canvas, area.row, view_serving(frame->now)->slow_ns);
    top_state_settle(choice, count, page);
    for (unsigned i = 0; i < page && choice->first + i < count; i++) {
        unsigned row = area.row + 1 + i;
        draw_answer(canvas, row, &found[choice->first + i]);
        if (choice->first + i == choice->line)
            top_canvas_paint(canvas, row, TOP_SELECTED);
    }
    if (count == 0) {
        top_canvas_print(canvas, area.row + 1, 1, TOP_DIM,
                         "no answer has failed, was slow or was cut");
        return "The last 16 answers of each kind: status 4xx, status 5xx, cut, slow.";
    }
    char text[VIEW_RECENT_TEXT];
    const struct view_answer *chosen = &found[choice->line];
    view_recent_say(chosen, text);
    snprintf(frame->meaning, sizeof(frame->meaning), "%s (%s). %.200s", chosen->cause,
             chosen->site[0] ? chosen->site : "no site", text);
    return frame->meaning;
}
