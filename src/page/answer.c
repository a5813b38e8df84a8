/* SPDX-License-Identifier: MIT */
#include "page/answer.h"

#include "http/accept.h"
#include "http/body.h"
#include "http/head.h"
#include "http/list.h"
#include "http/target.h"

#include <arpa/inet.h>
#include <page_assets.inc> /* made by tools/embed.py */

#define PLAIN_TEXT   "text/plain; charset=utf-8"
#define PROMETHEUS   "text/plain; version=0.0.4; charset=utf-8"
#define OPENMETRICS  "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define EVENT_STREAM "text/event-stream"

/* A request that is being answered. */
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

/* Begins a head. The fields keep other sites from reading or framing the page. */
static struct buf begin_head(struct page_answer *answer, enum http_status status)
{
    struct buf head = buf_over(answer->head, sizeof(answer->head));
    http_head_add_status(&head, status);
    http_head_add_date(&head, SPAN("Date"), answer->wall_s);
    buf_add(&head, SPAN("Content-Security-Policy: default-src 'self'; base-uri 'none'; "
                        "form-action 'none'; frame-ancestors 'none'\r\n"
                        "Cross-Origin-Resource-Policy: same-origin\r\n"
                        "Referrer-Policy: no-referrer\r\n"));
    return head;
}

static void end_head(struct page_answer *answer, struct buf *head)
{
    http_head_end(head, answer->close ? SPAN("Connection: close\r\n") : SPAN(""));
    CHECK(!head->overflow);
    answer->head_len = head->len;
}

static void answer_body(struct page_answer *answer, enum http_status status, struct span type,
                        struct span fields, struct span body)
{
    struct buf head = begin_head(answer, status);
    buf_add(&head, fields);
    if (fields.len == 0)
        http_head_add_field(&head, SPAN("Cache-Control"), SPAN("no-store"));
    http_head_add_field(&head, SPAN("Content-Type"), type);
    http_head_add_length(&head, body.len);
    end_head(answer, &head);
    answer->body = body;
}

/* Answers with a sentence. `fields` are whole lines. */
static void answer_sentence(struct page_answer *answer, enum http_status status, struct span fields,
                            struct span sentence)
{
    answer_body(answer, status, SPAN(PLAIN_TEXT), fields, sentence);
}

static void answer_error(struct page_answer *answer, enum http_status status)
{
    answer_sentence(answer, status, SPAN(""), http_status_sentence(status));
}

void page_answer_status(struct page_answer *answer, enum http_status status, bool head_only,
                        int64_t wall_s)
{
    *answer = (struct page_answer){ .close = true, .wall_s = wall_s };
    answer_error(answer, status);
    if (head_only)
        page_answer_drop(answer); /* with its body */
}

void page_answer_plain(struct page_answer *answer, int64_t wall_s)
{
    *answer = (struct page_answer){ .close = true, .wall_s = wall_s };
    answer_sentence(answer, HTTP_BAD_REQUEST, SPAN(""),
                    SPAN("This address speaks TLS. Write https:// before it.\n"));
}

void page_answer_drop(struct page_answer *answer)
{
    page_numbers_drop_text(answer->text);
    answer->text = NULL;
    answer->body = span_of(NULL, 0);
}

/* ---- files ---- */

/* A file of the page. The program carries them all: those of src/page/www/, and the chart library
 * of the system that the program was built on. */
struct asset {
    const char *path; /* "/page.js" */
    const char *type; /* media type */
    const char *tag;  /* hash of the content: its ETag, without quotes */
    struct span plain;
    struct span gzip; /* the same, compressed */
};

#define BYTES(array) \
    { \
        (const char *)(array), sizeof(array) \
    }
#define PAGE_ASSET(path, type, tag, plain, gzip) { path, type, tag, BYTES(plain), BYTES(gzip) },

static const struct asset assets[] = { PAGE_ASSETS };

static const struct asset *find_asset(struct span path)
{
    if (span_equal(path, SPAN("/")))
        path = SPAN("/index.html");
    for (size_t i = 0; i < sizeof(assets) / sizeof(assets[0]); i++)
        if (span_equal(path, span_text(assets[i].path)))
            return &assets[i];
    return NULL;
}

