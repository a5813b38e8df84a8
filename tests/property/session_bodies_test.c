/* SPDX-License-Identifier: MIT
 *
 * Random requests over HTTP/2, with and without TLS: each body arrives whole, with any priorities,
 * ranges, windows and sizes of a send, and beside any other answers.
 */
#include "unit/session/secured.h"

#include "http2/client.h"
#include "http2/frame.h"
#include "support/random.h"

enum { CONNECTIONS = 100, ROUNDS = 8, ASKED_MAX = 16, LARGEST = 0x7fffffff };

static const struct {
    const char *path;
    size_t size;
} served[] = { { "/ready.bin", 10 * 1024 },
               { "/kept.bin", 60 * 1000 },
               { "/large.bin", 300 * 1000 } };

enum { FILES = sizeof(served) / sizeof(served[0]) };

static struct random_source source;

/* The byte at `at` of a file. No two records of a file are equal. */
static char byte_of(size_t at, size_t file)
{
    return (char)((at ^ (at >> 8) ^ (at >> 16) * 31) + file);
}

static int make_bodies(void **state)
{
    if (make_secured_world(state) < 0)
        return -1;
    world.shared.h2c = true;
    for (size_t i = 0; i < FILES; i++) {
        char path[128];
        (void)snprintf(path, sizeof(path), "%s%s", world.root, served[i].path);
        FILE *file = fopen(path, "we");
        assert_non_null(file);
        for (size_t at = 0; at < served[i].size; at++)
            assert_true(putc(byte_of(at, i), file) != EOF);
        assert_int_equal(fclose(file), 0);
        settle(served[i].path);
    }
    return 0;
}

static int end_bodies(void **state)
{
    for (size_t i = 0; i < FILES; i++)
        remove_file(served[i].path + 1);
    return end_secured_world(state);
}

/* ---- a client ---- */

struct asked {
    uint32_t stream;
    size_t file, at, end; /* the rest of the body */
    bool ended;
};

static char sending[64 * 1024];

static struct {
    struct talk talk;
    bool secure;
    struct buf out; /* its next frames */
    char *plain;    /* what has arrived and is no whole frame */
    size_t plain_len;
    uint32_t next_stream, window; /* of a new stream */
    struct asked asked[ASKED_MAX];
    unsigned count;
} client;

static void feed_sealed(struct span bytes)
{
    struct talk *t = &client.talk;
    while (bytes.len > 0) {
        const size_t room = t->want & SESSION_READ ? session_room(&t->session) : 0;
        if (room == 0) {
            receive_some(t);
            continue;
        }
        const struct span part =
            span_first(bytes, random_one_in(&source, 3) ? 1 + random_below(&source, room) : room);
        t->want = session_feed(&t->session, part, world.now_ns);
        bytes = span_skip(bytes, part.len);
    }
}

static void send_frames(void)
{
    struct talk *t = &client.talk;
    char *bytes;
    size_t len;
    FILE *pipe = open_pipe(&bytes, &len);
    assert_false(client.out.overflow);
    if (client.secure)
        assert_true(secure_seal(&t->client, buf_span(&client.out), TLS_RECORD_BYTES, pipe));
    else
        (void)fwrite(client.out.at, 1, client.out.len, pipe);
    client.out.len = 0;
    assert_int_equal(fclose(pipe), 0);
    feed_sealed(span_of(bytes, len));
    free(bytes);
}

static void shake_hands(void)
{
    struct talk *t = &client.talk;
    enum tls_result result;
    assert_true(secure_offer_http2(&t->client));
    do {
        char *bytes;
        size_t len;
        FILE *pipe = open_pipe(&bytes, &len);
        result = secure_shake_hands(&t->client, span_of(t->bytes, t->len), pipe);
        assert_int_not_equal(result, TLS_FAILED);
        assert_int_equal(fclose(pipe), 0);
        feed_sealed(span_of(bytes, len));
        free(bytes);
        receive_all(t);
    } while (result == TLS_MORE);
}

static void connect_client(void)
{
    struct talk *t = &client.talk;
    client.secure = !random_one_in(&source, 3);
    client.out = buf_over(sending, sizeof(sending));
    client.plain_len = client.count = 0;
    client.next_stream = 1;
    client.window = random_one_in(&source, 2) ? LARGEST : (uint32_t)random_below(&source, 100000);
    open_talk(t);
    if (client.secure) {
        shake_hands();
    } else {
        const struct session_origin origin = { .peer = { .family = 4 } };
        session_open(&t->session, &world.thread, origin, world.now_ns);
    }
    buf_add(&client.out, HTTP2_FRAME_PREFACE);
    http2_frame_add(&client.out, (struct http2_frame){ .length = HTTP2_FRAME_SETTING_BYTES,
                                                       .type = HTTP2_FRAME_SETTINGS });
    http2_frame_add_setting(&client.out, HTTP2_FRAME_INITIAL_WINDOW_SIZE, client.window);
    http2_frame_add_window(&client.out, 0, LARGEST - HTTP2_WINDOW);
}

