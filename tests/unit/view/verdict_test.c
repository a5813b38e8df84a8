/* SPDX-License-Identifier: MIT
 *
 * Each rule by itself: a view that just triggers it, and one that just does not.
 */
#include "view/verdict.h"

#include "view/advice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

enum { PROCESSES_MAX = 8, MASTER = 100 };

/* A server that was looked at twice, 200 ms apart. */
static struct stats_snapshot now, earlier;
static struct view_process processes[PROCESSES_MAX], processes_before[PROCESSES_MAX];
static struct view_thread threads[PROCESSES_MAX], threads_before[PROCESSES_MAX];
static struct view view, before;
static struct view_verdict found[VIEW_VERDICTS_MAX];

static void add_process(pid_t pid, unsigned blocks)
{
    processes[view.process_count++] = (struct view_process){ .pid = pid, .threads = blocks };
    processes_before[before.process_count++] = processes[view.process_count - 1];
}

static const struct stats_generation models[] = {
#define MODEL(name, who_accepts, what_serves, ...) \
    { .model = #name, \
      .accepts = STATS_ACCEPTS_##who_accepts, \
      .serves = STATS_SERVES_##what_serves },
#include "model/models.def"
#undef MODEL
};
enum { MODELS = sizeof(models) / sizeof(models[0]) };

/* A healthy server of `model`: nothing is wrong with it. */
static void begin(const char *model, unsigned workers, unsigned threads_each)
{
    memset(&now, 0, sizeof(now));
    now.running = true;
    now.master = MASTER;
    now.started_s = 1000;
    now.heartbeat_ns = 200 * SECOND;
    now.generation = 1;
    struct stats_generation *serving = &now.generations[1];
    unsigned of = 0;
    while (strcmp(models[of].model, model) != 0)
        assert_true(++of < MODELS);
    *serving = models[of];
    serving->number = 1;
    serving->workers = workers;
    serving->threads = threads_each;
    now.moment_count = STATS_MOMENTS;
    for (unsigned i = 0; i < STATS_MOMENTS; i++)
        now.moment[i].at_ns = (200 - STATS_MOMENTS + i) * SECOND;
    view = (struct view){
        .snapshot = &now,
        .process = processes,
        .thread = threads,
        .usage = { .processes = 2, .files_most = 10, .files_limit = 100, .cpus = 8 },
        .read_ns = 200 * SECOND + SECOND / 5,
        .used_ns = 200 * SECOND + SECOND / 5,
        .read_s = 1200,
    };
    before = view;
    before.snapshot = &earlier;
    before.process = processes_before;
    before.thread = threads_before;
    before.read_ns = before.used_ns = 200 * SECOND;
    add_process(MASTER, 1);
    if (view_works_in_threads(serving))
        for (unsigned i = 0; i < threads_each; i++) {
            threads[i] = threads_before[i] = (struct view_thread){ 101, (pid_t)(201 + i), 0 };
            view.thread_count = before.thread_count = i + 1;
        }
    for (unsigned i = 0; i < workers; i++)
        add_process((pid_t)(101 + i), threads_each + 1);
}

static void look(void)
{
    earlier = now;
}

/* The verdict of a rule; NULL: it has nothing to say. */
static const struct view_verdict *verdict(const char *rule)
{
    size_t count = view_verdicts(&view, &before, found);
    const struct view_verdict *one = NULL;
    for (size_t i = 0; i < count; i++) {
        assert_true(i == 0 || found[i].gravity <= found[i - 1].gravity);
        assert_true(found[i].text[0] && found[i].why[0] && found[i].cure[0]);
        if (strcmp(found[i].rule, rule) == 0)
            one = &found[i];
    }
    return one;
}

static void assert_says(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("`%s` is not in: %s", part, text);
}

/* A rise of counter within the last minute gives the verdict; the same number from before, or one
 * less, does not. */
static void assert_risen(const char *rule, enum stats_counter counter, uint64_t least)
{
    now.counter[counter] += 1000 + least - 1;
    for (unsigned i = 0; i < STATS_MOMENTS; i++)
        now.moment[i].counter[counter] += 1000;
    assert_null(verdict(rule));
    now.counter[counter]++;
    assert_non_null(verdict(rule));
}

/* ---- as a whole ---- */

static void a_healthy_server_has_no_verdict(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MODELS; i++) {
        begin(models[i].model, 1, 2);
        look();
        assert_int_equal(view_verdicts(&view, &before, found), 0);
        assert_int_equal(view_verdicts(&view, NULL, found), 0);
    }
}

