/* SPDX-License-Identifier: MIT
 *
 * The forms of a report, and what they share. Private to load/: the program calls load/report.h.
 * None of these functions checks `out` for errors. load_report_print does so at the end.
 */
#pragma once

#include "load/format.h"
#include "load/report.h"

/* The percentiles that are shown, in every form. */
enum { LOAD_SHOWN = 7 };
struct load_shown {
    double part;
    const char *text; /* p99.9 */
    const char *name; /* p99_9 */
};
extern const struct load_shown load_shown[LOAD_SHOWN];

/* The words of the report for people, with what they mean. LOAD_WORD(name, label, sentence) */
#define LOAD_WORDS(LOAD_WORD) \
    LOAD_WORD( \
        due, "requests due", \
        "The requests of --rate in the measured time. A request that found no free user until " \
        "the end was not sent. It would have been among the slowest.") \
    LOAD_WORD(throughput, "average throughput", \
              "Answers per second with a status below 400 (X, if no request fails).") \
    LOAD_WORD(response_mean, "average response time", "The mean of the column `response` (R).") \
    LOAD_WORD( \
        closed, "closed loop, as measured", \
        "A user sends its next request after the answer to the last one. While it waits, it " \
        "sends nothing, so a stall of the server counts once for each user. The requests that " \
        "other clients would have sent meanwhile are not added (coordinated omission).") \
    LOAD_WORD( \
        failed, "failed requests", \
        "Requests without a whole and right answer, and answers with a status of 400 or above, " \
        "among all that ended in the measured time. --verify compares bodies: an answer is " \
        "right if its body is that of the first answer of its URL.") \
    LOAD_WORD( \
        since_due, "since due", \
        "The time from when a request was due to the last byte of its answer. It includes the " \
        "wait for a free user. This is what an independent client would experience.") \
    LOAD_WORD(response, "response", \
              "The time from sending a request to the last byte of its answer.") \
    LOAD_WORD(first_byte, "first byte", \
              "The time from sending a request to the first byte of its answer.") \
    LOAD_WORD(connect, "connect", "The time to make a TCP connection, without TLS.") \
    LOAD_WORD(counted, "counted", "The number of durations in the column.") \
    LOAD_WORD(answers, "answers", "Whole answers, by class of status.") \
    LOAD_WORD(received, "received", "Bytes of answers, heads and bodies.") \
    LOAD_WORD(connections, "connections", "Connections made in the measured time.") \
    LOAD_WORD( \
        handshakes, "TLS handshakes", \
        "A full handshake is that of a new client. A resumed one uses a ticket of an earlier " \
        "connection.") \
    LOAD_WORD( \
        server_cpu, "server's CPU", \
        "CPU time of --server-pid for each answer (service demand D). 1/D answers per second " \
        "keep one core busy.") \
    LOAD_WORD( \
        saturation, "full load at", \
        "The number of users that keep the server's CPUs busy (saturation point N*, (D + Z)/D " \
        "for each core, with the think time Z). More users wait longer, and get no more " \
        "answers.") \
    LOAD_WORD(generator_cpu, "generator's CPU", \
              "CPU time of this program for each answer. A thread that is busy most of the time " \
              "sends late.") \
    LOAD_WORD( \
        late, "sent late by", \
        "How long after its time this program itself sent a request, or ended a think time. " \
        "The server has no part in it.") \
    LOAD_WORD( \
        little, "Little's law", \
        "In a closed loop, users = throughput x cycle: N = X (R + Z). The cycle is the time " \
        "from one answer of a user to its next. Time beside its parts is time that " \
        "this program lost.") \
    LOAD_WORD(gap, "longest without answer", \
              "The longest time in which no user got an answer, while at least one waited.")

enum load_word {
#define LOAD_WORD(name, label, sentence) LOAD_WORD_##name,
    LOAD_WORDS(LOAD_WORD)
#undef LOAD_WORD
        LOAD_WORD_COUNT
};

struct load_word_about {
    const char *label, *sentence;
};
extern const struct load_word_about load_words[LOAD_WORD_COUNT];

/* With `explain`, the report ends with what its words mean. */
void load_forms_text(const struct load_report *report, bool explain, FILE *out);

/* The objectives, and whether the result is valid. */
void load_forms_judgement(const struct load_report *report, FILE *out);

/* What the words mean that the report uses. */
void load_forms_words(const struct load_report *report, FILE *out);

/* The steps vary the rate in an open loop, else the users: its name, and its value in a step. */
const char *load_forms_level_name(const struct load_report *report);
struct load_formatted load_forms_level(const struct load_report *report, size_t step);

/* As docs/load-json.md describes. 0 or -ENOMEM. */
MUST_USE int load_forms_json(const struct load_report *report, FILE *out);

/* A head, and a row for each step. */
void load_forms_csv(const struct load_report *report, FILE *out);

/* HdrHistogram's percentile distribution of the response times of a step, in milliseconds. */
void load_forms_hgrm(const struct load_report *report, size_t step, FILE *out);

/* A line of JSON for each second. */
void load_forms_ndjson(const struct load_report *report, FILE *out);

/* Counts the answers by class, "1xx" to "5xx". */
void load_forms_classes(const struct load_outcome *outcome, uint64_t ret_class[5]);
