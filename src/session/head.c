/* SPDX-License-Identifier: MIT */
#include "session/head.h"

#include "http/accept.h"
#include "http/head.h"
#include "http2/response.h"
#include "session/delta.h"
#include "session/fetch.h"
#include "session/markdown.h"
#include "session/rules.h"
#include "session/tally.h"
#include "session/trace.h"

bool session_head_only(const struct session_exchange *x)
{
    return x->head_only || (x->request && x->request->method == HTTP_HEAD);
}

/* Fields that depend on the connection, the request or the site. A list may stand in several lines,
 * so this Vary does not need the one of the file. */
static void add_lines(const struct session_exchange *x, struct buf *head, enum http_status status)
{
    if (x->close)
        buf_add(head, SPAN("Connection: close\r\n"));
    else if (x->request && x->request->minor == 0)
        buf_add(head, SPAN("Connection: keep-alive\r\n"));
    if (__builtin_expect(x->by_accept, 0))
        buf_add(head, SPAN("Vary: Accept\r\n"));
    if (__builtin_expect(x->origin_line.len > 0, 0))
        buf_add(head, x->origin_line);
    if (__builtin_expect(x->dictionary_line != NULL, 0) && status == HTTP_OK)
        buf_add(head, *x->dictionary_line);
    if (__builtin_expect(x->secure, 0) && x->site)
        buf_add(head, x->site->fields.over_tls);
    if (x->site)
        buf_add(head, status < HTTP_BAD_REQUEST ? x->site->fields.all : x->site->fields.of_errors);
}

struct buf session_head_begin(const struct session_exchange *x, enum http_status status)
{
    struct session_buffer *out = x->out;
    struct buf head = buf_over(out->bytes + out->len, SESSION_BUFFER_BYTES - out->len);
    if (status == HTTP_OK) {
        buf_add_padded(&head, span_of(x->thread->ok_prefix, x->thread->ok_prefix_len),
                       sizeof(x->thread->ok_prefix));
    } else {
        http_head_add_status(&head, status);
        buf_add(&head, x->thread->date_field);
    }
    add_lines(x, &head, status);
    return head;
}

struct buf session_head_begin_apart(const struct session_exchange *x, enum http_status status)
{
    struct buf head = session_head_begin(x, status);
    session_rules_add_fields(x, status >= HTTP_BAD_REQUEST, &head);
    return head;
}

void session_head_end(const struct session_exchange *x, struct buf *head)
{
    http_head_end(head, x->thread->shared->server_field);
}

void session_head_stage(struct session_exchange *x, const struct buf *head)
{
    CHECK(!head->overflow);
    x->out->len += head->len;
    x->session->closing = x->session->closing || (x->close && !x->framing);
}

/* Whether rules forbid a variant of the file (RFC 9111 section 5.2.2.6). */
static bool forbid_transforming(struct span lines)
{
    static const char name[] = "Cache-Control:", directive[] = "no-transform";
    for (size_t at = 0; at + sizeof(name) <= lines.len; at++) {
        const bool begins = at == 0 || lines.at[at - 1] == '\n';
        const struct span line = span_skip(lines, at);
        if (!begins ||
            !span_equal_nocase(span_first(line, sizeof(name) - 1), SPAN("Cache-Control:")))
            continue;
        const char *end = memchr(line.at, '\n', line.len);
        const size_t len = end ? (size_t)(end - line.at) : line.len;
        for (size_t i = 0; i + sizeof(directive) - 1 <= len; i++)
            if (span_equal_nocase(span_of(line.at + i, sizeof(directive) - 1),
                                  SPAN("no-transform")))
                return true;
    }
    return false;
}

static void add_rule_fields(const struct session_exchange *x, struct site_entry *entry,
                            struct buf *head)
{
    const size_t begin = head->len;
    rules_add_fields(x->site->rules, x->match, false, head);
    if (!forbid_transforming(span_of(head->at + begin, head->len - begin)))
        return;
    session_trace_note(x, no_transform, true);
    entry->no_transform = true;
    atomic_store_explicit(&entry->missing, 0, memory_order_relaxed);
}

/* The longest Content-Location. A longer one could leave no space for the other fields. */
enum { LOCATION_MAX = 256 };

/* Adds the fields on which the choice of this form depends, and the path that has this form alone.
 */