static bool accepts_gzip(const struct exchange *e)
{
    char storage[256];
    struct span accept = http_request_list(e->request, e->head, HTTP_FIELD_ACCEPT_ENCODING, storage,
                                           sizeof(storage));
    return http_accept_coding(http_request_has(e->request, HTTP_FIELD_ACCEPT_ENCODING), accept,
                              1u << HTTP_CODING_GZIP | 1u << HTTP_CODING_IDENTITY) ==
           HTTP_CODING_GZIP;
}

static void answer_asset(const struct exchange *e, const struct asset *asset)
{
    char storage[64];
    bool packed = accepts_gzip(e);
    struct buf tag = buf_over(storage, sizeof(storage));
    buf_add_char(&tag, '"');
    buf_add(&tag, span_text(asset->tag));
    buf_add(&tag, packed ? SPAN("-gzip\"") : SPAN("\""));

    const struct http_validators validators = { buf_span(&tag), -1 };
    const struct span body = packed ? asset->gzip : asset->plain;
    enum http_precondition verdict =
        http_precondition_evaluate(e->request, e->head, validators, e->answer->wall_s);
    if (verdict == HTTP_ANSWER_FAILED) {
        answer_error(e->answer, HTTP_PRECONDITION_FAILED);
        return;
    }
    bool same = verdict == HTTP_ANSWER_NOT_MODIFIED;
    struct buf head = begin_head(e->answer, same ? HTTP_NOT_MODIFIED : HTTP_OK);
    http_head_add_field(&head, SPAN("Cache-Control"),
                        SPAN("no-cache")); /* the client asks each time */
    http_head_add_validators(&head, validators);
    http_head_add_field(&head, SPAN("Vary"), SPAN("Accept-Encoding"));
    if (!same) {
        e->answer->body = body;
        http_head_add_field(&head, SPAN("Content-Type"), span_text(asset->type));
        if (packed)
            http_head_add_field(&head, SPAN("Content-Encoding"), SPAN("gzip"));
        http_head_add_length(&head, body.len);
    }
    end_head(e->answer, &head);
}

/* ---- numbers ---- */

/* Takes the current numbers for the answer. False: there are none, and an error has been
 * answered. */
static bool take_numbers(const struct exchange *e, enum page_form form)
{
    struct page_text *text = page_numbers_get(&e->shared->numbers, form, e->now_ns);
    if (text)
        e->answer->text = page_numbers_hold_text(text);
    else
        answer_error(e->answer, HTTP_INTERNAL_SERVER_ERROR);
    return text != NULL;
}

static void answer_numbers(const struct exchange *e, enum page_form form, struct span type,
                           struct span fields)
{
    if (take_numbers(e, form))
        answer_body(e->answer, HTTP_OK, type, fields,
                    span_of(e->answer->text->bytes, e->answer->text->len));
}

static void answer_json(const struct exchange *e)
{
    answer_numbers(e, PAGE_JSON, SPAN("application/json"), SPAN("Cache-Control: no-store\r\n"));
}

/* The weight, 0 to 1000, that an element of Accept gives a media type of that version. Its other
 * parameters, such as charset, do not matter. */
static int weight_of_version(struct span element, struct span type, struct span version)
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
        int its_open =
            weight_of_version(element, SPAN("application/openmetrics-text"), SPAN("1.0.0"));
        int its_plain = weight_of_version(element, SPAN("text/plain"), SPAN("0.0.4"));
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

/* The head, and the time after which a client reconnects. Events follow. The answer has no
 * length, so it ends with the connection. */
static void answer_events(const struct exchange *e)
{
    if (e->shared->streams >= e->shared->streams_max) {
        answer_sentence(e->answer, HTTP_SERVICE_UNAVAILABLE, SPAN("Retry-After: 5\r\n"),
                        SPAN("Too many pages are open. Close one, and try again.\n"));
        return;
    }
    e->answer->close = true;
    e->answer->stream = true;
    e->answer->known_ns =
        page_numbers_known(&e->shared->numbers, field_of(e, HTTP_FIELD_LAST_EVENT_ID));
    e->answer->body = SPAN("retry: 1000\n\n");
    struct buf head = begin_head(e->answer, HTTP_OK);
    http_head_add_field(&head, SPAN("Cache-Control"), SPAN("no-store"));
    http_head_add_field(&head, SPAN("Content-Type"), SPAN(EVENT_STREAM));
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
    answer_body(e->answer, state == STATS_SERVING ? HTTP_OK : HTTP_SERVICE_UNAVAILABLE,
                SPAN(PLAIN_TEXT), SPAN(""), bodies[state]);
}

/* ---- who may ask ---- */

