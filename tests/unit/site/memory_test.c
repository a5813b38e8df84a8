/* SPDX-License-Identifier: MIT
 *
 * The memory of an entry in the cache: what it uses besides its heads and bodies, as the allocator
 * counts it, and that the heads stay in place when their unused space is freed.
 */
#include "site/allocator.h"
#include "site/entry.h"

#include "fixture.h"

/* Of an entry with one form whose body is in memory, and a path of 11 bytes. docs/performance.md
 * states it. */
enum { ENTRY_BYTES_MOST = 150 };

/* The same without the path and the allocator's own bytes. */
_Static_assert(sizeof(struct site_entry) + sizeof(struct site_file) == 128,
               "docs/performance.md states the size of an entry");

/* A tag of the content is shorter than the longest tag, for which a new form has space. */
enum { TAG_ROOM = 39 - 18 };

static struct site_entry *load(struct fixture *f, const char *path)
{
    struct site_entry *entry = NULL;
    bool is_new = false;
    assert_int_equal(site_find(f->site, f->reader, span_text(path), f->now_ns, &entry, &is_new),
                     SITE_FILE);
    assert_true(is_new);
    return entry;
}

static void set_heads(struct site_entry *entry, size_t head, size_t block)
{
    char bytes[SITE_HEAD_ROOM];
    memset(bytes, 'h', sizeof(bytes));
    assert_true(site_set_head(entry, SITE_PLAIN, span_of(bytes, head)));
    memset(bytes, 'b', sizeof(bytes));
    site_set_block(entry, SITE_PLAIN, span_of(bytes, block));
}

static void assert_heads_are(const struct site_file *file, size_t head, size_t block)
{
    assert_int_equal(file->head_len, head);
    assert_int_equal(file->block_len, block);
    assert_ptr_equal(site_file_head(file).at + head, site_file_body(file));
    for (size_t i = 0; i < head; i++)
        assert_int_equal(site_file_head(file).at[i], 'h');
    for (size_t i = 0; i < block; i++)
        assert_int_equal(site_file_block(file).at[i], 'b');
}

static void the_unused_space_for_heads_is_freed_when_an_entry_is_published(void **state)
{
    struct fixture *f = *state;
    static const struct {
        size_t head, block;
    } heads[] = { { 258, 137 }, { 258, 0 }, { 1, 0 }, { 0, 0 }, { 900, 100 }, { 1024, 0 } };
    tree_write(&f->tree, "root/a.txt", "the body");
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        struct site_entry *entry = load(f, "/a.txt");
        const size_t before = entry->cache.size_bytes;
        set_heads(entry, heads[i].head, heads[i].block);
        assert_true(site_publish(f->reader, &entry));
        assert_heads_are(entry->plain, heads[i].head, heads[i].block);
        assert_body_is(entry, "the body");
        const size_t unused = SITE_HEAD_ROOM - heads[i].head - heads[i].block;
        assert_int_equal(before - entry->cache.size_bytes, unused >= 200 ? unused + TAG_ROOM : 0);
        site_cache_remove(f->reader, &entry->cache);
        site_cache_release(&entry->cache);
        site_cache_quiesce(f->reader);
    }
}

static void an_entry_that_is_not_taken_keeps_its_bytes(void **state)
{
    struct fixture *f = *state;
    close_cache(f);
    open_cache(f, 0);
    tree_write(&f->tree, "root/a.txt", "the body");
    struct site_entry *entry = load(f, "/a.txt");
    set_heads(entry, 258, 137);
    assert_false(site_publish(f->reader, &entry));
    assert_heads_are(entry->plain, 258, 137);
    assert_body_is(entry, "the body");
    site_cache_release(&entry->cache);
}

