/* SPDX-License-Identifier: MIT
 *
 * Sessions that begin with a PROXY header, driven as a model drives them.
 */
#include "session/proxy.h"

#include "base/duration.h"
#include "session/hosts.h"
#include "session/limits.h"
#include "session/thread.h"
#include "site/mime.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define GET  "GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n"
#define LINE "PROXY TCP4 192.0.2.1 198.51.100.1 12345 443\r\n"

static struct {
    char root[64];
    struct site_mime *mime;
    struct site *site;
    struct session_site sites[1];
    struct log_access_sink log;
    struct peer_network network;
    struct peer_networks proxies;
    struct session_limits limits;
    struct session_shared shared;
    struct session_thread worker;
    uint64_t now_ns;
} world;

static const struct session_peer proxy = { .family = 4, .address = { 10, 0, 0, 1 } };

static int make_world(void **state)
{
    (void)state;
    static const char *const index[] = { "index.html", NULL };
    static const struct site_options options = { .name = "test",
                                                 .root = world.root,
                                                 .index = index };
    const struct site_cache_limits limits = { SITE_CACHE_SIEVE, 1 << 20, 10, 10 };
    const char *what;
    snprintf(world.root, sizeof(world.root), "%s", "/tmp/proxy_test.XXXXXX");
    if (!mkdtemp(world.root))
        return -1;
    world.mime = site_mime_new(NULL);
    if (site_open(&world.site, &options, world.mime, &what) < 0 ||
        log_access_open(&world.log, "off", LOG_COMBINED, NULL) < 0)
        return -1;
    world.sites[0] = (struct session_site){ .site = world.site };
    if (!peer_network_parse(SPAN("10.0.0.0/8"), &world.network))
        return -1;
    world.proxies = (struct peer_networks){ .each = &world.network, .count = 1, .local = true };
    world.limits = (struct session_limits){ .workers = 1, .key = 42, .connections = 2 };
    world.limits.memory = calloc(1, session_limits_bytes(1));
    world.shared = (struct session_shared){
        .sites = world.sites,
        .site_count = 1,
        .hosts = session_hosts_new(world.sites, 1),
        .cache = site_cache_new(limits, 1),
        .log = &world.log,
        .header_timeout_ns = 10 * DURATION_SECOND,
        .body_timeout_ns = 30 * DURATION_SECOND,
        .idle_timeout_ns = 60 * DURATION_SECOND,
        .send_timeout_ns = 20 * DURATION_SECOND,
        .send_step_bytes = SESSION_SEND_STEP,
        .proxies = &world.proxies,
        .limits = &world.limits,
    };
    world.now_ns = 1000 * DURATION_SECOND;
    if (!world.limits.memory || session_thread_start(&world.worker, &world.shared, 0) < 0)
        return -1;
    session_thread_tick(&world.worker, world.now_ns, 1800000000);
    return 0;
}

static int end_world(void **state)
{
    (void)state;
    session_thread_stop(&world.worker);
    site_cache_free(world.shared.cache);
    session_hosts_free(world.shared.hosts);
    site_close(world.site);
    site_mime_free(world.mime);
    log_access_close(&world.log);
    free(world.limits.memory);
    return rmdir(world.root);
}

static struct session open_from(struct session_peer peer)
{
    struct session s;
    const struct session_origin origin = {
        .peer = peer,
        .proxied = session_proxy_expects(&world.shared, &peer),
    };
    session_open(&s, &world.worker, origin, world.now_ns);
    return s;
}

static unsigned feed(struct session *s, struct span bytes)
{
    return session_feed(s, bytes, world.now_ns);
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
    assert_int_equal(feed(&s, SPAN(LINE GET)), SESSION_WRITE);
    assert_peer(&s, client);
    assert_answer(&s, "HTTP/1.1 404 ", "");
    session_close(&s);
}

static void the_header_may_come_in_bytes(void **state)
{
    (void)state;
    const struct span bytes = SPAN(LINE GET);
    struct session s = open_from(proxy);
    for (size_t i = 0; i < bytes.len; i++) {
        const unsigned want = feed(&s, span_of(bytes.at + i, 1));
        assert_int_equal(want, i + 1 < bytes.len ? SESSION_READ : SESSION_WRITE);
        assert_peer(&s, i + 1 < sizeof(LINE) - 1 ? proxy : client);
    }
    session_close(&s);
}