static void the_gravest_comes_first(void **state)
{
    (void)state;
    begin("epoll", 1, 1);
    now.reload_failed = true;
    now.counter[STATS_accept_overflows] = 1;
    now.counter[STATS_requests] = 1000;
    assert_int_equal(view_verdicts(&view, NULL, found), 3);
    assert_string_equal(found[0].rule, "accept-queue-overflow");
    assert_string_equal(found[1].rule, "reload-failed");
    assert_string_equal(found[2].rule, "keep-alive-unused");
    assert_string_equal(view_verdict_gravity_name(found[0].gravity), "wrong");
    assert_string_equal(view_verdict_gravity_name(found[2].gravity), "note");
}

static void without_moments_the_window_begins_at_the_start(void **state)
{
    (void)state;
    begin("epoll", 1, 1);
    now.moment_count = 0;
    now.counter[STATS_worker_deaths] = 1;
    assert_says(verdict("workers-die")->text, "in 200 s");
}

static void texts_are_bounded_for_any_segment(void **state)
{
    (void)state;
    begin("epoll", 1, 1);
    memset(&now, 0xff, sizeof(now));
    now.parts = NULL;
    now.running = now.reload_failed = true; /* a reader makes these of what it finds */
    now.moment_count = STATS_MOMENTS;
    memset(now.generations[now.generation % STATS_GENERATIONS_MAX].model, 'x', 15);
    now.generations[now.generation % STATS_GENERATIONS_MAX].model[15] = '\0';
    now.reload_error[STATS_TEXT_MAX - 1] = '\0';
    now.counter[STATS_requests] = 0;
    size_t count = view_verdicts(&view, &before, found);
    for (size_t i = 0; i < count; i++)
        assert_true(strlen(found[i].text) < sizeof(found[i].text));
}

/* ---- the server ---- */

static void reports_a_dead_server(void **state)
{
    (void)state;
    begin("epoll", 1, 1);
    assert_null(verdict("not-running"));
    now.running = false;
    assert_int_equal(verdict("not-running")->gravity, VIEW_WRONG);
    assert_null(verdict("master-hangs"));
}

static void reports_a_master_that_hangs(void **state)
{
    (void)state;
    begin("epoll", 1, 1);
    view.heartbeat_age_ns = 5 * SECOND - 1;
    assert_null(verdict("master-hangs"));
    view.heartbeat_age_ns++;
    assert_int_equal(verdict("master-hangs")->gravity, VIEW_WARNING);
    view.heartbeat_age_ns = 15 * SECOND;
    assert_int_equal(verdict("master-hangs")->gravity, VIEW_WRONG);
}

static void reports_workers_that_die(void **state)
{
    (void)state;
    begin("prefork", 4, 10);
    assert_risen("workers-die", STATS_worker_deaths, 1);
    assert_int_equal(verdict("workers-die")->gravity, VIEW_WARNING);
    now.counter[STATS_worker_deaths] += 2;
    assert_int_equal(verdict("workers-die")->gravity, VIEW_WRONG);
}

static void reports_system_calls_that_the_sandbox_refused(void **state)
{
    (void)state;
    begin("epoll", 1, 1);
    assert_risen("calls-refused", STATS_calls_refused, 1);
    assert_int_equal(verdict("calls-refused")->gravity, VIEW_WRONG);
    assert_says(verdict("calls-refused")->text, "refused 1 system call of a worker");
}

static void reports_a_failed_reload_with_its_reason(void **state)
{
    (void)state;
    begin("epoll", 1, 1);
    assert_null(verdict("reload-failed"));
    now.reload_failed = true;
    snprintf(now.reload_error, sizeof(now.reload_error), "weir.conf:3: listne");
    assert_says(verdict("reload-failed")->why, "listne");
    assert_says(verdict("reload-failed")->text, "number 1 stays in force");
}

