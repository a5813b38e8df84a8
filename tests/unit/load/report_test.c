/* SPDX-License-Identifier: MIT
 *
 * The forms of the report, and the exit status.
 */
#include "load/report.h"

#include "load/format.h"
#include "unit/load/fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <errno.h>
#include <unistd.h>

static struct load_slos slos_of(const char *text)
{
    struct load_slos slos = { 0 };
    char why[LOAD_SLO_WHY_MAX];
    if (text)
        assert_true(load_slos_parse(text, &slos, why));
    return slos;
}

static enum load_conclusion conclude(const struct fixture *f, const char *slo_text)
{
    struct load_slos slos = slos_of(slo_text);
    struct load_report report;
    assert_int_equal(load_report_init(&report, &f->run, &slos), 0);
    enum load_conclusion conclusion = report.conclusion;
    load_report_done(&report);
    return conclusion;
}

static void an_invalid_result_wins_over_a_missed_objective(void **state)
{
    (void)state;
    static struct fixture f;
    fixture_init(&f, 2);
    fixture_fill(&f.outcomes[0], 1);
    fixture_fill(&f.outcomes[1], 2);
    assert_int_equal(conclude(&f, NULL), LOAD_GOOD);
    assert_int_equal(conclude(&f, "mean<10ms"), LOAD_GOOD);
    assert_int_equal(conclude(&f, "mean<10ms,mean<1ms"), LOAD_SLO_MISSED);
    f.outcomes[1].error[LOAD_no_port] = 1;
    assert_int_equal(conclude(&f, NULL), LOAD_INVALID);
    assert_int_equal(conclude(&f, "mean<1ms"), LOAD_INVALID);
    f.run.outcome_count = 0;
    assert_int_equal(conclude(&f, NULL), LOAD_INVALID);
    f.run.outcome_count = 2;
    fixture_done(&f);
}

/* One step that misses is enough. */
static void every_step_must_meet_an_objective(void **state)
{
    (void)state;
    static struct fixture f;
    fixture_init(&f, 2);
    fixture_fill(&f.outcomes[0], 1);
    fixture_fill(&f.outcomes[1], 2);
    f.outcomes[1].error[LOAD_reset_amid] = 100;
    assert_int_equal(conclude(&f, "errors<0.1%"), LOAD_SLO_MISSED);
    assert_int_equal(conclude(&f, "errors<1%"), LOAD_GOOD);
    fixture_done(&f);
}

static bool explains;

static char *print(const struct fixture *f, enum load_form form, const char *slo_text)
{
    struct load_slos slos = slos_of(slo_text);
    struct load_report report;
    const struct load_report_output how = { .form = form, .explain = explains };
    const char *path;
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    assert_non_null(out);
    assert_int_equal(load_report_init(&report, &f->run, &slos), 0);
    assert_int_equal(load_report_print(&report, &how, out, &path), 0);
    load_report_done(&report);
    assert_int_equal(fclose(out), 0);
    return text;
}

/* No line of text is wider than a terminal. */
static void check_lines(const char *text)
{
    while (*text) {
        size_t len = strcspn(text, "\n");
        assert_true(len <= 80);
        assert_int_equal(text[len], '\n');
        text += len + 1;
    }
}

static void has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no `%s` in\n%s", part, text);
}

static void prints_all_numbers_of_one_step(void **state)
{
    (void)state;
    static struct fixture f;
    fixture_init(&f, 1);
    fixture_fill(&f.outcomes[0], 1);
    f.outcomes[0].error[LOAD_reset_amid] = 2;
    char *text = print(&f, LOAD_FORM_TEXT, "p99<10ms,mean<=1.5ms");
    check_lines(text);
    has(text, "40 users, measured for 10.0 s");
    has(text, "average throughput              4000 requests/s");
    has(text, "closed loop, as measured");
    has(text, "\n  p99.99 ");
    has(text, "2  The connection was reset in the middle of an answer.");
    has(text, "50.0 us per answer, ");
    has(text, "161.0 users, 20000 answers/s for one core");
    has(text, "met     p99<10ms");
    has(text, "MISSED  mean<=1.5ms");
    has(text, "\nValid, but 0.0050 % of the requests failed: 2 of 40002.\n");
    free(text);
    f.outcomes[0].error[LOAD_reset_amid] = 0;
    text = print(&f, LOAD_FORM_TEXT, NULL);
    has(text, "\nValid: the generator did not limit the result.\n");
    free(text);
    fixture_done(&f);
}

