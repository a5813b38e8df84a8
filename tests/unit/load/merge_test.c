/* SPDX-License-Identifier: MIT
 *
 * Runs are written as JSON, read and merged. Reading gives what was written, shards merge into the
 * whole run, and a damaged file gets one line.
 */
#include "load/merge.h"

#include "load/report.h"
#include "unit/load/fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <unistd.h>

enum { PARTS = 3 };

static const struct load_slos no_slos;
static char folder[] = P_tmpdir "/weir-merge-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static const char *path_of(size_t part)
{
    static char paths[PARTS][64];
    (void)snprintf(paths[part], sizeof(paths[part]), "%s/%zu", folder, part);
    return paths[part];
}

static void put(const char *path, const char *text, size_t len)
{
    FILE *out = fopen(path, "we");
    assert_non_null(out);
    assert_int_equal(fwrite(text, 1, len, out), len);
    assert_int_equal(fclose(out), 0);
}

/* Gives the JSON of a run. */
static char *json_of(const struct load_run *run)
{
    struct load_report report;
    const struct load_report_output how = { .form = LOAD_FORM_JSON };
    const char *path;
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    assert_non_null(out);
    assert_int_equal(load_report_init(&report, run, &no_slos), 0);
    assert_int_equal(load_report_print(&report, &how, out, &path), 0);
    load_report_done(&report);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void save(const struct load_run *run, const char *path)
{
    char *text = json_of(run);
    put(path, text, strlen(text));
    free(text);
}

/* A step in which every number differs from zero. */
static void fill(struct fixture *f, size_t step, uint64_t seed)
{
    struct load_outcome *outcome = &f->outcomes[step];
    fixture_fill(outcome, seed);
    outcome->status[200] -= 10;
    outcome->status[404] += 7;
    outcome->status[599] += 3;
    for (unsigned i = 0; i < LOAD_ERROR_COUNT; i++)
        outcome->error[i] = i + seed;
    outcome->redirects = 5;
    outcome->reopened = 2;
    outcome->answers_reused = 39000;
    outcome->unsent = 1;
    outcome->unfinished = 3;
    outcome->longest_wait_ns = 1000 * seed;
    outcome->seconds[3] = (struct load_second){ 4, 3, 2, { 1, 2, 3, 4, 5 }, 9, 8, 7, 6, 5, NULL };
    load_durations_add(&outcome->connect, 12345 * seed);
    load_durations_add(&outcome->intended, 54321 * seed);
}

static void same_outcome(const struct load_outcome *a, const struct load_outcome *b)
{
    assert_int_equal(a->step.users, b->step.users);
#define LOAD_COUNT(name, way) assert_int_equal(a->name, b->name);
#include "load/counts.def"
#undef LOAD_COUNT
#define LOAD_ENDING(name, way) assert_int_equal(a->name, b->name);
#include "load/counts.def"
#undef LOAD_ENDING
#define LOAD_DURATIONS(name) \
    assert_int_equal(a->name.count, b->name.count); \
    assert_int_equal(a->name.least_ns, b->name.least_ns); \
    assert_int_equal(a->name.most_ns, b->name.most_ns); \
    assert_true(fabs(a->name.sum_ns - b->name.sum_ns) <= a->name.sum_ns * 1e-12); \
    assert_true(fabs(a->name.sum_squares - b->name.sum_squares) <= a->name.sum_squares * 1e-12); \
    assert_memory_equal(a->name.bucket, b->name.bucket, \
                        histogram_buckets(LOAD_LONGEST_NS, LOAD_BITS) * sizeof(uint64_t));
#include "load/counts.def"
#undef LOAD_DURATIONS
#define LOAD_TLS_COUNT(name) assert_int_equal(a->name, b->name);
#include "load/counts.def"
#undef LOAD_TLS_COUNT
#define LOAD_HTTP2_COUNT(name, how) assert_int_equal(a->name, b->name);
#include "load/counts.def"
#undef LOAD_HTTP2_COUNT
    assert_memory_equal(a->agreed, b->agreed, sizeof(a->agreed));
    assert_int_equal(a->handshake.count, b->handshake.count);
    assert_memory_equal(a->handshake.bucket, b->handshake.bucket,
                        histogram_buckets(LOAD_LONGEST_NS, LOAD_BITS) * sizeof(uint64_t));
    assert_memory_equal(a->status, b->status, sizeof(a->status));
    assert_memory_equal(a->error, b->error, sizeof(a->error));
    assert_true(fabs(a->user_ns - b->user_ns) <= a->user_ns * 1e-12);
    assert_true(fabs(a->thought_ns - b->thought_ns) <= a->thought_ns * 1e-12);
    assert_int_equal(a->interrupted, b->interrupted);
    assert_int_equal(a->second_count, b->second_count);
    for (size_t i = 0; i < a->second_count; i++) {
        assert_int_equal(a->seconds[i].hdr != NULL, b->seconds[i].hdr != NULL);
        if (a->seconds[i].hdr)
            assert_string_equal(a->seconds[i].hdr, b->seconds[i].hdr);
        assert_int_equal(a->seconds[i].answers, b->seconds[i].answers);
        assert_int_equal(a->seconds[i].errors, b->seconds[i].errors);
        assert_int_equal(a->seconds[i].connects, b->seconds[i].connects);
        assert_int_equal(a->seconds[i].most_ns, b->seconds[i].most_ns);
        assert_memory_equal(a->seconds[i].by_class, b->seconds[i].by_class,
                            sizeof(a->seconds[i].by_class));
    }
}

static void reads_what_the_report_writes(void **state)
{
    (void)state;
    static struct fixture f;
    struct load_read read;
    char why[LOAD_WHY_MAX];
    fixture_init(&f, 2);
    fill(&f, 0, 1);
    fill(&f, 1, 2);
    fixture_add_tls(&f, 0, 3);
    fixture_add_tls(&f, 1, 4);
    fixture_add_http2(&f, 1, 70);
    f.outcomes[1].handshakes_failed = 8;
    f.outcomes[1].tickets_refused = 9;
    (void)load_result_agreed(f.outcomes[1].agreed, "TLSv1.2", "ECDHE-RSA-AES128-GCM-SHA256", "");
    f.outcomes[1].agreed[1].answers = 5;
    f.outcomes[0].interrupted = true;
    f.target.socket = "/run/weir.sock";
    f.plan.insecure = true;
    f.plan.shard = 4;
    f.plan.shards = 7;
    f.plan.seed = UINT64_MAX;
    f.plan.loop = LOAD_PACED;
    f.plan.pace_ns = 1234567;
    f.plan.think = (struct load_think){ LOAD_THINK_UNIFORM, 3, 4 };
    f.run.command_line = "weir load 'http://\"\\\x01\xff/\xe2\x82\xac'";
    char *text = json_of(&f.run);
    assert_int_equal(load_read_text(span_text(text), &read, why), 0);
    assert_int_equal(read.run.outcome_count, 2);
    same_outcome(&f.outcomes[0], &read.run.outcomes[0]);
    same_outcome(&f.outcomes[1], &read.run.outcomes[1]);
    assert_string_equal(read.plan.targets[0].host, f.target.host);
    assert_string_equal(read.plan.targets[0].socket, f.target.socket);
    assert_string_equal(read.plan.targets[0].path, f.target.path);
    assert_true(read.plan.targets[0].tls && read.plan.insecure);
    assert_int_equal(read.plan.tls, LOAD_TLS_RESUME);
    assert_true(read.plan.http2);
    assert_int_equal(read.plan.loop, LOAD_PACED);
    assert_int_equal(read.plan.think.kind, LOAD_THINK_UNIFORM);
    assert_int_equal(read.plan.think.high_ns, 4);
    assert_int_equal(read.plan.pace_ns, 1234567);
    assert_int_equal(read.plan.shard, 4);
    assert_int_equal(read.plan.shards, 7);
    assert_true(read.plan.keep_alive);
    assert_int_equal(read.run.server_cpus, 4);
    assert_non_null(strstr(read.run.command_line, "\xe2\x82\xac"));
    load_read_done(&read);
    free(text);
    fixture_done(&f);
}

/* Earlier versions did not count the requests under way at the end. */
static void reads_a_file_of_an_earlier_version(void **state)
{
    (void)state;
    static struct fixture f;
    struct load_read read;
    char why[LOAD_WHY_MAX];
    fixture_init(&f, 1);
    fill(&f, 0, 1);
    char *text = json_of(&f.run);
    char *flag = strstr(text, "\"interrupted\":false"); /* of the run: the last step is cut */
    memcpy(flag, "\"interrupted\":true ", strlen("\"interrupted\":false"));
    memcpy(strstr(flag + 1, "\"interrupted\""), "\"not_known_x\"", strlen("\"interrupted\""));
    memcpy(strstr(text, "\"unfinished\""), "\"not_known_\"", strlen("\"unfinished\""));
    memcpy(strstr(text, "\"longest_wait_ns\""), "\"not_known_nr_2_\"",
           strlen("\"longest_wait_ns\""));
    assert_int_equal(load_read_text(span_text(text), &read, why), 0);
    assert_true(read.run.outcomes[0].interrupted);
    assert_int_equal(read.run.outcomes[0].unfinished, 0);
    assert_int_equal(read.run.outcomes[0].longest_wait_ns, 0);
    load_read_done(&read);
    free(text);
    fixture_done(&f);
}

static void merged_shards_equal_the_whole_run(void **state)
{
    (void)state;
    static struct fixture part[PARTS], whole;
    const char *paths[PARTS];
    struct load_read merged;
    char why[LOAD_WHY_MAX];
    fixture_init(&whole, 1);
    whole.outcomes[0].step.users = 0;
    uint64_t random = 5;
    for (unsigned i = 0; i < PARTS; i++) {
        fixture_init(&part[i], 1);
        part[i].plan.shard = i;
        part[i].plan.shards = PARTS;
        part[i].outcomes[0].began_unix_ns += (int64_t)((i + 2) % 3) * 20000000;
        part[i].outcomes[0].step.users = 7 + i;
        part[i].outcomes[0].busiest_thread_ns = 1000 * (i + 1);
        part[i].outcomes[0].longest_gap_ns = 9000 - i;
        part[i].outcomes[0].error[LOAD_closed_amid] = i;
        part[i].outcomes[0].interrupted = i == 1;
        fixture_add_tls(&part[i], 0, i);
        fixture_add_tls(&whole, 0, i);
        fixture_add_http2(&part[i], 0, i);
        fixture_add_http2(&whole, 0, i);
        whole.outcomes[0].streams_missing = part[i].outcomes[0].streams_missing; /* the most */
        whole.outcomes[0].step.users += 7 + i;
        whole.outcomes[0].error[LOAD_closed_amid] += i;
    }
    whole.outcomes[0].interrupted = true;
    whole.outcomes[0].busiest_thread_ns = 3000;
    whole.outcomes[0].longest_gap_ns = 8998;
    for (unsigned i = 0; i < 30000; i++) {
        uint64_t ns = fixture_random(&random) % 100000000;
        struct load_outcome *one = &part[fixture_random(&random) % PARTS].outcomes[0];
        fixture_answer(&whole.outcomes[0], ns);
        fixture_answer(one, ns);
        whole.outcomes[0].agreed[0].answers++;
        one->agreed[0].answers++;
    }
    for (unsigned i = 0; i < PARTS;
         i++) /* fixture_answer chooses the second by the number of answers */
        for (unsigned k = 0; k < 10; k++)
            part[i].outcomes[0].seconds[k].answers = part[i].outcomes[0].seconds[k].by_class[1] =
                1000;
    for (unsigned i = 0; i < PARTS; i++) {
        paths[i] = path_of(i);
        save(&part[i].run, paths[i]);
    }
    assert_int_equal(load_merge_files(paths, PARTS, &merged, why), 0);
    same_outcome(&whole.outcomes[0], &merged.run.outcomes[0]);
    assert_int_equal(merged.run.merged, PARTS);
    assert_int_equal(merged.run.start_skew_ns, 40000000);
    assert_int_equal(merged.run.outcomes[0].began_unix_ns, whole.outcomes[0].began_unix_ns);
    assert_int_equal(merged.plan.threads, PARTS);
    save(&merged.run, path_of(0));
    load_read_done(&merged);
    assert_int_equal(load_merge_files(paths, 1, &merged, why), -EINVAL);
    assert_non_null(strstr(why, "is merged already"));
    for (unsigned i = 0; i < PARTS; i++) {
        assert_int_equal(unlink(paths[i]), 0);
        fixture_done(&part[i]);
    }
    fixture_done(&whole);
}

/* Merges two runs, the second one changed by `change`. Gives the message. */
static int merge_with(void (*change)(struct fixture *), char *why)
{
    static struct fixture a, b;
    const char *const paths[] = { path_of(0), path_of(1) };
    struct load_read merged;
    fixture_init(&a, 1);
    fixture_init(&b, 1);
    a.plan.shards = b.plan.shards = 2;
    a.plan.requests = b.plan.requests = 100;
    b.plan.shard = 1;
    fixture_answer(&a.outcomes[0], 1000);
    fixture_answer(&b.outcomes[0], 2000);
    change(&b);
    save(&a.run, paths[0]);
    save(&b.run, paths[1]);
    int result = load_merge_files(paths, 2, &merged, why);
    if (result == 0)
        load_read_done(&merged);
    else if (strstr(why, "no memory") == NULL)
        assert_memory_equal(why, paths[1], strlen(paths[1]));
    assert_int_equal(unlink(paths[0]) | unlink(paths[1]), 0);
    fixture_done(&a);
    fixture_done(&b);
    return result;
}

static void another_machine(struct fixture *f)
{
    f->plan.threads = 7;
    f->plan.seed = 99;
    f->plan.requests = 101;
    f->plan.server_pid = 0;
    f->outcomes[0].step.users = 11;
}

static void another_path(struct fixture *f)
{
    f->target.path = "/other";
}

static void on_a_unix_socket(struct fixture *f)
{
    f->target.socket = "/run/weir.sock";
}

static void another_think_time(struct fixture *f)
{
    f->plan.think.high_ns++;
}

static void without_keep_alive(struct fixture *f)
{
    f->plan.keep_alive = false;
}

static void with_tls(struct fixture *f)
{
    f->target.tls = true;
    f->plan.tls = LOAD_TLS_RESUME;
}

static void the_same_shard(struct fixture *f)
{
    f->plan.shard = 0;
}

static void of_other_shards(struct fixture *f)
{
    f->plan.shards = 3;
}

static void refuses_runs_of_another_load(void **state)
{
    (void)state;
    char why[LOAD_WHY_MAX];
    assert_int_equal(merge_with(another_machine, why), 0);
    static const struct row {
        void (*change)(struct fixture *);
        const char *why;
    } rows[] = {
        { another_path, "has another load or server than the first file" },
        { on_a_unix_socket, "has another load or server than the first file" },
        { another_think_time, "has another load or server than the first file" },
        { without_keep_alive, "has another load or server than the first file" },
        { with_tls, "has another load or server than the first file" },
        { the_same_shard, "is shard 0, as another file is" },
        { of_other_shards, "is one of 3 shards, the first file one of 2" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(merge_with(rows[i].change, why), -EINVAL);
        assert_non_null(strstr(why, rows[i].why));
    }
}

/* Results of version 0.1 have no members for TLS. */
static void reads_results_from_before_tls(void **state)
{
    (void)state;
    static const char *const members[] = { "\"tls\":\"none\",", "\"insecure\":false,",
                                           "\"scheme\":\"http\",", "\"socket\":null,",
                                           "\"tls\":null," };
    static struct fixture f;
    struct load_read read;
    char why[LOAD_WHY_MAX];
    fixture_init(&f, 1);
    fill(&f, 0, 1);
    char *text = json_of(&f.run);
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        char *at = strstr(text, members[i]);
        assert_non_null(at);
        memset(at, ' ', strlen(members[i]));
    }
    assert_int_equal(load_read_text(span_text(text), &read, why), 0);
    same_outcome(&f.outcomes[0], &read.run.outcomes[0]);
    assert_int_equal(read.plan.tls, LOAD_TLS_NONE);
    load_read_done(&read);
    free(text);
    fixture_done(&f);
}

static void refuses_the_same_run_twice(void **state)
{
    (void)state;
    static struct fixture f;
    struct load_read merged;
    char why[LOAD_WHY_MAX];
    const char *const paths[] = { path_of(0), path_of(0) };
    fixture_init(&f, 1);
    fixture_answer(&f.outcomes[0], 1000);
    save(&f.run, paths[0]);
    assert_int_equal(load_merge_files(paths, 2, &merged, why), -EINVAL);
    assert_non_null(strstr(why, "is the same run as another file"));
    assert_int_equal(unlink(paths[0]), 0);
    fixture_done(&f);
}

static void names_a_damaged_file(void **state)
{
    (void)state;
    static struct fixture f;
    struct load_read read;
    char why[LOAD_WHY_MAX];
    const char *const path = path_of(0);
    fixture_init(&f, 1);
    fill(&f, 0, 1);
    char *text = json_of(&f.run);
    for (size_t i = 0; i < strlen(text) - 1; i += 97) { /* cut off */
        put(path, text, i);
        assert_int_equal(load_merge_files(&path, 1, &read, why), -EINVAL);
        assert_memory_equal(why, path, strlen(path));
        assert_null(strchr(why, '\n'));
    }
    for (size_t i = 0; i < strlen(text); i += 31) { /* with one character changed */
        char was = text[i];
        text[i] = was == '7' ? '8' : '7';
        if (load_read_text(span_text(text), &read, why) == 0)
            load_read_done(&read);
        text[i] = was;
    }
    free(text);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(load_merge_files(&path, 1, &read, why), -ENOENT);
    assert_non_null(strstr(why, "No such file"));
    const char *const directory = folder;
    assert_int_equal(load_merge_files(&directory, 1, &read, why), -EINVAL);
    assert_non_null(strstr(why, "it is no regular file"));
    fixture_done(&f);
}

/* Replaces the first `what` in a good text, and checks the message. */
static void refuses(const char *good, const char *what, const char *by, const char *wanted)
{
    char why[LOAD_WHY_MAX] = "";
    struct load_read read;
    const char *at = strstr(good, what);
    assert_non_null(at);
    size_t before = (size_t)(at - good);
    char *bad = malloc(strlen(good) + strlen(by) + 1);
    assert_non_null(bad);
    memcpy(bad, good, before);
    (void)sprintf(bad + before, "%s%s", by, at + strlen(what));
    assert_int_equal(load_read_text(span_text(bad), &read, why), -EINVAL);
    assert_string_equal(why, wanted);
    free(bad);
}

static void refuses_numbers_that_contradict_each_other(void **state)
{
    (void)state;
    static struct fixture f;
    fixture_init(&f, 1);
    fixture_answer(&f.outcomes[0], 1000);
    char *good = json_of(&f.run);
    refuses(good, "{\"schema\":1", "{\"schema\":2",
            "its schema is 2, and this program reads schema 1");
    refuses(good, "\"schema\"", "\"scheme\"", "this is no result of `weir load --json`");
    refuses(good, "\"requests\":1", "\"requests\":-1",
            "`requests` is no integer from 0 to 9007199254740992");
    refuses(good, "\"requests\":1", "\"requests\":1.5",
            "`requests` is no integer from 0 to 9007199254740992");
    refuses(good, "\"response\":{\"count\":1", "\"response\":{\"count\":2",
            "the histogram of `response` contradicts the numbers beside it");
    refuses(good, "\"min_ns\":1000", "\"min_ns\":900",
            "the histogram of `response` contradicts the numbers beside it");
    refuses(good, "\"sum_ns\":1000", "\"sum_ns\":1001",
            "the histogram of `response` contradicts the numbers beside it");
    refuses(good, "HISTF", "HISTG", "the histogram of `response` is damaged");
    refuses(good, "\"loop\":\"closed\"", "\"loop\":\"open\\u0007\"", "`loop` is unknown");
    refuses(good, "\"200\":1", "\"700\":1", "`status` has a name that is no status code");
    refuses(good, "\"200\":1", "\"20\":1", "`status` has a name that is no status code");
    refuses(good, "\"kin\":\"", "\"kin\":\"x", "`kin` is no number of 16 hexadecimal digits");
    free(good);
    fixture_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_the_report_writes),
        cmocka_unit_test(reads_a_file_of_an_earlier_version),
        cmocka_unit_test(merged_shards_equal_the_whole_run),
        cmocka_unit_test(refuses_runs_of_another_load),
        cmocka_unit_test(reads_results_from_before_tls),
        cmocka_unit_test(refuses_the_same_run_twice),
        cmocka_unit_test(names_a_damaged_file),
        cmocka_unit_test(refuses_numbers_that_contradict_each_other),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