static void reports_lost_log_lines(void **state)
{
    (void)state;
    begin("epoll", 1, 1);
    assert_risen("log-lines-dropped", STATS_log_lines_dropped, 1);
}

static void reports_logs_that_were_not_opened_again(void **state)
{
    (void)state;
    begin("epoll", 1, 1);
    assert_null(verdict("logs-not-reopened"));
    now.counter[STATS_logs_stale] = 1; /* until a rotation succeeds */
    assert_int_equal(verdict("logs-not-reopened")->gravity, VIEW_WRONG);
    now.counter[STATS_logs_stale] = 0;
    assert_risen("logs-not-reopened", STATS_log_reopens_failed, 1);
}

static void reports_a_folder_that_is_gone(void **state)
{
    (void)state;
    begin("epoll", 1, 1);
    assert_null(verdict("folder-gone"));
    now.counter[STATS_folders_gone] = 1;
    assert_int_equal(verdict("folder-gone")->gravity, VIEW_WRONG);
}

static void reports_certificates_that_cannot_be_used(void **state)
{
    (void)state;
    begin("epoll", 1, 1);
    assert_null(verdict("certificates-stale"));
    now.counter[STATS_certificates_refused] = 3; /* a total: the certificates may be mended */
    assert_null(verdict("certificates-stale"));
    now.counter[STATS_certificates_stale] = 1;
    assert_int_equal(verdict("certificates-stale")->gravity, VIEW_WRONG);
}

static void reports_a_list_of_users_that_cannot_be_used(void **state)
{
    (void)state;
    begin("epoll", 1, 1);
    now.counter[STATS_users_refused] = 3; /* a total: the list may be mended */
    assert_null(verdict("users-stale"));
    now.counter[STATS_users_stale] = 1;
    assert_int_equal(verdict("users-stale")->gravity, VIEW_WRONG);
}

static void reports_lines_of_rules_that_cannot_be_used(void **state)
{
    (void)state;
    begin("epoll", 1, 1);
    assert_null(verdict("site-rules-refused"));
    now.counter[STATS_site_rules_refused] = 2;
    assert_int_equal(verdict("site-rules-refused")->gravity, VIEW_WARNING);
    assert_non_null(strstr(verdict("site-rules-refused")->text, "2 lines of "));
}

static void reports_a_certificate_that_ends_within_two_weeks(void **state)
{
    (void)state;
    begin("epoll", 1, 1);
    assert_null(verdict("certificates-end")); /* there is none */
    view.read_s = 30 * 86400;
    now.counter[STATS_certificates_end_s] = (uint64_t)view.read_s + 14 * 86400;
    assert_null(verdict("certificates-end"));
    now.counter[STATS_certificates_end_s] -= 86400 / 2;
    assert_int_equal(verdict("certificates-end")->gravity, VIEW_WARNING);
    assert_says(verdict("certificates-end")->text, "ends in 13.5 days");
    now.counter[STATS_certificates_end_s] = (uint64_t)view.read_s - 86400;
    assert_int_equal(verdict("certificates-end")->gravity, VIEW_WRONG);
    assert_says(verdict("certificates-end")->text, "ended 1.0 days ago");
}

static void reports_missing_numbers(void **state)
{
    (void)state;
    begin("epoll", 1, 1);
    assert_null(verdict("numbers-incomplete"));
    now.unseen = 1;
    assert_non_null(verdict("numbers-incomplete"));
    now.unseen = 0;
    now.counter[STATS_durations_unrecorded] = 1;
    assert_non_null(verdict("numbers-incomplete"));
}

static void damaged_counts_are_reported(void **state)
{
    (void)state;
    begin("percore", 1, 2);
    assert_null(verdict("statistics-damaged"));
    now.damaged = 1;
    assert_says(verdict("statistics-damaged")->text, "the counts of 1 worker are damaged");
    assert_int_equal(verdict("statistics-damaged")->gravity, VIEW_WRONG);
}

/* ---- connections ---- */

