/* SPDX-License-Identifier: MIT
 *
 * The work that tools/instructions.py counts under callgrind. Each work is one kind of request to a
 * session in memory, with the log and the statistics on.
 *
 * It prints a line for each call of cost_counted: the name of the work, and its requests. callgrind
 * collects inside of that function only. What the clients send is made before.
 *
 * Each run executes the same instructions of weir: the clock stands still, and random bytes are
 * constant.
 */
#include "http2/client.h"
#include "http2/frame.h"
#include "session/ready.h"
#include "session/tally.h"
#include "unit/session/secured.h"

#include <sys/random.h>

enum {
    TURNS = 256, /* once to warm up, and once counted */
    PAGES = 16,  /* files, and requests of a batch */
    KEPT = 4,    /* entries of a cache in which no page stays until its next request */
    SENDING_MAX = 1 << 20,
    LARGEST = 0x7fffffff
};

#define WALL_S 1800000000
#define AGENT  "User-Agent: a\r\n"

/* What a browser sends beside the path. */
#define BROWSER \
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n" \
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n" \
    "Accept-Language: en-US,en;q=0.5\r\n" \
    "Accept-Encoding: gzip, deflate, br, zstd\r\n" \
    "Referer: https://a/index.html\r\n" \
    "Sec-Fetch-Dest: image\r\n" \
    "Sec-Fetch-Mode: no-cors\r\n" \
    "Sec-Fetch-Site: same-origin\r\n" \
    "Priority: u=4, i\r\n"

struct work {
    const char *name;
    const char *path;   /* NULL: the pages in turn */
    const char *fields; /* lines of the request beside Host */
    unsigned status;
    unsigned requests; /* of one turn */
    bool connects;     /* each turn has a connection of its own */
    bool misses;       /* each request reads its file */
    bool validates;    /* each request has the file's entity tag */
    bool tls;
    bool http2;
    bool ruled; /* the site has rules */
};

static const struct work works[] = {
    { "keep-alive", "/small.html", "", HTTP_OK, .requests = 1 },
    { "keep-alive-browser", "/small.html", BROWSER, HTTP_OK, .requests = 1 },
    { "connection", "/small.html", "", HTTP_OK, .requests = 1, .connects = true },
    { "pipelined-16", "/small.html", "", HTTP_OK, .requests = 16 },
    { "miss", NULL, "", HTTP_OK, .requests = 1, .misses = true },
    { "not-modified", "/small.html", "", HTTP_NOT_MODIFIED, .requests = 1, .validates = true },
    { "range", "/small.html", "Range: bytes=9-99\r\n", HTTP_PARTIAL_CONTENT, .requests = 1 },
    { "absent", "/absent.html", "", HTTP_NOT_FOUND, .requests = 1 },
    { "40k", "/middle.bin", "", HTTP_OK, .requests = 1 },
    { "tls", "/small.html", "", HTTP_OK, .requests = 1, .tls = true },
    { "http2", "/small.html", AGENT, HTTP_OK, .requests = 1, .http2 = true },
    { "http2-16", "/small.html", AGENT, HTTP_OK, .requests = 16, .http2 = true },
    { "http2-16-tls", "/small.html", AGENT, HTTP_OK, .requests = 16, .tls = true, .http2 = true },
    { "http2-16-browser", NULL, BROWSER, HTTP_OK, .requests = PAGES, .http2 = true },
    { "ruled", "/small.html", "", HTTP_OK, .requests = 1, .ruled = true },
    { "redirect", "/moved", "", HTTP_MOVED_PERMANENTLY, .requests = 1, .ruled = true },
    { "redirect-star", "/old/page", "", HTTP_FOUND, .requests = 1, .ruled = true },
    { "redirect-http2-16", "/moved", AGENT, HTTP_MOVED_PERMANENTLY, .requests = 16, .http2 = true,
      .ruled = true },
    { "star-http2-16", "/old/page", AGENT, HTTP_FOUND, .requests = 16, .http2 = true,
      .ruled = true },
};

enum { WORKS = sizeof(works) / sizeof(works[0]) };

static struct {
    const struct work *work;
    char fields[1024]; /* of its requests */
    struct talk talk;
    struct stats_segment stats;
    struct session_totals totals;
    char *bytes;           /* of the client: those that begin the connection, then each turn */
    size_t end[2 * TURNS]; /* of each turn in them */
    size_t begins;         /* of the first */
    unsigned turn;         /* the next */
} run;

