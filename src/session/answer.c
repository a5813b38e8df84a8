/* SPDX-License-Identifier: MIT */
#include "session/answer.h"

#include "base/buf.h"
#include "base/hash.h"
#include "http/head.h"
#include "session/errorpage.h"
#include "session/fetch.h"
#include "session/frames.h"
#include "session/head.h"
#include "session/hints.h"
#include "session/line.h"
#include "session/pages.h"
#include "session/ready.h"
#include "session/recent.h"
#include "session/rules.h"
#include "session/tally.h"
#include "session/trace.h"
#include "session/variant.h"

unsigned session_answer_site(const struct session_exchange *x)
{
    return x->site ? x->site->stats_site : 0;
}

/* Counts and logs an answer that is whole in the output buffer. */
static inline void log_staged(struct session_exchange *x, unsigned status, uint64_t body_bytes)
{
    unsigned site = session_answer_site(x);
    session_tally_staged(x, site);
    session_tally_answer(&x->thread->stats, site, status, body_bytes);
    session_recent_staged(x, status, body_bytes);
    session_line_log(x, status, body_bytes);
}

static void end_staged(struct session_exchange *x, unsigned status, uint64_t body_bytes)
{
    if (__builtin_expect(!x->framing, 1)) {
        log_staged(x, status, body_bytes);
        return;
    }
    x->framing->status = status;
    x->framing->body_bytes = body_bytes;
}

/* ---- bodies that are not copied behind their head ---- */

struct session_answer *session_answer_open(struct session_exchange *x, unsigned status)
{
    struct session_answer *answer = &x->out->answer;
    answer->open = true;
    answer->held = false;
    answer->listing = false;
    answer->entry = NULL;
    answer->memory = SPAN("");
    answer->file = NULL;
    answer->file_at = answer->file_end = answer->ready_end = 0;
    answer->head_left = x->out->len - x->out->at;
    answer->body_sent = 0;
    answer->line = session_line_defer(x, status);
    answer->status = status;
    answer->site = session_answer_site(x);
    session_recent_open(x, answer);
    if (__builtin_expect(!x->framing, 1))
        session_tally_staged(x, answer->site);
    answer->parts.left = 0;
    return answer;
}

void session_answer_end(struct session_thread *thread, struct session_answer *answer)
{
    if (!answer->open)
        return;
    answer->open = false;
    session_pages_drop(answer);
    session_tally_answer(&thread->stats, answer->site, answer->status, answer->body_sent);
    session_recent_end(thread, answer);
    session_line_end(thread, answer->line, answer->body_sent);
    if (answer->listing)
        site_listing_end(&thread->shared->listings);
    if (answer->held)
        site_cache_release(&answer->entry->cache);
}

/* ---- whole files and parts of them ---- */

/* Copies bytes [first, first + len) of a file behind the head. False when they do not fit, are not
 * in memory, or have changed. */
static bool stage_bytes(struct session_exchange *x, struct buf *head, const struct site_file *file,
                        uint64_t first, size_t len)
{
    if (len > buf_room(head) ||
        !session_pages_copy(x->thread, file, first, len, head->at + head->len))
        return false;
    head->len += len;
    return true;
}

static size_t copy_max_of(const struct session_exchange *x)
{
    return __builtin_expect(x->framing != NULL, 0) ? session_frames_copy_max(x) : SESSION_COPY_MAX;
}

static void answer_file_bytes(struct session_exchange *x, enum http_status status, struct buf *head,
                              struct site_entry *entry, const struct site_file *file,
                              uint64_t first, uint64_t len)
{
    if (session_head_only(x)) {
        session_head_stage(x, head);
        end_staged(x, status, 0);
        return;
    }
    if (len <= copy_max_of(x) && stage_bytes(x, head, file, first, (size_t)len)) {
        session_head_stage(x, head);
        end_staged(x, status, len);
        return;
    }
    session_head_stage(x, head);
    struct session_answer *answer = session_answer_open(x, status);
    answer->entry = entry;
    if (!file->open) {
        answer->memory = span_of(site_file_body(file) + first, (size_t)len);
    } else {
        answer->file = file;
        answer->file_at = first;
        answer->file_end = first + len;
        if (__builtin_expect(file->etag_len == 0, 0))
            session_variant_request_tags(x, entry);
    }
}

static void answer_whole(struct session_exchange *x, struct site_entry *entry,
                         const struct site_file *file)
{
    if (__builtin_expect(x->framing != NULL, 0)) {
        if (x->framing->navigates)
            session_hints_add(x, file);
        if (session_frames_add_ready(x, entry, file))
            return;
    }
    struct buf head = session_head_begin(x, HTTP_OK);
    if (!x->framing && !file->open && file->size <= SESSION_COPY_MAX && !session_head_only(x) &&
        file->head_len + file->size <= buf_room(&head)) {
        buf_add(&head, span_of(site_file_head(file).at, file->head_len + (size_t)file->size));
        session_head_stage(x, &head);
        log_staged(x, HTTP_OK, file->size);
        return;
    }
    buf_add(&head, site_file_head(file));
    answer_file_bytes(x, HTTP_OK, &head, entry, file, 0, file->size);
}

