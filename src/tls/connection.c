/* SPDX-License-Identifier: MIT
 *
 * The BIO below is the whole transport of OpenSSL: a read copies from the lent span, and a write
 * appends to the wire. A memory BIO would copy once more and allocate. A socket BIO would make two
 * system calls for each record.
 *
 * The error queue of the thread is empty between calls. OpenSSL needs that to tell a failure from
 * missing input, and clearing the queue before each call would cost more.
 */
#include "tls/connection.h"

#include "tls/records.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdlib.h>

/* The most handshake messages between two reads of data, after the handshake. Each KeyUpdate makes
 * new keys, and a client could send nothing else (RFC 8446 section 4.6.3). */
enum { MESSAGES_MAX = 32 };

/* ---- the transport ---- */

static int write_bytes(BIO *bio, const char *bytes, size_t len, size_t *ret_written)
{
    struct tls_connection *c = BIO_get_data(bio);
    *ret_written = 0;
    if (!tls_wire_add(&c->wire, c->chunks, span_of(bytes, len))) {
        c->memory_failed = true;
        return 0;
    }
    *ret_written = len;
    return 1;
}

static int read_bytes(BIO *bio, char *to, size_t size, size_t *ret_read)
{
    struct tls_connection *c = BIO_get_data(bio);
    struct span part = span_first(c->in, size);
    *ret_read = part.len;
    if (part.len == 0) {
        BIO_set_retry_read(bio);
        return 0;
    }
    BIO_clear_retry_flags(bio);
    memcpy(to, part.at, part.len);
    c->in = span_skip(c->in, part.len);
    return 1;
}

static long control_bio(BIO *bio, int command, long number, void *pointer)
{
    (void)bio, (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static int create_bio(BIO *bio)
{
    BIO_set_init(bio, 1);
    return 1;
}

static BIO_METHOD *transport;

static void make_transport(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "weir");
    if (!method)
        return;
    if (BIO_meth_set_write_ex(method, write_bytes) == 1 &&
        BIO_meth_set_read_ex(method, read_bytes) == 1 &&
        BIO_meth_set_ctrl(method, control_bio) == 1 && BIO_meth_set_create(method, create_bio) == 1)
        transport = method;
    else
        BIO_meth_free(method);
}

/* ---- settling ---- */

/* OpenSSL reports each head of a record, and each message. The keys of a direction change when
 * their secret is derived. */
static void count_record(int is_out, int version, int type, const void *bytes, size_t len, SSL *ssl,
                         void *argument)
{
    (void)version, (void)bytes, (void)len, (void)argument;
    struct tls_connection *c = SSL_get_app_data(ssl);
    struct tls_keys *keys = is_out ? &c->records->out : &c->records->in;
    if (!keys->secret.known)
        return;
    if (type == SSL3_RT_HEADER)
        keys->count++;
    else if (type == SSL3_RT_HANDSHAKE && !is_out)
        c->keys_changed = true;
}

/* A client with little memory may ask for short records (RFC 6066 section 4). */
static bool has_short_records(const SSL *ssl)
{
    return SSL_SESSION_get_max_fragment_length(SSL_get_session(ssl)) !=
           TLSEXT_max_fragment_length_DISABLED;
}

static bool can_settle(const struct tls_connection *c)
{
    return c->records && c->records->in.secret.known && c->records->out.secret.known &&
           !c->keys_changed && SSL_version(c->ssl) == TLS1_3_VERSION &&
           !has_short_records(c->ssl) && !SSL_has_pending(c->ssl) &&
           strcmp(SSL_rstate_string(c->ssl), "RH") == 0;
}

void tls_connection_settle(struct tls_connection *c)
{
    if (!c->ssl)
        return;
    if (can_settle(c) &&
        tls_records_begin(c->records, SSL_CIPHER_get_protocol_id(SSL_get_current_cipher(c->ssl)))) {
        SSL_free(c->ssl);
        c->ssl = NULL;
    } else if (!tls_connection_has_plain(c)) { /* SSL_free_buffers sees encrypted bytes only */
        (void)SSL_free_buffers(c->ssl);
    }
}

/* ---- beginning and end ---- */

/* OpenSSL calls it for each handshake message, also after the handshake. */
static void count_message(const SSL *ssl, int where, int value)
{
    (void)value;
    struct tls_connection *c = SSL_get_app_data(ssl);
    if (where & SSL_CB_LOOP)
        c->messages++;
}

bool tls_connection_open(struct tls_connection *c, SSL *ssl, struct tls_chunks *chunks)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    CHECK(pthread_once(&once, make_transport) == 0);
    *c = (struct tls_connection){ .ssl = ssl, .chunks = chunks };
    ERR_clear_error(); /* OpenSSL 3.5: SSL_new can succeed and leave an error */
    BIO *bio = transport ? BIO_new(transport) : NULL;
    if (!bio || SSL_set_app_data(ssl, c) != 1) {
        ERR_clear_error();
        BIO_free(bio);
        SSL_free(ssl);
        c->ssl = NULL;
        return false;
    }
    BIO_set_data(bio, c);
    SSL_set_bio(ssl, bio, bio);
    SSL_set_info_callback(ssl, count_message);
    c->records = SSL_is_server(ssl) ? calloc(1, sizeof(*c->records)) : NULL;
    if (c->records)
        SSL_set_msg_callback(ssl, count_record);
    return true;
}

