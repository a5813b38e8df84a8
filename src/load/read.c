/* SPDX-License-Identifier: MIT */
#include "load/read.h"

#include "base/num.h"
#include "load/hdr.h"
#include "load/result.h"
#include "load/tally.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* No result has a greater number, and sums of numbers up to this one do not wrap. */
static const uint64_t number_max = UINT64_C(1) << 53;

/* Keeps the first error. */
struct reading {
    int result;
    char *why;
};

__attribute__((format(printf, 3, 4))) static void set_error(struct reading *reading, int result,
                                                            const char *format, ...)
{
    if (reading->result != 0)
        return;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(reading->why, LOAD_WHY_MAX, format, arguments);
    va_end(arguments);
    reading->result = result;
}

/* ---- members of an object, checked ---- */

static json_t *take_object(struct reading *reading, const json_t *from, const char *name)
{
    json_t *value = json_object_get(from, name);
    if (!json_is_object(value))
        set_error(reading, -EINVAL, "`%s` is no object", name);
    return value;
}

static json_t *take_array(struct reading *reading, const json_t *from, const char *name,
                          size_t most)
{
    json_t *value = json_object_get(from, name);
    if (!json_is_array(value) || json_array_size(value) > most)
        set_error(reading, -EINVAL, "`%s` is no array of at most %zu elements", name, most);
    return value;
}

static uint64_t take_number(struct reading *reading, const json_t *from, const char *name,
                            uint64_t most)
{
    const json_t *value = json_object_get(from, name);
    json_int_t number = json_integer_value(value);
    if (json_is_integer(value) && number >= 0 && (uint64_t)number <= most)
        return (uint64_t)number;
    set_error(reading, -EINVAL, "`%s` is no integer from 0 to %" PRIu64, name, most);
    return 0;
}

static double take_real(struct reading *reading, const json_t *from, const char *name)
{
    const json_t *value = json_object_get(from, name);
    double number = json_number_value(value);
    if (json_is_number(value) && isfinite(number) && number >= 0)
        return number;
    set_error(reading, -EINVAL, "`%s` is no number of at least 0", name);
    return 0;
}

static const char *take_text(struct reading *reading, const json_t *from, const char *name)
{
    const char *text = json_string_value(json_object_get(from, name));
    if (!text)
        set_error(reading, -EINVAL, "`%s` is no text", name);
    return text ? text : "";
}

static unsigned take_name(struct reading *reading, const json_t *from, const char *name,
                          const char *const *names, unsigned count)
{
    const char *text = take_text(reading, from, name);
    for (unsigned i = 0; i < count; i++)
        if (strcmp(text, names[i]) == 0)
            return i;
    set_error(reading, -EINVAL, "`%s` is unknown", name);
    return 0;
}

/* ---- the plan ---- */

static void read_targets(struct reading *reading, const json_t *from, struct load_plan *plan)
{
    const json_t *targets = take_array(reading, from, "targets", LOAD_TARGETS_MAX);
    size_t count = json_array_size(targets);
    plan->targets = calloc(count > 0 ? count : 1, sizeof(*plan->targets));
    if (!plan->targets) {
        set_error(reading, -ENOMEM, "out of memory");
        return;
    }
    for (size_t i = 0; i < count && reading->result == 0; i++) {
        const json_t *target = json_array_get(targets, i);
        const char *scheme = json_string_value(json_object_get(target, "scheme"));
        plan->targets[i].tls = scheme && strcmp(scheme, "https") == 0;
        plan->targets[i].host = take_text(reading, target, "host");
        plan->targets[i].socket = json_string_value(json_object_get(target, "socket"));
        plan->targets[i].path = take_text(reading, target, "path");
        plan->targets[i].weight = take_real(reading, target, "weight");
        plan->target_count++;
    }
}

