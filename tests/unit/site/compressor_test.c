/* SPDX-License-Identifier: MIT
 *
 * The compressor and the variants that it leaves in the cache. Its thread is real. A test waits
 * until the thread has counted a result, and lets the site's time pass by itself.
 */
#include "site/entry.h"
#include "unit/site/bench.h"

#include <unistd.h>
#include <zlib.h>

enum { GZIP = 1 << SITE_GZIP };

static uint64_t results(void)
{
    const struct site_compressor_totals now = totals();
    return now.variants + now.useless + now.broken + now.share_refused;
}

/* Waits until the compressor has dealt with so many requests. A minute is for a test that hangs. */
static void wait_for_results(uint64_t count)
{
    const struct timespec pause = { .tv_nsec = 1000 * 1000 };
    for (int i = 0; i < 60 * 1000 && results() < count; i++)
        (void)nanosleep(&pause, NULL);
    assert_true(results() >= count);
}

static void request(struct site_entry *entry, unsigned codings)
{
    enum site_compressor_reply reply;
    do
        reply = site_compressor_request(bench.compressor, entry, codings);
    while (reply == SITE_COMPRESSOR_BUSY);
    assert_int_equal(reply, SITE_COMPRESSOR_TAKEN);
}

/* Requests variants of a file, one at a time, until the cache has them. */
static struct site_entry *find_made(const char *path, unsigned codings)
{
    struct site_entry *entry = find_settled(bench.f, path);
    for (unsigned v = 0; v < SITE_PLAIN; v++) {
        const uint64_t before = results();
        if ((codings & 1u << v) == 0)
            continue;
        request(entry, 1u << v);
        wait_for_results(before + 1);
        entry = find_file(bench.f, path);
    }
    return entry;
}

static void assert_gunzips_to(const struct site_entry *entry, struct span expected)
{
    static char plain[16 * 1024];
    const struct site_file *file = site_entry_file(entry, SITE_GZIP);
    assert_non_null(site_file_body(file));
    z_stream in = { .next_in = (Bytef *)(uintptr_t)site_file_body(file),
                    .avail_in = (uInt)file->size,
                    .next_out = (Bytef *)plain,
                    .avail_out = sizeof(plain) };
    assert_int_equal(inflateInit2(&in, 15 + 16), Z_OK);
    assert_int_equal(inflate(&in, Z_FINISH), Z_STREAM_END);
    assert_true(span_equal(span_of(plain, in.total_out), expected));
    assert_int_equal(inflateEnd(&in), Z_OK);
}

static void check_variant(struct fixture *f, size_t body_max)
{
    begin(f, body_max);
    const struct site_entry *first = find_settled(f, "/a.txt");
    assert_true(first->negotiable);
    assert_int_equal(first->variants, 1 << SITE_PLAIN);
    assert_int_equal(first->missing, site_coder_codings());
    const struct site_entry *entry = find_made("/a.txt", GZIP);
    assert_int_equal(entry->variants, 1 << SITE_PLAIN | GZIP);
    assert_int_equal(entry->made, GZIP);
    assert_int_equal(entry->missing, site_coder_codings() & ~GZIP);
    assert_gunzips_to(entry, span_of(bench.text, TEXT_BYTES));
    assert_int_equal(entry->plain->size, TEXT_BYTES);
    assert_int_equal(site_file_body(entry->plain) == NULL, body_max < TEXT_BYTES);
    assert_true(site_entry_file(entry, SITE_GZIP)->etag_len > 0);
    assert_false(span_equal(site_file_etag(site_entry_file(entry, SITE_GZIP)),
                            site_file_etag(entry->plain)));
    assert_int_equal(site_file_last_modified_s(site_entry_file(entry, SITE_GZIP)),
                     site_file_last_modified_s(entry->plain));
    assert_int_equal(totals().variants, 1);
    assert_int_equal(totals().before_bytes, TEXT_BYTES);
    assert_int_equal(totals().after_bytes, site_entry_file(entry, SITE_GZIP)->size);
    end();
}

static void a_file_in_memory_gets_a_variant(void **state)
{
    check_variant(*state, MEMORY_MAX);
}

static void a_file_that_is_kept_open_gets_a_variant_in_memory(void **state)
{
    check_variant(*state, TEXT_BYTES - 1);
}

static void the_plain_entry_stays_until_the_variant_is_there(void **state)
{
    struct fixture *f = *state;
    begin(f, MEMORY_MAX);
    struct site_entry *entry = find_settled(f, "/a.txt");
    site_cache_hold(&entry->cache);
    request(entry, GZIP);
    wait_for_results(1);
    assert_int_equal(entry->variants, 1 << SITE_PLAIN); /* an entry never changes under readers */
    assert_int_equal(find_file(f, "/a.txt")->made, GZIP);
    pass_time(f);
    assert_body_is(entry, bench.text);
    site_cache_release(&entry->cache);
    end();
}