/* A file or a range of it, with any priority. */
static void ask_for_file(void)
{
    char range[64] = "", head[256], bytes[1024];
    struct buf block = buf_over(bytes, sizeof(bytes));
    const size_t file = random_below(&source, FILES), size = served[file].size;
    struct asked asked = { .stream = client.next_stream, .file = file, .end = size };
    if (random_one_in(&source, 2)) {
        asked.at = random_below(&source, size);
        asked.end = asked.at + 1 + random_below(&source, size - asked.at);
        (void)snprintf(range, sizeof(range), "Range: bytes=%zu-%zu\r\n", asked.at, asked.end - 1);
    }
    (void)snprintf(head, sizeof(head), "GET %s HTTP/1.1\r\nHost: a\r\n%sPriority: u=%zu%s\r\n\r\n",
                   served[file].path, range, random_below(&source, 3),
                   random_one_in(&source, 2) ? ", i" : "");
    (void)http2_client_add_request(&block, span_text(head), SPAN("https"), HTTP2_CLIENT_PLAIN);
    http2_frame_add(&client.out, (struct http2_frame){ .length = (uint32_t)block.len,
                                                       .stream = asked.stream,
                                                       .type = HTTP2_FRAME_HEADERS,
                                                       .flags = HTTP2_FRAME_END_HEADERS |
                                                                HTTP2_FRAME_END_STREAM });
    buf_add(&client.out, buf_span(&block));
    client.next_stream += 2;
    client.asked[client.count++] = asked;
}

static struct asked *find_asked(uint32_t stream)
{
    for (unsigned i = 0; i < client.count; i++)
        if (client.asked[i].stream == stream)
            return &client.asked[i];
    return NULL;
}

static void take_data(struct asked *asked, struct span data, bool ends)
{
    assert_true(data.len <= asked->end - asked->at);
    for (size_t i = 0; i < data.len; i++)
        if (data.at[i] != byte_of(asked->at + i, asked->file))
            fail_msg("%s: byte %zu is wrong", served[asked->file].path, asked->at + i);
    asked->at += data.len;
    asked->ended = ends;
    assert_true(!ends || asked->at == asked->end);
}

static void take_frames(void)
{
    size_t at = 0;
    while (client.plain_len - at >= HTTP2_FRAME_HEAD) {
        const struct http2_frame frame = http2_frame_read(client.plain + at);
        if (client.plain_len - at < HTTP2_FRAME_HEAD + frame.length)
            break;
        assert_true(frame.type != HTTP2_FRAME_RST_STREAM && frame.type != HTTP2_FRAME_GOAWAY);
        if (frame.type == HTTP2_FRAME_DATA)
            take_data(find_asked(frame.stream),
                      span_of(client.plain + at + HTTP2_FRAME_HEAD, frame.length),
                      frame.flags & HTTP2_FRAME_END_STREAM);
        at += HTTP2_FRAME_HEAD + frame.length;
    }
    client.plain_len -= at;
    memmove(client.plain, client.plain + at, client.plain_len);
}

/* Takes what the server has sent since the last call. */
static void take_bytes(void)
{
    struct talk *t = &client.talk;
    size_t len = 0;
    assert_int_equal(fflush(t->received), 0);
    char *plain = client.secure ? answer_of(t, &len) : NULL;
    struct span more = span_of(plain, len);
    if (!client.secure)
        more = span_of(t->bytes + t->client.taken, t->len - t->client.taken);
    client.plain = realloc(client.plain, client.plain_len + more.len + 1);
    assert_non_null(client.plain);
    memcpy(client.plain + client.plain_len, more.at, more.len);
    client.plain_len += more.len;
    t->client.taken = t->len;
    free(plain);
    take_frames();
}

/* Each window that is not the largest gets more. Returns how many bodies have not ended. */
static unsigned open_windows(void)
{
    unsigned left = 0;
    for (unsigned i = 0; i < client.count; i++) {
        if (client.asked[i].ended)
            continue;
        left++;
        if (client.window < LARGEST)
            http2_frame_add_window(&client.out, client.asked[i].stream,
                                   1000 + (uint32_t)random_below(&source, 100000));
    }
    return left;
}

static void receive_bodies(void)
{
    struct talk *t = &client.talk;
    do {
        send_frames();
        while (t->want & SESSION_WRITE) {
            t->step = random_one_in(&source, 2) ? SIZE_MAX : 1 + random_below(&source, 70000);
            receive_some(t);
            session_hold(&t->session);
            tick(0);
        }
        take_bytes();
    } while (open_windows() > 0);
    client.count = 0;
}

static void bodies_arrive_whole(void **state)
{
    (void)state;
    source = random_start();
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        connect_client();
        for (unsigned round = 0; round < ROUNDS; round++) {
            for (size_t j = 1 + random_below(&source, ASKED_MAX); j > 0; j--)
                ask_for_file();
            receive_bodies();
        }
        close_talk(&client.talk);
    }
    free(client.plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(bodies_arrive_whole) };
    return cmocka_run_group_tests(tests, make_bodies, end_bodies);
}