void tls_connection_close(struct tls_connection *c)
{
    tls_wire_drop(&c->wire, c->chunks);
    tls_records_free(c->records);
    SSL_free(c->ssl);
    c->records = NULL;
    c->ssl = NULL;
}

/* ---- calls ---- */

/* The result of a call of OpenSSL that has not succeeded. */
static enum tls_result failed_call(struct tls_connection *c, int rc)
{
    switch (SSL_get_error(c->ssl, rc)) {
    case SSL_ERROR_WANT_READ:
        return TLS_MORE;
    case SSL_ERROR_ZERO_RETURN:
        return TLS_ENDED;
    default:
        if (c->error == 0)
            c->error = ERR_peek_error();
        ERR_clear_error();
        return TLS_FAILED;
    }
}

enum tls_result tls_connection_handshake(struct tls_connection *c)
{
    if (c->records)
        tls_schedule_watch(&c->records->in.secret, &c->records->out.secret);
    int rc = SSL_do_handshake(c->ssl);
    tls_schedule_watch(NULL, NULL);
    if (rc != 1)
        return failed_call(c, rc);
    c->messages = 0;
    return TLS_DONE;
}

bool tls_connection_is_http2(const struct tls_connection *c)
{
    const unsigned char *at;
    unsigned len;
    SSL_get0_alpn_selected(c->ssl, &at, &len);
    return span_equal(span_of((const char *)at, len), SPAN("h2"));
}

struct tls_agreement tls_connection_agreed(const struct tls_connection *c)
{
    const char *cipher = SSL_get_cipher_name(c->ssl);
    const char *group = SSL_group_to_name(c->ssl, (int)SSL_get_negotiated_group(c->ssl));
    return (struct tls_agreement){ .protocol = SSL_get_version(c->ssl),
                                   .cipher = cipher ? cipher : "",
                                   .group = group ? group : "",
                                   .resumed = SSL_session_reused(c->ssl) == 1 };
}

enum tls_result tls_connection_read(struct tls_connection *c, char *to, size_t size,
                                    size_t *ret_len)
{
    if (!c->ssl)
        return tls_records_read(c, to, size, ret_len);
    *ret_len = 0;
    while (*ret_len < size) {
        if (c->in.len == 0 && SSL_pending(c->ssl) == 0)
            return TLS_MORE;
        size_t len;
        int rc = SSL_read_ex(c->ssl, to + *ret_len, size - *ret_len, &len);
        if (__builtin_expect(c->messages > MESSAGES_MAX, 0))
            return TLS_FAILED;
        if (rc != 1)
            return failed_call(c, rc);
        c->messages = 0;
        *ret_len += len;
    }
    return TLS_DONE;
}

bool tls_connection_has_plain(const struct tls_connection *c)
{
    return c->ssl ? SSL_pending(c->ssl) > 0 : c->records->held != NULL;
}

enum tls_result tls_connection_write(struct tls_connection *c, struct span plain)
{
    size_t written;
    if (!c->ssl)
        return tls_records_write(c, &plain, 1);
    int rc = SSL_write_ex(c->ssl, plain.at, plain.len, &written);
    return rc == 1 ? TLS_DONE : failed_call(c, rc);
}

enum tls_result tls_connection_write_pieces(struct tls_connection *c, const struct span *pieces,
                                            unsigned count, char *scratch)
{
    size_t len = 0;
    if (!c->ssl)
        return tls_records_write(c, pieces, count);
    if (count == 1)
        return tls_connection_write(c, pieces[0]);
    for (unsigned i = 0; i < count; i++) {
        memcpy(scratch + len, pieces[i].at, pieces[i].len);
        len += pieces[i].len;
    }
    return tls_connection_write(c, span_of(scratch, len));
}

void tls_connection_end(struct tls_connection *c)
{
    if (!c->ssl)
        tls_records_end(c);
    else if (SSL_is_init_finished(c->ssl) && SSL_shutdown(c->ssl) < 0)
        ERR_clear_error();
}
