/* SPDX-License-Identifier: MIT */
#include "load/option.h"

#include "base/num.h"
#include "base/scan.h"
#include "http/limits.h"
#include "http/token.h"
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
           add_step(reading->plan, (struct load_step){ .users = (unsigned)users });
}

static bool take_steps(void *context, const char *value, struct load_refusal *refusal)
{
    struct load_reading *reading = context;
    struct span list = span_text(value), element;
    if (reading->plan->step_count > 0)
        return load_refuse(refusal, "--steps and --rate both say what the steps are");
    reading->has_steps = true;
    while (load_value_next(&list, &element))
        if (!load_value_range(element, add_users, reading))
            return load_refuse(refusal,
                               "--steps: `%.*s` is not a number of users, or 10..100:10; at most "
                               "%d steps",
                               (int)element.len, element.at, LOAD_STEPS_MAX);
    return true;
}

static bool take_rate(void *context, const char *value, struct load_refusal *refusal)
{
    struct load_reading *reading = context;
    struct span list = span_text(value), element;
    double rate;
    if (reading->has_steps)
        return load_refuse(refusal, "--steps and --rate both say what the steps are");
    reading->plan->loop = LOAD_OPEN;
    while (load_value_next(&list, &element))
        if (!load_value_decimal(element, &rate) || rate <= 0 || rate > 1e8 ||
            !add_step(reading->plan, (struct load_step){ .rate = rate }))
            return load_refuse(refusal, "--rate: `%.*s` is not a number of requests a second",
                               (int)element.len, element.at);
    return true;
}

/* ---- numbers and times ---- */

static bool read_count(const char *name, const char *value, uint64_t most, uint64_t *ret_count,
                       struct load_refusal *refusal)
{
    if (num_parse_u64(span_text(value), ret_count) && *ret_count > 0 && *ret_count <= most)
        return true;
    return load_refuse(refusal, "--%s: `%s` is not a number from 1 to %llu", name, value,
                       (unsigned long long)most);
}

static bool take_users(void *context, const char *value, struct load_refusal *refusal)
{
    return read_count("users", value, LOAD_USERS_MAX, &((struct load_reading *)context)->users,
                      refusal);
}

static bool take_requests(void *context, const char *value, struct load_refusal *refusal)
{
    struct load_reading *reading = context;
    return read_count("requests", value, UINT64_MAX / 2, &reading->plan->requests, refusal);
}

static bool take_pipeline(void *context, const char *value, struct load_refusal *refusal)
{
    struct load_reading *reading = context;
    uint64_t count;
    if (!read_count("pipeline", value, LOAD_PIPELINE_MAX, &count, refusal))
        return false;
    reading->plan->pipeline = (unsigned)count;
    return true;
}

static bool take_threads(void *context, const char *value, struct load_refusal *refusal)
{
    struct load_reading *reading = context;
    uint64_t count;
    if (!read_count("threads", value, LOAD_THREADS_MAX, &count, refusal))
        return false;
    reading->plan->threads = (unsigned)count;
    return true;
}

static bool take_server_pid(void *context, const char *value, struct load_refusal *refusal)
{
    struct load_reading *reading = context;
    uint64_t pid;
    if (!read_count("server-pid", value, INT32_MAX, &pid, refusal))
        return false;
    reading->plan->server_pid = (pid_t)pid;
    return true;
}

static bool take_seed(void *context, const char *value, struct load_refusal *refusal)
{
    struct load_reading *reading = context;
    return num_parse_u64(span_text(value), &reading->plan->seed) ||
           load_refuse(refusal, "--seed: `%s` is not a number", value);
}

static bool take_start_at(void *context, const char *value, struct load_refusal *refusal)
{
    struct load_reading *reading = context;
    uint64_t ns;
    if (!num_parse_u64(span_text(value), &ns) || ns > INT64_MAX)
        return load_refuse(refusal, "--start-at: `%s` is not in nanoseconds since 1970", value);
    reading->plan->start_at_unix_ns = (int64_t)ns;
    return true;
}

static bool read_time(const char *name, const char *value, bool may_be_none, uint64_t *ret_ns,
                      struct load_refusal *refusal)
{
    uint64_t number;
    if (load_value_duration(span_text(value), ret_ns) && (*ret_ns > 0 || may_be_none))
        return true;
    if (num_parse_u64(span_text(value), &number) && number > 0)
        return load_refuse(refusal, "--%s: `%s` has no unit; write %ss for seconds, or use ms or m",
                           name, value, value);
    return load_refuse(refusal, "--%s: `%s` is not a time; write 500ms, 10s or 2m", name, value);
}