/* Of the C library, for weir and for OpenSSL. The seeds of hashes decide how many steps a lookup
 * takes. */
ssize_t getrandom(void *bytes, size_t len, unsigned flags)
{
    (void)flags;
    memset(bytes, 0x5a, len);
    return (ssize_t)len;
}

/* ---- the server ---- */

static void page_name(char *name, size_t size, unsigned number)
{
    (void)snprintf(name, size, "page-%02u.html", number % PAGES);
}

/* Last-Modified costs a few instructions more for some dates. */
static void date_file(const char *name)
{
    const struct timespec times[2] = { { .tv_sec = 1700000000 }, { .tv_sec = 1700000000 } };
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/%s", world.root, name);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void make_files(void)
{
    char name[32];
    date_file("small.html");
    date_file("middle.bin");
    for (unsigned i = 0; i < PAGES; i++) {
        page_name(name, sizeof(name), i);
        write_file(name, SMALL_SIZE, 'p');
        date_file(name);
    }
}

/* ---- rules ---- */

enum { RULES = 20, OWN = 0, FIXED = 10, STARRED = 15 };

static const struct rules_field own_field[] = {
    { .name = SPAN("X-Frame-Options"), .line = SPAN("X-Frame-Options: DENY\r\n") },
};
static const struct rules_field cached[] = {
    { .name = SPAN("Cache-Control"), .line = SPAN("Cache-Control: max-age=3600\r\n") },
};

static void add_redirect(struct rules_rule *rule, unsigned status, const char *pattern,
                         const char *target)
{
    const char *reason;
    rule->action = RULES_REDIRECT;
    rule->status = status;
    assert_true(rules_pattern_parse(span_text(pattern), &rule->pattern, &reason));
    assert_true(rules_target_parse_redirect(span_text(target), &rule->target, &reason));
}

/* The fields of the site, sections that do not cover a requested path, and two redirects. */
static void make_rules(void)
{
    static struct rules_rule rule[RULES];
    static struct rules rules = { .rule = rule, .count = RULES };
    static uint64_t storage[4096];
    static char patterns[RULES][32];
    const char *reason;
    for (unsigned i = 0; i < RULES; i++) {
        (void)snprintf(patterns[i], sizeof(patterns[i]), "/part-%02u/**", i);
        rule[i] = (struct rules_rule){ .fields = cached, .field_count = 1 };
        assert_true(rules_pattern_parse(span_text(patterns[i]), &rule[i].pattern, &reason));
    }
    rule[OWN] = (struct rules_rule){ .fields = own_field, .field_count = 1 };
    assert_true(rules_pattern_parse(SPAN("/**"), &rule[OWN].pattern, &reason));
    add_redirect(&rule[FIXED], HTTP_MOVED_PERMANENTLY, "/moved", "/small.html");
    add_redirect(&rule[STARRED], HTTP_FOUND, "/old/*", "/new/*");
    assert_true(rules_index_storage(&rules) <= sizeof(storage));
    rules_use_index(&rules, storage);
    world.sites[0].rules = &rules;
    world.sites[0].ready = session_ready_new(&rules, world.shared.server_field);
    assert_non_null(world.sites[0].ready);
}

static void count_requests(void)
{
    int why;
    assert_int_equal(stats_segment_create(&run.stats, &why), 0);
    world.shared.stats = &run.stats;
    session_tally_init(&run.totals, &world.shared);
}

static void log_requests(void)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/log", world.root);
    log_access_close(&world.log);
    assert_int_equal(log_access_open(&world.log, path, NULL, NULL), 0);
}

/* A cache keeps a file whose last change is older than a tick of the file system's clock. */
static void settle_files(void)
{
    char path[32] = "/";
    for (unsigned i = 0; i < PAGES; i++) {
        page_name(path + 1, sizeof(path) - 1, i);
        settle(path);
    }
    settle("/small.html");
    settle("/middle.bin");
}

/* The entity tag of the file becomes a line of the request. */
static void add_validator(const char *path)
{
    struct site_entry *entry;
    bool fresh;
    assert_int_equal(
        site_find(world.site, world.thread.reader, span_text(path), world.now_ns, &entry, &fresh),
        SITE_FILE);
    const struct span etag = site_file_etag(entry->plain);
    assert_true(!fresh && etag.len > 0);
    (void)snprintf(run.fields, sizeof(run.fields), "If-None-Match: %.*s\r\n", (int)etag.len,
                   etag.at);
}

