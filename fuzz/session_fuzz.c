/* SPDX-License-Identifier: MIT
 *
 * A whole connection: real files, a real cache, no socket. Each input is played at once, and in
 * random portions with short writes. Both must give the same bytes, keep the contract of the
 * session, and never send a file from outside the root.
 */
#include "base/check.h"
#include "base/hash.h"
#include "session/hosts.h"
#include "session/thread.h"
#include "site/mime.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SECRET "only outside the root"
#define NOW_NS UINT64_C(1000000000000)

enum { OUTPUT_MAX = 4 * 1024 * 1024 };

static struct {
    char top[32];
    struct site_mime *mime;
    struct site_options options;
    struct session_site site;
    struct log_access_sink log;
    struct session_shared shared;
    struct session_thread worker;
} world = { .top = "/tmp/weir-fuzz-XXXXXX" };

static const char *const index_names[] = { "index.html", NULL };
static const char *const no_hosts[] = { NULL };

static const char *const folders[] = { "site", "site/d", "site/sub", "site/.git" };
static const struct {
    const char *name, *text;
    size_t size; /* extended to this size with zeros */
} files[] = {
    { "secret.txt", SECRET, 0 },
    { "site/index.html", "<!doctype html>", 0 },
    { "site/hello.txt", "hello\n", 0 },
    { "site/empty.txt", "", 0 },
    { "site/d/hello.txt", "hello from d\n", 0 },
    { "site/sub/index.html", "sub\n", 0 },
    { "site/.git/config", SECRET, 0 },
    { "site/page.html", "plain\n", 0 },
    { "site/page.html.gz", "gzip\n", 0 },
    { "site/page.html.br", "br\n", 0 },
    { "site/f.bin", "0123456789", 1000 },
    { "site/big.bin", "big", 100000 },
};

static char *below(const char *name)
{
    char *path = NULL;
    CHECK(asprintf(&path, "%s/%s", world.top, name) >= 0);
    return path;
}

static void make_files(void)
{
    CHECK(mkdtemp(world.top));
    for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
        char *path = below(folders[i]);
        CHECK(mkdir(path, 0700) == 0);
        free(path);
    }
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        char *path = below(files[i].name);
        FILE *out = fopen(path, "we");
        CHECK(out && fputs(files[i].text, out) >= 0);
        CHECK(fflush(out) == 0);
        CHECK(files[i].size == 0 || ftruncate(fileno(out), (off_t)files[i].size) == 0);
        const struct timespec times[2] = { { .tv_sec = 784111777 }, { .tv_sec = 784111777 } };
        CHECK(futimens(fileno(out), times) == 0);
        CHECK(fclose(out) == 0);
        free(path);
    }
    char *link = below("site/link_out");
    CHECK(symlink("../secret.txt", link) == 0);
    free(link);
}

static void remove_files(void)
{
    char *link = below("site/link_out");
    (void)unlink(link);
    free(link);
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        char *path = below(files[i].name);
        (void)unlink(path);
        free(path);
    }
    for (size_t i = sizeof(folders) / sizeof(*folders); i > 0; i--) {
        char *path = below(folders[i - 1]);
        (void)rmdir(path);
        free(path);
    }
    (void)rmdir(world.top);
}

/* Removes the files when this process ends, however it ends. Another process waits for that. */
static void remove_files_at_end(void)
{
    int ends[2];
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid > 0) {
        (void)close(ends[0]);
        return; /* the other end stays open until this process ends */
    }
    (void)close(ends[1]);
    (void)setsid(); /* an interrupt from the terminal does not reach this process */
    char byte;
    (void)!read(ends[0], &byte, 1);
    remove_files();
    _exit(0);
}

static void end_world(void)
{
    session_thread_stop(&world.worker);
    site_cache_free(world.shared.cache);
    session_hosts_free(world.shared.hosts);
    site_close(world.site.site);
    site_mime_free(world.mime);
    log_access_close(&world.log);
    char *root = (char *)(uintptr_t)world.options.root;
    free(root);
}

static void begin_world(void)
{
    make_files();
    remove_files_at_end();
    world.mime = site_mime_new("/dev/null");
    world.options = (struct site_options){
        .name = "fuzz",
        .root = below("site"),
        .index = index_names,
        .listing = true,
        .precompressed = true,
        .body_max = 10000,
    };
    const char *what;
    CHECK(world.mime && site_open(&world.site.site, &world.options, world.mime, &what) == 0);
    world.site.hosts = no_hosts;
    CHECK(log_access_open(&world.log, "/dev/null", LOG_JSON, NULL) == 0);
    struct site_cache_limits limits = { SITE_CACHE_SIEVE, 60000, 16, 4 };
    world.shared = (struct session_shared){
        .sites = &world.site,
        .site_count = 1,
        .hosts = session_hosts_new(&world.site, 1),
        .cache = site_cache_new(limits, 1),
        .log = &world.log,
        .server_field = SPAN("Server: weir\r\n"),
        .header_timeout_ns = 1000000000,
        .body_timeout_ns = 1000000000,
        .idle_timeout_ns = 1000000000,
        .send_timeout_ns = 1000000000,
    };
    CHECK(world.shared.hosts && world.shared.cache);
    CHECK(session_thread_start(&world.worker, &world.shared, 0) == 0);
    CHECK(atexit(end_world) == 0);
}

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
    size_t taken = portion(c, total);
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
    while (want != SESSION_CLOSE && (want & SESSION_WRITE || input.len > 0)) {
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
    c->closed |= want != SESSION_READ;
    session_close(&c->session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char whole_output[OUTPUT_MAX], split_output[OUTPUT_MAX];
    if (!world.mime)
        begin_world();
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
