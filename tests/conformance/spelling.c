/* SPDX-License-Identifier: MIT
 *
 * Turns the request bytes of a case into requests of HTTP/2 (spelling.h).
 */
#include "spelling.h"

#include "base/num.h"

#include <nghttp2/nghttp2.h>
#include <stdlib.h>

enum {
    REQUESTS_MAX = 100, /* the server answers at most so many at the same time */
    FIELDS_MAX = 160,   /* of one request */
    BLOCK_MAX = 30000,  /* bytes; a longer header block ends the connection */
    BODIES_MAX = 60000, /* bytes; for more the client would have to wait for the window */
    WINDOW_MAX = 0x7fffffff,
};

struct request {
    nghttp2_nv field[FIELDS_MAX]; /* a name and its value are in memory of their own */
    size_t fields;
    char *body; /* without its chunks */
    size_t body_len, body_sent;
    bool whole; /* the body has an end */
    bool head;  /* HEAD */
};

/* One stream, as far as it has arrived. */
struct outcome {
    unsigned status;
    char *text; /* the fields as HTTP/1.1 writes them */
    size_t text_len;
    FILE *fields;
    char *body_bytes;
    size_t body_len;
    FILE *body;
    uint32_t reset;
    bool ended, was_reset;
};

struct spelling {
    struct request *request[REQUESTS_MAX];
    struct outcome outcome[REQUESTS_MAX];
    size_t count;
    nghttp2_session *session;
    char *input;
    size_t input_len;
    const char *broken; /* what libnghttp2 found */
    uint32_t goaway;    /* the error of GOAWAY */
};

/* ---- from HTTP/1.1 to a list of fields ---- */

static bool take_line(struct span *bytes, struct span *ret_line)
{
    const char *end = memmem(bytes->at, bytes->len, "\r\n", 2);
    if (!end)
        return false;
    *ret_line = span_first(*bytes, (size_t)(end - bytes->at));
    *bytes = span_skip(*bytes, ret_line->len + 2);
    return true;
}

static void add_field(struct request *r, struct span name, struct span value)
{
    CHECK(r->fields < FIELDS_MAX);
    char *bytes = malloc(name.len + value.len + 1);
    CHECK(bytes);
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];
        bytes[i] = c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
    }
    if (value.len > 0)
        memcpy(bytes + name.len, value.at, value.len);
    r->field[r->fields++] = (nghttp2_nv){ .name = (uint8_t *)bytes,
                                          .value = (uint8_t *)bytes + name.len,
                                          .namelen = name.len,
                                          .valuelen = value.len };
}

static struct span name_of(const nghttp2_nv *field)
{
    return span_of((const char *)field->name, field->namelen);
}

static struct span value_of(const nghttp2_nv *field)
{
    return span_of((const char *)field->value, field->valuelen);
}

static void remove_field(struct request *r, size_t at)
{
    free(r->field[at].name);
    memmove(&r->field[at], &r->field[at + 1], (r->fields - at - 1) * sizeof(r->field[0]));
    r->fields--;
}

static bool is_absolute(struct span target)
{
    const char *colon = memchr(target.at, ':', target.len);
    size_t scheme = colon ? (size_t)(colon - target.at) : 0;
    for (size_t i = 0; i < scheme; i++)
        if (target.at[i] == '/')
            return false;
    return scheme > 0 && span_starts(span_skip(target, scheme), SPAN("://"));
}

/* Reads the request line. False: HTTP/2 has no such request. */
static bool read_first_line(struct request *r, struct span line)
{
    const char *first = memchr(line.at, ' ', line.len);
    const char *last = memrchr(line.at, ' ', line.len);
    CHECK(first && last > first);
    struct span method = span_first(line, (size_t)(first - line.at));
    struct span target = span_of(first + 1, (size_t)(last - first - 1));
    if (!span_ends(line, SPAN(" HTTP/1.1")) || is_absolute(target))
        return false;
    r->head = span_equal(method, SPAN("HEAD"));
    add_field(r, SPAN(":method"), method);
    add_field(r, SPAN(":scheme"), SPAN("http"));
    add_field(r, SPAN(":path"), target);
    return true;
}

