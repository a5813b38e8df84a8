/* SPDX-License-Identifier: MIT
 *
 * Compares answers with what a case expects (answer.h).
 */
#include "answer.h"

#include "base/num.h"

#include <stdarg.h>
#include <stdlib.h>

enum { FIELDS_MAX = 64 };

struct field {
    struct span name, value;
};

struct answer {
    unsigned status;
    struct field field[FIELDS_MAX];
    size_t fields;
    struct span body;
};

/* The state of one comparison. */
struct judge {
    const struct cases_case *c;
    const struct fixture *fixture;
    const struct escape_tags *tags;
    struct span bytes; /* not yet read */
    enum answer_state state;
    bool cut; /* the server may close without announcing it */
    FILE *out;
    unsigned wrong;
    unsigned number; /* of the current answer, from 1 */
};

static void blame(struct judge *j, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void blame(struct judge *j, const char *format, ...)
{
    j->wrong++;
    (void)fprintf(j->out, "    answer %u: ", j->number);
    va_list args;
    va_start(args, format);
    (void)vfprintf(j->out, format, args);
    va_end(args);
    (void)fputc('\n', j->out);
}

const char *answer_state_name(enum answer_state state)
{
    switch (state) {
    case ANSWER_OPEN:
        return "open";
    case ANSWER_WAITING:
        return "waiting";
    case ANSWER_CLOSED:
        return "closed";
    }
    return "?";
}

static const struct field *find_field(const struct answer *a, struct span name)
{
    for (size_t i = 0; i < a->fields; i++)
        if (span_equal_nocase(a->field[i].name, name))
            return &a->field[i];
    return NULL;
}

static bool has(const struct answer *a, struct span name)
{
    return find_field(a, name) != NULL;
}

/* Removes one line that ends with CRLF from the front. False when there is none. */
static bool take_line(struct span *bytes, struct span *ret_line)
{
    const char *end = memmem(bytes->at, bytes->len, "\r\n", 2);
    if (!end)
        return false;
    size_t len = (size_t)(end - bytes->at);
    *ret_line = span_first(*bytes, len);
    *bytes = span_skip(*bytes, len + 2);
    return true;
}

static bool clean(struct span text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.at[i] < ' ' || text.at[i] == 0x7f)
            return false;
    return true;
}

static bool read_status_line(struct span line, unsigned *ret_status)
{
    uint64_t status = 0;
    if (line.len < 14 || !span_starts(line, SPAN("HTTP/1.1 ")) || line.at[12] != ' ' ||
        !num_parse_u64(span_of(line.at + 9, 3), &status) || !clean(line))
        return false;
    *ret_status = (unsigned)status;
    return true;
}

static bool read_field(struct span line, struct field *ret_field)
{
    const char *colon = memchr(line.at, ':', line.len);
    if (!colon || colon == line.at || !clean(line))
        return false;
    size_t name_len = (size_t)(colon - line.at);
    struct span rest = span_skip(line, name_len + 1);
    if (memchr(line.at, ' ', name_len) || rest.len < 2 || rest.at[0] != ' ' || rest.at[1] == ' ')
        return false;
    *ret_field = (struct field){ span_first(line, name_len), span_skip(rest, 1) };
    return true;
}

/* Removes the status line and the fields from the front of j->bytes. */
static bool read_head(struct judge *j, struct answer *a)
{
    struct span line;
    if (!take_line(&j->bytes, &line) || !read_status_line(line, &a->status)) {
        blame(j, "no status line at the beginning");
        return false;
    }
    while (take_line(&j->bytes, &line)) {
        if (line.len == 0)
            return true;
        struct field field;
        if (!read_field(line, &field) || a->fields == FIELDS_MAX) {
            blame(j, "a malformed field line: %.*s", (int)line.len, line.at);
            return false;
        }
        if (has(a, field.name))
            blame(j, "%.*s twice", (int)field.name.len, field.name.at);
        a->field[a->fields++] = field;
    }
    blame(j, "the head has no end");
    return false;
}

static bool read_body(struct judge *j, struct answer *a, bool bodiless)
{
    const struct field *length = find_field(a, SPAN("Content-Length"));
    uint64_t len = 0;
    if (length && !num_parse_u64(length->value, &len)) {
        blame(j, "Content-Length is not a number");
        return false;
    }
    if (a->status == 204 && length)
        blame(j, "204 with a Content-Length");
    if (a->status != 204 && a->status != 304 && !bodiless && !length)
        blame(j, "no Content-Length");
    if (bodiless || a->status == 204 || a->status == 304)
        len = 0;
    if (len > j->bytes.len)
        blame(j, "only %zu of %llu body bytes", j->bytes.len, (unsigned long long)len);
    a->body = span_first(j->bytes, len);
    j->bytes = span_skip(j->bytes, a->body.len);
    return true;
}

