/* SPDX-License-Identifier: MIT
 *
 * Sessions that begin with a PROXY header, driven as a model drives them.
 */
#include "session/proxy.h"

#include "session/limits.h"
#include "world.h"

#define LINE "PROXY TCP4 192.0.2.1 198.51.100.1 12345 443\r\n"

static struct peer_network network;
static struct peer_networks proxies;
static struct session_limits limits;

static const struct session_peer proxy = { .family = 4, .address = { 10, 0, 0, 1 } };

static int make_proxy_world(void **state)
{
    (void)state;
    if (make_world() < 0 || !peer_network_parse(SPAN("10.0.0.0/8"), &network))
        return -1;
    proxies = (struct peer_networks){ .each = &network, .count = 1, .local = true };
    limits = (struct session_limits){ .workers = 1, .key = 42, .connections = 2 };
    limits.memory = calloc(1, session_limits_bytes(1));
    world.shared.proxies = &proxies;
    world.shared.limits = &limits;
    return limits.memory ? start_world() : -1;
}

static int end_proxy_world(void **state)
{
    (void)state;
    const int rc = end_world();
    free(limits.memory);
    return rc;
}

static void assert_peer(const struct session *s, struct session_peer peer)
{
    assert_int_equal(s->peer.family, peer.family);
    assert_memory_equal(s->peer.address, peer.address, sizeof(peer.address));
}

/* Whether the answer that waits to be sent begins so, and has this text. */
static void assert_answer(const struct session *s, const char *status, const char *text)
{
    const struct session_out out = session_output(s);
    assert_true(out.count > 0);
    assert_true(span_starts(out.piece[0], span_text(status)));
    assert_non_null(memmem(out.piece[0].at, out.piece[0].len, text, strlen(text)));
}

static const struct session_peer client = { .family = 4, .address = { 192, 0, 2, 1 } };

static void the_header_names_the_client(void **state)
{
    (void)state;
    struct session s = open_from(proxy);
    assert_int_equal(feed(&s, LINE GET("/nothing")), SESSION_WRITE);
    assert_peer(&s, client);
    assert_answer(&s, "HTTP/1.1 404 ", "");
    session_close(&s);
}

static void the_header_may_come_in_bytes(void **state)
{
    (void)state;
    const struct span bytes = SPAN(LINE GET("/nothing"));
    struct session s = open_from(proxy);
    for (size_t i = 0; i < bytes.len; i++) {
        const unsigned want = feed_span(&s, span_of(bytes.at + i, 1));
        assert_int_equal(want, i + 1 < bytes.len ? SESSION_READ : SESSION_WRITE);
        assert_peer(&s, i + 1 < sizeof(LINE) - 1 ? proxy : client);
    }
    session_close(&s);
}

static void a_header_without_a_client_keeps_the_address(void **state)
{
    (void)state;
    struct session s = open_from(proxy);
    assert_int_equal(feed(&s, "PROXY UNKNOWN\r\n"), SESSION_READ);
    assert_peer(&s, proxy);
    assert_int_equal(feed(&s, GET("/nothing")), SESSION_WRITE);
    session_close(&s);
    s = open_from(proxy);
    assert_int_equal(feed_span(&s, SPAN("\r\n\r\n\0\r\nQUIT\n\x20\0\0\0" GET("/nothing"))),
                     SESSION_WRITE);
    assert_peer(&s, proxy);
    session_close(&s);
}

static void clients_of_unix_sockets_can_be_proxies(void **state)
{
    (void)state;
    struct session s = open_from((struct session_peer){ 0 });
    assert_int_equal(feed(&s, "PROXY TCP6 2001:db8::1 ::1 1 2\r\n" GET("/nothing")), SESSION_WRITE);
    assert_int_equal(s.peer.family, 6);
    session_close(&s);
}

static void a_connection_of_a_proxy_without_the_header_is_refused(void **state)
{
    (void)state;
    struct session s = open_from(proxy);
    assert_int_equal(feed(&s, GET("/nothing")), SESSION_WRITE);
    assert_answer(&s, "HTTP/1.1 400 ", "must begin with a PROXY header");
    assert_peer(&s, proxy);
    assert_true(s.lingering);
    session_close(&s);
}

