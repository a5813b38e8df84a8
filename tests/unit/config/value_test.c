/* SPDX-License-Identifier: MIT
 *
 * One value at a time: what each kind of setting accepts, its canonical form, and
 * the reason for a refusal.
 */
#include "config/value.h"

#include "config/address.h"
#include "config/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

struct row {
    const char *text;
    const char *expected; /* the canonical form, or a part of the reason */
};

static struct config_arena arena;

static int drop_arena(void **state)
{
    (void)state;
    config_arena_done(&arena);
    return 0;
}

static const struct config_setting *setting(enum config_setting_place place)
{
    return &config_setting_table[place];
}

static void assert_taken(enum config_setting_place place, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *text;
        struct config_reason reason;
        if (!config_value_check(setting(place), span_text(rows[i].text), SPAN("conf/"), &arena,
                                &text, &reason))
            fail_msg("%s: `%s` was refused: %s", setting(place)->name, rows[i].text, reason.text);
        if (strcmp(text, rows[i].expected) != 0)
            fail_msg("%s: `%s` became `%s`, expected `%s`", setting(place)->name, rows[i].text,
                     text, rows[i].expected);
        const char *again;
        if (!config_value_check(setting(place), span_text(text), SPAN(""), &arena, &again,
                                &reason) ||
            strcmp(text, again) != 0)
            fail_msg("%s: `%s` is not stable", setting(place)->name, text);
    }
}

static void assert_refused(enum config_setting_place place, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *text = "unwritten";
        struct config_reason reason;
        if (config_value_check(setting(place), span_text(rows[i].text), SPAN(""), &arena, &text,
                               &reason))
            fail_msg("%s: `%s` was taken as `%s`", setting(place)->name, rows[i].text, text);
        assert_string_equal(text, "unwritten");
        if (!strstr(reason.text, rows[i].expected))
            fail_msg("%s: `%s` is refused with `%s`, expected `%s` in it", setting(place)->name,
                     rows[i].text, reason.text, rows[i].expected);
    }
}