static bool take_duration(void *context, const char *value, struct load_refusal *refusal)
{
    struct load_reading *reading = context;
    reading->has_duration = true;
    return read_time("duration", value, false, &reading->plan->duration_ns, refusal);
}

static bool take_warmup(void *context, const char *value, struct load_refusal *refusal)
{
    struct load_reading *reading = context;
    reading->has_warmup = true;
    return read_time("warmup", value, true, &reading->plan->warmup_ns, refusal);
}

static bool take_pace(void *context, const char *value, struct load_refusal *refusal)
{
    struct load_reading *reading = context;
    if (reading->plan->loop == LOAD_OPEN)
        return load_refuse(refusal, "--pace is of each user, --rate of all together; choose one");
    reading->plan->loop = LOAD_PACED;
    return read_time("pace", value, false, &reading->plan->pace_ns, refusal);
}

static bool take_connect_timeout(void *context, const char *value, struct load_refusal *refusal)
{
    struct load_reading *reading = context;
    return read_time("connect-timeout", value, true, &reading->plan->connect_timeout_ns, refusal);
}

static bool take_first_byte_timeout(void *context, const char *value, struct load_refusal *refusal)
{
    struct load_reading *reading = context;
    return read_time("first-byte-timeout", value, true, &reading->plan->first_byte_timeout_ns,
                     refusal);
}

static bool take_response_timeout(void *context, const char *value, struct load_refusal *refusal)
{
    struct load_reading *reading = context;
    return read_time("response-timeout", value, true, &reading->plan->response_timeout_ns, refusal);
}

static bool take_think(void *context, const char *value, struct load_refusal *refusal)
{
    struct load_reading *reading = context;
    return load_value_think(span_text(value), &reading->plan->think) ||
           load_refuse(refusal, "--think: `%s` is not 40ms, exp:40ms, uniform:10ms..70ms or 0",
                       value);
}

/* ---- switches ---- */

static bool take_poisson(void *context, const char *value, struct load_refusal *refusal)
{
    (void)value;
    (void)refusal;
    ((struct load_reading *)context)->plan->poisson = true;
    return true;
}

static bool take_no_keepalive(void *context, const char *value, struct load_refusal *refusal)
{
    (void)value;
    (void)refusal;
    ((struct load_reading *)context)->plan->keep_alive = false;
    return true;
}

static bool take_verify(void *context, const char *value, struct load_refusal *refusal)
{
    struct load_reading *reading = context;
    if (strcmp(value, "length") == 0)
        reading->plan->verify = LOAD_VERIFY_LENGTH;
    else if (strcmp(value, "hash") == 0)
        reading->plan->verify = LOAD_VERIFY_HASH;
    else
        return load_refuse(refusal, "--verify: `%s` is neither length nor hash", value);
    return true;
}

/* ---- requests ---- */

static bool take_method(void *context, const char *value, struct load_refusal *refusal)
{
    struct load_reading *reading = context;
    if (!http_token_valid(span_text(value)) || strlen(value) > HTTP_METHOD_MAX)
        return load_refuse(refusal, "--method: `%s` is no method, such as GET or HEAD", value);
    reading->manner.method = value;
    return true;
}

static bool take_header(void *context, const char *value, struct load_refusal *refusal)
{
    static const char *const framing[] = { "content-length", "transfer-encoding", "connection" };
    static const char *const cures[] = { "--data", "--data", "--no-keepalive" };
    struct load_reading *reading = context;
    struct span field = span_text(value);
    const char *colon = strchr(value, ':');
    struct span name = span_first(field, colon ? (size_t)(colon - value) : 0);
    if (!http_token_valid(name) || scan_field_value_end(value, field.len) < field.len)
        return load_refuse(refusal, "--header: `%.100s` is not `Name: value`", value);
    for (size_t i = 0; i < sizeof(framing) / sizeof(framing[0]); i++)
        if (span_equal_nocase(name, span_text(framing[i])))
            return load_refuse(refusal, "--header: %.*s follows from %s", (int)name.len, name.at,
                               cures[i]);
    if (reading->field_count == LOAD_FIELDS_MAX)
        return load_refuse(refusal, "--header: there are more than %d", LOAD_FIELDS_MAX);
    reading->fields[reading->field_count++] = value;
    return true;
}

