/* SPDX-License-Identifier: MIT */
#include "option/help.h"

enum { COLUMN = 28, WIDTH = 80 };

void option_help_column(FILE *out, size_t at, const char *text)
{
    if (at + 2 > COLUMN) {
        fputc('\n', out);
        at = 0;
    }
    fprintf(out, "%*s", (int)(COLUMN - at), "");
    at = COLUMN;
    struct span rest = span_text(text);
    while (rest.len > 0) {
        struct span word = span_first(rest, strcspn(rest.at, " "));
        if (at > COLUMN && at + 1 + word.len > WIDTH) {
            fprintf(out, "\n%*s", COLUMN, "");
            at = COLUMN;
        }
        if (at > COLUMN)
            at += (size_t)fprintf(out, " ");
        fwrite(word.at, 1, word.len, out);
        at += word.len;
        rest = span_trim(span_skip(rest, word.len));
    }
    fputc('\n', out);
}

void option_help_option(FILE *out, const struct option *option, const char *sentence)
{
    char letter[] = { '-', option->letter, ',', ' ', '\0' };
    int at = fprintf(out, "  %s--%s%s%s", option->letter ? letter : "", option->name,
                     option->placeholder ? " " : "",
                     option->placeholder ? option->placeholder : "");
    option_help_column(out, (size_t)at, sentence);
}

void option_help_groups(FILE *out, const struct option_group *groups)
{
    for (; groups->options; groups++) {
        if (groups->title)
            fprintf(out, "\n%s:\n", groups->title);
        if (groups->print) {
            groups->print(out);
            continue;
        }
        for (const struct option *option = groups->options; option->name; option++)
            option_help_option(out, option, option->sentence);
    }
}
