/* SPDX-License-Identifier: MIT
 *
 * No path leads out of the root. The root has every kind of link that could, and secrets are
 * beside it. 100,000 generated paths are requested, and every result is compared with the files
 * inside. This runs with openat2, with the walk that replaces it, and while another thread keeps
 * replacing a directory by a link that leads out. SEED=n replays a run.
 */
#include "os/file.h"
#include "site/mime.h"
#include "site/site.h"
#include "tree.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#define INSIDE "inside: "
#define SECRET "secret: "

enum { PATHS = 100 * 1000, DEPTH_MAX = 8, RACE_MS = 1000 };

struct world {
    struct tree tree; /* "root" is served; "secret", "outside/" are beside it */
    char root[PATH_MAX];
    int root_fd;
    struct site_options options;
    struct site_mime *mime;
    struct site *site;
    struct site_cache *cache;
    struct site_cache_reader *reader;
};

static uint64_t random_state;

static unsigned below(unsigned bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)((random_state >> 16) % bound);
}

static void fill(const struct world *world)
{
    const struct tree *tree = &world->tree;

    tree_write(tree, "secret", SECRET "beside the root");
    tree_folder(tree, "outside");
    tree_write(tree, "outside/secret", SECRET "in a folder beside it");
    tree_write(tree, "outside/index.html", SECRET "an index");
    tree_write(tree, "outside/file.br", SECRET "a stored form");
    tree_folder(tree, "root");
    tree_folder(tree, "root/a");
    tree_folder(tree, "root/a/b");
    tree_folder(tree, "root/.well-known");
    tree_write(tree, "root/file", INSIDE "file");
    tree_write(tree, "root/index.html", INSIDE "index");
    tree_write(tree, "root/a/file", INSIDE "a/file");
    tree_write(tree, "root/a/secret", INSIDE "of no interest");
    tree_write(tree, "root/a/b/file", INSIDE "a/b/file");
    tree_write(tree, "root/..\\secret", INSIDE "a name with a backslash");
    tree_write(tree, "root/.well-known/file", INSIDE "well known");
    tree_link(tree, "root/up", "..");
    tree_link(tree, "root/a/up2", "../..");
    tree_link(tree, "root/a/up1", "..");
    tree_link(tree, "root/a/b/up5", "../../../../..");
    tree_link(tree, "root/out", "../outside");
    tree_link(tree, "root/out_file", "../secret");
    tree_link(tree, "root/file.br", "../outside/file.br");
    tree_link(tree, "root/a/index.html", "../../outside/index.html");
    tree_link(tree, "root/there_and_back", "../root/a");
    tree_link(tree, "root/slash", "/");
    tree_link(tree, "root/absolute", tree->path);
    tree_link(tree, "root/absolute_root", world->root);
    tree_link(tree, "root/proc", "/proc/self/root");
    tree_link(tree, "root/cwd", "/proc/self/cwd");
    tree_link(tree, "root/fd", "/proc/self/fd");
    tree_link(tree, "root/loop", "loop");
    tree_link(tree, "root/a/chain", "../chain");
    tree_link(tree, "root/chain", "a/up2/secret");
    tree_link(tree, "root/here", ".");
}

static int set_up(void **state)
{
    static const char *const index[] = { "index.html", NULL };
    static struct world world;
    const struct site_cache_limits limits = { SITE_CACHE_SIEVE, 8 * 1024 * 1024, 1000, 100 };
    const char *what;

    world = (struct world){ 0 };
    tree_make(&world.tree);
    assert_non_null(realpath(world.tree.path, world.root));
    strcat(world.root, "/root");
    fill(&world);
    world.root_fd = os_file_open_directory(world.root);
    world.options = (struct site_options){
        .name = "traversal",
        .root = world.root,
        .index = index,
        .listing = true,
        .precompressed = true,
        .hidden = true, /* without this defence */
        .body_max = 64 * 1024,
    };
    world.mime = site_mime_new(NULL, NULL);
    world.cache = site_cache_new(limits, 1);
    assert_non_null(world.mime);
    assert_non_null(world.cache);
    world.reader = site_cache_reader(world.cache, 0);
    assert_int_equal(site_open(&world.site, &world.options, world.mime, &what), 0);
    *state = &world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    (void)os_file_force_walk(false);
    site_cache_offline(world->reader);
    site_cache_free(world->cache);
    site_close(world->site);
    site_mime_free(world->mime);
    os_file_close(world->root_fd);
    tree_remove(&world->tree);
    return 0;
}

