/* SPDX-License-Identifier: MIT
 *
 * How soon a change on the disk is seen, how little is asked of the disk until
 * then, and what becomes of a file that changes while it is read.
 */
#include "site/absent.h"
#include "unit/site/fixture.h"

#include <pthread.h>

/* Freshness */

static void a_fresh_hit_does_not_ask_the_disk(void **state)
{
    struct fixture *f = *state;
    bool is_new;
    tree_write(&f->tree, "root/a.txt", "first");
    struct site_entry *entry = find_file(f, "/a.txt");
    tree_remove_file(&f->tree, "root/a.txt");
    f->now_ns += SITE_FRESH_NS - 1;
    assert_ptr_equal(find(f, "/a.txt", &is_new), entry);
    assert_false(is_new);
    f->now_ns += 1;
    assert_int_equal(result_of(f, SPAN("/a.txt")), SITE_ABSENT);
    assert_int_equal(site_cache_totals(f->cache).entries, 0);
}

/* Its length is about to be announced, so it has to be right. */
static void a_file_kept_open_is_checked_at_each_hit(void **state)
{
    struct fixture *f = *state;
    char text[BODY_MAX * 2] = "x";
    bool is_new;
    tree_write_bytes(&f->tree, "root/a.bin", span_of(text, BODY_MAX + 1));
    tree_date(&f->tree, "root/a.bin", LONG_AGO_NS);
    const struct site_entry *entry = find_settled(f, "/a.bin");
    assert_ptr_equal(find(f, "/a.bin", &is_new), entry);
    assert_false(is_new);
    tree_write_bytes(&f->tree, "root/a.bin", span_of(text, sizeof(text)));
    assert_int_equal(find_file(f, "/a.bin")->plain->size, sizeof(text));
}

static void a_time_before_the_last_check_is_fresh(void **state)
{
    struct fixture *f = *state;
    bool is_new;
    tree_write(&f->tree, "root/a.txt", "first");
    (void)find_file(f, "/a.txt");
    f->now_ns -= 1000; /* another thread woke up a little earlier */
    (void)find(f, "/a.txt", &is_new);
    assert_false(is_new);
}

static void an_unchanged_file_keeps_its_entry(void **state)
{
    struct fixture *f = *state;
    bool is_new;
    tree_write(&f->tree, "root/a.txt", "first");
    struct site_entry *entry = find_settled(f, "/a.txt");
    for (int i = 0; i < 3; i++) {
        pass_time(f);
        assert_ptr_equal(find(f, "/a.txt", &is_new), entry);
        assert_int_equal(entry->checked_ns, f->now_ns);
    }
}

static void write_in_place(const struct tree *tree)
{
    tree_write(tree, "root/a.txt", "other");
}

static void write_in_place_and_put_the_time_back(const struct tree *tree)
{
    tree_write(tree, "root/a.txt", "other");
    tree_date(tree, "root/a.txt", LONG_AGO_NS);
}

static void replace(const struct tree *tree)
{
    tree_write(tree, "root/b.txt", "other");
    tree_date(tree, "root/b.txt", LONG_AGO_NS);
    tree_rename(tree, "root/b.txt", "root/a.txt");
}

static void replace_by_link(const struct tree *tree)
{
    tree_write(tree, "root/b.txt", "other");
    tree_remove_file(tree, "root/a.txt");
    tree_link(tree, "root/a.txt", "b.txt");
}

static void every_kind_of_change_is_seen_after_half_a_second(void **state)
{
    static void (*const changes[])(const struct tree *) = { write_in_place,
                                                            write_in_place_and_put_the_time_back,
                                                            replace, replace_by_link };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        tree_write(&f->tree, "root/a.txt", "first");
        tree_date(&f->tree, "root/a.txt", LONG_AGO_NS);
        assert_body_is(find_settled(f, "/a.txt"), "first");
        changes[i](&f->tree);
        assert_body_is(find_file(f, "/a.txt"), "first");
        pass_time(f);
        assert_body_is(find_file(f, "/a.txt"), "other");
        (void)unlinkat(f->tree.fd, "root/a.txt", 0);
        pass_time(f);
    }
}

