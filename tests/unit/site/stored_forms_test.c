/* SPDX-License-Identifier: MIT
 *
 * Files that are stored beside the plain one: compressed forms, and the same page in Markdown. When
 * they may replace the plain file, and how the site recognises them.
 */
#include "unit/site/fixture.h"

/* Stored forms */

static void write_forms(const struct tree *tree)
{
    tree_write(tree, "root/a.js", "plain");
    tree_write(tree, "root/a.js.br", "b");
    tree_write(tree, "root/a.js.zst", "zs");
    tree_write(tree, "root/a.js.gz", "gzi");
}

static void finds_stored_forms_each_with_its_own_tag(void **state)
{
    struct fixture *f = *state;
    write_forms(&f->tree);
    const struct site_entry *entry = find_file(f, "/a.js");
    assert_int_equal(entry->variants, (1 << SITE_VARIANTS) - 1);
    assert_true(entry->negotiable);
    assert_span_is(site_entry_type(entry), "text/javascript; charset=utf-8");
    for (int v = 0; v < SITE_VARIANTS; v++) {
        assert_int_equal(site_entry_file(entry, v)->size, v == SITE_PLAIN ? 5 : v + 1);
        for (int w = 0; w < v; w++)
            assert_false(span_equal(site_file_etag(site_entry_file(entry, v)),
                                    site_file_etag(site_entry_file(entry, w))));
    }
}

static void equal_bytes_in_two_forms_have_two_tags(void **state)
{
    struct fixture *f = *state;
    tree_write(&f->tree, "root/a.js", "same");
    tree_write(&f->tree, "root/a.js.gz", "same");
    const struct site_entry *entry = find_file(f, "/a.js");
    assert_int_equal(entry->variants, 1 << SITE_GZIP | 1 << SITE_PLAIN);
    assert_false(span_equal(site_file_etag(site_entry_file(entry, SITE_GZIP)),
                            site_file_etag(entry->plain)));
}

static void large_forms_carry_their_name_in_the_tag(void **state)
{
    struct fixture *f = *state;
    char text[BODY_MAX + 1] = "x";
    tree_write(&f->tree, "root/a.js", "plain");
    tree_date(&f->tree, "root/a.js", LONG_AGO_NS);
    tree_write_bytes(&f->tree, "root/a.js.zst", span_of(text, sizeof(text)));
    tree_date(&f->tree, "root/a.js.zst", LONG_AGO_NS);
    const struct site_entry *entry = find_settled(f, "/a.js");
    assert_span_is(site_file_etag(site_entry_file(entry, SITE_ZSTD)),
                   "\"de0b6b3a7640000-3e9-zst\"");
    assert_true(site_file_fd(site_entry_file(entry, SITE_ZSTD)) >= 0);
    assert_true(site_file_body(entry->plain) != NULL);
}

static void a_form_that_is_older_empty_or_not_a_file_is_ignored(void **state)
{
    struct fixture *f = *state;
    tree_write(&f->tree, "root/a.js", "plain");
    tree_date(&f->tree, "root/a.js", LONG_AGO_NS);
    tree_write(&f->tree, "root/a.js.br", "older");
    tree_date(&f->tree, "root/a.js.br", LONG_AGO_NS - 1);
    tree_write(&f->tree, "root/a.js.zst", "");
    tree_folder(&f->tree, "root/a.js.gz");
    assert_int_equal(find_file(f, "/a.js")->variants, 1 << SITE_PLAIN);
    tree_date(&f->tree, "root/a.js.br", LONG_AGO_NS);
    pass_time(f);
    assert_int_equal(find_file(f, "/a.js")->variants, 1 << SITE_BR | 1 << SITE_PLAIN);
}

static void a_form_requested_by_name_is_a_plain_file(void **state)
{
    struct fixture *f = *state;
    write_forms(&f->tree);
    tree_write(&f->tree, "root/a.js.gz.br", "no form of a form");
    const struct site_entry *entry = find_file(f, "/a.js.gz");
    assert_int_equal(entry->variants, 1 << SITE_PLAIN);
    assert_span_is(site_entry_type(entry), "application/gzip");
}

static void forms_without_their_plain_file_are_absent(void **state)
{
    struct fixture *f = *state;
    write_forms(&f->tree);
    tree_remove_file(&f->tree, "root/a.js");
    assert_int_equal(result_of(f, SPAN("/a.js")), SITE_ABSENT);
}

static void forms_are_used_only_when_the_option_is_on(void **state)
{
    struct fixture *f = *state;
    write_forms(&f->tree);
    f->options.precompressed = false;
    assert_int_equal(find_file(f, "/a.js")->variants, 1 << SITE_PLAIN);
}

