/* SPDX-License-Identifier: MIT
 *
 * The bytes of a client of the statistics page, over a pair of sockets: plain, over TLS, and when
 * the client does not keep to the protocol.
 */
#include "page/transport.h"

#include "unit/tls/fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

enum { LARGE = 300 * 1024 };

struct fixture {
    struct tree tree;
    EVP_PKEY *key;
    struct tls_pair pair;
    struct page_tls tls;
    struct page_transport transport;
    struct talk talk; /* its server is not in use */
    int peer;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    int ends[2];
    assert_non_null(f);
    tree_make(&f->tree);
    f->key = make_ec_key();
    write_pair(&f->tree, "a", f->key, "DNS:a.test");
    f->pair = pair_of(&f->tree, "a.crt", "a.key");
    const struct tls_server_site site = { .name = "only", .pairs = &f->pair, .pair_count = 1 };
    f->tls.server = new_server(&(struct tls_server_plan){ .sites = &site, .site_count = 1 });
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    page_transport_open(&f->transport, ends[0], &f->tls);
    f->peer = ends[1];
    open_client(&f->talk, &(struct client){ .highest = 0 });
    assert_int_equal(SSL_set_fd(f->talk.client, f->peer), 1);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    if (f->transport.fd >= 0)
        page_transport_close(&f->transport);
    SSL_free(f->talk.client);
    SSL_CTX_free(f->talk.context);
    close(f->peer);
    tls_chunks_trim(&f->tls.chunks, 0);
    tls_server_free(f->tls.server);
    free_pair(&f->pair);
    EVP_PKEY_free(f->key);
    tree_remove(&f->tree);
    free(f);
    return 0;
}

/* Receives a text, and nothing more. */
static void assert_received(struct fixture *f, const char *text)
{
    char bytes[64];
    ssize_t got = page_transport_receive(&f->transport, bytes, sizeof(bytes));
    assert_int_equal(got, strlen(text));
    assert_memory_equal(bytes, text, strlen(text));
    assert_false(page_transport_has_input(&f->transport));
    assert_int_equal(page_transport_receive(&f->transport, bytes, sizeof(bytes)), -EAGAIN);
}

static void shake_hands(struct fixture *f)
{
    char byte;
    bool failed = false, done = false;
    for (unsigned i = 0; i < 10 && !done && !failed; i++) {
        done = step(f->talk.client, &failed);
        assert_int_equal(page_transport_receive(&f->transport, &byte, 1), -EAGAIN);
    }
    assert_true(done);
    ERR_clear_error();
}

static ssize_t send_text(struct fixture *f, struct span head, struct span body)
{
    struct iovec pieces[2] = { { (char *)(uintptr_t)head.at, head.len },
                               { (char *)(uintptr_t)body.at, body.len } };
    return page_transport_send(&f->transport, pieces);
}

static void plain_bytes_pass_as_they_are(void **state)
{
    struct fixture *f = *state;
    char bytes[8];
    f->transport.tls = NULL;
    assert_int_equal(write(f->peer, "hello", 5), 5);
    assert_received(f, "hello");
    assert_int_equal(send_text(f, SPAN("ab"), SPAN("cd")), 4);
    assert_false(page_transport_has_output(&f->transport));
    assert_int_equal(read(f->peer, bytes, sizeof(bytes)), 4);
    assert_memory_equal(bytes, "abcd", 4);
    page_transport_end(&f->transport);
    assert_int_equal(read(f->peer, bytes, sizeof(bytes)), 0);
}

static void bytes_pass_over_tls(void **state)
{
    struct fixture *f = *state;
    char bytes[8];
    shake_hands(f);
    assert_int_equal(SSL_write(f->talk.client, "hello", 5), 5);
    assert_received(f, "hello");
    assert_int_equal(send_text(f, SPAN("ab"), SPAN("cd")), 4);
    assert_int_equal(SSL_read(f->talk.client, bytes, sizeof(bytes)), 2);
    assert_int_equal(SSL_read(f->talk.client, bytes + 2, sizeof(bytes)), 2);
    assert_memory_equal(bytes, "abcd", 4);
    page_transport_end(&f->transport);
    int rc = SSL_read(f->talk.client, bytes, sizeof(bytes));
    assert_int_equal(SSL_get_error(f->talk.client, rc), SSL_ERROR_ZERO_RETURN);
}

