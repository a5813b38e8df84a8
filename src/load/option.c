/* SPDX-License-Identifier: MIT */
#include "load/option.h"

#include "base/num.h"
#include "base/scan.h"
#include "http/limits.h"
#include "http/token.h"
#include "load/value.h"
#include "os/socket.h"

#include <errno.h>
#include <stdlib.h>

enum { FILE_BYTES_MAX = 64 * 1024 * 1024 };

/* ---- steps ---- */

static bool add_step(struct load_plan *plan, struct load_step step)
{
    if (plan->step_count == LOAD_STEPS_MAX)
        return false;
    plan->steps[plan->step_count++] = step;
    return true;
}

static bool add_users(void *context, uint64_t users)
{
    struct load_reading *reading = context;
    return users > 0 && users <= LOAD_USERS_MAX &&
           add_step(&reading->plan, (struct load_step){ .users = (unsigned)users });
}

static bool read_steps(void *context, const struct option *option, const char *value,
                       struct option_refusal *refusal)
{
    struct load_reading *reading = context;
    struct span list = span_text(value), element;
    if (reading->plan.step_count > 0)
        return option_refuse(refusal, "--steps and --rate both say what the steps are");
    reading->has_steps = true;
    while (load_value_next(&list, &element))
        if (!load_value_range(element, add_users, reading))
            return option_refuse(refusal,
                                 "--%s: `%.*s` is not a number of users, or 10..100:10; at most "
                                 "%d steps",
                                 option->name, (int)element.len, element.at, LOAD_STEPS_MAX);
    return true;
}

static bool read_rate(void *context, const struct option *option, const char *value,
                      struct option_refusal *refusal)
{
    struct load_reading *reading = context;
    struct span list = span_text(value), element;
    double rate;
    if (reading->has_steps)
        return option_refuse(refusal, "--steps and --rate both say what the steps are");
    reading->plan.loop = LOAD_OPEN;
    while (load_value_next(&list, &element))
        if (!load_value_decimal(element, &rate) || rate <= 0 || rate > 1e8 ||
            !add_step(&reading->plan, (struct load_step){ .rate = rate }))
            return option_refuse(refusal,
                                 "--%s: `%.*s` is not a number of requests a second, such as 500, "
                                 "and at most 100000000",
                                 option->name, (int)element.len, element.at);
    return true;
}

/* ---- times ---- */

static bool read_think(void *context, const struct option *option, const char *value,
                       struct option_refusal *refusal)
{
    struct load_reading *reading = context;
    return load_value_think(span_text(value), &reading->plan.think) ||
           option_refuse(refusal, "--%s: `%s` is not 40ms, exp:40ms, uniform:10ms..70ms or 0",
                         option->name, value);
}

static bool read_verify(void *context, const struct option *option, const char *value,
                        struct option_refusal *refusal)
{
    struct load_reading *reading = context;
    if (strcmp(value, "length") == 0)
        reading->plan.verify = LOAD_VERIFY_LENGTH;
    else if (strcmp(value, "hash") == 0)
        reading->plan.verify = LOAD_VERIFY_HASH;
    else
        return option_refuse(refusal, "--%s: `%s` is neither length nor hash", option->name, value);
    return true;
}

/* ---- TLS ---- */

static bool read_tls(void *context, const struct option *option, const char *value,
                     struct option_refusal *refusal)
{
    struct load_reading *reading = context;
    if (strcmp(value, "resume") == 0)
        reading->tls = LOAD_TLS_RESUME;
    else if (strcmp(value, "full") == 0)
        reading->tls = LOAD_TLS_FULL;
    else
        return option_refuse(refusal, "--%s: `%s` is neither resume nor full", option->name, value);
    return true;
}

/* ---- requests ---- */

static bool read_method(void *context, const struct option *option, const char *value,
                        struct option_refusal *refusal)
{
    struct load_reading *reading = context;
    if (!http_token_valid(span_text(value)) || strlen(value) > HTTP_METHOD_MAX)
        return option_refuse(refusal, "--%s: `%s` is no method, such as GET or HEAD", option->name,
                             value);
    reading->manner.method = value;
    return true;
}