/* The number of fields with this name, and the place of the last one. */
static size_t find_fields(const struct request *r, struct span name, size_t *ret_last)
{
    size_t found = 0;
    for (size_t i = 0; i < r->fields; i++)
        if (span_equal(name_of(&r->field[i]), name)) {
            *ret_last = i;
            found++;
        }
    return found;
}

/* A Host field becomes :authority, which comes first. Two Host fields stay. */
static void move_host(struct request *r)
{
    size_t at;
    if (find_fields(r, SPAN("host"), &at) != 1)
        return;
    CHECK(r->fields < FIELDS_MAX);
    struct span value = value_of(&r->field[at]);
    add_field(r, SPAN(":authority"), value);
    nghttp2_nv authority = r->field[r->fields - 1];
    remove_field(r, at);
    r->fields--;
    memmove(&r->field[4], &r->field[3], (r->fields - 3) * sizeof(r->field[0]));
    r->field[3] = authority;
    r->fields++;
}

/* Appends the data of chunks to the body. True: the last chunk has come. */
static bool take_chunks(struct span *rest, FILE *body)
{
    struct span line;
    while (take_line(rest, &line)) {
        char digits[128];
        CHECK(line.len < sizeof(digits));
        (void)snprintf(digits, sizeof(digits), "%.*s", (int)line.len, line.at);
        size_t size = strtoul(digits, NULL, 16);
        CHECK(size == 0 || rest->len >= size + 2);
        (void)fwrite(rest->at, 1, size, body);
        *rest = span_skip(*rest, size + 2);
        if (size == 0)
            return true;
    }
    return false;
}

static void read_body(struct request *r, struct span *rest)
{
    size_t at;
    uint64_t len = 0;
    FILE *body = open_memstream(&r->body, &r->body_len);
    CHECK(body);
    r->whole = true;
    if (find_fields(r, SPAN("transfer-encoding"), &at) == 1) {
        CHECK(span_equal_nocase(span_trim(value_of(&r->field[at])), SPAN("chunked")));
        remove_field(r, at);
        r->whole = take_chunks(rest, body);
        CHECK(fclose(body) == 0);
        return;
    }
    size_t lengths = find_fields(r, SPAN("content-length"), &at);
    bool known = lengths == 1 && num_parse_u64(value_of(&r->field[at]), &len);
    /* No reader knows where the body of another Content-Length ends. */
    struct span bytes = span_first(*rest, known || lengths == 0 ? (size_t)len : rest->len);
    r->whole = !known || bytes.len == len;
    (void)fwrite(bytes.at, 1, bytes.len, body);
    *rest = span_skip(*rest, bytes.len);
    CHECK(fclose(body) == 0);
}

/* Reads one request. False: HTTP/2 has no such request. */
static bool read_request(struct request *r, struct span *rest)
{
    struct span line;
    size_t size = 0, at;
    CHECK(take_line(rest, &line));
    if (!read_first_line(r, line))
        return false;
    for (;;) {
        CHECK(take_line(rest, &line));
        if (line.len == 0)
            break;
        const char *colon = memchr(line.at, ':', line.len);
        CHECK(colon);
        struct span name = span_first(line, (size_t)(colon - line.at));
        struct span value = span_trim(span_skip(line, name.len + 1));
        size += name.len + value.len;
        if (size > BLOCK_MAX || r->fields + 2 > FIELDS_MAX)
            return false;
        add_field(r, name, value);
    }
    size += r->field[2].valuelen;
    move_host(r);
    while (find_fields(r, SPAN("connection"), &at) > 0)
        remove_field(r, at);
    read_body(r, rest);
    return size <= BLOCK_MAX;
}