static void an_overflow_names_the_busy_workers(void **state)
{
    (void)state;
    begin("percore", 1, 8);
    threads[3].cpu_ns = 196 * SECOND / 1000;
    assert_risen("accept-queue-overflow", STATS_accept_overflows, 1);
    assert_says(verdict("accept-queue-overflow")->why, "1 of 8 workers is busy 98 %");
    assert_says(verdict("accept-queue-overflow")->text, "overflowed 1 time in 64 s");
    threads[3].cpu_ns = 0;
    assert_says(verdict("accept-queue-overflow")->cure, "somaxconn");
    begin("epoll", 1, 1);
    processes[1].cpu_ns = SECOND / 5;
    now.counter[STATS_accept_overflows] = 1;
    assert_says(verdict("accept-queue-overflow")->why, "the only worker is busy 100 %");
    assert_says(verdict("accept-queue-overflow")->cure, "model = percore");
}

static void reports_open_files_near_their_limit(void **state)
{
    (void)state;
    begin("epoll", 1, 1);
    view.usage.files_most = 79;
    assert_null(verdict("files-near-limit"));
    view.usage.files_most = 80;
    assert_int_equal(verdict("files-near-limit")->gravity, VIEW_WARNING);
    view.usage.files_most = 95;
    assert_int_equal(verdict("files-near-limit")->gravity, VIEW_WRONG);
    assert_says(verdict("files-near-limit")->text, "95 % of its limit (95 of 100)");
    view.usage.files_limit = 0;
    assert_null(verdict("files-near-limit"));
}

static void reports_idle_connections_that_made_space(void **state)
{
    (void)state;
    begin("epoll", 1, 1);
    assert_risen("idle-displaced", STATS_connections_displaced, 1);
    assert_int_equal(verdict("idle-displaced")->gravity, VIEW_WARNING);
    assert_says(verdict("idle-displaced")->text, "1 idle connection was closed");
}

static void reports_refused_connections_with_the_reason(void **state)
{
    (void)state;
    begin("pool", 1, 10);
    assert_risen("connections-refused", STATS_connections_refused, 1);
    assert_says(verdict("connections-refused")->cure, "pool-queue");
    begin("fork", 1, 1);
    assert_risen("connections-refused", STATS_connections_refused, 1);
    assert_says(verdict("connections-refused")->cure, "ulimit -u");
}

static void reports_refused_listings(void **state)
{
    (void)state;
    begin("percore", 1, 2);
    assert_risen("listings-refused", STATS_listings_refused, 1);
    assert_says(verdict("listings-refused")->cure, "listings");
    assert_int_equal(verdict("listings-refused")->gravity, VIEW_WARNING);
}

static void reports_a_disk_that_is_slow(void **state)
{
    (void)state;
    begin("percore", 1, 2);
    now.counter[STATS_fetch_waits_ended] = 20;
    now.counter[STATS_fetch_waits_us] = 20 * 99999;
    assert_null(verdict("disk-slow"));
    now.counter[STATS_fetch_waits_us] = 20 * 250000;
    assert_says(verdict("disk-slow")->text, "20 times in ");
    assert_says(verdict("disk-slow")->text, "250 ms on average");
    assert_says(verdict("disk-slow")->cure, "cache-size");
    assert_int_equal(verdict("disk-slow")->gravity, VIEW_WARNING);
    now.counter[STATS_fetch_waits_ended] = 19;
    assert_null(verdict("disk-slow"));
}

static void reports_requests_that_a_slow_disk_refuses(void **state)
{
    (void)state;
    begin("percore", 1, 2);
    assert_risen("disk-slow", STATS_fetches_refused, 1);
    begin("percore", 1, 2);
    assert_risen("disk-slow", STATS_fetches_late, 1);
    assert_says(verdict("disk-slow")->text, "1 request was answered 503 in ");
    assert_int_equal(verdict("disk-slow")->gravity, VIEW_WRONG);
}

static void reports_addresses_that_reached_their_limits(void **state)
{
    (void)state;
    begin("percore", 1, 2);
    assert_risen("address-limits", STATS_connections_limited, 1);
    assert_says(verdict("address-limits")->cure, "address-connections");
    begin("percore", 1, 2);
    assert_risen("address-limits", STATS_requests_limited, 1);
    assert_says(verdict("address-limits")->cure, "address-request-rate");
    assert_int_equal(verdict("address-limits")->gravity, VIEW_NOTE);
}

