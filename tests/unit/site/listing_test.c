/* SPDX-License-Identifier: MIT
 *
 * Listings: what is in them, in which order, and that no name, whatever its
 * bytes, breaks the page or the JSON.
 */
#include "site/listing.h"

#include "unit/site/fixture.h"

/* The listing as text with a NUL; the test frees it. */
static char *render(const struct fixture *f, const char *path, const char *query,
                    enum site_listing_form form)
{
    const struct site_listing_request request = {
        .path = span_text(path),
        .query = span_text(query),
        .form = form,
    };
    struct site_entry *entry;
    bool is_new = false;

    assert_int_equal(query_listing(f, &request, true, &entry, &is_new), SITE_FILE);
    const struct site_file *file = entry->plain;
    char *ended = malloc(file->size + 1);
    if (ended == NULL)
        abort();
    memcpy(ended, site_file_body(file), file->size);
    ended[file->size] = '\0';
    assert_int_equal(strlen(ended), file->size);
    if (is_new)
        site_cache_release(&entry->cache);
    return ended;
}

/* The names of a JSON listing as "a b c"; for names without escapes. */
static void read_names(const char *json, char *out, size_t size)
{
    static const char before[] = "{\"name\":\"";
    size_t len = 0;

    for (const char *at = strstr(json, before); at != NULL; at = strstr(at, before)) {
        at += sizeof(before) - 1;
        size_t name_len = strcspn(at, "\"");
        assert_true(len + name_len + 2 < size);
        if (len > 0)
            out[len++] = ' ';
        memcpy(out + len, at, name_len);
        len += name_len;
    }
    out[len] = '\0';
}

static void assert_order(const struct fixture *f, const char *path, const char *query,
                         const char *expected)
{
    char names[4096];
    char *json = render(f, path, query, SITE_LISTING_JSON);
    read_names(json, names, sizeof(names));
    free(json);
    if (strcmp(names, expected) != 0)
        fail_msg("%s?%s: \"%s\", not \"%s\"", path, query, names, expected);
}

static void assert_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("nowhere in the listing: %s", part);
}

static void puts_directories_first_and_names_in_natural_order(void **state)
{
    static const char *const files[] = { "img10",
                                         "img2",
                                         "IMG1",
                                         "img1",
                                         "img002",
                                         "img02",
                                         "a",
                                         "B",
                                         "c",
                                         "0",
                                         "00",
                                         "10",
                                         "9",
                                         "img2b",
                                         "img",
                                         "z9999999999999999999999",
                                         "z10000000000000000000000" };
    struct fixture *f = *state;

    tree_folder(&f->tree, "root/list");
    tree_folder(&f->tree, "root/list/zoo");
    tree_folder(&f->tree, "root/list/Ape");
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char path[64];
        (void)snprintf(path, sizeof(path), "root/list/%s", files[i]);
        tree_write(&f->tree, path, "x");
    }
    assert_order(f, "/list/", "",
                 "Ape zoo 0 00 9 10 a B c img IMG1 img1 img002 img02 img2 img2b img10 "
                 "z9999999999999999999999 z10000000000000000000000");
}

static void sorts_as_the_query_says(void **state)
{
    struct fixture *f = *state;
    const struct tree *tree = &f->tree;

    tree_folder(tree, "root/y");
    tree_folder(tree, "root/z");
    tree_write(tree, "root/a", "333");
    tree_write(tree, "root/b", "1");
    tree_write(tree, "root/c", "22");
    tree_write(tree, "root/d", "22");
    tree_date(tree, "root/y", 50 * SECOND_NS);
    tree_date(tree, "root/z", 40 * SECOND_NS);
    tree_date(tree, "root/a", 20 * SECOND_NS);
    tree_date(tree, "root/b", 30 * SECOND_NS);
    tree_date(tree, "root/c", 10 * SECOND_NS);
    tree_date(tree, "root/d", 10 * SECOND_NS);
    assert_order(f, "/", "", "y z a b c d");
    assert_order(f, "/", "sort=name", "y z a b c d");
    assert_order(f, "/", "sort=name&order=desc", "z y d c b a");
    assert_order(f, "/", "order=desc", "z y d c b a");
    assert_order(f, "/", "sort=size", "y z b c d a");
    assert_order(f, "/", "order=desc&sort=size", "z y a d c b");
    assert_order(f, "/", "sort=time", "z y c d a b");
    assert_order(f, "/", "sort=time&order=desc", "y z b a d c");
    assert_order(f, "/", "sort=", "y z a b c d");
    assert_order(f, "/", "sort=colour&order=up&&=&x", "y z a b c d");
    assert_order(f, "/", "sort=time&sort=name&order=desc&order=asc", "y z a b c d");
}

