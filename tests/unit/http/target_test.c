/* SPDX-License-Identifier: MIT
 *
 * Targets, Host fields and paths, row by row. tests/property/target_test.c compares random paths
 * with a model.
 */
#include "http/target.h"

#include "base/buf.h"
#include "support/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

struct resolved {
    struct guard guard, storage_guard;
    struct span head;
    struct http_request request;
    struct http_target target;
    int status;
};

/* Resolves the target of a head made of `line` and `fields`, which must parse. */
static void resolve(struct resolved *r, const char *line, const char *fields)
{
    static char head[HTTP_HEAD_MAX];
    enum http_status status;
    char *storage;

    memset(r, 0, sizeof(*r));
    (void)snprintf(head, sizeof(head), "%s\r\n%s\r\n", line, fields);
    r->head = guard_text(&r->guard, head);
    if (http_request_parse(&r->request, r->head, &status) != HTTP_PARSED)
        fail_msg("`%s` does not parse: %d", head, (int)status);
    storage = guard_room(&r->storage_guard, HTTP_TARGET_MAX);
    r->status = http_target_resolve(&r->target, &r->request, r->head.at, storage, HTTP_TARGET_MAX);
}

static void resolved_done(struct resolved *r)
{
    guard_done(&r->guard);
    guard_done(&r->storage_guard);
}

#define assert_span(got, want) \
    do { \
        struct span got_ = (got); \
        if (!span_equal(got_, span_text(want))) \
            fail_msg("expected `%s`, got `%.*s`", (want), (int)got_.len, got_.at); \
    } while (0)

static void lends_a_plain_path_as_it_came(void **state)
{
    (void)state;
    static const struct {
        const char *target;
        const char *path;
        const char *query;
        bool has_query;
    } rows[] = {
        { "/", "/", "", false },
        { "/index.html", "/index.html", "", false },
        { "/a/b.c/d.tar.gz", "/a/b.c/d.tar.gz", "", false },
        { "/a/b/", "/a/b/", "", false },
        { "/caf\xc3\xa9", "/caf\xc3\xa9", "", false },
        { "/a\\..\\b", "/a\\..\\b", "", false },
        { "/a?", "/a", "", true },
        { "/?a=../..&b=%zz%00//?", "/", "a=../..&b=%zz%00//?", true },
        { "/a+b;c,d:e@f!$&'()*=~_-", "/a+b;c,d:e@f!$&'()*=~_-", "", false },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct resolved r;
        char line[256];
        (void)snprintf(line, sizeof(line), "GET %s HTTP/1.1", rows[i].target);
        resolve(&r, line, "Host: a\r\n");
        assert_int_equal(r.status, 0);
        assert_int_equal(r.target.form, HTTP_TARGET_ORIGIN);
        assert_true(r.target.normal);
        assert_ptr_equal(r.target.path.at, r.head.at + r.request.target.at);
        assert_span(r.target.path, rows[i].path);
        assert_span(r.target.query, rows[i].query);
        assert_int_equal(r.target.has_query, rows[i].has_query);
        resolved_done(&r);
    }
}

static void decodes_once_and_removes_dot_segments(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        { "//", "/" },
        { "//etc/passwd", "/etc/passwd" },
        { "/d//hello.txt", "/d/hello.txt" },
        { "/d///", "/d/" },
        { "/.", "/" },
        { "/./", "/" },
        { "/a/.", "/a/" },
        { "/a/..", "/" },
        { "/a/../", "/" },
        { "/a/b/..", "/a/" },
        { "/a/b/../c", "/a/c" },
        { "/d/../d/./hello.txt", "/d/hello.txt" },
        { "/a//../b", "/b" },
        { "/a/%2e%2E/b", "/b" },
        { "/a/.%2e/b", "/b" },
        { "/%2e/b", "/b" },
        { "/...", "/..." },
        { "/.well-known/x", "/.well-known/x" },
        { "/..a/b..", "/..a/b.." },
        { "/.git/config", "/.git/config" },
        { "/%252e%252e/etc/passwd", "/%2e%2e/etc/passwd" },
        { "/%41%7e%20%25%3f%23", "/A~ %?#" },
        { "/caf%c3%a9", "/caf\xc3\xa9" },
        { "/%c0%ae%c0%ae/x", "/\xc0\xae\xc0\xae/x" },
        { "/..%5c..%5cx", "/..\\..\\x" },
        { "/%61?%61", "/a" },
        { "/a/%2e%2e?x", "/" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct resolved r;
        char line[256];
        (void)snprintf(line, sizeof(line), "GET %s HTTP/1.1", rows[i][0]);
        resolve(&r, line, "Host: a\r\n");
        if (r.status != 0)
            fail_msg("`%s`: %d", rows[i][0], r.status);
        assert_false(r.target.normal);
        assert_span(r.target.path, rows[i][1]);
        resolved_done(&r);
    }
}