static void a_header_without_a_client_keeps_the_address(void **state)
{
    (void)state;
    struct session s = open_from(proxy);
    assert_int_equal(feed(&s, SPAN("PROXY UNKNOWN\r\n")), SESSION_READ);
    assert_peer(&s, proxy);
    assert_int_equal(feed(&s, SPAN(GET)), SESSION_WRITE);
    session_close(&s);
    s = open_from(proxy);
    assert_int_equal(feed(&s, SPAN("\r\n\r\n\0\r\nQUIT\n\x20\0\0\0" GET)), SESSION_WRITE);
    assert_peer(&s, proxy);
    session_close(&s);
}

static void clients_of_unix_sockets_can_be_proxies(void **state)
{
    (void)state;
    struct session s = open_from((struct session_peer){ 0 });
    assert_int_equal(feed(&s, SPAN("PROXY TCP6 2001:db8::1 ::1 1 2\r\n" GET)), SESSION_WRITE);
    assert_int_equal(s.peer.family, 6);
    session_close(&s);
}

static void a_connection_of_a_proxy_without_the_header_is_refused(void **state)
{
    (void)state;
    struct session s = open_from(proxy);
    assert_int_equal(feed(&s, SPAN(GET)), SESSION_WRITE);
    assert_answer(&s, "HTTP/1.1 400 ", "must begin with a PROXY header");
    assert_peer(&s, proxy);
    assert_true(s.lingering);
    session_close(&s);
}

static void a_malformed_header_is_refused(void **state)
{
    (void)state;
    struct session s = open_from(proxy);
    assert_int_equal(feed(&s, SPAN("PROXY TCP4 192.0.2.")), SESSION_READ);
    assert_int_equal(feed(&s, SPAN("\r\n" GET)), SESSION_WRITE);
    assert_answer(&s, "HTTP/1.1 400 ", "malformed");
    session_close(&s);
}

static void tls_without_the_header_is_closed(void **state)
{
    (void)state;
    struct session s;
    const struct session_origin origin = { .peer = proxy, .tls = true, .proxied = true };
    session_open(&s, &world.worker, origin, world.now_ns);
    assert_int_equal(feed(&s, SPAN("\x16\x03\x01\x02")), SESSION_CLOSE);
    session_close(&s);
    session_open(&s, &world.worker, origin, world.now_ns);
    assert_int_equal(feed(&s, SPAN(GET)), SESSION_WRITE);
    assert_answer(&s, "HTTP/1.1 400 ", "must begin with a PROXY header");
    session_close(&s);
}

static void a_header_from_elsewhere_is_no_request(void **state)
{
    (void)state;
    const struct session_peer other = { .family = 4, .address = { 11, 0, 0, 1 } };
    struct session s = open_from(other);
    assert_int_equal(feed(&s, SPAN(LINE GET)), SESSION_WRITE);
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
    assert_int_equal(session_feed(&s, SPAN("PROXY "), world.now_ns + DURATION_SECOND),
                     SESSION_READ);
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
    assert_int_equal(feed(&s[0], SPAN(LINE)), SESSION_READ);
    assert_int_equal(feed(&s[1], SPAN(LINE)), SESSION_READ);
    assert_int_equal(feed(&s[2], SPAN(LINE GET)), SESSION_CLOSE);
    session_close(&s[2]);
    assert_int_equal(feed(&s[3], SPAN("PROXY TCP4 192.0.2.2 198.51.100.1 1 2\r\n" GET)),
                     SESSION_WRITE);
    session_close(&s[0]);
    s[2] = open_from(proxy);
    assert_int_equal(feed(&s[2], SPAN(LINE GET)), SESSION_WRITE);
    for (unsigned i = 1; i < 4; i++)
        session_close(&s[i]);
}

static void a_parent_can_release_what_a_child_has_counted(void **state)
{
    (void)state;
    _Atomic uint32_t counted = 0;
    world.worker.counted = &counted;
    struct session s = open_from(proxy);
    assert_int_equal(feed(&s, SPAN(LINE)), SESSION_READ);
    const struct session_peer noted = session_peer_unpack(atomic_load(&counted));
    assert_true(noted.limited);
    assert_memory_equal(noted.place, s.peer.place, sizeof(noted.place));
    session_close(&s);
    assert_int_equal(atomic_load(&counted), 0);
    world.worker.counted = NULL;
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
    return cmocka_run_group_tests_name("session/proxy", tests, make_world, end_world);
}
