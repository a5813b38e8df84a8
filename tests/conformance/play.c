/* SPDX-License-Identifier: MIT
 *
 * Plays one connection without a socket (play.h).
 */
#include "play.h"

#include "session/tls.h"
#include "support/secure.h"
#include "task/task.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* The time of every case: monotonic nanoseconds, and Sat, 21 Nov 2026 08:00:00 GMT. */
#define PLAY_NOW_NS UINT64_C(1000000000000)
#define PLAY_WALL_S 1795248000

/* More turns than any case needs. A session that spins ends here. */
enum { TURNS_MAX = 10 * 1000 * 1000, WAIT_MS = 60 * 1000 };

struct play {
    struct session session;
    struct session_thread *worker;
    struct play_input input;
    uint64_t random;
    uint64_t now_ns;
    char *edge; /* input portions end here, before a page that is not readable */
    FILE *sent;
    const char *broken;
    size_t turns;
    struct secure_client client;
    struct play_result *result; /* `sent` writes to its bytes */
};

/* splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators). */
static uint64_t next_random(struct play *p)
{
    uint64_t z = (p->random += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* A size from 1 to `most`, small ones often. */
static size_t pick_portion(struct play *p, size_t most)
{
    uint64_t limits[] = { 1, 4, 64, 1024, most };
    uint64_t limit = limits[next_random(p) % (sizeof limits / sizeof *limits)];
    uint64_t size = 1 + next_random(p) % limit;
    return size < most ? (size_t)size : most;
}

static void tick(struct play *p)
{
    session_thread_tick(p->worker, p->now_ns, PLAY_WALL_S);
}

static void keep_memory(struct play *p, struct span piece, uint64_t *left)
{
    size_t len = piece.len < *left ? piece.len : (size_t)*left;
    if (len == 0)
        return;
    (void)fwrite(piece.at, 1, len, p->sent);
    *left -= len;
}

/* Copies from the file as sendfile would. False when the file is too short. */
static bool keep_file(struct play *p, const struct session_out *out, uint64_t left)
{
    char bytes[16 * 1024];
    uint64_t at = out->file_offset;
    while (left > 0) {
        size_t want = left < sizeof bytes ? (size_t)left : sizeof bytes;
        ssize_t got = pread(out->file_fd, bytes, want, (off_t)at);
        if (got <= 0)
            return false;
        (void)fwrite(bytes, 1, (size_t)got, p->sent);
        left -= (uint64_t)got;
        at += (uint64_t)got;
    }
    return true;
}

static unsigned send_some(struct play *p)
{
    struct session_out out = session_output(&p->session);
    uint64_t total = out.file_fd >= 0 ? out.file_len : 0;
    for (unsigned i = 0; i < out.count; i++) {
        total += out.piece[i].len;
        if (out.piece[i].len == 0)
            p->broken = "a piece without bytes";
    }
    if (total == 0) {
        p->broken = "wants to write, and has nothing to write";
        return SESSION_CLOSE;
    }
    uint64_t taken = total;
    if (p->input.style == PLAY_RANDOM)
        taken = next_random(p) % 8 == 0 ? 0 : pick_portion(p, (size_t)total);
    uint64_t left = taken;
    for (unsigned i = 0; i < out.count; i++)
        keep_memory(p, out.piece[i], &left);
    if (left > 0 && !keep_file(p, &out, left))
        return session_cut(&p->session);
    unsigned want = session_sent(&p->session, (size_t)taken, p->now_ns);
    if (want & SESSION_WRITE && taken < total)
        tick(p); /* the kernel's buffer is full, and the rest leaves in another turn */
    return want;
}

static unsigned feed_some(struct play *p, size_t *at)
{
    size_t room = session_room(&p->session);
    size_t left = p->input.bytes.len - *at;
    if (room < SESSION_READ_LEAST || room > SESSION_READ_MAX) {
        p->broken = "wants to read, and its capacity is too small or too large";
        return SESSION_CLOSE;
    }
    size_t most = left < room ? left : room;
    size_t len = most;
    if (p->input.style == PLAY_BYTES)
        len = 1;
    else if (p->input.style == PLAY_RANDOM)
        len = pick_portion(p, most);
    char *bytes = p->edge - len;
    memcpy(bytes, p->input.bytes.at + *at, len);
    *at += len;
    tick(p);
    unsigned want = session_feed(&p->session, span_of(bytes, len), p->now_ns);
    memset(bytes, 0xa5, len);
    return want;
}

/* Continues with an answer that is ready. Waits for one if `wait`, as a loop does. */
static unsigned continue_pending(struct play *p, bool wait, unsigned want)
{
    struct session *ready;
    const struct task_home *home = p->worker->home;
    while (!(ready = session_thread_next_ready(p->worker)) && wait && !p->broken) {
        struct pollfd end = { .fd = home->wake_fd, .events = POLLIN };
        uint64_t wakes;
        if (poll(&end, 1, WAIT_MS) != 1 || read(home->wake_fd, &wakes, sizeof(wakes)) < 0)
            p->broken = "waits, and no answer becomes ready";
    }
    if (!ready)
        return want;
    CHECK(ready == &p->session);
    tick(p);
    return session_resume(ready, p->now_ns);
}

/* Whether it is time to look at answers that are pending: no other event can come, or perhaps. */
static bool is_time_for_pending(struct play *p, unsigned want, size_t at, bool *ret_wait)
{
    *ret_wait = want == SESSION_WAIT || (!(want & SESSION_WRITE) && at == p->input.bytes.len);
    return session_is_pending(&p->session) &&
           (*ret_wait || (p->input.style == PLAY_RANDOM && next_random(p) % 4 == 0));
}

/* Feeds and sends until both sides have ended. */
static enum answer_state converse(struct play *p)
{
    size_t at = 0;
    bool half_closed = false;
    bool ended = false, wait;
    unsigned want = SESSION_READ;
    while (want != SESSION_CLOSE && !p->broken) {
        if (++p->turns > TURNS_MAX)
            p->broken = "does not end";
        else if (want & SESSION_WRITE && half_closed)
            p->broken = "writes after its half-close";
        else if (is_time_for_pending(p, want, at, &wait))
            want = continue_pending(p, wait, want);
        else if (want & SESSION_WRITE)
            want = send_some(p);
        else if (at < p->input.bytes.len)
            want = feed_some(p, &at);
        else if (ended || p->input.end == CASES_END_NOTHING)
            break;
        else {
            ended = true;
            if (p->input.end == CASES_END_EXPIRE)
                p->now_ns = session_deadline_ns(&p->session);
            tick(p);
            want = p->input.end == CASES_END_EXPIRE
                       ? session_expire(&p->session, p->now_ns)
                       : session_feed(&p->session, span_of(p->edge, 0), p->now_ns);
        }
        half_closed |= want == SESSION_HALF_CLOSE;
    }
    if (want == SESSION_CLOSE || half_closed)
        return ANSWER_CLOSED;
    return session_idle(&p->session) ? ANSWER_OPEN : ANSWER_WAITING;
}

/* ---- over TLS ---- */

/* Has the session take all of `bytes`, and sends its output, until it wants to read. False: it
 * wants to end, or has broken its contract. */
static bool deliver(struct play *p, struct span bytes)
{
    size_t at = 0;
    unsigned want = SESSION_READ;
    struct span input = p->input.bytes;
    p->input.bytes = bytes;
    while (!p->broken && (want == SESSION_WRITE || at < bytes.len)) {
        if (want == SESSION_WRITE)
            want = send_some(p);
        else if (want == SESSION_READ)
            want = feed_some(p, &at);
        else
            p->broken = "ends in the handshake";
    }
    p->input.bytes = input;
    return !p->broken;
}

static struct span received_so_far(struct play *p)
{
    CHECK(fflush(p->sent) == 0);
    return span_of(p->result->bytes, p->result->len);
}

static void shake_hands(struct play *p)
{
    enum tls_result result = TLS_MORE;
    while (result == TLS_MORE && !p->broken) {
        char *bytes = NULL;
        size_t len = 0;
        FILE *out = open_memstream(&bytes, &len);
        CHECK(out);
        size_t before = p->client.taken;
        result = secure_shake_hands(&p->client, received_so_far(p), out);
        CHECK(fclose(out) == 0);
        if (result == TLS_FAILED || (len == 0 && p->client.taken == before && result == TLS_MORE))
            p->broken = "does not complete the handshake";
        else
            (void)deliver(p, span_of(bytes, len));
        free(bytes);
    }
}

/* Replaces the input by its records. The caller frees them. */
static char *seal_input(struct play *p)
{
    /* A record for each byte of a long body would make more bytes than a test can play. */
    const size_t portions[] = {
        [PLAY_WHOLE] = TLS_RECORD_BYTES, [PLAY_BYTES] = 1 + p->input.bytes.len / 4096
    };
    char *bytes = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&bytes, &len);
    CHECK(out);
    size_t portion = p->input.style == PLAY_RANDOM ? pick_portion(p, TLS_RECORD_BYTES)
                                                   : portions[p->input.style];
    if (!secure_seal(&p->client, p->input.bytes, portion, out))
        p->broken = "has broken the client";
    if (p->input.end == CASES_END_HALF_CLOSE && p->input.seed % 2 == 1)
        secure_end(&p->client, out);
    CHECK(fclose(out) == 0);
    p->input.bytes = span_of(bytes, len);
    return bytes;
}

/* Replaces the output by its plaintext. */
static void unseal_output(struct play *p)
{
    struct span received = received_so_far(p);
    char *bytes = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&bytes, &len);
    CHECK(out);
    if (!secure_unseal(&p->client, received, out) && !p->broken)
        p->broken = "sends records that cannot be decrypted";
    CHECK(fclose(out) == 0 && fclose(p->sent) == 0);
    free(p->result->bytes);
    p->result->bytes = bytes;
    p->result->len = len;
}

