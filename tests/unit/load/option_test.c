/* SPDX-License-Identifier: MIT
 *
 * A command line becomes a plan. The messages of mistakes are in tests/e2e/test_load.py.
 */
#include "load/option.h"

#include "load/value.h"
#include "os/socket.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/un.h>

#include <cmocka.h>

enum { WORDS_MAX = 16 };

static bool take_url(void *into, const char *url, struct option_refusal *refusal)
{
    return load_reading_url(into, url, refusal);
}

/* Parses words that are divided by spaces. End with load_reading_done. */
static bool parse(const char *text, struct load_reading *reading, struct option_refusal *refusal)
{
    static const struct option_group groups[] = { { .options = load_option_table },
                                                  { .options = NULL } };
    static const struct option_command command = { .name = "load",
                                                   .groups = groups,
                                                   .take_argument = take_url };
    static char storage[512];
    const char *words[WORDS_MAX + 1] = { NULL };
    (void)snprintf(storage, sizeof(storage), "%s", text);
    unsigned count = 0;
    for (char *rest = NULL, *word = strtok_r(storage, " ", &rest); word && count < WORDS_MAX;
         word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    assert_true(load_reading_begin(reading));
    return option_read(&command, words, reading, refusal) == OPTION_GOOD &&
           load_reading_finish(reading, refusal);
}

static struct load_reading reading;

static struct load_plan *plan_of(const char *text)
{
    struct option_refusal refusal;
    if (!parse(text, &reading, &refusal))
        fail_msg("`%s`: %s", text, refusal.text);
    return &reading.plan;
}

static void has_defaults(void **state)
{
    (void)state;
    struct load_plan *plan = plan_of("http://127.0.0.1:8080/a?b#c");
    assert_int_equal(plan->step_count, 1);
    assert_int_equal(plan->steps[0].users, 10);
    assert_true(plan->duration_ns == 10000000000 && plan->warmup_ns == 1000000000);
    assert_int_equal(plan->loop, LOAD_CLOSED);
    assert_true(plan->keep_alive && plan->pipeline == 1 && plan->threads == 1);
    const struct load_target *target = &plan->targets[0];
    const char *request = "GET /a?b HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";
    assert_int_equal(target->request_len, strlen(request));
    assert_memory_equal(target->request, request, strlen(request));
    load_reading_done(&reading);
}

static void reads_steps(void **state)
{
    (void)state;
    static const unsigned users[] = { 1, 2, 5, 10, 20, 30, 7, 8 };
    struct load_plan *plan = plan_of("127.0.0.1 --steps 1,2,5,10..35:10,7..8");
    assert_int_equal(plan->step_count, 8);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(plan->steps[i].users, users[i]);
    load_reading_done(&reading);
    plan = plan_of("127.0.0.1 --rate 100,250.5 --poisson");
    assert_int_equal(plan->loop, LOAD_OPEN);
    assert_true(plan->poisson && plan->steps[1].rate == 250.5);
    assert_int_equal(plan->steps[1].users, 100);
    load_reading_done(&reading);
}

static void reads_times(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum load_think_kind kind;
        uint64_t low_ns, high_ns;
    } rows[] = {
        { "40ms", LOAD_THINK_CONSTANT, 40000000, 40000000 },
        { "0", LOAD_THINK_CONSTANT, 0, 0 },
        { "exp:1.5s", LOAD_THINK_EXPONENTIAL, 1500000000, 1500000000 },
        { "uniform:10us..70ms", LOAD_THINK_UNIFORM, 10000, 70000000 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct load_think think;
        assert_true(load_value_think(span_text(rows[i].text), &think));
        assert_int_equal(think.kind, rows[i].kind);
        assert_true(think.low_ns == rows[i].low_ns && think.high_ns == rows[i].high_ns);
    }
    static const char *const wrong[] = { "",       "40",           "ms",         "-1s",
                                         "1 s",    "exp:",         "uniform:1s", "uniform:2s..1s",
                                         "1.2.3s", "99999999999h", "1d" };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct load_think think;
        if (load_value_think(span_text(wrong[i]), &think))
            fail_msg("`%s` was accepted", wrong[i]);
    }
}

