/* SPDX-License-Identifier: MIT */
#include "page/numbers.h"

#include "base/num.h"
#include "log/error.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SAME_NS   UINT64_C(50000000)    /* a younger text is not written again */
#define APART_NS  UINT64_C(500000000)   /* rates need two readings at least this far apart */
#define BYGONE_NS UINT64_C(10000000000) /* and at most this far */

struct page_text *page_numbers_hold_text(struct page_text *text)
{
    text->holders++;
    return text;
}

void page_numbers_drop_text(struct page_text *text)
{
    if (text && --text->holders == 0)
        free(text);
}

/* ---- writing ---- */

static uint64_t newest_ns(const struct stats_snapshot *s)
{
    return s->moment_count > 0 ? s->moment[s->moment_count - 1].at_ns : 0;
}

static bool has_moment(const struct stats_snapshot *s, uint64_t at_ns)
{
    for (unsigned i = 0; i < s->moment_count; i++)
        if (s->moment[i].at_ns == at_ns)
            return true;
    return false;
}

/* The data is one line, because the JSON is. */
static void print_event(const struct view *view, uint64_t after_ns, FILE *out)
{
    const struct stats_snapshot *s = view->snapshot;
    bool follows = has_moment(s, after_ns);
    fprintf(out, "id: %d-%" PRId64 "-%" PRIu64 "\nevent: %s\ndata: ", (int)s->master, s->started_s,
            newest_ns(s), follows ? "second" : "stats");
    if (follows)
        view_print_json_after(view, after_ns, out); /* with its newline */
    else
        view_print_json(view, out);
    fputc('\n', out);
}

static struct page_text *copy_text(const char *bytes, size_t len, uint64_t upto_ns)
{
    struct page_text *text = malloc(sizeof(*text) + len);
    if (!text)
        return NULL;
    *text = (struct page_text){ .holders = 1, .upto_ns = upto_ns, .len = len };
    memcpy(text->bytes, bytes, len);
    return text;
}

static struct page_text *write_text(const struct page_numbers *numbers, enum page_form form)
{
    static void (*const print[PAGE_EVENT])(const struct view *, FILE *) = {
        [PAGE_JSON] = view_print_json,
        [PAGE_PROMETHEUS] = view_print_prometheus,
        [PAGE_OPENMETRICS] = view_print_openmetrics,
    };
    char *bytes = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&bytes, &len);
    if (!out)
        return NULL;
    if (form == PAGE_EVENT)
        print_event(&numbers->view, numbers->after_ns, out);
    else
        print[form](&numbers->view, out);
    uint64_t upto_ns = newest_ns(numbers->view.snapshot);
    struct page_text *text = fclose(out) == 0 ? copy_text(bytes, len, upto_ns) : NULL;
    free(bytes);
    return text;
}

static void drop_texts(struct page_numbers *numbers)
{
    for (unsigned i = 0; i < PAGE_FORMS; i++) {
        page_numbers_drop_text(numbers->text[i]);
        numbers->text[i] = NULL;
    }
}

/* Keeps the last reading, or drops it while another one waits to become `before`. Readings may
 * follow each other at less than APART_NS for any time. */
static void keep_reading(struct page_numbers *numbers)
{
    if (numbers->next.snapshot) {
        view_done(&numbers->view);
        return;
    }
    numbers->next = numbers->view;
    numbers->next_ns = numbers->read_ns;
    numbers->next.before = NULL;
}

static void choose_before(struct page_numbers *numbers, uint64_t now_ns)
{
    if (!numbers->next.snapshot || now_ns - numbers->next_ns < APART_NS)
        return;
    view_done(&numbers->before);
    numbers->before = numbers->next;
    numbers->before_ns = numbers->next_ns;
    numbers->next = (struct view){ 0 };
}

/* Reads the segment. */
static bool read_segment(struct page_numbers *numbers, uint64_t now_ns, char why[STATS_WHY_MAX])
{
    struct stats_snapshot *snapshot = stats_snapshot_here(numbers->segment, why);
    if (!snapshot)
        return false;
    keep_reading(numbers);
    view_init(&numbers->view, snapshot);
    numbers->read_ns = now_ns;
    choose_before(numbers, now_ns);
    bool comparable = numbers->before.snapshot && now_ns - numbers->before_ns < BYGONE_NS;
    numbers->view.before = comparable ? &numbers->before : NULL;
    drop_texts(numbers); /* all forms show the same moment */
    return true;
}

struct page_text *page_numbers_get(struct page_numbers *numbers, enum page_form form,
                                   uint64_t now_ns)
{
    static struct log_error_limit limit;
    bool fresh = numbers->view.snapshot && now_ns - numbers->read_ns < SAME_NS;
    if (fresh && numbers->text[form])
        return numbers->text[form];
    char why[STATS_WHY_MAX] = "cannot be formatted: out of memory";
    if (fresh || read_segment(numbers, now_ns, why))
        numbers->text[form] = write_text(numbers, form);
    else
        drop_texts(numbers);
    if (!numbers->text[form])
        log_error_limited(&limit, 60, LOG_ERROR, "the statistics %s", why);
    return numbers->text[form];
}

struct page_text *page_numbers_get_event(struct page_numbers *numbers, uint64_t after_ns,
                                         uint64_t now_ns)
{
    if (numbers->after_ns != after_ns) {
        page_numbers_drop_text(numbers->text[PAGE_EVENT]);
        numbers->text[PAGE_EVENT] = NULL;
        numbers->after_ns = after_ns;
    }
    return page_numbers_get(numbers, PAGE_EVENT, now_ns);
}

uint64_t page_numbers_known(const struct page_numbers *numbers, struct span id)
{
    const struct stats_header *header = numbers->segment->header;
    char of[64];
    int len = snprintf(of, sizeof(of), "%d-%" PRId64 "-", (int)atomic_load(&header->master),
                       header->started_s);
    uint64_t known_ns = 0;
    if (span_starts(id, span_of(of, (size_t)len)))
        (void)num_parse_u64(span_skip(id, (size_t)len), &known_ns);
    return known_ns;
}

void page_numbers_done(struct page_numbers *numbers)
{
    drop_texts(numbers);
    view_done(&numbers->view);
    view_done(&numbers->before);
    view_done(&numbers->next);
}
