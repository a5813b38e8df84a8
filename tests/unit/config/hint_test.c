/* SPDX-License-Identifier: MIT
 *
 * What a file and an option say about words that weir does not know: slips, settings in the wrong
 * section, and words of other servers.
 */
#include "unit/config/folder.h"

#include "config/hint.h"

#define UNKNOWN_IN_SITE(line, message) \
    assert_problems("[server]\nlisten = 1\n" SITE line "\n", "weir.conf:5: error: " message "\n")
#define UNKNOWN_IN_SERVER(line, message) \
    assert_problems("[server]\n" line "\n" SITE, "weir.conf:2: error: " message "\n")

static void the_value_decides_between_a_slip_and_a_wrong_section(void **state)
{
    (void)state;
    UNKNOWN_IN_SITE("listings = on", "`listings` does not belong in a site; did you mean "
                                     "`listing`?");
    UNKNOWN_IN_SITE("listings = 16", "`listings` does not belong in a site; it goes under "
                                     "[server]");
    UNKNOWN_IN_SITE("listings = much", "`listings` does not belong in a site; it goes under "
                                       "[server], or did you mean `listing`?");
    UNKNOWN_IN_SERVER("listing = on", "`listing` does not belong in [server]; it goes under [site "
                                      "NAME]");
    UNKNOWN_IN_SERVER("listing = 16", "`listing` does not belong in [server]; did you mean "
                                      "`listings`?");
    UNKNOWN_IN_SERVER("status = off", "`status` does not belong in [server]; did you mean "
                                      "`stats`?");
    UNKNOWN_IN_SERVER("status = 404", "`status` does not belong in [server]; it goes under [path "
                                      "PATTERN]");
    UNKNOWN_IN_SERVER("index = a.html, b.html", "`index` does not belong in [server]; it goes "
                                                "under [site NAME]");
    UNKNOWN_IN_SITE("redirect = on", "`redirect` does not belong in a site; did you mean "
                                     "`https-redirect`?");
    UNKNOWN_IN_SITE("listen = what", "`listen` does not belong in a site; it goes under [server]");
}

static void a_slip_in_the_name_of_another_section_is_found(void **state)
{
    (void)state;
    UNKNOWN_IN_SERVER("tls-certifcate = a", "unknown setting `tls-certifcate`; did you mean "
                                            "`tls-certificate`, which goes under [site NAME]?");
    UNKNOWN_IN_SITE("workres = 1", "unknown setting `workres`; did you mean `workers`, which goes "
                                   "under [server]?");
    UNKNOWN_IN_SITE("frobnicate = 1", "unknown setting `frobnicate`; a site has none like it");
}

static void a_file_and_an_option_explain_the_same_words(void **state)
{
    (void)state;
    static const char *const words[] = { "port",       "gzip",    "root_dir", "sendfile",
                                         "proxy_pass", "Expires", "hostname" };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        struct config_reason line, option;
        const bool known = config_hint_explain(span_text(words[i]), &line);
        assert_int_equal(config_hint_explain_option(span_text(words[i]), &option), known);
        assert_int_equal(known, strcmp(words[i], "root_dir") != 0);
    }
}

static void assert_option(const char *name, const char *expected)
{
    struct config_reason reason = { .text = "" };
    assert_int_equal(config_hint_explain_option(span_text(name), &reason), expected[0] != '\0');
    assert_string_equal(reason.text, expected);
}

static void an_option_of_another_program_is_explained(void **state)
{
    (void)state;
    assert_option("port", "there is no --port; write --listen PORT");
    assert_option("bind", "there is no --bind; write --listen ADDRESS:PORT");
    assert_option("https-port", "there is no --https-port; write --listen 'https://*:PORT'");
    assert_option("gzip", "there is no --gzip; write --compress on|off");
    assert_option("add-header", "there is no --add-header; write --header 'NAME: VALUE'");
    assert_option("directory",
                  "there is no --directory; the folder goes without an option: weir DIR");
    assert_option("root", "there is no --root; the folder goes without an option: weir DIR");
    assert_option("server-name", "there is no --server-name; in a file (-c FILE) write `host = "
                                 "HOST` under [site NAME]");
    assert_option("redirect", "there is no --redirect; in a file (-c FILE) write `redirect = "
                              "STATUS TARGET` under [path PATTERN]");
    assert_option("sendfile",
                  "there is no --sendfile; weir chooses the fastest way by itself; remove it");
    assert_option("proxy-protcol", "");
    assert_option("", "");
}

