/* SPDX-License-Identifier: MIT
 *
 * The links are looked for in each answer to a navigation. That costs a pass over the lines of a
 * head. Navigations are few: the other requests for a page are those that its links name.
 */
#include "session/hints.h"

#include "http/link.h"
#include "http2/line.h"
#include "session/frames.h"
#include "session/trace.h"

/* Status line and empty line beside the links, of which a site and its rules have this many. */
enum { HEAD_MAX = SESSION_FIELDS_MAX + 64 };

/* Appends the hints of one Link field, as one field. Returns how many. */
static unsigned add_hints_of(struct span field, struct buf *head)
{
    unsigned count = 0;
    struct span link;

    while (http_link_next(&field, &link)) {
        if (!http_link_is_hint(link))
            continue;
        buf_add(head, count++ == 0 ? SPAN("Link: ") : SPAN(", "));
        buf_add(head, link);
    }
    if (count > 0)
        buf_add(head, SPAN("\r\n"));
    return count;
}

/* The same for all Link fields of `lines`. */
static unsigned add_hints_in(struct span lines, struct buf *head)
{
    unsigned count = 0;
    struct span name, value;

    while (http2_line_next(&lines, &name, &value))
        if (span_equal_nocase(name, SPAN("Link")))
            count += add_hints_of(value, head);
    return count;
}

void session_hints_add(struct session_exchange *x, const struct site_file *file)
{
    char bytes[HEAD_MAX];
    struct buf head = buf_over(bytes, sizeof(bytes));
    if (!x->site->early_hints || x->request->method != HTTP_GET)
        return;
    buf_add(&head, SPAN("HTTP/1.1 103 Early Hints\r\n"));
    unsigned count = add_hints_in(x->site->fields.all, &head);
    count += add_hints_in(site_file_head(file), &head);
    buf_add(&head, SPAN("\r\n"));
    session_trace_note(x, hinted, true);
    if (count == 0 || head.overflow || !session_frames_add_interim(x, buf_span(&head)))
        return;
    session_trace_note(x, hints, count);
    stats_writer_add(&x->thread->stats, STATS_http2_early_hints, 1);
}