/* The definition of natural order, without keys: two positions and no memory. */
static int compare_naturally(const char *a, const char *b)
{
    const char *const a_start = a;
    const char *const b_start = b;

    while (*a != '\0' && *b != '\0') {
        bool digits = *a >= '0' && *a <= '9' && *b >= '0' && *b <= '9';
        if (digits) {
            char *a_end, *b_end;
            unsigned long long a_value = strtoull(a, &a_end, 10);
            unsigned long long b_value = strtoull(b, &b_end, 10);
            if (a_value != b_value)
                return a_value < b_value ? -1 : 1;
            a = a_end;
            b = b_end;
            continue;
        }
        /* a digit against anything else counts as '0', as all numbers stand together */
        int a_char = *a >= '0' && *a <= '9' ? '0' : (unsigned char)ascii_lower(*a);
        int b_char = *b >= '0' && *b <= '9' ? '0' : (unsigned char)ascii_lower(*b);
        if (a_char != b_char)
            return a_char - b_char;
        a++;
        b++;
    }
    if (*a != *b)
        return *a == '\0' ? -1 : 1;
    return strcmp(a_start, b_start);
}

static void every_pair_of_random_names_is_in_natural_order(void **state)
{
    enum { NAMES = 300, NAME_SIZE = 12 };
    static const char letters[] = "aAbB0123009_~";
    static char names[NAMES][NAME_SIZE];
    struct fixture *f = *state;
    char listed[NAMES * NAME_SIZE + 1];
    unsigned random = 12345;
    size_t count = 0;

    for (int i = 0; i < NAMES; i++) {
        char path[64];
        size_t len = 1 + random % (NAME_SIZE - 2);
        char name[NAME_SIZE] = "";
        for (size_t at = 0; at < len; at++) {
            random = random * 1103515245 + 12345;
            name[at] = letters[(random >> 16) % (sizeof(letters) - 1)];
        }
        (void)snprintf(path, sizeof(path), "root/%s", name);
        tree_write(&f->tree, path, "");
    }
    char *json = render(f, "/", "", SITE_LISTING_JSON);
    read_names(json, listed, sizeof(listed));
    free(json);
    for (char *name = strtok(listed, " "); name != NULL; name = strtok(NULL, " "))
        (void)snprintf(names[count++], NAME_SIZE, "%s", name);
    assert_true(count > NAMES / 2);
    for (size_t a = 0; a < count; a++)
        for (size_t b = a + 1; b < count; b++)
            if (compare_naturally(names[a], names[b]) >= 0)
                fail_msg("%s before %s", names[a], names[b]);
}

static void leaves_out_names_that_cannot_be_served(void **state)
{
    struct fixture *f = *state;
    const struct tree *tree = &f->tree;

    tree_write(tree, "root/file", "x");
    tree_write(tree, "root/.hidden", "x");
    tree_folder(tree, "root/.git");
    tree_write(tree, "root/line\nbreak", "x");
    assert_int_equal(mkfifoat(tree->fd, "root/fifo", 0644), 0);
    tree_link(tree, "root/inside", "file");
    tree_link(tree, "root/dead", "nowhere");
    tree_link(tree, "root/out", "../secret");
    tree_link(tree, "root/out_folder", "..");
    tree_link(tree, "root/absolute", "/etc");
    tree_link(tree, "root/here", ".");
    assert_order(f, "/", "", "here file inside");
    f->options.hidden = true;
    reopen(f);
    assert_order(f, "/", "", ".git here .hidden file inside");
}

