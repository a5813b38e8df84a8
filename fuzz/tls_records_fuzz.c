/* SPDX-License-Identifier: MIT
 *
 * The records of a TLS 1.3 connection after its handshake. The input is a script of records that
 * are sealed with the connection's own keys: any content type, length and padding, KeyUpdate, and
 * broken records. A model of RFC 8446 says what the connection must read, and what it must send.
 */
#include "sealer.h"
#include "tls/records.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ALERT = 21, HANDSHAKE = 22, DATA = 23, KEY_UPDATE = 24 };

enum { UNEXPECTED = 10, BAD_MAC = 20, OVERFLOW = 22, ILLEGAL = 47, DECODE = 50, CANCELED = 90 };

enum {
    INNER_MAX = TLS_RECORD_BYTES + 256 - SEALER_TAG,
    STREAM_MAX = 256 * 1024,
    RECORDS_MAX = 256,
    OWN_MAX = 64 * RECORDS_MAX,
    IDLE_MAX = 32, /* records without data, between two with data */
};

struct text {
    char *bytes;
    size_t len, size;
};

static void add_text(struct text *t, struct span more)
{
    CHECK(more.len <= t->size - t->len);
    if (more.len > 0)
        memcpy(t->bytes + t->len, more.at, more.len);
    t->len += more.len;
}

/* ---- the model ---- */

enum outcome { GOES_ON, ENDED, FAILED };

struct model {
    struct text plain; /* to be read */
    struct text own;   /* the inner plaintexts to be sent, each with its length before it */
    unsigned char message[5];
    size_t message_len;
    unsigned idle;
    enum outcome outcome;
    bool update_requested;
    bool unknown; /* broken bytes have been sent: nothing more is read */
};

static void add_own(struct model *m, struct span inner)
{
    const char len = (char)inner.len;
    add_text(&m->own, span_of(&len, 1));
    add_text(&m->own, inner);
}

static void expect_failure(struct model *m, char alert)
{
    const char inner[] = { 2, alert, ALERT };
    add_own(m, span_of(inner, sizeof(inner)));
    m->outcome = FAILED;
}

static void expect_alert(struct model *m, struct span content)
{
    if (content.len != 2)
        expect_failure(m, DECODE);
    else if (content.at[1] != CANCELED)
        m->outcome = content.at[1] == 0 ? ENDED : FAILED;
}

/* Returns whether the client's keys change. */
static bool expect_handshake(struct model *m, struct span content)
{
    size_t len = m->message_len + content.len;
    for (size_t i = 0; i < content.len && m->message_len < sizeof(m->message); i++)
        m->message[m->message_len++] = (unsigned char)content.at[i];
    if (content.len == 0 || m->message[0] != KEY_UPDATE || len > sizeof(m->message)) {
        expect_failure(m, UNEXPECTED);
        return false;
    }
    if (len < sizeof(m->message))
        return false;
    m->message_len = 0;
    if (m->message[1] != 0 || m->message[2] != 0 || m->message[3] != 1)
        expect_failure(m, DECODE);
    else if (m->message[4] > 1)
        expect_failure(m, ILLEGAL);
    else if (m->message[4] == 1)
        m->update_requested = true;
    return m->outcome == GOES_ON;
}

/* A sealed record arrives. Returns whether the client's keys change. */
static bool expect_record(struct model *m, struct span inner)
{
    if (m->outcome != GOES_ON || m->unknown)
        return false;
    struct span content = inner;
    while (content.len > 0 && content.at[content.len - 1] == 0)
        content.len--;
    if (inner.len > TLS_RECORD_BYTES + 1) {
        expect_failure(m, OVERFLOW);
        return false;
    }
    if (inner.len == 0 || content.len == 0) {
        expect_failure(m, inner.len == 0 ? BAD_MAC : UNEXPECTED);
        return false;
    }
    const char type = content.at[--content.len];
    const bool has_data = type == DATA && content.len > 0;
    const bool known = type == DATA || type == ALERT || type == HANDSHAKE;
    m->idle = has_data ? 0 : m->idle + 1;
    if ((m->message_len > 0 && type != HANDSHAKE) || m->idle > IDLE_MAX || !known)
        expect_failure(m, UNEXPECTED);
    else if (type == DATA)
        add_text(&m->plain, content);
    else if (type == ALERT)
        expect_alert(m, content);
    else
        return expect_handshake(m, content);
    return false;
}

/* The connection sends data. One KeyUpdate before it answers all requests (RFC 8446 section 4.6.3).
 */
static void expect_answer(struct model *m)
{
    if (m->outcome != GOES_ON || m->unknown)
        return;
    if (m->update_requested)
        add_own(m, SPAN("\x18\0\0\1\0\x16"));
    add_own(m, SPAN("answer\x17"));
}

