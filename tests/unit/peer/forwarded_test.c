/* SPDX-License-Identifier: MIT
 *
 * Which client the fields of proxies name. 10.0.0.0/8 and fd00::/8 are trusted here.
 */
#include "peer/forwarded.h"

#include "support/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { LINES_MAX = 3 };

struct row {
    enum peer_forwarded_result result;
    const char *client;
    const char *lines[LINES_MAX]; /* in the order of the request */
};

#define CLIENT(client, ...) \
    { \
        PEER_FORWARDED_CLIENT, client, \
        { \
            __VA_ARGS__ \
        } \
    }
#define HIDDEN(...) \
    { \
        PEER_FORWARDED_HIDDEN, NULL, \
        { \
            __VA_ARGS__ \
        } \
    }
#define BAD(...) \
    { \
        PEER_FORWARDED_MALFORMED, NULL, \
        { \
            __VA_ARGS__ \
        } \
    }
#define NONE(...) \
    { \
        PEER_FORWARDED_NONE, NULL, \
        { \
            __VA_ARGS__ \
        } \
    }

static const struct row x_forwarded_for[] = {
    CLIENT("192.0.2.1", "192.0.2.1"),
    CLIENT("192.0.2.1", "192.0.2.1, 10.0.0.1, 10.1.2.3"),
    CLIENT("192.0.2.2", "192.0.2.1, 192.0.2.2, 10.0.0.1"),
    CLIENT("192.0.2.2", "10.0.0.9, 192.0.2.2"),
    CLIENT("192.0.2.2", "nonsense, \", 192.0.2.2"),
    CLIENT("192.0.2.2", "\"unclosed, 192.0.2.2"),
    CLIENT("10.0.0.1", "10.0.0.1, 10.0.0.2"),
    CLIENT("192.0.2.1", "192.0.2.1:4711"),
    CLIENT("2001:db8::1", "2001:db8::1"),
    CLIENT("2001:db8::1", "[2001:db8::1]"),
    CLIENT("2001:db8::1", "[2001:db8::1]:4711 , fd00::7"),
    CLIENT("192.0.2.1", "::ffff:192.0.2.1, ::ffff:10.0.0.1"),
    CLIENT("192.0.2.1", ",, 192.0.2.1 ,\t, 10.0.0.1, ,"),
    CLIENT("192.0.2.2", "192.0.2.1", "192.0.2.2"),
    CLIENT("192.0.2.1", "192.0.2.1", "10.0.0.1", "10.0.0.2"),
    CLIENT("192.0.2.1", "192.0.2.1", " , ", "10.0.0.2"),
    HIDDEN("192.0.2.1, unknown"),
    HIDDEN("192.0.2.1, Unknown, 10.0.0.1"),
    NONE(""),
    NONE(" , ,"),
    BAD("192.0.2.1, nonsense"),
    BAD("192.0.2.1, nonsense, 10.0.0.1"),
    BAD("192.0.2.256"),
    BAD("192.0.2.1:"),
    BAD("192.0.2.1:65536"),
    BAD("[192.0.2.1]"),
    BAD("[2001:db8::1"),
    BAD("[2001:db8::1]80"),
    BAD("[]"),
    BAD("for=192.0.2.1"),
    BAD("192.0.2.1 192.0.2.2"),
    BAD("client.example"),
};