/* An end of a line may have any case, and hyphens. */
static void words_match_in_any_case_and_with_hyphens(void **state)
{
    (void)state;
    UNKNOWN_IN_SERVER("keepalivetimeout = 5", "`keepalivetimeout` is called `idle-timeout` here; "
                                              "write `idle-timeout = TIME` under [server]");
    UNKNOWN_IN_SERVER("worker-connections 5", "`worker-connections` is called `connections` here; "
                                              "write `connections = N|auto` under [server]");
    UNKNOWN_IN_SERVER("gzip_proxied any;", "there is no `gzip_proxied` here; weir chooses how to "
                                           "compress by itself; remove it");
    UNKNOWN_IN_SERVER("proxy-protcol = 10.0.0.1", "unknown setting `proxy-protcol`; did you mean "
                                                  "`proxy-protocol`?");
    UNKNOWN_IN_SERVER("ssl_session_cache shared:SSL:10m;",
                      "there is no `ssl_session_cache` here; sessions are resumed with tickets, "
                      "without a cache; remove it");
}

/* Each of these is common, and none may be "neither `[section]` nor `name = value`". */
static void common_lines_of_other_servers_have_advice(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "gzip_vary on;",
        "gzip_comp_level 6;",
        "gzip_types text/css;",
        "gzip_min_length 256;",
        "default_type text/html;",
        "ssl_session_cache shared:SSL:10m;",
        "ssl_session_tickets off;",
        "ssl_session_timeout 1d;",
        "ssl_prefer_server_ciphers on;",
        "open_file_cache max=1000 inactive=20s;",
        "server_tokens off;",
        "ServerTokens Prod",
        "ServerSignature Off",
        "KeepAlive On",
        "KeepAliveTimeout 5",
        "MaxKeepAliveRequests 100",
        "Timeout 60",
        "tcp_nodelay on;",
        "tcp_nopush on;",
        "sendfile on;",
        "worker_connections 1024;",
        "client_max_body_size 1m;",
        "limit_req zone=a burst=5;",
        "limit_conn addr 10;",
        "add_header X-Frame-Options DENY always;",
        "expires 1y;",
        "try_files $uri $uri/ /index.html;",
        "autoindex on;",
        "error_page 404 /404.html;",
        "return 301 https://$host$request_uri;",
        "rewrite ^/a$ /b last;",
        "proxy_pass http://127.0.0.1:3000;",
        "proxy_set_header Host $host;",
        "fastcgi_pass unix:/run/php.sock;",
        "ExpiresActive On",
        "ExpiresByType text/css \"access plus 1 year\"",
        "Header set X-A \"b\"",
        "AddType text/x a",
        "Options -Indexes",
        "AllowOverride None",
        "RewriteEngine On",
        "RewriteCond %{HTTPS} off",
        "RewriteRule ^a$ b [L]",
        "DirectoryIndex index.html",
        "ErrorDocument 404 /404.html",
        "Listen 80",
        "User www-data",
        "LoadModule x y.so",
        "server.max-keep-alive-requests = 4",
        "url.redirect = ( \"^/a\" => \"/b\" )",
        "reverse_proxy localhost:3000",
        "import common",
        "handle /a/* {",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct config_reason reason = { .text = "" };
        if (!config_hint_explain(span_text(lines[i]), &reason) || strstr(reason.text, "braces"))
            fail_msg("%s: %s", lines[i], reason.text);
    }
}

/* A row of hints.def that names one of our settings is never used, and one whose `ours` does not
 * exist would end the program. */
static void every_row_names_a_setting_or_gives_advice(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
#define NAMED(theirs, ours, value) { theirs, ours },
#define ADVICE(word, sentence)     { word, NULL },
#include "config/hints.def"
#undef NAMED
#undef ADVICE
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_null(config_setting_find_anywhere(span_text(rows[i][0])));
        if (rows[i][1])
            assert_non_null(config_setting_find_anywhere(span_text(rows[i][1])));
        struct config_reason reason;
        assert_true(config_hint_explain_option(span_text(rows[i][0]), &reason));
        for (size_t earlier = 0; earlier < i; earlier++)
            assert_string_not_equal(rows[earlier][0], rows[i][0]);
    }
}

