/* SPDX-License-Identifier: MIT
 *
 * From paths to entries: what is served, redirected, hidden or refused, what an
 * entry says about its file, and how entries are shared. Changes on the disk are
 * freshness_test.c's, .br and its like stored_forms_test.c's.
 */
#include "unit/site/fixture.h"

#include <errno.h>

/* What is served */

static void serves_a_small_file_from_memory_with_its_type_and_validators(void **state)
{
    struct fixture *f = *state;
    tree_write(&f->tree, "root/page.html", "<p>hello");
    tree_date(&f->tree, "root/page.html", LONG_AGO_NS + 5);

    const struct site_entry *entry = find_file(f, "/page.html");
    const struct site_file *file = entry->plain;
    assert_body_is(entry, "<p>hello");
    assert_int_equal(site_file_fd(file), -1);
    assert_span_is(site_entry_type(entry), "text/html; charset=utf-8");
    assert_int_equal(entry->variants, 1 << SITE_PLAIN);
    assert_false(entry->negotiable);
    assert_int_equal(site_file_last_modified_s(file), LONG_AGO_NS / SECOND_NS);
    assert_int_equal(file->etag_len, 18);
    assert_int_equal(site_file_etag(file).at[0], '"');
    assert_int_equal(site_file_etag(file).at[17], '"');
}

static void serves_an_empty_file(void **state)
{
    struct fixture *f = *state;
    tree_write(&f->tree, "root/empty.txt", "");
    assert_body_is(find_file(f, "/empty.txt"), "");
}

static void keeps_a_large_file_open(void **state)
{
    struct fixture *f = *state;
    char text[BODY_MAX + 1];
    char read_back[BODY_MAX + 1];
    memset(text, 'x', sizeof(text));
    tree_write_bytes(&f->tree, "root/large.bin", span_of(text, sizeof(text)));
    tree_date(&f->tree, "root/large.bin", LONG_AGO_NS);

    const struct site_entry *entry = find_settled(f, "/large.bin");
    const struct site_file *file = entry->plain;
    assert_null(site_file_body(file));
    assert_true(site_file_fd(file) >= 0);
    assert_int_equal(entry->cache.descriptors, 1);
    assert_int_equal(file->size, sizeof(text));
    assert_span_is(site_file_etag(file), "\"de0b6b3a7640000-3e9\"");
    assert_int_equal(site_file_read(file, read_back, sizeof(text), 0), 0);
    assert_memory_equal(read_back, text, sizeof(text));
    assert_int_equal(site_file_read(file, read_back, 2, BODY_MAX), -ENODATA);
    assert_true(site_file_unchanged(file));
    tree_write(&f->tree, "root/large.bin", "short");
    assert_false(site_file_unchanged(file));
}