/* Short parts of a file in memory are copied, so that one send takes all that fit. Otherwise each
 * part would be a send of its own, and a request for 16 bytes could cost 17 sends. */
bool session_answer_next_part(struct session_answer *answer, struct buf *text)
{
    const struct site_file *file = answer->file;
    struct http_range range;
    if (!http_multipart_next(&answer->parts, text, &range))
        return false;
    while (!file->open && answer->parts.left > 0 && range.len <= SESSION_COPY_MAX &&
           range.len + HTTP_MULTIPART_FRAMING_MAX <= buf_room(text)) {
        buf_add(text, span_of(site_file_body(file) + range.first, (size_t)range.len));
        (void)http_multipart_next(&answer->parts, text, &range); /* `left` says that there is one */
    }
    CHECK(!text->overflow);
    if (!file->open) {
        answer->memory = span_of(site_file_body(file) + range.first, (size_t)range.len);
    } else {
        answer->file_at = range.first;
        answer->file_end = range.first + range.len;
        answer->ready_end = 0;
    }
    return true;
}

bool session_answer_stage_part(struct session_buffer *out)
{
    struct buf text = buf_over(out->bytes, sizeof(out->bytes));
    if (!session_answer_next_part(&out->answer, &text))
        return false;
    out->at = 0;
    out->len = text.len;
    return true;
}

static void answer_parts(struct session_exchange *x, struct site_entry *entry,
                         const struct site_file *file, const struct http_ranges *ranges)
{
    uint64_t now_ns = x->thread->now_ns;
    uint64_t boundary = hash_bytes(span_of((const char *)&now_ns, sizeof(now_ns)), file->size);
    struct http_multipart parts =
        http_multipart_begin(ranges, site_entry_type(entry), file->size, boundary);
    struct buf head = session_head_begin(x, HTTP_PARTIAL_CONTENT);
    http_head_add_length(&head, http_multipart_length(&parts));
    http_multipart_add_type(&parts, &head);
    buf_add(&head, session_head_from(file, SESSION_MARK_ENCODING));
    session_head_stage(x, &head);

    struct session_answer *answer = session_answer_open(x, HTTP_PARTIAL_CONTENT);
    answer->entry = entry;
    answer->file = file;
    answer->parts = parts;
}

static void answer_part(struct session_exchange *x, struct site_entry *entry,
                        const struct site_file *file, const struct http_range *range)
{
    struct buf head = session_head_begin(x, HTTP_PARTIAL_CONTENT);
    http_head_add_content_range(&head, *range, file->size);
    http_head_add_length(&head, range->len);
    buf_add(&head, session_head_from(file, SESSION_MARK_TYPE));
    answer_file_bytes(x, HTTP_PARTIAL_CONTENT, &head, entry, file, range->first, range->len);
}

static void answer_not_modified(struct session_exchange *x, const struct site_file *file)
{
    struct buf head = session_head_begin(x, HTTP_NOT_MODIFIED);
    buf_add(&head, session_head_from(file, SESSION_MARK_VALIDATORS));
    session_head_stage(x, &head);
    end_staged(x, HTTP_NOT_MODIFIED, 0);
}

static void answer_no_range(struct session_exchange *x, const struct site_file *file)
{
    char field[64];
    struct buf extra = buf_over(field, sizeof(field));
    http_head_add_content_range(&extra, (struct http_range){ 0 }, file->size);
    session_answer_page(x, HTTP_RANGE_NOT_SATISFIABLE, buf_span(&extra));
}

static void answer_ranges(struct session_exchange *x, struct site_entry *entry,
                          const struct site_file *file)
{
    struct http_ranges ranges;
    struct span field = http_request_field(x->request, x->head, HTTP_FIELD_RANGE);
    if (x->request->method != HTTP_GET || !http_request_has(x->request, HTTP_FIELD_RANGE) ||
        http_request_repeats(x->request, HTTP_FIELD_RANGE)) {
        answer_whole(x, entry, file);
        return;
    }
    enum http_range_result result = http_range_parse(field, file->size, &ranges);
    session_trace_note(x, ranged, true);
    session_trace_note(x, range, result);
    switch (result) {
    case HTTP_RANGE_IGNORE:
        answer_whole(x, entry, file);
        return;
    case HTTP_RANGE_UNSATISFIABLE:
        answer_no_range(x, file);
        return;
    case HTTP_RANGE_SATISFIABLE:
        session_trace_note(x, ranges, ranges);
        if (ranges.count == 1)
            answer_part(x, entry, file, &ranges.range[0]);
        else
            answer_parts(x, entry, file, &ranges);
        return;
    }
}

