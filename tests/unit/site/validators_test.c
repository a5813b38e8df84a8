/* SPDX-License-Identifier: MIT
 *
 * Validators of files whose times say nothing: all files of a release have one time, and the next
 * release has the same time and sizes. Files in memory have tags of their content in any case, so
 * most tests are about files that are kept open.
 */
#include "site/compressor.h"
#include "unit/site/fixture.h"

#include <pthread.h>
#include <unistd.h>

#define DAY_S INT64_C(86400)

enum { LARGE = BODY_MAX * 20, ONE_MIB = 1 << 20 };

static void write_large(struct fixture *f, const char *path, char fill, int64_t modified_ns)
{
    static char text[LARGE];
    memset(text, fill, sizeof(text));
    tree_write_bytes(&f->tree, path, span_of(text, sizeof(text)));
    tree_date(&f->tree, path, modified_ns);
}

/* A release: a page in memory, and a film that is kept open. */
static void make_release(struct fixture *f, const char *folder, const char *text, char fill,
                         int64_t modified_ns)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "root/%s", folder);
    tree_folder(&f->tree, path);
    (void)snprintf(path, sizeof(path), "root/%s/page.txt", folder);
    tree_write(&f->tree, path, text);
    tree_date(&f->tree, path, modified_ns);
    (void)snprintf(path, sizeof(path), "root/%s/film.bin", folder);
    write_large(f, path, fill, modified_ns);
}

struct copy {
    char bytes[64];
    size_t len;
};

/* The tag of a file, which outlives its entry. */
static struct copy tag_of(struct fixture *f, const char *path)
{
    const struct span tag = site_file_etag(find_settled(f, path)->plain);
    struct copy copy = { .len = tag.len };
    assert_true(tag.len > 2 && tag.len < sizeof(copy.bytes));
    memcpy(copy.bytes, tag.at, tag.len);
    return copy;
}

static bool is_equal(const struct copy *a, const struct copy *b)
{
    return span_equal(span_of(a->bytes, a->len), span_of(b->bytes, b->len));
}

static void times_that_tools_write_are_no_date(void **state)
{
    static const int64_t seconds[] = {
        -DAY_S,    0,
        1,         315532800, /* 1980-01-01, which a time zone shifts */
        315532801, 315532800 - 14 * 3600,
        318211200, 318211200 + 12 * 3600,
        499162500, 946684800,
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++) {
        write_large(f, "root/film.bin", 'a', seconds[i] * SECOND_NS);
        tree_write(&f->tree, "root/page.txt", "page");
        tree_date(&f->tree, "root/page.txt", seconds[i] * SECOND_NS);
        const struct copy first = tag_of(f, "/film.bin");
        assert_int_equal(first.len, 34);
        assert_int_equal(site_file_last_modified_s(find_file(f, "/film.bin")->plain), -1);
        assert_int_equal(site_file_last_modified_s(find_settled(f, "/page.txt")->plain), -1);
        write_large(f, "root/film.bin", 'b', seconds[i] * SECOND_NS);
        pass_time(f);
        const struct copy second = tag_of(f, "/film.bin");
        assert_false(is_equal(&first, &second));
    }
}

static void times_near_them_are_dates(void **state)
{
    static const int64_t seconds[] = {
        2, 315532800 - 2 * DAY_S, 315532800 + 5 * DAY_S, 499162501, 946684799, 1000000000
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++) {
        write_large(f, "root/film.bin", 'a', seconds[i] * SECOND_NS);
        const struct site_file *file = find_settled(f, "/film.bin")->plain;
        assert_int_equal(site_file_last_modified_s(file), seconds[i]);
        assert_true(span_ends(site_file_etag(file), SPAN("-4e20\""))); /* the size */
        pass_time(f);
    }
}

static void the_time_of_the_root_folder_is_no_date_if_it_is_a_whole_second(void **state)
{
    struct fixture *f = *state;
    const int64_t all_ns = INT64_C(1700000000) * SECOND_NS;
    write_large(f, "root/film.bin", 'a', all_ns);
    tree_date(&f->tree, "root", all_ns);
    const struct site_file *file = find_settled(f, "/film.bin")->plain;
    assert_int_equal(site_file_last_modified_s(file), -1);
    assert_int_equal(file->etag_len, 34);
    /* A file that was just made gives its folder its time. That is a date. */
    write_large(f, "root/film.bin", 'a', all_ns + 5);
    tree_date(&f->tree, "root", all_ns + 5);
    pass_time(f);
    file = find_settled(f, "/film.bin")->plain;
    assert_int_equal(site_file_last_modified_s(file), 1700000000);
    assert_true(span_ends(site_file_etag(file), SPAN("-4e20\"")));
}

