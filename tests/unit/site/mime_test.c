/* SPDX-License-Identifier: MIT
 *
 * Media types by name: which ending counts, who wins, what carries a charset.
 */
#include "site/mime.h"

#include "tree.h"

static void assert_type(const struct site_mime *mime, const char *name, const char *expected)
{
    const struct span type = site_mime_type(mime, span_text(name));
    if (!span_equal(type, span_text(expected)))
        fail_msg("%s: \"%.*s\", not \"%s\"", name, (int)type.len, type.at, expected);
}

static void knows_the_web_without_the_system(void **state)
{
    static const struct {
        const char *name, *type;
    } cases[] = {
        { "index.html", "text/html; charset=utf-8" },
        { "INDEX.HTML", "text/html; charset=utf-8" },
        { "style.css", "text/css; charset=utf-8" },
        { "app.js", "text/javascript; charset=utf-8" },
        { "app.min.mjs", "text/javascript; charset=utf-8" },
        { "data.json", "application/json" },
        { "app.js.map", "application/json" },
        { "app.webmanifest", "application/manifest+json" },
        { "app.wasm", "application/wasm" },
        { "feed.xml", "application/xml; charset=utf-8" },
        { "feed.atom", "application/atom+xml; charset=utf-8" },
        { "page.xhtml", "application/xhtml+xml; charset=utf-8" },
        { "logo.svg", "image/svg+xml; charset=utf-8" },
        { "photo.JPG", "image/jpeg" },
        { "photo.avif", "image/avif" },
        { "photo.webp", "image/webp" },
        { "favicon.ico", "image/x-icon" },
        { "font.woff2", "font/woff2" },
        { "film.mp4", "video/mp4" },
        { "film.vtt", "text/vtt; charset=utf-8" },
        { "paper.pdf", "application/pdf" },
        { "README.md", "text/markdown; charset=utf-8" },
        { "notes.txt", "text/plain; charset=utf-8" },
        { "site.tar.gz", "application/gzip" },
        { "app.js.br", "application/octet-stream" },
        { "main.rs", "text/x-rust; charset=utf-8" },
        { "part.ts", "video/mp2t" },
        { "page.tsx", "text/typescript; charset=utf-8" },
    };
    (void)state;
    struct site_mime *mime = site_mime_new(NULL, NULL);
    assert_non_null(mime);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_type(mime, cases[i].name, cases[i].type);
    site_mime_free(mime);
}

static void only_a_last_ending_counts(void **state)
{
    static const char *const names[] = {
        "",
        ".",
        "..",
        "README",
        "html",
        ".html",
        "page.html.",
        "page.unheard",
        "page.html~",
        "folder.html/page",
        "page.html ",
        "a..",
        "page.html\xff",
        "page.\xc3\xa4",
        "a.0123456789012345678901234567890",  /* as long as an ending can be, and */
        "a.01234567890123456789012345678901", /* longer */
        "01234567890123456789012345678901234567890123456789",
    };
    (void)state;
    struct site_mime *mime = site_mime_new(NULL, NULL);
    assert_non_null(mime);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_type(mime, names[i], "application/octet-stream");
    assert_type(mime, "..html", "text/html; charset=utf-8");
    assert_type(mime, "a.b.c.d.html", "text/html; charset=utf-8");
    site_mime_free(mime);
}

static void the_systems_table_wins_except_over_fixed_types(void **state)
{
    struct tree tree;
    (void)state;
    tree_make(&tree);
    tree_write(&tree, "mime.types",
               "# a comment\n"
               "\n"
               "application/x-own\town OWN2   # and its comment\n"
               "application/x-late\town\n"
               "application/x-nothing\n"
               "text/x-own-text\t\t tXt-own\r\n"
               "application/wrong\thtml mjs\n"
               "audio/x-mine mp3\n"
               "no-type\tbad1\n"
               "two/slashes/here\tbad2\n"
               "text/\tbad3\n"
               "text/x;charset=latin1\tbad4\n"
               "text/pl\x01in\tbad5\n"
               "application/x-last last");
    struct site_mime *mime = site_mime_new(NULL, tree_absolute(&tree, "mime.types"));
    assert_non_null(mime);
    assert_type(mime, "a.own", "application/x-own");
    assert_type(mime, "a.own2", "application/x-own");
    assert_type(mime, "a.txt-own", "text/x-own-text; charset=utf-8");
    assert_type(mime, "a.html", "text/html; charset=utf-8");
    assert_type(mime, "a.mjs", "text/javascript; charset=utf-8");
    assert_type(mime, "a.mp3", "audio/x-mine");
    assert_type(mime, "a.flac", "audio/flac");
    assert_type(mime, "a.last", "application/x-last");
    for (const char *bad = "12345"; *bad != '\0'; bad++) {
        char name[] = "a.bad?";
        name[5] = *bad;
        assert_type(mime, name, "application/octet-stream");
    }
    site_mime_free(mime);
    tree_remove(&tree);
}

