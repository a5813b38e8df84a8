/* SPDX-License-Identifier: MIT */
#include "page/answer.h"

#include "http/accept.h"
#include "http/date.h"
#include "http/list.h"
#include "http/target.h"
#include "os/clock.h"
#include "page/asset.h"
#include "page/host.h"

#define PLAIN_TEXT   "text/plain; charset=utf-8"
#define PROMETHEUS   "text/plain; version=0.0.4; charset=utf-8"
#define OPENMETRICS  "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define EVENT_STREAM "text/event-stream"

/* One that is being answered. */
struct exchange {
    struct page_answer *answer;
    struct page_shared *shared;
    const struct http_request *request;
    const char *head;
    uint64_t now_ns;
    bool guarded;
};

static struct span field_of(const struct exchange *e, enum http_field field)
{
    return http_request_field(e->request, e->head, field);
}

/* ---- heads ---- */

/* What stands in every head. What the page shows is for whoever asked, and for nobody's frame. */
static struct buf begin_head(struct page_answer *answer, enum http_status status)
{
    char date[HTTP_DATE_LEN];
    struct buf head = buf_over(answer->head, sizeof(answer->head));
    http_date_format(date, os_clock_wall_s());
    buf_add(&head, http_status_line(status));
    buf_add(&head, SPAN("Date: "));
    buf_add(&head, span_of(date, sizeof(date)));
    buf_add(&head, SPAN("\r\nContent-Security-Policy: default-src 'self'; base-uri 'none'; "
                        "form-action 'none'; frame-ancestors 'none'\r\n"
                        "Cross-Origin-Resource-Policy: same-origin\r\n"
                        "Referrer-Policy: no-referrer\r\n"
                        "X-Content-Type-Options: nosniff\r\n"));
    return head;
}

static void end_head(struct page_answer *answer, struct buf *head)
{
    if (answer->close)
        buf_add(head, SPAN("Connection: close\r\n"));
    buf_add(head, SPAN("\r\n"));
    CHECK(!head->overflow);
    answer->head_len = head->len;
}

static void add_field(struct buf *head, struct span name, struct span value)
{
    buf_add(head, name);
    buf_add(head, SPAN(": "));
    buf_add(head, value);
    buf_add(head, SPAN("\r\n"));
}

static void add_length(struct buf *head, size_t len)
{
    buf_add(head, SPAN("Content-Length: "));
    buf_add_u64(head, len);
    buf_add(head, SPAN("\r\n"));
}

static void answer_bytes(struct page_answer *answer, enum http_status status, struct span type,
                         struct span fields, struct span body)
{
    struct buf head = begin_head(answer, status);
    buf_add(&head, fields);
    if (fields.len == 0)
        add_field(&head, SPAN("Cache-Control"), SPAN("no-store"));
    add_field(&head, SPAN("Content-Type"), type);
    add_length(&head, body.len);
    end_head(answer, &head);
    answer->body = body;
}

/* The answer to whatever goes wrong. `fields` are whole lines. */
static void refuse(struct page_answer *answer, enum http_status status, struct span fields,
                   struct span sentence)
{
    answer_bytes(answer, status, SPAN(PLAIN_TEXT), fields, sentence);
}

static void refuse_as_usual(struct page_answer *answer, enum http_status status)
{
    refuse(answer, status, SPAN(""), http_status_sentence(status));
}

void page_answer_status(struct page_answer *answer, enum http_status status, bool head_only)
{
    *answer = (struct page_answer){ .close = true };
    refuse_as_usual(answer, status);
    if (head_only)
        page_answer_drop(answer); /* and its body with it */
}

void page_answer_drop(struct page_answer *answer)
{
    page_text_drop(answer->text);
    answer->text = NULL;
    answer->body = span_of(NULL, 0);
}

/* ---- files ---- */

static bool has_tag(const struct exchange *e, struct span tag)
{
    struct span list = field_of(e, HTTP_FIELD_IF_NONE_MATCH), element;
    if (span_equal(list, SPAN("*")))
        return true;
    while (http_list_next(&list, &element)) {
        if (span_starts(element, SPAN("W/")))
            element = span_skip(element, 2);
        if (span_equal(element, tag))
            return true;
    }
    return false;
}

