/* SPDX-License-Identifier: MIT
 *
 * Bodies of HTTP/2 over TLS: bytes of the cache and of files that are sealed where they are. Their
 * order at every size of a send, the entries that they keep, files that change, and how much a
 * batch has.
 */
#include "secured.h"

#include "http2/client.h"
#include "http2/frame.h"
#include "os/file.h"
#include "session/events.h"
#include "session/http2.h"
#include "site/fetch.h"
#include "task/task.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>

enum { READY_SIZE = 10 * 1024, KEPT_SIZE = 60 * 1000, LARGE_SIZE = 300 * 1000 };

/* The byte at `at` of a file. No two records of a file are equal. */
static char byte_of(size_t at, char fill)
{
    return (char)((at ^ (at >> 8) ^ (at >> 16) * 31) + (unsigned char)fill);
}

static void write_pattern(const char *name, size_t size, char fill)
{
    char path[128], new_path[160];
    (void)snprintf(path, sizeof(path), "%s/%s", world.root, name);
    (void)snprintf(new_path, sizeof(new_path), "%s.new", path);
    FILE *file = fopen(new_path, "we");
    assert_non_null(file);
    for (size_t i = 0; i < size; i++)
        assert_true(putc(byte_of(i, fill), file) != EOF);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rename(new_path, path), 0);
}

static int make_bodies(void **state)
{
    if (make_secured_world(state) < 0)
        return -1;
    write_pattern("ready.bin", READY_SIZE, 'r');
    write_pattern("kept.bin", KEPT_SIZE, 'k');
    write_pattern("large.bin", LARGE_SIZE, 'l');
    settle("/ready.bin");
    settle("/kept.bin");
    settle("/large.bin");
    return 0;
}

static int end_bodies(void **state)
{
    remove_file("ready.bin");
    remove_file("kept.bin");
    remove_file("large.bin");
    return end_secured_world(state);
}

/* ---- a client ---- */

static char sending[64 * 1024];
static struct buf out; /* the client's next frames */
static uint32_t next_stream;

static void add_frame(unsigned type, unsigned flags, uint32_t stream, struct span payload)
{
    http2_frame_add(&out, (struct http2_frame){ .length = (uint32_t)payload.len,
                                                .stream = stream,
                                                .type = (uint8_t)type,
                                                .flags = (uint8_t)flags });
    buf_add(&out, payload);
}

static uint32_t add_get(const char *path, const char *fields)
{
    char head[256], bytes[1024];
    struct buf block = buf_over(bytes, sizeof(bytes));
    (void)snprintf(head, sizeof(head), "GET %s HTTP/1.1\r\nHost: a\r\n%s\r\n", path, fields);
    (void)http2_client_add_request(&block, span_text(head), SPAN("https"), HTTP2_CLIENT_PLAIN);
    const uint32_t stream = next_stream;
    next_stream += 2;
    add_frame(HTTP2_FRAME_HEADERS, HTTP2_FRAME_END_HEADERS | HTTP2_FRAME_END_STREAM, stream,
              buf_span(&block));
    return stream;
}

static void feed_all(struct talk *t, FILE *pipe, char **bytes, const size_t *len)
{
    assert_int_equal(fclose(pipe), 0);
    for (struct span rest = span_of(*bytes, *len); rest.len > 0;) {
        const struct span part = span_first(rest, session_room(&t->session));
        assert_true(part.len > 0);
        t->want = session_feed(&t->session, part, world.now_ns);
        rest = span_skip(rest, part.len);
    }
    free(*bytes);
}

static void send_frames(struct talk *t)
{
    char *bytes;
    size_t len;
    FILE *pipe = open_pipe(&bytes, &len);
    assert_false(out.overflow);
    assert_true(secure_seal(&t->client, buf_span(&out), TLS_RECORD_BYTES, pipe));
    out.len = 0;
    feed_all(t, pipe, &bytes, &len);
}

static void receive_rest(struct talk *t)
{
    while (t->want & SESSION_WRITE)
        receive_some(t);
    assert_int_equal(fflush(t->received), 0);
}

/* A connection whose client opens its windows as far as possible. */
static void open_http2(struct talk *t)
{
    enum tls_result result;
    open_talk(t);
    assert_true(secure_offer_http2(&t->client));
    do {
        char *bytes;
        size_t len;
        FILE *pipe = open_pipe(&bytes, &len);
        result = secure_shake_hands(&t->client, span_of(t->bytes, t->len), pipe);
        assert_int_not_equal(result, TLS_FAILED);
        feed_all(t, pipe, &bytes, &len);
        receive_rest(t);
    } while (result == TLS_MORE);
    out = buf_over(sending, sizeof(sending));
    next_stream = 1;
    buf_add(&out, HTTP2_FRAME_PREFACE);
    http2_frame_add(&out, (struct http2_frame){ .length = HTTP2_FRAME_SETTING_BYTES,
                                                .type = HTTP2_FRAME_SETTINGS });
    http2_frame_add_setting(&out, HTTP2_FRAME_INITIAL_WINDOW_SIZE, 0x7fffffff);
    http2_frame_add_window(&out, 0, 0x7fffffff - HTTP2_WINDOW);
}