static void the_types_of_a_site_win(void **state)
{
    static const char *const types[] = { "system", "text/typescript ts", "x/y html  own", NULL };
    struct tree tree;
    (void)state;
    tree_make(&tree);
    tree_write(&tree, "mime.types", "x/system own mp3\n");
    struct site_mime *mime = site_mime_new(types, tree_absolute(&tree, "mime.types"));
    assert_non_null(mime);
    assert_type(mime, "a.ts", "text/typescript; charset=utf-8");
    assert_type(mime, "a.html", "x/y");
    assert_type(mime, "a.own", "x/y");
    assert_type(mime, "a.mp3", "x/system");
    assert_type(mime, "a.js", "text/javascript; charset=utf-8");
    site_mime_free(mime);
    tree_remove(&tree);
}

static void reads_a_table_of_any_length(void **state)
{
    enum { ENDINGS = 5000 };
    struct tree tree;
    char line[64];
    char type[64];
    (void)state;
    tree_make(&tree);
    FILE *file = fopen(tree_absolute(&tree, "mime.types"), "we");
    assert_non_null(file);
    for (int i = 0; i < ENDINGS; i++)
        assert_true(fprintf(file, "x/type%d e%d f%d\n", i, i, i) > 0);
    assert_int_equal(fclose(file), 0);
    struct site_mime *mime = site_mime_new(NULL, tree_absolute(&tree, "mime.types"));
    assert_non_null(mime);
    for (int i = 0; i < ENDINGS; i++) {
        (void)snprintf(type, sizeof(type), "x/type%d", i);
        (void)snprintf(line, sizeof(line), "a.E%d", i);
        assert_type(mime, line, type);
        (void)snprintf(line, sizeof(line), "a.f%d", i);
        assert_type(mime, line, type);
    }
    site_mime_free(mime);
    tree_remove(&tree);
}

static void a_table_beyond_the_limit_is_cut_and_no_type_is_taken_for_another(void **state)
{
    enum { ENDINGS = 20000 }; /* with these names, a number was once too large */
    struct tree tree;
    char name[64];
    unsigned known = 0;
    (void)state;
    tree_make(&tree);
    FILE *file = fopen(tree_absolute(&tree, "mime.types"), "we");
    assert_non_null(file);
    for (int i = 0; i < ENDINGS; i++)
        assert_true(fprintf(file, "x/own i%d j%d\n", i, i) > 0);
    assert_int_equal(fclose(file), 0);
    struct site_mime *mime = site_mime_new(NULL, tree_absolute(&tree, "mime.types"));
    assert_non_null(mime);
    bool cut = false;
    for (int i = 0; i < 2 * ENDINGS; i++) {
        (void)snprintf(name, sizeof(name), "a.%c%d", "ij"[i % 2], i / 2);
        const struct span type = site_mime_type(mime, span_text(name));
        cut = cut || !span_equal(type, SPAN("x/own"));
        assert_true(span_equal(type, cut ? SPAN("application/octet-stream") : SPAN("x/own")));
        known += !cut;
    }
    assert_in_range(known, ENDINGS, 2 * ENDINGS - 1);
    site_mime_free(mime);
    tree_remove(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_the_web_without_the_system),
        cmocka_unit_test(only_a_last_ending_counts),
        cmocka_unit_test(the_systems_table_wins_except_over_fixed_types),
        cmocka_unit_test(the_types_of_a_site_win),
        cmocka_unit_test(reads_a_table_of_any_length),
        cmocka_unit_test(a_table_beyond_the_limit_is_cut_and_no_type_is_taken_for_another),
    };
    return cmocka_run_group_tests_name("site/mime", tests, NULL, NULL);
}