static bool read_header(void *context, const struct option *option, const char *value,
                        struct option_refusal *refusal)
{
    static const char *const framing[] = { "content-length", "transfer-encoding", "connection" };
    static const char *const cures[] = { "--data", "--data", "--no-keepalive" };
    struct load_reading *reading = context;
    struct span field = span_text(value);
    const char *colon = strchr(value, ':');
    struct span name = span_first(field, colon ? (size_t)(colon - value) : 0);
    if (!http_token_valid(name) || scan_field_value_end(value, field.len) < field.len)
        return option_refuse(refusal, "--%s: `%.100s` is not `Name: value`", option->name, value);
    for (size_t i = 0; i < sizeof(framing) / sizeof(framing[0]); i++)
        if (span_equal_nocase(name, span_text(framing[i])))
            return option_refuse(refusal, "--%s: %.*s follows from %s", option->name, (int)name.len,
                                 name.at, cures[i]);
    if (reading->field_count == LOAD_FIELDS_MAX)
        return option_refuse(refusal, "--%s: there are more than %d", option->name,
                             LOAD_FIELDS_MAX);
    reading->fields[reading->field_count++] = value;
    return true;
}

static bool read_data(void *context, const struct option *option, const char *value,
                      struct option_refusal *refusal)
{
    (void)option;
    struct load_reading *reading = context;
    if (reading->manner.has_data)
        return option_refuse(refusal, "a request has one body: --data or --data-file, once");
    reading->manner.has_data = true;
    reading->manner.data = span_text(value);
    return true;
}

/* Gives what a file holds, with a zero behind it. */
static char *read_file(const char *option, const char *path, size_t *ret_len,
                       struct option_refusal *refusal)
{
    FILE *file = fopen(path, "rbe");
    char *bytes = NULL;
    size_t size = 0, len = 0;
    int error = file ? 0 : errno;
    while (file && error == 0) {
        if (len + 1 >= size) {
            size = size > 0 ? 2 * size : 4096;
            char *more = size <= 2 * (size_t)FILE_BYTES_MAX ? realloc(bytes, size) : NULL;
            error = more ? 0 : EFBIG;
            bytes = more ? more : bytes;
            continue;
        }
        size_t got = fread(bytes + len, 1, size - 1 - len, file);
        len += got;
        if (got == 0 && ferror(file))
            error = errno;
        else if (got == 0)
            break;
    }
    if (file)
        (void)fclose(file);
    if (error != 0 || !bytes) {
        free(bytes);
        (void)option_refuse(refusal, "--%s: %s: %s", option, path, strerror(error));
        return NULL;
    }
    bytes[len] = '\0';
    *ret_len = len;
    return bytes;
}

static bool read_data_file(void *context, const struct option *option, const char *value,
                           struct option_refusal *refusal)
{
    (void)option;
    struct load_reading *reading = context;
    size_t len = 0;
    if (!read_data(context, option, "", refusal))
        return false;
    reading->data = read_file("data-file", value, &len, refusal);
    reading->manner.data = span_of(reading->data, len);
    return reading->data != NULL;
}

/* ---- URLs ---- */

/* "URL [WEIGHT]", or nothing, or a comment. */
static bool read_url_line(struct load_reading *reading, struct span line,
                          struct option_refusal *refusal)
{
    line = span_trim(line);
    if (line.len == 0 || line.at[0] == '#')
        return true;
    const struct span url = span_take_word(&line), weight_text = span_trim(line);
    double weight = 1;
    if (weight_text.len > 0 && (!load_value_decimal(weight_text, &weight) || weight <= 0))
        return option_refuse(refusal, "--urls: `%.*s` is not a weight above 0",
                             (int)(weight_text.len < 80 ? weight_text.len : 80), weight_text.at);
    return load_target_add(&reading->plan, url, weight, refusal);
}

static bool read_urls(void *context, const struct option *option, const char *value,
                      struct option_refusal *refusal)
{
    (void)option;
    struct load_reading *reading = context;
    size_t len;
    char *text = read_file("urls", value, &len, refusal);
    if (!text)
        return false;
    struct span rest = span_of(text, len);
    bool good = true;
    while (good && rest.len > 0) {
        struct span line = span_take(&rest, '\n');
        if (line.len > 0 && line.at[line.len - 1] == '\r')
            line.len--;
        good = read_url_line(reading, line, refusal);
    }
    free(text);
    return good;
}

static bool read_zipf(void *context, const struct option *option, const char *value,
                      struct option_refusal *refusal)
{
    struct load_reading *reading = context;
    double exponent;
    if (!load_value_decimal(span_text(value), &exponent) || exponent <= 0 || exponent > 10)
        return option_refuse(refusal, "--%s: `%s` is not an exponent such as 1 or 0.8",
                             option->name, value);
    reading->plan.zipf = exponent;
    return true;
}

