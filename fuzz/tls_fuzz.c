/* SPDX-License-Identifier: MIT
 *
 * A session behind TLS. The first byte chooses one of two clients. The first client sends the input
 * as it is. The second completes the handshake. Then it follows the input as a script of records
 * with any content type and length, key updates, broken bytes and ends. With any input, the session
 * keeps its contract and ends.
 */
#include "sealer.h"
#include "small_site.h"
#include "support/secure.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUTPUT_MAX = 1024 * 1024, SUITE = 0x1301, SECRET_BYTES = 32 };

static const char *const own_names[] = { "a", NULL };

/* ---- a server ---- */

static void end_tls(void)
{
    tls_server_free(world.shared.tls);
    world.shared.tls = NULL;
}

static void begin_world(void)
{
    if (world.shared.tls)
        return;
    small_site_begin();
    char *folder = below("tls");
    world.shared.tls = secure_server(folder, own_names, NULL);
    free(folder);
    CHECK(world.shared.tls && atexit(end_tls) == 0);
}

/* ---- a connection ---- */

struct conversation {
    struct session session;
    unsigned want;
    uint64_t random;
    char output[OUTPUT_MAX];
    size_t len;
};

static size_t portion(struct conversation *c, size_t most)
{
    c->random = c->random * 6364136223846793005u + 1442695040888963407u;
    size_t limit = (c->random >> 60) < 4 ? 7 : most;
    size_t len = 1 + (size_t)(c->random >> 33) % (limit ? limit : 1);
    return len < most ? len : most;
}

static void send_portion(struct conversation *c)
{
    struct session_out out = session_output(&c->session);
    size_t total = 0;
    CHECK(out.file_fd < 0 && out.count > 0);
    for (unsigned i = 0; i < out.count; i++)
        total += out.piece[i].len;
    size_t taken = portion(c, total), left = taken;
    for (unsigned i = 0; i < out.count && left > 0; i++) {
        struct span part = span_first(out.piece[i], left);
        CHECK(part.len > 0);
        if (c->len + part.len <= OUTPUT_MAX) {
            memcpy(c->output + c->len, part.at, part.len);
            c->len += part.len;
        }
        left -= part.len;
    }
    c->want = session_sent(&c->session, taken, NOW_NS);
    session_thread_tick(&world.worker, NOW_NS, 1795248000);
}

/* Feeds all of it, or until the session ends. */
static void feed_all(struct conversation *c, struct span input)
{
    while (c->want != SESSION_CLOSE && (c->want & SESSION_WRITE || input.len > 0)) {
        if (c->want & SESSION_WRITE) {
            send_portion(c);
            continue;
        }
        size_t room = session_room(&c->session);
        CHECK(room >= SESSION_READ_LEAST && room <= SESSION_READ_MAX);
        size_t len = portion(c, input.len < room ? input.len : room);
        char *copy = malloc(len);
        CHECK(copy);
        memcpy(copy, input.at, len);
        session_thread_tick(&world.worker, NOW_NS, 1795248000);
        c->want = session_feed(&c->session, span_of(copy, len), NOW_NS);
        free(copy);
        input = span_skip(input, len);
    }
}

/* ---- a client ---- */

/* The first traffic secret of the client whose handshake is under way. */
static unsigned char secret[SECRET_BYTES];

