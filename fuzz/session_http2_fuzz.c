/* SPDX-License-Identifier: MIT
 *
 * A whole connection of HTTP/2: real files, a real cache, no socket. The first byte chooses: bytes
 * as they come, or a script that becomes frames, so that mutations reach deep states. The session
 * gets the bytes in random portions, with short writes and deadlines. It must keep its contract,
 * send well-formed frames, release every stream, and never send a file from outside the root.
 */
#include "base/hash.h"
#include "small_site.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

/* The requests of one input can ask for more output than that. A play ends where it is full. */
enum { OUTPUT_MAX = 16 * 1024 * 1024, SCRIPT_MAX = 256 * 1024, FRAME_MAX = 16384 };

struct conversation {
    struct session session;
    uint64_t random;
    uint64_t now_ns;
    char *output;
    size_t len; /* of the output that is kept */
    unsigned want;
};

/* ---- scripts ---- */

struct script {
    char *bytes;
    size_t len;
    uint32_t stream; /* the last one that was opened */
};

static void add_bytes(struct script *s, const char *bytes, size_t len)
{
    if (s->len + len > SCRIPT_MAX)
        return;
    if (len > 0)
        memcpy(s->bytes + s->len, bytes, len);
    s->len += len;
}

static void add_frame(struct script *s, unsigned type, unsigned flags, uint32_t stream,
                      struct span payload)
{
    const char head[9] = {
        (char)(payload.len >> 16),
        (char)(payload.len >> 8),
        (char)payload.len,
        (char)type,
        (char)flags,
        (char)(stream >> 24),
        (char)(stream >> 16),
        (char)(stream >> 8),
        (char)stream,
    };
    add_bytes(s, head, sizeof(head));
    add_bytes(s, payload.at, payload.len);
}

static void add_number(struct script *s, unsigned type, uint32_t stream, uint32_t number)
{
    const char bytes[4] = { (char)(number >> 24), (char)(number >> 16), (char)(number >> 8),
                            (char)number };
    add_frame(s, type, 0, stream, span_of(bytes, sizeof(bytes)));
}

/* A request for one of the files: the static table (RFC 7541 appendix A) and two literals. */
static void add_request(struct script *s, unsigned method, unsigned choice)
{
    static const char *const paths[] = { "/",   "/hello.txt", "/big.bin",  "/f.bin", "/page.html",
                                         "/d/", "/sub",       "/link_out", "/none",  "/../x" };
    const char *path = paths[choice % (sizeof(paths) / sizeof(paths[0]))];
    char block[64];
    int len = snprintf(block, sizeof(block),
                       "%c\x86\x41\x01"
                       "a\x04%c%s",
                       method ? 0x83 : 0x82, (int)strlen(path), path);
    s->stream += 2;
    add_frame(s, 1, method ? 0x4 : 0x5, s->stream, span_of(block, (size_t)len));
}

/* A stream that a byte names: the connection, or one of the last streams. */
static uint32_t stream_of(const struct script *s, unsigned byte)
{
    uint32_t back = 2 * (byte % 8);
    return byte >= 0x80 || back > s->stream ? 0 : s->stream - back;
}

/* One command: a byte that names it, a byte of choice, and for some a text of that length. */
static struct span add_command(struct script *s, struct span rest)
{
    unsigned command = (unsigned char)rest.at[0] % 10;
    unsigned choice = rest.len > 1 ? (unsigned char)rest.at[1] : 0;
    rest = span_skip(rest, rest.len > 1 ? 2 : 1);
    struct span text = span_first(rest, choice);
    unsigned first = text.len > 0 ? (unsigned char)text.at[0] : 0;
    uint32_t stream = stream_of(s, first);
    switch (command) {
    case 0:
        add_bytes(s, text.at, text.len);
        return span_skip(rest, text.len);
    case 1:
        add_frame(s, first, text.len > 1 ? (unsigned char)text.at[1] : 0, stream,
                  span_skip(text, text.len > 2 ? 2 : text.len));
        return span_skip(rest, text.len);
    case 2:
        add_frame(s, 1, 0x5, s->stream += 2, text);
        return span_skip(rest, text.len);
    case 3:
        add_frame(s, 0, choice & 1, stream, text);
        return span_skip(rest, text.len);
    case 4:
        add_request(s, 1, choice);
        break;
    case 5:
        add_number(s, 8, stream_of(s, choice), 1U << choice % 31);
        break;
    case 6:
        add_number(s, 3, stream_of(s, choice), choice);
        break;
    case 7:
        add_frame(s, 4, 0, 0, choice & 1 ? SPAN("\0\4\0\0\0\0") : SPAN("\0\4\0\1\0\0"));
        break;
    default:
        add_request(s, 0, choice);
    }
    return rest;
}