static bool read_requests(struct spelling *s, struct span rest)
{
    size_t bodies = 0;
    while (rest.len > 0) {
        if (s->count == REQUESTS_MAX)
            return false;
        struct request *r = calloc(1, sizeof(*r));
        CHECK(r);
        s->request[s->count++] = r;
        if (!read_request(r, &rest))
            return false;
        bodies += r->body_len;
    }
    return bodies <= BODIES_MAX;
}

/* ---- the client ---- */

static ssize_t give_body(nghttp2_session *session, int32_t stream, uint8_t *out, size_t room,
                         uint32_t *flags, nghttp2_data_source *source, void *context)
{
    (void)session, (void)stream, (void)context;
    struct request *r = source->ptr;
    size_t len = r->body_len - r->body_sent < room ? r->body_len - r->body_sent : room;
    if (len == 0 && !r->whole)
        return NGHTTP2_ERR_DEFERRED;
    if (len > 0)
        memcpy(out, r->body + r->body_sent, len);
    r->body_sent += len;
    if (r->body_sent == r->body_len && r->whole)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)len;
}

static struct outcome *outcome_of(struct spelling *s, int32_t stream)
{
    size_t at = (size_t)(stream - 1) / 2;
    return stream > 0 && at < s->count ? &s->outcome[at] : NULL;
}

static int keep_field(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                      size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                      void *context)
{
    (void)session, (void)flags;
    struct spelling *s = context;
    struct outcome *o = outcome_of(s, frame->hd.stream_id);
    uint64_t status = 0;
    if (!o) {
        s->broken = "an answer to no request";
    } else if (name_len == 7 && memcmp(name, ":status", 7) == 0) {
        (void)num_parse_u64(span_of((const char *)value, value_len), &status);
        o->status = (unsigned)status;
    } else {
        (void)fprintf(o->fields, "%.*s: ", (int)name_len, (const char *)name);
        (void)fwrite(value, 1, value_len, o->fields);
        (void)fputs("\r\n", o->fields);
    }
    return 0;
}

static int keep_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *bytes,
                     size_t len, void *context)
{
    (void)session, (void)flags;
    struct outcome *o = outcome_of(context, stream);
    CHECK(o);
    (void)fwrite(bytes, 1, len, o->body);
    return 0;
}

static int keep_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
    (void)session;
    struct spelling *s = context;
    struct outcome *o = outcome_of(s, frame->hd.stream_id);
    bool carries = frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS;
    if (o && carries && frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
        o->ended = true;
    if (o && frame->hd.type == NGHTTP2_RST_STREAM) {
        o->was_reset = true;
        o->reset = frame->rst_stream.error_code;
    }
    if (frame->hd.type == NGHTTP2_GOAWAY)
        s->goaway = frame->goaway.error_code;
    return 0;
}

static int keep_fault(nghttp2_session *session, const nghttp2_frame *frame, int error,
                      void *context)
{
    (void)session, (void)frame;
    struct spelling *s = context;
    s->broken = nghttp2_strerror(error);
    return 0;
}

static void open_session(struct spelling *s)
{
    nghttp2_session_callbacks *callbacks;
    CHECK(nghttp2_session_callbacks_new(&callbacks) == 0);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, keep_field);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, keep_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, keep_frame);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, keep_fault);
    CHECK(nghttp2_session_client_new(&s->session, callbacks, s) == 0);
    nghttp2_session_callbacks_del(callbacks);
    const nghttp2_settings_entry settings[] = {
        { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_MAX }, { NGHTTP2_SETTINGS_ENABLE_PUSH, 0 }
    };
    CHECK(nghttp2_submit_settings(s->session, NGHTTP2_FLAG_NONE, settings, 2) == 0);
    CHECK(nghttp2_session_set_local_window_size(s->session, NGHTTP2_FLAG_NONE, 0, WINDOW_MAX) == 0);
}