/* ---- scripts ---- */

struct script {
    struct span left;
    struct sealer sealer;
    struct text stream;
    unsigned records;
};

static unsigned next_byte(struct script *s)
{
    if (s->left.len == 0)
        return 0;
    unsigned byte = (unsigned char)s->left.at[0];
    s->left = span_skip(s->left, 1);
    return byte;
}

static struct span next_bytes(struct script *s, size_t len)
{
    struct span bytes = span_first(s->left, len);
    s->left = span_skip(s->left, bytes.len);
    return bytes;
}

static void add_record(struct script *s, struct model *m, struct span inner)
{
    char record[SEALER_HEAD + INNER_MAX + SEALER_TAG];
    add_text(&s->stream, span_of(record, sealer_seal(&s->sealer, inner, record)));
    if (expect_record(m, inner))
        sealer_update(&s->sealer);
}

/* Content, type and padding. */
static void add_parts(struct script *s, struct model *m, struct span content, unsigned type,
                      size_t padding)
{
    char inner[INNER_MAX];
    if (content.len + 1 > INNER_MAX)
        content.len = INNER_MAX - 1;
    if (padding > INNER_MAX - 1 - content.len)
        padding = INNER_MAX - 1 - content.len;
    if (content.len > 0)
        memcpy(inner, content.at, content.len);
    inner[content.len] = (char)type;
    memset(inner + content.len + 1, 0, padding);
    add_record(s, m, span_of(inner, content.len + 1 + padding));
}

static void add_long(struct script *s, struct model *m, unsigned type)
{
    char content[INNER_MAX];
    unsigned len = next_byte(s) << 8;
    len = (len | next_byte(s)) % INNER_MAX;
    memset(content, (int)next_byte(s), sizeof(content));
    add_parts(s, m, span_of(content, len), type, 0);
}

static void add_broken(struct script *s, struct model *m, unsigned how)
{
    const size_t at = s->stream.len;
    if (how % 2 == 0) {
        add_text(&s->stream, next_bytes(s, next_byte(s)));
    } else {
        m->unknown = true;
        add_parts(s, m, next_bytes(s, next_byte(s)), DATA, 0);
        size_t place = at + next_byte(s) % (s->stream.len - at);
        s->stream.bytes[place] = (char)(s->stream.bytes[place] ^ (1 + (int)(how >> 1)));
    }
    m->unknown = m->unknown || s->stream.len > at;
}

/* One command: a byte that names it, and what it needs. */
static void obey(struct script *s, struct model *m)
{
    static const unsigned types[] = { DATA, ALERT, HANDSHAKE, 20, 0, 99 };
    const unsigned command = next_byte(s), more = command >> 3;
    switch (command & 7) {
    case 0:
        add_parts(s, m, next_bytes(s, more), DATA, 0);
        return;
    case 1:
        add_parts(s, m, next_bytes(s, more), types[next_byte(s) % 6], next_byte(s));
        return;
    case 2:
        add_parts(s, m, next_bytes(s, more), next_byte(s), 0);
        return;
    case 3:
        add_long(s, m, types[more % 6]);
        return;
    case 4:
        add_parts(s, m, more % 2 ? SPAN("\x18\0\0\1\1") : SPAN("\x18\0\0\1\0"), HANDSHAKE, 0);
        return;
    case 5:
        add_record(s, m, next_bytes(s, more)); /* perhaps without any byte */
        return;
    case 6:
        add_parts(s, m, SPAN("x"), DATA, (size_t)next_byte(s) << 6);
        return;
    default:
        add_broken(s, m, more);
    }
}

/* ---- the connection ---- */

struct subject {
    struct tls_connection c;
    struct tls_chunks chunks;
    struct text plain;
    uint64_t random;
};

static size_t portion(struct subject *subject, size_t most)
{
    subject->random = subject->random * 6364136223846793005u + 1442695040888963407u;
    size_t limit = (subject->random >> 60) < 8 ? 7 : most;
    size_t len = 1 + (size_t)(subject->random >> 33) % (limit ? limit : 1);
    return len < most ? len : most;
}

/* Reads all that a portion of the stream brings, with space for a few bytes or many. */
static enum tls_result read_portion(struct subject *subject, struct span bytes)
{
    enum tls_result result;
    char *copy = malloc(bytes.len);
    CHECK(copy);
    memcpy(copy, bytes.at, bytes.len);
    subject->c.in = span_of(copy, bytes.len);
    do {
        const size_t size = portion(subject, 4 * TLS_RECORD_BYTES);
        size_t len;
        char *to = malloc(size);
        CHECK(to);
        result = tls_connection_read(&subject->c, to, size, &len);
        CHECK(len <= size && (result != TLS_DONE || len == size));
        add_text(&subject->plain, span_of(to, len));
        free(to);
    } while (result == TLS_DONE);
    CHECK(result != TLS_MORE || subject->c.in.len == 0);
    CHECK(!tls_connection_has_plain(&subject->c));
    free(copy);
    return result;
}