static void a_malformed_header_is_refused(void **state)
{
    (void)state;
    struct session s = open_from(proxy);
    assert_int_equal(feed(&s, "PROXY TCP4 192.0.2."), SESSION_READ);
    assert_int_equal(feed(&s, "\r\n" GET("/nothing")), SESSION_WRITE);
    assert_answer(&s, "HTTP/1.1 400 ", "malformed");
    session_close(&s);
}

static void tls_without_the_header_is_closed(void **state)
{
    (void)state;
    struct session s;
    const struct session_origin origin = { .peer = proxy, .tls = true, .proxied = true };
    session_open(&s, &world.thread, origin, world.now_ns);
    assert_int_equal(feed(&s, "\x16\x03\x01\x02"), SESSION_CLOSE);
    session_close(&s);
    session_open(&s, &world.thread, origin, world.now_ns);
    assert_int_equal(feed(&s, GET("/nothing")), SESSION_WRITE);
    assert_answer(&s, "HTTP/1.1 400 ", "must begin with a PROXY header");
    session_close(&s);
}

static void a_header_from_elsewhere_is_no_request(void **state)
{
    (void)state;
    const struct session_peer other = { .family = 4, .address = { 11, 0, 0, 1 } };
    struct session s = open_from(other);
    assert_int_equal(feed(&s, LINE GET("/nothing")), SESSION_WRITE);
    assert_answer(&s, "HTTP/1.1 400 ", "");
    assert_peer(&s, other);
    session_close(&s);
}

static void the_deadline_of_the_header_does_not_move(void **state)
{
    (void)state;
    struct session s = open_from(proxy);
    const uint64_t due_ns = session_deadline_ns(&s);
    assert_int_equal(due_ns, world.now_ns + world.shared.header_timeout_ns);
    assert_int_equal(session_feed(&s, SPAN("PROXY "), world.now_ns + SECOND), SESSION_READ);
    assert_int_equal(session_feed(&s, SPAN("TCP4"), due_ns - 1), SESSION_READ);
    assert_int_equal(session_deadline_ns(&s), due_ns);
    assert_int_equal(session_expire(&s, due_ns), SESSION_CLOSE);
    session_close(&s);
}

static void the_limits_count_the_client(void **state)
{
    (void)state;
    struct session s[4];
    for (unsigned i = 0; i < 4; i++)
        s[i] = open_from(proxy);
    assert_int_equal(feed(&s[0], LINE), SESSION_READ);
    assert_int_equal(feed(&s[1], LINE), SESSION_READ);
    assert_int_equal(feed(&s[2], LINE GET("/nothing")), SESSION_CLOSE);
    session_close(&s[2]);
    assert_int_equal(feed(&s[3], "PROXY TCP4 192.0.2.2 198.51.100.1 1 2\r\n" GET("/nothing")),
                     SESSION_WRITE);
    session_close(&s[0]);
    s[2] = open_from(proxy);
    assert_int_equal(feed(&s[2], LINE GET("/nothing")), SESSION_WRITE);
    for (unsigned i = 1; i < 4; i++)
        session_close(&s[i]);
}

static void a_parent_can_release_what_a_child_has_counted(void **state)
{
    (void)state;
    _Atomic uint32_t counted = 0;
    world.thread.counted = &counted;
    struct session s = open_from(proxy);
    assert_int_equal(feed(&s, LINE), SESSION_READ);
    const struct session_peer noted = session_peer_unpack(atomic_load(&counted));
    assert_true(noted.limited);
    assert_memory_equal(noted.place, s.peer.place, sizeof(noted.place));
    session_close(&s);
    assert_int_equal(atomic_load(&counted), 0);
    world.thread.counted = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_header_names_the_client),
        cmocka_unit_test(the_header_may_come_in_bytes),
        cmocka_unit_test(a_header_without_a_client_keeps_the_address),
        cmocka_unit_test(clients_of_unix_sockets_can_be_proxies),
        cmocka_unit_test(a_connection_of_a_proxy_without_the_header_is_refused),
        cmocka_unit_test(a_malformed_header_is_refused),
        cmocka_unit_test(tls_without_the_header_is_closed),
        cmocka_unit_test(a_header_from_elsewhere_is_no_request),
        cmocka_unit_test(the_deadline_of_the_header_does_not_move),
        cmocka_unit_test(the_limits_count_the_client),
        cmocka_unit_test(a_parent_can_release_what_a_child_has_counted),
    };
    return cmocka_run_group_tests_name("session/proxy", tests, make_proxy_world, end_proxy_world);
}