static void keep_secret(const SSL *ssl, const char *line)
{
    static const char label[] = "CLIENT_TRAFFIC_SECRET_0 ";
    (void)ssl;
    if (strncmp(line, label, sizeof(label) - 1) != 0)
        return;
    const char *hex = strrchr(line, ' ') + 1;
    CHECK(strlen(hex) == sizeof(secret) * 2);
    for (size_t i = 0; i < sizeof(secret); i++) {
        const char digits[] = { hex[2 * i], hex[2 * i + 1], '\0' };
        secret[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
}

static void open_client(struct secure_client *client)
{
    CHECK(secure_open(client));
    SSL *ssl = client->connection.ssl;
    SSL_CTX_set_keylog_callback(SSL_get_SSL_CTX(ssl), keep_secret);
    CHECK(SSL_set_ciphersuites(ssl, "TLS_AES_128_GCM_SHA256") == 1);
}

static bool shake_hands(struct conversation *c, struct secure_client *client)
{
    enum tls_result result;
    do {
        char *bytes = NULL;
        size_t len = 0;
        FILE *out = open_memstream(&bytes, &len);
        CHECK(out);
        result = secure_shake_hands(client, span_of(c->output, c->len), out);
        CHECK(fclose(out) == 0);
        feed_all(c, span_of(bytes, len));
        free(bytes);
    } while (result == TLS_MORE);
    return result == TLS_DONE && c->want == SESSION_READ;
}

/* `content` has at most 512 bytes. */
static void send_record(struct conversation *c, struct sealer *sealer, struct span content,
                        unsigned type, size_t padding)
{
    char inner[TLS_RECORD_BYTES], record[TLS_CHUNK_BYTES];
    if (content.len > 0)
        memcpy(inner, content.at, content.len);
    inner[content.len] = (char)type;
    memset(inner + content.len + 1, 0, padding);
    const struct span all = span_of(inner, content.len + 1 + padding);
    feed_all(c, span_of(record, sealer_seal(sealer, all, record)));
}

/* In records of `portion` bytes. */
static void send_data(struct conversation *c, struct sealer *sealer, struct span data,
                      size_t portion)
{
    while (data.len > 0) {
        struct span part = span_first(data, portion);
        send_record(c, sealer, part, 23, 0);
        data = span_skip(data, part.len);
    }
}

static void send_key_update(struct conversation *c, struct sealer *sealer, bool requested)
{
    send_record(c, sealer, requested ? SPAN("\x18\0\0\1\1") : SPAN("\x18\0\0\1\0"), 22, 0);
    sealer_update(sealer);
}

/* One command: a byte that names it, a byte with a length, and that many bytes. A name from 240 on
 * stands for a record with any content type, which the next byte names, and padding. */
static struct span obey(struct conversation *c, struct sealer *sealer, struct span script)
{
    const unsigned name = (unsigned char)script.at[0];
    struct span rest = span_skip(script, 1);
    const size_t len = rest.len > 0 ? (unsigned char)rest.at[0] : 0;
    rest = rest.len > 0 ? span_skip(rest, 1) : rest;
    if (name >= 240 && rest.len > 0) {
        const unsigned type = (unsigned char)rest.at[0];
        const struct span bytes = span_first(span_skip(rest, 1), len);
        send_record(c, sealer, bytes, type, (size_t)(name - 240) << 9);
        return span_skip(rest, 1 + bytes.len);
    }
    const struct span bytes = span_first(rest, len);
    switch (name % 5) {
    case 0:
        send_data(c, sealer, bytes, TLS_RECORD_BYTES);
        return span_skip(rest, bytes.len);
    case 1:
        send_data(c, sealer, SPAN("GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n"), 1 + len);
        return rest;
    case 2:
        send_key_update(c, sealer, len % 2 == 1);
        return rest;
    case 3:
        feed_all(c, bytes);
        return span_skip(rest, bytes.len);
    default:
        send_record(c, sealer, SPAN("\1\0"), 21, 0);
        return rest;
    }
}

static void follow_script(struct conversation *c, struct span script)
{
    struct secure_client client;
    open_client(&client);
    if (shake_hands(c, &client)) {
        struct sealer sealer;
        sealer_begin(&sealer, SUITE, span_of((const char *)secret, sizeof(secret)));
        while (script.len > 0 && c->want != SESSION_CLOSE)
            script = obey(c, &sealer, script);
        sealer_end(&sealer);
    }
    ERR_clear_error();
    secure_close(&client);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct conversation c;
    begin_world();
    if (size == 0 || size > 16 * 1024)
        return 0;
    struct span input = span_of((const char *)data + 1, size - 1);
    c.len = 0;
    c.want = SESSION_READ;
    c.random = size;
    session_open(&c.session, &world.worker, (struct session_origin){ .tls = true }, NOW_NS);
    if (data[0] % 2 == 0)
        feed_all(&c, input);
    else
        follow_script(&c, input);
    if (c.want == SESSION_READ)
        (void)session_expire(&c.session, session_deadline_ns(&c.session));
    session_close(&c.session);
    session_thread_tick(&world.worker, NOW_NS, 1795248000);
    return 0;
}