bool page_answer_host_is_local(struct span host)
{
    char text[INET6_ADDRSTRLEN];
    unsigned char bytes[sizeof(struct in6_addr)];
    if (span_equal_nocase(host, SPAN("localhost")))
        return true;
    bool bracketed = host.len > 2 && host.at[0] == '[' && host.at[host.len - 1] == ']';
    if (bracketed)
        host = span_of(host.at + 1, host.len - 2);
    if (host.len >= sizeof(text))
        return false;
    memcpy(text, host.at, host.len);
    text[host.len] = '\0';
    if (!bracketed)
        return inet_pton(AF_INET, text, bytes) == 1 && bytes[0] == 127;
    return inet_pton(AF_INET6, text, bytes) == 1 &&
           memcmp(bytes, &in6addr_loopback, sizeof(in6addr_loopback)) == 0;
}

static bool is_allowed(const struct exchange *e, const struct http_target *target)
{
    if (e->guarded && target->host.len > 0 && !page_answer_host_is_local(target->host)) {
        answer_sentence(
            e->answer, HTTP_MISDIRECTED_REQUEST, SPAN(""),
            SPAN("Without a stats-password, only this machine may read the statistics.\n"
                 "Use localhost, 127.0.0.1 or [::1] as the host, or set a stats-password.\n"));
        return false;
    }
    if (span_equal(target->path, SPAN("/healthz")))
        return true;
    switch (page_password_check(&e->shared->password, field_of(e, HTTP_FIELD_AUTHORIZATION),
                                e->now_ns)) {
    case PAGE_PASSWORD_RIGHT:
        return true;
    case PAGE_PASSWORD_WRONG:
        answer_sentence(
            e->answer, HTTP_UNAUTHORIZED,
            SPAN("Cache-Control: no-store\r\n"
                 "WWW-Authenticate: Basic realm=\"weir statistics\", charset=\"UTF-8\"\r\n"),
            http_status_sentence(HTTP_UNAUTHORIZED));
        return false;
    case PAGE_PASSWORD_LATER:
    default:
        answer_sentence(e->answer, HTTP_TOO_MANY_REQUESTS,
                        SPAN("Cache-Control: no-store\r\nRetry-After: 1\r\n"),
                        SPAN("Too many passwords were tried. Try again in a second.\n"));
        return false;
    }
}

/* ---- dispatch ---- */

static void answer_page_path(const struct exchange *e, struct span path)
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
    const struct asset *asset = find_asset(path);
    if (asset)
        answer_asset(e, asset);
    else
        answer_error(e->answer, HTTP_NOT_FOUND);
}

void page_answer_request(struct page_answer *answer, struct page_shared *shared,
                         const struct http_request *request, const char *head, bool guarded,
                         uint64_t now_ns)
{
    char storage[HTTP_TARGET_MAX];
    struct http_target target;
    struct http_body body = { 0 };
    const struct exchange e = { answer, shared, request, head, now_ns, guarded };
    const int refusal = http_body_begin(&body, request, head);
    /* The page reads no bodies, so the connection ends with a request that may have one. */
    const bool has_body = refusal != 0 || body.kind != HTTP_BODY_NONE;
    /* A client of HTTP/1.0 reads to the end of the connection. */
    *answer = (struct page_answer){
        .close = request->minor == 0 || !http_request_persists(request, head) || has_body,
        .wall_s = shared->wall_s,
    };
    if (request->method != HTTP_GET && request->method != HTTP_HEAD) {
        answer->close = true;
        answer_sentence(answer, HTTP_METHOD_NOT_ALLOWED, SPAN("Allow: GET, HEAD\r\n"),
                        http_status_sentence(HTTP_METHOD_NOT_ALLOWED));
        return;
    }
    int status = http_target_resolve(&target, request, head, storage, sizeof(storage));
    if (refusal != 0) {
        answer_error(answer, (enum http_status)refusal);
    } else if (status != 0) {
        answer->close = answer->close || status != HTTP_NOT_FOUND;
        answer_error(answer, status == HTTP_NOT_FOUND ? HTTP_NOT_FOUND : HTTP_BAD_REQUEST);
    } else if (is_allowed(&e, &target)) {
        answer_page_path(&e, target.path);
    }
    if (request->method != HTTP_HEAD)
        return;
    page_answer_drop(answer); /* with its body */
    answer->close = answer->close || answer->stream;
    answer->stream = false;
}
