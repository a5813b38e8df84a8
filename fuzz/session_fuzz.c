/* SPDX-License-Identifier: MIT
 *
 * A whole connection: real files, a real cache, no socket. Each input is played at once, and in
 * random portions with short writes. Both must give the same bytes, keep the contract of the
 * session, and never send a file from outside the root.
 */
#include "base/hash.h"
#include "small_site.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The requests of one input can ask for more than that. A play ends where its output is full. */
enum { OUTPUT_MAX = 4 * 1024 * 1024 };

/* ---- one connection ---- */

struct conversation {
    struct session session;
    uint64_t random; /* 0: everything at once */
    char *output;
    size_t output_len;
    bool closed;
};

static size_t portion(struct conversation *c, size_t most)
{
    if (c->random == 0)
        return most;
    c->random = c->random * 6364136223846793005u + 1442695040888963407u;
    size_t limit = (c->random >> 60) < 8 ? 7 : most;
    size_t len = 1 + (size_t)(c->random >> 33) % (limit ? limit : 1);
    return len < most ? len : most;
}

static void keep(struct conversation *c, struct span bytes, size_t *left)
{
    size_t len = bytes.len < *left ? bytes.len : *left;
    CHECK(c->output_len + len <= OUTPUT_MAX);
    if (len > 0)
        memcpy(c->output + c->output_len, bytes.at, len);
    c->output_len += len;
    *left -= len;
}

static unsigned send_portion(struct conversation *c)
{
    struct session_out out = session_output(&c->session);
    size_t total = out.file_fd >= 0 ? (size_t)out.file_len : 0;
    for (unsigned i = 0; i < out.count; i++)
        total += out.piece[i].len;
    CHECK(total > 0);
    const size_t space = OUTPUT_MAX - c->output_len;
    const size_t taken = portion(c, total < space ? total : space);
    size_t left = taken;
    for (unsigned i = 0; i < out.count; i++)
        keep(c, out.piece[i], &left);
    if (left > 0) {
        CHECK(c->output_len + left <= OUTPUT_MAX);
        ssize_t got = pread(out.file_fd, c->output + c->output_len, left, (off_t)out.file_offset);
        CHECK(got == (ssize_t)left);
        c->output_len += left;
    }
    unsigned want = session_sent(&c->session, taken, NOW_NS);
    if (taken < total)
        session_thread_tick(&world.worker, NOW_NS, 1795248000);
    return want;
}

static void converse(struct conversation *c, struct span input)
{
    session_thread_tick(&world.worker, NOW_NS, 1795248000);
    world.worker.id = 0; /* so that both plays give the same bytes */
    session_open(&c->session, &world.worker, (struct session_origin){ 0 }, NOW_NS);
    unsigned want = SESSION_READ;
    while (want != SESSION_CLOSE && c->output_len < OUTPUT_MAX &&
           (want & SESSION_WRITE || input.len > 0)) {
        if (want & SESSION_WRITE) {
            want = send_portion(c);
            continue;
        }
        c->closed |= want == SESSION_HALF_CLOSE;
        size_t room = session_room(&c->session);
        CHECK(room >= SESSION_READ_LEAST && room <= SESSION_READ_MAX);
        size_t len = portion(c, input.len < room ? input.len : room);
        char *copy = malloc(len);
        CHECK(copy);
        memcpy(copy, input.at, len);
        session_thread_tick(&world.worker, NOW_NS, 1795248000);
        want = session_feed(&c->session, span_of(copy, len), NOW_NS);
        free(copy);
        input = span_skip(input, len);
    }
    c->closed |= want != SESSION_READ && c->output_len < OUTPUT_MAX;
    session_close(&c->session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char whole_output[OUTPUT_MAX], split_output[OUTPUT_MAX];
    small_site_begin();
    if (size > 64 * 1024)
        return 0;
    struct span input = span_of((const char *)data, size);
    struct conversation whole = { .output = whole_output };
    struct conversation split = { .output = split_output, .random = hash_bytes(input, 1) | 1 };
    converse(&whole, input);
    converse(&split, input);
    struct span output = span_of(whole.output, whole.output_len);
    CHECK(whole.closed == split.closed);
    CHECK(span_equal(output, span_of(split.output, split.output_len)));
    CHECK(output.len == 0 || span_starts(output, SPAN("HTTP/1.1 ")));
    CHECK(!memmem(output.at, output.len, SECRET, strlen(SECRET)));
    return 0;
}
