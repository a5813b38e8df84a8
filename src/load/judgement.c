/* SPDX-License-Identifier: MIT
 *
 * The end of the report for people: the objectives, whether the result is valid, and with
 * --explain what the rows mean.
 */
#include "load/format.h"
#include "load/forms.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { LINE_WIDTH = 80 };

const struct load_word_about load_words[LOAD_WORD_COUNT] = {
#define LOAD_WORD(name, label, sentence) { label, sentence },
    LOAD_WORDS(LOAD_WORD)
#undef LOAD_WORD
};

/* ---- validity ---- */

/* Prints a text in lines of at most LINE_WIDTH, all indented. */
static void print_wrapped(FILE *out, const char *text, unsigned indent)
{
    size_t room = LINE_WIDTH - indent, left = strlen(text);
    while (left > 0) {
        size_t len = left;
        if (left > room)
            for (len = room; len > 0 && (text[len] != ' ' || text[len + 1] == '%');)
                len--;
        len = len > 0 ? len : room < left ? room : left;
        fprintf(out, "%*s%.*s\n", (int)indent, "", (int)len, text);
        text += len;
        left -= len;
        while (left > 0 && *text == ' ') {
            text++;
            left--;
        }
    }
}

/* Of several steps, the first one with this doubt gives the numbers. */
static void print_doubt(const struct load_report *report, enum load_doubt which, FILE *out)
{
    size_t steps = report->run->outcome_count, doubted = 0, first = 0;
    for (size_t i = steps; i > 0; i--)
        if (report->verdicts[i - 1].doubted[which]) {
            doubted++;
            first = i - 1;
        }
    if (doubted == 0)
        return;
    if (steps > 1)
        fprintf(out, "  %zu step%s; in number %zu (%s: %s):\n", doubted, doubted == 1 ? "" : "s",
                first + 1, load_forms_level_name(report), load_forms_level(report, first).text);
    unsigned indent = steps > 1 ? 4 : 2;
    print_wrapped(out, load_doubts[which].cause, indent);
    print_wrapped(out, report->verdicts[first].reason[which], indent);
    print_wrapped(out, load_doubts[which].cure, indent + 2);
}

/* The first line of the verdict on a valid result: no reader may miss that requests failed. */
static void print_valid(const struct load_report *report, FILE *out)
{
    uint64_t failed = 0, ended = 0;
    for (size_t i = 0; i < report->run->outcome_count; i++) {
        failed += report->derived[i].failed;
        ended += report->derived[i].ended;
    }
    if (failed == 0)
        fputs("\nValid: the generator did not limit the result.\n", out);
    else
        fprintf(out, "\nValid, but %s of the requests failed: %" PRIu64 " of %" PRIu64 ".\n",
                load_format_share((double)failed / (double)ended).text, failed, ended);
}

static bool is_shown(const struct load_report *report, enum load_doubt which)
{
    return load_doubts[which].invalid || which == LOAD_DOUBT_some_failed ||
           which == LOAD_DOUBT_unfinished || report->run->outcome_count == 1;
}

/* A table of several steps leaves out the doubts that concern the accuracy of a valid step. */
static void print_validity(const struct load_report *report, FILE *out)
{
    size_t invalid = 0, steps = report->run->outcome_count;
    for (size_t i = 0; i < steps; i++)
        invalid += report->verdicts[i].invalid ? 1 : 0;
    if (invalid == 0 && steps > 0)
        print_valid(report, out);
    else if (steps == 1 && report->verdicts[0].doubted[LOAD_DOUBT_no_answers])
        fputs("\nINVALID: all requests failed.\n", out);
    else if (steps == 0 || (steps == 1 && report->run->outcomes[0].answers == 0))
        fputs("\nINVALID: nothing was measured.\n", out);
    else if (steps == 1 && report->verdicts[0].doubted[LOAD_DOUBT_failed])
        fprintf(out, "\nINVALID: %s of the requests failed.\n",
                load_format_share(report->derived[0].failed_share).text);
    else if (steps == 1)
        fputs("\nINVALID:\n", out);
    else
        fprintf(out, "\nINVALID: %zu of %zu steps, marked !\n", invalid, steps);
    for (unsigned i = 0; i < LOAD_DOUBT_COUNT; i++)
        if (is_shown(report, (enum load_doubt)i))
            print_doubt(report, (enum load_doubt)i, out);
}

static void print_slo(const struct load_report *report, const struct load_slo *slo, FILE *out)
{
    for (size_t i = 0; i < report->run->outcome_count; i++) {
        double value = load_slo_value(slo, report->run, &report->run->outcomes[i]);
        struct load_formatted figure = slo->of == LOAD_SLO_ERRORS       ? load_format_share(value)
                                       : slo->of == LOAD_SLO_THROUGHPUT ? load_format_number(value)
                                                                        : load_format_time(value);
        fprintf(out, "  %-7s %-*s %s", load_slo_met(slo, value) ? "met" : "MISSED",
                LOAD_SLO_TEXT_MAX, slo->text, isnan(value) ? "no answer" : figure.text);
        if (report->run->outcome_count > 1)
            fprintf(out, "  (%s: %s)", load_forms_level_name(report),
                    load_forms_level(report, i).text);
        fputc('\n', out);
    }
}

void load_forms_judgement(const struct load_report *report, FILE *out)
{
    if (report->slos->count > 0)
        fputs("\nObjectives\n", out);
    for (unsigned i = 0; i < report->slos->count; i++)
        print_slo(report, &report->slos->slo[i], out);
    print_validity(report, out);
}

/* ---- --explain ---- */

/* Whether the words of a loop, or of one step or several, occur in the report. */
static bool is_used(const struct load_report *report, unsigned word)
{
    bool open = report->run->plan->loop == LOAD_OPEN, one = report->run->outcome_count == 1;
    if (word == LOAD_WORD_due)
        return open && one;
    if (word == LOAD_WORD_since_due)
        return report->run->plan->loop != LOAD_CLOSED;
    if (word == LOAD_WORD_closed)
        return report->run->plan->loop == LOAD_CLOSED;
    if (word == LOAD_WORD_handshakes)
        return report->run->plan->tls != LOAD_TLS_NONE;
    return true;
}

void load_forms_words(const struct load_report *report, FILE *out)
{
    fputs("\nWhat the words mean\n", out);
    for (unsigned i = 0; i < LOAD_WORD_COUNT; i++) {
        if (!is_used(report, i))
            continue;
        fprintf(out, "  %s\n", load_words[i].label);
        print_wrapped(out, load_words[i].sentence, 6);
    }
}
