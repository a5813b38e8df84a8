/* SPDX-License-Identifier: MIT
 *
 * The statistics as they are sent: read from the segment and written down when
 * somebody asks, at most some times a second, and then the same for all who ask.
 */
#pragma once

#include "base/span.h"
#include "stats/segment.h"
#include "view/view.h"

/* A text that several answers may be sending. */
struct page_text {
    unsigned holders;
    uint64_t upto_ns; /* who has read it knows the moments up to this one; 0: of none */
    size_t len;
    char bytes[];
};

struct page_text *page_text_hold(struct page_text *text);

/* Accepts NULL. */
void page_text_drop(struct page_text *text);

enum page_form { PAGE_JSON, PAGE_PROMETHEUS, PAGE_OPENMETRICS, PAGE_EVENT, PAGE_FORMS };

struct page_numbers {
    const struct stats_segment *segment; /* borrowed */
    struct page_text *text[PAGE_FORMS];  /* NULL: not written yet */
    uint64_t after_ns;                   /* behind which moment text[PAGE_EVENT] begins */
    struct view view;                    /* the last look, and one some time before it: what a */
    struct view before;                  /* worker does now is what lies between. Zeroed: none */
    uint64_t read_ns, before_ns;         /* when they were asked for */
};

/* The numbers of now, or of a moment ago. Lends until the next call; who needs it longer holds it.
 * NULL: they cannot be read, or there is no memory; told in the error log. */
struct page_text *page_numbers_get(struct page_numbers *numbers, enum page_form form,
                                   uint64_t now_ns);

/* The same, as an event of server-sent events (HTML, 9.2) for who knows the moments up to
 * `after_ns`: `second`, with those that have come since, or, where that moment is none of the last
 * minute (0 never is), `stats`, with all there is. Its id is for page_numbers_known. */
struct page_text *page_numbers_get_event(struct page_numbers *numbers, uint64_t after_ns,
                                         uint64_t now_ns);

/* The moment up to which somebody knows all who has had the event with that id last; 0: nobody can
 * know, for it is of other statistics, or of nobody's. */
uint64_t page_numbers_known(const struct page_numbers *numbers, struct span id);

void page_numbers_done(struct page_numbers *numbers);