/* A connection that OpenSSL has given up: the first answers are under OpenSSL. */
static void open_settled(struct talk *t)
{
    open_http2(t);
    (void)add_get("/small.html", "");
    send_frames(t);
    receive_rest(t);
    assert_null(t->session.tls->connection.ssl);
    size_t len;
    free(answer_of(t, &len));
}

/* Checks that the frames in `plain` have `size` bytes of a body of `stream`, and returns where the
 * body's first frame begins. */
static size_t assert_body(struct span plain, uint32_t stream, size_t size, char fill)
{
    size_t found = 0, first = 0;
    bool ended = false;
    for (size_t at = 0; at < plain.len;) {
        const struct http2_frame frame = http2_frame_read(plain.at + at);
        const char *payload = plain.at + at + HTTP2_FRAME_HEAD;
        if (frame.stream == stream && frame.type == HTTP2_FRAME_DATA) {
            first = first == 0 ? at : first;
            for (size_t i = 0; i < frame.length; i++)
                assert_true(payload[i] == byte_of(found + i, fill));
            found += frame.length;
            ended = frame.flags & HTTP2_FRAME_END_STREAM;
        }
        assert_true(frame.stream != stream || frame.type != HTTP2_FRAME_RST_STREAM);
        at += HTTP2_FRAME_HEAD + frame.length;
        assert_true(at <= plain.len);
    }
    assert_int_equal(found, size);
    assert_true(ended);
    return first;
}

static size_t bytes_of(const struct session_out *output)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < output->count; i++)
        bytes += output->piece[i].len;
    return bytes;
}

/* ---- tests ---- */

static void bodies_arrive_whole_at_every_size_of_a_send(void **state)
{
    (void)state;
    static const size_t steps[] = { SIZE_MAX, 65536, 20000, 16406, 5000, 999 };
    for (size_t i = 0; i < 2 * sizeof(steps) / sizeof(steps[0]); i++) {
        struct talk t;
        if (i % 2 == 0)
            open_http2(&t); /* under OpenSSL until the first batch is sealed */
        else
            open_settled(&t);
        t.step = steps[i / 2];
        const uint32_t large = add_get("/large.bin", ""), kept = add_get("/kept.bin", "");
        const uint32_t turns = add_get("/large.bin", "Priority: i\r\n");
        uint32_t ready[12];
        for (size_t j = 0; j < 12; j++)
            ready[j] = add_get("/ready.bin", "");
        send_frames(&t);
        while (t.want & SESSION_WRITE) {
            receive_some(&t);
            session_hold(&t.session);
            tick(0);
        }
        size_t len;
        char *plain = answer_of(&t, &len);
        const struct span all = span_of(plain, len);
        (void)assert_body(all, large, LARGE_SIZE, 'l');
        (void)assert_body(all, turns, LARGE_SIZE, 'l');
        (void)assert_body(all, kept, KEPT_SIZE, 'k');
        for (size_t j = 0; j < 12; j++)
            (void)assert_body(all, ready[j], READY_SIZE, 'r');
        free(plain);
        assert_int_equal(references_of("/ready.bin"), 1);
        assert_int_equal(references_of("/kept.bin"), 1);
        assert_int_equal(references_of("/large.bin"), 1);
        close_talk(&t);
    }
}

static void several_parts_arrive_whole(void **state)
{
    (void)state;
    static const char *const paths[] = { "/kept.bin", "/large.bin" };
    for (size_t i = 0; i < 2; i++) {
        struct talk t;
        open_settled(&t);
        const uint32_t one = add_get(paths[i], "Range: bytes=100-50000\r\n");
        (void)add_get(paths[i], "Range: bytes=0-9999,20000-50000,55000-55001\r\n");
        send_frames(&t);
        receive_rest(&t);
        size_t len, body = 0;
        char *plain = answer_of(&t, &len);
        for (size_t at = 0; at < len;) {
            const struct http2_frame frame = http2_frame_read(plain + at);
            const char *payload = plain + at + HTTP2_FRAME_HEAD;
            const bool found = frame.stream == one && frame.type == HTTP2_FRAME_DATA;
            for (size_t j = 0; found && j < frame.length; j++, body++)
                assert_true(payload[j] == byte_of(100 + body, i == 0 ? 'k' : 'l'));
            at += HTTP2_FRAME_HEAD + frame.length;
        }
        assert_int_equal(body, 49901);
        char tail[30001];
        for (size_t j = 0; j < sizeof(tail); j++)
            tail[j] = byte_of(20000 + j, i == 0 ? 'k' : 'l');
        assert_non_null(memmem(plain, len, tail, 1000));
        assert_non_null(memmem(plain, len, tail + sizeof(tail) - 1000, 1000));
        free(plain);
        assert_int_equal(references_of(paths[i]), 1);
        close_talk(&t);
    }
}

