/* SPDX-License-Identifier: MIT
 *
 * Threads request files and their compressed variants while the files change, and while the
 * compressor works. Whatever a thread finds, a variant decodes to the plain file of the same
 * entry. It runs for a bounded time, also under the sanitizers.
 */
#include "os/clock.h"
#include "site/coder.h"
#include "site/mime.h"
#include "support/compressing.h"
#include "tree.h"

#include <pthread.h>
#include <sched.h>
#include <zlib.h>

enum { THREADS = 4, FILES = 12, FILE_BYTES = 6000, RUN_MS = 1500, GZIP = 1 << SITE_GZIP };

static struct tree tree;
static struct site *site;
static struct site_cache *cache;
static struct site_compressor *compressor;
static _Atomic bool stop;
static _Atomic uint64_t wrong, variants_seen, answers;
static _Atomic uint64_t now_ns = 1;

static void note_if(bool is_wrong)
{
    if (is_wrong)
        atomic_fetch_add(&wrong, 1);
}

static void write_file(unsigned file, unsigned version)
{
    char path[32], next[32], text[FILE_BYTES];
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)('a' + (i / 7 + version + file) % 23);
    (void)snprintf(path, sizeof(path), "root/%u.txt", file);
    (void)snprintf(next, sizeof(next), "root/%u.next", file);
    tree_write_bytes(&tree, next, span_of(text, sizeof(text) - version % 100));
    tree_rename(&tree, next, path);
}

static void verify_variant(const struct site_entry *entry)
{
    const struct site_file *form = site_entry_file(entry, SITE_GZIP), *plain = entry->plain;
    char decoded[FILE_BYTES], stored[FILE_BYTES];
    z_stream in = { .next_in = (Bytef *)(uintptr_t)site_file_body(form),
                    .avail_in = (uInt)form->size,
                    .next_out = (Bytef *)decoded,
                    .avail_out = sizeof(decoded) };
    note_if(inflateInit2(&in, 15 + 16) != Z_OK);
    note_if(inflate(&in, Z_FINISH) != Z_STREAM_END || in.total_out != plain->size);
    note_if(inflateEnd(&in) != Z_OK);
    note_if(site_file_read(plain, stored, (size_t)plain->size, 0) < 0);
    note_if(memcmp(decoded, stored, (size_t)plain->size) != 0);
    atomic_fetch_add(&variants_seen, 1);
}

static void use_file(struct site_cache_reader *reader, unsigned file, bool verify)
{
    char path[32];
    struct site_entry *entry;
    bool is_new;
    (void)snprintf(path, sizeof(path), "/%u.txt", file);
    if (site_find(site, reader, span_text(path), atomic_load(&now_ns), &entry, &is_new) !=
        SITE_FILE)
        return;
    atomic_fetch_add(&answers, 1);
    if (is_new)
        (void)site_publish(reader, &entry);
    if (verify && (entry->variants & GZIP) != 0)
        verify_variant(entry);
    if (atomic_load_explicit(&entry->missing, memory_order_relaxed) != 0)
        (void)site_compressor_request(compressor, entry, GZIP);
    if (is_new)
        site_cache_release(&entry->cache);
}

static void *serve(void *index)
{
    const unsigned self = (unsigned)(uintptr_t)index;
    struct site_cache_reader *reader = site_cache_reader(cache, self);
    for (unsigned turn = 0; !atomic_load(&stop); turn++) {
        for (unsigned i = 0; i < FILES; i++)
            use_file(reader, (i + self) % FILES, turn % 8 == 0);
        site_cache_quiesce(reader);
        (void)sched_yield();
    }
    site_cache_offline(reader);
    return NULL;
}

static void change_files(void)
{
    const uint64_t began_ns = os_clock_now_ns();
    const struct timespec pause = { .tv_nsec = 5 * 1000 * 1000 };
    for (unsigned version = 0; os_clock_now_ns() - began_ns < RUN_MS * UINT64_C(1000000) ||
                               atomic_load(&variants_seen) < 10;
         version++) {
        if (os_clock_now_ns() - began_ns > 60 * UINT64_C(1000000000))
            break;
        if (version % 8 == 0)
            write_file(version / 8 % FILES, version);
        atomic_fetch_add(&now_ns, SITE_FRESH_NS / 2);
        (void)nanosleep(&pause, NULL);
    }
}

static void variants_always_belong_to_their_plain_file(void **state)
{
    (void)state;
    static char root[PATH_MAX];
    const char *what;
    tree_make(&tree);
    tree_folder(&tree, "root");
    for (unsigned i = 0; i < FILES; i++)
        write_file(i, 0);
    (void)snprintf(root, sizeof(root), "%s/root", tree.path);
    const struct site_options options = {
        .name = "test", .root = root, .compress = site_coder_codings(), .body_max = FILE_BYTES - 50
    };
    struct site_mime *mime = site_mime_new(NULL, NULL);
    assert_int_equal(site_open(&site, &options, mime, &what), 0);
    /* The cache is too small for all, so entries are evicted, too. */
    const struct site_cache_limits limits = { SITE_CACHE_SIEVE, 14 * FILE_BYTES, 100, 50 };
    cache = site_cache_new(limits, THREADS);
    compressor = site_compressor_new(
        (struct site_compressor_plan){ .cpu_percent = 100,
                                       .share_bytes = 1024 * 1024,
                                       .entry_bytes = 14 * FILE_BYTES / SITE_CACHE_ENTRY_SHARE,
                                       .start = start_compressing,
                                       .context = &compressor });
    assert_true(mime != NULL && cache != NULL && compressor != NULL);

    pthread_t ids[THREADS];
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&ids[i], NULL, serve, (void *)(uintptr_t)i), 0);
    change_files();
    atomic_store(&stop, true);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(ids[i], NULL), 0);
    end_compressing(compressor);
    site_cache_free(cache);
    site_close(site);
    site_mime_free(mime);
    tree_remove(&tree);
    assert_int_equal(atomic_load(&wrong), 0);
    assert_true(atomic_load(&variants_seen) >= 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variants_always_belong_to_their_plain_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
