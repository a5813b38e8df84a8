/* SPDX-License-Identifier: MIT */
#include "page/numbers.h"

#include "log/error.h"
#include "view/view.h"

#include <stdlib.h>
#include <string.h>

#define SAME_NS UINT64_C(50000000) /* what is younger is not written again */

struct page_text *page_text_hold(struct page_text *text)
{
    text->holders++;
    return text;
}

void page_text_drop(struct page_text *text)
{
    if (text && --text->holders == 0)
        free(text);
}

/* ---- writing ---- */

/* An event of server-sent events (HTML, 9.2): its data is one line, as JSON has it here. */
static void print_event(const struct view *view, FILE *out)
{
    fputs("event: stats\ndata: ", out);
    view_print_json(view, out); /* with its newline */
    fputc('\n', out);
}

static struct page_text *copy(const char *bytes, size_t len)
{
    struct page_text *text = malloc(sizeof(*text) + len);
    if (!text)
        return NULL;
    *text = (struct page_text){ .holders = 1, .len = len };
    memcpy(text->bytes, bytes, len);
    return text;
}

static struct page_text *write_down(const struct view *view, enum page_form form)
{
    static void (*const print[PAGE_FORMS])(const struct view *, FILE *) = {
        [PAGE_JSON] = view_print_json,
        [PAGE_EVENT] = print_event,
        [PAGE_PROMETHEUS] = view_print_prometheus,
        [PAGE_OPENMETRICS] = view_print_openmetrics,
    };
    char *bytes = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&bytes, &len);
    if (!out)
        return NULL;
    print[form](view, out);
    struct page_text *text = fclose(out) == 0 ? copy(bytes, len) : NULL;
    free(bytes);
    return text;
}

static void forget(struct page_numbers *numbers)
{
    for (unsigned i = 0; i < PAGE_FORMS; i++) {
        page_text_drop(numbers->text[i]);
        numbers->text[i] = NULL;
    }
}

struct page_text *page_numbers_get(struct page_numbers *numbers, enum page_form form,
                                   uint64_t now_ns)
{
    static struct log_error_limit limit;
    if (now_ns - numbers->read_ns >= SAME_NS)
        forget(numbers);
    if (numbers->text[form])
        return numbers->text[form];
    char why[STATS_WHY_MAX] = "cannot be written down: out of memory";
    struct stats_snapshot *snapshot = stats_snapshot_here(numbers->segment, why);
    if (snapshot) {
        struct view view;
        view_init(&view, snapshot);
        forget(numbers); /* one moment for all forms */
        numbers->text[form] = write_down(&view, form);
        numbers->read_ns = now_ns;
        view_done(&view);
    }
    if (!numbers->text[form])
        log_error_limited(&limit, 60, LOG_ERROR, "the statistics %s", why);
    return numbers->text[form];
}

void page_numbers_done(struct page_numbers *numbers)
{
    forget(numbers);
}
