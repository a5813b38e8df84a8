/* SPDX-License-Identifier: MIT
 *
 * Differences of files from versions that clients have: which versions are known, who may have
 * them, and how a difference reaches the cache. The thread of the compressor is real.
 */
#include "site/delta.h"

#include "site/made.h"
#include "unit/site/bench.h"

#include <openssl/sha.h>

static bool admits_texts(const void *ending, const void *family, struct span path)
{
    (void)family;
    return span_ends(path, span_text(ending));
}

static const int versions, others; /* families */

/* What a client says that has `text`. */
static struct site_delta_request request_from(const char *text, const char *ending)
{
    struct site_delta_request request = { .family = &versions,
                                          .admits = admits_texts,
                                          .context = ending };
    SHA256((const unsigned char *)text, strlen(text), request.digest);
    return request;
}

static struct site_entry *find_delta(const char *path, const struct site_delta_request *request,
                                     bool *ret_new)
{
    struct site_entry *plain = find_settled(bench.f, path);
    assert_true(site_delta_suits(plain));
    return site_delta_find(bench.compressor, bench.f->reader, plain, request, bench.f->now_ns,
                           ret_new);
}

/* The same, until the difference is made. Then the cache alone holds it. */
static struct site_entry *find_made_delta(const char *path,
                                          const struct site_delta_request *request)
{
    const struct timespec pause = { .tv_nsec = 1000 * 1000 };
    struct site_entry *delta = NULL;
    bool is_new = false;
    for (int i = 0; i < 60 * 1000 && delta == NULL; i++) {
        delta = find_delta(path, request, &is_new);
        if (delta == NULL)
            (void)nanosleep(&pause, NULL);
    }
    assert_non_null(delta);
    if (is_new) {
        assert_true(site_publish(bench.f->reader, &delta));
        site_cache_release(&delta->cache);
    }
    return delta;
}

/* Requests the difference until the thread has found that the dictionary is unknown. */
static void assert_unknown(const char *path, const struct site_delta_request *request)
{
    const struct timespec pause = { .tv_nsec = 1000 * 1000 };
    const uint64_t before = totals().unknown;
    bool is_new;
    for (int i = 0; i < 60 * 1000 && totals().unknown == before; i++) {
        assert_null(find_delta(path, request, &is_new));
        (void)nanosleep(&pause, NULL);
    }
    assert_int_equal(totals().unknown, before + 1);
    assert_int_equal(totals().deltas, 0);
}

static void note_until_copied(const char *path, const void *family)
{
    const struct timespec pause = { .tv_nsec = 1000 * 1000 };
    for (int i = 0; i < 60 * 1000 && totals().notes == 0; i++) {
        site_delta_note(bench.compressor, find_settled(bench.f, path), family);
        (void)nanosleep(&pause, NULL);
    }
    assert_int_equal(totals().notes, 1);
}

/* Writes a version of the text that differs in its first byte. */
static void write_version(const char *path, char first)
{
    bench.text[0] = first;
    tree_write(&bench.f->tree, path, bench.text);
    bench.text[0] = 'a';
}

/* False: this build makes no differences. */
static bool begin_deltas(struct fixture *f, size_t body_max, size_t share_bytes)
{
    begin_with(f, body_max, share_bytes);
    if ((site_coder_codings() & 1u << SITE_ZSTD) != 0)
        return true;
    end();
    return false;
}

static bool begin_usual(struct fixture *f)
{
    return begin_deltas(f, MEMORY_MAX, 1024 * 1024);
}

static void a_difference_from_a_file_beside_is_made_once(void **state)
{
    bool is_new;
    if (!begin_usual(*state))
        skip();
    write_version("root/b.txt", 'b');
    const struct site_delta_request request = request_from(bench.text, ".txt");
    const struct site_entry *delta = find_made_delta("/b.txt", &request);
    const struct site_entry *plain = find_settled(*state, "/b.txt");
    const struct site_file *file = delta->plain;
    assert_in_range(file->size, SITE_CODER_DELTA_HEAD, 200);
    assert_int_equal(delta->variants, 1 << SITE_PLAIN);
    assert_true(delta->delta);
    assert_false(delta->negotiable);
    assert_false(site_delta_suits(delta));
    assert_true(delta->type == plain->type);
    assert_true(file->etag_len > 0);
    assert_false(span_equal(site_file_etag(file), site_file_etag(plain->plain)));
    pass_time(*state);
    assert_true(find_delta("/b.txt", &request, &is_new) == delta);
    assert_false(is_new);
    assert_int_equal(totals().deltas, 1);
    assert_true(delta->checked_ns == plain->checked_ns); /* it is in use */
    end();
}

static void files_that_are_kept_open_have_differences(void **state)
{
    if (!begin_deltas(*state, 1000, 1024 * 1024))
        skip();
    write_version("root/b.txt", 'b');
    const struct site_delta_request request = request_from(bench.text, ".txt");
    note_until_copied("/a.txt", &versions);
    (void)find_made_delta("/b.txt", &request);
    end();
}

static void a_file_beside_that_is_not_admitted_is_unknown(void **state)
{
    if (!begin_usual(*state))
        skip();
    write_version("root/b.txt", 'b');
    const struct site_delta_request request = request_from(bench.text, "b.txt");
    assert_unknown("/b.txt", &request);
    end();
}

static void hidden_files_links_to_the_outside_and_other_folders_are_unknown(void **state)
{
    static const char *const paths[] = { "root/.c.txt", "secret", "root/in/c.txt" };
    if (!begin_usual(*state))
        skip();
    tree_folder(&bench.f->tree, "root/in");
    tree_link(&bench.f->tree, "root/d.txt", "../secret");
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        write_version(paths[i], (char)('1' + i));
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        bench.text[0] = (char)('1' + i);
        const struct site_delta_request request = request_from(bench.text, ".txt");
        assert_unknown("/a.txt", &request);
    }
    end();
}