static void a_change_within_the_tick_of_the_load_is_seen_by_content(void **state)
{
    struct fixture *f = *state;
    /* Both writes may carry the same time and the same size. */
    for (int i = 0; i < 200; i++) {
        tree_write(&f->tree, "root/a.txt", "first");
        pass_time(f);
        assert_body_is(find_file(f, "/a.txt"), "first");
        tree_write(&f->tree, "root/a.txt", "other");
        pass_time(f);
        assert_body_is(find_file(f, "/a.txt"), "other");
    }
}

static void a_changed_entry_leaves_the_cache_even_if_the_new_one_is_not_published(void **state)
{
    struct fixture *f = *state;
    tree_write(&f->tree, "root/a.txt", "first");
    (void)find_settled(f, "/a.txt");
    tree_write(&f->tree, "root/a.txt", "other");
    pass_time(f);
    assert_int_equal(result_of(f, SPAN("/a.txt")), SITE_FILE);
    assert_int_equal(site_cache_totals(f->cache).entries, 0);
    assert_body_is(find_file(f, "/a.txt"), "other");
}

static void the_choice_of_index_file_is_checked_too(void **state)
{
    struct fixture *f = *state;
    tree_write(&f->tree, "root/index.txt", "second choice");
    assert_body_is(find_settled(f, "/"), "second choice");
    tree_write(&f->tree, "root/index.html", "first choice");
    pass_time(f);
    const struct site_entry *entry = find_file(f, "/");
    assert_body_is(entry, "first choice");
    assert_span_is(site_entry_type(entry), "text/html; charset=utf-8");
    tree_remove_file(&f->tree, "root/index.html");
    pass_time(f);
    assert_body_is(find_file(f, "/"), "second choice");
    tree_remove_file(&f->tree, "root/index.txt");
    pass_time(f);
    assert_int_equal(result_of(f, SPAN("/")), SITE_FORBIDDEN);
}

static void a_lack_of_descriptors_is_busy_and_temporary(void **state)
{
    struct fixture *f = *state;
    struct rlimit limit, none;

    tree_write(&f->tree, "root/a.txt", "first");
    tree_write(&f->tree, "root/b.txt", "second");
    struct site_entry *entry = find_settled(f, "/a.txt");
    int lowest_free = dup(f->tree.fd);
    (void)close(lowest_free);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = (rlim_t)lowest_free;
    pass_time(f);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    enum site_result known = result_of(f, SPAN("/a.txt"));
    enum site_result unknown = result_of(f, SPAN("/b.txt"));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(known, SITE_BUSY);
    assert_int_equal(unknown, SITE_BUSY);
    assert_ptr_equal(find_file(f, "/a.txt"), entry); /* it is asked about again at once */
    assert_int_equal(entry->checked_ns, f->now_ns);
}

/* Absent paths */

static void a_path_that_stays_absent_needs_no_descriptor(void **state)
{
    static const char *const paths[] = { "/none", "/none/", "/d/none", "/a.txt/b", "/.hidden" };
    struct fixture *f = *state;
    struct rlimit limit, none;

    tree_folder(&f->tree, "root/d");
    tree_write(&f->tree, "root/a.txt", "a file");
    tree_write(&f->tree, "root/.hidden", "a secret");
    int lowest_free = dup(f->tree.fd);
    (void)close(lowest_free);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = (rlim_t)lowest_free;
    /* One after the other: two paths can have the same place in the table of hints. */
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        assert_int_equal(result_of(f, span_text(paths[i])), SITE_ABSENT);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
        enum site_result again = result_of(f, span_text(paths[i]));
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        assert_int_equal(again, SITE_ABSENT);
    }
}

static void appear_as_file(const struct tree *tree)
{
    tree_write(tree, "root/d/new", "here");
}

static void appear_by_rename(const struct tree *tree)
{
    tree_write(tree, "other", "here");
    tree_rename(tree, "other", "root/d/new");
}

static void appear_by_link(const struct tree *tree)
{
    tree_write(tree, "root/target", "here");
    tree_link(tree, "root/d/new", "../target");
}