/* The first LIKELY of them exist more often. */
enum { LIKELY = 12 };
static const char *const path_parts[] = {
    "a",           "b",        "file",
    "here",        "up1",      "there_and_back",
    "a",           "b",        "..",
    ".",           "absolute", "index.html",
    "..",          "",         "...",
    ". .",         "..\\",     "secret",
    "outside",     "up",       "up2",
    "up5",         "out",      "loop",
    "out_file",    "slash",    "etc",
    "passwd",      "proc",     "cwd",
    "fd",          "root",     "self",
    "3",           "br",       "absolute_root",
    "chain",       ".git",     "file.br",
    "tmp",         "..;",      "..\\secret",
    "%2e%2e",      "..\xff",   "\xc0\xae\xc0\xae",
    ".well-known",
};

enum { PARTS = sizeof(path_parts) / sizeof(path_parts[0]) };

/* Makes a path as it is after decoding. It may hold any byte. */
static struct span make_path(char *out, size_t size)
{
    size_t len = 0;
    unsigned count = 1 + below(DEPTH_MAX);

    for (unsigned i = 0; i < count; i++) {
        const char *part = path_parts[below(below(4) > 0 ? LIKELY : PARTS)];
        len += (size_t)snprintf(out + len, size - len, "%s%s", i == 0 && below(20) == 0 ? "" : "/",
                                part);
    }
    switch (below(40)) {
    case 0: /* a name or a path that is too long */
        memset(out + len, 'x', size - len);
        return span_of(out, len + below((unsigned)(size - len)));
    case 1: /* a byte of any value, anywhere */
        out[below((unsigned)len + 1)] = (char)below(256);
        break;
    case 2: /* all the way up, and down again by name */
        len = (size_t)snprintf(out, size, "/%.*s%s", (int)(3 * below(20)),
                               "../../../../../../../../../../../../../../../../../../../../../",
                               below(2) == 0 ? "etc/passwd" : "secret");
        break;
    default:
        break;
    }
    if (below(4) == 0)
        out[len++] = '/';
    return span_of(out, len);
}

/* Whether any form of the entry is not from inside. */
static bool is_foreign(const struct site_entry *entry)
{
    char text[64];

    for (int v = 0; v < SITE_VARIANTS; v++) {
        const struct site_file *file = site_entry_file(entry, v);
        if ((entry->variants & 1u << v) == 0)
            continue;
        size_t len = file->size < sizeof(text) ? file->size : sizeof(text);
        if (site_file_read(file, text, len, 0) < 0 ||
            !span_starts(span_of(text, len), SPAN(INSIDE)))
            return true;
    }
    return false;
}

/* Looks up one path and returns the result. Fails when an entry is from outside. */
static enum site_result ask(struct world *world, struct span path, uint64_t now_ns)
{
    struct site_entry *entry;
    bool is_new;

    enum site_result result = site_find(world->site, world->reader, path, now_ns, &entry, &is_new);
    if (result == SITE_FILE) {
        bool foreign = is_foreign(entry);
        if (is_new) {
            site_publish(world->reader, &entry);
            site_cache_release(&entry->cache);
        }
        if (foreign)
            fail_msg("%.*s is from outside", (int)path.len, path.at);
    }
    site_cache_quiesce(world->reader);
    return result;
}

/* A site refuses dot segments before it opens a file. This test opens them all the same, and the
 * kernel reports the real path of what was opened. Returns whether a file was opened. */
static bool open_raw(const struct world *world, struct span path)
{
    char text[2 * PATH_MAX];
    char place[64];
    char real[PATH_MAX];
    const size_t root_len = strlen(world->root);

    if (memchr(path.at, '\0', path.len) != NULL || path.len <= 1)
        return false;
    path = span_skip(path, path.at[0] == '/');
    memcpy(text, path.at, path.len);
    text[path.len] = '\0';
    int fd = below(2) == 0 ? os_file_open_beneath(world->root_fd, text)
                           : os_file_peek_beneath(world->root_fd, text);
    if (fd < 0)
        return false;
    (void)snprintf(place, sizeof(place), "/proc/self/fd/%d", fd);
    ssize_t len = readlink(place, real, sizeof(real) - 1);
    os_file_close(fd);
    assert_true(len > 0);
    real[len] = '\0';
    if (strncmp(real, world->root, root_len) != 0 ||
        (real[root_len] != '/' && real[root_len] != '\0'))
        fail_msg("%s led to %s", text, real);
    return true;
}