static void write_input(struct spelling *s)
{
    FILE *out = open_memstream(&s->input, &s->input_len);
    CHECK(out);
    open_session(s);
    for (size_t i = 0; i < s->count; i++) {
        struct request *r = s->request[i];
        const nghttp2_data_provider body = { .source.ptr = r, .read_callback = give_body };
        bool bare = r->whole && r->body_len == 0;
        CHECK(nghttp2_submit_request(s->session, NULL, r->field, r->fields, bare ? NULL : &body,
                                     NULL) == (int32_t)(2 * i + 1));
        struct outcome *o = &s->outcome[i];
        o->fields = open_memstream(&o->text, &o->text_len);
        o->body = open_memstream(&o->body_bytes, &o->body_len);
        CHECK(o->fields && o->body);
    }
    const uint8_t *bytes;
    ssize_t len;
    while ((len = nghttp2_session_mem_send(s->session, &bytes)) > 0)
        (void)fwrite(bytes, 1, (size_t)len, out);
    CHECK(len == 0 && fclose(out) == 0);
}

struct spelling *spelling_new(const struct cases_case *c)
{
    if (c->only_http1)
        return NULL;
    struct spelling *s = calloc(1, sizeof(*s));
    CHECK(s);
    if (!read_requests(s, span_of(c->request, c->request_len))) {
        spelling_free(s);
        return NULL;
    }
    write_input(s);
    return s;
}

struct span spelling_input(const struct spelling *s)
{
    return span_of(s->input, s->input_len);
}

void spelling_free(struct spelling *s)
{
    if (!s)
        return;
    nghttp2_session_del(s->session);
    for (size_t i = 0; i < s->count; i++) {
        struct request *r = s->request[i];
        struct outcome *o = &s->outcome[i];
        for (size_t k = 0; k < r->fields; k++)
            free(r->field[k].name);
        if (o->fields)
            CHECK(fclose(o->fields) == 0);
        if (o->body)
            CHECK(fclose(o->body) == 0);
        free(o->text);
        free(o->body_bytes);
        free(r->body);
        free(r);
    }
    free(s->input);
    free(s);
}

/* ---- comparison ---- */

/* One answer of either spelling. */
struct answer {
    unsigned status;
    struct span fields, body;
};

/* Overwrites the 16 digits behind each `mark`. They differ with each request. */
static void mask(struct span bytes, const char *mark)
{
    size_t len = strlen(mark);
    for (char *at = (char *)(uintptr_t)bytes.at, *end = at + bytes.len;
         (at = memmem(at, (size_t)(end - at), mark, len)); at += len)
        for (size_t i = 0; i < 16 && at + len + i < end; i++)
            if ((at[len + i] >= '0' && at[len + i] <= '9') ||
                (at[len + i] >= 'a' && at[len + i] <= 'f'))
                at[len + i] = '*';
}

static void mask_all(struct span bytes)
{
    mask(bytes, "Request ");
    mask(bytes, "boundary=weir");
    mask(bytes, "--weir");
}

static bool find_value(struct span fields, struct span name, struct span *ret_value)
{
    struct span line;
    while (take_line(&fields, &line))
        if (line.len > name.len + 1 && line.at[name.len] == ':' &&
            span_equal_nocase(span_first(line, name.len), name)) {
            *ret_value = span_trim(span_skip(line, name.len + 1));
            return true;
        }
    return false;
}

/* Removes the first answer of HTTP/1.1 from the front. False: there is none. */
static bool take_answer(struct span *bytes, bool head, struct answer *ret_answer)
{
    struct span line, value;
    uint64_t status = 0, len = 0;
    if (!take_line(bytes, &line) || line.len < 12 ||
        !num_parse_u64(span_of(line.at + 9, 3), &status))
        return false;
    const char *end = memmem(line.at, line.len + 2 + bytes->len, "\r\n\r\n", 4);
    CHECK(end);
    *ret_answer = (struct answer){ .status = (unsigned)status,
                                   .fields = span_of(bytes->at, (size_t)(end + 2 - bytes->at)) };
    *bytes = span_skip(*bytes, ret_answer->fields.len + 2);
    if (!head && status != 304 && find_value(ret_answer->fields, SPAN("Content-Length"), &value))
        CHECK(num_parse_u64(value, &len) && len <= bytes->len);
    ret_answer->body = span_first(*bytes, (size_t)len);
    *bytes = span_skip(*bytes, (size_t)len);
    return true;
}

