/* SPDX-License-Identifier: MIT */
#include "load/result.h"

#include "load/hdr.h"

#include <errno.h>
#include <stdlib.h>

const char *const load_result_loops[LOAD_LOOPS] = {
    [LOAD_CLOSED] = "closed",
    [LOAD_PACED] = "paced",
    [LOAD_OPEN] = "open",
};

const char *const load_result_thinks[LOAD_THINKS] = {
    [LOAD_THINK_CONSTANT] = "constant",
    [LOAD_THINK_EXPONENTIAL] = "exponential",
    [LOAD_THINK_UNIFORM] = "uniform",
};

const char *const load_result_verifies[LOAD_VERIFIES] = {
    [LOAD_VERIFY_NOT] = "not",
    [LOAD_VERIFY_LENGTH] = "length",
    [LOAD_VERIFY_HASH] = "hash",
};

const char *const load_result_sessions[LOAD_SESSIONS] = {
    [LOAD_TLS_NONE] = "none",
    [LOAD_TLS_RESUME] = "resume",
    [LOAD_TLS_FULL] = "full",
};

const char *const load_result_protocols[LOAD_PROTOCOLS] = { "HTTP/1.1", "HTTP/2" };

const struct load_result_error load_result_errors[LOAD_ERROR_COUNT] = {
#define LOAD_ERROR(name, phase, sentence) { #name, #phase, sentence },
    LOAD_ERRORS(LOAD_ERROR)
#undef LOAD_ERROR
};

/* ---- a second ---- */

static uint64_t quantile_ns(const struct load_second *second, const uint64_t *bucket, double part)
{
    size_t index = histogram_quantile(bucket, LOAD_SECOND_BUCKETS, second->answers, part);
    uint64_t high_ns = histogram_high(index, LOAD_SECOND_BITS);
    return high_ns < second->most_ns ? high_ns : second->most_ns;
}

int load_result_settle_second(struct load_second *second, const uint64_t *bucket)
{
    if (second->answers == 0)
        return 0;
    free(second->hdr);
    second->hdr = load_hdr_encode_second(bucket);
    second->p50_ns = quantile_ns(second, bucket, 0.5);
    second->p90_ns = quantile_ns(second, bucket, 0.9);
    second->p99_ns = quantile_ns(second, bucket, 0.99);
    return second->hdr ? 0 : -ENOMEM;
}

void load_result_free_second(struct load_second *second)
{
    free(second->hdr);
    second->hdr = NULL;
}

void load_result_count_second(struct load_second *to, const struct load_second *from)
{
    to->answers += from->answers;
    to->errors += from->errors;
    to->body_bytes += from->body_bytes;
    to->connects += from->connects;
    to->most_ns = from->most_ns > to->most_ns ? from->most_ns : to->most_ns;
    for (unsigned i = 0; i < sizeof(to->by_class) / sizeof(to->by_class[0]); i++)
        to->by_class[i] += from->by_class[i];
}

int load_result_add_second(struct load_second *to, const struct load_second *from)
{
    bool known = (to->hdr || to->answers == 0) && (from->hdr || from->answers == 0);
    uint64_t *bucket = calloc(LOAD_SECOND_BUCKETS, sizeof(*bucket));
    int rc = bucket ? 0 : -ENOMEM;
    load_result_count_second(to, from);
    if (rc == 0 && known && to->hdr)
        rc = load_hdr_decode_second(span_text(to->hdr), bucket);
    if (rc == 0 && known && from->hdr)
        rc = load_hdr_decode_second(span_text(from->hdr), bucket);
    if (rc == 0 && known)
        rc = load_result_settle_second(to, bucket);
    if (!known)
        load_result_free_second(to);
    free(bucket);
    return rc;
}

/* ---- an outcome ---- */

void load_result_free_outcome(struct load_outcome *outcome)
{
    load_durations_done(&outcome->response);
    load_durations_done(&outcome->intended);
    load_durations_done(&outcome->connect);
    load_durations_done(&outcome->first_byte);
    load_durations_done(&outcome->lag);
    load_durations_done(&outcome->handshake);
    for (size_t i = 0; i < outcome->second_count; i++)
        load_result_free_second(&outcome->seconds[i]);
    free(outcome->seconds);
    *outcome = (struct load_outcome){ 0 };
}

int load_result_init_outcome(struct load_outcome *outcome)
{
    *outcome = (struct load_outcome){ 0 };
    if (load_durations_init(&outcome->response) < 0 ||
        load_durations_init(&outcome->intended) < 0 || load_durations_init(&outcome->connect) < 0 ||
        load_durations_init(&outcome->lag) < 0 || load_durations_init(&outcome->first_byte) < 0 ||
        load_durations_init(&outcome->handshake) < 0) {
        load_result_free_outcome(outcome);
        return -ENOMEM;
    }
    return 0;
}

unsigned load_result_agreed(struct load_agreed *table, const char *protocol, const char *cipher,
                            const char *group)
{
    struct load_agreed one = { .answers = 0 };
    (void)snprintf(one.protocol, sizeof(one.protocol), "%s", protocol);
    (void)snprintf(one.cipher, sizeof(one.cipher), "%s", cipher);
    (void)snprintf(one.group, sizeof(one.group), "%s", group);
    unsigned at = 0;
    while (at < LOAD_AGREED_MAX && table[at].protocol[0] != '\0' &&
           (strcmp(table[at].protocol, one.protocol) != 0 ||
            strcmp(table[at].cipher, one.cipher) != 0 || strcmp(table[at].group, one.group) != 0))
        at++;
    if (at < LOAD_AGREED_MAX && table[at].protocol[0] == '\0')
        table[at] = one;
    return at;
}

void load_result_add_agreed(struct load_agreed *to, const struct load_agreed *from)
{
    for (unsigned i = 0; i < LOAD_AGREED_MAX; i++) {
        const struct load_agreed *one = &from[i];
        unsigned at = one->answers == 0
                          ? LOAD_AGREED_MAX
                          : load_result_agreed(to, one->protocol, one->cipher, one->group);
        if (at < LOAD_AGREED_MAX)
            to[at].answers += one->answers;
    }
}

static uint64_t sum(uint64_t a, uint64_t b)
{
    return a + b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void load_result_add_outcome(struct load_outcome *to, const struct load_outcome *from)
{
#define LOAD_COUNT(name, how)       to->name = how(to->name, from->name);
#define LOAD_ENDING(name, how)      to->name = how(to->name, from->name);
#define LOAD_DURATIONS(name)        load_durations_merge(&to->name, &from->name);
#define LOAD_TLS_COUNT(name)        to->name += from->name;
#define LOAD_HTTP2_COUNT(name, how) to->name = how(to->name, from->name);
#include "load/counts.def"
#undef LOAD_HTTP2_COUNT
#undef LOAD_COUNT
#undef LOAD_ENDING
#undef LOAD_DURATIONS
#undef LOAD_TLS_COUNT
    load_durations_merge(&to->handshake, &from->handshake);
    load_result_add_agreed(to->agreed, from->agreed);
    for (unsigned i = 0; i < LOAD_STATUS_MAX; i++)
        to->status[i] += from->status[i];
    for (unsigned i = 0; i < LOAD_ERROR_COUNT; i++)
        to->error[i] += from->error[i];
    to->interrupted = to->interrupted || from->interrupted;
    to->thought_ns += from->thought_ns;
    to->user_ns += from->user_ns;
}
