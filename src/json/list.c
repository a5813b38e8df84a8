/* SPDX-License-Identifier: MIT */
#include "json/list.h"

#include "base/escape.h"

#include <inttypes.h>
#include <math.h>

enum { PIECE = 128, PIECE_LEAST = PIECE - 4, ESCAPED_MOST = 6 };

void json_list_next(struct json_list *list, const char *name)
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

struct json_list json_list_open(FILE *out, char bracket)
{
    fputc(bracket, out);
    return (struct json_list){ .out = out };
}

struct json_list json_list_begin(struct json_list *list, const char *name, char bracket)
{
    json_list_next(list, name);
    return json_list_open(list->out, bracket);
}

void json_list_end(const struct json_list *list, char bracket)
{
    fputc(bracket, list->out);
}

void json_list_add_span(struct json_list *list, const char *name, struct span text)
{
    json_list_next(list, name);
    print_text(list->out, text);
}

void json_list_add_text(struct json_list *list, const char *name, const char *text)
{
    json_list_add_span(list, name, span_text(text));
}

void json_list_add_number(struct json_list *list, const char *name, uint64_t value)
{
    json_list_next(list, name);
    fprintf(list->out, "%" PRIu64, value);
}

void json_list_add_seconds(struct json_list *list, const char *name, uint64_t ns)
{
    json_list_next(list, name);
    fprintf(list->out, "%" PRIu64 ".%09" PRIu64, ns / 1000000000, ns % 1000000000);
}

void json_list_add_null(struct json_list *list, const char *name)
{
    json_list_next(list, name);
    fputs("null", list->out);
}

void json_list_add_real(struct json_list *list, const char *name, double value)
{
    if (!isfinite(value)) {
        json_list_add_null(list, name);
        return;
    }
    json_list_next(list, name);
    fprintf(list->out, "%.17g", value);
}

void json_list_add_truth(struct json_list *list, const char *name, bool value)
{
    json_list_next(list, name);
    fputs(value ? "true" : "false", list->out);
}