static bool take_data(void *context, const char *value, struct load_refusal *refusal)
{
    struct load_reading *reading = context;
    if (reading->manner.has_data)
        return load_refuse(refusal, "a request has one body: --data or --data-file, once");
    reading->manner.has_data = true;
    reading->manner.data = span_text(value);
    return true;
}

/* Gives what a file holds, with a zero behind it. */
static char *read_file(const char *option, const char *path, size_t *ret_len,
                       struct load_refusal *refusal)
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
        (void)load_refuse(refusal, "--%s: %s: %s", option, path, strerror(error));
        return NULL;
    }
    bytes[len] = '\0';
    *ret_len = len;
    return bytes;
}

static bool take_data_file(void *context, const char *value, struct load_refusal *refusal)
{
    struct load_reading *reading = context;
    size_t len = 0;
    if (!take_data(context, "", refusal))
        return false;
    reading->data = read_file("data-file", value, &len, refusal);
    reading->manner.data = span_of(reading->data, len);
    return reading->data != NULL;
}

/* ---- URLs ---- */

/* "URL [WEIGHT]", or nothing, or a comment. */
static bool take_url_line(struct load_reading *reading, struct span line,
                          struct load_refusal *refusal)
{
    line = span_trim(line);
    if (line.len == 0 || line.at[0] == '#')
        return true;
    size_t len = 0;
    while (len < line.len && line.at[len] != ' ' && line.at[len] != '\t')
        len++;
    struct span weight_text = span_trim(span_skip(line, len));
    double weight = 1;
    if (weight_text.len > 0 && (!load_value_decimal(weight_text, &weight) || weight <= 0))
        return load_refuse(refusal, "--urls: `%.*s` is not a weight above 0",
                           (int)(weight_text.len < 80 ? weight_text.len : 80), weight_text.at);
    return load_target_add(reading->plan, span_first(line, len), weight, refusal);
}

static bool take_urls(void *context, const char *value, struct load_refusal *refusal)
{
    struct load_reading *reading = context;
    size_t len;
    char *text = read_file("urls", value, &len, refusal);
    if (!text)
        return false;
    struct span rest = span_of(text, len);
    bool good = true;
    while (good && rest.len > 0) {
        const char *end = memchr(rest.at, '\n', rest.len);
        size_t line_len = end ? (size_t)(end - rest.at) : rest.len;
        struct span line = span_first(rest, line_len);
        if (line.len > 0 && line.at[line.len - 1] == '\r')
            line.len--;
        good = take_url_line(reading, line, refusal);
        rest = span_skip(rest, end ? line_len + 1 : line_len);
    }
    free(text);
    return good;
}

static bool take_zipf(void *context, const char *value, struct load_refusal *refusal)
{
    struct load_reading *reading = context;
    double exponent;
    if (!load_value_decimal(span_text(value), &exponent) || exponent <= 0 || exponent > 10)
        return load_refuse(refusal, "--zipf: `%s` is not an exponent such as 1 or 0.8", value);
    reading->plan->zipf = exponent;
    return true;
}

/* ---- places ---- */