static void reports_floods_over_http_2_with_the_commonest_cause(void **state)
{
    (void)state;
    begin("percore", 1, 2);
    assert_risen("http2-floods", STATS_http2_floods, 1);
    assert_int_equal(verdict("http2-floods")->gravity, VIEW_NOTE);
    assert_says(verdict("http2-floods")->text, "1 HTTP/2 connection was ended");
    now.counter[STATS_HTTP2_FAULT_CONTROL] = 3;
    now.counter[STATS_HTTP2_FAULT_RESETS] = 5;
    now.counter[STATS_HTTP2_FAULT_MALFORMED] = 9; /* a fault that is no flood */
    assert_says(verdict("http2-floods")->why, "is `resets`: more streams are reset");
    now.counter[STATS_http2_floods] += 8;
    assert_int_equal(verdict("http2-floods")->gravity, VIEW_NOTE);
    now.counter[STATS_http2_floods]++;
    assert_int_equal(verdict("http2-floods")->gravity, VIEW_WARNING);
}

static void reports_streams_that_were_refused(void **state)
{
    (void)state;
    begin("percore", 1, 2);
    assert_risen("http2-streams-refused", STATS_http2_streams_refused, 1);
    assert_int_equal(verdict("http2-streams-refused")->gravity, VIEW_NOTE);
    assert_says(verdict("http2-streams-refused")->cure, "http2-streams");
}

static void reports_answers_that_wait_for_windows(void **state)
{
    (void)state;
    begin("percore", 1, 2);
    now.counter[STATS_requests_http_2] += 400;
    now.counter[STATS_http2_stalls] += 99;
    assert_null(verdict("http2-stalls"));
    now.counter[STATS_http2_stalls]++;
    assert_int_equal(verdict("http2-stalls")->gravity, VIEW_NOTE);
    assert_says(verdict("http2-stalls")->text, "waited 100 times");
    now.counter[STATS_requests_http_2] += 105;
    assert_null(verdict("http2-stalls"));
}

static void reports_a_long_wait_for_a_thread(void **state)
{
    (void)state;
    begin("pool", 1, 10);
    struct stats_counts *wait = &now.histogram[STATS_HISTOGRAM_queue_wait];
    struct stats_counts *latency = &now.histogram[STATS_HISTOGRAM_latency];
    latency->bucket[1000] = latency->count = 50; /* some milliseconds */
    wait->bucket[1100] = wait->count = 19;
    memset(&earlier, 0, sizeof(earlier));
    assert_null(verdict("queue-waits-long"));
    wait->bucket[1100] = wait->count = 20;
    assert_non_null(verdict("queue-waits-long"));
    latency->bucket[1200] = 50;
    latency->count = 100;
    assert_null(verdict("queue-waits-long"));
    latency->bucket[1200] = 0;
    latency->count = 50;
    look(); /* it was before, and is not now */
    assert_null(verdict("queue-waits-long"));
}

static void reports_many_broken_connections(void **state)
{
    (void)state;
    begin("epoll", 1, 1);
    now.counter[STATS_connections_closed] = 250;
    assert_risen("many-resets", STATS_connections_reset, 50);
    now.counter[STATS_connections_closed] = 251;
    assert_null(verdict("many-resets"));
}

static void reports_slow_requests(void **state)
{
    (void)state;
    begin("epoll", 1, 1);
    assert_risen("slow-heads", STATS_timeouts_head, 10);
    assert_null(verdict("slow-clients"));
    assert_risen("slow-clients", STATS_timeouts_send, 10);
    begin("epoll", 1, 1);
    assert_risen("slow-clients", STATS_timeouts_body, 10);
}

static void reports_a_connection_for_each_request(void **state)
{
    (void)state;
    begin("epoll", 1, 1);
    now.counter[STATS_requests_reusing] = 199;
    assert_risen("keep-alive-unused", STATS_requests, 1000);
    now.counter[STATS_requests_reusing] = 201;
    assert_null(verdict("keep-alive-unused"));
}

/* ---- work ---- */