/* Checks the rules for every answer. */
static void check_manners(struct judge *j, const struct answer *a, bool last)
{
    const struct field *date = find_field(a, SPAN("Date"));
    if (!date || date->value.len != 29 || !span_ends(date->value, SPAN(" GMT")))
        blame(j, "no valid Date");
    if (has(a, SPAN("Transfer-Encoding")))
        blame(j, "has a Transfer-Encoding");
    if (a->status == 405 && !has(a, SPAN("Allow")))
        blame(j, "405 without Allow");
    if (a->status == 416 && !has(a, SPAN("Content-Range")))
        blame(j, "416 without Content-Range");
    if (a->status == 301 && !has(a, SPAN("Location")))
        blame(j, "301 without Location");
    const struct field *type = find_field(a, SPAN("Content-Type"));
    if (a->body.len > 0 && !type)
        blame(j, "a body without Content-Type");
    bool multipart = type && span_starts(type->value, SPAN("multipart/byteranges"));
    if (a->status == 206 && multipart == has(a, SPAN("Content-Range")))
        blame(j, "206 needs Content-Range, or multipart/byteranges");
    const struct field *connection = find_field(a, SPAN("Connection"));
    bool close = connection && span_equal(connection->value, SPAN("close"));
    bool own_close = last && j->state == ANSWER_CLOSED && j->c->end != CASES_END_HALF_CLOSE &&
                     !j->cut;
    if (own_close && !close)
        blame(j, "the server closed without `Connection: close`");
    if (close && !(last && j->state == ANSWER_CLOSED))
        blame(j, "the connection stayed open after `Connection: close`");
}

static void show_difference(struct judge *j, const char *what, struct span got,
                            struct span expected)
{
    blame(j, "%s", what);
    (void)fputs("      expected ", j->out);
    escape_show(j->out, expected, 200);
    (void)fputs("\n      got      ", j->out);
    escape_show(j->out, got, 200);
    (void)fputc('\n', j->out);
}

static void check_page(struct judge *j, const struct answer *a)
{
    char status[16];
    (void)snprintf(status, sizeof status, "%u", a->status);
    const struct field *type = find_field(a, SPAN("Content-Type"));
    if (!type || !span_equal(type->value, SPAN("text/html; charset=utf-8")))
        blame(j, "an error page must be text/html; charset=utf-8");
    if (!memmem(a->body.at, a->body.len, status, strlen(status)))
        blame(j, "the page does not name its status");
    if (!memmem(a->body.at, a->body.len, "Request ", strlen("Request ")))
        blame(j, "the page does not name its request");
}

/* Removes `A-B` from the front of the text. */
static bool take_range(struct span *text, uint64_t *ret_first, uint64_t *ret_last)
{
    *text = span_trim(*text);
    const char *space = memchr(text->at, ' ', text->len);
    struct span word = span_first(*text, space ? (size_t)(space - text->at) : text->len);
    const char *dash = memchr(word.at, '-', word.len);
    size_t first_len = dash ? (size_t)(dash - word.at) : 0;
    *text = span_skip(*text, word.len);
    return dash && num_parse_u64(span_first(word, first_len), ret_first) &&
           num_parse_u64(span_skip(word, first_len + 1), ret_last) && *ret_first <= *ret_last;
}

/* Removes the name of a file from the front of the text, and reads the file. */
static char *take_file(struct judge *j, struct span *text, size_t *ret_len)
{
    const char *space = memchr(text->at, ' ', text->len);
    struct span name = span_first(*text, space ? (size_t)(space - text->at) : text->len);
    *text = span_skip(*text, name.len);
    char *bytes = fixture_read(j->fixture, name, ret_len);
    if (!bytes)
        blame(j, "the case names a file that does not exist: %.*s", (int)name.len, name.at);
    return bytes;
}

static void check_file(struct judge *j, const struct answer *a, struct span text)
{
    size_t len = 0;
    char *bytes = take_file(j, &text, &len);
    if (!bytes)
        return;
    struct span expected = span_of(bytes, len);
    uint64_t first = 0;
    uint64_t last = 0;
    if (text.len > 0) {
        if (!take_range(&text, &first, &last) || last >= len)
            blame(j, "the case names no range of that file");
        else
            expected = span_of(bytes + first, last - first + 1);
    }
    if (!span_equal(a->body, expected))
        show_difference(j, "the body differs from the file", a->body, expected);
    free(bytes);
}