static void appear_behind_a_link(const struct tree *tree)
{
    tree_rename(tree, "root/d", "gone");
    tree_folder(tree, "root/e");
    tree_write(tree, "root/e/new", "here");
    tree_link(tree, "root/d", "e");
}

static void appear_with_its_folder(const struct tree *tree)
{
    tree_rename(tree, "root/d", "gone");
    tree_folder(tree, "root/e");
    tree_write(tree, "root/e/new", "here");
    tree_rename(tree, "root/e", "root/d");
}

static void appear_as_target_of_a_dead_link(const struct tree *tree)
{
    tree_link(tree, "root/d/new", "../target");
    tree_write(tree, "root/target", "here");
}

static void a_file_that_appears_is_found_by_the_next_request(void **state)
{
    static void (*const ways[])(const struct tree *) = {
        appear_as_file,       appear_by_rename,       appear_by_link,
        appear_behind_a_link, appear_with_its_folder, appear_as_target_of_a_dead_link,
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        tear_down(state);
        (void)set_up(state);
        f = *state;
        tree_folder(&f->tree, "root/d");
        for (int request = 0; request < 3; request++)
            assert_int_equal(result_of(f, SPAN("/d/new")), SITE_ABSENT);
        ways[i](&f->tree);
        assert_body_is(find_file(f, "/d/new"), "here");
    }
}

static void an_error_page_that_appears_is_found(void **state)
{
    struct fixture *f = *state;
    struct site_entry *entry;
    bool is_new;

    for (int request = 0; request < 3; request++)
        assert_int_equal(find_error_page(f, 0, 404, &entry, &is_new), SITE_ABSENT);
    tree_write(&f->tree, "errors/404.html", "own page");
    assert_int_equal(find_error_page(f, 0, 404, &entry, &is_new), SITE_FILE);
    site_cache_release(&entry->cache);
}

static void name_of(char out[32], unsigned number)
{
    (void)snprintf(out, 32, "/race%u.txt", number);
}

static void a_flood_of_absent_paths_evicts_no_file(void **state)
{
    struct fixture *f = *state;
    char path[32];
    bool is_new;

    tree_write(&f->tree, "root/a.txt", "here");
    const struct site_entry *entry = find_file(f, "/a.txt");
    for (unsigned i = 0; i < 4 * SITE_ABSENT_SLOTS; i++) {
        name_of(path, i);
        for (int request = 0; request < 2; request++)
            assert_int_equal(result_of(f, span_text(path)), SITE_ABSENT);
    }
    assert_ptr_equal(find(f, "/a.txt", &is_new), entry);
    assert_false(is_new);
    assert_int_equal(site_cache_totals(f->cache).entries, 1);
}

/* While other threads ask for the same paths, a thread that has created a file finds it. */

struct asking {
    struct fixture *fixture;
    struct site_cache *cache;
    unsigned reader;
    _Atomic unsigned *current;
};

enum { RACES = 3000, ASKING_THREADS = 2 };

static void *ask_all_the_time(void *argument)
{
    const struct asking *asking = argument;
    struct site_cache_reader *reader = site_cache_reader(asking->cache, asking->reader);
    char path[32];
    unsigned number;
    while ((number = *asking->current) < RACES) {
        struct site_entry *entry;
        bool is_new;
        name_of(path, number);
        if (site_find(asking->fixture->site, reader, span_text(path), asking->fixture->now_ns,
                      &entry, &is_new) == SITE_FILE &&
            is_new)
            site_cache_release(&entry->cache);
        site_cache_quiesce(reader);
    }
    site_cache_offline(reader);
    return NULL;
}