/* The first line of the verdict says what share failed, with one step and with several. */
static void failed_requests_are_in_the_verdict(void **state)
{
    (void)state;
    static struct fixture f;
    fixture_init(&f, 2);
    fixture_fill(&f.outcomes[0], 1);
    fixture_fill(&f.outcomes[1], 2);
    f.outcomes[0].error[LOAD_reset_amid] = 40000;
    assert_int_equal(conclude(&f, NULL), LOAD_INVALID);
    assert_int_equal(conclude(&f, "errors<10%"), LOAD_SLO_MISSED);
    assert_int_equal(conclude(&f, "errors<60%"), LOAD_GOOD);
    char *text = print(&f, LOAD_FORM_TEXT, "errors<60%");
    check_lines(text);
    has(text, "\nValid, but 33.33 % of the requests failed: 40000 of 120000.\n");
    has(text, "1 step; in number 1 (users: 40):\n    Some requests failed.\n");
    free(text);
    f.run.outcome_count = 1;
    text = print(&f, LOAD_FORM_TEXT, NULL);
    check_lines(text);
    has(text, "\nINVALID: 50.00 % of the requests failed.\n");
    has(text, "40000 of 80000 requests (50.00 %): 40000 without a whole and right answer, 0");
    free(text);
    f.run.outcome_count = 2;
    fixture_done(&f);
}

static void an_interrupted_run_names_its_last_step(void **state)
{
    (void)state;
    static struct fixture f;
    fixture_init(&f, 3);
    f.run.interrupted = f.outcomes[1].interrupted = true;
    f.run.outcome_count = 2;
    char *text = print(&f, LOAD_FORM_TEXT, NULL);
    has(text, "\nInterrupted in step 2 of 3: the numbers are those up to then\n");
    free(text);
    text = print(&f, LOAD_FORM_CSV, NULL);
    has(text, "HTTP/1.1,1,false\n2,");
    has(text, "HTTP/1.1,1,true\n");
    free(text);
    f.plan.step_count = 2; /* the last one, or a file, which has no later ones */
    text = print(&f, LOAD_FORM_TEXT, NULL);
    has(text, "\nInterrupted: the numbers are those up to then\n");
    free(text);
    f.run.outcome_count = 3;
    fixture_done(&f);
}

/* The step before an interrupted warm-up is whole. */
static void an_interrupted_warm_up_leaves_whole_steps(void **state)
{
    (void)state;
    static struct fixture f;
    fixture_init(&f, 3);
    f.run.interrupted = true;
    f.run.outcome_count = 2;
    char *text = print(&f, LOAD_FORM_TEXT, NULL);
    has(text, "\nInterrupted after step 2 of 3: the numbers are those of whole steps\n");
    free(text);
    text = print(&f, LOAD_FORM_CSV, NULL);
    assert_null(strstr(text, "HTTP/1.1,1,true"));
    free(text);
    f.run.outcome_count = 0;
    text = print(&f, LOAD_FORM_TEXT, NULL);
    has(text, "\nInterrupted before the first measured time\n");
    free(text);
    text = print(&f, LOAD_FORM_JSON, "p99<10ms");
    has(text, "\"slos_met\":false");
    free(text);
    f.run.outcome_count = 3;
    fixture_done(&f);
}