/* Removes one part from the front of *body. False when it is not the expected one. */
static bool take_part(struct span *body, struct span boundary, struct span data, uint64_t first,
                      size_t size)
{
    struct span line;
    if (!take_line(body, &line) || line.len != boundary.len + 2 || !span_starts(line, SPAN("--")) ||
        !span_ends(line, boundary))
        return false;
    char wanted[96];
    (void)snprintf(wanted, sizeof wanted, "bytes %llu-%llu/%zu", (unsigned long long)first,
                   (unsigned long long)(first + data.len - 1), size);
    bool ranged = false;
    bool typed = false;
    while (take_line(body, &line) && line.len > 0) {
        struct field field;
        if (!read_field(line, &field))
            return false;
        ranged |= span_equal_nocase(field.name, SPAN("Content-Range")) &&
                  span_equal(field.value, span_text(wanted));
        typed |= span_equal_nocase(field.name, SPAN("Content-Type"));
    }
    if (!ranged || !typed || !span_starts(*body, data))
        return false;
    *body = span_skip(*body, data.len);
    return take_line(body, &line) && line.len == 0;
}

static void check_parts(struct judge *j, const struct answer *a, struct span text)
{
    static const struct span prefix = { "multipart/byteranges; boundary=", 31 };
    size_t size = 0;
    char *bytes = take_file(j, &text, &size);
    if (!bytes)
        return;
    const struct field *type = find_field(a, SPAN("Content-Type"));
    struct span body = a->body;
    struct span boundary = { 0 };
    if (type && span_starts(type->value, prefix))
        boundary = span_skip(type->value, prefix.len);
    if (boundary.len == 0 || boundary.len > 70)
        blame(j, "no boundary");
    if (span_starts(body, SPAN("\r\n")))
        body = span_skip(body, 2);
    for (unsigned part = 1; text.len > 0 && boundary.len > 0; part++) {
        uint64_t first = 0;
        uint64_t last = 0;
        if (!take_range(&text, &first, &last) || last >= size) {
            blame(j, "the case names no range of that file");
            break;
        }
        if (!take_part(&body, boundary, span_of(bytes + first, last - first + 1), first, size)) {
            blame(j, "part %u is not as expected", part);
            break;
        }
    }
    struct span line;
    if (boundary.len > 0 &&
        (!take_line(&body, &line) || body.len > 0 || line.len != boundary.len + 4 ||
         memcmp(line.at + 2, boundary.at, boundary.len) != 0 || !span_ends(line, SPAN("--"))))
        blame(j, "the closing boundary does not follow the last part");
    free(bytes);
}

/* `body is`, `has` or `lacks` some text. */
static void check_text(struct judge *j, const struct answer *a, struct span rule, struct span text)
{
    char *bytes = NULL;
    size_t len = 0;
    const char *wrong = escape_bytes(text, j->tags, &bytes, &len);
    if (wrong) {
        blame(j, "in the case: %s", wrong);
        return;
    }
    bool inside = memmem(a->body.at, a->body.len, bytes, len) != NULL;
    if (span_equal(rule, SPAN("is")) && !span_equal(a->body, span_of(bytes, len)))
        show_difference(j, "another body", a->body, span_of(bytes, len));
    else if (span_equal(rule, SPAN("has")) && !inside)
        show_difference(j, "the body lacks this text", a->body, span_of(bytes, len));
    else if (span_equal(rule, SPAN("lacks")) && inside)
        show_difference(j, "the body has this forbidden text", a->body, span_of(bytes, len));
    free(bytes);
}

static void check_body(struct judge *j, const struct answer *a, struct span line)
{
    const char *space = memchr(line.at, ' ', line.len);
    struct span rule = span_first(line, space ? (size_t)(space - line.at) : line.len);
    struct span text = span_skip(line, space ? rule.len + 1 : rule.len);
    const struct field *length = find_field(a, SPAN("Content-Length"));
    uint64_t wanted = 0;
    if (span_equal(rule, SPAN("is")) || span_equal(rule, SPAN("has")) ||
        span_equal(rule, SPAN("lacks"))) {
        check_text(j, a, rule, text);
    } else if (span_equal(rule, SPAN("file"))) {
        check_file(j, a, text);
    } else if (span_equal(rule, SPAN("parts"))) {
        check_parts(j, a, text);
    } else if (span_equal(rule, SPAN("page"))) {
        check_page(j, a);
    } else if (span_equal(rule, SPAN("empty"))) {
        if (!length || !span_equal(length->value, SPAN("0")))
            blame(j, "Content-Length must be 0");
    } else if (span_equal(rule, SPAN("length")) && num_parse_u64(text, &wanted)) {
        if (a->body.len != wanted)
            blame(j, "a body of %zu bytes, not %llu", a->body.len, (unsigned long long)wanted);
    } else if (!span_equal(rule, SPAN("none"))) {
        blame(j, "in the case: `body %.*s` has no meaning", (int)line.len, line.at);
    }
}