/* ---- places ---- */

static bool read_source(void *context, const struct option *option, const char *value,
                        struct option_refusal *refusal)
{
    struct load_plan *plan = &((struct load_reading *)context)->plan;
    struct span list = span_text(value), element;
    while (load_value_next(&list, &element)) {
        bool v6 = element.len > 0 && memchr(element.at, ':', element.len) != NULL;
        char text[80];
        struct os_socket_address address;
        (void)snprintf(text, sizeof(text), v6 ? "[%.*s]:0" : "%.*s:0", (int)element.len,
                       element.at);
        if (element.len > 60 || os_socket_parse(text, &address) < 0)
            return option_refuse(refusal, "--%s: `%.*s` is not an address of this machine",
                                 option->name, (int)element.len, element.at);
        if (plan->source_count == LOAD_SOURCES_MAX)
            return option_refuse(refusal, "--%s: there are more than %d", option->name,
                                 LOAD_SOURCES_MAX);
        plan->sources[plan->source_count++] = address.storage;
    }
    return true;
}

static bool add_cpu(void *context, uint64_t cpu)
{
    struct load_plan *plan = context;
    if (cpu >= 4096 || plan->cpu_count == LOAD_THREADS_MAX)
        return false;
    plan->cpus[plan->cpu_count++] = (int)cpu;
    return true;
}

static bool read_cpus(void *context, const struct option *option, const char *value,
                      struct option_refusal *refusal)
{
    struct load_plan *plan = &((struct load_reading *)context)->plan;
    struct span list = span_text(value), element;
    while (load_value_next(&list, &element)) {
        char text[48];
        const char *dash = memchr(element.at, '-', element.len);
        size_t low = dash ? (size_t)(dash - element.at) : element.len;
        (void)snprintf(text, sizeof(text), "%.*s%s%.*s", (int)low, element.at, dash ? ".." : "",
                       dash ? (int)(element.len - low - 1) : 0, dash ? dash + 1 : "");
        if (element.len > 20 || !load_value_range(span_text(text), add_cpu, plan))
            return option_refuse(refusal, "--%s: `%.*s` is not a CPU's number, or 2-5",
                                 option->name, (int)element.len, element.at);
    }
    return true;
}

static bool read_shard(void *context, const struct option *option, const char *value,
                       struct option_refusal *refusal)
{
    struct load_plan *plan = &((struct load_reading *)context)->plan;
    const char *slash = strchr(value, '/');
    uint64_t which, of;
    if (!slash || !num_parse_u64(span_of(value, (size_t)(slash - value)), &which) ||
        !num_parse_u64(span_text(slash + 1), &of) || of > 1000 || which >= of)
        return option_refuse(refusal, "--%s: `%s` is not I/N, such as 0/3 for the first of three",
                             option->name, value);
    plan->shard = (unsigned)which;
    plan->shards = (unsigned)of;
    return true;
}

/* ---- the table ---- */

#define LOAD_NUMBER(member) OPTION_NUMBER, OPTION_INTO(load_reading, member)
#define LOAD_TIME(member)   OPTION_TIME, OPTION_INTO(load_reading, member)
#define LOAD_FLAG(member)   OPTION_PRESENT, OPTION_INTO(load_reading, member)
#define LOAD_READ(function) OPTION_READ, .read = function