static void prints_handshakes_and_what_was_agreed_on(void **state)
{
    (void)state;
    static struct fixture f;
    fixture_init(&f, 2);
    fixture_fill(&f.outcomes[0], 1);
    fixture_fill(&f.outcomes[1], 2);
    fixture_add_tls(&f, 0, 1);
    fixture_add_tls(&f, 1, 2);
    f.outcomes[1].handshakes_failed = 7;
    char *text = print(&f, LOAD_FORM_TEXT, NULL);
    check_lines(text);
    has(text, "https://127.0.0.1:8080/");
    has(text, "TLS: sessions are resumed, certificates verified");
    has(text, "  TLS handshakes           200 full, 400 resumed, 7 failed\n");
    has(text, "  TLS                      TLSv1.3 TLS_AES_128_GCM_SHA256 x25519\n");
    free(text);
    text = print(&f, LOAD_FORM_CSV, NULL);
    has(text, ",handshakes_full,handshakes_resumed,handshakes_failed,handshake_mean_ns");
    has(text, ",true,100,200,7,");
    free(text);
    f.run.outcome_count = 1;
    f.plan.tls = LOAD_TLS_FULL;
    f.plan.insecure = true;
    (void)load_result_agreed(f.outcomes[0].agreed, "TLSv1.2", "\x1b[1m", "");
    f.outcomes[0].agreed[1].answers = 3;
    f.outcomes[0].agreed[0].answers -= 3;
    text = print(&f, LOAD_FORM_TEXT, NULL);
    check_lines(text);
    has(text, "TLS: full handshakes, certificates not verified");
    has(text, "p50 2.");
    has(text, "x25519: 39997 answers\n");
    has(text, "TLSv1.2 \\x1b[1m : 3 answers\n"); /* a file may hold any text */
    free(text);
    f.run.outcome_count = 2;
    fixture_done(&f);
}

/* A URL of any bytes stays on one line of the terminal. */
static void shortens_names_and_escapes_control_bytes(void **state)
{
    (void)state;
    static struct fixture f;
    char host[200], path[200];
    fixture_init(&f, 1);
    memset(host, 'h', sizeof(host));
    memset(path, '\n', sizeof(path));
    host[199] = path[199] = '\0';
    f.target.host = host;
    f.target.path = path;
    char *text = print(&f, LOAD_FORM_TEXT, NULL);
    check_lines(text);
    has(text, "http://hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh...\\x0a");
    free(text);
    memset(host, 's', sizeof(host) - 1);
    f.target.socket = host;
    f.target.path = "/index.html";
    text = print(&f, LOAD_FORM_TEXT, NULL);
    check_lines(text);
    has(text, "unix:ssssssssssssssssssssssssssssssss...:/index.html\n");
    free(text);
    fixture_done(&f);
}

static void an_invalid_result_names_cause_and_cure(void **state)
{
    (void)state;
    static struct fixture f;
    fixture_init(&f, 1);
    fixture_fill(&f.outcomes[0], 1);
    f.outcomes[0].busiest_thread_ns = 9000000000;
    char *text = print(&f, LOAD_FORM_TEXT, NULL);
    check_lines(text);
    has(text, "INVALID:");
    has(text, "busiest thread used 90 % of a CPU");
    has(text, "Use more --threads");
    assert_null(strstr(text, "Valid:"));
    free(text);
    fixture_done(&f);
}

static void prints_several_steps_as_a_table(void **state)
{
    (void)state;
    static struct fixture f;
    fixture_init(&f, 3);
    for (unsigned i = 0; i < 3; i++)
        fixture_fill(&f.outcomes[i], i + 1);
    f.outcomes[2].longest_gap_ns = 2000000000;
    f.outcomes[1].busiest_thread_ns = 9000000000;
    char *text = print(&f, LOAD_FORM_TEXT, "p99.9<2.9999999999999999ms");
    check_lines(text);
    has(text, "INVALID: 1 of 3 steps, marked !");
    has(text, "1 step; in number 2 (users: 40):");
    has(text, " !\n");
    free(text);
    text = print(&f, LOAD_FORM_CSV, NULL);
    unsigned lines = 0;
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        lines++;
    assert_int_equal(lines, 4);
    free(text);
    fixture_done(&f);
}

/* Without answers no number is invented, and the JSON stays valid. */
static void prints_a_step_without_answers(void **state)
{
    (void)state;
    static struct fixture f;
    fixture_init(&f, 1);
    f.outcomes[0].measured_ns = 0;
    char *text = print(&f, LOAD_FORM_TEXT, NULL);
    check_lines(text);
    has(text, "INVALID: nothing was measured.");
    has(text, "No request was sent.");
    assert_null(strstr(text, "standard deviation"));
    free(text);
    f.outcomes[0].unfinished = 10;
    f.outcomes[0].longest_wait_ns = 11000000000;
    text = print(&f, LOAD_FORM_TEXT, NULL);
    has(text, "INVALID: nothing was measured.\n  No request was answered.\n  Requests under "
              "way at the end: 10; the longest had waited for 11.0 s.\n");
    assert_null(strstr(text, "See the errors"));
    free(text);
    f.outcomes[0].error[LOAD_connect_refused] = 20;
    text = print(&f, LOAD_FORM_JSON, "p99<10ms");
    has(text, "\"slos_met\":false");
    has(text, "{\"text\":\"p99<10ms\",\"value\":null,\"met\":false}");
    free(text);
    text = print(&f, LOAD_FORM_TEXT, "p99<10ms");
    has(text, "MISSED  p99<10ms                         no answer\n");
    has(text, "INVALID: all requests failed.");
    has(text, "All 20 requests that ended have failed.\n    See the errors; ");
    free(text);
    for (unsigned form = LOAD_FORM_JSON; form <= LOAD_FORM_CSV; form++) {
        text = print(&f, (enum load_form)form, NULL);
        assert_null(strstr(text, "nan"));
        assert_null(strstr(text, "inf"));
        free(text);
    }
    fixture_done(&f);
}