/* With one of these fields the answer depends on more than the path. */
enum {
    CONDITIONS = 1u << HTTP_FIELD_IF_MATCH | 1u << HTTP_FIELD_IF_NONE_MATCH |
                 1u << HTTP_FIELD_IF_MODIFIED_SINCE | 1u << HTTP_FIELD_IF_UNMODIFIED_SINCE |
                 1u << HTTP_FIELD_IF_RANGE | 1u << HTTP_FIELD_RANGE
};

bool session_answer_is_conditional(const struct session_exchange *x)
{
    return (x->request->present & CONDITIONS) != 0;
}

static void answer_conditional(struct session_exchange *x, struct site_entry *entry,
                               const struct site_file *file)
{
    const enum http_precondition verdict = session_variant_precondition(x, file);
    session_trace_note(x, conditional, true);
    session_trace_note(x, precondition, verdict);
    switch (verdict) {
    case HTTP_PROCEED:
        answer_ranges(x, entry, file);
        return;
    case HTTP_IGNORE_RANGE:
        answer_whole(x, entry, file);
        return;
    case HTTP_ANSWER_NOT_MODIFIED:
        answer_not_modified(x, file);
        return;
    case HTTP_ANSWER_FAILED:
        session_answer_page(x, HTTP_PRECONDITION_FAILED, span_of(NULL, 0));
        return;
    }
}

void session_answer_entry(struct session_exchange *x, struct site_entry *entry, bool owned)
{
    const struct site_file *file = session_variant_choose(x, entry);
    if (__builtin_expect(file->head_len == 0, 0))
        session_answer_page(x, HTTP_SERVICE_UNAVAILABLE, SPAN("Retry-After: 1\r\n"));
    else if (__builtin_expect(!session_answer_is_conditional(x), 1))
        answer_whole(x, entry, file);
    else
        answer_conditional(x, entry, file);

    if (!owned)
        return;
    if (x->out->answer.open && x->out->answer.entry == entry) {
        x->out->answer.held = true;
        return;
    }
    if (x->framing)
        session_buffer_hold_entry(x->session->output, entry); /* it may have lent the file */
    site_cache_release(&entry->cache);
}

/* ---- listings and pages ---- */

void session_answer_listing_head(struct session_exchange *x, struct span type)
{
    struct buf head = session_head_begin_apart(x, HTTP_OK);
    http_head_add_field(&head, SPAN("Content-Type"), type);
    http_head_add_field(&head, SPAN("Accept-Ranges"), SPAN("bytes"));
    session_head_end(x, &head);
    session_head_stage(x, &head);
    end_staged(x, HTTP_OK, 0);
}

/* Whether the client may see this page of the site. Without a password that is the page of 401. */
static bool may_see_page(const struct session_exchange *x, enum http_status status)
{
    return x->site && (!x->access || x->admitted || status == HTTP_UNAUTHORIZED);
}

/* The page for this status in a folder of the site, or NULL. */
static struct site_entry *find_page_in(struct session_exchange *x, unsigned folder,
                                       enum http_status status, bool *ret_owned)
{
    struct site_entry *entry;
    struct site_query query;
    char key[SITE_QUERY_ERROR_PAGE_MAX];
    if (!site_query_error_page(x->site->site, folder, status, key, &query) ||
        session_fetch_page(x, status, &query, &entry, ret_owned) != SITE_FILE)
        return NULL;
    if (*ret_owned)
        (void)session_head_publish(x, &entry);
    if (entry->plain->head_len > 0)
        return entry;
    if (*ret_owned)
        site_cache_release(&entry->cache);
    return NULL;
}

/* The page of the path or of its site for this status, or NULL. */
static struct site_entry *find_own_page(struct session_exchange *x, enum http_status status,
                                        bool *ret_owned)
{
    if (!may_see_page(x, status))
        return NULL;
    const struct rules_rule *rule = x->site->rules ? session_rules_pages(x) : NULL;
    struct site_entry *page = NULL;
    if (__builtin_expect(rule != NULL, 0)) {
        page = find_page_in(x, rule->error_folder, status, ret_owned);
        session_trace_note(x, pages, rule);
        session_trace_note(x, page_of_path, page != NULL);
    }
    return page ? page : find_page_in(x, 0, status, ret_owned);
}