/* Starts with an empty cache, whatever the files needed to settle. */
static void start_again(void)
{
    struct site_cache_limits limits = { SITE_CACHE_SIEVE, 8 << 20, 100, 10 };
    if (run.work->misses)
        limits.entries = KEPT;
    session_thread_stop(&world.thread);
    session_thread_stop(&world.other);
    session_hosts_free(world.shared.hosts);
    site_cache_free(world.shared.cache);
    world.shared.cache = site_cache_new(limits, 2);
    assert_non_null(world.shared.cache);
    assert_int_equal(start_world(), 0);
    session_thread_rest(&world.other); /* it delays no reclamation */
}

static void start_server(void)
{
    const struct work *work = run.work;
    assert_int_equal(make_world(), 0);
    make_files();
    log_requests();
    count_requests();
    world.shared.h2c = work->http2;
    world.shared.server_field = SPAN("Server: weir\r\n");
    if (work->ruled)
        make_rules();
    if (work->tls) {
        world.shared.tls = make_server();
        assert_non_null(world.shared.tls);
    }
    assert_int_equal(start_world(), 0);
    settle_files();
    if (work->validates)
        add_validator(work->path);
    start_again();
}

static void stop_server(void)
{
    struct tls_server *tls = world.shared.tls;
    char name[32];
    for (unsigned i = 0; i < PAGES; i++) {
        page_name(name, sizeof(name), i);
        remove_file(name);
    }
    remove_file("log");
    session_thread_resume(&world.other);
    assert_int_equal(end_world(), 0);
    if (run.work->ruled)
        session_ready_free(world.sites[0].ready, world.sites[0].rules);
    session_tally_done(&run.totals);
    stats_segment_remove(&run.stats);
    if (tls) {
        tls_server_free(tls);
        tls_tickets_close(&tickets);
    }
}

/* ---- the client ---- */

static void add_head(struct buf *head, unsigned number)
{
    char page[32];
    page_name(page, sizeof(page), number);
    buf_add(head, SPAN("GET "));
    if (run.work->path) {
        buf_add(head, span_text(run.work->path));
    } else {
        buf_add(head, SPAN("/"));
        buf_add(head, span_text(page));
    }
    buf_add(head, SPAN(" HTTP/1.1\r\nHost: a\r\n"));
    buf_add(head, span_text(run.fields));
    buf_add(head, SPAN("\r\n"));
}

/* Adds request `number` of the connection as a stream. */
static void add_stream(struct buf *out, unsigned number, enum http2_client_form form)
{
    char text[2048], bytes[2048];
    struct buf head = buf_over(text, sizeof(text)), block = buf_over(bytes, sizeof(bytes));
    add_head(&head, number);
    const struct span scheme = run.work->tls ? SPAN("https") : SPAN("http");
    (void)http2_client_add_request(&block, buf_span(&head), scheme, form);
    http2_frame_add(
        out, (struct http2_frame){ .length = (uint32_t)block.len,
                                   .stream = 2 * number + 1,
                                   .type = HTTP2_FRAME_HEADERS,
                                   .flags = HTTP2_FRAME_END_HEADERS | HTTP2_FRAME_END_STREAM });
    buf_add(out, buf_span(&block));
    assert_false(head.overflow || block.overflow);
}

/* The preface, settings with the largest windows, and a request that fills the table of HPACK. */
static void add_beginning(struct buf *out)
{
    buf_add(out, HTTP2_FRAME_PREFACE);
    http2_frame_add(out, (struct http2_frame){ .length = HTTP2_FRAME_SETTING_BYTES,
                                               .type = HTTP2_FRAME_SETTINGS });
    http2_frame_add_setting(out, HTTP2_FRAME_INITIAL_WINDOW_SIZE, LARGEST);
    http2_frame_add_window(out, 0, LARGEST - HTTP2_WINDOW);
    add_stream(out, 0, HTTP2_CLIENT_FIRST);
}

/* Writes what the client sends to `to`, encrypted if the work has TLS. */
static void send_bytes(FILE *to, struct buf *out)
{
    assert_false(out->overflow);
    if (run.work->tls)
        assert_true(secure_seal(&run.talk.client, buf_span(out), TLS_RECORD_BYTES, to));
    else
        assert_int_equal(fwrite(out->at, 1, out->len, to), out->len);
    assert_int_equal(fflush(to), 0);
    out->len = 0;
}