static void read_plan(struct reading *reading, const json_t *top, struct load_read *read)
{
    struct load_plan *plan = &read->plan;
    const json_t *from = take_object(reading, top, "plan");
    struct span digest = span_text(take_text(reading, from, "kin"));
    if (digest.len != 16 || !num_parse_hex(digest, &read->run.plan_digest) ||
        read->run.plan_digest == 0)
        set_error(reading, -EINVAL, "`kin` is no number of 16 hexadecimal digits");
    read_targets(reading, from, plan);
    plan->zipf = take_real(reading, from, "zipf");
    plan->loop = (enum load_loop)take_name(reading, from, "loop", load_result_loops, LOAD_LOOPS);
    plan->verify =
        (enum load_verify)take_name(reading, from, "verify", load_result_verifies, LOAD_VERIFIES);
    if (json_object_get(from, "tls")) /* results of version 0.1 have no such member */
        plan->tls = (enum load_sessions)take_name(reading, from, "tls", load_result_sessions,
                                                  LOAD_SESSIONS);
    if (json_object_get(from, "protocol")) /* nor this one */
        plan->http2 = take_name(reading, from, "protocol", load_result_protocols, LOAD_PROTOCOLS) ==
                      1;
    plan->insecure = json_is_true(json_object_get(from, "insecure"));
    const json_t *think = take_object(reading, from, "think");
    plan->think.kind =
        (enum load_think_kind)take_name(reading, think, "kind", load_result_thinks, LOAD_THINKS);
    plan->think.low_ns = take_number(reading, think, "low_ns", number_max);
    plan->think.high_ns = take_number(reading, think, "high_ns", number_max);
    plan->requests = take_number(reading, from, "requests", number_max);
    plan->threads = (unsigned)take_number(reading, from, "threads", LOAD_THREADS_MAX);
    plan->shards = (unsigned)take_number(reading, from, "shards", UINT32_MAX);
    plan->shard = (unsigned)take_number(reading, from, "shard", UINT32_MAX);
#define LOAD_PLANNED(name) \
    plan->name = (__typeof__(plan->name))take_number( \
        reading, from, #name, sizeof(plan->name) < 8 ? UINT32_MAX : number_max);
#include "load/counts.def"
#undef LOAD_PLANNED
}

/* ---- a step ---- */

/* Whether the numbers of an object agree with its histogram. */
static bool agrees_with_buckets(const struct load_durations *given,
                                const struct load_durations *counted)
{
    double count = (double)given->count;
    if (given->count != counted->count)
        return false;
    if (given->count == 0)
        return given->sum_ns == 0 && given->sum_squares == 0;
    return histogram_index(given->least_ns, LOAD_BITS) ==
               histogram_index(counted->least_ns, LOAD_BITS) &&
           histogram_index(given->most_ns, LOAD_BITS) ==
               histogram_index(counted->most_ns, LOAD_BITS) &&
           given->sum_ns >= (double)given->least_ns * count * (1 - 1e-9) &&
           given->sum_ns <= (double)given->most_ns * count * (1 + 1e-9);
}

static void read_durations(struct reading *reading, const json_t *step, const char *name,
                           struct load_durations *durations)
{
    const json_t *from = take_object(reading, step, name);
    struct load_durations given = {
        .count = take_number(reading, from, "count", number_max),
        .least_ns = take_number(reading, from, "min_ns", LOAD_LONGEST_NS),
        .most_ns = take_number(reading, from, "max_ns", LOAD_LONGEST_NS),
        .sum_ns = take_real(reading, from, "sum_ns"),
        .sum_squares = take_real(reading, from, "sum_squares_ns2"),
    };
    const char *blob = take_text(reading, from, "hdr_v2_ns");
    if (reading->result != 0)
        return;
    if (load_durations_init(durations) != 0) {
        set_error(reading, -ENOMEM, "out of memory");
        return;
    }
    int result = load_hdr_decode(span_text(blob), durations);
    if (result == -ENOMEM)
        set_error(reading, result, "out of memory");
    else if (result != 0)
        set_error(reading, result, "the histogram of `%s` is damaged", name);
    else if (!agrees_with_buckets(&given, durations))
        set_error(reading, -EINVAL, "the histogram of `%s` contradicts the numbers beside it",
                  name);
    given.bucket = durations->bucket;
    *durations = given;
}

/* Results without TLS have `null`, and those of version 0.1 no such member. */
static void read_tls(struct reading *reading, const json_t *step, struct load_outcome *outcome)
{
    const json_t *from = json_object_get(step, "tls");
    if (!from || json_is_null(from)) {
        if (reading->result == 0 && load_durations_init(&outcome->handshake) != 0)
            set_error(reading, -ENOMEM, "out of memory");
        return;
    }
#define LOAD_TLS_COUNT(name) outcome->name = take_number(reading, from, #name, number_max);
#include "load/counts.def"
#undef LOAD_TLS_COUNT
    read_durations(reading, from, "handshake", &outcome->handshake);
    const json_t *agreed = take_array(reading, from, "agreed", LOAD_AGREED_MAX);
    for (size_t i = 0; i < json_array_size(agreed) && reading->result == 0; i++) {
        const json_t *one = json_array_get(agreed, i);
        unsigned at = load_result_agreed(outcome->agreed, take_text(reading, one, "protocol"),
                                         take_text(reading, one, "cipher"),
                                         take_text(reading, one, "group"));
        outcome->agreed[at].answers += take_number(reading, one, "answers", number_max);
    }
}

/* The same holds for results of HTTP/1.1. */
static void read_http2(struct reading *reading, const json_t *step, struct load_outcome *outcome)
{
    const json_t *from = json_object_get(step, "http2");
    if (!from || json_is_null(from))
        return;
#define LOAD_HTTP2_COUNT(name, how) outcome->name = take_number(reading, from, #name, number_max);
#include "load/counts.def"
#undef LOAD_HTTP2_COUNT
}

static void read_status(struct reading *reading, const json_t *step, struct load_outcome *outcome)
{
    json_t *from = take_object(reading, step, "status");
    const char *code;
    json_t *value;
    json_object_foreach(from, code, value)
    {
        uint64_t number;
        if (strlen(code) != 3 || !num_parse_u64(span_text(code), &number) ||
            number >= LOAD_STATUS_MAX)
            set_error(reading, -EINVAL, "`status` has a name that is no status code");
        else
            outcome->status[number] = take_number(reading, from, code, number_max);
    }
    const json_t *errors = take_object(reading, step, "errors");
    for (unsigned i = 0; i < LOAD_ERROR_COUNT; i++)
        if (json_object_get(errors, load_result_errors[i].name))
            outcome->error[i] =
                take_number(reading, errors, load_result_errors[i].name, number_max);
}

/* Reads the histogram of a second; `null` stands for none. */
static void read_second_hdr(struct reading *reading, const json_t *from, struct load_second *second)
{
    static const char name[] = "hdr_v2_ns";
    if (reading->result != 0 || json_is_null(json_object_get(from, name)))
        return;
    const char *text = take_text(reading, from, name);
    uint64_t *bucket = calloc(LOAD_SECOND_BUCKETS, sizeof(*bucket));
    int result = bucket ? load_hdr_decode_second(span_text(text), bucket) : -ENOMEM;
    if (result == 0 && histogram_total(bucket, LOAD_SECOND_BUCKETS) != second->answers)
        result = -EINVAL;
    if (result == 0)
        result = load_result_settle_second(second, bucket);
    if (result == -ENOMEM)
        set_error(reading, result, "out of memory");
    else if (result != 0)
        set_error(reading, result, "the histogram of a second is damaged");
    free(bucket);
}

static void read_seconds(struct reading *reading, const json_t *step, struct load_outcome *outcome)
{
    const json_t *seconds = take_array(reading, step, "seconds", LOAD_FILE_MAX);
    size_t count = json_array_size(seconds);
    outcome->seconds = calloc(count > 0 ? count : 1, sizeof(*outcome->seconds));
    if (!outcome->seconds) {
        set_error(reading, -ENOMEM, "out of memory");
        return;
    }
    for (size_t i = 0; i < count && reading->result == 0; i++) {
        const json_t *from = json_array_get(seconds, i);
        struct load_second *second = &outcome->seconds[outcome->second_count++];
        second->answers = take_number(reading, from, "answers", number_max);
        second->errors = take_number(reading, from, "errors", number_max);
        second->body_bytes = take_number(reading, from, "body_bytes", number_max);
        second->connects = take_number(reading, from, "connects", number_max);
        second->most_ns = take_number(reading, from, "max_ns", number_max);
        for (unsigned class = 0; class < 5; class ++) {
            char name[4] = { (char)('1' + class), 'x', 'x', '\0' };
            second->by_class[class] = take_number(reading, from, name, number_max);
        }
        read_second_hdr(reading, from, second);
    }
}

static void read_step(struct reading *reading, const json_t *from, struct load_outcome *outcome)
{
    outcome->step.users = (unsigned)take_number(reading, from, "users", LOAD_USERS_MAX);
    outcome->step.rate = take_real(reading, from, "rate_per_second");
    outcome->began_unix_ns = (int64_t)take_number(reading, from, "began_unix_ns", INT64_MAX);
    outcome->user_ns = take_real(reading, from, "user_ns");
    outcome->thought_ns = take_real(reading, from, "thought_ns");
#define LOAD_COUNT(name, way) outcome->name = take_number(reading, from, #name, number_max);
#include "load/counts.def"
#undef LOAD_COUNT
#define LOAD_ENDING(name, way) \
    outcome->name = json_object_get(from, #name) ? take_number(reading, from, #name, number_max) \
                                                 : 0;
#include "load/counts.def"
#undef LOAD_ENDING
#define LOAD_DURATIONS(name) read_durations(reading, from, #name, &outcome->name);
#include "load/counts.def"
#undef LOAD_DURATIONS
    read_tls(reading, from, outcome);
    read_http2(reading, from, outcome);
    read_status(reading, from, outcome);
    read_seconds(reading, from, outcome);
}

static void read_steps(struct reading *reading, const json_t *top, struct load_run *run)
{
    const json_t *steps = take_array(reading, top, "steps", LOAD_STEPS_MAX);
    size_t count = json_array_size(steps);
    run->outcomes = calloc(count > 0 ? count : 1, sizeof(*run->outcomes));
    if (!run->outcomes) {
        set_error(reading, -ENOMEM, "out of memory");
        return;
    }
    if (count == 0)
        set_error(reading, -EINVAL, "it has no steps");
    for (size_t i = 0; i < count && reading->result == 0; i++) {
        run->outcome_count++;
        const json_t *step = json_array_get(steps, i), *cut = json_object_get(step, "interrupted");
        read_step(reading, step, &run->outcomes[i]);
        /* Files of earlier versions say it of the run only. As a rule it was the last step. */
        run->outcomes[i].interrupted = cut ? json_is_true(cut) : run->interrupted && i + 1 == count;
    }
}

/* ---- the file ---- */

static void read_run(struct reading *reading, const json_t *top, struct load_read *read)
{
    struct load_run *run = &read->run;
    const json_t *schema = json_object_get(top, "schema");
    if (!json_is_integer(schema) || !json_object_get(top, "steps"))
        set_error(reading, -EINVAL, "this is no result of `weir load --json`");
    else if (json_integer_value(schema) != LOAD_SCHEMA)
        set_error(reading, -EINVAL,
                  "its schema is %" JSON_INTEGER_FORMAT ", and this program reads schema %d",
                  json_integer_value(schema), LOAD_SCHEMA);
    if (reading->result != 0)
        return;
    run->plan = &read->plan;
    run->command_line = take_text(reading, top, "command_line");
    run->interrupted = json_is_true(json_object_get(top, "interrupted"));
    run->merged = (unsigned)take_number(reading, top, "merged_runs", UINT32_MAX);
    run->start_skew_ns = take_number(reading, top, "start_skew_ns", number_max);
    run->server_cpus = (unsigned)take_number(reading, top, "server_cpus", UINT32_MAX);
    read_plan(reading, top, read);
    read_steps(reading, top, run);
}

/* Gives the content of the file, and its size. */
static char *read_file(struct reading *reading, const char *path, size_t *ret_len)
{
    FILE *file = fopen(path, "re");
    struct stat info;
    char *text = NULL;
    if (!file || fstat(fileno(file), &info) != 0)
        set_error(reading, -errno, "it cannot be read: %s", strerror(errno));
    else if (!S_ISREG(info.st_mode))
        set_error(reading, -EINVAL, "it is no regular file");
    else if (info.st_size > LOAD_FILE_MAX)
        set_error(reading, -EFBIG, "it is larger than %d MiB", LOAD_FILE_MAX >> 20);
    else if (!(text = malloc((size_t)info.st_size + 1)))
        set_error(reading, -ENOMEM, "out of memory");
    else
        *ret_len = fread(text, 1, (size_t)info.st_size, file);
    if (text && ferror(file))
        set_error(reading, -EIO, "it cannot be read: %s", strerror(errno));
    if (file)
        (void)fclose(file);
    return text;
}

int load_read_text(struct span text, struct load_read *ret_read, char ret_why[LOAD_WHY_MAX])
{
    struct reading reading = { 0, ret_why };
    json_error_t error;
    *ret_read = (struct load_read){ 0 };
    json_t *top = json_loadb(text.at, text.len, JSON_REJECT_DUPLICATES, &error);
    ret_read->text = top;
    if (top)
        read_run(&reading, top, ret_read);
    else
        set_error(&reading, -EINVAL, "line %d is no JSON, or the file is cut off", error.line);
    if (reading.result != 0)
        load_read_done(ret_read);
    return reading.result;
}

int load_read_file(const char *path, struct load_read *ret_read, char ret_why[LOAD_WHY_MAX])
{
    struct reading reading = { 0, ret_why };
    size_t len = 0;
    char *text = read_file(&reading, path, &len);
    int result = reading.result;
    if (result == 0)
        result = load_read_text(span_of(text, len), ret_read, ret_why);
    free(text);
    return result;
}

void load_read_done(struct load_read *read)
{
    for (size_t i = 0; i < read->run.outcome_count; i++)
        load_result_free_outcome(&read->run.outcomes[i]);
    free(read->run.outcomes);
    free(read->plan.targets);
    json_decref(read->text);
    *read = (struct load_read){ 0 };
}