/* The file is read for several frames, and an answer takes one turn between them. It leaves so
 * little of its record that the next frame of the file is copied. `before`: answers before both,
 * which decide where in a batch that is. */
static void a_file_continues_behind_a_short_frame(void **state)
{
    (void)state;
    struct talk t;
    open_settled(&t);
    for (unsigned size = 12500; size < 16000; size += 500) {
        for (unsigned before = 0; before < 5; before++) {
            char fields[64];
            (void)snprintf(fields, sizeof(fields), "Range: bytes=0-%u\r\nPriority: u=5\r\n",
                           size - 1);
            for (unsigned i = 0; i < before; i++)
                (void)add_get("/ready.bin", "");
            const uint32_t large = add_get("/large.bin", ""), turn = add_get("/kept.bin", fields);
            send_frames(&t);
            receive_rest(&t);
            size_t len;
            char *plain = answer_of(&t, &len);
            (void)assert_body(span_of(plain, len), large, LARGE_SIZE, 'l');
            (void)assert_body(span_of(plain, len), turn, size, 'k');
            free(plain);
        }
    }
    close_talk(&t);
}

static void a_batch_is_one_packet_of_full_records(void **state)
{
    (void)state;
    static const char *const paths[] = { "/kept.bin", "/large.bin", "/ready.bin" };
    enum { PACKET = 64 * 1024 - 100 }; /* with the heads of TCP and IP */
    for (size_t i = 0; i < 3; i++) {
        struct talk t;
        open_settled(&t);
        const size_t before = t.len;
        for (size_t j = 0; j < 30; j++)
            (void)add_get(paths[i], "");
        send_frames(&t);
        while (t.want & SESSION_WRITE) {
            const struct session_out output = session_output(&t.session);
            assert_in_range(bytes_of(&output), 1, PACKET);
            receive_some(&t);
        }
        assert_int_equal(fflush(t.received), 0);
        size_t records = 0;
        const unsigned char *bytes = (const unsigned char *)t.bytes;
        for (size_t at = before; at < t.len; records++)
            at += 5 + ((size_t)bytes[at + 3] << 8 | bytes[at + 4]);
        assert_in_range(records, 1, 2 + (t.len - before) / 15000);
        close_talk(&t);
    }
}

static void an_urgent_answer_waits_for_one_batch(void **state)
{
    (void)state;
    struct talk t;
    open_settled(&t);
    (void)add_get("/large.bin", "Priority: u=7\r\n");
    (void)add_get("/large.bin", "Priority: u=7\r\n");
    send_frames(&t);
    t.step = 100;
    receive_some(&t);
    const uint32_t later = add_get("/kept.bin", "Priority: u=7\r\n");
    send_frames(&t);
    const uint32_t urgent = add_get("/kept.bin", "Priority: u=0\r\n");
    send_frames(&t);
    t.step = SIZE_MAX;
    receive_rest(&t);
    size_t len;
    char *plain = answer_of(&t, &len);
    assert_true(assert_body(span_of(plain, len), urgent, KEPT_SIZE, 'k') <
                SESSION_BATCH_BYTES + 1024);
    (void)assert_body(span_of(plain, len), later, KEPT_SIZE, 'k');
    free(plain);
    close_talk(&t);
}

