/* SPDX-License-Identifier: MIT */
#include "json/writer.h"

#include "base/duration.h"
#include "base/escape.h"

#include <inttypes.h>
#include <math.h>

enum { PIECE = 128, PIECE_LEAST = PIECE - 4, ESCAPED_MOST = 6 };

void json_writer_next(struct json_writer *list, const char *name)
{
    if (list->any)
        fputc(',', list->out);
    list->any = true;
    if (name)
        fprintf(list->out, "\"%s\":", name);
}

/* In pieces, as it may be long, and none of them ends within a character. */
static void print_text(FILE *out, struct span text)
{
    char escaped[ESCAPED_MOST * PIECE];
    fputc('"', out);
    while (text.len > 0) {
        size_t take = text.len < PIECE ? text.len : PIECE;
        while (take > PIECE_LEAST && take < text.len && (text.at[take] & 0xc0) == 0x80)
            take--;
        size_t len = escape_text(escaped, sizeof(escaped), span_first(text, take), ESCAPE_JSON);
        fwrite(escaped, 1, len, out);
        text = span_skip(text, take);
    }
    fputc('"', out);
}

struct json_writer json_writer_open(FILE *out, char bracket)
{
    fputc(bracket, out);
    return (struct json_writer){ .out = out };
}

struct json_writer json_writer_begin(struct json_writer *list, const char *name, char bracket)
{
    json_writer_next(list, name);
    return json_writer_open(list->out, bracket);
}

void json_writer_end(const struct json_writer *list, char bracket)
{
    fputc(bracket, list->out);
}

void json_writer_add_span(struct json_writer *list, const char *name, struct span text)
{
    json_writer_next(list, name);
    print_text(list->out, text);
}

void json_writer_add_text(struct json_writer *list, const char *name, const char *text)
{
    json_writer_add_span(list, name, span_text(text));
}

void json_writer_add_number(struct json_writer *list, const char *name, uint64_t value)
{
    json_writer_next(list, name);
    fprintf(list->out, "%" PRIu64, value);
}

void json_writer_add_seconds(struct json_writer *list, const char *name, uint64_t ns)
{
    json_writer_next(list, name);
    fprintf(list->out, "%" PRIu64 ".%09" PRIu64, ns / DURATION_SECOND, ns % DURATION_SECOND);
}

void json_writer_add_null(struct json_writer *list, const char *name)
{
    json_writer_next(list, name);
    fputs("null", list->out);
}

void json_writer_add_real(struct json_writer *list, const char *name, double value)
{
    if (!isfinite(value)) {
        json_writer_add_null(list, name);
        return;
    }
    json_writer_next(list, name);
    fprintf(list->out, "%.17g", value);
}

void json_writer_add_bool(struct json_writer *list, const char *name, bool value)
{
    json_writer_next(list, name);
    fputs(value ? "true" : "false", list->out);
}