static void the_heads_of_an_open_file_are_not_moved(void **state)
{
    struct fixture *f = *state;
    char large[BODY_MAX + 2];
    memset(large, 'x', sizeof(large) - 1);
    large[sizeof(large) - 1] = '\0';
    tree_write(&f->tree, "root/large.bin", large);
    struct site_entry *entry = load(f, "/large.bin");
    set_heads(entry, 258, 137);
    const char *head = site_file_head(entry->plain).at;
    const size_t before = entry->cache.size_bytes;
    assert_true(site_publish(f->reader, &entry));
    assert_ptr_equal(site_file_head(entry->plain).at, head);
    assert_int_equal(entry->cache.size_bytes, before);
    site_cache_release(&entry->cache);
}

static void the_memory_of_a_removed_entry_serves_the_next_one(void **state)
{
    struct fixture *f = *state;
    struct site_allocator *allocator = site_allocator_new(16 * 1024);
    size_t used = 0;
    f->options.allocator = allocator;
    for (unsigned i = 0; i < 1000; i++) {
        char path[32];
        (void)snprintf(path, sizeof(path), "root/%03u.txt", i);
        tree_write(&f->tree, path, "the body");
        struct site_entry *entry = load(f, path + strlen("root"));
        set_heads(entry, 258, 137);
        assert_true(site_publish(f->reader, &entry));
        assert_heads_are(entry->plain, 258, 137);
        assert_body_is(entry, "the body");
        if (i == 0)
            used = site_allocator_used(allocator);
        assert_true(used > 258 + 137);
        assert_int_equal(site_allocator_used(allocator), used);
        site_cache_remove(f->reader, &entry->cache);
        site_cache_release(&entry->cache);
        site_cache_quiesce(f->reader);
        assert_int_equal(site_allocator_used(allocator), 0);
    }
    f->options.allocator = NULL;
    site_allocator_free(allocator);
}

static void an_entry_uses_few_bytes_besides_its_heads_and_its_body(void **state)
{
    struct fixture *f = *state;
    enum { FILES = 50, HEAD = 258, BLOCK = 137 };
    struct site_allocator *allocator = site_allocator_new(1 << 20);
    f->options.allocator = allocator;
    for (unsigned i = 0; i < FILES; i++) {
        char path[32], head[HEAD], block[BLOCK];
        (void)snprintf(path, sizeof(path), "root/file%02u.bin", i);
        tree_write(&f->tree, path, "eight by");
        struct site_entry *entry = load(f, path + strlen("root"));
        const struct span etag = site_file_etag(entry->plain);
        memset(head, 'h', sizeof(head));
        memset(block, 'b', sizeof(block));
        memcpy(head + 100, etag.at, etag.len); /* as in a real head */
        assert_true(site_set_head(entry, SITE_PLAIN, span_of(head, sizeof(head))));
        site_set_block(entry, SITE_PLAIN, span_of(block, sizeof(block)));
        assert_true(site_publish(f->reader, &entry));
        assert_true(site_entry_is_joined(entry, entry->plain));
        assert_span_is(site_cache_key(&entry->cache), path + strlen("root"));
        site_cache_release(&entry->cache);
    }
    const size_t each = site_allocator_used(allocator) / FILES;
    const size_t counted = site_cache_totals(f->cache).bytes / FILES;
    const size_t besides = each - HEAD - BLOCK - strlen("eight by");
    if (besides > ENTRY_BYTES_MOST)
        fail_msg("an entry uses %zu bytes besides its heads and its body, more than %d", besides,
                 ENTRY_BYTES_MOST);
    /* The limit of the cache is about memory that is really used. */
    assert_in_range(counted, each - each / 8, each + each / 8);
    close_cache(f);
    f->options.allocator = NULL;
    site_allocator_free(allocator);
    open_cache(f, 1 << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_unused_space_for_heads_is_freed_when_an_entry_is_published),
        TEST(an_entry_that_is_not_taken_keeps_its_bytes),
        TEST(the_heads_of_an_open_file_are_not_moved),
        TEST(the_memory_of_a_removed_entry_serves_the_next_one),
        TEST(an_entry_uses_few_bytes_besides_its_heads_and_its_body),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