struct refusal {
    const char *line;
    int status;
};

static void check_refusals(const struct refusal *rows, size_t count, const char *fields)
{
    for (size_t i = 0; i < count; i++) {
        struct resolved r;
        resolve(&r, rows[i].line, fields);
        if (r.status != rows[i].status)
            fail_msg("`%s`: expected %d, got %d", rows[i].line, rows[i].status, r.status);
        resolved_done(&r);
    }
}

static void refuses_bad_paths(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        { "GET /../../etc/passwd HTTP/1.1", 400 },
        { "GET /.. HTTP/1.1", 400 },
        { "GET /a/../.. HTTP/1.1", 400 },
        { "GET /a/../../a/b HTTP/1.1", 400 },
        { "GET //../x HTTP/1.1", 400 },
        { "GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1", 400 },
        { "GET /.%2e/ HTTP/1.1", 400 },
        { "GET /..%2f..%2fetc/passwd HTTP/1.1", 404 },
        { "GET /a%2Fb HTTP/1.1", 404 },
        { "GET /a%2fb/../c HTTP/1.1", 404 },
        { "GET /a%2fb/%zz HTTP/1.1", 400 },
        { "GET /d/..%2f../proc/self/environ HTTP/1.1", 404 },
        { "GET /% HTTP/1.1", 400 },
        { "GET /%4 HTTP/1.1", 400 },
        { "GET /%4/x HTTP/1.1", 400 },
        { "GET /%zz HTTP/1.1", 400 },
        { "GET /%4z HTTP/1.1", 400 },
        { "GET /%u002e HTTP/1.1", 400 },
        { "GET /%?41 HTTP/1.1", 400 },
        { "GET /.%00./etc/passwd HTTP/1.1", 400 },
        { "GET /f.bin%00.html HTTP/1.1", 400 },
        { "GET /%0d%0aSet-Cookie:x=1 HTTP/1.1", 400 },
        { "GET /%7f HTTP/1.1", 400 },
        { "GET /%09 HTTP/1.1", 400 },
        { "GET /x#frag HTTP/1.1", 400 },
        { "GET /x?y#frag HTTP/1.1", 400 },
        { "GET /%41#frag HTTP/1.1", 400 },
    };
    check_refusals(rows, COUNT(rows), "Host: a\r\n");
}

static void refuses_target_forms_that_the_method_does_not_allow(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        { "GET * HTTP/1.1", 400 },
        { "POST * HTTP/1.1", 400 },
        { "OPTIONS ** HTTP/1.1", 400 },
        { "OPTIONS *? HTTP/1.1", 400 },
        { "CONNECT a:443 HTTP/1.1", 400 },
        { "GET a HTTP/1.1", 400 },
        { "GET index.html HTTP/1.1", 400 },
        { "GET ?x HTTP/1.1", 400 },
        { "GET %2f HTTP/1.1", 400 },
        { "GET ftp://a/ HTTP/1.1", 400 },
        { "GET httpx://a/ HTTP/1.1", 400 },
        { "GET http:/a/ HTTP/1.1", 400 },
        { "GET http: HTTP/1.1", 400 },
        { "GET http:///x HTTP/1.1", 400 },
        { "GET http://?x HTTP/1.1", 400 },
        { "GET http://u:p@a/ HTTP/1.1", 400 },
        { "GET http://u@a/ HTTP/1.1", 400 },
        { "GET http://a:99999/ HTTP/1.1", 400 },
        { "GET http://a:x/ HTTP/1.1", 400 },
        { "GET http://:80/ HTTP/1.1", 400 },
        { "GET http://[::1/ HTTP/1.1", 400 },
        { "GET http://a#x HTTP/1.1", 400 },
        { "GET http://a/../x HTTP/1.1", 400 },
        { "GET http://a/%2f HTTP/1.1", 404 },
    };
    check_refusals(rows, COUNT(rows), "Host: a\r\n");
}