#define TAKEN(field, ...) \
    do { \
        static const struct row rows[] = { __VA_ARGS__ }; \
        assert_taken(SETTING_##field, rows, sizeof(rows) / sizeof(rows[0])); \
    } while (0)
#define REFUSED(field, ...) \
    do { \
        static const struct row rows[] = { __VA_ARGS__ }; \
        assert_refused(SETTING_##field, rows, sizeof(rows) / sizeof(rows[0])); \
    } while (0)

static void accepts_addresses_of_every_form(void **state)
{
    (void)state;
    TAKEN(listen, { "8080", "127.0.0.1:8080" }, { "0", "127.0.0.1:0" },
          { "127.0.0.1:8080", "127.0.0.1:8080" }, { "[::1]:8080", "[::1]:8080" },
          { "[2001:db8::1]:65535", "[2001:db8::1]:65535" }, { "*:80", "*:80" },
          { "unix:/run/weir.sock", "unix:/run/weir.sock" },
          { "unix:weir.sock", "unix:conf/weir.sock" }, { "localhost:80", "localhost:80" },
          { "LocalHost:0", "localhost:0" }, { "[2001:DB8::1]:80", "[2001:db8::1]:80" });
}

static void accepts_addresses_with_a_scheme(void **state)
{
    (void)state;
    TAKEN(listen, { "http://127.0.0.1:8080", "127.0.0.1:8080" }, { "http://*", "*:80" },
          { "https://*:443", "https://*:443" }, { "https://*", "https://*:443" },
          { "HTTPS://LOCALHOST:8443/", "https://localhost:8443" },
          { "https://localhost", "https://localhost:443" },
          { "https://[::1]", "https://[::1]:443" }, { "https://8443", "https://127.0.0.1:8443" },
          { "https://192.0.2.1:0", "https://192.0.2.1:0" }, { "http://[::1]/", "[::1]:80" });
    REFUSED(listen, { "https://", "write https://*:443" }, { "http:///", "write http://*:80" },
            { "https://unix:/run/weir.sock", "no scheme and no TLS; write unix:/run/weir.sock" },
            { "https://*:443/page", "only scheme, address and port" },
            { "ftp://*:21", "neither http:// nor https://" },
            { "https://http://*:80", "has a path" }, { "https://example.org", "not an address" },
            { "https://example.org:443", "not an IP address" }, { "https://*:65536", "too large" },
            { "https://:443", "write *:443" });
    TAKEN(stats_listen, { "http://localhost:8081", "localhost:8081" }, { "off", "off" },
          { "https://localhost:8081", "https://localhost:8081" });
    REFUSED(stats_listen, { "https://unix:/run/weir.sock", "no scheme and no TLS" });
}

static void expands_an_address_to_the_places_that_it_names(void **state)
{
    (void)state;
    struct config_place places[CONFIG_PLACES_MAX];
    assert_int_equal(config_address_places("https://localhost:8443", places), 2);
    assert_string_equal(places[0].address, "127.0.0.1:8443");
    assert_string_equal(places[1].address, "[::1]:8443");
    assert_true(places[0].tls && places[1].tls && places[0].optional && places[1].optional);
    assert_int_equal(config_address_places("*:80", places), 1);
    assert_string_equal(places[0].address, "*:80");
    assert_false(places[0].tls || places[0].optional);
    assert_int_equal(config_address_places("unix:/run/localhost", places), 1);
    assert_string_equal(places[0].address, "unix:/run/localhost");
}

static void refuses_other_addresses_with_cause_and_remedy(void **state)
{
    (void)state;
    REFUSED(listen, { "", "missing" }, { "65536", "too large" },
            { "99999999999999999999999", "not an address" }, { "-1", "not an address" },
            { "+80", "not an address" }, { "80 80", "not an address" },
            { "127.0.0.1", "no port; write 127.0.0.1:8080" }, { "*", "no port; write *:8080" },
            { "[::1]", "no port; write [::1]:8080" }, { "127.0.0.1:", "ends without a port" },
            { "127.0.0.1:http", "`http` is not a port" }, { "127.0.0.1:80x", "`80x`" },
            { ":80", "write *:80" }, { "::1:80", "needs brackets" }, { "::1", "needs brackets" },
            { "[::g]:80", "not an IPv6 address" }, { "[]:80", "not an IPv6 address" },
            { "[:80", "not an IPv6 address" }, { "300.0.0.1:80", "not an IP address" },
            { "127.0.0:80", "not an IP address" }, { "localhost", "no port; write localhost:8080" },
            { "localhost:", "without a port" }, { "example.org:80", "not an IP" },
            { "localhost.example.org:80", "not an IP" },
            { "/run/weir.sock", "unix:/run/weir.sock" }, { "unix:", "no path" },
            { "unix:/run/", "is a folder" },
            { "unix:/12345678901234567890123456789012345678901234567890123456789012345678901234567"
              "890123456789012345678901234567",
              "at most 107" });
}

static void knows_which_addresses_other_machines_can_reach(void **state)
{
    (void)state;
    assert_true(config_address_is_public(SPAN("*:80")));
    assert_true(config_address_is_public(SPAN("0.0.0.0:80")));
    assert_true(config_address_is_public(SPAN("[::]:80")));
    assert_true(config_address_is_public(SPAN("192.0.2.1:80")));
    assert_false(config_address_is_public(SPAN("127.0.0.1:80")));
    assert_false(config_address_is_public(SPAN("127.9.9.9:80")));
    assert_false(config_address_is_public(SPAN("[::1]:80")));
    assert_false(config_address_is_public(SPAN("unix:/a:0")));
    assert_false(config_address_is_public(SPAN("localhost:80")));
    assert_false(config_address_is_public(SPAN("https://localhost:443")));
    assert_false(config_address_is_public(SPAN("https://127.0.0.1:443")));
    assert_true(config_address_is_public(SPAN("https://*:443")));
    assert_true(config_address_is_any_port(SPAN("https://localhost:0")));
    assert_true(config_address_is_any_port(SPAN("127.0.0.1:0")));
    assert_true(config_address_is_any_port(SPAN("[::1]:00")));
    assert_false(config_address_is_any_port(SPAN("127.0.0.1:80")));
    assert_false(config_address_is_any_port(SPAN("unix:/a:0")));
}

static void accepts_numbers_with_their_units(void **state)
{
    (void)state;
    TAKEN(workers, { "auto", "auto" }, { "1", "1" }, { "1024", "1024" });
    REFUSED(workers, { "1025", "from 1 to 1024, or auto" }, { "0", "from 1 to 1024, or auto" },
            { "-1", "number" }, { "1.5", "number" }, { "0x10", "number" }, { "4 ", "number" },
            { "Auto", "number" }, { "18446744073709551617", "number" });
    TAKEN(cache_entries, { "auto", "auto" }, { "1", "1" }, { "16777216", "16777216" });
    REFUSED(cache_entries, { "many", "number" }, { "16777217", "16777216" });
    TAKEN(cache_size_bytes, { "auto", "auto" }, { "0", "0" }, { "1", "1" }, { "64M", "64M" },
          { "64m", "64m" }, { "1024G", "1024G" });
    REFUSED(cache_size_bytes, { "64MB", "256K, 64M, 1G" }, { "64 M", "not a size" },
            { "M", "not a size" }, { "1.5G", "not a size" }, { "-1", "not a size" },
            { "1025G", "at most 1024G" }, { "18446744073709551615G", "not a size" });
    TAKEN(idle_timeout_ns, { "0", "0" }, { "0s", "0s" }, { "500ms", "500ms" }, { "10s", "10s" },
          { "2m", "2m" }, { "1h", "1h" }, { "1.5s", "1.5s" }, { "8760h", "8760h" });
    REFUSED(idle_timeout_ns, { "10", "write 10s" }, { "s", "not a time" }, { "1d", "not a time" },
            { "10 s", "not a time" }, { "8761h", "at most 8760h" },
            { "18446744073709551615h", "not a time" });
}

static void accepts_ages_also_in_days(void **state)
{
    (void)state;
    TAKEN(hsts_s, { "off", "off" }, { "0", "0" }, { "365d", "365d" }, { "12h", "12h" },
          { "63072000s", "63072000s" });
    REFUSED(hsts_s, { "365", "write off, 12h or 365d" }, { "d", "not a time" },
            { "1.5d", "not a time" }, { "-1d", "not a time" }, { "3651d", "at most 3650d" },
            { "18446744073709551615d", "not a time" }, { "Off", "not a time" });
}

static void accepts_only_the_words_of_a_choice(void **state)
{
    (void)state;
    TAKEN(model, { "auto", "auto" }, { "epoll", "epoll" }, { "percore", "percore" });
    REFUSED(model, { "epol", "did you mean `epoll`?" }, { "EPOLL", "did you mean `epoll`?" });
    REFUSED(cache_policy, { "fifo", "is not sieve or lru" });
    REFUSED(log_level, { "warn", "did you mean `warning`?" });
    REFUSED(server_header, { "yes", "is not on or off" }, { "true", "on or off" });
    REFUSED(user, { "a b", "name of a user" }, { "a:b", "write a:" });
    REFUSED(congestion, { "b/r", "congestion" }, { "sixteen-letters-", "congestion" });
}

static void accepts_a_short_path_for_the_control_socket(void **state)
{
    (void)state;
    TAKEN(control, { "auto", "auto" }, { "off", "off" }, { "/run/w.sock", "/run/w.sock" },
          { "w.sock", "conf/w.sock" });
    REFUSED(control, { "~/w.sock", "`~` is not replaced here" },
            { "/a/path/that/is/longer/than/what/the/address/of/a/unix/socket/has/room/for/which/is/"
              "one/hundred/and/eight/bytes",
              "longer than 107 bytes" });
}

static void paths_begin_at_the_folder_of_the_file(void **state)
{
    (void)state;
    TAKEN(access_log, { "-", "-" }, { "off", "off" }, { "/var/log/a", "/var/log/a" },
          { "a.log", "conf/a.log" });
    TAKEN(root, { "/srv", "/srv" }, { "www", "conf/www" }, { "..", "conf/.." });
    REFUSED(error_log, { "off", "cannot be turned off" });
    REFUSED(root, { "~/www", "`~` is not replaced here" }, { "\"/srv/www\"", "without quotes" },
            { "'/srv/www'", "without quotes" });
    TAKEN(fallback, { "index.html", "index.html" }, { "/app/index.html", "app/index.html" });
    REFUSED(fallback, { "../x", "below the root" }, { "a/../../x", "below the root" },
            { "/", "below the root" }, { "app/", "below the root" }, { "a/..", "below the root" });
    REFUSED(index, { "a/b", "slash" }, { "..", "name of a file" }, { ".", "name of a file" });
}

static void accepts_hosts_without_a_port_in_lower_case(void **state)
{
    (void)state;
    TAKEN(hosts, { "Example.ORG", "example.org" }, { "example.org.", "example.org" },
          { "*.Example.org", "*.example.org" }, { "localhost", "localhost" },
          { "192.0.2.1", "192.0.2.1" }, { "[2001:DB8::1]", "[2001:db8::1]" },
          { "under_score.example", "under_score.example" });
    REFUSED(
        hosts, { "example.org:80", "write example.org, ports are for `listen`" },
        { "http://example.org", "write only the name" }, { "*", "answers any" },
        { "a..b", "not the name" }, { ".a", "write a for the name" }, { "a.*.b", "not the name" },
        { "*.", "not the name" }, { "a b", "not the name" },
        { "b\xc3\xbc"
          "cher.de",
          "xn--" },
        { "[::1]:80", "without a port" }, { "[x]", "IPv6" }, { "[", "IPv6" },
        { "a234567890123456789012345678901234567890123456789012345678901234.org", "not the name" });
}

static void accepts_only_header_lines_that_keep_the_head_intact(void **state)
{
    (void)state;
    TAKEN(headers, { "X-Frame-Options: DENY", "X-Frame-Options: DENY" },
          { "Cache-Control:max-age=3600", "Cache-Control: max-age=3600" },
          { "Link:   </a>; rel=x", "Link: </a>; rel=x" }, { "Vary: Origin", "Vary: Origin" },
          { "X-Name: caf\xc3\xa9", "X-Name: caf\xc3\xa9" });
    REFUSED(headers, { "X-Frame-Options", "no colon" }, { "X Frame: a", "not a field name" },
            { "X : a", "not a field name" }, { ": a", "not a field name" }, { "X:", "no value" },
            { "X:   ", "no value" }, { "X: a\r\nSet-Cookie: b", "control byte" },
            { "X: a\nb", "control byte" }, { "X\r\n: b", "not a field name" },
            { "content-length: 5", "weir itself sends Content-Length" },
            { "Transfer-Encoding: chunked", "weir itself" },
            { "x-content-type-options: nosniff", "weir itself" },
            { "Server: me", "server-header" });
}

static void stores_every_kind_in_its_field(void **state)
{
    (void)state;
    struct config config = { 0 };
    struct config_site site = { 0 };
    static const struct {
        enum config_setting_place place;
        const char *texts[3];
    } given[] = {
        { SETTING_listen, { "*:80", "unix:/a" } },
        { SETTING_workers, { "7" } },
        { SETTING_threads, { "auto" } },
        { SETTING_cache_entries, { "9" } },
        { SETTING_cache_size_bytes, { "3G" } },
        { SETTING_cache_file_max_bytes, { "5" } },
        { SETTING_header_timeout_ns, { "250ms" } },
        { SETTING_idle_timeout_ns, { "2m" } },
        { SETTING_send_timeout_ns, { "0" } },
        { SETTING_drain_timeout_ns, { "0" } },
        { SETTING_server_header, { "on" } },
        { SETTING_model, { "epoll" } },
    };
    config.threads = 5;
    config.drain_timeout_ns = 5;
    for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++)
        config_value_store(setting(given[i].place), given[i].texts, &config);
    static const char *const off[] = { "off", NULL }, *const names[] = { "a", "b", NULL };
    site.listing = true;
    config_value_store(setting(SETTING_listing), off, &site);
    config_value_store(setting(SETTING_index), names, &site);

    assert_string_equal(config.listen[1], "unix:/a");
    assert_null(config.listen[2]);
    assert_int_equal(config.workers, 7);
    assert_int_equal(config.threads, 0);
    assert_int_equal(config.cache_entries, 9);
    assert_int_equal(config.cache_size_bytes, UINT64_C(3) << 30);
    assert_int_equal(config.cache_file_max_bytes, 5);
    assert_int_equal(config.header_timeout_ns, 250000000);
    assert_int_equal(config.idle_timeout_ns, UINT64_C(120000000000));
    assert_int_equal(config.send_timeout_ns, CONFIG_FOREVER_NS);
    assert_int_equal(config.drain_timeout_ns, 0);
    assert_true(config.server_header);
    assert_string_equal(config.model, "epoll");
    assert_false(site.listing);
    assert_string_equal(site.index[1], "b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_addresses_of_every_form),
        cmocka_unit_test(accepts_addresses_with_a_scheme),
        cmocka_unit_test(expands_an_address_to_the_places_that_it_names),
        cmocka_unit_test(accepts_ages_also_in_days),
        cmocka_unit_test(refuses_other_addresses_with_cause_and_remedy),
        cmocka_unit_test(knows_which_addresses_other_machines_can_reach),
        cmocka_unit_test(accepts_numbers_with_their_units),
        cmocka_unit_test(accepts_only_the_words_of_a_choice),
        cmocka_unit_test(accepts_a_short_path_for_the_control_socket),
        cmocka_unit_test(paths_begin_at_the_folder_of_the_file),
        cmocka_unit_test(accepts_hosts_without_a_port_in_lower_case),
        cmocka_unit_test(accepts_only_header_lines_that_keep_the_head_intact),
        cmocka_unit_test(stores_every_kind_in_its_field),
    };
    return cmocka_run_group_tests(tests, NULL, drop_arena);
}
