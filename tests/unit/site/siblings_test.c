/* SPDX-License-Identifier: MIT
 *
 * What is remembered of folders: that a lookup tries only siblings that may exist, and that each
 * change of a folder is seen when its names are compared the next time.
 */
#include "site/siblings.h"

#include "os/file.h"
#include "unit/site/fixture.h"

enum { MARKDOWN = 1 << SITE_PLAIN };

/* More lookups than any folder of these tests needs before it is read. */
enum { MANY = 20000 };

static struct site_siblings *new_siblings(void)
{
    struct site_siblings *siblings = site_siblings_new(1);
    assert_non_null(siblings);
    return siblings;
}

struct asking {
    struct site_siblings *siblings;
    int root_fd;
    struct fixture *f;
    uint64_t checked_ns; /* of the last question */
};

static struct asking set_up_asking(struct fixture *f)
{
    struct asking asking = { .siblings = new_siblings(), .f = f };
    asking.root_fd = os_file_open_directory(f->options.root);
    assert_true(asking.root_fd >= 0);
    return asking;
}

static void end_asking(struct asking *asking)
{
    os_file_close(asking->root_fd);
    site_siblings_free(asking->siblings);
}

static unsigned ask_as(struct asking *asking, const char *path, bool may_read)
{
    const size_t len = strlen(path);
    const bool page = span_ends(span_text(path), SPAN(".html"));
    const struct site_siblings_query query = {
        .root_fd = asking->root_fd,
        .path = path,
        .path_len = len,
        .stem_len = page ? len - 5 : 0,
        .now_ns = asking->f->now_ns,
        .may_read = may_read,
    };
    return site_siblings_likely(asking->siblings, &query, &asking->checked_ns);
}

static unsigned ask(struct asking *asking, const char *path)
{
    return ask_as(asking, path, true);
}

/* Whether the filesystem of the tests is one whose folders are remembered. */
static bool folders_count(const struct fixture *f)
{
    return os_file_dates_folders(f->tree.fd);
}

/* Asks until the last change of the folder is further back than a tick of the clock, and its names
 * are known. */
static unsigned ask_until_known(struct asking *asking, const char *path)
{
    struct timespec start, now;
    unsigned found = SITE_SIBLINGS_ALL;

    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &start), 0);
    while (found == SITE_SIBLINGS_ALL) {
        assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
        assert_true(now.tv_sec - start.tv_sec < 20);
        found = ask(asking, path);
    }
    return found;
}

static void pass(struct asking *asking)
{
    asking->f->now_ns += SITE_FRESH_NS;
}

static void finds_the_forms_that_are_there(void **state)
{
    struct fixture *f = *state;
    if (!folders_count(f))
        skip();
    struct asking asking = set_up_asking(f);
    tree_folder(&f->tree, "root/sub");
    tree_write(&f->tree, "root/sub/a.js", "");
    tree_write(&f->tree, "root/sub/a.js.br", "");
    tree_write(&f->tree, "root/sub/a.js.gz", "");
    tree_write(&f->tree, "root/sub/b.js.ZST", "");
    tree_write(&f->tree, "root/sub/c.md", "");
    assert_int_equal(ask_until_known(&asking, "sub/none"), 0);
    assert_int_equal(ask(&asking, "sub/a.js"), 1 << SITE_BR | 1 << SITE_GZIP);
    assert_int_equal(ask(&asking, "sub/A.JS"), 1 << SITE_BR | 1 << SITE_GZIP);
    assert_int_equal(ask(&asking, "sub/b.js"), 1 << SITE_ZSTD);
    assert_int_equal(ask(&asking, "sub/c.html"), MARKDOWN);
    assert_int_equal(ask(&asking, "sub/c"), 0);
    assert_int_equal(ask(&asking, "sub/a.html"), 0);
    end_asking(&asking);
}

/* ſ and s are one letter in a folder that ignores case. */
static void a_name_with_other_letters_may_have_any_form(void **state)
{
    struct fixture *f = *state;
    if (!folders_count(f))
        skip();
    struct asking asking = set_up_asking(f);
    tree_write(&f->tree, "root/s.txt.gz", "");
    assert_int_equal(ask_until_known(&asking, "a.txt"), 0);
    assert_int_equal(ask(&asking, "\xc5\xbf.txt"), SITE_SIBLINGS_ALL);
    end_asking(&asking);
}

static void the_first_lookups_in_a_folder_try_all_forms(void **state)
{
    struct fixture *f = *state;
    struct asking asking = set_up_asking(f);
    assert_int_equal(ask(&asking, "a"), SITE_SIBLINGS_ALL);
    assert_int_equal(ask(&asking, "sub/a"), SITE_SIBLINGS_ALL);
    assert_int_equal(asking.checked_ns, f->now_ns);
    end_asking(&asking);
}