static void shows_the_type_of_each_entry(void **state)
{
    struct fixture *f = *state;
    tree_folder(&f->tree, "root/folder");
    tree_write(&f->tree, "root/file.txt", "12345");
    tree_date(&f->tree, "root/folder", LONG_AGO_NS);
    tree_date(&f->tree, "root/file.txt", INT64_C(951782400) * SECOND_NS); /* a leap day */
    tree_link(&f->tree, "root/link.txt", "file.txt");

    char *json = render(f, "/", "", SITE_LISTING_JSON);
    assert_string_equal(json, "[\n"
                              "{\"name\":\"folder\",\"type\":\"directory\",\"size\":null,"
                              "\"modified\":\"2001-09-09T01:46:40Z\",\"media_type\":null},\n"
                              "{\"name\":\"file.txt\",\"type\":\"file\",\"size\":5,"
                              "\"modified\":\"2000-02-29T00:00:00Z\","
                              "\"media_type\":\"text/plain; charset=utf-8\"},\n"
                              "{\"name\":\"link.txt\",\"type\":\"file\",\"size\":5,"
                              "\"modified\":\"2000-02-29T00:00:00Z\","
                              "\"media_type\":\"text/plain; charset=utf-8\"}\n"
                              "]\n");
    free(json);
    char *html = render(f, "/", "", SITE_LISTING_HTML);
    assert_has(html, "<tr class=\"d\"><td><a href=\"folder/\"><bdi>folder/</bdi></a></td><td></td>"
                     "<td><time datetime=\"2001-09-09T01:46:40Z\">2001-09-09 01:46</time>");
    assert_has(html, "<tr><td><a href=\"file.txt\"><bdi>file.txt</bdi></a></td>"
                     "<td title=\"5 bytes\">5 B</td><td><time datetime=\"2000-02-29T00:00:00Z\">");
    assert_has(html, "1 folder, 2 files");
    assert_null(strstr(html, "<script"));
    free(html);
}

static void shows_the_readme_as_text(void **state)
{
    struct fixture *f = *state;
    tree_write(&f->tree, "root/readme", "not this one");
    tree_write(&f->tree, "root/ReadMe.txt", "nor this one");
    tree_write(&f->tree, "root/README.md",
               "# <b>Title</b>\r\n\n\tcode\n\x1b[31m\xe2\x80\xaegnp.exe\xff\n");
    char *html = render(f, "/", "", SITE_LISTING_HTML);
    assert_has(html, "<h2><bdi>README.md</bdi></h2>\n<pre dir=\"auto\">\n"
                     "# &lt;b&gt;Title&lt;/b&gt;\n\n\tcode\n"
                     "\xef\xbf\xbd[31m\xef\xbf\xbdgnp.exe\xef\xbf\xbd\n</pre>\n</section>\n");
    assert_null(strstr(html, "this one"));
    free(html);
    tree_remove_file(&f->tree, "root/README.md");
    html = render(f, "/", "", SITE_LISTING_HTML);
    assert_has(html, "nor this one");
    free(html);
}

static void shows_the_beginning_of_a_long_readme(void **state)
{
    struct fixture *f = *state;
    enum { LINE = 64, LINES = 64 * 1024 / LINE + 10 };
    char *lines = malloc(LINE * LINES + 1);
    assert_non_null(lines);
    memset(lines, 'x', LINE * LINES);
    lines[LINE * LINES] = '\0';
    for (size_t i = 1; i <= LINES; i++)
        lines[i * LINE - 2] = '\n';
    tree_folder(&f->tree, "root/docs");
    tree_write(&f->tree, "root/docs/README", lines);
    free(lines);
    char *html = render(f, "/docs/", "", SITE_LISTING_HTML);
    assert_has(html,
               "x\n</pre>\n<p>The file is longer. <a href=\"README\">Show all of it</a>.</p>");
    assert_true(strlen(html) > 64 * 1024 && strlen(html) < 64 * 1024 + 8 * 1024);
    free(html);
}

static void no_readme_leads_out_of_the_root(void **state)
{
    struct fixture *f = *state;
    tree_link(&f->tree, "root/README.md", "../secret");
    tree_folder(&f->tree, "root/README.txt");
    char *html = render(f, "/", "", SITE_LISTING_HTML);
    assert_null(strstr(html, "<pre"));
    assert_null(strstr(html, "a secret"));
    free(html);
}