static void the_version_before_a_change_is_a_dictionary(void **state)
{
    if (!begin_usual(*state))
        skip();
    const struct site_delta_request request = request_from(bench.text, ".txt");
    note_until_copied("/a.txt", &versions);
    write_version("root/a.txt", 'n');
    (void)find_made_delta("/a.txt", &request);
    assert_int_equal(totals().unknown, 0);
    end();
}

static void a_difference_is_not_found_for_the_next_version(void **state)
{
    if (!begin_usual(*state))
        skip();
    write_version("root/b.txt", 'b');
    const struct site_delta_request request = request_from(bench.text, ".txt");
    const struct site_entry *first = find_made_delta("/b.txt", &request);
    write_version("root/b.txt", 'n');
    const struct site_entry *second = find_made_delta("/b.txt", &request);
    assert_true(first != second);
    assert_int_equal(totals().deltas, 2);
    end();
}

static void a_file_that_another_family_has_noted_is_unknown(void **state)
{
    if (!begin_usual(*state))
        skip();
    const struct site_delta_request request = request_from(bench.text, "none");
    note_until_copied("/a.txt", &others);
    assert_unknown("/a.txt", &request);
    end();
}

static void an_unknown_dictionary_is_looked_for_once(void **state)
{
    bool is_new;
    if (!begin_usual(*state))
        skip();
    const struct site_delta_request request = request_from("unknown", ".txt");
    assert_unknown("/a.txt", &request);
    for (int i = 0; i < 100; i++)
        assert_null(find_delta("/a.txt", &request, &is_new));
    assert_int_equal(totals().unknown, 1);
    end();
}

static void more_dictionaries_than_places_are_all_answered(void **state)
{
    enum { MANY = 3 * SITE_DELTAS_MAX };
    char text[16];
    if (!begin_usual(*state))
        skip();
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(text, sizeof(text), "unknown %d", i);
        const struct site_delta_request request = request_from(text, ".txt");
        assert_unknown("/a.txt", &request);
    }
    end();
}

static void a_difference_without_space_is_not_kept(void **state)
{
    enum { SHARE = 4 * TEXT_BYTES };
    const struct timespec pause = { .tv_nsec = 1000 * 1000 };
    bool is_new;
    if (!begin_deltas(*state, MEMORY_MAX, SHARE))
        skip();
    write_version("root/b.txt", 'b');
    const struct site_delta_request request = request_from(bench.text, ".txt");
    site_made_count(SHARE, 0);
    for (int i = 0; i < 60 * 1000 && totals().share_refused == 0; i++) {
        assert_null(find_delta("/b.txt", &request, &is_new));
        (void)nanosleep(&pause, NULL);
    }
    site_made_count(0, SHARE);
    assert_int_equal(totals().share_refused, 1);
    assert_int_equal(totals().deltas, 0);
    assert_int_equal(site_made_bytes(), 0);
    end();
}

static void a_difference_that_is_larger_than_a_form_is_made_once(void **state)
{
    const struct timespec pause = { .tv_nsec = 1000 * 1000 };
    bool is_new;
    if (!begin_usual(*state))
        skip();
    write_version("root/b.txt", 'b');
    tree_write(&bench.f->tree, "root/b.txt.gz", "small");
    const struct site_delta_request request = request_from(bench.text, ".txt");
    for (int i = 0; i < 60 * 1000 && totals().deltas == 0; i++) {
        assert_null(find_delta("/b.txt", &request, &is_new));
        (void)nanosleep(&pause, NULL);
    }
    for (int i = 0; i < 10; i++)
        assert_null(find_delta("/b.txt", &request, &is_new));
    write_version("root/c.txt", 'c');
    (void)find_made_delta("/c.txt", &request); /* the queue is empty */
    assert_int_equal(totals().deltas, 2);
    assert_int_equal(site_made_bytes(), find_made_delta("/c.txt", &request)->plain->size);
    end();
}

static void it_can_be_freed_with_differences_that_no_request_takes(void **state)
{
    bool is_new;
    char text[16];
    if (!begin_usual(*state))
        skip();
    write_version("root/b.txt", 'b');
    const struct site_delta_request request = request_from(bench.text, ".txt");
    (void)find_delta("/b.txt", &request, &is_new);
    for (int i = 0; i < 20; i++) {
        (void)snprintf(text, sizeof(text), "unknown %d", i);
        const struct site_delta_request unknown = request_from(text, ".txt");
        (void)find_delta("/b.txt", &unknown, &is_new);
    }
    end();
    assert_int_equal(site_made_bytes(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_difference_from_a_file_beside_is_made_once),
        TEST(files_that_are_kept_open_have_differences),
        TEST(a_file_beside_that_is_not_admitted_is_unknown),
        TEST(hidden_files_links_to_the_outside_and_other_folders_are_unknown),
        TEST(the_version_before_a_change_is_a_dictionary),
        TEST(a_difference_is_not_found_for_the_next_version),
        TEST(a_file_that_another_family_has_noted_is_unknown),
        TEST(an_unknown_dictionary_is_looked_for_once),
        TEST(more_dictionaries_than_places_are_all_answered),
        TEST(a_difference_without_space_is_not_kept),
        TEST(a_difference_that_is_larger_than_a_form_is_made_once),
        TEST(it_can_be_freed_with_differences_that_no_request_takes),
    };
    return cmocka_run_group_tests_name("site/delta", tests, NULL, NULL);
}