static void a_thread_that_has_created_a_file_finds_it(void **state)
{
    struct fixture *f = *state;
    const struct site_cache_limits limits = { SITE_CACHE_SIEVE, 0, 0, 0 };
    struct site_cache *cache = site_cache_new(limits, ASKING_THREADS + 1);
    struct site_cache_reader *reader = site_cache_reader(cache, ASKING_THREADS);
    _Atomic unsigned current = 0;
    struct asking asking[ASKING_THREADS];
    pthread_t threads[ASKING_THREADS];

    for (unsigned i = 0; i < ASKING_THREADS; i++) {
        asking[i] = (struct asking){ f, cache, i, &current };
        assert_int_equal(pthread_create(&threads[i], NULL, ask_all_the_time, &asking[i]), 0);
    }
    unsigned hidden = 0;
    for (unsigned number = 0; number < RACES; number++) {
        char path[64] = "root";
        struct site_entry *entry;
        bool is_new = false;
        name_of(path + 4, number);
        current = number;
        for (int request = 0; request < 2; request++)
            (void)site_find(f->site, reader, span_text(path + 4), f->now_ns, &entry, &is_new);
        tree_write(&f->tree, path, "here");
        is_new = false;
        hidden += site_find(f->site, reader, span_text(path + 4), f->now_ns, &entry, &is_new) !=
                  SITE_FILE;
        if (is_new)
            site_cache_release(&entry->cache);
        site_cache_quiesce(reader);
        tree_remove_file(&f->tree, path);
    }
    current = RACES;
    for (unsigned i = 0; i < ASKING_THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    site_cache_offline(reader);
    site_cache_free(cache);
    assert_int_equal(hidden, 0);
}

/* A file that does not hold still */

struct restless {
    const struct tree *tree;
    _Atomic bool stop;
};

/* Every version has another length. */
static void *change_all_the_time(void *argument)
{
    struct restless *restless = argument;
    int fd = openat(restless->tree->fd, "root/restless.txt", O_WRONLY | O_CLOEXEC);
    for (int i = 0; !restless->stop; i++)
        if (ftruncate(fd, 600 * 1024 + i % 64 * 512) < 0)
            break;
    (void)close(fd);
    return NULL;
}

static void an_entry_holds_one_version_or_is_not_shared(void **state)
{
    struct fixture *f = *state;
    struct restless restless = { .tree = &f->tree };
    struct site_entry *entry;
    pthread_t thread;
    bool is_new;

    f->options.body_max = 1024 * 1024;
    site_cache_free(f->cache);
    open_cache(f, 64 * 1024 * 1024);
    tree_write(&f->tree, "root/restless.txt", "x");
    assert_int_equal(pthread_create(&thread, NULL, change_all_the_time, &restless), 0);
    for (int i = 0; i < 300; i++) {
        enum site_result result =
            site_find(f->site, f->reader, SPAN("/restless.txt"), f->now_ns, &entry, &is_new);
        pass_time(f);
        if (result == SITE_BUSY) /* shorter at every look */
            continue;
        assert_int_equal(result, SITE_FILE);
        if (!is_new) /* the other thread did not run for so long that the file settled */
            continue;
        site_publish(f->reader, &entry);
        const struct site_file *file = entry->plain;
        assert_int_equal(entry->cache.state == SITE_CACHE_RESIDENT, file->etag_len > 0);
        assert_int_equal(site_file_last_modified_s(file) < 0, file->etag_len == 0);
        assert_int_equal(site_file_body(file)[file->size - 1], file->size > 1 ? '\0' : 'x');
        site_cache_release(&entry->cache);
    }
    restless.stop = true;
    assert_int_equal(pthread_join(thread, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_fresh_hit_does_not_ask_the_disk),
        TEST(a_file_kept_open_is_checked_at_each_hit),
        TEST(a_time_before_the_last_check_is_fresh),
        TEST(an_unchanged_file_keeps_its_entry),
        TEST(every_kind_of_change_is_seen_after_half_a_second),
        TEST(a_change_within_the_tick_of_the_load_is_seen_by_content),
        TEST(a_changed_entry_leaves_the_cache_even_if_the_new_one_is_not_published),
        TEST(the_choice_of_index_file_is_checked_too),
        TEST(a_lack_of_descriptors_is_busy_and_temporary),
        TEST(a_path_that_stays_absent_needs_no_descriptor),
        TEST(a_file_that_appears_is_found_by_the_next_request),
        TEST(an_error_page_that_appears_is_found),
        TEST(a_flood_of_absent_paths_evicts_no_file),
        TEST(a_thread_that_has_created_a_file_finds_it),
        TEST(an_entry_holds_one_version_or_is_not_shared),
    };
    return cmocka_run_group_tests_name("site/freshness", tests, NULL, NULL);
}