/* The bytes that were announced are sent, and the entry is freed behind them. */
static void a_file_that_is_replaced_keeps_the_bytes_that_wait(void **state)
{
    (void)state;
    static const char *const names[] = { "ready.bin", "kept.bin" };
    static const size_t sizes[] = { READY_SIZE, KEPT_SIZE };
    for (size_t i = 0; i < 2; i++) {
        struct talk t;
        char path[32];
        uint32_t streams[6];
        (void)snprintf(path, sizeof(path), "/%s", names[i]);
        open_settled(&t);
        (void)add_get("/large.bin", "");
        send_frames(&t);
        t.step = 1000;
        receive_some(&t);
        for (size_t j = 0; j < 6; j++)
            streams[j] = add_get(path, "Priority: u=1\r\n");
        send_frames(&t);
        session_hold(&t.session);
        write_pattern(names[i], sizes[i], 'n');
        settle(path);
        tick(SECOND);
        tick(SECOND);
        t.step = SIZE_MAX;
        while (t.want & SESSION_WRITE) {
            receive_some(&t);
            tick(0);
        }
        size_t len;
        char *plain = answer_of(&t, &len);
        for (size_t j = 0; j < 6; j++)
            (void)assert_body(span_of(plain, len), streams[j], sizes[i], i == 0 ? 'r' : 'k');
        free(plain);
        assert_int_equal(references_of(path), 1);
        close_talk(&t);
        write_pattern(names[i], sizes[i], i == 0 ? 'r' : 'k');
        settle(path);
    }
}

static void a_file_that_changes_is_never_completed(void **state)
{
    (void)state;
    struct talk t;
    open_settled(&t);
    (void)add_get("/large.bin", "");
    send_frames(&t);
    t.step = 30000;
    receive_some(&t);
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/large.bin", world.root);
    int fd = open(path, O_WRONLY | O_CLOEXEC); /* in place */
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, "changed", 7, LARGE_SIZE - 5000), 7);
    close(fd);
    receive_rest(&t);
    size_t len, resets = 0;
    char *plain = answer_of(&t, &len);
    for (size_t at = 0; at < len;) {
        const struct http2_frame frame = http2_frame_read(plain + at);
        assert_false(frame.type == HTTP2_FRAME_DATA && frame.flags & HTTP2_FRAME_END_STREAM);
        resets += frame.type == HTTP2_FRAME_RST_STREAM;
        at += HTTP2_FRAME_HEAD + frame.length;
    }
    assert_int_equal(resets, 1);
    free(plain);
    close_talk(&t);
    write_pattern("large.bin", LARGE_SIZE, 'l');
    settle("/large.bin");
}

static void a_reset_or_a_close_releases_what_is_lent(void **state)
{
    (void)state;
    for (unsigned closes = 0; closes < 2; closes++) {
        struct talk t;
        open_settled(&t);
        (void)add_get("/large.bin", "");
        send_frames(&t);
        t.step = 1000;
        receive_some(&t);
        const uint32_t first = next_stream;
        for (size_t j = 0; j < 5; j++)
            (void)add_get(j % 2 ? "/kept.bin" : "/ready.bin", "Priority: u=1\r\n");
        send_frames(&t);
        session_hold(&t.session);
        tick(0);
        for (uint32_t stream = 1; stream < next_stream && !closes; stream += 2)
            if (stream == 3 || stream >= first)
                http2_frame_add_reset(&out, stream, HTTP2_CANCEL);
        if (closes) {
            close_talk(&t);
        } else {
            send_frames(&t);
            receive_rest(&t);
            assert_true(session_idle(&t.session));
        }
        assert_int_equal(references_of("/ready.bin"), 1);
        assert_int_equal(references_of("/kept.bin"), 1);
        assert_int_equal(references_of("/large.bin"), 1);
        if (!closes)
            close_talk(&t);
    }
}

/* ---- an answer of another thread ---- */

static bool cold;        /* no path is in memory */
static atomic_bool held; /* the disk gives no answer */
static unsigned passed;  /* so many calls do not look for answers that are ready */

int __real_os_file_open_cached(int root_fd, const char *path);
int __wrap_os_file_open_cached(int root_fd, const char *path);
int __real_os_file_open_beneath(int root_fd, const char *path);
int __wrap_os_file_open_beneath(int root_fd, const char *path);
void __real_session_events_resume(struct session *s, uint64_t now_ns);
void __wrap_session_events_resume(struct session *s, uint64_t now_ns);

int __wrap_os_file_open_cached(int root_fd, const char *path)
{
    return cold ? -EINPROGRESS : __real_os_file_open_cached(root_fd, path);
}

uint64_t __wrap_os_clock_now_ns(void);

uint64_t __wrap_os_clock_now_ns(void)
{
    return world.now_ns;
}

int __wrap_os_file_open_beneath(int root_fd, const char *path)
{
    while (atomic_load(&held))
        usleep(1000);
    return __real_os_file_open_beneath(root_fd, path);
}

void __wrap_session_events_resume(struct session *s, uint64_t now_ns)
{
    if (passed > 0)
        passed--;
    else
        __real_session_events_resume(s, now_ns);
}

static struct task_home home;