static void has_a_script_only_where_it_is_allowed(void **state)
{
    struct fixture *f = *state;
    char *html = render(f, "/", "", SITE_LISTING_HTML);
    assert_null(strstr(html, "<script"));
    free(html);
    f->options.scripts = true;
    reopen(f);
    tree_write(&f->tree, "root/new", "");
    html = render(f, "/", "sort=size", SITE_LISTING_HTML);
    assert_has(html, "</main>\n<script>\n");
    assert_null(strstr(strstr(html, "</script>") + 1, "<script"));
    free(html);
}

static void shows_times_of_every_century(void **state)
{
    static const struct {
        int64_t seconds;
        const char *text;
    } cases[] = {
        { 0, "1970-01-01T00:00:00Z" },          { -1, "1969-12-31T23:59:59Z" },
        { 68169600, "1972-02-29T00:00:00Z" },   { 4107542399, "2100-02-28T23:59:59Z" },
        { 4107542400, "2100-03-01T00:00:00Z" }, { 1795248000, "2026-11-21T08:00:00Z" },
    };
    struct fixture *f = *state;

    tree_write(&f->tree, "root/file", "x");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tree_date(&f->tree, "root/file", cases[i].seconds * SECOND_NS);
        char *json = render(f, "/", "", SITE_LISTING_JSON);
        assert_has(json, cases[i].text);
        free(json);
    }
}

static void shows_sizes_that_people_can_read(void **state)
{
    static const struct {
        off_t size;
        const char *text;
    } cases[] = {
        { 0, "title=\"0 bytes\">0 B<" },
        { 1, "title=\"1 byte\">1 B<" },
        { 1023, ">1023 B<" },
        { 1024, ">1.00 KiB<" },
        { 1536, ">1.50 KiB<" },
        { 10188, ">9.95 KiB<" },
        { 10240, ">10.0 KiB<" },
        { 1047552, ">1023 KiB<" },
        { 1048575, ">1.00 MiB<" },
        { 1048576, "title=\"1048576 bytes\">1.00 MiB<" },
        { (off_t)5 << 30, ">5.00 GiB<" },
        { ((off_t)1 << 43) - 1, ">8.00 TiB<" },
    };
    struct fixture *f = *state;

    tree_write(&f->tree, "root/file", "");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (truncate(tree_absolute(&f->tree, "root/file"), cases[i].size) < 0)
            continue; /* larger than this filesystem has files */
        char *html = render(f, "/", "", SITE_LISTING_HTML);
        assert_has(html, cases[i].text);
        free(html);
    }
}

