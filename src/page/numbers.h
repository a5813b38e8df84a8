/* SPDX-License-Identifier: MIT
 *
 * The statistics as texts. The segment is read when a client asks, at most once in 50 ms, and
 * all clients get the same text.
 */
#pragma once

#include "base/span.h"
#include "stats/segment.h"
#include "view/view.h"

/* A text that several answers can hold at once. */
struct page_text {
    unsigned holders;
    uint64_t upto_ns; /* its reader has the seconds up to this moment; 0: none */
    size_t len;
    char bytes[];
};

struct page_text *page_numbers_hold_text(struct page_text *text);

/* Accepts NULL. */
void page_numbers_drop_text(struct page_text *text);

enum page_form { PAGE_JSON, PAGE_PROMETHEUS, PAGE_OPENMETRICS, PAGE_EVENT, PAGE_FORMS };

struct page_numbers {
    const struct stats_segment *segment;  /* borrowed */
    struct page_text *text[PAGE_FORMS];   /* NULL: not written yet */
    uint64_t after_ns;                    /* text[PAGE_EVENT] begins after this moment */
    struct view view;                     /* the last reading of the segment */
    struct view before;                   /* an earlier reading, for rates; zeroed: none */
    struct view next;                     /* a later one, which replaces it soon; zeroed: none */
    uint64_t read_ns, before_ns, next_ns; /* when they were read */
};

/* The numbers of now, or of at most 50 ms ago. Lends the text until the next call.
 * page_numbers_hold_text keeps it longer. NULL, after an error in the log: the segment cannot be
 * read, or memory is short. */
struct page_text *page_numbers_get(struct page_numbers *numbers, enum page_form form,
                                   uint64_t now_ns);

/* The same, as a server-sent event (HTML, 9.2), for a client that has the seconds up to
 * `after_ns`. If that moment is within the last minute, the event is `second`, with the seconds
 * since. Otherwise, as with 0, it is `stats`, with everything. The event's id is for
 * page_numbers_known. */
struct page_text *page_numbers_get_event(struct page_numbers *numbers, uint64_t after_ns,
                                         uint64_t now_ns);

/* The moment up to which a client has the seconds, from the id of its last event. 0: the id
 * belongs to other statistics, or is none. */
uint64_t page_numbers_known(const struct page_numbers *numbers, struct span id);

void page_numbers_done(struct page_numbers *numbers);