static void without_memory_all_forms_are_tried(void **state)
{
    struct fixture *f = *state;
    struct asking asking = { .f = f };
    for (int i = 0; i < 100; i++)
        assert_int_equal(ask(&asking, "a"), SITE_SIBLINGS_ALL);
    assert_int_equal(asking.checked_ns, f->now_ns);
}

static void the_answer_is_as_old_as_the_comparison(void **state)
{
    struct fixture *f = *state;
    if (!folders_count(f))
        skip();
    struct asking asking = set_up_asking(f);
    assert_int_equal(ask_until_known(&asking, "a"), 0);
    const uint64_t compared_ns = asking.checked_ns;
    f->now_ns += SITE_FRESH_NS - 1;
    assert_int_equal(ask(&asking, "a"), 0);
    assert_int_equal(asking.checked_ns, compared_ns);
    f->now_ns += 1;
    assert_int_equal(ask(&asking, "a"), 0);
    assert_int_equal(asking.checked_ns, f->now_ns);
    end_asking(&asking);
}

static void add_a_form(const struct tree *tree)
{
    tree_write(tree, "root/sub/a.gz", "");
}

static void rename_a_form(const struct tree *tree)
{
    tree_write(tree, "root/other", "");
    assert_int_equal(renameat(tree->fd, "root/other", tree->fd, "root/sub/a.br"), 0);
}

static void replace_the_folder(const struct tree *tree)
{
    assert_int_equal(renameat(tree->fd, "root/sub", tree->fd, "root/old"), 0);
    tree_folder(tree, "root/sub");
    tree_write(tree, "root/sub/a.br", "");
}

static void replace_the_folder_by_a_link(const struct tree *tree)
{
    tree_folder(tree, "root/new");
    tree_write(tree, "root/new/a.br", "");
    assert_int_equal(renameat(tree->fd, "root/sub", tree->fd, "root/old"), 0);
    tree_link(tree, "root/sub", "new");
}

static void remove_the_folder(const struct tree *tree)
{
    assert_int_equal(unlinkat(tree->fd, "root/sub", AT_REMOVEDIR), 0);
}

static void each_change_of_a_folder_is_seen(void **state)
{
    static void (*const changes[])(const struct tree *) = {
        add_a_form,        rename_a_form, replace_the_folder, replace_the_folder_by_a_link,
        remove_the_folder,
    };
    struct fixture *f = *state;
    if (!folders_count(f))
        skip();
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        (void)tear_down(state);
        (void)set_up(state);
        struct asking asking = set_up_asking(f);
        tree_folder(&f->tree, "root/sub");
        assert_int_equal(ask_until_known(&asking, "sub/a"), 0);
        changes[i](&f->tree);
        pass(&asking);
        if (ask(&asking, "sub/a") != SITE_SIBLINGS_ALL)
            fail_msg("change %zu", i);
        end_asking(&asking);
    }
}

/* A second change within a tick may leave the time of the first one. */
static void names_are_not_used_within_the_tick_of_a_change(void **state)
{
    struct fixture *f = *state;
    struct asking asking = set_up_asking(f);
    unsigned found = SITE_SIBLINGS_ALL;
    char name[32];
    /* Each question follows a change. If the test is stopped between the two for longer than a
     * tick, the names are known, and right. */
    for (int i = 0; i < 200 && found == SITE_SIBLINGS_ALL; i++) {
        (void)snprintf(name, sizeof(name), "root/%d.gz", i);
        tree_write(&f->tree, name, "");
        found = ask(&asking, name + 5);
        if (found != SITE_SIBLINGS_ALL)
            assert_int_equal(ask(&asking, "0"), 1 << SITE_GZIP);
        pass(&asking);
    }
    end_asking(&asking);
}

static void a_caller_that_may_not_wait_reads_no_folder(void **state)
{
    struct fixture *f = *state;
    struct asking asking = set_up_asking(f);
    unsigned unread = 0;
    for (int i = 0; i < 100; i++) {
        const unsigned found = ask_as(&asking, "a", false);
        unread += found == SITE_SIBLINGS_UNREAD;
        assert_true(found == SITE_SIBLINGS_UNREAD || found == SITE_SIBLINGS_ALL);
        f->now_ns += SITE_FRESH_NS / 10;
    }
    /* At most one in SITE_FRESH_NS. */
    assert_true(unread >= 1 && unread <= 10);
    if (folders_count(f)) {
        assert_int_equal(ask_until_known(&asking, "a"), 0);
        assert_int_equal(ask_as(&asking, "a", false), 0);
    }
    end_asking(&asking);
}

static void folders_with_very_many_names_are_not_remembered(void **state)
{
    struct fixture *f = *state;
    struct asking asking = set_up_asking(f);
    char name[32];
    tree_write(&f->tree, "root/one", "");
    for (int i = 0; i < 17000; i++) {
        (void)snprintf(name, sizeof(name), "root/%d", i);
        assert_int_equal(linkat(f->tree.fd, "root/one", f->tree.fd, name, 0), 0);
    }
    for (int i = 0; i < MANY; i++)
        assert_int_equal(ask(&asking, "a"), SITE_SIBLINGS_ALL);
    end_asking(&asking);
}