static void answer_asset(const struct exchange *e, const struct page_asset *asset)
{
    char storage[256], tag_storage[64];
    struct span accept = http_request_list(e->request, e->head, HTTP_FIELD_ACCEPT_ENCODING, storage,
                                           sizeof(storage));
    bool packed = http_accept_coding(http_request_has(e->request, HTTP_FIELD_ACCEPT_ENCODING),
                                     accept, 1u << HTTP_CODING_GZIP | 1u << HTTP_CODING_IDENTITY) ==
                  HTTP_CODING_GZIP;
    struct buf tag = buf_over(tag_storage, sizeof(tag_storage));
    buf_add_char(&tag, '"');
    buf_add(&tag, span_text(asset->tag));
    buf_add(&tag, packed ? SPAN("-gzip\"") : SPAN("\""));

    bool same = has_tag(e, buf_span(&tag));
    struct buf head = begin_head(e->answer, same ? HTTP_NOT_MODIFIED : HTTP_OK);
    add_field(&head, SPAN("Cache-Control"), SPAN("no-cache")); /* kept, but asked for each time */
    add_field(&head, SPAN("ETag"), buf_span(&tag));
    add_field(&head, SPAN("Vary"), SPAN("Accept-Encoding"));
    if (!same) {
        e->answer->body = packed ? asset->gzip : asset->plain;
        add_field(&head, SPAN("Content-Type"), span_text(asset->type));
        if (packed)
            add_field(&head, SPAN("Content-Encoding"), SPAN("gzip"));
        add_length(&head, e->answer->body.len);
    }
    end_head(e->answer, &head);
}

/* ---- numbers ---- */

/* Takes a text of the moment for the answer; false: there is none, and that is answered. */
static bool take_text(const struct exchange *e, enum page_form form)
{
    struct page_text *text = page_numbers_get(&e->shared->numbers, form, e->now_ns);
    if (text)
        e->answer->text = page_text_hold(text);
    else
        refuse_as_usual(e->answer, HTTP_INTERNAL_SERVER_ERROR);
    return text != NULL;
}

static void answer_numbers(const struct exchange *e, enum page_form form, struct span type,
                           struct span fields)
{
    if (take_text(e, form))
        answer_bytes(e->answer, HTTP_OK, type, fields,
                     span_of(e->answer->text->bytes, e->answer->text->len));
}

static void answer_json(const struct exchange *e)
{
    answer_numbers(e, PAGE_JSON, SPAN("application/json"), SPAN("Cache-Control: no-store\r\n"));
}

/* Weight (0 to 1000) that an element of Accept gives a media type of that version. What else it
 * says, of charsets and of how names are to be written, is of no matter. */
static int weight_of(struct span element, struct span type, struct span version)
{
    char storage[128];
    struct buf bare = buf_over(storage, sizeof(storage));
    const char *semicolon = memchr(element.at, ';', element.len);
    size_t len = semicolon ? (size_t)(semicolon - element.at) : element.len;
    buf_add(&bare, span_trim(span_first(element, len)));
    while (semicolon) {
        struct span rest = span_skip(element, (size_t)(semicolon - element.at) + 1);
        semicolon = memchr(rest.at, ';', rest.len);
        struct span parameter =
            span_trim(span_first(rest, semicolon ? (size_t)(semicolon - rest.at) : rest.len));
        if (span_starts(parameter, SPAN("version=")) &&
            !span_equal(span_skip(parameter, 8), version))
            return 0;
        if (!span_starts(parameter, SPAN("q=")))
            continue;
        buf_add_char(&bare, ';');
        buf_add(&bare, parameter);
    }
    return bare.overflow ? 0 : http_accept_weight(true, buf_span(&bare), type);
}

bool page_answer_is_openmetrics(struct span accept)
{
    int open = 0, plain = 0;
    struct span element;
    while (http_list_next(&accept, &element)) {
        bool named = span_equal_nocase(span_first(element, sizeof("application") - 1),
                                       SPAN("application")); /* and not any type */
        int its_open = weight_of(element, SPAN("application/openmetrics-text"), SPAN("1.0.0"));
        int its_plain = weight_of(element, SPAN("text/plain"), SPAN("0.0.4"));
        open = named && its_open > open ? its_open : open;
        plain = its_plain > plain ? its_plain : plain;
    }
    return open > 0 && open >= plain;
}

static void answer_metrics(const struct exchange *e)
{
    static const struct span fields = { "Cache-Control: no-store\r\nVary: Accept\r\n", 39 };
    char storage[512];
    struct span accept =
        http_request_list(e->request, e->head, HTTP_FIELD_ACCEPT, storage, sizeof(storage));
    if (page_answer_is_openmetrics(accept))
        answer_numbers(e, PAGE_OPENMETRICS, SPAN(OPENMETRICS), fields);
    else
        answer_numbers(e, PAGE_PROMETHEUS, SPAN(PROMETHEUS), fields);
}

/* The head, and how long to wait before coming back; events follow. Without a length it ends with
 * the connection. */
static void answer_events(const struct exchange *e)
{
    if (e->shared->streams >= e->shared->streams_max) {
        refuse(e->answer, HTTP_SERVICE_UNAVAILABLE, SPAN("Retry-After: 5\r\n"),
               SPAN("As many pages as may be are open already.\n"));
        return;
    }
    e->answer->close = true;
    e->answer->stream = true;
    e->answer->known_ns =
        page_numbers_known(&e->shared->numbers, field_of(e, HTTP_FIELD_LAST_EVENT_ID));
    e->answer->body = SPAN("retry: 1000\n\n");
    struct buf head = begin_head(e->answer, HTTP_OK);
    add_field(&head, SPAN("Cache-Control"), SPAN("no-store"));
    add_field(&head, SPAN("Content-Type"), SPAN(EVENT_STREAM));
    end_head(e->answer, &head);
}

