/* SPDX-License-Identifier: MIT */
#include "load/merge.h"

#include "load/result.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

__attribute__((format(printf, 3, 4))) static int refuse_file(char *ret_why, const char *path,
                                                             const char *format, ...)
{
    va_list arguments;
    int len = snprintf(ret_why, LOAD_WHY_MAX, "%.*s: ", LOAD_WHY_MAX / 2, path);
    va_start(arguments, format);
    (void)vsnprintf(ret_why + len, LOAD_WHY_MAX - (size_t)len, format, arguments);
    va_end(arguments);
    return -EINVAL;
}

/* ---- whether the files belong together ---- */

/* Identifies a run that is merged already. */
struct member {
    unsigned shard;
    int64_t began_unix_ns;
    uint64_t answers;
    double sum_ns;
};

static struct member member_of(const struct load_read *read)
{
    const struct load_outcome *first = &read->run.outcomes[0];
    return (struct member){ read->plan.shard, first->began_unix_ns, first->answers,
                            first->response.sum_ns };
}

static int check_same_load(const struct load_read *sum, const struct load_read *part,
                           const char *path, char *ret_why)
{
    if (part->run.merged > 0)
        return refuse_file(ret_why, path, "is merged already; merge the files that it was made of");
    if (part->run.plan_digest != sum->run.plan_digest)
        return refuse_file(ret_why, path, "has another load or server than the first file");
    if (part->run.outcome_count != sum->run.outcome_count)
        return refuse_file(ret_why, path, "has %zu steps, the first file %zu",
                           part->run.outcome_count, sum->run.outcome_count);
    if (part->plan.shards != sum->plan.shards)
        return refuse_file(ret_why, path, "is one of %u shards, the first file one of %u",
                           part->plan.shards, sum->plan.shards);
    return 0;
}

static int check_not_merged(const struct member *members, size_t count,
                            const struct load_read *part, const char *path, char *ret_why)
{
    struct member one = member_of(part);
    for (size_t i = 0; i < count; i++) {
        const struct member *other = &members[i];
        if (part->plan.shards > 1 && other->shard == one.shard)
            return refuse_file(ret_why, path, "is shard %u, as another file is", one.shard);
        if (other->began_unix_ns == one.began_unix_ns && other->answers == one.answers &&
            other->sum_ns == one.sum_ns)
            return refuse_file(ret_why, path, "is the same run as another file");
    }
    return 0;
}

/* ---- adding ---- */

static int add_outcome(struct load_outcome *to, const struct load_outcome *from)
{
    if (from->second_count > to->second_count) {
        struct load_second *longer =
            reallocarray(to->seconds, from->second_count, sizeof(*to->seconds));
        if (!longer)
            return -ENOMEM;
        memset(longer + to->second_count, 0,
               (from->second_count - to->second_count) * sizeof(*longer));
        to->seconds = longer;
        to->second_count = from->second_count;
    }
    for (size_t i = 0; i < from->second_count; i++) {
        int result = load_result_add_second(&to->seconds[i], &from->seconds[i]);
        if (result != 0)
            return result;
    }
    to->step.users += from->step.users;
    to->step.rate += from->step.rate;
    load_result_add_outcome(to, from);
    return 0;
}

static int add_run(struct load_read *sum, const struct load_read *part)
{
    struct load_run *run = &sum->run;
    run->interrupted = run->interrupted || part->run.interrupted;
    if (run->server_cpus < part->run.server_cpus)
        run->server_cpus = part->run.server_cpus;
    sum->plan.threads += part->plan.threads;
    sum->plan.requests += part->plan.requests;
    for (size_t i = 0; i < run->outcome_count; i++) {
        struct load_outcome *to = &run->outcomes[i];
        const struct load_outcome *from = &part->run.outcomes[i];
        int result = add_outcome(to, from);
        if (result != 0)
            return result;
        /* The earliest start is kept, and its distance to the latest one. */
        int64_t apart_ns = from->began_unix_ns - to->began_unix_ns;
        if (apart_ns < 0) {
            to->began_unix_ns = from->began_unix_ns;
            run->start_skew_ns += i == 0 ? (uint64_t)-apart_ns : 0;
        } else if (i == 0 && run->start_skew_ns < (uint64_t)apart_ns) {
            run->start_skew_ns = (uint64_t)apart_ns;
        }
    }
    return 0;
}

/* ---- the files ---- */

static int add_file(struct load_read *sum, struct member *members, size_t count, const char *path,
                    char *ret_why)
{
    struct load_read part;
    char why[LOAD_WHY_MAX];
    int result = load_read_file(path, &part, why);
    if (result != 0) {
        (void)refuse_file(ret_why, path, "%s", why);
        return result;
    }
    result = check_same_load(count > 0 ? sum : &part, &part, path, ret_why);
    if (result == 0)
        result = check_not_merged(members, count, &part, path, ret_why);
    if (result != 0) {
        load_read_done(&part);
        return result;
    }
    members[count] = member_of(&part);
    if (count == 0) {
        *sum = part;
        sum->run.plan = &sum->plan;
        sum->run.start_skew_ns = 0;
        return 0;
    }
    result = add_run(sum, &part);
    if (result != 0)
        (void)refuse_file(ret_why, path, "out of memory");
    load_read_done(&part);
    return result;
}

int load_merge_files(const char *const *paths, size_t count, struct load_read *ret_read,
                     char ret_why[LOAD_WHY_MAX])
{
    *ret_read = (struct load_read){ 0 };
    struct member *members = calloc(count, sizeof(*members));
    int result = members ? 0 : -ENOMEM;
    if (result != 0)
        (void)refuse_file(ret_why, paths[0], "out of memory");
    for (size_t i = 0; i < count && result == 0; i++)
        result = add_file(ret_read, members, i, paths[i], ret_why);
    free(members);
    if (result != 0) {
        load_read_done(ret_read);
        return result;
    }
    ret_read->run.merged = (unsigned)count;
    ret_read->run.command_line = "";
    ret_read->plan.shard = 0;
    return 0;
}