const struct option load_option_table[] = {
    { "users", 'u', "N", "emulated users, each with its own connection (default 10)",
      LOAD_NUMBER(users), 1, LOAD_USERS_MAX },
    { "steps", 0, "LIST", "levels of users, one after the other: 1,2,5,10..100:10",
      LOAD_READ(read_steps) },
    { "think", 0, "TIME",
      "think time between an answer and the next request: 40ms, exp:40ms (the mean), "
      "uniform:10ms..70ms (default 0)",
      LOAD_READ(read_think) },
    { "duration", 'd', "TIME", "measured time of each step (default 10s)",
      LOAD_TIME(plan.duration_ns), 1, 0 },
    { "warmup", 'w', "TIME", "time before the measured time (default 1s; 0 with --requests)",
      LOAD_TIME(plan.warmup_ns), 0, 0 },
    { "requests", 'n', "N", "number of requests in each step, in place of --duration",
      LOAD_NUMBER(plan.requests), 1, UINT64_MAX / 2 },
    { "rate", 'r', "LIST",
      "open loop: requests per second, of all users together; several numbers are steps",
      LOAD_READ(read_rate) },
    { "poisson", 0, NULL, "with --rate: requests at random times rather than evenly spaced",
      LOAD_FLAG(plan.poisson) },
    { "pace", 0, "TIME", "each user sends one request in this time, however long answers take",
      LOAD_TIME(plan.pace_ns), 1, 0 },
    { "no-keepalive", 0, NULL, "a new connection for each request", LOAD_FLAG(no_keepalive) },
    { "http2", 0, NULL, "HTTP/2: with https by ALPN, with http by prior knowledge",
      LOAD_FLAG(plan.http2) },
    { "pipeline", 0, "N",
      "requests under way on each connection (default 1); with --http2 its streams: with --rate "
      "and --pace at most N, with --think and --no-keepalive N at once",
      LOAD_NUMBER(plan.pipeline), 1, LOAD_PIPELINE_MAX },
    { "method", 'X', "METHOD", "method of all requests (default GET, or POST with a body)",
      LOAD_READ(read_method) },
    { "header", 'H', "FIELD", "`Name: value`, in all requests; may be repeated",
      LOAD_READ(read_header) },
    { "data", 0, "TEXT", "body of all requests", LOAD_READ(read_data) },
    { "data-file", 0, "FILE", "file that holds the body of all requests",
      LOAD_READ(read_data_file) },
    { "urls", 0, "FILE",
      "file with a URL on each line, or a path on the host above it, and a weight",
      LOAD_READ(read_urls) },
    { "zipf", 0, "S", "request URL number k in proportion to 1/k^S", LOAD_READ(read_zipf) },
    { "seed", 0, "N", "seed of all random numbers (default 1)", LOAD_NUMBER(plan.seed), 0,
      UINT64_MAX },
    { "connect-timeout", 0, "TIME",
      "limit for a connection, with its TLS handshake (default 5s; 0 is none)",
      LOAD_TIME(plan.connect_timeout_ns), 0, 0 },
    { "first-byte-timeout", 0, "TIME", "limit for the first byte of an answer (default none)",
      LOAD_TIME(plan.first_byte_timeout_ns), 0, 0 },
    { "response-timeout", 0, "TIME", "limit for the whole answer (default 30s; 0 is none)",
      LOAD_TIME(plan.response_timeout_ns), 0, 0 },
    { "cacert", 0, "FILE",
      "https: trust the authorities of this file, in PEM form (default those of the system)",
      OPTION_TEXT, OPTION_INTO(load_reading, cacert) },
    { "insecure", 0, NULL, "https: accept any certificate", LOAD_FLAG(plan.insecure) },
    { "tls", 0, "resume|full",
      "https: a user's later connections resume its session, as those of browsers do, or make a "
      "full handshake (default resume)",
      LOAD_READ(read_tls) },
    { "verify", 0, "length|hash",
      "compare each body with the first one of its URL, except those of error pages",
      LOAD_READ(read_verify) },
    { "source", 0, "LIST", "local addresses to connect from, in turn; each has 28,000 ports",
      LOAD_READ(read_source) },
    { "threads", 't', "N",
      "threads of the generator (default 1); with --rate at most one for each user",
      LOAD_NUMBER(plan.threads), 1, LOAD_THREADS_MAX },
    { "cpus", 0, "LIST", "CPUs of these threads, one each: 1 or 2,3 or 4-7", LOAD_READ(read_cpus) },
    { "spin", 0, NULL, "poll instead of sleeping: each thread keeps a core busy",
      LOAD_FLAG(plan.spin) },
    { "spin-anyway", 0, NULL, "the same, even where that leaves no core for a server here",
      LOAD_FLAG(plan.spin_anyway) },
    { "server-pid", 0, "PID", "report the CPU time of this process and its children, too",
      LOAD_NUMBER(plan.server_pid), 1, INT32_MAX },
    { "start-at", 0, "NS", "start at this time, in nanoseconds since 1970",
      LOAD_NUMBER(plan.start_at_unix_ns), 0, INT64_MAX },
    { "shard", 0, "I/N",
      "part I of N of the load, 0/N to N-1/N; other machines are the other parts",
      LOAD_READ(read_shard) },
    { .name = NULL },
};