/* ---- the connection ---- */

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
    CHECK(out.file_fd < 0 && out.count > 0); /* files are read into frames */
    for (unsigned i = 0; i < out.count; i++)
        total += out.piece[i].len;
    CHECK(total > 0);
    const size_t space = OUTPUT_MAX - c->len;
    const size_t taken = portion(c, total < space ? total : space);
    size_t left = taken;
    for (unsigned i = 0; i < out.count && left > 0; i++) {
        struct span part = span_first(out.piece[i], left);
        CHECK(part.len > 0 && c->len + part.len <= OUTPUT_MAX);
        memcpy(c->output + c->len, part.at, part.len);
        c->len += part.len;
        left -= part.len;
    }
    c->want = session_sent(&c->session, taken, c->now_ns);
    if (taken < total)
        session_thread_tick(&world.worker, c->now_ns, 1795248000);
}

static void feed_portion(struct conversation *c, struct span *input)
{
    size_t room = session_room(&c->session);
    CHECK(room >= SESSION_READ_LEAST && room <= SESSION_READ_MAX);
    size_t len = portion(c, input->len < room ? input->len : room);
    char *copy = malloc(len);
    CHECK(copy);
    memcpy(copy, input->at, len);
    session_hold(&c->session); /* as a model does when a turn ends with output that waits */
    session_thread_tick(&world.worker, c->now_ns, 1795248000);
    c->want = session_feed(&c->session, span_of(copy, len), c->now_ns);
    free(copy);
    *input = span_skip(*input, len);
}

static void converse(struct conversation *c, struct span input)
{
    unsigned expirations = 0;
    session_thread_tick(&world.worker, c->now_ns, 1795248000);
    session_open(&c->session, &world.worker, (struct session_origin){ 0 }, c->now_ns);
    c->want = SESSION_READ;
    while (c->want != SESSION_CLOSE && c->len < OUTPUT_MAX &&
           (c->want & SESSION_WRITE || input.len > 0 || expirations < 4))
        if (c->want & SESSION_WRITE) {
            send_portion(c);
        } else if (input.len > 0) {
            feed_portion(c, &input);
        } else {
            expirations++;
            c->now_ns = session_deadline_ns(&c->session);
            session_thread_tick(&world.worker, c->now_ns, 1795248000);
            c->want = session_expire(&c->session, c->now_ns);
        }
    session_close(&c->session);
}

/* ---- what the server sends ---- */

static void check_frames(struct span output)
{
    bool first = true;
    while (output.len >= 9) {
        const unsigned char *head = (const unsigned char *)output.at;
        size_t len = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
        uint32_t stream = (uint32_t)head[5] << 24 | (uint32_t)head[6] << 16 |
                          (uint32_t)head[7] << 8 | head[8];
        CHECK(len <= FRAME_MAX);
        CHECK(!first || head[3] == 4);
        CHECK(stream == 0 || stream % 2 == 1);
        CHECK(head[3] != 5 && head[3] != 2 && head[3] <= 9); /* no push, no priority */
        CHECK((head[3] == 4 || head[3] == 6 || head[3] == 7) ? stream == 0 : true);
        if (output.len < 9 + len)
            return;
        output = span_skip(output, 9 + len);
        first = false;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char output[OUTPUT_MAX], bytes[SCRIPT_MAX];
    small_site_begin();
    world.shared.h2c = true;
    if (size == 0 || size > 64 * 1024)
        return 0;
    struct span input = span_of((const char *)data + 1, size - 1);
    struct script script = { .bytes = bytes, .stream = UINT32_MAX };
    add_bytes(&script, PREFACE, strlen(PREFACE));
    if (data[0] % 2 == 0) {
        add_bytes(&script, input.at, input.len);
    } else {
        add_frame(&script, 4, 0, 0, SPAN(""));
        while (input.len > 0)
            input = add_command(&script, input);
    }
    struct conversation c = { .output = output,
                              .now_ns = NOW_NS,
                              .random = hash_bytes(span_of(bytes, script.len), 1) | 1 };
    converse(&c, span_of(bytes, script.len));
    struct span sent = span_of(output, c.len);
    check_frames(sent);
    CHECK(!memmem(sent.at, sent.len, SECRET, strlen(SECRET)));
    return 0;
}