static void never_finds_a_file_outside_the_root(void **state)
{
    struct world *world = *state;
    unsigned counts[SITE_BROKEN + 1] = { 0 };
    unsigned opened = 0;
    const size_t size = 2 * PATH_MAX;
    char *path = malloc(size);

    assert_non_null(path);
    for (int i = 0; i < PATHS; i++) {
        struct span made = make_path(path, size - 1);
        enum site_result result = ask(world, made, 1 + (uint64_t)i * (SITE_FRESH_NS / 100));
        assert_true(result != SITE_BUSY && result != SITE_BROKEN);
        counts[result]++;
        opened += open_raw(world, made);
    }
    free(path);
    /* Some paths were found. */
    assert_true(opened > PATHS / 1000);
    assert_true(counts[SITE_FILE] > 0);
    assert_true(counts[SITE_REDIRECT] > 0);
    assert_true(counts[SITE_LISTING] > 0);
    assert_true(counts[SITE_ABSENT] > 0);
    assert_true(counts[SITE_FORBIDDEN] > 0);
}

static void never_finds_a_file_outside_the_root_by_walking(void **state)
{
    (void)os_file_force_walk(true);
    never_finds_a_file_outside_the_root(state);
}

struct swapper {
    const struct tree *tree;
    _Atomic bool stop;
    unsigned swaps;
};

/* "root/door" alternates between a directory inside and a link to one outside. */
static void *swap_all_the_time(void *argument)
{
    struct swapper *swapper = argument;

    while (!atomic_load(&swapper->stop)) {
        if (renameat2(swapper->tree->fd, "root/door", swapper->tree->fd, "root/spare",
                      RENAME_EXCHANGE) < 0 &&
            (renameat(swapper->tree->fd, "root/door", swapper->tree->fd, "root/third") < 0 ||
             renameat(swapper->tree->fd, "root/spare", swapper->tree->fd, "root/door") < 0 ||
             renameat(swapper->tree->fd, "root/third", swapper->tree->fd, "root/spare") < 0))
            break;
        swapper->swaps++;
    }
    return NULL;
}

static int64_t now_ms(void)
{
    struct timespec now;
    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void race(struct world *world)
{
    static const char *const paths[] = { "/door/secret", "/door/", "/here/door/secret",
                                         "/door/deep/secret" };
    struct swapper swapper = { .tree = &world->tree };
    unsigned counts[SITE_BROKEN + 1] = { 0 };
    uint64_t now_ns = 1;
    pthread_t thread;

    const int64_t start_ms = now_ms();
    assert_int_equal(pthread_create(&thread, NULL, swap_all_the_time, &swapper), 0);
    while (now_ms() - start_ms < RACE_MS)
        for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
            counts[ask(world, span_text(paths[i]), now_ns += SITE_FRESH_NS)]++;
    atomic_store(&swapper.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(swapper.swaps > 0);
    assert_true(counts[SITE_FILE] > 0);
    assert_true(counts[SITE_FORBIDDEN] > 0);
    assert_int_equal(counts[SITE_BROKEN], 0);
}

static void a_directory_that_becomes_a_link_leads_nowhere(void **state)
{
    struct world *world = *state;
    const struct tree *tree = &world->tree;

    tree_folder(tree, "root/door");
    tree_folder(tree, "root/door/deep");
    tree_write(tree, "root/door/secret", INSIDE "not what was looked for");
    tree_write(tree, "root/door/index.html", INSIDE "index");
    tree_write(tree, "root/door/deep/secret", INSIDE "deep");
    tree_folder(tree, "outside/deep");
    tree_write(tree, "outside/deep/secret", SECRET "deep");
    tree_link(tree, "root/spare", "../outside");
    race(world);
    (void)os_file_force_walk(true);
    race(world);
}

int main(void)
{
    const char *seed = getenv("SEED");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(never_finds_a_file_outside_the_root, set_up, tear_down),
        cmocka_unit_test_setup_teardown(never_finds_a_file_outside_the_root_by_walking, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_directory_that_becomes_a_link_leads_nowhere, set_up,
                                        tear_down),
    };

    random_state = seed != NULL ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL);
    (void)printf("SEED=%llu\n", (unsigned long long)random_state);
    random_state = random_state * 2 + 1; /* never 0 */
    return cmocka_run_group_tests_name("traversal", tests, NULL, NULL);
}