static void no_name_breaks_the_page_or_the_json(void **state)
{
    static const struct {
        const char *name, *href, *html, *json;
    } cases[] = {
        { "<b>&\"'", "%3Cb%3E%26%22%27", "&lt;b&gt;&amp;&quot;&#39;", "<b>&\\\"'" },
        { "a:b", "a%3Ab", "a:b", "a:b" },
        { "100% ?#", "100%25%20%3F%23", "100% ?#", "100% ?#" },
        { "back\\slash", "back%5Cslash", "back\\slash", "back\\\\slash" },
        { "gr\xc3\xbc\xc3\x9f", "gr%C3%BC%C3%9F", "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f" },
        { "\xf0\x9f\x8c\x8a", "%F0%9F%8C%8A", "\xf0\x9f\x8c\x8a", "\xf0\x9f\x8c\x8a" },
        { "latin\xfc.", "latin%FC.", "latin\xef\xbf\xbd.", "latin\xef\xbf\xbd." },
        { "cut\xe2\x82", "cut%E2%82", "cut\xef\xbf\xbd\xef\xbf\xbd",
          "cut\xef\xbf\xbd\xef\xbf\xbd" },
        { "a\xe2\x80\xaegnp.exe", "a%E2%80%AEgnp.exe", "a\xef\xbf\xbdgnp.exe",
          "a\xe2\x80\xaegnp.exe" },
        { "\xe2\x81\xa7.txt", "%E2%81%A7.txt", "\xef\xbf\xbd.txt", "\xe2\x81\xa7.txt" },
        { "\xe2\x80\x8f\xd7\x90", "%E2%80%8F%D7%90", "\xe2\x80\x8f\xd7\x90",
          "\xe2\x80\x8f\xd7\x90" },
        { "\xc0\xaf", "%C0%AF", "\xef\xbf\xbd\xef\xbf\xbd", "\xef\xbf\xbd\xef\xbf\xbd" },
        { "\xed\xa0\x80", "%ED%A0%80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd",
          "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
        { "\xf4\x90\x80\x80", "%F4%90%80%80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd",
          "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char path[64];
        char expected[256];
        (void)snprintf(path, sizeof(path), "root/%s", cases[i].name);
        tree_write(&f->tree, path, "x");
        char *html = render(f, "/", "", SITE_LISTING_HTML);
        char *json = render(f, "/", "", SITE_LISTING_JSON);
        (void)snprintf(expected, sizeof(expected), "<a href=\"%s\"><bdi>%s</bdi>", cases[i].href,
                       cases[i].html);
        assert_has(html, expected);
        (void)snprintf(expected, sizeof(expected), "{\"name\":\"%s\",", cases[i].json);
        assert_has(json, expected);
        free(html);
        free(json);
        tree_remove_file(&f->tree, path);
    }
}

static void shows_the_way_back_up(void **state)
{
    struct fixture *f = *state;
    tree_folder(&f->tree, "root/<a>");
    tree_folder(&f->tree, "root/<a>/b");
    char *html = render(f, "/<a>/b/", "", SITE_LISTING_HTML);
    assert_has(html, "<title>Index of /&lt;a&gt;/b/</title>");
    assert_has(html, "<h1><a href=\"../../\" aria-label=\"Top\"><bdi>/</bdi></a>"
                     "<a href=\"../\"><bdi>&lt;a&gt;</bdi></a><i>/</i><bdi>b</bdi><i>/</i></h1>");
    assert_has(html, "<a href=\"../\">../</a>");
    assert_has(html, "This folder is empty.");
    free(html);
    html = render(f, "/", "", SITE_LISTING_HTML);
    assert_has(html, "<h1><bdi>/</bdi></h1>");
    assert_null(strstr(html, "../"));
    free(html);
}

static void column_heads_sort_and_reverse(void **state)
{
    struct fixture *f = *state;
    char *html = render(f, "/", "", SITE_LISTING_HTML);
    assert_has(html, "aria-sort=\"ascending\"><a href=\"?sort=name&amp;order=desc\">Name</a>");
    assert_has(html, "<th scope=\"col\"><a href=\"?sort=size&amp;order=desc\">Size</a>");
    free(html);
    html = render(f, "/", "sort=size&order=desc", SITE_LISTING_HTML);
    assert_has(html, "aria-sort=\"descending\"><a href=\"?sort=size&amp;order=asc\">Size</a>");
    assert_has(html, "<th scope=\"col\"><a href=\"?sort=name&amp;order=asc\">Name</a>");
    free(html);
}

static void refuses_what_is_not_a_directory_to_show(void **state)
{
    static const struct {
        const char *path;
        enum site_result result;
    } cases[] = {
        { "/nothing/", SITE_ABSENT },       { "/file/", SITE_ABSENT }, { "/folder", SITE_ABSENT },
        { "/.git/", SITE_ABSENT },          { "", SITE_ABSENT },       { "/../", SITE_ABSENT },
        { "/out_folder/", SITE_FORBIDDEN },
    };
    struct fixture *f = *state;
    struct site_entry *entry;
    bool is_new;

    tree_folder(&f->tree, "root/folder");
    tree_folder(&f->tree, "root/.git");
    tree_write(&f->tree, "root/file", "x");
    tree_link(&f->tree, "root/out_folder", "..");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct site_listing_request request = { .path = span_text(cases[i].path) };
        assert_int_equal(query_listing(f, &request, true, &entry, &is_new), cases[i].result);
    }
}

/* ---- the limit ---- */

static void write_many(const struct fixture *f, size_t count)
{
    char path[64];
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(path, sizeof(path), "root/many/%zu.txt", i);
        tree_write(&f->tree, path, "");
    }
}