static void with_etag_time_only_the_first_seconds_are_no_date(void **state)
{
    struct fixture *f = *state;
    f->options.etag = SITE_ETAG_TIME;
    write_large(f, "root/film.bin", 'a', 315532800 * SECOND_NS);
    const struct site_file *file = find_settled(f, "/film.bin")->plain;
    assert_int_equal(site_file_last_modified_s(file), 315532800);
    assert_true(span_ends(site_file_etag(file), SPAN("-4e20\"")));
    write_large(f, "root/film.bin", 'a', SECOND_NS);
    pass_time(f);
    file = find_settled(f, "/film.bin")->plain;
    assert_int_equal(site_file_last_modified_s(file), -1);
    assert_int_equal(file->etag_len, 0);
}

static void with_etag_content_no_time_is_a_date(void **state)
{
    struct fixture *f = *state;
    f->options.etag = SITE_ETAG_CONTENT;
    write_large(f, "root/a.bin", 'a', LONG_AGO_NS);
    write_large(f, "root/b.bin", 'a', LONG_AGO_NS + 7);
    tree_write(&f->tree, "root/page.txt", "page");
    const struct copy a = tag_of(f, "/a.bin"), b = tag_of(f, "/b.bin");
    assert_true(is_equal(&a, &b));
    assert_int_equal(site_file_last_modified_s(find_file(f, "/a.bin")->plain), -1);
    assert_int_equal(site_file_last_modified_s(find_file(f, "/page.txt")->plain), -1);
}

static void each_form_has_a_tag_of_its_own(void **state)
{
    struct fixture *f = *state;
    write_large(f, "root/film.bin", 'a', SECOND_NS);
    write_large(f, "root/film.bin.br", 'a', SECOND_NS);
    const struct site_entry *entry = find_settled(f, "/film.bin");
    const struct span plain = site_file_etag(entry->plain),
                      stored = site_file_etag(site_entry_file(entry, SITE_BR));
    assert_int_equal(plain.len, 34);
    assert_int_equal(stored.len, 34);
    assert_false(span_equal(plain, stored));
}

static void one_changed_byte_anywhere_changes_the_tag(void **state)
{
    static const off_t places[] = { 0, 16 * 1024 - 1, 16 * 1024, LARGE - 1 };
    struct fixture *f = *state;
    write_large(f, "root/film.bin", 'a', SECOND_NS);
    const struct copy first = tag_of(f, "/film.bin");
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        write_large(f, "root/film.bin", 'a', SECOND_NS);
        int fd = openat(f->tree.fd, "root/film.bin", O_WRONLY | O_CLOEXEC);
        assert_int_equal(pwrite(fd, "b", 1, places[i]), 1);
        assert_int_equal(close(fd), 0);
        tree_date(&f->tree, "root/film.bin", SECOND_NS);
        pass_time(f);
        const struct copy other = tag_of(f, "/film.bin");
        assert_false(is_equal(&first, &other));
    }
    write_large(f, "root/film.bin", 'a', SECOND_NS);
    pass_time(f);
    const struct copy again = tag_of(f, "/film.bin");
    assert_true(is_equal(&first, &again));
}

/* Size and mtime are those of the old version, so only the ctime shows the change. */
static void an_open_file_that_is_rewritten_in_place_gets_another_tag_at_once(void **state)
{
    struct fixture *f = *state;
    write_large(f, "root/film.bin", 'a', SECOND_NS);
    const struct copy first = tag_of(f, "/film.bin");
    struct site_entry *entry = find_file(f, "/film.bin");
    site_cache_hold(&entry->cache);
    assert_true(site_file_unchanged(entry->plain));
    write_large(f, "root/film.bin", 'b', SECOND_NS);
    assert_false(site_file_unchanged(entry->plain));
    const struct span now = site_file_etag(find_file(f, "/film.bin")->plain);
    assert_false(span_equal(now, span_of(first.bytes, first.len)));
    site_cache_release(&entry->cache);
}