static bool take_source(void *context, const char *value, struct load_refusal *refusal)
{
    struct load_plan *plan = ((struct load_reading *)context)->plan;
    struct span list = span_text(value), element;
    while (load_value_next(&list, &element)) {
        bool v6 = element.len > 0 && memchr(element.at, ':', element.len) != NULL;
        char text[80];
        struct os_socket_address address;
        (void)snprintf(text, sizeof(text), v6 ? "[%.*s]:0" : "%.*s:0", (int)element.len,
                       element.at);
        if (element.len > 60 || os_socket_parse(text, &address) < 0)
            return load_refuse(refusal, "--source: `%.*s` is not an address of this machine",
                               (int)element.len, element.at);
        if (plan->source_count == LOAD_SOURCES_MAX)
            return load_refuse(refusal, "--source: there are more than %d", LOAD_SOURCES_MAX);
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

static bool take_cpus(void *context, const char *value, struct load_refusal *refusal)
{
    struct load_plan *plan = ((struct load_reading *)context)->plan;
    struct span list = span_text(value), element;
    while (load_value_next(&list, &element)) {
        char text[48];
        const char *dash = memchr(element.at, '-', element.len);
        size_t low = dash ? (size_t)(dash - element.at) : element.len;
        (void)snprintf(text, sizeof(text), "%.*s%s%.*s", (int)low, element.at, dash ? ".." : "",
                       dash ? (int)(element.len - low - 1) : 0, dash ? dash + 1 : "");
        if (element.len > 20 || !load_value_range(span_text(text), add_cpu, plan))
            return load_refuse(refusal, "--cpus: `%.*s` is not a CPU's number, or 2-5",
                               (int)element.len, element.at);
    }
    return true;
}

static bool take_shard(void *context, const char *value, struct load_refusal *refusal)
{
    struct load_plan *plan = ((struct load_reading *)context)->plan;
    const char *slash = strchr(value, '/');
    uint64_t which, of;
    if (!slash || !num_parse_u64(span_of(value, (size_t)(slash - value)), &which) ||
        !num_parse_u64(span_text(slash + 1), &of) || of > 1000 || which >= of)
        return load_refuse(refusal, "--shard: `%s` is not I/N, such as 0/3 for the first of three",
                           value);
    plan->shard = (unsigned)which;
    plan->shards = (unsigned)of;
    return true;
}

/* ---- all of them ---- */

const struct load_option load_option_table[] = {
    { "users", 'u', "N", "emulated users, each with a connection of its own (default 10)",
      take_users },
    { "steps", 0, "LIST", "levels of users, held one after the other: 1,2,5,10..100:10",
      take_steps },
    { "think", 0, "TIME",
      "between an answer and the next request: 40ms, exp:40ms (the mean), "
      "uniform:10ms..70ms (default 0)",
      take_think },
    { "duration", 'd', "TIME", "of what is measured in each step (default 10s)", take_duration },
    { "warmup", 'w', "TIME", "before that, not counted (default 1s; 0 with --requests)",
      take_warmup },
    { "requests", 'n', "N", "in place of a duration: so many in each step", take_requests },
    { "rate", 'r', "LIST",
      "an open loop: so many requests a second, of all users together; "
      "several are steps",
      take_rate },
    { "poisson", 0, NULL, "with --rate: at random moments instead of evenly spaced ones",
      take_poisson },
    { "pace", 0, "TIME", "each user asks once in this time, however long answers take", take_pace },
    { "no-keepalive", 0, NULL, "a connection for each request", take_no_keepalive },
    { "pipeline", 0, "N", "requests under way on each connection (default 1)", take_pipeline },
    { "method", 'X', "METHOD", "of all requests (default GET, or POST with a body)", take_method },
    { "header", 'H', "FIELD", "`Name: value`, in all requests; may be repeated", take_header },
    { "data", 0, "TEXT", "the body of all requests", take_data },
    { "data-file", 0, "FILE", "the same from a file", take_data_file },
    { "urls", 0, "FILE", "one URL in each line, or a path on the host before it, and its weight",
      take_urls },
    { "zipf", 0, "S", "URL number k is asked for in proportion to 1/k^S", take_zipf },
    { "seed", 0, "N", "of all that is drawn at random (default 1)", take_seed },
    { "connect-timeout", 0, "TIME", "limit for a connection (default 5s; 0 is none)",
      take_connect_timeout },
    { "first-byte-timeout", 0, "TIME", "limit for the first byte of an answer (default none)",
      take_first_byte_timeout },
    { "response-timeout", 0, "TIME", "limit for the whole answer (default 30s; 0 is none)",
      take_response_timeout },
    { "verify", 0, "length|hash", "hold each body to the first one from its URL", take_verify },
    { "source", 0, "LIST", "local addresses to connect from, in turn: each has 28,000 ports",
      take_source },
    { "threads", 't', "N", "of the generator (default 1)", take_threads },
    { "cpus", 0, "LIST", "that they run on, one each: 1 or 2,3 or 4-7", take_cpus },
    { "server-pid", 0, "PID", "tell the CPU time of this process and its children, too",
      take_server_pid },
    { "start-at", 0, "NS", "begin at this time, in nanoseconds since 1970", take_start_at },
    { "shard", 0, "I/N", "be part I of N of the load, from 0/N on, as other machines are the rest",
      take_shard },
    { NULL, 0, NULL, NULL, NULL },
};