static void append(const struct tree *tree, const char *name, const char *text)
{
    int fd = openat(tree->fd, name, O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    (void)close(fd);
}

static void a_file_that_grows_is_unchanged_and_one_rewritten_longer_is_not(void **state)
{
    struct fixture *f = *state;
    char text[BODY_MAX * 2];
    memset(text, 'x', sizeof(text));
    tree_write_bytes(&f->tree, "root/large.log", span_of(text, BODY_MAX + 1));
    tree_date(&f->tree, "root/large.log", LONG_AGO_NS);
    const struct site_file *file = find_settled(f, "/large.log")->plain;
    append(&f->tree, "root/large.log", "one more line\n");
    assert_true(site_file_unchanged(file));

    memset(text, 'y', sizeof(text));
    tree_write_bytes(&f->tree, "root/large.log", span_of(text, sizeof(text)));
    assert_false(site_file_unchanged(file));
    memset(text, 'x', sizeof(text));
    tree_write_bytes(&f->tree, "root/large.log", span_of(text, BODY_MAX + 1));
    assert_false(site_file_unchanged(file)); /* as long, and as if the same, but who knows */
}

static void a_replaced_large_file_is_still_the_one_that_was_measured(void **state)
{
    struct fixture *f = *state;
    char text[BODY_MAX + 1] = "x";
    tree_write_bytes(&f->tree, "root/large.bin", span_of(text, sizeof(text)));
    const struct site_file *file = find_file(f, "/large.bin")->plain;
    tree_write(&f->tree, "root/new", "new");
    tree_rename(&f->tree, "root/new", "root/large.bin");
    assert_true(site_file_unchanged(file));
}

static void ignores_the_times_of_a_reproducible_build(void **state)
{
    struct fixture *f = *state;
    char text[BODY_MAX + 1] = "x";
    tree_write_bytes(&f->tree, "root/large.bin", span_of(text, sizeof(text)));
    tree_write(&f->tree, "root/small.txt", "small");
    for (int second = 0; second <= 1; second++) {
        tree_date(&f->tree, "root/large.bin", second * SECOND_NS);
        tree_date(&f->tree, "root/small.txt", second * SECOND_NS);
        const struct site_entry *large = find_settled(f, "/large.bin");
        assert_int_equal(large->plain->etag_len, 34); /* of the content, too */
        assert_int_equal(site_file_last_modified_s(large->plain), -1);
        const struct site_entry *small = find_settled(f, "/small.txt");
        assert_int_equal(small->plain->etag_len, 18); /* by content */
        assert_int_equal(site_file_last_modified_s(small->plain), -1);
    }
}

static void gives_an_open_file_no_tag_while_its_time_could_be_shared(void **state)
{
    struct fixture *f = *state;
    char text[BODY_MAX + 1] = "x";
    tree_write_bytes(&f->tree, "root/large.bin", span_of(text, sizeof(text)));
    struct timespec now;
    struct stat status;
    const struct site_entry *entry = find_file(f, "/large.bin");
    assert_int_equal(clock_gettime(CLOCK_REALTIME, &now), 0);
    assert_int_equal(fstatat(f->tree.fd, "root/large.bin", &status, 0), 0);
    int64_t age_ns = (now.tv_sec - status.st_ctim.tv_sec) * SECOND_NS + now.tv_nsec -
                     status.st_ctim.tv_nsec;
    if (age_ns < 15 * 1000 * 1000) /* else this machine was busy, and it is settled already */
        assert_int_equal(entry->plain->etag_len, 0);
    assert_true(find_settled(f, "/large.bin")->plain->etag_len > 0);
}

static void never_says_that_a_file_was_modified_after_it_was_loaded(void **state)
{
    struct fixture *f = *state;
    struct timespec now;
    tree_write(&f->tree, "root/future.txt", "x");
    tree_date(&f->tree, "root/future.txt", INT64_C(8000000000) * SECOND_NS);
    int64_t last_modified_s = site_file_last_modified_s(find_file(f, "/future.txt")->plain);
    assert_int_equal(clock_gettime(CLOCK_REALTIME, &now), 0);
    assert_true(last_modified_s > 0 && last_modified_s <= now.tv_sec);
}

static void tags_tell_contents_apart_and_nothing_else(void **state)
{
    struct fixture *f = *state;
    tree_write(&f->tree, "root/a.txt", "same");
    tree_write(&f->tree, "root/b.txt", "same");
    tree_write(&f->tree, "root/c.txt", "other");
    tree_date(&f->tree, "root/b.txt", LONG_AGO_NS);
    const struct span a = site_file_etag(find_file(f, "/a.txt")->plain);
    assert_true(span_equal(a, site_file_etag(find_file(f, "/b.txt")->plain)));
    assert_false(span_equal(a, site_file_etag(find_file(f, "/c.txt")->plain)));
}

/* Paths */

static const struct {
    const char *path;
    enum site_result result, listed, hidden_shown;
} path_cases[] = {
    { "/file", SITE_FILE, SITE_FILE, SITE_FILE },
    { "/file/", SITE_ABSENT, SITE_ABSENT, SITE_ABSENT },
    { "/file/file", SITE_ABSENT, SITE_ABSENT, SITE_ABSENT },
    { "/nothing", SITE_ABSENT, SITE_ABSENT, SITE_ABSENT },
    { "/nothing/", SITE_ABSENT, SITE_ABSENT, SITE_ABSENT },
    { "/with", SITE_REDIRECT, SITE_REDIRECT, SITE_REDIRECT },
    { "/with/", SITE_FILE, SITE_FILE, SITE_FILE },
    { "/without", SITE_REDIRECT, SITE_REDIRECT, SITE_REDIRECT },
    { "/without/", SITE_FORBIDDEN, SITE_LISTING, SITE_FORBIDDEN },
    { "/", SITE_FORBIDDEN, SITE_LISTING, SITE_FORBIDDEN },
    { "/to_file", SITE_FILE, SITE_FILE, SITE_FILE },
    { "/to_folder", SITE_REDIRECT, SITE_REDIRECT, SITE_REDIRECT },
    { "/to_folder/", SITE_FILE, SITE_FILE, SITE_FILE },
    { "/to_folder/up", SITE_FILE, SITE_FILE, SITE_FILE },
    { "/dead", SITE_ABSENT, SITE_ABSENT, SITE_ABSENT },
    { "/loop", SITE_FORBIDDEN, SITE_FORBIDDEN, SITE_FORBIDDEN },
    { "/out", SITE_FORBIDDEN, SITE_FORBIDDEN, SITE_FORBIDDEN },
    { "/out_folder", SITE_FORBIDDEN, SITE_FORBIDDEN, SITE_FORBIDDEN },
    { "/out_folder/", SITE_FORBIDDEN, SITE_FORBIDDEN, SITE_FORBIDDEN },
    { "/out_folder/secret", SITE_FORBIDDEN, SITE_FORBIDDEN, SITE_FORBIDDEN },
    { "/absolute", SITE_FORBIDDEN, SITE_FORBIDDEN, SITE_FORBIDDEN },
    { "/fifo", SITE_FORBIDDEN, SITE_FORBIDDEN, SITE_FORBIDDEN },
    { "/.hidden", SITE_ABSENT, SITE_ABSENT, SITE_FILE },
    { "/.git/config", SITE_ABSENT, SITE_ABSENT, SITE_FILE },
    { "/.git", SITE_ABSENT, SITE_ABSENT, SITE_REDIRECT },
    { "/.git/", SITE_ABSENT, SITE_ABSENT, SITE_FORBIDDEN },
    { "/.well-known/token", SITE_FILE, SITE_FILE, SITE_FILE },
    { "/.well-known/.secret", SITE_ABSENT, SITE_ABSENT, SITE_FILE },
    { "/.well-knownx", SITE_ABSENT, SITE_ABSENT, SITE_ABSENT },
    { "", SITE_ABSENT, SITE_ABSENT, SITE_ABSENT },
    { "file", SITE_ABSENT, SITE_ABSENT, SITE_ABSENT },
    { "//file", SITE_ABSENT, SITE_ABSENT, SITE_ABSENT },
    { "/.", SITE_ABSENT, SITE_ABSENT, SITE_ABSENT },
    { "/./file", SITE_ABSENT, SITE_ABSENT, SITE_ABSENT },
    { "/with/../file", SITE_ABSENT, SITE_ABSENT, SITE_ABSENT },
    { "/../secret", SITE_ABSENT, SITE_ABSENT, SITE_ABSENT },
    { "/..\\secret", SITE_ABSENT, SITE_ABSENT, SITE_ABSENT },
};

static void fill_tree(const struct tree *tree)
{
    tree_write(tree, "root/file", "x");
    tree_folder(tree, "root/with");
    tree_write(tree, "root/with/index.html", "x");
    tree_folder(tree, "root/without");
    tree_folder(tree, "root/without/index.html"); /* a folder is no index file */
    tree_link(tree, "root/to_file", "file");
    tree_link(tree, "root/to_folder", "with");
    tree_link(tree, "root/with/up", "../file");
    tree_link(tree, "root/dead", "nowhere");
    tree_link(tree, "root/loop", "loop");
    tree_link(tree, "root/out", "../secret");
    tree_link(tree, "root/out_folder", "..");
    tree_link(tree, "root/absolute", "/etc/passwd");
    assert_int_equal(mkfifoat(tree->fd, "root/fifo", 0644), 0);
    tree_write(tree, "root/.hidden", "x");
    tree_folder(tree, "root/.git");
    tree_write(tree, "root/.git/config", "x");
    tree_folder(tree, "root/.well-known");
    tree_write(tree, "root/.well-known/token", "x");
    tree_write(tree, "root/.well-known/.secret", "x");
}

static void judges_paths_as_the_table_says(void **state)
{
    struct fixture *f = *state;

    fill_tree(&f->tree);
    for (int way = 0; way < 3; way++) {
        f->options.listing = way == 1;
        f->options.hidden = way == 2;
        reopen(f);
        for (size_t i = 0; i < sizeof(path_cases) / sizeof(path_cases[0]); i++) {
            enum site_result expected = way == 0   ? path_cases[i].result
                                        : way == 1 ? path_cases[i].listed
                                                   : path_cases[i].hidden_shown;
            enum site_result result = result_of(f, span_text(path_cases[i].path));
            if (result != expected)
                fail_msg("%s (way %d): %d, not %d", path_cases[i].path, way, (int)result,
                         (int)expected);
        }
    }
}

static void a_path_with_a_nul_or_too_long_is_absent(void **state)
{
    struct fixture *f = *state;
    char path[2 * PATH_MAX];

    tree_write(&f->tree, "root/file", "x");
    assert_int_equal(result_of(f, SPAN("/file\0.txt")), SITE_ABSENT);
    memset(path, 'a', sizeof(path));
    path[0] = '/';
    assert_int_equal(result_of(f, span_of(path, NAME_MAX + 2)), SITE_ABSENT);
    for (size_t len = PATH_MAX - 16; len < PATH_MAX + 16; len++) {
        assert_int_equal(result_of(f, span_of(path, len)), SITE_ABSENT);
        path[len - 1] = '/';
        assert_int_equal(result_of(f, span_of(path, len)), SITE_ABSENT);
        path[len - 1] = 'a';
    }
    assert_int_equal(result_of(f, span_of(path, sizeof(path))), SITE_ABSENT);
}

static void an_unreadable_file_is_forbidden(void **state)
{
    struct fixture *f = *state;
    const uid_t user = geteuid();
    enum site_result file, folder, inside, index;

    tree_write(&f->tree, "root/file", "x");
    tree_folder(&f->tree, "root/passable");
    tree_write(&f->tree, "root/passable/index.html", "x");
    tree_folder(&f->tree, "root/closed");
    tree_write(&f->tree, "root/closed/file", "x");
    assert_int_equal(fchmodat(f->tree.fd, ".", 0755, 0), 0);
    assert_int_equal(fchmodat(f->tree.fd, "root/file", 0, 0), 0);
    assert_int_equal(fchmodat(f->tree.fd, "root/passable", 0311, 0), 0);
    assert_int_equal(fchmodat(f->tree.fd, "root/closed", 0, 0), 0);
    if (user == 0)
        assert_int_equal(seteuid(65534), 0); /* root may read everything */
    file = result_of(f, SPAN("/file"));
    inside = result_of(f, SPAN("/closed/file"));
    folder = result_of(f, SPAN("/passable"));
    index = result_of(f, SPAN("/passable/"));
    if (user == 0)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(fchmodat(f->tree.fd, "root/passable", 0755, 0), 0);
    assert_int_equal(fchmodat(f->tree.fd, "root/closed", 0755, 0), 0);
    assert_int_equal(file, SITE_FORBIDDEN);
    assert_int_equal(inside, SITE_FORBIDDEN);
    assert_int_equal(folder, SITE_REDIRECT);
    assert_int_equal(index, SITE_FILE);
}

/* Heads, publishing, sharing */

static void a_head_stands_directly_before_the_body(void **state)
{
    struct fixture *f = *state;
    struct site_entry *entry;
    bool is_new;
    char head[SITE_HEAD_ROOM + 1];
    memset(head, 'h', sizeof(head));
    tree_write(&f->tree, "root/a.txt", "body");
    assert_int_equal(site_find(f->site, f->reader, SPAN("/a.txt"), f->now_ns, &entry, &is_new),
                     SITE_FILE);
    assert_true(is_new);
    assert_int_equal(entry->plain->head_len, 0);
    const struct site_file *file = entry->plain;
    assert_false(site_set_head(entry, SITE_PLAIN, span_of(head, SITE_HEAD_ROOM + 1)));
    assert_true(site_set_head(entry, SITE_PLAIN, span_of(head, SITE_HEAD_ROOM)));
    assert_true(site_set_head(entry, SITE_PLAIN, SPAN("head: ")));
    assert_ptr_equal(site_file_head(file).at + file->head_len, site_file_body(file));
    assert_span_is(span_of(site_file_head(file).at, 10), "head: body");
    site_cache_release(&entry->cache);
}

static void a_site_with_fields_has_space_for_them_in_both_forms_of_a_head(void **state)
{
    struct fixture *f = *state;
    struct site_entry *entry;
    bool is_new;
    char head[SITE_HEAD_ROOM + 2 * 100 + 1];
    memset(head, 'h', sizeof(head));
    tree_write(&f->tree, "root/a.txt", "body");
    f->options.fields_max = 100;
    assert_int_equal(site_find(f->site, f->reader, SPAN("/a.txt"), f->now_ns, &entry, &is_new),
                     SITE_FILE);
    const struct site_file *file = entry->plain;
    assert_false(site_set_head(entry, SITE_PLAIN, span_of(head, sizeof(head))));
    assert_true(site_set_head(entry, SITE_PLAIN, span_of(head, sizeof(head) - 1)));
    assert_true(site_set_head(entry, SITE_PLAIN, span_of(head, SITE_HEAD_ROOM)));
    site_set_block(entry, SITE_PLAIN, span_of(head, 201));
    assert_int_equal(file->block_len, 0);
    site_set_block(entry, SITE_PLAIN, span_of(head, 200));
    assert_int_equal(file->block_len, 200);
    assert_ptr_equal(site_file_block(file).at + 200, site_file_head(file).at);
    assert_body_is(entry, "body");
    assert_true(entry->cache.size_bytes >= SITE_HEAD_ROOM + 200 + 4);
    site_cache_release(&entry->cache);
}

static void an_open_file_has_a_head_of_any_length(void **state)
{
    struct fixture *f = *state;
    struct site_entry *entry;
    bool is_new;
    char text[2 * BODY_MAX];
    memset(text, 't', sizeof(text));
    tree_write_bytes(&f->tree, "root/large.bin", span_of(text, sizeof(text)));
    assert_int_equal(site_find(f->site, f->reader, SPAN("/large.bin"), f->now_ns, &entry, &is_new),
                     SITE_FILE);
    assert_true(site_set_head(entry, SITE_PLAIN, SPAN("head")));
    const size_t size_bytes = entry->cache.size_bytes - strlen("head");
    assert_true(site_set_head(entry, SITE_PLAIN, span_of(text, sizeof(text))));
    assert_int_equal(entry->plain->head_len, sizeof(text));
    assert_int_equal(entry->cache.size_bytes, size_bytes + sizeof(text));
    site_cache_release(&entry->cache);
}

static void works_without_a_cache(void **state)
{
    struct fixture *f = *state;
    struct site_entry *entry;
    bool is_new;

    site_cache_free(f->cache);
    open_cache(f, 0);
    tree_write(&f->tree, "root/a.txt", "text");
    for (int i = 0; i < 2; i++) {
        is_new = false;
        assert_int_equal(site_find(f->site, f->reader, SPAN("/a.txt"), f->now_ns, &entry, &is_new),
                         SITE_FILE);
        assert_true(is_new);
        site_publish(f->reader, &entry);
        assert_body_is(entry, "text");
        site_cache_release(&entry->cache);
    }
}

static void a_file_too_large_for_the_cache_is_served(void **state)
{
    struct fixture *f = *state;
    struct site_entry *entry;
    bool is_new;

    site_cache_free(f->cache);
    open_cache(f, 1000); /* an eighth of it is less than any entry */
    tree_write(&f->tree, "root/a.txt", "text");
    assert_int_equal(site_find(f->site, f->reader, SPAN("/a.txt"), f->now_ns, &entry, &is_new),
                     SITE_FILE);
    site_publish(f->reader, &entry);
    site_cache_quiesce(f->reader);
    assert_body_is(entry, "text");
    assert_int_equal(site_cache_totals(f->cache).refused, 1);
    site_cache_release(&entry->cache);
}

static void two_sites_share_a_cache_and_nothing_else(void **state)
{
    struct fixture *f = *state;
    struct site_options other_options = f->options;
    struct site *other;
    struct site_entry *entry;
    const char *what;
    bool is_new;

    other_options.root = f->options.error_pages;
    tree_write(&f->tree, "root/a.txt", "here");
    tree_write(&f->tree, "errors/a.txt", "there");
    assert_int_equal(site_open(&other, &other_options, f->mime, &what), 0);
    for (int i = 0; i < 2; i++) {
        assert_body_is(find_file(f, "/a.txt"), "here");
        assert_int_equal(site_find(other, f->reader, SPAN("/a.txt"), f->now_ns, &entry, &is_new),
                         SITE_FILE);
        assert_int_equal(is_new, i == 0);
        assert_body_is(entry, "there");
        if (is_new) {
            site_publish(f->reader, &entry);
            site_cache_release(&entry->cache);
        }
    }
    close_cache(f);
    site_close(other);
    open_cache(f, CACHE_BYTES);
}

static void error_pages_and_the_fallback_have_keys_that_no_path_has(void **state)
{
    struct fixture *f = *state;
    struct site_entry *entry;
    bool is_new;

    tree_write(&f->tree, "errors/404.html", "lost");
    tree_folder(&f->tree, "errors/403.html");
    tree_link(&f->tree, "errors/500.html", "../secret");
    tree_write(&f->tree, "root/app.html", "application");
    f->options.fallback = "/app.html";
    reopen(f);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(find_error_page(f, 0, 404, &entry, &is_new), SITE_FILE);
        assert_int_equal(is_new, i == 0);
        assert_body_is(entry, "lost");
        assert_span_is(site_entry_type(entry), "text/html; charset=utf-8");
        if (is_new) {
            site_publish(f->reader, &entry);
            site_cache_release(&entry->cache);
        }
        assert_int_equal(find_fallback(f, SPAN("fallback"), &entry, &is_new), SITE_FILE);
        assert_int_equal(is_new, i == 0);
        assert_body_is(entry, "application");
        if (is_new) {
            site_publish(f->reader, &entry);
            site_cache_release(&entry->cache);
        }
    }
    assert_int_equal(find_error_page(f, 0, 403, &entry, &is_new), SITE_ABSENT);
    assert_int_equal(find_error_page(f, 0, 500, &entry, &is_new), SITE_FORBIDDEN);
    assert_int_equal(find_error_page(f, 0, 400, &entry, &is_new), SITE_ABSENT);
    assert_int_equal(result_of(f, SPAN("fallback")), SITE_ABSENT);
    assert_int_equal(result_of(f, SPAN("error/404.html")), SITE_ABSENT);
}