static void reports_saturated_workers(void **state)
{
    (void)state;
    begin("percore", 1, 8);
    for (unsigned i = 0; i < 8; i++)
        threads[i].cpu_ns = 179 * SECOND / 1000;
    assert_null(verdict("workers-saturated"));
    for (unsigned i = 0; i < 8; i++)
        threads[i].cpu_ns = 181 * SECOND / 1000;
    assert_says(verdict("workers-saturated")->why, "all workers are busy");
    assert_says(verdict("workers-saturated")->cure, "add some");
    begin("pool", 1, 10); /* one process, that may use all eight */
    processes[1].cpu_ns = 8 * 179 * SECOND / 1000;
    assert_null(verdict("workers-saturated"));
    processes[1].cpu_ns = 8 * 181 * SECOND / 1000;
    assert_non_null(verdict("workers-saturated"));
    begin("epoll", 1, 1);
    processes[1].cpu_ns = 181 * SECOND / 1000;
    assert_says(verdict("workers-saturated")->cure, "model = percore");
}

static void without_an_earlier_view_shares_are_since_the_start(void **state)
{
    (void)state;
    begin("epoll", 1, 1);
    now.generations[1].started_s = 1100;
    processes[1].cpu_ns = 91 * SECOND;
    assert_int_equal(view_verdicts(&view, NULL, found), 1);
    assert_string_equal(found[0].rule, "workers-saturated");
    processes[1].cpu_ns = 89 * SECOND;
    assert_int_equal(view_verdicts(&view, NULL, found), 0);
}

/* A view may have taken what the machine says from the one before. */
static void shares_are_of_the_time_between_measurements(void **state)
{
    (void)state;
    begin("epoll", 1, 1);
    processes[1].cpu_ns = 181 * SECOND / 1000;
    assert_non_null(verdict("workers-saturated"));
    view.read_ns += SECOND;
    assert_non_null(verdict("workers-saturated"));
    view.used_ns = before.used_ns;
    assert_null(verdict("workers-saturated"));
}

static void reports_one_worker_that_does_all(void **state)
{
    (void)state;
    begin("prefork", 4, 1);
    processes[2].cpu_ns = 98 * SECOND / 1000;
    assert_null(verdict("worker-uneven"));
    processes[2].cpu_ns = 110 * SECOND / 1000;
    assert_int_equal(verdict("worker-uneven")->gravity, VIEW_NOTE);
    assert_says(verdict("worker-uneven")->text, "fairness index 0.25 of 1");
    processes[2].cpu_ns = 190 * SECOND / 1000;
    assert_int_equal(verdict("worker-uneven")->gravity, VIEW_WARNING);
    for (unsigned i = 1; i <= 4; i++)
        processes[i].cpu_ns = 150 * SECOND / 1000;
    assert_null(verdict("worker-uneven"));
}

static void reports_failures_once(void **state)
{
    (void)state;
    begin("pool", 1, 10);
    now.counter[STATS_requests] = 1000;
    now.counter[STATS_requests_reusing] = 1000;
    now.counter[STATS_STATUS_503] = 5;
    now.counter[STATS_connections_refused] = 5;
    now.counter[STATS_STATUS_501] = 4;
    now.counter[STATS_answers_5xx_expected] = 4;
    assert_null(verdict("answers-5xx"));
    now.counter[STATS_STATUS_500] = 1;
    assert_int_equal(verdict("answers-5xx")->gravity, VIEW_WARNING);
    now.counter[STATS_STATUS_500] = 10;
    assert_int_equal(verdict("answers-5xx")->gravity, VIEW_WRONG);
}

static void reports_many_answers_of_4xx(void **state)
{
    (void)state;
    begin("epoll", 1, 1);
    now.counter[STATS_STATUS_404] = 20;
    assert_risen("many-4xx", STATS_requests, 100);
    now.counter[STATS_requests]++;
    assert_null(verdict("many-4xx"));
}