static void check_field(struct judge *j, const struct answer *a, struct span line)
{
    const char *colon = memchr(line.at, ':', line.len);
    if (!colon || colon + 2 > line.at + line.len || colon[1] != ' ') {
        blame(j, "in the case: `%.*s` has no meaning", (int)line.len, line.at);
        return;
    }
    struct span name = span_first(line, (size_t)(colon - line.at));
    struct span text = span_skip(line, name.len + 2);
    const struct field *field = find_field(a, name);
    if (!field) {
        blame(j, "no %.*s", (int)name.len, name.at);
        return;
    }
    if (span_equal(text, SPAN("*")))
        return;
    char *bytes = NULL;
    size_t len = 0;
    const char *wrong = escape_bytes(text, j->tags, &bytes, &len);
    if (wrong) {
        blame(j, "in the case: %s", wrong);
        return;
    }
    if (!span_equal(field->value, span_of(bytes, len)))
        blame(j, "%.*s is `%.*s`, expected `%s`", (int)name.len, name.at, (int)field->value.len,
              field->value.at, bytes);
    free(bytes);
}

/* `status 400 or 501` */
static void check_status(struct judge *j, const struct answer *a, struct span line)
{
    struct span rest = span_skip(line, strlen("status "));
    while (rest.len >= 3) {
        uint64_t wanted = 0;
        if (num_parse_u64(span_first(rest, 3), &wanted) && wanted == a->status)
            return;
        rest = span_skip(rest, rest.len >= 7 ? 7 : rest.len);
    }
    blame(j, "is %u, expected %.*s", a->status, (int)line.len, line.at);
}

/* The lines of one answer: expect[from .. to). */
static bool check_answer(struct judge *j, size_t from, size_t to, bool last)
{
    bool bodiless = false;
    for (size_t i = from; i < to; i++)
        bodiless |= strcmp(j->c->expect[i], "body none") == 0;
    struct answer a = { 0 };
    if (!read_head(j, &a) || !read_body(j, &a, bodiless))
        return false;
    check_manners(j, &a, last);
    for (size_t i = from; i < to; i++) {
        struct span line = span_text(j->c->expect[i]);
        if (span_starts(line, SPAN("status ")))
            check_status(j, &a, line);
        else if (span_starts(line, SPAN("body ")))
            check_body(j, &a, span_skip(line, 5));
        else if (span_starts(line, SPAN("repeat ")))
            continue;
        else if (span_starts(line, SPAN("no "))) {
            if (has(&a, span_skip(line, 3)))
                blame(j, "has %s", j->c->expect[i] + 3);
        } else
            check_field(j, &a, line);
    }
    return true;
}

/* The number of answers that the lines expect[from .. to) describe. */
static uint64_t count_answers(const struct cases_case *c, size_t from, size_t to)
{
    uint64_t more = 0;
    for (size_t i = from; i < to; i++)
        if (span_starts(span_text(c->expect[i]), SPAN("repeat ")))
            CHECK(num_parse_u64(span_text(c->expect[i] + strlen("repeat ")), &more));
    return 1 + more;
}

unsigned answer_check(const struct cases_case *c, const struct fixture *fixture,
                      const struct escape_tags *tags, struct span bytes, enum answer_state state,
                      FILE *out)
{
    struct judge j = {
        .c = c, .fixture = fixture, .tags = tags, .bytes = bytes, .state = state, .out = out
    };
    const char *then = c->expect[c->expect_count - 1] + strlen("then ");
    j.cut = strcmp(then, "cut") == 0;
    size_t lines = c->expect_count - 1; /* the last line is the state of the connection */
    bool readable = true;
    for (size_t from = 0; from < lines && readable;) {
        size_t to = from + 1;
        while (to < lines && !span_starts(span_text(c->expect[to]), SPAN("status ")))
            to++;
        uint64_t count = count_answers(c, from, to);
        for (uint64_t i = 1; i <= count && readable; i++) {
            j.number++;
            readable = check_answer(&j, from, to, to == lines && i == count);
        }
        from = to;
    }
    if (readable && j.bytes.len > 0) {
        j.number++;
        blame(&j, "is not expected");
    }
    if (strcmp(j.cut ? "closed" : then, answer_state_name(state)) != 0) {
        j.wrong++;
        (void)fprintf(out, "    the connection is %s, expected %s\n", answer_state_name(state),
                      then);
    }
    return j.wrong;
}

struct span answer_first_field(struct span bytes, struct span name)
{
    struct span line;
    while (take_line(&bytes, &line) && line.len > 0) {
        struct field field;
        if (read_field(line, &field) && span_equal_nocase(field.name, name))
            return field.value;
    }
    return span_of("", 0);
}