static void reads_addresses(void **state)
{
    (void)state;
    struct load_plan *plan = plan_of("http://[::1]:81 unix:/run/x:y/w.sock:/p /q 127.0.0.1:82/r "
                                     "localhost:82/s");
    assert_int_equal(plan->target_count, 5);
    assert_int_equal(plan->targets[0].address.ss_family, AF_INET6);
    assert_string_equal(plan->targets[0].host, "[::1]:81");
    assert_string_equal(plan->targets[0].path, "/");
    struct sockaddr_un un;
    memcpy(&un, &plan->targets[1].address, sizeof(un));
    assert_string_equal(un.sun_path, "/run/x:y/w.sock");
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(plan->targets[i].socket != NULL, i == 1 || i == 2);
    assert_string_equal(plan->targets[2].socket, "/run/x:y/w.sock");
    assert_string_equal(plan->targets[1].path, "/p");
    assert_string_equal(plan->targets[2].path, "/q");
    static const unsigned origins[] = { 0, 1, 1, 3, 3 }; /* equal numbers share connections */
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(plan->targets[i].origin, origins[i]);
    load_reading_done(&reading);
}

static void reads_https(void **state)
{
    (void)state;
    struct load_plan *plan = plan_of("HTTPS://localhost:8443/a /b https://[::1]/ https://127.0.0.1 "
                                     "https://LOCALHOST:8443/c http://localhost:8443/d --insecure");
    static const struct {
        const char *name;
        unsigned origin, port;
    } rows[] = { { "localhost", 0, 8443 }, { "localhost", 0, 8443 }, { "::1", 2, 443 },
                 { "127.0.0.1", 3, 443 },  { "LOCALHOST", 0, 8443 }, { "localhost", 5, 8443 } };
    assert_int_equal(plan->target_count, sizeof(rows) / sizeof(rows[0]));
    for (unsigned i = 0; i < plan->target_count; i++) {
        const struct load_target *target = &plan->targets[i];
        struct os_socket_address address = { .len = target->address_len };
        address.storage = target->address;
        assert_string_equal(target->name, rows[i].name);
        assert_int_equal(target->tls, i < 5);
        assert_int_equal(target->origin, rows[i].origin);
        assert_int_equal(os_socket_port(&address), rows[i].port);
    }
    assert_int_equal(plan->tls, LOAD_TLS_RESUME);
    assert_true(plan->insecure && plan->client);
    load_reading_done(&reading);
    assert_int_equal(plan_of("https://127.0.0.1 --insecure --tls full")->tls, LOAD_TLS_FULL);
    load_reading_done(&reading);
    plan = plan_of("127.0.0.1");
    assert_true(plan->tls == LOAD_TLS_NONE && !plan->client);
    load_reading_done(&reading);
}

/* One address that two hosts share needs a connection for each of them. */
static void hosts_with_tls_share_no_connection(void **state)
{
    (void)state;
    struct load_plan *plan =
        plan_of("https://127.0.0.1:1 https://localhost:1 http://127.0.0.1:1 http://localhost:1 "
                "--insecure");
    bool same = plan->targets[1].address.ss_family == AF_INET; /* else localhost is ::1 */
    assert_int_equal(plan->targets[1].origin, 1);
    assert_int_equal(plan->targets[2].origin, 2);
    assert_int_equal(plan->targets[3].origin, same ? 2 : 3);
    load_reading_done(&reading);
}

static uint64_t digest_of(const char *text)
{
    uint64_t digest = load_plan_digest(plan_of(text));
    load_reading_done(&reading);
    return digest;
}

static void the_digest_covers_the_protocol(void **state)
{
    (void)state;
    uint64_t http1 = digest_of("http://127.0.0.1:8080/");
    uint64_t http2 = digest_of("http://127.0.0.1:8080/ --http2");
    assert_true(http1 != http2);
    assert_true(http2 == digest_of("--http2 http://127.0.0.1:8080/ --users 7"));
    assert_true(http2 != digest_of("http://127.0.0.1:8080/ --http2 --pipeline 2"));
}

/* Later header blocks of a connection refer to the host of the first one. */
static void hosts_share_connections_only_without_http2(void **state)
{
    (void)state;
    static const char urls[] =
        "http://127.0.0.1:8080/a http://127.1:8080/b /c http://127.0.0.1:8080/d ";
    char text[128];
    const struct load_plan *plan = plan_of(urls);
    for (size_t i = 0; i < plan->target_count; i++)
        assert_int_equal(plan->targets[i].origin, 0);
    load_reading_done(&reading);
    (void)snprintf(text, sizeof(text), "%s--http2", urls);
    plan = plan_of(text);
    static const unsigned expected[] = { 0, 1, 1, 0 };
    for (size_t i = 0; i < plan->target_count; i++) {
        assert_int_equal(plan->targets[i].origin, expected[i]);
        for (unsigned form = 0; form < LOAD_HTTP2_FORMS; form++)
            assert_true(plan->targets[i].block[form].len > 0);
    }
    load_reading_done(&reading);
}