static void a_download_continues_after_a_replacement_or_another_link(void **state)
{
    struct fixture *f = *state;
    write_large(f, "root/film.bin", 'a', SECOND_NS);
    (void)tag_of(f, "/film.bin");
    struct site_entry *entry = find_file(f, "/film.bin");
    site_cache_hold(&entry->cache);
    assert_int_equal(linkat(f->tree.fd, "root/film.bin", f->tree.fd, "root/kept.bin", 0), 0);
    assert_true(site_file_unchanged(entry->plain));
    write_large(f, "root/next.bin", 'b', SECOND_NS);
    tree_rename(&f->tree, "root/next.bin", "root/film.bin");
    assert_true(site_file_unchanged(entry->plain));
    site_cache_release(&entry->cache);
}

static void switch_link(struct fixture *f, const char *target)
{
    tree_link(&f->tree, "root/next", target);
    tree_rename(&f->tree, "root/next", "root/current");
}

static void a_switched_link_is_followed_for_every_file_after_half_a_second(void **state)
{
    static const int64_t times_ns[] = { 0, SECOND_NS, 315532800 * SECOND_NS, LONG_AGO_NS };
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof(times_ns) / sizeof(times_ns[0]); i++) {
        char one[16], two[16];
        (void)snprintf(one, sizeof(one), "one%zu", i);
        (void)snprintf(two, sizeof(two), "two%zu", i);
        make_release(f, one, "page 1", '1', times_ns[i]);
        make_release(f, two, "page 2", '2', times_ns[i]);
        switch_link(f, one);
        const struct copy page = tag_of(f, "/current/page.txt");
        const struct copy film = tag_of(f, "/current/film.bin");
        switch_link(f, two);
        pass_time(f);
        assert_body_is(find_file(f, "/current/page.txt"), "page 2");
        char byte = '\0';
        const struct site_file *file = find_file(f, "/current/film.bin")->plain;
        assert_int_equal(site_file_read(file, &byte, 1, LARGE - 1), 0);
        assert_int_equal(byte, '2');
        const struct copy new_page = tag_of(f, "/current/page.txt");
        const struct copy new_film = tag_of(f, "/current/film.bin");
        assert_false(is_equal(&page, &new_page));
        /* With a date, size and time may be equal: `etag = content` is for that. */
        assert_int_equal(is_equal(&film, &new_film), times_ns[i] == LONG_AGO_NS);
        pass_time(f);
    }
}

/* ---- files that are too large to be read while they are loaded ---- */

static pthread_t digesting;
static struct site_compressor *compressor;

static void *digest_in_thread(void *unused)
{
    (void)unused;
    while (site_compressor_work(compressor))
        continue;
    return NULL;
}

static bool start_thread(void *unused)
{
    (void)unused;
    return pthread_create(&digesting, NULL, digest_in_thread, NULL) == 0;
}

static void begin_compressor(struct fixture *f)
{
    f->options.digests = true;
    compressor = site_compressor_new((struct site_compressor_plan){
        .cpu_percent = 100, .share_bytes = 1024, .entry_bytes = 1024, .start = start_thread });
    assert_non_null(compressor);
}

/* The thread has started. */
static void end_compressor(void)
{
    site_compressor_stop(compressor);
    assert_int_equal(pthread_join(digesting, NULL), 0);
    site_compressor_free(compressor);
}

static void write_film(struct fixture *f, const char *path, char last, off_t size)
{
    int fd = openat(f->tree.fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, &last, 1, size - 1), 1); /* the rest is a hole */
    assert_int_equal(close(fd), 0);
    tree_date(&f->tree, path, SECOND_NS);
}

/* Requests the tag, and waits for it. A minute is for a test that hangs. */
static struct copy tag_by_compressor(struct fixture *f, const char *path)
{
    struct site_entry *entry = find_settled(f, path);
    for (int i = 0; i < 60 * 1000 && entry->plain->etag_len == 0; i++) {
        (void)site_compressor_request_tags(compressor, entry);
        (void)usleep(1000);
        site_cache_quiesce(f->reader);
        entry = find_file(f, path);
    }
    return tag_of(f, path);
}