static void answer_health(const struct exchange *e)
{
    static const struct span bodies[STATS_STATES] = {
        [STATS_STARTING] = { "starting\n", 9 },
        [STATS_SERVING] = { "serving\n", 8 },
        [STATS_STOPPING] = { "stopping\n", 9 },
    };
    enum stats_state state = stats_segment_state(e->shared->segment);
    answer_bytes(e->answer, state == STATS_SERVING ? HTTP_OK : HTTP_SERVICE_UNAVAILABLE,
                 SPAN(PLAIN_TEXT), SPAN(""), bodies[state]);
}

/* ---- who may ask ---- */

static bool may_ask(const struct exchange *e, const struct http_target *target)
{
    if (e->guarded && target->host.len > 0 && !page_host_is_local(target->host)) {
        refuse(e->answer, HTTP_MISDIRECTED_REQUEST, SPAN(""),
               SPAN("The statistics are for this machine: ask for them by localhost, 127.0.0.1 or "
                    "[::1].\nFor other names and machines, weir needs a stats-password.\n"));
        return false;
    }
    if (span_equal(target->path, SPAN("/healthz")))
        return true;
    switch (page_password_check(&e->shared->password, field_of(e, HTTP_FIELD_AUTHORIZATION),
                                e->now_ns)) {
    case PAGE_PASSWORD_RIGHT:
        return true;
    case PAGE_PASSWORD_WRONG:
        refuse(e->answer, HTTP_UNAUTHORIZED,
               SPAN("Cache-Control: no-store\r\n"
                    "WWW-Authenticate: Basic realm=\"weir statistics\", charset=\"UTF-8\"\r\n"),
               http_status_sentence(HTTP_UNAUTHORIZED));
        return false;
    case PAGE_PASSWORD_LATER:
    default:
        refuse(e->answer, HTTP_TOO_MANY_REQUESTS,
               SPAN("Cache-Control: no-store\r\nRetry-After: 1\r\n"),
               SPAN("Too many passwords were tried; try again in a second.\n"));
        return false;
    }
}

/* ---- all ---- */

static void answer_path(const struct exchange *e, struct span path)
{
    static const struct {
        const char *path;
        void (*answer)(const struct exchange *e);
    } others[] = {
        { "/stats.json", answer_json },
        { "/events", answer_events },
        { "/metrics", answer_metrics },
        { "/healthz", answer_health },
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (span_equal(path, span_text(others[i].path))) {
            others[i].answer(e);
            return;
        }
    }
    const struct page_asset *asset = page_asset_find(path);
    if (asset)
        answer_asset(e, asset);
    else
        refuse_as_usual(e->answer, HTTP_NOT_FOUND);
}

/* Whether a body follows the head: none is read here. */
static bool has_body(const struct exchange *e)
{
    struct span length = field_of(e, HTTP_FIELD_CONTENT_LENGTH);
    return http_request_has(e->request, HTTP_FIELD_TRANSFER_ENCODING) ||
           (http_request_has(e->request, HTTP_FIELD_CONTENT_LENGTH) &&
            !span_equal(length, SPAN("0")));
}

void page_answer_request(struct page_answer *answer, struct page_shared *shared,
                         const struct http_request *request, const char *head, bool guarded,
                         uint64_t now_ns)
{
    char storage[HTTP_TARGET_MAX];
    struct http_target target;
    const struct exchange e = { answer, shared, request, head, now_ns, guarded };
    *answer =
        (struct page_answer){ .close = !http_request_persists(request, head) || has_body(&e) };
    if (request->method != HTTP_GET && request->method != HTTP_HEAD) {
        answer->close = true;
        refuse(answer, HTTP_METHOD_NOT_ALLOWED, SPAN("Allow: GET, HEAD\r\n"),
               http_status_sentence(HTTP_METHOD_NOT_ALLOWED));
        return;
    }
    int status = http_target_resolve(&target, request, head, storage, sizeof(storage));
    if (status != 0) {
        answer->close = answer->close || status != HTTP_NOT_FOUND;
        refuse_as_usual(answer, status == HTTP_NOT_FOUND ? HTTP_NOT_FOUND : HTTP_BAD_REQUEST);
    } else if (may_ask(&e, &target)) {
        answer_path(&e, target.path);
    }
    if (request->method != HTTP_HEAD)
        return;
    page_answer_drop(answer); /* and its body with it */
    answer->close = answer->close || answer->stream;
    answer->stream = false;
}