static void use_tasks(void)
{
    const struct task_limits lanes[TASK_LANES] = {
        { 1, 1 },
        [TASK_FETCHES] = { 2, 8 },
        [TASK_LISTINGS] = { 1, 8 },
    };
    home = (struct task_home){ .wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
    assert_true(home.wake_fd >= 0);
    world.shared.tasks = task_pool_new(lanes);
    world.shared.fetches = site_fetch_new(world.shared.tasks, &world.shared.listings);
    session_thread_use_home(&world.thread, &home);
}

static void leave_tasks(void)
{
    tick(0);
    end_tasks();
    session_thread_use_home(&world.thread, NULL);
    assert_int_equal(close(home.wake_fd), 0);
}

/* Waits until an answer of the connection is ready. */
static void await_ready(const struct talk *t)
{
    enum { WAIT_MS = 60 * 1000 };
    struct pollfd wake = { .fd = home.wake_fd, .events = POLLIN };
    eventfd_t ignored;
    while (session_thread_next_ready(&world.thread) != &t->session) {
        assert_int_equal(poll(&wake, 1, WAIT_MS), 1);
        assert_int_equal(eventfd_read(home.wake_fd, &ignored), 0);
    }
}

/* Requests a file that is not in memory. The disk answers behind that. */
static uint32_t ask_cold(struct talk *t, const char *path)
{
    cold = true;
    atomic_store(&held, true);
    const uint32_t stream = add_get(path, "");
    send_frames(t);
    assert_int_equal(t->session.pending_count, 1);
    cold = false;
    atomic_store(&held, false);
    return stream;
}

static void receive_pending(struct talk *t)
{
    while (t->session.pending_count > 0) {
        await_ready(t);
        t->want = session_resume(&t->session, world.now_ns);
        receive_rest(t);
    }
}

/* It becomes ready when a batch has a part of a file, and before the batch is sealed. The client's
 * window leaves space in that batch. */
static void an_answer_that_becomes_ready_amid_a_batch_joins_it(void **state)
{
    enum { WINDOW = SESSION_BATCH_BYTES + 30 * 1000 };
    static const char *const names[] = { "0.bin", "1.bin", "2.bin", "3.bin", "cold.bin" };
    (void)state;
    struct talk t;
    for (unsigned i = 0; i < 5; i++)
        write_pattern(names[i], READY_SIZE, 'c');
    use_tasks();
    open_settled(&t);
    for (unsigned i = 0; i < 4; i++) { /* then it is known which siblings the folder has */
        char path[16];
        (void)snprintf(path, sizeof(path), "/%s", names[i]);
        (void)ask_cold(&t, path);
        receive_pending(&t);
        receive_rest(&t);
    }
    http2_frame_add(&out, (struct http2_frame){ .length = HTTP2_FRAME_SETTING_BYTES,
                                                .type = HTTP2_FRAME_SETTINGS });
    http2_frame_add_setting(&out, HTTP2_FRAME_INITIAL_WINDOW_SIZE, WINDOW);
    const uint32_t large = add_get("/large.bin", "");
    send_frames(&t);
    receive_rest(&t);
    assert_int_equal(t.session.pending_count, 0);

    http2_frame_add_window(&out, large, WINDOW);
    const uint32_t late = ask_cold(&t, "/cold.bin");
    await_ready(&t);
    passed = 1;
    receive_some(&t);
    assert_int_equal(passed, 0);
    assert_int_equal(t.session.pending_count, 0);
    http2_frame_add_window(&out, large, LARGE_SIZE);
    send_frames(&t);
    receive_rest(&t);

    size_t len;
    char *plain = answer_of(&t, &len);
    (void)assert_body(span_of(plain, len), large, LARGE_SIZE, 'l');
    (void)assert_body(span_of(plain, len), late, READY_SIZE, 'c');
    free(plain);
    close_talk(&t);
    leave_tasks();
    for (unsigned i = 0; i < 5; i++)
        remove_file(names[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_arrive_whole_at_every_size_of_a_send),
        cmocka_unit_test(several_parts_arrive_whole),
        cmocka_unit_test(a_file_continues_behind_a_short_frame),
        cmocka_unit_test(a_batch_is_one_packet_of_full_records),
        cmocka_unit_test(an_urgent_answer_waits_for_one_batch),
        cmocka_unit_test(a_file_that_is_replaced_keeps_the_bytes_that_wait),
        cmocka_unit_test(a_file_that_changes_is_never_completed),
        cmocka_unit_test(a_reset_or_a_close_releases_what_is_lent),
        cmocka_unit_test(an_answer_that_becomes_ready_amid_a_batch_joins_it),
    };
    return cmocka_run_group_tests(tests, make_bodies, end_bodies);
}