static void the_digest_covers_tls(void **state)
{
    (void)state;
    uint64_t plain = digest_of("http://127.0.0.1:8443/");
    uint64_t resumed = digest_of("https://127.0.0.1:8443/ --insecure");
    assert_true(plain != resumed);
    assert_true(resumed == digest_of("https://127.0.0.1:8443/ --insecure --tls resume"));
    assert_true(resumed != digest_of("https://127.0.0.1:8443/ --insecure --tls full"));
    /* Verification is the generator's business, and no other load for the server. */
    assert_true(resumed == digest_of("https://127.0.0.1:8443/"));
}

static void makes_requests(void **state)
{
    (void)state;
    struct load_plan *plan =
        plan_of("127.0.0.1/x -H Host:b --header=A:1 --data abc --no-keepalive -XPUT");
    const char *request = "PUT /x HTTP/1.1\r\nHost:b\r\nA:1\r\nConnection: close\r\n"
                          "Content-Length: 3\r\n\r\nabc";
    assert_int_equal(plan->targets[0].request_len, strlen(request));
    assert_memory_equal(plan->targets[0].request, request, strlen(request));
    assert_false(plan->head);
    load_reading_done(&reading);
    plan = plan_of("127.0.0.1 --method HEAD");
    assert_true(plan->head);
    load_reading_done(&reading);
}

static void divides_among_shards(void **state)
{
    (void)state;
    uint64_t users = 0;
    for (unsigned i = 0; i < 3; i++) {
        char text[64];
        (void)snprintf(text, sizeof(text), "127.0.0.1 --users 20 --shard %u/3", i);
        struct load_plan *plan = plan_of(text);
        assert_int_equal(plan->shard, i);
        users += plan->steps[0].users;
        load_reading_done(&reading);
    }
    assert_int_equal(users, 20);
    struct load_plan *plan = plan_of("127.0.0.1 --rate 90 --requests 10 --shard 0/3");
    assert_true(plan->steps[0].rate == 30 && plan->requests == 10);
    load_reading_done(&reading);
}

static void reads_cpus_and_sources(void **state)
{
    (void)state;
    struct load_plan *plan = plan_of("127.0.0.1 --cpus 1,4-6 --source 127.0.0.2,::1 --threads 4");
    static const int cpus[] = { 1, 4, 5, 6 };
    assert_int_equal(plan->cpu_count, 4);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(plan->cpus[i], cpus[i]);
    assert_int_equal(plan->source_count, 2);
    assert_int_equal(plan->sources[0].ss_family, AF_INET);
    assert_int_equal(plan->sources[1].ss_family, AF_INET6);
    load_reading_done(&reading);
}

static void refuses_options_that_contradict_each_other(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } rows[] = {
        { "127.0.0.1 --userz=3", "unknown option --userz; did you mean --users?" },
        { "127.0.0.1 --pace 1s --rate 5",
          "--pace is for each user, --rate for all together; choose one" },
        { "127.0.0.1 --rate 5 --pace 1s",
          "--pace is for each user, --rate for all together; choose one" },
        { "127.0.0.1 --requests 5 --duration 1s",
          "--requests and --duration both say when it ends; choose one" },
    };
    struct option_refusal refusal;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_false(parse(rows[i].text, &reading, &refusal));
        assert_string_equal(refusal.text, rows[i].why);
        load_reading_done(&reading);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_defaults),
        cmocka_unit_test(reads_steps),
        cmocka_unit_test(reads_times),
        cmocka_unit_test(reads_addresses),
        cmocka_unit_test(reads_https),
        cmocka_unit_test(hosts_with_tls_share_no_connection),
        cmocka_unit_test(the_digest_covers_tls),
        cmocka_unit_test(the_digest_covers_the_protocol),
        cmocka_unit_test(hosts_share_connections_only_without_http2),
        cmocka_unit_test(makes_requests),
        cmocka_unit_test(divides_among_shards),
        cmocka_unit_test(reads_cpus_and_sources),
        cmocka_unit_test(refuses_options_that_contradict_each_other),
    };
    return cmocka_run_group_tests_name("parse", tests, NULL, NULL);
}