static const struct row forwarded[] = {
    CLIENT("192.0.2.1", "for=192.0.2.1"),
    CLIENT("192.0.2.1", "For=\"192.0.2.1\""),
    CLIENT("192.0.2.1", "for=192.0.2.1:80"),
    CLIENT("192.0.2.1", "for=\"192.0.2.1:_port-1\""),
    CLIENT("2001:db8::1", "for=\"[2001:db8::1]:4711\""),
    CLIENT("2001:db8::1", "for=[2001:db8::1]"),
    CLIENT("192.0.2.1", "for=192.0.2.1;proto=https;by=10.0.0.1"),
    CLIENT("192.0.2.1", "proto=https; host=\"a, b; c\" ;for=192.0.2.1;"),
    CLIENT("192.0.2.1", ";; for=192.0.2.1"),
    CLIENT("192.0.2.1", "for=192.0.2.1;x=\"a,b,c,d\\\",e\""),
    CLIENT("192.0.2.1", "for=192.0.2.1, for=10.0.0.1;by=10.0.0.2"),
    CLIENT("192.0.2.1", "for=192.0.2.1", "for=10.0.0.1, for=\"[fd00::1]\""),
    CLIENT("10.0.0.1", "for=10.0.0.1, for=10.0.0.2"),
    CLIENT("2001:db8::2", "for=\"unclosed, for=\"[2001:db8::2]\""),
    CLIENT("192.0.2.2", "for=\"unclosed\\, for=192.0.2.2"),
    CLIENT("192.0.2.2", "for=\"_a, for=192.0.2.2;by=\"_b\""),
    HIDDEN("for=unknown"),
    HIDDEN("for=192.0.2.1, for=_hidden"),
    HIDDEN("for=\"_SEVKISEK:80\""),
    HIDDEN("for=192.0.2.1, proto=https"),
    NONE(""),
    BAD("192.0.2.1"),
    BAD("for="),
    BAD("for=\"\""),
    BAD("for =192.0.2.1"),
    BAD("for=192.0.2.1;for=192.0.2.2"),
    BAD("for=192.0.2.1 proto=https"),
    BAD("for=\"192.0.2.1"),
    BAD("for=2001:db8::1x"),
    BAD("for=[192.0.2.1]"),
    BAD("for=\"_\""),
    BAD("=192.0.2.1"),
    BAD("for=192.0.2.1;x=\"a,b,c,d,e,f,g,h,i,j,k\""),
};

static void assert_row(enum peer_forwarded_form form, const struct row *row)
{
    struct peer_network each[2];
    assert_true(peer_network_parse(SPAN("10.0.0.0/8"), &each[0]));
    assert_true(peer_network_parse(SPAN("fd00::/8"), &each[1]));
    const struct peer_networks trusted = { each, 2, false };
    struct peer_forwarded f = { .form = form, .trusted = &trusted };
    bool more = true;
    for (size_t i = LINES_MAX; i > 0 && more; i--) {
        struct guard guard;
        if (!row->lines[i - 1])
            continue;
        more = peer_forwarded_read(&f, guard_text(&guard, row->lines[i - 1]));
        guard_done(&guard);
    }
    if (f.result != row->result)
        fail_msg("`%s`: %d instead of %d", row->lines[0], (int)f.result, (int)row->result);
    if (!row->client)
        return;
    struct peer_address client;
    assert_true(peer_address_parse(span_text(row->client), &client));
    if (f.client.family != client.family ||
        memcmp(f.client.bytes, client.bytes, sizeof(client.bytes)) != 0)
        fail_msg("`%s` names another client", row->lines[0]);
}

static void reads_x_forwarded_for(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(x_forwarded_for) / sizeof(x_forwarded_for[0]); i++)
        assert_row(PEER_X_FORWARDED_FOR, &x_forwarded_for[i]);
}

static void reads_forwarded(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++)
        assert_row(PEER_FORWARDED, &forwarded[i]);
}

struct scheme_row {
    enum peer_forwarded_scheme scheme;
    const char *clients; /* the line with addresses; NULL: none */
    const char *lines[LINES_MAX];
};

/* Reads X-Forwarded-For and X-Forwarded-Proto, or Forwarded. */
static void assert_scheme(enum peer_forwarded_form form, const struct scheme_row *row)
{
    struct peer_network network;
    assert_true(peer_network_parse(SPAN("10.0.0.0/8"), &network));
    const struct peer_networks trusted = { &network, 1, false };
    struct peer_forwarded f = { .form = form, .trusted = &trusted };
    struct guard guard;
    if (row->clients) {
        (void)peer_forwarded_read(&f, guard_text(&guard, row->clients));
        guard_done(&guard);
    }
    bool more = true;
    for (size_t i = LINES_MAX; i > 0 && more; i--) {
        if (!row->lines[i - 1])
            continue;
        more = peer_forwarded_read_scheme(&f, guard_text(&guard, row->lines[i - 1]));
        guard_done(&guard);
    }
    if (f.scheme != row->scheme)
        fail_msg("`%s`, `%s`: scheme %d instead of %d", row->clients ? row->clients : "none",
                 row->lines[0] ? row->lines[0] : "none", (int)f.scheme, (int)row->scheme);
}