static void a_form_that_comes_changes_or_goes_is_noticed(void **state)
{
    struct fixture *f = *state;
    tree_write(&f->tree, "root/a.js", "plain");
    assert_int_equal(find_settled(f, "/a.js")->variants, 1 << SITE_PLAIN);
    tree_write(&f->tree, "root/a.js.gz", "one");
    pass_time(f);
    assert_int_equal(find_file(f, "/a.js")->variants, 1 << SITE_GZIP | 1 << SITE_PLAIN);
    assert_span_is(span_of(site_file_body(site_entry_file(find_settled(f, "/a.js"), SITE_GZIP)), 3),
                   "one");
    tree_write(&f->tree, "root/a.js.gz", "two");
    pass_time(f);
    assert_span_is(span_of(site_file_body(site_entry_file(find_settled(f, "/a.js"), SITE_GZIP)), 3),
                   "two");
    tree_write(&f->tree, "root/a.js", "newer"); /* makes the form too old */
    tree_date(&f->tree, "root/a.js.gz", LONG_AGO_NS);
    pass_time(f);
    assert_int_equal(find_file(f, "/a.js")->variants, 1 << SITE_PLAIN);
}

/* Pages in Markdown */

static void a_page_names_its_page_in_markdown(void **state)
{
    static const struct {
        const char *path, *markdown;
    } rows[] = {
        { "/", "/index.md" },         { "/index.html", "/index.md" },
        { "/d/", "/d/e.md" },         { "/d/e.htm", "/d/e.md" },
        { "/page.html", "/page.md" }, { "/alone.html", "" },
        { "/folder.html", "" },       { "/out.html", "" },
        { "/page.md", "" },           { "/page.txt", "" },
        { "/a.b.html", "/a.b.md" },
    };
    struct fixture *f = *state;
    static const char *const names[] = { "index.html", "e.htm", NULL };
    f->options.index = names;
    reopen(f);
    f->options.markdown = true;
    tree_folder(&f->tree, "root/d");
    tree_folder(&f->tree, "root/folder.md");
    tree_link(&f->tree, "root/out.md", "../secret");
    static const char *const files[] = { "index.html", "index.md", "d/e.htm",    "d/e.md",
                                         "page.html",  "page.md",  "alone.html", "folder.html",
                                         "out.html",   "page.txt", "a.b.html",   "a.b.md" };
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char path[64];
        (void)snprintf(path, sizeof(path), "root/%s", files[i]);
        tree_write(&f->tree, path, files[i]);
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_span_is(site_entry_markdown(find_file(f, rows[i].path)), rows[i].markdown);
    f->options.markdown = false;
    pass_time(f);
    assert_span_is(site_entry_markdown(find_file(f, "/page.html")), "");
}

static void a_page_in_markdown_that_comes_or_goes_is_noticed(void **state)
{
    struct fixture *f = *state;
    f->options.markdown = true;
    tree_write(&f->tree, "root/page.html", "page");
    assert_span_is(site_entry_markdown(find_settled(f, "/page.html")), "");
    tree_write(&f->tree, "root/page.md", "page");
    pass_time(f);
    assert_span_is(site_entry_markdown(find_file(f, "/page.html")), "/page.md");
    tree_remove_file(&f->tree, "root/page.md");
    pass_time(f);
    assert_span_is(site_entry_markdown(find_file(f, "/page.html")), "");
}

static void answers_for_other_paths_have_no_page_in_markdown(void **state)
{
    struct fixture *f = *state;
    struct site_entry *entry;
    bool is_new;
    f->options.markdown = true;
    f->options.fallback = "app.html";
    tree_write(&f->tree, "root/app.html", "app");
    tree_write(&f->tree, "root/app.md", "app");
    tree_write(&f->tree, "errors/404.html", "404");
    tree_write(&f->tree, "errors/404.md", "404");
    reopen(f);
    assert_int_equal(find_fallback(f, SPAN("fallback"), &entry, &is_new), SITE_FILE);
    assert_int_equal(site_entry_markdown(entry).len, 0);
    site_cache_release(&entry->cache);
    assert_int_equal(find_error_page(f, 0, 404, &entry, &is_new), SITE_FILE);
    assert_int_equal(site_entry_markdown(entry).len, 0);
    site_cache_release(&entry->cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(finds_stored_forms_each_with_its_own_tag),
        TEST(equal_bytes_in_two_forms_have_two_tags),
        TEST(large_forms_carry_their_name_in_the_tag),
        TEST(a_form_that_is_older_empty_or_not_a_file_is_ignored),
        TEST(a_form_requested_by_name_is_a_plain_file),
        TEST(forms_without_their_plain_file_are_absent),
        TEST(forms_are_used_only_when_the_option_is_on),
        TEST(a_form_that_comes_changes_or_goes_is_noticed),
        TEST(a_page_names_its_page_in_markdown),
        TEST(a_page_in_markdown_that_comes_or_goes_is_noticed),
        TEST(answers_for_other_paths_have_no_page_in_markdown),
    };
    return cmocka_run_group_tests_name("site/stored_forms", tests, NULL, NULL);
}