static void prints_intended_times_of_an_open_loop(void **state)
{
    (void)state;
    static struct fixture f;
    fixture_init(&f, 1);
    fixture_fill(&f.outcomes[0], 1);
    f.plan.loop = LOAD_OPEN;
    f.outcomes[0].step.rate = 4000;
    f.outcomes[0].requests = 40000;
    f.outcomes[0].unsent = 400;
    for (unsigned i = 0; i < 40000; i++)
        load_durations_add(&f.outcomes[0].intended, 7000000);
    char *text = print(&f, LOAD_FORM_TEXT, "mean<6ms");
    check_lines(text);
    has(text, "rate of 4000 requests/s requested");
    has(text, "since due     response");
    has(text, "requests due                   40400  40000 sent, 400 not sent");
    has(text, "MISSED  mean<6ms                         7.00 ms");
    free(text);
    fixture_done(&f);
}

/* The labels of the rows: what is at least three columns before the numbers. */
static void every_row_is_explained(void **state)
{
    (void)state;
    static const char *const plain[] = {
        "mean", "standard deviation", "min", "p50", "p75", "p90", "p95", "p99", "p99.9", "p99.99",
        "max"
    };
    static struct fixture f;
    fixture_init(&f, 1);
    fixture_fill(&f.outcomes[0], 1);
    fixture_add_tls(&f, 0, 1);
    explains = true;
    char *text = print(&f, LOAD_FORM_TEXT, "p99<1s");
    explains = false;
    check_lines(text);
    char *words = strstr(text, "\nWhat the words mean\n");
    assert_non_null(words);
    *words++ = '\0';
    unsigned rows = 0;
    for (char *line = strtok(text, "\n"); line && strncmp(line, "Valid:", 6) != 0;
         line = strtok(NULL, "\n")) {
        char label[32];
        if (strncmp(line, "  ", 2) != 0 || line[2] == ' ' || strlen(line) < 26 || line[25] != ' ')
            continue;
        (void)snprintf(label, sizeof(label), "%.24s", line + 2);
        for (size_t end = strlen(label); end > 0 && label[end - 1] == ' ';)
            label[--end] = '\0';
        bool known = strcmp(label, "TLS") == 0 || strncmp(label, "met ", 4) == 0;
        for (unsigned i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
            known = known || strcmp(label, plain[i]) == 0;
        char row[40];
        (void)snprintf(row, sizeof(row), "\n  %s\n      ", label);
        if (!known && !strstr(words, row))
            fail_msg("`%s` is not explained in\n%s", label, words);
        rows++;
    }
    assert_true(rows > 15);
    free(text);
    fixture_done(&f);
}

static void names_a_file_that_cannot_be_written(void **state)
{
    (void)state;
    static struct fixture f;
    struct load_slos slos = { 0 };
    struct load_report report;
    const char *path = NULL;
    fixture_init(&f, 1);
    fixture_fill(&f.outcomes[0], 1);
    assert_int_equal(load_report_init(&report, &f.run, &slos), 0);
    FILE *full = fopen("/dev/full", "we");
    FILE *none = fopen("/dev/null", "we");
    assert_true(full && none);
    struct load_report_output how = { .form = LOAD_FORM_JSON };
    assert_int_equal(load_report_print(&report, &how, full, &path), -ENOSPC);
    assert_string_equal(path, "standard output");
    how.hgrm = "/dev/full";
    assert_int_equal(load_report_print(&report, &how, none, &path), -ENOSPC);
    assert_string_equal(path, "/dev/full");
    how.hgrm = NULL;
    how.ndjson = "/nonexistent/file";
    assert_int_equal(load_report_print(&report, &how, none, &path), -ENOENT);
    assert_string_equal(path, "/nonexistent/file");
    (void)fclose(full);
    (void)fclose(none);
    load_report_done(&report);
    fixture_done(&f);
}

static void writes_a_histogram_file_for_each_step(void **state)
{
    (void)state;
    static struct fixture f;
    struct load_slos slos = { 0 };
    struct load_report report;
    char folder[] = P_tmpdir "/weir.print-XXXXXX", path[64], made[2][64];
    const char *failed;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(made[0], sizeof(made[0]), "%s/out.1.hgrm", folder);
    (void)snprintf(made[1], sizeof(made[1]), "%s/out.2.hgrm", folder);
    fixture_init(&f, 2);
    fixture_fill(&f.outcomes[0], 1);
    assert_int_equal(load_report_init(&report, &f.run, &slos), 0);
    FILE *none = fopen("/dev/null", "we");
    assert_non_null(none);
    (void)snprintf(path, sizeof(path), "%s/out.hgrm", folder);
    struct load_report_output how = { .hgrm = path };
    assert_int_equal(load_report_print(&report, &how, none, &failed), 0);
    assert_int_equal(unlink(made[0]) | unlink(made[1]), 0);
    path[strlen(path) - 5] = '\0'; /* a file without an extension, in a folder with one */
    made[0][strlen(made[0]) - 5] = made[1][strlen(made[1]) - 5] = '\0';
    assert_int_equal(load_report_print(&report, &how, none, &failed), 0);
    assert_int_equal(unlink(made[0]) | unlink(made[1]) | rmdir(folder), 0);
    (void)fclose(none);
    load_report_done(&report);
    fixture_done(&f);
}

static void formats_numbers_with_three_digits_and_a_unit(void **state)
{
    (void)state;
    assert_string_equal(load_format_time(0).text, "0.00 us");
    assert_string_equal(load_format_time(1234).text, "1.23 us");
    assert_string_equal(load_format_time(999400).text, "999 us");
    assert_string_equal(load_format_time(999600).text, "1.00 ms");
    assert_string_equal(load_format_time(12345678).text, "12.3 ms");
    assert_string_equal(load_format_time(3600e9).text, "3600 s");
    assert_string_equal(load_format_time(-5e6).text, "-5.00 ms");
    assert_string_equal(load_format_bytes(0).text, "0 B");
    assert_string_equal(load_format_bytes(1023).text, "1023 B");
    assert_string_equal(load_format_bytes(1536).text, "1.50 KiB");
    assert_string_equal(load_format_bytes(5e12).text, "4.55 TiB");
    assert_string_equal(load_format_share(0).text, "0.00 %");
    assert_string_equal(load_format_share(0.0001).text, "0.0100 %");
    assert_string_equal(load_format_share(1).text, "100.00 %");
    assert_string_equal(load_format_number(23507.1).text, "23507");
    assert_string_equal(load_format_number(12.34).text, "12.3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_invalid_result_wins_over_a_missed_objective),
        cmocka_unit_test(every_step_must_meet_an_objective),
        cmocka_unit_test(prints_all_numbers_of_one_step),
        cmocka_unit_test(failed_requests_are_in_the_verdict),
        cmocka_unit_test(an_interrupted_run_names_its_last_step),
        cmocka_unit_test(an_interrupted_warm_up_leaves_whole_steps),
        cmocka_unit_test(prints_handshakes_and_what_was_agreed_on),
        cmocka_unit_test(shortens_names_and_escapes_control_bytes),
        cmocka_unit_test(an_invalid_result_names_cause_and_cure),
        cmocka_unit_test(prints_several_steps_as_a_table),
        cmocka_unit_test(prints_a_step_without_answers),
        cmocka_unit_test(prints_intended_times_of_an_open_loop),
        cmocka_unit_test(every_row_is_explained),
        cmocka_unit_test(names_a_file_that_cannot_be_written),
        cmocka_unit_test(writes_a_histogram_file_for_each_step),
        cmocka_unit_test(formats_numbers_with_three_digits_and_a_unit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