static void a_kept_entry_is_found_until_it_must_be_compared_with_the_disk(void **state)
{
    struct fixture *f = *state;
    tree_write(&f->tree, "root/a.txt", "one");
    assert_null(site_find_kept(f->site, f->reader, SPAN("/a.txt"), f->now_ns));
    const struct site_entry *entry = find_file(f, "/a.txt");
    assert_ptr_equal(site_find_kept(f->site, f->reader, SPAN("/a.txt"), f->now_ns), entry);
    assert_null(site_find_kept(f->site, f->reader, SPAN("/b.txt"), f->now_ns));
    pass_time(f);
    assert_null(site_find_kept(f->site, f->reader, SPAN("/a.txt"), f->now_ns));
}

static void a_kept_entry_of_a_changed_open_file_is_not_found(void **state)
{
    struct fixture *f = *state;
    char text[2 * BODY_MAX];
    memset(text, 't', sizeof(text));
    tree_write_bytes(&f->tree, "root/large.bin", span_of(text, sizeof(text)));
    const struct site_entry *entry = find_file(f, "/large.bin");
    assert_ptr_equal(site_find_kept(f->site, f->reader, SPAN("/large.bin"), f->now_ns), entry);
    tree_write_bytes(&f->tree, "root/large.bin", span_of(text, sizeof(text) - 1));
    assert_null(site_find_kept(f->site, f->reader, SPAN("/large.bin"), f->now_ns));
}