static void converse_over_tls(struct play *p)
{
    CHECK(secure_open(&p->client));
    if (p->input.http2)
        CHECK(secure_offer_http2(&p->client));
    shake_hands(p);
    if (!p->broken && p->input.transport == PLAY_SETTLED) {
        tls_connection_settle(&p->session.tls->connection);
        CHECK(!p->session.tls->connection.ssl);
    }
    char *records = p->broken ? NULL : seal_input(p);
    if (!p->broken)
        p->result->state = converse(p);
    unseal_output(p);
    free(records);
    secure_close(&p->client);
}

struct play_result play_connection(struct session_thread *worker, struct play_input input)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t room = (SESSION_READ_MAX + page - 1) / page * page;
    char *area =
        mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(area != MAP_FAILED);
    CHECK(mprotect(area + room, page, PROT_NONE) == 0);

    struct play_result result = { 0 };
    struct play p = { .worker = worker,
                      .input = input,
                      .random = input.seed,
                      .now_ns = PLAY_NOW_NS,
                      .edge = area + room };
    p.result = &result;
    p.sent = open_memstream(&result.bytes, &result.len);
    CHECK(p.sent);

    worker->id = 0; /* so that every play of a case gives the same bytes */
    tick(&p);
    struct session_origin origin = { .peer = { .family = 4, .address = { 127, 0, 0, 1 } } };
    origin.tls = input.transport != PLAY_PLAIN;
    session_open(&p.session, worker, origin, p.now_ns);
    if (origin.tls) {
        converse_over_tls(&p);
    } else {
        result.state = converse(&p);
        CHECK(fclose(p.sent) == 0);
    }
    session_close(&p.session);
    tick(&p);
    result.broken = p.broken;
    CHECK(munmap(area, room + page) == 0);
    return result;
}