static void add_choices(const struct site_entry *entry, struct buf *head)
{
    const struct span path = session_markdown_location(entry);
    const bool by_type = path.len > 0 || (entry->has_markdown && !entry->html_only);
    char bytes[LOCATION_MAX];
    struct buf location = buf_over(bytes, sizeof(bytes));
    http_target_encode_path(&location, path);
    if (path.len > 0 && !location.overflow)
        http_head_add_field(head, SPAN("Content-Location"), buf_span(&location));
    if (by_type && entry->negotiable)
        http_head_add_field(head, SPAN("Vary"), SPAN("Accept, Accept-Encoding"));
    else if (by_type || entry->negotiable)
        http_head_add_field(head, SPAN("Vary"), by_type ? SPAN("Accept") : SPAN("Accept-Encoding"));
}

enum { PREPARED_MAX = SITE_HEAD_ROOM + SESSION_FIELDS_MAX };

/* Whether answers over HTTP/2 copy a ready block. To encode it takes as long as the rest of a miss
 * in this process. */
static bool has_block(const struct session_exchange *x, const struct site_file *file)
{
    const struct session_shared *shared = x->thread->shared;
    return (shared->h2c || shared->tls != NULL) && file->size <= SESSION_COPY_MAX;
}

static void prepare_block(struct site_entry *entry, enum site_variant variant)
{
    char bytes[PREPARED_MAX];
    struct buf block = buf_over(bytes, sizeof(bytes));
    http2_response_add_lines(&block, site_file_head(site_entry_file(entry, (int)variant)));
    if (!block.overflow)
        site_set_block(entry, variant, buf_span(&block));
}

/* Prepares the head of each variant. False: one has none. */
static bool prepare_heads(const struct session_exchange *x, struct site_entry *entry)
{
    bool whole = true;
    for (unsigned v = 0; v < SITE_VARIANTS; v++) {
        if (!(entry->variants & (1u << v)))
            continue;
        struct site_file *file = site_entry_file(entry, (int)v);
        char bytes[PREPARED_MAX];
        struct buf head = buf_over(bytes, sizeof(bytes));
        http_head_add_length(&head, file->size);
        file->marks[SESSION_MARK_TYPE] = (uint16_t)head.len;
        http_head_add_field(&head, SPAN("Content-Type"), site_entry_type(entry));
        file->marks[SESSION_MARK_ENCODING] = (uint16_t)head.len;
        if (entry->delta)
            http_head_add_field(&head, SPAN("Content-Encoding"), SPAN("dcz"));
        else if (v != SITE_PLAIN)
            http_head_add_field(&head, SPAN("Content-Encoding"),
                                http_accept_coding_name((enum http_coding)v));
        if ((entry->made & (1u << v)) == 0) /* ranges are those of the plain file */
            http_head_add_field(&head, SPAN("Accept-Ranges"), SPAN("bytes"));
        file->marks[SESSION_MARK_VALIDATORS] = (uint16_t)head.len;
        http_head_add_validators(
            &head,
            (struct http_validators){ site_file_etag(file), site_file_last_modified_s(file) });
        if (session_delta_concerns(x, entry))
            http_head_add_field(&head, SPAN("Vary"), SPAN("Accept-Encoding, Available-Dictionary"));
        else
            add_choices(entry, &head);
        if (x->match)
            add_rule_fields(x, entry, &head);
        session_head_end(x, &head);
        if (head.overflow || !site_set_head(entry, (enum site_variant)v, buf_span(&head))) {
            whole = false;
            continue;
        }
        if (has_block(x, site_entry_file(entry, (int)v)))
            prepare_block(entry, (enum site_variant)v);
    }
    return whole;
}

enum session_publication session_head_publish(const struct session_exchange *x,
                                              struct site_entry **entry)
{
    const void *const found = *entry;
    enum session_publication result = SESSION_REFUSED;
    const bool marked = !x->match || session_rules_mark(x, *entry);
    if (!marked || !prepare_heads(x, *entry))
        result = SESSION_HEADLESS;
    else if (site_publish(x->thread->reader, entry))
        result = SESSION_PUBLISHED;
    session_tally_publish(x->thread->shared);
    session_fetch_publish(x, found, *entry);
    return result;
}

struct span session_head_from(const struct site_file *file, unsigned mark)
{
    return span_skip(site_file_head(file), file->marks[mark]);
}