static void one_file_has_an_entry_for_each_key(void **state)
{
    struct fixture *f = *state;
    struct site_entry *entry[3];
    static const struct span keys[] = { SPAN("key a"), SPAN("key b"), SPAN("key a") };
    bool is_new;
    tree_write(&f->tree, "root/a.txt", "body");
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(find_as(f, keys[i], SPAN("/a.txt"), &entry[i], &is_new), SITE_FILE);
        assert_int_equal(is_new, i < 2);
        assert_body_is(entry[i], "body");
        if (is_new) {
            site_publish(f->reader, &entry[i]);
            site_cache_release(&entry[i]->cache);
        }
    }
    assert_ptr_equal(entry[0], entry[2]);
    assert_ptr_not_equal(entry[0], entry[1]);
    struct site_entry *none;
    assert_int_equal(find_as(f, SPAN("key c"), SPAN("/../a.txt"), &none, &is_new), SITE_ABSENT);
    assert_int_equal(result_of(f, SPAN("key a")), SITE_ABSENT);
}

static void each_folder_of_error_pages_has_entries_of_its_own(void **state)
{
    struct fixture *f = *state;
    static const char *const bodies[] = { "of the site", "one", "two" };
    char one[PATH_MAX], two[PATH_MAX];
    const char *folders[] = { one, two, NULL };
    struct site_entry *entry;
    bool is_new;

    tree_folder(&f->tree, "one");
    tree_folder(&f->tree, "two");
    tree_write(&f->tree, "errors/404.html", bodies[0]);
    tree_write(&f->tree, "one/404.html", bodies[1]);
    tree_write(&f->tree, "two/404.html", bodies[2]);
    (void)snprintf(one, sizeof(one), "%s/one", f->tree.path);
    (void)snprintf(two, sizeof(two), "%s/two", f->tree.path);
    f->options.error_folders = folders;
    reopen(f);
    for (unsigned i = 0; i < 6; i++) {
        const enum site_result result = find_error_page(f, i % 3, 404, &entry, &is_new);
        assert_int_equal(result, SITE_FILE);
        assert_int_equal(is_new, i < 3);
        assert_body_is(entry, bodies[i % 3]);
        if (!is_new)
            continue;
        site_publish(f->reader, &entry);
        site_cache_release(&entry->cache);
    }
    assert_int_equal(find_error_page(f, 1, 403, &entry, &is_new), SITE_ABSENT);

    const char *what;
    struct site *site;
    folders[1] = "/nonexistent";
    assert_int_equal(site_open(&site, &f->options, f->mime, &what), -ENOENT);
    assert_ptr_equal(what, folders[1]);
    f->options.error_folders = NULL;
    reopen(f);
}