void session_answer_own_page(struct session_exchange *x, enum http_status status, struct span extra,
                             struct site_entry *page, bool owned)
{
    const struct site_file *file = page->plain;
    struct buf head = session_head_begin_apart(x, status);
    buf_add(&head, extra);
    http_head_add_length(&head, file->size);
    http_head_add_field(&head, SPAN("Content-Type"), site_entry_type(page));
    session_head_end(x, &head);
    answer_file_bytes(x, status, &head, page, file, 0, file->size);
    if (owned && x->out->answer.open && x->out->answer.entry == page)
        x->out->answer.held = true;
    else if (owned)
        site_cache_release(&page->cache);
}

void session_answer_page(struct session_exchange *x, enum http_status status, struct span extra)
{
    bool owned = false;
    struct site_entry *own = x->pending ? NULL : find_own_page(x, status, &owned);
    session_trace_note(x, own_page, own != NULL);
    if (own)
        session_answer_own_page(x, status, extra, own, owned);
    if (own || x->pending)
        return;
    struct buf head = session_head_begin_apart(x, status);
    buf_add(&head, extra);
    const size_t len = session_errorpage_size(status);
    http_head_add_length(&head, len);
    http_head_add_field(&head, SPAN("Content-Type"), SPAN("text/html; charset=utf-8"));
    session_head_end(x, &head);
    if (!session_head_only(x))
        session_errorpage_add(&head, status, x->id);
    session_head_stage(x, &head);
    end_staged(x, status, session_head_only(x) ? 0 : len);
}

void session_answer_text(struct session_exchange *x, enum http_status status, struct span text)
{
    struct buf head = session_head_begin_apart(x, status);
    http_head_add_length(&head, text.len);
    http_head_add_field(&head, SPAN("Content-Type"), SPAN("text/plain; charset=utf-8"));
    session_head_end(x, &head);
    buf_add(&head, text);
    session_head_stage(x, &head);
    end_staged(x, status, text.len);
}

void session_answer_status(struct session_exchange *x, enum http_status status)
{
    struct span extra = span_of(NULL, 0);
    if (status == HTTP_METHOD_NOT_ALLOWED)
        extra = SPAN(SESSION_ANSWER_ALLOW);
    else if (status == HTTP_SERVICE_UNAVAILABLE || status == HTTP_TOO_MANY_REQUESTS)
        extra = SPAN("Retry-After: 1\r\n");
    session_answer_page(x, status, extra);
}

void session_answer_located(struct session_exchange *x, enum http_status status,
                            struct span location)
{
    struct buf head = session_head_begin_apart(x, status);
    buf_add(&head, location);
    http_head_add_length(&head, 0);
    session_head_end(x, &head);
    session_head_stage(x, &head);
    end_staged(x, status, 0);
}

void session_answer_ready(struct session_exchange *x, const struct session_ready_answer *ready,
                          struct span location)
{
    if (x->framing && session_frames_add_bodiless(x, ready, location))
        return;
    struct buf head = session_head_begin(x, (enum http_status)ready->status);
    buf_add(&head, ready->front);
    buf_add(&head, location.len > 0 ? location : ready->location);
    buf_add(&head, ready->back);
    session_head_stage(x, &head);
    end_staged(x, ready->status, 0);
}

/* A redirect to the path of the request, with `slash` behind it. `lines` are added to the head. */
static void answer_location(struct session_exchange *x, enum http_status status, struct span origin,
                            struct span slash, struct span lines)
{
    char field[SESSION_ANSWER_ROOM / 4];
    struct buf location = buf_over(field, sizeof(field));
    buf_add(&location, SPAN("Location: "));
    buf_add(&location, origin);
    http_target_encode_path(&location, x->target.path);
    buf_add(&location, slash);
    if (x->target.has_query) {
        buf_add_char(&location, '?');
        buf_add(&location, x->target.query);
    }
    buf_add(&location, SPAN("\r\n"));
    buf_add(&location, lines);
    if (location.overflow)
        session_answer_status(x, HTTP_URI_TOO_LONG);
    else
        session_answer_page(x, status, buf_span(&location));
}

void session_answer_redirect(struct session_exchange *x)
{
    answer_location(x, HTTP_MOVED_PERMANENTLY, SPAN(""), SPAN("/"), SPAN(""));
}

void session_answer_redirect_to(struct session_exchange *x, struct span origin, struct span lines)
{
    answer_location(x, HTTP_PERMANENT_REDIRECT, origin, SPAN(""), lines);
}

void session_answer_options(struct session_exchange *x)
{
    struct rules_match match;
    if (session_rules_resolve(x, &match) && session_rules_answer_preflight(x))
        return;
    struct buf head = session_head_begin_apart(x, HTTP_NO_CONTENT);
    buf_add(&head, SPAN(SESSION_ANSWER_ALLOW));
    if (x->match && x->match->cors)
        buf_add(&head, x->match->cors->preflight);
    session_head_end(x, &head);
    session_head_stage(x, &head);
    end_staged(x, HTTP_NO_CONTENT, 0);
    x->match = NULL;
}