static enum outcome read_stream(struct subject *subject, struct span stream)
{
    enum tls_result result = TLS_MORE;
    while (stream.len > 0) {
        const size_t len = portion(subject, stream.len);
        const enum tls_result next = read_portion(subject, span_first(stream, len));
        CHECK(result == TLS_MORE || next == result); /* an end is the end */
        result = next;
        stream = span_skip(stream, len);
    }
    return result == TLS_MORE ? GOES_ON : result == TLS_ENDED ? ENDED : FAILED;
}

/* Opens what the connection has sent. Its own KeyUpdate changes its keys. */
static void open_own(struct subject *subject, struct sealer *sealer, struct text *own)
{
    char record[TLS_CHUNK_BYTES], inner[TLS_CHUNK_BYTES];
    struct span piece;
    static char bytes[4 * OWN_MAX];
    struct text sent = { bytes, 0, sizeof(bytes) };
    while (tls_wire_pieces(&subject->c.wire, &piece, 1) == 1) {
        add_text(&sent, piece);
        tls_wire_sent(&subject->c.wire, subject->c.chunks, piece.len);
    }
    for (struct span left = span_of(sent.bytes, sent.len); left.len > 0;) {
        CHECK(left.len > SEALER_HEAD);
        const size_t len = SEALER_HEAD +
                           ((size_t)(unsigned char)left.at[3] << 8 | (unsigned char)left.at[4]);
        CHECK(len <= left.len && len <= sizeof(record));
        memcpy(record, left.at, len);
        const struct span found = sealer_open(sealer, span_of(record, len), inner);
        const char size = (char)found.len;
        add_text(own, span_of(&size, 1));
        add_text(own, found);
        if (found.at[found.len - 1] == HANDSHAKE)
            sealer_update(sealer);
        left = span_skip(left, len);
    }
}

static bool equal(const struct text *a, const struct text *b)
{
    return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

static void check_outcome(const struct model *m, const struct subject *subject,
                          enum outcome outcome, const struct text *own)
{
    CHECK(equal(&m->plain, &subject->plain));
    if (m->unknown && m->outcome == GOES_ON) {
        CHECK(outcome != ENDED);
        CHECK(own->len >= m->own.len && memcmp(own->bytes, m->own.bytes, m->own.len) == 0);
        return;
    }
    CHECK(outcome == m->outcome);
    CHECK(equal(&m->own, own));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char secrets[2][TLS_SECRET_BYTES] = { "the client's secret", "the server's" };
    if (size < 1 || size > 4096)
        return 0;
    const unsigned suite = 0x1301 + data[0] % 3;
    const size_t secret_len = suite == 0x1302 ? 48 : 32;
    static char bytes[3][STREAM_MAX], own_bytes[2][OWN_MAX];
    struct script script = { .left = span_of((const char *)data + 1, size - 1),
                             .stream = { bytes[0], 0, STREAM_MAX } };
    struct model model = { .plain = { bytes[1], 0, STREAM_MAX },
                           .own = { own_bytes[0], 0, OWN_MAX } };
    struct subject subject = { .plain = { bytes[2], 0, STREAM_MAX }, .random = size };
    struct text own = { own_bytes[1], 0, OWN_MAX };
    struct sealer server;
    sealer_begin(&script.sealer, suite, span_of(secrets[0], secret_len));
    sealer_begin(&server, suite, span_of(secrets[1], secret_len));
    struct tls_records *records = calloc(1, sizeof(*records));
    CHECK(records);
    memcpy(records->in.secret.bytes, secrets[0], secret_len);
    memcpy(records->out.secret.bytes, secrets[1], secret_len);
    CHECK(tls_records_begin(records, suite));
    subject.c = (struct tls_connection){ .records = records, .chunks = &subject.chunks };

    while (script.left.len > 0 && script.records++ < RECORDS_MAX &&
           script.stream.len < STREAM_MAX - 2 * (size_t)TLS_CHUNK_BYTES)
        obey(&script, &model);
    const struct span stream = span_of(script.stream.bytes, script.stream.len);
    const enum outcome outcome = read_stream(&subject, stream);
    if (outcome == GOES_ON)
        CHECK(tls_connection_write(&subject.c, SPAN("answer")) == TLS_DONE);
    expect_answer(&model);
    open_own(&subject, &server, &own);
    check_outcome(&model, &subject, outcome, &own);

    tls_connection_close(&subject.c);
    tls_chunks_trim(&subject.chunks, 0);
    sealer_end(&script.sealer);
    sealer_end(&server);
    return 0;
}