static void shows_the_first_names_and_says_how_many_are_left_out(void **state)
{
    enum { MORE = 7 };
    struct fixture *f = *state;
    char line[160];

    tree_folder(&f->tree, "root/many");
    tree_folder(&f->tree, "root/many/zfolder");
    write_many(f, SITE_LISTING_ENTRIES_MAX - 1);
    char *whole = render(f, "/many/", "", SITE_LISTING_HTML);
    assert_null(strstr(whole, "not shown"));
    free(whole);

    write_many(f, SITE_LISTING_ENTRIES_MAX - 1 + MORE);
    pass_time(f);
    char *json = render(f, "/many/", "", SITE_LISTING_JSON);
    assert_has(json, "[\n{\"name\":\"zfolder\"");
    (void)snprintf(line, sizeof(line), "{\"name\":\"%d.txt\"", SITE_LISTING_ENTRIES_MAX - 2);
    assert_has(json, line);
    (void)snprintf(line, sizeof(line), "{\"name\":\"%d.txt\"", SITE_LISTING_ENTRIES_MAX - 1);
    assert_null(strstr(json, line));
    assert_has(json, ",\n{\"type\":\"omitted\",\"count\":7}\n]\n");
    free(json);
    char *html = render(f, "/many/", "sort=time&order=desc", SITE_LISTING_HTML);
    (void)snprintf(line, sizeof(line),
                   "</table>\n<p>%d more names are not shown: a list ends at %d entries, "
                   "folders first, then by name.</p>\n</main>",
                   MORE, SITE_LISTING_ENTRIES_MAX);
    assert_has(html, line);
    free(html);
}

/* ---- the cache ---- */

/* The listing of "/", published when it is new. */
static struct site_entry *find_listing(struct fixture *f, const char *query, bool *ret_new)
{
    const struct site_listing_request request = { .path = SPAN("/"),
                                                  .query = span_text(query),
                                                  .form = SITE_LISTING_JSON };
    struct site_entry *entry = NULL;
    assert_int_equal(query_listing(f, &request, true, &entry, ret_new), SITE_FILE);
    if (*ret_new) {
        assert_true(site_publish(f->reader, &entry));
        site_cache_release(&entry->cache);
    }
    return entry;
}

/* Looks until the last change of the folder is further back than a tick of the clock. */
static struct site_entry *find_settled_listing(struct fixture *f)
{
    struct timespec start, now;
    bool is_new = true;
    struct site_entry *entry = NULL;
    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &start), 0);
    while (is_new) {
        assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
        assert_true(now.tv_sec - start.tv_sec < 20);
        pass_time(f);
        entry = find_listing(f, "", &is_new);
    }
    return entry;
}

static void add_a_file(const struct tree *tree)
{
    tree_write(tree, "root/new", "");
}

static void remove_a_file(const struct tree *tree)
{
    tree_remove_file(tree, "root/new");
}

static void rename_a_file(const struct tree *tree)
{
    tree_rename(tree, "root/a", "root/b");
}

static void a_listing_is_kept_while_the_names_do_not_change(void **state)
{
    static void (*const changes[])(const struct tree *) = { add_a_file, remove_a_file,
                                                            rename_a_file };
    struct fixture *f = *state;
    bool is_new;

    tree_write(&f->tree, "root/a", "");
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        const struct site_entry *entry = find_settled_listing(f);
        assert_ptr_equal(find_listing(f, "order=asc", &is_new), entry);
        assert_false(is_new);
        changes[i](&f->tree);
        assert_ptr_equal(find_listing(f, "", &is_new), entry);
        pass_time(f);
        (void)find_listing(f, "", &is_new);
        assert_true(is_new);
    }
}

static void each_form_and_order_has_its_own_listing(void **state)
{
    struct fixture *f = *state;
    bool is_new;
    (void)find_listing(f, "", &is_new);
    (void)find_listing(f, "order=desc", &is_new);
    assert_true(is_new);
    (void)find_listing(f, "sort=size", &is_new);
    assert_true(is_new);
    const struct site_listing_request page = { .path = SPAN("/"),
                                               .query = SPAN(""),
                                               .form = SITE_LISTING_HTML };
    struct site_entry *entry;
    assert_int_equal(query_listing(f, &page, true, &entry, &is_new), SITE_FILE);
    assert_true(is_new);
    assert_span_is(site_entry_type(entry), "text/html; charset=utf-8");
    site_cache_release(&entry->cache);
}