static bool is_of_connection(struct span line)
{
    return span_starts(line, SPAN("Connection:")) || span_starts(line, SPAN("Keep-Alive:"));
}

static unsigned compare_fields(struct span first, struct span second, FILE *out)
{
    struct span line, value;
    unsigned wrong = 0, count = 0, second_count = 0;
    while (take_line(&first, &line)) {
        const char *colon = memchr(line.at, ':', line.len);
        CHECK(colon);
        struct span name = span_first(line, (size_t)(colon - line.at));
        if (is_of_connection(line))
            continue;
        count++;
        bool found = find_value(second, name, &value);
        if (found && span_equal(value, span_trim(span_skip(line, name.len + 1))))
            continue;
        wrong++;
        (void)fprintf(out, "    `%.*s`, and over HTTP/2 `%.*s`\n", (int)line.len, line.at,
                      found ? (int)value.len : 0, value.at);
    }
    while (take_line(&second, &line))
        second_count++;
    if (count != second_count) {
        wrong++;
        (void)fprintf(out, "    %u fields, and over HTTP/2 %u\n", count, second_count);
    }
    return wrong;
}

static unsigned compare(const struct answer *first, const struct outcome *o, FILE *out)
{
    bool malformed = o->was_reset && o->reset == NGHTTP2_PROTOCOL_ERROR;
    if (first->status == 400 && (malformed || (o->status == 400 && o->ended)))
        return 0;
    if (first->status != o->status || !o->ended) {
        (void)fprintf(out, "    status %u, and over HTTP/2 %u%s (reset %d, error %u)\n",
                      first->status, o->status, o->ended ? "" : " without end", o->was_reset,
                      o->reset);
        return 1;
    }
    struct span body = span_of(o->body_bytes, o->body_len);
    struct span fields = span_of(o->text, o->text_len);
    mask_all(body);
    mask_all(fields);
    unsigned wrong = compare_fields(first->fields, fields, out);
    if (!span_equal(first->body, body)) {
        wrong++;
        (void)fputs("    the body is\n      ", out);
        escape_show(out, first->body, 200);
        (void)fputs("\n    and over HTTP/2\n      ", out);
        escape_show(out, body, 200);
        (void)fputc('\n', out);
    }
    return wrong;
}

unsigned spelling_check(struct spelling *s, struct span output, struct span first, FILE *out)
{
    unsigned wrong = 0;
    ssize_t read = nghttp2_session_mem_recv(s->session, (const uint8_t *)output.at, output.len);
    if (read != (ssize_t)output.len || s->broken || s->goaway) {
        wrong++;
        (void)fprintf(out, "    libnghttp2: %s; %zd of %zu bytes, GOAWAY %u\n",
                      read < 0 ? nghttp2_strerror((int)read) : (s->broken ? s->broken : "ok"), read,
                      output.len, s->goaway);
    }
    char *copy = malloc(first.len + 1);
    CHECK(copy);
    memcpy(copy, first.at, first.len);
    struct span rest = span_of(copy, first.len);
    mask_all(rest);
    for (size_t i = 0; i < s->count; i++) {
        struct answer answer;
        CHECK(fflush(s->outcome[i].fields) == 0 && fflush(s->outcome[i].body) == 0);
        /* Over HTTP/1.1 the connection may have closed before the last requests. */
        if (rest.len == 0 || !take_answer(&rest, s->request[i]->head, &answer))
            break;
        unsigned differences = compare(&answer, &s->outcome[i], out);
        if (differences > 0)
            (void)fprintf(out, "    in answer %zu\n", i + 1);
        wrong += differences;
    }
    free(copy);
    return wrong;
}