static void resolves_the_asterisk_form(void **state)
{
    (void)state;
    struct resolved r;
    resolve(&r, "OPTIONS * HTTP/1.1", "Host: example.com:80\r\n");
    assert_int_equal(r.status, 0);
    assert_int_equal(r.target.form, HTTP_TARGET_ASTERISK);
    assert_span(r.target.path, "*");
    assert_span(r.target.host, "example.com");
    resolved_done(&r);
}

static void reads_host_and_path_of_an_absolute_target(void **state)
{
    (void)state;
    static const struct {
        const char *target;
        const char *host;
        const char *path;
        const char *query;
        bool normal;
    } rows[] = {
        { "http://b/", "b", "/", "", true },
        { "http://b", "b", "/", "", false },
        { "HTTP://B.example:8080/x?y", "B.example", "/x", "y", true },
        { "https://b?q", "b", "/", "q", false },
        { "http://[::1]:80/a/../c", "[::1]", "/c", "", false },
        { "http://b:/x", "b", "/x", "", true },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct resolved r;
        char line[256];
        (void)snprintf(line, sizeof(line), "GET %s HTTP/1.1", rows[i].target);
        resolve(&r, line, "Host: other\r\n");
        if (r.status != 0)
            fail_msg("`%s`: %d", rows[i].target, r.status);
        assert_int_equal(r.target.form, HTTP_TARGET_ABSOLUTE);
        assert_span(r.target.host, rows[i].host);
        assert_span(r.target.path, rows[i].path);
        assert_span(r.target.query, rows[i].query);
        assert_int_equal(r.target.normal, rows[i].normal);
        resolved_done(&r);
    }
}

static void reads_hosts(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        { "a", "a" },
        { "www.Example.com", "www.Example.com" },
        { "127.0.0.1:8080", "127.0.0.1" },
        { "a:0", "a" },
        { "a:65535", "a" },
        { "a:", "a" },
        { "my_host-1.example.", "my_host-1.example." },
        { "[::1]", "[::1]" },
        { "[::1]:8080", "[::1]" },
        { "[2001:DB8::192.0.2.1]:1", "[2001:DB8::192.0.2.1]" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct resolved r;
        char fields[128];
        (void)snprintf(fields, sizeof(fields), "Host: %s\r\n", rows[i][0]);
        resolve(&r, "GET / HTTP/1.1", fields);
        if (r.status != 0)
            fail_msg("Host `%s`: %d", rows[i][0], r.status);
        assert_span(r.target.host, rows[i][1]);
        resolved_done(&r);
    }
}

static void refuses_a_bad_host_field_beside_an_absolute_target(void **state)
{
    (void)state;
    static const char *const fields[] = {
        "",
        "Host:\r\n",
        "Host: a\r\nHost: a\r\n",
        "Host: a\r\nHost: b\r\n",
        "Host: a/b\r\n",
        "Host: a b\r\n",
        "Host: u@a\r\n",
        "Host: a:b\r\n",
        "Host: a:-1\r\n",
        "Host: a:+1\r\n",
        "Host: a:65536\r\n",
        "Host: a:99999999999999999999999\r\n",
        "Host: a:80:80\r\n",
        "Host: :80\r\n",
        "Host: [::1\r\n",
        "Host: ::1\r\n",
        "Host: []\r\n",
        "Host: [a]\r\n",
        "Host: [::g]\r\n",
        "Host: [::1]x\r\n",
        "Host: [::1]:x\r\n",
        "Host: [0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]\r\n",
        "Host: a,b\r\n",
        "Host: a%41\r\n",
        "Host: http://a\r\n",
        "Host: caf\xc3\xa9\r\n",
        "Host: a?b\r\n",
        "Host: a#b\r\n",
        "Host: a\\b\r\n",
    };
    for (size_t i = 0; i < COUNT(fields); i++) {
        struct resolved r;
        resolve(&r, "GET / HTTP/1.1", fields[i]);
        if (r.status != 400)
            fail_msg("`%s`: expected 400, got %d", fields[i], r.status);
        resolved_done(&r);
        resolve(&r, "GET http://a/ HTTP/1.1", fields[i]);
        assert_int_equal(r.status, 400);
        resolved_done(&r);
    }
}