static void later_variants_join_earlier_ones(void **state)
{
    struct fixture *f = *state;
    begin(f, MEMORY_MAX);
    const struct site_entry *entry = find_made("/a.txt", site_coder_codings());
    assert_int_equal(entry->made, site_coder_codings());
    assert_int_equal(entry->missing, 0);
    assert_gunzips_to(entry, span_of(bench.text, TEXT_BYTES));
    for (int v = 0; v < SITE_PLAIN; v++)
        for (int w = 0; w < v; w++)
            assert_true(site_entry_file(entry, v)->etag_len == 0 ||
                        site_entry_file(entry, w)->etag_len == 0 ||
                        !span_equal(site_file_etag(site_entry_file(entry, v)),
                                    site_file_etag(site_entry_file(entry, w))));
    end();
}

static void each_variant_of_a_version_is_made_once(void **state)
{
    struct fixture *f = *state;
    begin(f, MEMORY_MAX);
    struct site_entry *entry = find_settled(f, "/a.txt");
    for (int i = 0; i < 100; i++)
        request(entry, GZIP);
    wait_for_results(1);
    for (int i = 0; i < 5; i++) {
        pass_time(f);
        entry = find_file(f, "/a.txt");
        assert_int_equal(entry->made, GZIP);
        request(entry, GZIP);
    }
    end();
    assert_int_equal(entry->missing & GZIP, 0);
}

static void a_changed_file_loses_its_variants(void **state)
{
    struct fixture *f = *state;
    begin(f, MEMORY_MAX);
    (void)find_made("/a.txt", GZIP);
    bench.text[7] = '!';
    tree_write(&f->tree, "root/a.txt", bench.text);
    pass_time(f);
    const struct site_entry *entry = find_file(f, "/a.txt");
    assert_int_equal(entry->variants, 1 << SITE_PLAIN);
    assert_body_is(entry, bench.text);
    entry = find_made("/a.txt", GZIP);
    assert_gunzips_to(entry, span_of(bench.text, TEXT_BYTES));
    end();
}

static void a_stored_sibling_takes_the_place_of_variants(void **state)
{
    struct fixture *f = *state;
    begin(f, MEMORY_MAX);
    (void)find_made("/a.txt", GZIP);
    tree_write(&f->tree, "root/a.txt.br", "stored");
    pass_time(f);
    const struct site_entry *entry = find_settled(f, "/a.txt");
    assert_int_equal(entry->variants, 1 << SITE_PLAIN | 1 << SITE_BR);
    assert_int_equal(entry->made, 0);
    assert_int_equal(entry->missing, 0);
    end();
}

enum change { TRUNCATE, EXTEND, REPLACE, REWRITE };

/* The file changes between the load and the compression. */
static void check_change(struct fixture *f, enum change change)
{
    begin(f, TEXT_BYTES - 1);
    struct site_entry *entry = find_settled(f, "/a.txt");
    const char *path = tree_absolute(&f->tree, "root/a.txt");
    if (change == TRUNCATE)
        assert_int_equal(truncate(path, 100), 0);
    if (change == EXTEND)
        assert_int_equal(truncate(path, TEXT_BYTES + 1), 0);
    if (change == REPLACE) {
        tree_write(&f->tree, "root/next", bench.text);
        tree_rename(&f->tree, "root/next", "root/a.txt");
    }
    if (change == REWRITE)
        tree_write(&f->tree, "root/a.txt", bench.text);
    request(entry, GZIP);
    wait_for_results(1);
    assert_int_equal(totals().broken, 1);
    assert_int_equal(totals().variants, 0);
    pass_time(f);
    assert_int_equal(find_file(f, "/a.txt")->made, 0);
    end();
}

static void a_file_that_was_truncated_gets_no_variant(void **state)
{
    check_change(*state, TRUNCATE);
}

static void a_file_that_has_grown_gets_no_variant(void **state)
{
    check_change(*state, EXTEND);
}

static void a_file_that_was_replaced_gets_no_variant(void **state)
{
    check_change(*state, REPLACE);
}

static void a_file_that_was_rewritten_in_place_gets_no_variant(void **state)
{
    check_change(*state, REWRITE);
}

static void an_entry_that_has_left_the_cache_is_given_up(void **state)
{
    struct fixture *f = *state;
    begin(f, MEMORY_MAX);
    struct site_entry *entry = find_settled(f, "/a.txt");
    site_cache_hold(&entry->cache);
    site_cache_remove(f->reader, &entry->cache);
    site_cache_quiesce(f->reader); /* frees the cache's reference */
    request(entry, GZIP);
    site_cache_release(&entry->cache);
    wait_for_results(1);
    assert_int_equal(find_settled(f, "/a.txt")->made, 0);
    end();
}

