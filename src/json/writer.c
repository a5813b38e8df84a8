/* SPDX-License-Identifier: MIT */
#include "json/writer.h"

#include "base/duration.h"
#include "base/escape.h"

#include <inttypes.h>
#include <math.h>

enum { PIECE = 128, PIECE_LEAST = PIECE - 4, ESCAPED_MOST = 6 };

void json_writer_next(struct json_writer *writer, const char *name)
{
    if (writer->any)
        fputc(',', writer->out);
    writer->any = true;
    if (name)
        fprintf(writer->out, "\"%s\":", name);
}

/* A text may be long, so it is escaped in pieces. No piece ends within a character. */
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

struct json_writer json_writer_begin(struct json_writer *writer, const char *name, char bracket)
{
    json_writer_next(writer, name);
    return json_writer_open(writer->out, bracket);
}

void json_writer_end(const struct json_writer *writer, char bracket)
{
    fputc(bracket, writer->out);
}

void json_writer_add_span(struct json_writer *writer, const char *name, struct span text)
{
    json_writer_next(writer, name);
    print_text(writer->out, text);
}

void json_writer_add_text(struct json_writer *writer, const char *name, const char *text)
{
    json_writer_add_span(writer, name, span_text(text));
}

void json_writer_add_number(struct json_writer *writer, const char *name, uint64_t value)
{
    json_writer_next(writer, name);
    fprintf(writer->out, "%" PRIu64, value);
}

void json_writer_add_seconds(struct json_writer *writer, const char *name, uint64_t ns)
{
    json_writer_next(writer, name);
    fprintf(writer->out, "%" PRIu64 ".%09" PRIu64, ns / DURATION_SECOND, ns % DURATION_SECOND);
}

void json_writer_add_null(struct json_writer *writer, const char *name)
{
    json_writer_next(writer, name);
    fputs("null", writer->out);
}

void json_writer_add_real(struct json_writer *writer, const char *name, double value)
{
    if (!isfinite(value)) {
        json_writer_add_null(writer, name);
        return;
    }
    json_writer_next(writer, name);
    fprintf(writer->out, "%.17g", value);
}

void json_writer_add_bool(struct json_writer *writer, const char *name, bool value)
{
    json_writer_next(writer, name);
    fputs(value ? "true" : "false", writer->out);
}