static void without_a_fallback_or_error_pages_they_are_absent(void **state)
{
    struct fixture *f = *state;
    struct site_entry *entry;
    bool is_new;

    f->options.error_pages = NULL;
    reopen(f);
    assert_int_equal(find_error_page(f, 0, 404, &entry, &is_new), SITE_ABSENT);
    assert_int_equal(find_fallback(f, SPAN("fallback"), &entry, &is_new), SITE_ABSENT);
}

static void without_a_root_every_path_is_absent(void **state)
{
    struct fixture *f = *state;
    struct site_entry *entry;
    bool is_new;
    tree_write(&f->tree, "root/a.txt", "body");
    tree_write(&f->tree, "errors/404.html", "page");
    f->options.root = f->options.fallback = NULL;
    reopen(f);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(site_find(f->site, f->reader, SPAN("/a.txt"), f->now_ns, &entry, &is_new),
                         SITE_ABSENT);
        assert_int_equal(site_find(f->site, f->reader, SPAN("/"), f->now_ns, &entry, &is_new),
                         SITE_ABSENT);
    }
    assert_true(site_can_read(f->site, true));
    assert_int_equal(find_error_page(f, 0, 404, &entry, &is_new), SITE_FILE);
    site_cache_release(&entry->cache);
}

static void opening_names_the_path_that_failed(void **state)
{
    static const struct {
        const char *root, *error_pages, *fallback;
        int error;
        int culprit; /* 0: the root, 1: the error pages, 2: the fallback */
    } cases[] = {
        { "/nonexistent", NULL, NULL, -ENOENT, 0 }, { "/etc/passwd", NULL, NULL, -ENOTDIR, 0 },
        { "/", "/nonexistent", NULL, -ENOENT, 1 },  { "/", NULL, "nonexistent.html", -ENOENT, 2 },
        { "/", NULL, "etc", -EISDIR, 2 },           { "/etc", NULL, "../etc/passwd", -EXDEV, 2 },
    };
    const struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct site_options options = {
            .name = "bad",
            .root = cases[i].root,
            .error_pages = cases[i].error_pages,
            .fallback = cases[i].fallback,
        };
        const char *const paths[] = { cases[i].root, cases[i].error_pages, cases[i].fallback };
        struct site *site = NULL;
        const char *what = NULL;
        assert_int_equal(site_open(&site, &options, f->mime, &what), cases[i].error);
        assert_null(site);
        assert_ptr_equal(what, paths[cases[i].culprit]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(serves_a_small_file_from_memory_with_its_type_and_validators),
        TEST(serves_an_empty_file),
        TEST(keeps_a_large_file_open),
        TEST(a_file_that_grows_is_unchanged_and_one_rewritten_longer_is_not),
        TEST(a_replaced_large_file_is_still_the_one_that_was_measured),
        TEST(ignores_the_times_of_a_reproducible_build),
        TEST(gives_an_open_file_no_tag_while_its_time_could_be_shared),
        TEST(never_says_that_a_file_was_modified_after_it_was_loaded),
        TEST(tags_tell_contents_apart_and_nothing_else),
        TEST(judges_paths_as_the_table_says),
        TEST(a_path_with_a_nul_or_too_long_is_absent),
        TEST(an_unreadable_file_is_forbidden),
        TEST(a_head_stands_directly_before_the_body),
        TEST(a_site_with_fields_has_space_for_them_in_both_forms_of_a_head),
        TEST(an_open_file_has_a_head_of_any_length),
        TEST(works_without_a_cache),
        TEST(a_file_too_large_for_the_cache_is_served),
        TEST(two_sites_share_a_cache_and_nothing_else),
        TEST(error_pages_and_the_fallback_have_keys_that_no_path_has),
        TEST(a_kept_entry_is_found_until_it_must_be_compared_with_the_disk),
        TEST(a_kept_entry_of_a_changed_open_file_is_not_found),
        TEST(one_file_has_an_entry_for_each_key),
        TEST(each_folder_of_error_pages_has_entries_of_its_own),
        TEST(without_a_fallback_or_error_pages_they_are_absent),
        TEST(without_a_root_every_path_is_absent),
        TEST(opening_names_the_path_that_failed),
    };
    return cmocka_run_group_tests_name("site", tests, NULL, NULL);
}