static void a_result_that_saves_little_is_dropped_once_for_all(void **state)
{
    struct fixture *f = *state;
    char noise[3000];
    begin(f, MEMORY_MAX);
    uint64_t random = 1;
    for (size_t i = 0; i < sizeof(noise); i++) {
        random = random * UINT64_C(6364136223846793005) + 1;
        noise[i] = (char)(random >> 56);
    }
    tree_write_bytes(&f->tree, "root/noise.txt", span_of(noise, sizeof(noise)));
    struct site_entry *entry = find_settled(f, "/noise.txt");
    request(entry, GZIP);
    wait_for_results(1);
    assert_int_equal(totals().useless, 1);
    for (int i = 0; i < 3; i++) {
        pass_time(f);
        assert_int_equal(find_file(f, "/noise.txt")->missing & GZIP, 0);
    }
    end();
}

static void codings_are_awaited_until_they_are_made_or_rejected(void **state)
{
    struct fixture *f = *state;
    const unsigned all = site_coder_codings();
    begin(f, MEMORY_MAX);
    struct site_entry *entry = find_settled(f, "/a.txt");
    assert_int_equal(site_compressor_awaited(entry), 0);
    request(entry, GZIP);
    assert_int_equal(site_compressor_awaited(entry), GZIP);
    wait_for_results(1);
    entry = find_file(f, "/a.txt");
    assert_int_equal(entry->made, GZIP);
    assert_int_equal(entry->missing, all & ~GZIP);
    assert_int_equal(site_compressor_awaited(entry), 0);
    end();
}

static void a_rejected_coding_stays_rejected_when_others_are_made(void **state)
{
    struct fixture *f = *state;
    const unsigned all = site_coder_codings(), others = all & ~GZIP;
    begin(f, MEMORY_MAX);
    if ((others & (others - 1)) == 0)
        skip(); /* this build lacks a coding */
    struct site_entry *entry = find_settled(f, "/a.txt");
    atomic_store(&site_entry_made(entry)->rejected, GZIP);
    atomic_store(&entry->missing, (uint8_t)others);
    for (unsigned left = others; left != 0; left &= left - 1) {
        const uint64_t before = results();
        request(entry, left & (0u - left));
        wait_for_results(before + 1);
        entry = find_file(f, "/a.txt");
        assert_int_equal(entry->missing, left & (left - 1));
        assert_int_equal(site_compressor_awaited(entry), 0);
    }
    end();
}

static void a_used_share_refuses_and_offers_again(void **state)
{
    struct fixture *f = *state;
    begin_with(f, MEMORY_MAX, TEXT_BYTES / 4 - 1);
    struct site_entry *entry = find_settled(f, "/a.txt");
    assert_int_equal(site_compressor_request(bench.compressor, entry, GZIP),
                     SITE_COMPRESSOR_SHARE_IN_USE);
    request(entry, GZIP); /* it is not offered now */
    assert_int_equal(entry->missing & GZIP, 0);
    pass_time(f);
    entry = find_file(f, "/a.txt");
    assert_int_equal(entry->missing & GZIP, GZIP);
    assert_int_equal(totals().variants, 0);
    end();
}

/* Whether an entry leaves the cache for the share. */
static bool makes_space(struct fixture *f)
{
    (void)site_cache_totals(f->cache); /* forgets earlier removals */
    site_compressor_make_space(bench.compressor, f->reader, f->now_ns);
    return site_cache_has_shrunk(f->cache);
}

static void entries_that_are_not_used_give_up_their_share(void **state)
{
    struct fixture *f = *state;
    begin_with(f, MEMORY_MAX, TEXT_BYTES / 4 + 20);
    tree_write(&f->tree, "root/b.txt", bench.text);
    (void)find_settled(f, "/b.txt"); /* which takes long in the time of the fixture */
    (void)find_made("/a.txt", GZIP);
    struct site_entry *entry = find_file(f, "/b.txt");
    assert_int_equal(site_compressor_request(bench.compressor, entry, GZIP),
                     SITE_COMPRESSOR_SHARE_IN_USE);
    assert_false(makes_space(f));
    assert_int_equal(find_file(f, "/a.txt")->made, GZIP);

    f->now_ns += SITE_COMPRESSOR_IDLE_NS;
    pass_time(f);
    entry = find_file(f, "/b.txt");
    assert_false(makes_space(f));
    assert_int_equal(site_compressor_request(bench.compressor, entry, GZIP),
                     SITE_COMPRESSOR_SHARE_IN_USE);
    assert_true(makes_space(f));
    assert_int_equal(site_cache_totals(f->cache).entries, 1);
    assert_int_equal(site_cache_totals(f->cache).evicted, 1);
    pass_time(f);
    assert_int_equal(site_made_bytes(), 0);
    request(find_file(f, "/b.txt"), GZIP);
    wait_for_results(2);
    assert_int_equal(find_file(f, "/b.txt")->made, GZIP);
    end();
}