static void values_of_other_servers_have_advice(void **state)
{
    (void)state;
#define ADDRESS_FORMS \
    "is not an address; write 8080, 127.0.0.1:8080, [::1]:8080, *:8080, https://*:443 or " \
    "unix:/path"
    UNKNOWN_IN_SERVER("listen = 443 ssl", "listen: `443 ssl` " ADDRESS_FORMS "; no word follows an "
                                          "address");
    UNKNOWN_IN_SERVER("listen = 80 443", "listen: `80 443` " ADDRESS_FORMS "; between several "
                                         "values write commas, not spaces");
    UNKNOWN_IN_SERVER("listen = https:443", "listen: `https:443` has no address; write "
                                            "https://*:443");
    UNKNOWN_IN_SERVER("listen = [fe80::1%eth0]:80",
                      "listen: `[fe80::1%eth0]` has a zone, and weir accepts on no address with "
                      "one; write [::]:80 for all addresses");
    UNKNOWN_IN_SERVER("access-log = stdout",
                      "access-log: `stdout` would be a file of that name; write - (standard "
                      "output), journal, syslog:, off or ./stdout");
    UNKNOWN_IN_SERVER("error-log = stderr",
                      "error-log: `stderr` would be a file of that name; write - (standard error), "
                      "journal, syslog: or ./stderr");
    UNKNOWN_IN_SERVER("error-log = \u201ca.log\u201d",
                      "error-log: a value has no quotes, and no `;` ends it; write `error-log = "
                      "a.log`");
    UNKNOWN_IN_SERVER("control = on", "control: `on` is not a path; write auto");
    UNKNOWN_IN_SERVER("user = www:www", "user: `www:www` has a group; write www: the workers get "
                                        "its groups");
    UNKNOWN_IN_SERVER("idle-timeout = off", "idle-timeout: `off` is not a time; write 500ms, 10s, "
                                            "2m or 1h, or 0 for none");
    UNKNOWN_IN_SITE("host = _", "host: `_` is not a host; a site without `host` answers any");
    UNKNOWN_IN_SITE("host = .a.test", "host: `.a.test` begins with a dot; write a.test for the "
                                      "name, and *.a.test for any name below");
    UNKNOWN_IN_SITE("error-pages = $HOME/x", "error-pages: `$` is not replaced here; write the "
                                             "whole path, or ./$HOME/x");
    UNKNOWN_IN_SITE("auth = a:b", "auth: `a:b` cannot be read: there is no such file; `weir "
                                  "password NAME` makes a line of one");
    assert_problems("[server]\naccess-log = ./stdout\n" SITE, "");
}

static void a_variable_of_a_setting_of_a_site_is_not_read(void **state)
{
    (void)state;
    write_file("weir.conf", SITE);
    static const char *const environment[] = { "WEIR_LISTING=on", "WEIR_PORT=tcp://10.0.0.1:80",
                                               "WEIR_REDIRECT=/", NULL };
    struct config_store *store =
        config_read(&(struct config_request){ .file = "weir.conf", .environment = environment });
    char *problems = problems_of(store);
    assert_string_equal(problems,
                        "weir: warning: WEIR_LISTING: is not read: only settings of [server] have "
                        "a variable; in a file write `listing = on|off` under [site NAME]\n"
                        "weir: warning: WEIR_REDIRECT: is not read: only settings of [server] have "
                        "a variable; in a file write `redirect = STATUS TARGET` under [path "
                        "PATTERN]\n");
    free(problems);
    config_read_free(store);
}

static void headings_of_other_servers_have_advice(void **state)
{
    (void)state;
#define UNKNOWN_HEADING(line, message) \
    assert_problems(SITE line "\n", "weir.conf:3: error: " message "\n")
    assert_problems("root = site\nlisten = 1\nxy = 1\n" SITE,
                    "weir.conf:1: error: `root` stands before any section; it goes under [site "
                    "NAME]\n"
                    "weir.conf:2: error: `listen` stands before any section; it goes under "
                    "[server]\n"
                    "weir.conf:3: error: `xy` stands before any section; begin with [server] or "
                    "[site NAME]\n");
    UNKNOWN_HEADING("[location /a]", "unknown section [location /a]; did you mean [path PATTERN]?");
    UNKNOWN_HEADING("[/a]", "unknown section [/a]; did you mean [path PATTERN]?");
    UNKNOWN_HEADING("[VirtualHost *:80]", "unknown section [VirtualHost *:80]; did you mean [site "
                                          "NAME]?");
    UNKNOWN_HEADING("[global]", "unknown section [global]; did you mean [server]?");
    UNKNOWN_HEADING("[path \"/a\"]\nstatus = 404", "a heading has no quotes; write [path /a]");
}

static void a_cache_lifetime_has_a_name(void **state)
{
    (void)state;
    assert_problems(SITE "[path /a]\ncache-control = 3600\n[path /b]\ncache-control = 1y\n",
                    "weir.conf:4: error: cache-control: `3600` has no name; write max-age= and a "
                    "number of seconds\n"
                    "weir.conf:6: error: cache-control: `1y` has no name; write max-age= and a "
                    "number of seconds\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_value_decides_between_a_slip_and_a_wrong_section),
        cmocka_unit_test(a_slip_in_the_name_of_another_section_is_found),
        cmocka_unit_test(a_file_and_an_option_explain_the_same_words),
        cmocka_unit_test(an_option_of_another_program_is_explained),
        cmocka_unit_test(words_match_in_any_case_and_with_hyphens),
        cmocka_unit_test(common_lines_of_other_servers_have_advice),
        cmocka_unit_test(values_of_other_servers_have_advice),
        cmocka_unit_test(a_variable_of_a_setting_of_a_site_is_not_read),
        cmocka_unit_test(headings_of_other_servers_have_advice),
        cmocka_unit_test(a_cache_lifetime_has_a_name),
        cmocka_unit_test(every_row_names_a_setting_or_gives_advice),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
