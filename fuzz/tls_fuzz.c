/* SPDX-License-Identifier: MIT
 *
 * A session behind TLS. The first byte chooses one of two clients. The first client sends the input
 * as it is. The second completes the handshake. Then it follows the input as a script of records,
 * key updates, broken bytes and ends. With any input, the session keeps its contract and ends.
 */
#include "base/check.h"
#include "session/hosts.h"
#include "session/thread.h"
#include "site/mime.h"
#include "support/secure.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NOW_NS UINT64_C(1000000000000)

enum { OUTPUT_MAX = 1024 * 1024, FILE_BYTES = 40000 };

static struct {
    char top[32];
    struct site_mime *mime;
    struct site_options options;
    struct session_site site;
    struct log_access_sink log;
    struct session_shared shared;
    struct session_thread thread;
} world = { .top = "/tmp/weir-tls-XXXXXX" };

static const char *const no_names[] = { NULL };
static const char *const own_names[] = { "a", NULL };

/* ---- a server ---- */

static char *below(const char *name)
{
    char *path = NULL;
    CHECK(asprintf(&path, "%s/%s", world.top, name) >= 0);
    return path;
}

/* The file is open from now on, so nothing of it has to stay on the disk. */
static void open_site(void)
{
    world.options = (struct site_options){
        .name = "fuzz", .root = world.top, .index = no_names, .body_max = 10000
    };
    char *path = below("f");
    FILE *out = fopen(path, "we");
    CHECK(out && ftruncate(fileno(out), FILE_BYTES) == 0 && fclose(out) == 0);
    const char *what;
    CHECK(site_open(&world.site.site, &world.options, world.mime, &what) == 0);
    free(path);
}

static struct tls_server *open_tls(void)
{
    char *folder = below("tls");
    struct tls_server *server = secure_server(folder, own_names, NULL);
    free(folder);
    return server;
}

static void end_world(void)
{
    session_thread_stop(&world.thread);
    tls_server_free(world.shared.tls);
    site_cache_free(world.shared.cache);
    session_hosts_free(world.shared.hosts);
    site_close(world.site.site);
    site_mime_free(world.mime);
    log_access_close(&world.log);
    char *path = below("f");
    (void)unlink(path);
    free(path);
    (void)rmdir(world.top);
}

static void begin_world(void)
{
    CHECK(mkdtemp(world.top));
    world.mime = site_mime_new("/dev/null");
    CHECK(world.mime);
    open_site();
    CHECK(log_access_open(&world.log, "/dev/null", LOG_JSON, NULL) == 0);
    struct site_cache_limits limits = { SITE_CACHE_SIEVE, 60000, 16, 4 };
    world.shared = (struct session_shared){
        .sites = &world.site,
        .site_count = 1,
        .hosts = session_hosts_new(&world.site, 1),
        .cache = site_cache_new(limits, 1),
        .log = &world.log,
        .tls = open_tls(),
        .header_timeout_ns = 1000000000,
        .body_timeout_ns = 1000000000,
        .idle_timeout_ns = 1000000000,
        .send_timeout_ns = 1000000000,
    };
    CHECK(world.shared.hosts && world.shared.cache && world.shared.tls);
    CHECK(session_thread_start(&world.thread, &world.shared, 0) == 0);
    CHECK(atexit(end_world) == 0);
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
    session_thread_tick(&world.thread, NOW_NS, 1795248000);
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
        session_thread_tick(&world.thread, NOW_NS, 1795248000);
        c->want = session_feed(&c->session, span_of(copy, len), NOW_NS);
        free(copy);
        input = span_skip(input, len);
    }
}

static void deliver(struct conversation *c, FILE *out, char **bytes, const size_t *len)
{
    CHECK(fclose(out) == 0);
    feed_all(c, span_of(*bytes, *len));
    free(*bytes);
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
        deliver(c, out, &bytes, &len);
    } while (result == TLS_MORE);
    return result == TLS_DONE && c->want == SESSION_READ;
}

/* One command: a byte that names it, a byte with a length, and that many bytes. */
static struct span obey(struct conversation *c, struct secure_client *client, struct span script)
{
    unsigned command = (unsigned char)script.at[0] % 5;
    struct span rest = span_skip(script, 1);
    size_t len = rest.len > 0 ? (unsigned char)rest.at[0] : 0;
    rest = rest.len > 0 ? span_skip(rest, 1) : rest;
    struct span bytes = span_first(rest, len);
    char *sealed = NULL;
    size_t sealed_len = 0;
    FILE *out = open_memstream(&sealed, &sealed_len);
    CHECK(out);
    if (command == 0)
        (void)secure_seal(client, bytes, TLS_RECORD_BYTES, out);
    else if (command == 1)
        (void)secure_seal(client, SPAN("GET /f HTTP/1.1\r\nHost: a\r\n\r\n"), 1 + len, out);
    else if (command == 2 && SSL_key_update(client->connection.ssl, (int)len % 2) == 1 &&
             SSL_do_handshake(client->connection.ssl) == 1)
        secure_flush(client, out);
    else if (command == 3)
        (void)fwrite(bytes.at, 1, bytes.len, out);
    else if (command == 4)
        secure_end(client, out);
    ERR_clear_error();
    deliver(c, out, &sealed, &sealed_len);
    return command == 0 || command == 3 ? span_skip(rest, bytes.len) : rest;
}

static void follow_script(struct conversation *c, struct span script)
{
    struct secure_client client;
    CHECK(secure_open(&client));
    if (shake_hands(c, &client))
        while (script.len > 0 && c->want != SESSION_CLOSE)
            script = obey(c, &client, script);
    secure_close(&client);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct conversation c;
    if (!world.mime)
        begin_world();
    if (size == 0 || size > 16 * 1024)
        return 0;
    struct span input = span_of((const char *)data + 1, size - 1);
    c.len = 0;
    c.want = SESSION_READ;
    c.random = size;
    session_open(&c.session, &world.thread, (struct session_origin){ .tls = true }, NOW_NS);
    if (data[0] % 2 == 0)
        feed_all(&c, input);
    else
        follow_script(&c, input);
    if (c.want == SESSION_READ)
        (void)session_expire(&c.session, session_deadline_ns(&c.session));
    session_close(&c.session);
    session_thread_tick(&world.thread, NOW_NS, 1795248000);
    return 0;
}