static void small_and_binary_files_and_listings_offer_nothing(void **state)
{
    struct fixture *f = *state;
    begin(f, MEMORY_MAX);
    bench.text[1023] = '\0';
    tree_write(&f->tree, "root/small.txt", bench.text);
    tree_write_bytes(&f->tree, "root/a.png", span_of(bench.text, TEXT_BYTES));
    tree_write_bytes(&f->tree, "root/unknown", span_of(bench.text, TEXT_BYTES));
    static const char *const paths[] = { "/small.txt", "/a.png", "/unknown" };
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        const struct site_entry *entry = find_settled(f, paths[i]);
        assert_false(entry->negotiable);
        assert_int_equal(entry->missing, 0);
    }
    end();
}

static void an_entry_that_the_cache_refuses_offers_nothing(void **state)
{
    struct fixture *f = *state;
    struct site_entry *entry;
    bool is_new;
    begin(f, MEMORY_MAX);
    (void)find_settled(f, "/a.txt"); /* the file's time is settled */
    close_cache(f);
    open_cache(f, 1000);
    assert_int_equal(site_find(f->site, f->reader, SPAN("/a.txt"), f->now_ns, &entry, &is_new),
                     SITE_FILE);
    assert_int_equal(entry->missing, site_coder_codings());
    assert_false(site_publish(f->reader, &entry));
    assert_int_equal(entry->missing, 0);
    site_cache_release(&entry->cache);
    end();
}

static void a_variant_that_the_cache_refused_is_offered_again(void **state)
{
    struct fixture *f = *state;
    struct site_entry *entry;
    bool is_new;
    begin(f, MEMORY_MAX);
    request(find_settled(f, "/a.txt"), GZIP);
    wait_for_results(1);
    assert_int_equal(site_find(f->site, f->reader, SPAN("/a.txt"), f->now_ns, &entry, &is_new),
                     SITE_FILE);
    assert_true(is_new && entry->made == GZIP);
    site_cache_release(&entry->cache); /* it is not published */
    pass_time(f);
    entry = find_file(f, "/a.txt");
    assert_int_equal(entry->made, 0);
    assert_int_equal(entry->missing & GZIP, GZIP);
    request(entry, GZIP);
    for (int i = 0; i < 60 * 1000 && entry->made == 0; i++) {
        (void)usleep(1000);
        pass_time(f);
        entry = find_file(f, "/a.txt");
    }
    assert_gunzips_to(entry, span_of(bench.text, TEXT_BYTES));
    assert_int_equal(totals().variants, 1);
    end();
}

static void it_can_be_freed_at_any_moment(void **state)
{
    struct fixture *f = *state;
    begin(f, MEMORY_MAX);
    end(); /* without a thread */
    for (unsigned wait_us = 0; wait_us < 2000; wait_us = wait_us * 2 + 1) {
        begin(f, MEMORY_MAX);
        struct site_entry *entry = find_settled(f, "/a.txt");
        request(entry, site_coder_codings());
        (void)usleep(wait_us);
        end();
        tree_remove_file(&f->tree, "root/a.txt");
        pass_time(f);
        assert_int_equal(result_of(f, SPAN("/a.txt")), SITE_ABSENT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_file_in_memory_gets_a_variant),
        TEST(a_file_that_is_kept_open_gets_a_variant_in_memory),
        TEST(the_plain_entry_stays_until_the_variant_is_there),
        TEST(later_variants_join_earlier_ones),
        TEST(each_variant_of_a_version_is_made_once),
        TEST(a_changed_file_loses_its_variants),
        TEST(a_stored_sibling_takes_the_place_of_variants),
        TEST(a_file_that_was_truncated_gets_no_variant),
        TEST(a_file_that_has_grown_gets_no_variant),
        TEST(a_file_that_was_replaced_gets_no_variant),
        TEST(a_file_that_was_rewritten_in_place_gets_no_variant),
        TEST(an_entry_that_has_left_the_cache_is_given_up),
        TEST(a_result_that_saves_little_is_dropped_once_for_all),
        TEST(codings_are_awaited_until_they_are_made_or_rejected),
        TEST(a_rejected_coding_stays_rejected_when_others_are_made),
        TEST(a_used_share_refuses_and_offers_again),
        TEST(entries_that_are_not_used_give_up_their_share),
        TEST(small_and_binary_files_and_listings_offer_nothing),
        TEST(an_entry_that_the_cache_refuses_offers_nothing),
        TEST(a_variant_that_the_cache_refused_is_offered_again),
        TEST(it_can_be_freed_at_any_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