/* A change of a file leaves no trace in the folder, so only time brings the new size. */
static void the_sizes_in_a_listing_are_not_older_than_its_time(void **state)
{
    enum { ENTRIES = 1000 };
    struct fixture *f = *state;
    char path[64];
    bool is_new;

    for (int i = 0; i < ENTRIES; i++) {
        (void)snprintf(path, sizeof(path), "root/%d", i);
        tree_write(&f->tree, path, "");
    }
    struct site_entry *entry = find_settled_listing(f);
    const uint64_t rendered_ns = f->now_ns;
    tree_write(&f->tree, "root/7", "seven");
    f->now_ns += SITE_FRESH_NS;
    assert_ptr_equal(find_listing(f, "", &is_new), entry);
    site_cache_quiesce(f->reader);
    f->now_ns = rendered_ns + SITE_FRESH_NS + ENTRIES * SITE_LISTING_ENTRY_NS;
    entry = find_listing(f, "", &is_new);
    assert_true(is_new);
    assert_non_null(memmem(site_file_body(entry->plain), entry->plain->size,
                           "{\"name\":\"7\",\"type\":\"file\",\"size\":5,", 34));
}

static void the_entity_tag_follows_the_content(void **state)
{
    struct fixture *f = *state;
    bool is_new;
    char tag[64];

    tree_write(&f->tree, "root/a", "");
    struct span first = site_file_etag(find_listing(f, "", &is_new)->plain);
    (void)snprintf(tag, sizeof(tag), "%.*s", (int)first.len, first.at);
    assert_true(first.len > 2);
    add_a_file(&f->tree);
    pass_time(f);
    assert_false(span_equal(site_file_etag(find_listing(f, "", &is_new)->plain), span_text(tag)));
    remove_a_file(&f->tree);
    pass_time(f);
    assert_span_is(site_file_etag(find_listing(f, "", &is_new)->plain), tag);
}

static void without_permission_to_render_only_the_cache_answers(void **state)
{
    const struct site_listing_request request = { .path = SPAN("/"),
                                                  .query = SPAN(""),
                                                  .form = SITE_LISTING_JSON };
    struct fixture *f = *state;
    struct site_entry *entry, *found;
    bool is_new;

    tree_write(&f->tree, "root/a", "");
    assert_int_equal(query_listing(f, &request, false, &found, &is_new), SITE_BUSY);
    entry = find_settled_listing(f);
    assert_int_equal(query_listing(f, &request, false, &found, &is_new), SITE_FILE);
    assert_ptr_equal(found, entry);
    add_a_file(&f->tree);
    pass_time(f);
    assert_int_equal(query_listing(f, &request, false, &found, &is_new), SITE_BUSY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(puts_directories_first_and_names_in_natural_order),
        TEST(sorts_as_the_query_says),
        TEST(every_pair_of_random_names_is_in_natural_order),
        TEST(leaves_out_names_that_cannot_be_served),
        TEST(shows_the_type_of_each_entry),
        TEST(shows_the_readme_as_text),
        TEST(shows_the_beginning_of_a_long_readme),
        TEST(no_readme_leads_out_of_the_root),
        TEST(has_a_script_only_where_it_is_allowed),
        TEST(shows_times_of_every_century),
        TEST(shows_sizes_that_people_can_read),
        TEST(no_name_breaks_the_page_or_the_json),
        TEST(shows_the_way_back_up),
        TEST(column_heads_sort_and_reverse),
        TEST(refuses_what_is_not_a_directory_to_show),
        TEST(shows_the_first_names_and_says_how_many_are_left_out),
        TEST(a_listing_is_kept_while_the_names_do_not_change),
        TEST(each_form_and_order_has_its_own_listing),
        TEST(the_sizes_in_a_listing_are_not_older_than_its_time),
        TEST(the_entity_tag_follows_the_content),
        TEST(without_permission_to_render_only_the_cache_answers),
    };
    return cmocka_run_group_tests_name("site/listing", tests, NULL, NULL);
}