static void reports_a_cache_that_is_too_small(void **state)
{
    (void)state;
    begin("epoll", 1, 1);
    now.counter[STATS_cache_hits] = 89;
    now.counter[STATS_cache_misses] = 11;
    assert_null(verdict("cache-too-small"));
    now.counter[STATS_cache_evictions] = 1;
    assert_says(verdict("cache-too-small")->text, "89 %");
    now.generations[1].cache_bytes = 64 << 20;
    now.counter[STATS_cache_misses_half] = 40;
    now.counter[STATS_cache_misses_same] = 20;
    now.counter[STATS_cache_misses_double] = 15;
    assert_says(verdict("cache-too-small")->cure,
                "hit ratio now 89.0 %; about 69.0 % with 32M, 94.0 % with 128M, 100.0 % with 256M");
    now.counter[STATS_cache_hits] = 99;
    assert_null(verdict("cache-too-small"));
}

static void a_cache_for_each_connection_has_no_better_size(void **state)
{
    (void)state;
    char text[VIEW_ADVICE_MAX];
    begin("fork", 1, 1);
    now.generations[1].cache_bytes = 64 << 20;
    view_advice_say(&view, text);
    assert_says(text, "not estimated: each connection begins with an empty cache of its own");
    now.counter[STATS_cache_hits] = 80;
    now.counter[STATS_cache_misses] = 20;
    now.counter[STATS_cache_evictions] = 1;
    now.counter[STATS_cache_misses_double] = 5;
    assert_false(view_advice_of(&view).known);
    assert_says(verdict("cache-too-small")->cure, "`prefork`");
    assert_null(strstr(verdict("cache-too-small")->cure, "hit ratio"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_healthy_server_has_no_verdict),
        cmocka_unit_test(the_gravest_comes_first),
        cmocka_unit_test(without_moments_the_window_begins_at_the_start),
        cmocka_unit_test(texts_are_bounded_for_any_segment),
        cmocka_unit_test(reports_a_dead_server),
        cmocka_unit_test(reports_a_master_that_hangs),
        cmocka_unit_test(reports_workers_that_die),
        cmocka_unit_test(reports_system_calls_that_the_sandbox_refused),
        cmocka_unit_test(reports_a_failed_reload_with_its_reason),
        cmocka_unit_test(reports_lost_log_lines),
        cmocka_unit_test(reports_logs_that_were_not_opened_again),
        cmocka_unit_test(reports_a_folder_that_is_gone),
        cmocka_unit_test(reports_certificates_that_cannot_be_used),
        cmocka_unit_test(reports_a_list_of_users_that_cannot_be_used),
        cmocka_unit_test(reports_lines_of_rules_that_cannot_be_used),
        cmocka_unit_test(reports_a_certificate_that_ends_within_two_weeks),
        cmocka_unit_test(reports_missing_numbers),
        cmocka_unit_test(damaged_counts_are_reported),
        cmocka_unit_test(an_overflow_names_the_busy_workers),
        cmocka_unit_test(reports_open_files_near_their_limit),
        cmocka_unit_test(reports_idle_connections_that_made_space),
        cmocka_unit_test(reports_refused_connections_with_the_reason),
        cmocka_unit_test(reports_refused_listings),
        cmocka_unit_test(reports_a_disk_that_is_slow),
        cmocka_unit_test(reports_requests_that_a_slow_disk_refuses),
        cmocka_unit_test(reports_addresses_that_reached_their_limits),
        cmocka_unit_test(reports_floods_over_http_2_with_the_commonest_cause),
        cmocka_unit_test(reports_streams_that_were_refused),
        cmocka_unit_test(reports_answers_that_wait_for_windows),
        cmocka_unit_test(reports_a_long_wait_for_a_thread),
        cmocka_unit_test(reports_many_broken_connections),
        cmocka_unit_test(reports_slow_requests),
        cmocka_unit_test(reports_a_connection_for_each_request),
        cmocka_unit_test(reports_saturated_workers),
        cmocka_unit_test(without_an_earlier_view_shares_are_since_the_start),
        cmocka_unit_test(shares_are_of_the_time_between_measurements),
        cmocka_unit_test(reports_one_worker_that_does_all),
        cmocka_unit_test(reports_failures_once),
        cmocka_unit_test(reports_many_answers_of_4xx),
        cmocka_unit_test(reports_a_cache_that_is_too_small),
        cmocka_unit_test(a_cache_for_each_connection_has_no_better_size),
    };
    return cmocka_run_group_tests_name("verdict", tests, NULL, NULL);
}