static void the_compressor_reads_a_large_file_for_its_tag(void **state)
{
    struct fixture *f = *state;
    begin_compressor(f);
    write_film(f, "root/film.bin", 'a', ONE_MIB + 1);
    const struct site_entry *entry = find_settled(f, "/film.bin");
    assert_int_equal(entry->plain->etag_len, 0);
    assert_int_equal(site_file_last_modified_s(entry->plain), -1);
    assert_int_equal(entry->untagged, 1);
    const struct copy first = tag_by_compressor(f, "/film.bin");
    entry = find_file(f, "/film.bin");
    assert_int_equal(first.len, 34);
    assert_int_equal(entry->untagged, 0);
    assert_false(entry->negotiable);
    assert_int_equal(entry->plain->size, ONE_MIB + 1);
    assert_int_equal(site_compressor_totals(compressor).tags, 1);
    write_film(f, "root/film.bin", 'b', ONE_MIB + 1);
    pass_time(f);
    const struct copy second = tag_by_compressor(f, "/film.bin");
    assert_false(is_equal(&first, &second));
    write_film(f, "root/film.bin", 'a', ONE_MIB + 1);
    pass_time(f);
    const struct copy third = tag_by_compressor(f, "/film.bin");
    assert_true(is_equal(&first, &third));
    end_compressor();
}

static void the_compressor_reads_stored_forms_too(void **state)
{
    struct fixture *f = *state;
    begin_compressor(f);
    write_film(f, "root/film.bin", 'a', ONE_MIB + 2);
    write_film(f, "root/film.bin.br", 'a', ONE_MIB + 1);
    tree_write(&f->tree, "root/film.bin.gz", "stored");
    (void)tag_by_compressor(f, "/film.bin");
    const struct site_entry *entry = find_file(f, "/film.bin");
    assert_int_equal(entry->variants, 1 << SITE_PLAIN | 1 << SITE_BR | 1 << SITE_GZIP);
    assert_true(entry->negotiable);
    assert_int_equal(site_entry_file(entry, SITE_BR)->etag_len, 34);
    assert_true(site_file_fd(site_entry_file(entry, SITE_BR)) >= 0);
    assert_int_equal(site_entry_file(entry, SITE_GZIP)->etag_len, 18);
    assert_span_is(span_of(site_file_body(site_entry_file(entry, SITE_GZIP)),
                           site_entry_file(entry, SITE_GZIP)->size),
                   "stored");
    assert_int_equal(site_compressor_totals(compressor).tags, 2);
    end_compressor();
}

static void a_file_is_not_read_where_nothing_asks_for_its_tag(void **state)
{
    struct fixture *f = *state;
    write_film(f, "root/film.bin", 'a', ONE_MIB + 1);
    assert_int_equal(find_settled(f, "/film.bin")->untagged, 0); /* there is no compressor */
    f->options.digests = true;
    f->options.etag = SITE_ETAG_TIME;
    write_film(f, "root/other.bin", 'a', ONE_MIB + 1);
    assert_int_equal(find_settled(f, "/other.bin")->untagged, 0);
    f->options.etag = SITE_ETAG_AUTO;
    write_film(f, "root/huge.bin", 'a', (off_t)1024 * ONE_MIB + 1);
    assert_int_equal(find_settled(f, "/huge.bin")->untagged, 0);
    write_film(f, "root/dated.bin", 'a', ONE_MIB + 1);
    tree_date(&f->tree, "root/dated.bin", LONG_AGO_NS);
    assert_int_equal(find_settled(f, "/dated.bin")->untagged, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(times_that_tools_write_are_no_date),
        TEST(times_near_them_are_dates),
        TEST(the_time_of_the_root_folder_is_no_date_if_it_is_a_whole_second),
        TEST(with_etag_time_only_the_first_seconds_are_no_date),
        TEST(with_etag_content_no_time_is_a_date),
        TEST(each_form_has_a_tag_of_its_own),
        TEST(one_changed_byte_anywhere_changes_the_tag),
        TEST(an_open_file_that_is_rewritten_in_place_gets_another_tag_at_once),
        TEST(a_download_continues_after_a_replacement_or_another_link),
        TEST(a_switched_link_is_followed_for_every_file_after_half_a_second),
        TEST(the_compressor_reads_a_large_file_for_its_tag),
        TEST(the_compressor_reads_stored_forms_too),
        TEST(a_file_is_not_read_where_nothing_asks_for_its_tag),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