static void accepts_http_1_0_without_a_host(void **state)
{
    (void)state;
    struct resolved r;
    resolve(&r, "GET /x HTTP/1.0", "");
    assert_int_equal(r.status, 0);
    assert_int_equal(r.target.host.len, 0);
    assert_span(r.target.path, "/x");
    resolved_done(&r);

    resolve(&r, "GET /x HTTP/1.0", "Host: a/b\r\n");
    assert_int_equal(r.status, 400);
    resolved_done(&r);
}

static void resolves_the_longest_target(void **state)
{
    (void)state;
    static char line[HTTP_TARGET_MAX + 32];
    static const struct {
        const char *piece;
        int status;
    } rows[] = { { "/d", 0 }, { "/./", 0 },   { "/d/..", 0 }, { "/%41", 0 },
                 { "//", 0 }, { "/..", 400 }, { "%", 400 },   { "%2f", 404 } };

    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t len = strlen(rows[i].piece);
        size_t at = 5;
        memcpy(line, "GET /", at);
        for (; at + len <= 4 + HTTP_TARGET_MAX; at += len)
            memcpy(line + at, rows[i].piece, len);
        (void)snprintf(line + at, sizeof(line) - at, " HTTP/1.1");
        struct resolved r;
        resolve(&r, line, "Host: a\r\n");
        assert_int_equal(r.status, rows[i].status);
        resolved_done(&r);
    }
}

static void encodes_bytes_that_a_path_cannot_have(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        { "/", "/" },
        { "/a/b.c/", "/a/b.c/" },
        { "/a b", "/a%20b" },
        { "/100%", "/100%25" },
        { "/a?b#c", "/a%3Fb%23c" },
        { "/caf\xc3\xa9", "/caf%C3%A9" },
        { "/-._~!$&'()*+,;=:@", "/-._~!$&'()*+,;=:@" },
        { "/\"<>\\^`{|}\x7f\r\n", "/%22%3C%3E%5C%5E%60%7B%7C%7D%7F%0D%0A" },
        { "//evil.example/", "/evil.example/" },
        { "///evil.example//x", "/evil.example//x" },
        { "", "" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct guard guard;
        char storage[128];
        struct buf out = buf_over(storage, sizeof(storage));
        http_target_encode_path(&out, guard_text(&guard, rows[i][0]));
        assert_span(buf_span(&out), rows[i][1]);
        guard_done(&guard);
    }
    char storage[4];
    struct buf out = buf_over(storage, sizeof(storage));
    http_target_encode_path(&out, SPAN("/a\xff"));
    assert_true(out.overflow);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lends_a_plain_path_as_it_came),
        cmocka_unit_test(decodes_once_and_removes_dot_segments),
        cmocka_unit_test(refuses_bad_paths),
        cmocka_unit_test(refuses_target_forms_that_the_method_does_not_allow),
        cmocka_unit_test(resolves_the_asterisk_form),
        cmocka_unit_test(reads_host_and_path_of_an_absolute_target),
        cmocka_unit_test(reads_hosts),
        cmocka_unit_test(refuses_a_bad_host_field_beside_an_absolute_target),
        cmocka_unit_test(accepts_http_1_0_without_a_host),
        cmocka_unit_test(resolves_the_longest_target),
        cmocka_unit_test(encodes_bytes_that_a_path_cannot_have),
    };
    return cmocka_run_group_tests_name("http/target", tests, NULL, NULL);
}