static void input_that_does_not_fit_waits(void **state)
{
    struct fixture *f = *state;
    char bytes[4];
    shake_hands(f);
    assert_int_equal(SSL_write(f->talk.client, "abcdef", 6), 6);
    assert_int_equal(SSL_write(f->talk.client, "gh", 2), 2);
    assert_int_equal(page_transport_receive(&f->transport, bytes, 4), 4);
    assert_memory_equal(bytes, "abcd", 4);
    assert_true(page_transport_has_input(&f->transport));
    assert_received(f, "efgh");
}

static void output_that_does_not_fit_waits(void **state)
{
    struct fixture *f = *state;
    char *large = malloc(LARGE), *got = malloc(LARGE);
    size_t sent = 0, read_bytes = 0;
    assert_true(large && got);
    for (size_t i = 0; i < LARGE; i++)
        large[i] = (char)(i * 7 % 251);
    shake_hands(f);
    assert_int_equal(setsockopt(f->transport.fd, SOL_SOCKET, SO_SNDBUF, &(int){ 4096 }, 4), 0);
    bool waited = false;
    while (read_bytes < LARGE) {
        ssize_t now = send_text(f, SPAN(""), span_of(large + sent, LARGE - sent));
        assert_true(now >= 0 || now == -EAGAIN);
        sent += now > 0 ? (size_t)now : 0;
        waited = waited || page_transport_has_output(&f->transport);
        int part = SSL_read(f->talk.client, got + read_bytes, (int)(LARGE - read_bytes));
        read_bytes += part > 0 ? (size_t)part : 0;
    }
    ERR_clear_error();
    assert_true(waited);
    assert_memory_equal(got, large, LARGE);
    free(large);
    free(got);
}

static void the_end_of_a_client_follows_its_bytes(void **state)
{
    struct fixture *f = *state;
    char bytes[8];
    shake_hands(f);
    assert_int_equal(SSL_write(f->talk.client, "last", 4), 4);
    assert_int_equal(SSL_shutdown(f->talk.client), 0);
    assert_int_equal(page_transport_receive(&f->transport, bytes, sizeof(bytes)), 4);
    assert_true(page_transport_has_input(&f->transport));
    assert_int_equal(page_transport_receive(&f->transport, bytes, sizeof(bytes)), 0);
}

static void plain_http_is_recognised(void **state)
{
    struct fixture *f = *state;
    char bytes[32];
    assert_int_equal(write(f->peer, "GET / HTTP/1.1\r\n\r\n", 18), 18);
    assert_int_equal(page_transport_receive(&f->transport, bytes, sizeof(bytes)), -EPROTOTYPE);
    assert_int_equal(send_text(f, SPAN("use "), SPAN("https")), 9);
    assert_int_equal(read(f->peer, bytes, sizeof(bytes)), 9);
    assert_memory_equal(bytes, "use https", 9);
}

static void a_broken_record_is_reported_once_and_gets_an_alert(void **state)
{
    struct fixture *f = *state;
    char bytes[64];
    shake_hands(f);
    assert_int_equal(write(f->peer, "\x17\x03\x03\x00\x05hello", 10), 10);
    assert_int_equal(page_transport_receive(&f->transport, bytes, sizeof(bytes)), -EPROTO);
    assert_int_equal(write(f->peer, "more", 4), 4);
    assert_int_equal(page_transport_receive(&f->transport, bytes, sizeof(bytes)), 4);
    assert_true(SSL_read(f->talk.client, bytes, sizeof(bytes)) <= 0);
    assert_int_equal(f->talk.alert, SSL_AD_BAD_RECORD_MAC);
    ERR_clear_error();
}

#define WITH_CLIENT(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_CLIENT(plain_bytes_pass_as_they_are),
        WITH_CLIENT(bytes_pass_over_tls),
        WITH_CLIENT(input_that_does_not_fit_waits),
        WITH_CLIENT(output_that_does_not_fit_waits),
        WITH_CLIENT(the_end_of_a_client_follows_its_bytes),
        WITH_CLIENT(plain_http_is_recognised),
        WITH_CLIENT(a_broken_record_is_reported_once_and_gets_an_alert),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