static void make_bytes(void)
{
    const struct work *work = run.work;
    static char storage[SENDING_MAX];
    struct buf out = buf_over(storage, sizeof(storage));
    size_t len;
    FILE *to = open_pipe(&run.bytes, &len);
    if (work->http2) {
        add_beginning(&out);
        send_bytes(to, &out);
        run.begins = len;
    }
    for (unsigned turn = 0; turn < 2 * TURNS; turn++) {
        for (unsigned i = 0; i < work->requests; i++) {
            const unsigned number = turn * work->requests + i;
            if (work->http2)
                add_stream(&out, number + 1, HTTP2_CLIENT_LATER);
            else
                add_head(&out, number);
        }
        send_bytes(to, &out);
        run.end[turn] = len;
    }
    assert_int_equal(fclose(to), 0);
}

/* ---- turns of the loop ---- */

static void receive(struct session *s, unsigned want)
{
    while (want & SESSION_WRITE) {
        const struct session_out out = session_output(s);
        size_t len = (size_t)out.file_len;
        for (unsigned i = 0; i < out.count; i++)
            len += out.piece[i].len;
        want = session_sent(s, len, world.now_ns);
    }
}

static void open_connection(void)
{
    const struct session_origin origin = { .peer = { .family = 4 }, .tls = run.work->tls };
    session_open(&run.talk.session, &world.thread, origin, world.now_ns);
}

static void serve_turn(void)
{
    struct session *s = &run.talk.session;
    const size_t from = run.turn == 0 ? run.begins : run.end[run.turn - 1];
    const struct span in = span_of(run.bytes + from, run.end[run.turn] - from);
    session_thread_tick(&world.thread, world.now_ns, WALL_S);
    if (run.work->connects) {
        session_close(s);
        open_connection();
    }
    receive(s, session_feed(s, in, world.now_ns));
    run.turn++;
}

static __attribute__((noinline)) void serve_turns(void)
{
    for (unsigned i = 0; i < TURNS; i++)
        serve_turn();
}

/* callgrind finds it by its name. The store keeps the call above from becoming a jump, which would
 * end this function. */
void cost_counted(void);
static volatile unsigned counted;
__attribute__((noinline)) void cost_counted(void)
{
    serve_turns();
    counted++;
}

/* ---- a work ---- */

static void shake_hands(struct talk *t)
{
    enum tls_result result;
    assert_true(!run.work->http2 || secure_offer_http2(&t->client));
    do {
        char *bytes;
        size_t len;
        FILE *out = open_pipe(&bytes, &len);
        result = secure_shake_hands(&t->client, span_of(t->bytes, t->len), out);
        assert_int_not_equal(result, TLS_FAILED);
        assert_int_equal(fclose(out), 0);
        t->want = session_feed(&t->session, span_of(bytes, len), world.now_ns);
        while (t->want & SESSION_WRITE)
            receive_some(t);
        assert_int_equal(fflush(t->received), 0);
        free(bytes);
    } while (result == TLS_MORE);
}

static uint64_t count_of(enum stats_counter counter)
{
    return atomic_load(&world.thread.stats.block->counter[counter]);
}

static void measure(void)
{
    const struct work *work = run.work;
    const uint64_t requests = (uint64_t)TURNS * work->requests;
    const enum stats_counter status = STATS_STATUS_FIRST +
                                      stats_counters_status_place(work->status);
    serve_turns();
    const uint64_t answers = count_of(status), misses = count_of(STATS_cache_misses);
    cost_counted();
    assert_int_equal(count_of(status) - answers, requests);
    assert_int_equal(count_of(STATS_cache_misses) - misses, work->misses ? requests : 0);
    (void)printf("counted %s %u\n", work->name, TURNS * work->requests);
}

static void begin_connection(void)
{
    struct talk *t = &run.talk;
    open_talk(t);
    session_close(&t->session);
    open_connection();
    if (run.work->tls)
        shake_hands(t);
    make_bytes();
    if (run.begins > 0)
        receive(&t->session,
                session_feed(&t->session, span_of(run.bytes, run.begins), world.now_ns));
}

static void do_work(void **state)
{
    memset(&run, 0, sizeof(run));
    run.work = *state;
    (void)snprintf(run.fields, sizeof(run.fields), "%s", run.work->fields);
    start_server();
    begin_connection();
    measure();
    close_talk(&run.talk);
    free(run.bytes);
    stop_server();
}

int main(void)
{
    struct CMUnitTest tests[WORKS];
    for (size_t i = 0; i < WORKS; i++)
        tests[i] = (struct CMUnitTest){ .name = works[i].name,
                                        .test_func = do_work,
                                        .initial_state = (void *)(uintptr_t)&works[i] };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
