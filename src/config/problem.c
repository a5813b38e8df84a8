/* SPDX-License-Identifier: MIT */
#include "config/problem.h"

#include "base/check.h"

#include <stdarg.h>
#include <stdlib.h>

static void add_problem(struct config_problems *problems, struct config_origin origin, bool warning,
                        const char *format, va_list args) __attribute__((format(printf, 4, 0)));

static void add_problem(struct config_problems *problems, struct config_origin origin, bool warning,
                        const char *format, va_list args)
{
    char text[1024];
    vsnprintf(text, sizeof(text), format, args);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
    struct config_problem *problem = config_arena_take(problems->arena, sizeof(*problem));
    *problem =
        (struct config_problem){ .origin = origin,
                                 .warning = warning,
                                 .text = config_arena_copy(problems->arena, span_text(text)) };
    if (problems->last)
        problems->last->next = problem;
    else
        problems->first = problem;
    problems->last = problem;
    if (warning) {
        problems->warning_count++;
        return;
    }
    problems->error_count++;
    if (origin.layer == CONFIG_BY_FLAG || origin.layer == CONFIG_BY_ARGUMENT)
        problems->flag_error_count++;
}

void config_problem_error(struct config_problems *problems, struct config_origin origin,
                          const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_problem(problems, origin, false, format, args);
    va_end(args);
}

void config_problem_warning(struct config_problems *problems, struct config_origin origin,
                            const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_problem(problems, origin, true, format, args);
    va_end(args);
}

static void print_problem(const struct config_problem *problem, FILE *out)
{
    struct config_origin origin = problem->origin;
    const char *severity = problem->warning ? "warning: " : "error: ";
    if (origin.layer == CONFIG_BY_FILE) {
        if (origin.line > 0)
            fprintf(out, "%s:%u: %s%s\n", origin.name, origin.line, severity, problem->text);
        else
            fprintf(out, "%s: %s%s\n", origin.name, severity, problem->text);
        return;
    }
    const char *name = origin.layer == CONFIG_BY_DEFAULT ? NULL : origin.name;
    fprintf(out, "weir: %s%s%s%s\n", problem->warning ? severity : "", name ? name : "",
            name ? ": " : "", problem->text);
}

/* Problems with a line come first, in the order of the lines; the others follow in their order. */
static bool belongs_before(const struct config_problem *a, const struct config_problem *b)
{
    bool a_has_line = a->origin.layer == CONFIG_BY_FILE && a->origin.line > 0;
    bool b_has_line = b->origin.layer == CONFIG_BY_FILE && b->origin.line > 0;
    if (a_has_line && b_has_line)
        return a->origin.line < b->origin.line;
    return a_has_line && !b_has_line;
}

void config_problems_print(const struct config_problems *problems, unsigned most, FILE *out)
{
    /* Insertion keeps the first ones of each sort; past the limit the last one is dropped. */
    const unsigned room[2] = { problems->error_count < most ? problems->error_count : most,
                               problems->warning_count < most ? problems->warning_count : most };
    const struct config_problem **shown[2];
    unsigned count[2] = { 0, 0 };
    for (unsigned i = 0; i < 2; i++)
        shown[i] = config_arena_take(problems->arena, (room[i] + 1) * sizeof(shown[i][0]));
    for (const struct config_problem *p = problems->first; p; p = p->next) {
        const struct config_problem **list = shown[p->warning];
        unsigned at = count[p->warning];
        while (at > 0 && belongs_before(p, list[at - 1]))
            at--;
        if (at == room[p->warning])
            continue;
        unsigned end = count[p->warning];
        if (end == room[p->warning])
            end--;
        else
            count[p->warning]++;
        memmove(&list[at + 1], &list[at], (end - at) * sizeof(list[0]));
        list[at] = p;
    }
    for (unsigned i = 0; i < count[true]; i++)
        print_problem(shown[true][i], out);
    if (problems->warning_count > count[true])
        fprintf(out, "and %u more warnings\n", problems->warning_count - count[true]);
    for (unsigned i = 0; i < count[false]; i++)
        print_problem(shown[false][i], out);
    if (problems->error_count > count[false])
        fprintf(out, "and %u more errors\n", problems->error_count - count[false]);
}

void config_problem_format_origin(struct config_origin origin, char out[CONFIG_ORIGIN_MAX])
{
    const char *name = origin.name ? origin.name : "";
    switch (origin.layer) {
    case CONFIG_BY_DEFAULT:
        snprintf(out, CONFIG_ORIGIN_MAX, "default%s%s", *name ? ", " : "", name);
        return;
    case CONFIG_BY_FILE:
        if (origin.line > 0)
            snprintf(out, CONFIG_ORIGIN_MAX, "%.480s:%u", name, origin.line);
        else
            snprintf(out, CONFIG_ORIGIN_MAX, "%.480s", name);
        return;
    case CONFIG_BY_ENVIRONMENT:
        snprintf(out, CONFIG_ORIGIN_MAX, "environment %.480s", name);
        return;
    case CONFIG_BY_FLAG:
        snprintf(out, CONFIG_ORIGIN_MAX, "flag %.480s", name);
        return;
    case CONFIG_BY_ARGUMENT:
        snprintf(out, CONFIG_ORIGIN_MAX, "command line");
        return;
    }
}

void config_problem_format_label(struct config_origin origin, const char *setting,
                                 char out[CONFIG_ORIGIN_MAX])
{
    char place[CONFIG_ORIGIN_MAX];
    out[0] = '\0';
    if (origin.layer == CONFIG_BY_FILE) {
        config_problem_format_origin(origin, place);
        (void)snprintf(out, CONFIG_ORIGIN_MAX, "%.440s: %s: ", place, setting);
    } else if (origin.layer == CONFIG_BY_ENVIRONMENT || origin.layer == CONFIG_BY_FLAG) {
        (void)snprintf(out, CONFIG_ORIGIN_MAX, "%.480s: ", origin.name);
    }
}

bool config_problem_refuse(struct config_reason *reason, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(reason->text, sizeof(reason->text), format, args);
    va_end(args);
    return false;
}