static void a_single_scheme_is_that_of_the_client(void **state)
{
    (void)state;
    static const struct scheme_row rows[] = {
        { PEER_FORWARDED_HTTPS, NULL, { "https" } },
        { PEER_FORWARDED_HTTP, NULL, { "HTTP" } },
        { PEER_FORWARDED_HTTPS, "192.0.2.1", { " , HTTPS ," } },
        { PEER_FORWARDED_HTTPS, "192.0.2.1, 10.0.0.1, 10.0.0.2", { "https" } },
        { PEER_FORWARDED_HTTPS, "nonsense", { "https" } },
        { PEER_FORWARDED_NO_SCHEME, "192.0.2.1", { NULL } },
        { PEER_FORWARDED_NO_SCHEME, "192.0.2.1", { "" } },
        { PEER_FORWARDED_NO_SCHEME, "192.0.2.1", { "ftp" } },
        { PEER_FORWARDED_NO_SCHEME, "192.0.2.1", { "https;" } },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_scheme(PEER_X_FORWARDED_FOR, &rows[i]);
}

static void of_several_schemes_that_at_the_place_of_the_client_counts(void **state)
{
    (void)state;
    static const struct scheme_row rows[] = {
        { PEER_FORWARDED_HTTP, NULL, { "https, http" } },
        { PEER_FORWARDED_HTTP, "192.0.2.1", { "https, http" } },
        { PEER_FORWARDED_HTTP, "192.0.2.1", { "https", "http" } },
        { PEER_FORWARDED_HTTPS, "192.0.2.1, 10.0.0.1", { "http, https, http" } },
        { PEER_FORWARDED_HTTPS, "192.0.2.1, 10.0.0.1", { "http", "https", "http" } },
        { PEER_FORWARDED_HTTPS, "192.0.2.2, 192.0.2.1", { "http, https" } },
        { PEER_FORWARDED_HTTPS, "192.0.2.1, unknown, 10.0.0.1", { "http, https, http" } },
        { PEER_FORWARDED_NO_SCHEME, "192.0.2.1, 10.0.0.1, 10.0.0.2", { "https, http" } },
        { PEER_FORWARDED_NO_SCHEME, "192.0.2.1, 10.0.0.1", { "ftp, http" } },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_scheme(PEER_X_FORWARDED_FOR, &rows[i]);
}

static void the_element_of_the_client_has_its_scheme(void **state)
{
    (void)state;
    static const struct scheme_row rows[] = {
        { PEER_FORWARDED_HTTPS, "for=192.0.2.1;proto=https", { NULL } },
        { PEER_FORWARDED_HTTP, "Proto=\"HTTP\";for=192.0.2.1", { NULL } },
        { PEER_FORWARDED_HTTPS, "for=192.0.2.1;proto=https, for=10.0.0.1;proto=http", { NULL } },
        { PEER_FORWARDED_HTTP, "for=192.0.2.1;proto=https, for=192.0.2.2;proto=http", { NULL } },
        { PEER_FORWARDED_HTTPS, "for=unknown;proto=https", { NULL } },
        { PEER_FORWARDED_HTTPS, "proto=https", { NULL } },
        { PEER_FORWARDED_NO_SCHEME, "for=192.0.2.1, for=10.0.0.1;proto=https", { NULL } },
        { PEER_FORWARDED_NO_SCHEME, "for=192.0.2.1;proto=ws", { NULL } },
        { PEER_FORWARDED_NO_SCHEME, "for=nonsense;proto=https", { NULL } },
        { PEER_FORWARDED_NO_SCHEME, "for=192.0.2.1;proto=https;proto=http", { NULL } },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_scheme(PEER_FORWARDED, &rows[i]);
}

static void reads_a_bounded_number_of_elements(void **state)
{
    (void)state;
    char line[16 * (PEER_FORWARDED_ELEMENTS_MAX + 2)];
    size_t len = (size_t)snprintf(line, sizeof(line), "192.0.2.1");
    for (unsigned i = 1; i < PEER_FORWARDED_ELEMENTS_MAX; i++)
        len += (size_t)snprintf(line + len, sizeof(line) - len, ",10.0.0.1");
    const struct row most = CLIENT("192.0.2.1", line);
    assert_row(PEER_X_FORWARDED_FOR, &most);
    (void)snprintf(line + len, sizeof(line) - len, ",10.0.0.1");
    const struct row more = BAD(line);
    assert_row(PEER_X_FORWARDED_FOR, &more);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_x_forwarded_for),
        cmocka_unit_test(reads_forwarded),
        cmocka_unit_test(a_single_scheme_is_that_of_the_client),
        cmocka_unit_test(of_several_schemes_that_at_the_place_of_the_client_counts),
        cmocka_unit_test(the_element_of_the_client_has_its_scheme),
        cmocka_unit_test(reads_a_bounded_number_of_elements),
    };
    return cmocka_run_group_tests_name("peer/forwarded", tests, NULL, NULL);
}