/* ---- in lookups ---- */

/* Loads a file as a miss again and again, until the answer is older than the lookup: the folder is
 * known then. */
/* The files of a large site are requested in all of its folders at the same time. */
static void ten_thousand_folders_are_remembered_at_once(void **state)
{
    struct fixture *f = *state;
    enum { FOLDERS = 10000, LOOKUPS = 6 };
    if (!folders_count(f))
        skip();
    struct asking asking = set_up_asking(f);
    unsigned known = 0;
    char path[32];
    for (unsigned i = 0; i < FOLDERS; i++) {
        (void)snprintf(path, sizeof(path), "root/%u", i);
        tree_folder(&f->tree, path);
    }
    (void)snprintf(path, sizeof(path), "%u/a", FOLDERS - 1);
    assert_int_equal(ask_until_known(&asking, path), 0); /* the last one has settled */
    for (unsigned i = 0; i < LOOKUPS * FOLDERS; i++) {
        (void)snprintf(path, sizeof(path), "%u/a", i % FOLDERS);
        known += ask(&asking, path) == 0 && i >= (LOOKUPS - 1) * FOLDERS;
    }
    assert_in_range(known, FOLDERS - FOLDERS / 100, FOLDERS);
    end_asking(&asking);
}

static void learn_the_root(struct fixture *f)
{
    struct timespec start, now;
    struct site_entry *entry;
    bool known = false, is_new;

    tree_write(&f->tree, "root/other.txt", "other");
    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &start), 0);
    while (!known) {
        assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
        assert_true(now.tv_sec - start.tv_sec < 20);
        f->now_ns++;
        assert_int_equal(
            site_find(f->site, f->reader, SPAN("/other.txt"), f->now_ns, &entry, &is_new),
            SITE_FILE);
        known = entry->checked_ns != f->now_ns;
        site_cache_release(&entry->cache);
    }
}

static void a_form_that_appears_in_a_known_folder_is_seen(void **state)
{
    struct fixture *f = *state;
    if (!folders_count(f))
        skip();
    tree_write(&f->tree, "root/a.txt", "plain");
    learn_the_root(f);
    assert_int_equal(find_settled(f, "/a.txt")->variants, 1 << SITE_PLAIN);
    tree_write(&f->tree, "root/a.txt.gz", "form");
    pass_time(f);
    assert_int_equal(find_file(f, "/a.txt")->variants, 1 << SITE_PLAIN | 1 << SITE_GZIP);
}

/* The entry is loaded while the folder counts as compared. It is not used for longer than that. */
static void a_form_that_appeared_before_a_load_is_seen_in_time(void **state)
{
    struct fixture *f = *state;
    if (!folders_count(f))
        skip();
    tree_write(&f->tree, "root/a.txt", "plain");
    learn_the_root(f);
    const uint64_t before_ns = f->now_ns;
    tree_write(&f->tree, "root/a.txt.gz", "form");
    f->now_ns += SITE_FRESH_NS - 1000;
    const struct site_entry *entry = find_file(f, "/a.txt");
    assert_true(entry->checked_ns <= f->now_ns);
    f->now_ns = before_ns + SITE_FRESH_NS;
    site_cache_quiesce(f->reader);
    assert_int_equal(find_file(f, "/a.txt")->variants, 1 << SITE_PLAIN | 1 << SITE_GZIP);
}

static void forms_are_found_in_a_known_folder(void **state)
{
    struct fixture *f = *state;
    if (!folders_count(f))
        skip();
    tree_write(&f->tree, "root/a.txt", "plain");
    tree_write(&f->tree, "root/a.txt.br", "form");
    learn_the_root(f);
    assert_int_equal(find_file(f, "/a.txt")->variants, 1 << SITE_PLAIN | 1 << SITE_BR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(finds_the_forms_that_are_there),
        TEST(a_name_with_other_letters_may_have_any_form),
        TEST(the_first_lookups_in_a_folder_try_all_forms),
        TEST(without_memory_all_forms_are_tried),
        TEST(the_answer_is_as_old_as_the_comparison),
        TEST(each_change_of_a_folder_is_seen),
        TEST(names_are_not_used_within_the_tick_of_a_change),
        TEST(a_caller_that_may_not_wait_reads_no_folder),
        TEST(folders_with_very_many_names_are_not_remembered),
        TEST(ten_thousand_folders_are_remembered_at_once),
        TEST(forms_are_found_in_a_known_folder),
        TEST(a_form_that_appears_in_a_known_folder_is_seen),
        TEST(a_form_that_appeared_before_a_load_is_seen_in_time),
    };
    return cmocka_run_group_tests_name("site/siblings", tests, NULL, NULL);
}
