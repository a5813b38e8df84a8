/* SPDX-License-Identifier: MIT
 *
 * `_headers` and `_redirects`: the rules that they become, and each line that cannot be used. The
 * lines are those that the documents of Netlify and Cloudflare Pages show as examples, and mistakes
 * in them.
 */
#include "config/sitefile.h"

#include "config/read.h"
#include "rules/rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

static char top[] = "/tmp/weir-sitefile-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return !mkdtemp(top) || chdir(top) < 0 || mkdir("site", 0755) < 0 ? -1 : 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink("weir.conf");
    rmdir("site");
    return chdir("/") < 0 ? -1 : rmdir(top);
}

/* A site with its files, and the rules that they become. */
struct world {
    struct config_store *store;
    struct config_arena arena;
    struct config_problems problems;
    const struct rules *rules;
};

static struct world make_world(const char *settings, struct span headers, struct span redirects)
{
    struct world w = { .rules = NULL };
    FILE *file = fopen("weir.conf", "we");
    assert_non_null(file);
    fprintf(file, "[site a]\nroot = site\nsite-rules = on\n%s", settings);
    fclose(file);
    w.store = config_read(&(struct config_request){ .file = "weir.conf" });
    config_read_print_problems(w.store, CONFIG_PROBLEMS_SHOWN, stderr);
    assert_int_equal(config_read_errors(w.store), 0);
    w.problems.arena = &w.arena;
    const struct config_sitefile first = { "_headers", headers };
    const struct config_sitefile second = { "_redirects", redirects };
    w.rules = config_sitefile_rules(&config_read_result(w.store)->sites[0], &first, &second,
                                    &w.arena, &w.problems);
    return w;
}

static void end_world(struct world *w)
{
    config_arena_done(&w->arena);
    config_read_free(w->store);
}

static struct world read_headers(const char *settings, const char *text)
{
    return make_world(settings, span_text(text), SPAN(""));
}

static struct world read_redirects(const char *text)
{
    return make_world("", SPAN(""), span_text(text));
}

/* The warnings of the files are these lines. */
static void assert_warnings(struct world *w, const char *expected)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    assert_non_null(out);
    for (const struct config_problem *p = w->problems.first; p; p = p->next)
        fprintf(out, "%u: %s\n", p->origin.line, p->text);
    fclose(out);
    size_t same = 0;
    while (text[same] && text[same] == expected[same])
        same++;
    if (strcmp(text, expected) != 0)
        fail_msg("`%.200s`, expected `%.200s`", text + same, expected + same);
    free(text);
}

static void assert_fields(const struct world *w, const char *path, bool is_error,
                          const char *expected)
{
    char bytes[2048];
    struct buf out = buf_over(bytes, sizeof(bytes));
    struct rules_match match;
    rules_find(w->rules, span_text(path), &match);
    rules_add_fields(w->rules, &match, is_error, &out);
    if (!span_equal(buf_span(&out), span_text(expected)))
        fail_msg("%s: `%.*s`, expected `%s`", path, (int)out.len, out.at, expected);
    assert_in_range(out.len, 0, rules_fields_most(w->rules));
}

/* `_redirects` makes this of a path and a query: "301! /new", "200 /file", "404 /page", or "-". */
static void assert_action(const struct world *w, const char *path, const char *query,
                          const char *expected)
{
    char bytes[2048];
    struct buf out = buf_over(bytes, sizeof(bytes));
    struct rules_match match;
    rules_find(w->rules, span_text(path), &match);
    const struct rules_rule *rule = match.actor;
    if (rule) {
        buf_add_u64(&out, rule->action == RULES_REWRITE ? 200 : rule->status);
        buf_add(&out, rule->if_absent ? SPAN(" ") : SPAN("! "));
        if (rule->action == RULES_REDIRECT)
            rules_target_add_location(&rule->target, &match.captures, query != NULL,
                                      query ? span_text(query) : SPAN(""), &out);
        else if (rule->target.text.len > 0)
            rules_target_add_path(&rule->target, &match.captures, &out);
    } else {
        buf_add_char(&out, '-');
    }
    if (!span_equal(buf_span(&out), span_text(expected)))
        fail_msg("%s: `%.*s`, expected `%s`", path, (int)out.len, out.at, expected);
}

/* ---- _redirects ---- */

static void redirects_are_followed_as_the_vendors_show(void **state)
{
    (void)state;
    struct world w =
        read_redirects("\xef\xbb\xbf# Redirects from what the browser requests to what we serve\r\n"
                       "/home              /\n"
                       "/blog/my-post.php  /blog/my-post\n"
                       "/news              /blog\n"
                       "/cuties            https://www.petsofnetlify.com\n"
                       "/authors/c%C3%A9line /authors/about-c%C3%A9line\n"
                       "\n"
                       "/home301 / 301  # a comment\n"
                       "/home302 / 302\n"
                       "/querystrings /?query=string 301\n"
                       "/twitch https://twitch.tv\n"
                       "/trailing /trailing/ 301\n"
                       "/notrailing/ /nottrailing 301\n"
                       "/page/ /page2/#fragment 301\n"
                       "/blog/* https://blog.my.domain/:splat\n"
                       "/products/:code/:name /products?code=:code&name=:name\n"
                       "/posts/:month/:date/:year/:slug  /archive/:year/:month/:date/:slug 308\n"
                       "/see /other 303\n"
                       "/form /other-form 307!\n");
    assert_warnings(&w, "");
    static const char *const rows[][3] = {
        { "/home", NULL, "302 /" },
        { "/home", "a=b", "302 /?a=b" },
        { "/blog/my-post.php", NULL, "302 /blog/my-post" },
        { "/cuties", "a", "302 https://www.petsofnetlify.com?a" },
        { "/authors/c\xc3\xa9line", NULL, "302 /authors/about-c%C3%A9line" },
        { "/authors/c%C3%A9line", NULL, "-" },
        { "/home301", NULL, "301 /" },
        { "/querystrings", "x=y", "301 /?query=string" },
        { "/twitch", NULL, "302 https://twitch.tv" },
        { "/trailing", NULL, "301 /trailing/" },
        { "/trailing/", NULL, "-" },
        { "/notrailing/", NULL, "301 /nottrailing" },
        { "/notrailing", NULL, "-" },
        { "/page/", NULL, "301 /page2/#fragment" },
        { "/blog/a/b", "q", "302 https://blog.my.domain/a/b?q" },
        { "/blog/", NULL, "302 https://blog.my.domain/" },
        { "/products/1 2/b&c", NULL, "302 /products?code=1%202&name=b%26c" },
        { "/products/1/", NULL, "-" },
        { "/posts/12/24/2020/eve", NULL, "308 /archive/2020/12/24/eve" },
        { "/see", NULL, "303 /other" },
        { "/form", NULL, "307! /other-form" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_action(&w, rows[i][0], rows[i][1], rows[i][2]);
    end_world(&w);
}

static void rewrites_and_errors_have_the_file_of_their_line(void **state)
{
    (void)state;
    struct world w = read_redirects("/pass-through /index.html 200\n"
                                    "/ecommerce /store-closed 404\n"
                                    "/gone/* 410!\n"
                                    "/login /go?to=https://a.example/ 302\n"
                                    "/en/* /en/404.html 404\n"
                                    "/a%20b/:x /in/:x%20y 200\n"
                                    "/app/* /app/index.html 200!\n"
                                    "/* /index.html 200\n");
    assert_warnings(&w, "");
    assert_action(&w, "/pass-through", NULL, "200 /index.html");
    assert_action(&w, "/ecommerce", NULL, "404 /store-closed");
    assert_action(&w, "/gone/x", NULL, "410! ");
    assert_action(&w, "/en/x", NULL, "404 /en/404.html");
    assert_action(&w, "/login", "q", "302 /go?to=https://a.example/");
    assert_action(&w, "/a b/c", NULL, "200 /in/c y");
    assert_action(&w, "/app/x/y", NULL, "200! /app/index.html");
    assert_action(&w, "/any/thing", NULL, "200 /index.html");
    end_world(&w);
}

static void the_first_line_decides_and_a_section_before_it(void **state)
{
    (void)state;
    struct world w = make_world("[path /a/*]\nstatus = 451\n[path /b/*]\nheader = X-B: 1\n",
                                SPAN(""),
                                SPAN("/a/x /one\n/b/x /two 301\n/b/* /three\n/b/y /never\n"));
    assert_action(&w, "/a/x", NULL, "451! ");
    assert_action(&w, "/b/x", NULL, "301 /two");
    assert_action(&w, "/b/y", NULL, "302 /three");
    assert_fields(&w, "/b/y", false, "X-B: 1\r\n");
    assert_action(&w, "/c", NULL, "-");
    end_world(&w);
}

static void reports_the_lines_of_redirects_that_cannot_be_used(void **state)
{
    (void)state;
    struct world w = read_redirects("/api/*  https://api.example.com/:splat 200\n"
                                    "http://blog.example.com/*  https://www.example.com/ 301!\n"
                                    "/  /china   302  Country=cn,hk,tw\n"
                                    "/china/*  /china/zh-cn/:splat  302  Language=zh\n"
                                    "/admin/* 200! Role=admin\n"
                                    "/articles id=:id tag=:tag /posts/:tag/:id 301\n"
                                    "/good /target\n"
                                    "/alone\n"
                                    "word /x\n"
                                    "/a /b 999\n"
                                    "/a /b 302 /c\n"
                                    "/a //evil.example/ 301\n"
                                    "/a/* https://:splat/ 301\n"
                                    "/a/:x https://:x.example/ 301\n"
                                    "/a/*/b /c/:splat\n"
                                    "/a/*/*  /c\n"
                                    "/a/:x /c/:y\n"
                                    "/a/:x/:x /c\n"
                                    "/a /b/*\n"
                                    "/a/../b /c\n"
                                    "/a?x=1 /c\n"
                                    "/a%2Fb /c\n"
                                    "/* /new/:splat 301!\n"
                                    "/a /b?x=1 200\n"
                                    "/a\\ /b\\c 301\n");
    assert_warnings(
        &w,
        "1: `https://api.example.com/:splat` is another server, and weir fetches no answers from "
        "there; a redirect, such as 302, can lead to it\n"
        "2: `http://blog.example.com/*` names a host, and rules for one host are not supported; "
        "write a [site] for it in weir.conf\n"
        "3: `Country=cn,hk,tw` is a condition, and conditions are not supported; the line holds "
        "for no request\n"
        "4: `Language=zh` is a condition, and conditions are not supported; the line holds for no "
        "request\n"
        "5: `Role=admin` is a condition, and conditions are not supported; the line holds for no "
        "request\n"
        "6: `id=:id` is a condition, and conditions are not supported; the line holds for no "
        "request\n"
        "8: `/alone` has no target behind it\n"
        "9: `word` does not begin with a slash\n"
        "10: `999` is no status of a redirect; write 200, 301, 302, 303, 307, 308, 404 or 410\n"
        "11: `/c` is neither a path, a URL nor a status at this place of the line\n"
        "12: the target `//evil.example/` names another host; write https:// before it, or one "
        "slash for a path\n"
        "13: the target `https://:splat/` is neither a path nor a URL; write /new or "
        "https://example.org/new\n"
        "14: the target `https://:x.example/` is neither a path nor a URL; write /new or "
        "https://example.org/new\n"
        "15: the target `/c/:splat` uses :splat, and the path does not end with a segment `*`\n"
        "16: the path `/a/*/*` has more than one `*`\n"
        "17: the target `/c/:y` uses :y, and the path has no such placeholder\n"
        "18: the path `/a/:x/:x` has two placeholders of the same name\n"
        "19: the target `/b/*` has a `*`; write :splat for what the `*` of the path covers\n"
        "20: the path `/a/../b` has a segment `.` or `..`, which no path has\n"
        "21: the path `/a?x=1` has a query or a fragment; rules are for paths alone\n"
        "22: the path `/a%2Fb` has an escaped slash or star, which no path of a rule has\n"
        "23: the path also covers the target, so a client that follows is redirected again, "
        "without end\n"
        "24: the target `/b?x=1` has a query; a rewrite leads to a file\n"
        "25: the target `/b\\c` has a backslash, which browsers take for a slash; write %5C\n");
    assert_int_equal(w.rules->list_count, 1);
    assert_action(&w, "/good", NULL, "302 /target");
    assert_action(&w, "/a", NULL, "-");
    end_world(&w);
}

static void a_forced_redirect_may_lead_to_an_earlier_line(void **state)
{
    (void)state;
    struct world w = read_redirects("/en/* /en/:splat 200!\n/* /en/:splat 302!\n");
    assert_warnings(&w, "");
    assert_action(&w, "/x", NULL, "302! /en/x");
    assert_action(&w, "/en/x", NULL, "200! /en/x");
    end_world(&w);
}

static void no_path_chooses_the_host_of_a_redirect(void **state)
{
    (void)state;
    struct world w =
        read_redirects("/go/* /:splat\n/at/:x /:x/\n/out/* https://a.example/:splat\n");
    assert_warnings(&w, "");
    assert_action(&w, "/go//evil.example", NULL, "302 /evil.example");
    assert_action(&w, "/go/\\evil.example", NULL, "302 /%5Cevil.example");
    assert_action(&w, "/at/\\evil.example", NULL, "302 /%5Cevil.example/");
    assert_action(&w, "/out/@evil.example", NULL, "302 https://a.example/@evil.example");
    assert_action(&w, "/go/a\r\nX: y", NULL, "302 /a%0D%0AX:%20y");
    end_world(&w);
}

/* ---- _headers ---- */

static void headers_are_added_as_the_vendors_show(void **state)
{
    (void)state;
    struct world w = read_headers("", "# This is a comment\n"
                                      "/secure/page\n"
                                      "  X-Frame-Options: DENY\n"
                                      "  X-Content-Type-Options: nosniff\n"
                                      "  Referrer-Policy: no-referrer\n"
                                      "\n"
                                      "/static/*\n"
                                      "  Access-Control-Allow-Origin: *\n"
                                      "  X-Robots-Tag: nosnippet\n"
                                      "\n"
                                      "/templates/*\n"
                                      "\tCache-Control: max-age=0\n"
                                      "\tCache-Control: no-cache\n"
                                      "\tCache-Control: no-store\n"
                                      "\tCache-Control: must-revalidate\n"
                                      "/cookies\n"
                                      "  Set-Cookie: a=1\n"
                                      "  set-cookie: b=2\n"
                                      "/movies/:title\n"
                                      "  X-Movie:https://movies.example/\n");
    assert_warnings(&w, "");
    assert_fields(&w, "/secure/page", false,
                  "X-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n");
    assert_fields(&w, "/secure/page/", false, "");
    assert_fields(&w, "/static/image.jpg", false,
                  "Access-Control-Allow-Origin: *\r\nX-Robots-Tag: nosnippet\r\n");
    assert_fields(&w, "/templates/a/b", false,
                  "Cache-Control: max-age=0, no-cache, no-store, must-revalidate\r\n");
    assert_fields(&w, "/movies/x", false, "X-Movie: https://movies.example/\r\n");
    assert_fields(&w, "/movies/", false, "");
    assert_fields(&w, "/cookies", false, "Set-Cookie: a=1\r\nset-cookie: b=2\r\n");
    end_world(&w);
}

static void all_blocks_apply_and_an_exclamation_mark_removes(void **state)
{
    (void)state;
    struct world w = read_headers("", "/*\n"
                                      "  Content-Security-Policy: default-src 'self';\n"
                                      "  X-Robots-Tag: noindex\n"
                                      "  X-Same: one\n"
                                      "/*.jpg\n"
                                      "  X-Picture: yes\n"
                                      "  ! Content-Security-Policy\n"
                                      "  X-Same: one\n"
                                      "/static/*\n"
                                      "  X-Robots-Tag: nosnippet\n"
                                      "  ! X-Picture\n"
                                      "  X-Picture: static\n");
    assert_warnings(&w, "");
    assert_fields(&w, "/a", false,
                  "Content-Security-Policy: default-src 'self';\r\nX-Robots-Tag: noindex\r\n"
                  "X-Same: one\r\n");
    assert_fields(&w, "/a.jpg", false,
                  "X-Robots-Tag: noindex\r\nX-Picture: yes\r\nX-Same: one\r\n");
    assert_fields(&w, "/static/b/c.jpg", false,
                  "X-Robots-Tag: noindex, nosnippet\r\nX-Same: one\r\nX-Picture: static\r\n");
    end_world(&w);
}

static void weir_conf_is_above_the_file_and_the_site_below(void **state)
{
    (void)state;
    struct world w = read_headers("header = X-Site: conf\nheader = X-Kept: conf\n"
                                  "[path /a]\nheader = X-Path: conf\nheader = -X-File\n",
                                  "/*\n  X-Site: file\n  X-Path: file\n  X-File: file\n");
    assert_fields(&w, "/", false,
                  "X-Kept: conf\r\nX-Site: file\r\nX-Path: file\r\nX-File: file\r\n");
    assert_fields(&w, "/a", false, "X-Kept: conf\r\nX-Site: file\r\nX-Path: conf\r\n");
    end_world(&w);
}

static void an_error_has_no_lifetime_of_the_file(void **state)
{
    (void)state;
    struct world w = read_headers(
        "", "/*\n  Cache-Control: public, max-age=31536000\n  X-Frame-Options: DENY\n");
    assert_fields(&w, "/x", true, "X-Frame-Options: DENY\r\n");
    assert_fields(&w, "/x", false,
                  "Cache-Control: public, max-age=31536000\r\nX-Frame-Options: DENY\r\n");
    end_world(&w);
}

static void a_star_covers_what_the_vendors_say(void **state)
{
    (void)state;
    struct world w = read_headers("", "/*.css\n X-Css: 1\n"
                                      "/pre*\n X-Pre: 1\n"
                                      "/a/*/z\n X-Mid: 1\n");
    assert_warnings(&w, "");
    assert_fields(&w, "/x.css", false, "X-Css: 1\r\n");
    assert_fields(&w, "/d/e/x.css", false, "X-Css: 1\r\n");
    assert_fields(&w, "/pre", false, "X-Pre: 1\r\n");
    assert_fields(&w, "/prefix/a/b", false, "X-Pre: 1\r\n");
    assert_fields(&w, "/a/b/z", false, "X-Mid: 1\r\n");
    assert_fields(&w, "/a/b/c/z", false, "X-Mid: 1\r\n");
    assert_fields(&w, "/a/z", false, "");
    end_world(&w);
}

static void reports_the_lines_of_headers_that_cannot_be_used(void **state)
{
    (void)state;
    struct world w = read_headers("", "X-Early: 1\n"
                                      "https://myproject.pages.dev/*\n"
                                      "  X-Robots-Tag: noindex\n"
                                      "/movies/:title\n"
                                      "  x-movie-name: You are watching \":title\"\n"
                                      "/secret\n"
                                      "  Basic-Auth: someuser:somepassword\n"
                                      "/empty\n"
                                      "/page\n"
                                      "  Content-Type: text/x\n"
                                      "  no colon here\n"
                                      "  X-Good: 1\n"
                                      "  Server: x\n"
                                      "  ! X-A: b\n"
                                      "/two words\n"
                                      "/x*y/z\n"
                                      "  X-Z: 1\n");
    assert_warnings(
        &w,
        "1: there is no path above this line; a path begins with a slash\n"
        "2: a path of one host is not supported; begin with the slash, and the lines hold for "
        "every host of the site\n"
        "5: `:title` in a value is not supported\n"
        "7: passwords in this file are not supported, and the line is not sent; use the setting "
        "`auth` of weir.conf\n"
        "8: there is no header line below this path\n"
        "10: weir itself sends Content-Type where it applies; remove this line\n"
        "11: `no colon here` has no colon; write Name: value\n"
        "13: use the setting `server-header` for the field Server\n"
        "14: a line with `!` has the name of a field alone\n"
        "15: the path has a space; write %20\n"
        "16: the path `/x*y/z` has a `*` where none is supported; it can be at the end, a whole "
        "segment, or at the beginning of the last segment\n");
    assert_fields(&w, "/page", false, "X-Good: 1\r\n");
    assert_fields(&w, "/secret", false, "");
    end_world(&w);
}

/* ---- limits ---- */

static void an_answer_has_space_for_the_lines_of_every_path(void **state)
{
    (void)state;
    static char text[64 * 1024];
    size_t len = 0;
    for (int i = 0; i < 20; i++) /* of these, one path has one */
        len += (size_t)snprintf(text + len, sizeof(text) - len, "/d%c/*\n X-Long: %01000d\n",
                                'a' + i, 0);
    (void)snprintf(text + len, sizeof(text) - len,
                   "/*\n X-A: %01500d\n/da/*\n X-B: %01500d\n/db\n X-C: 1\n/dc/x\n X-D: %01990d\n",
                   0, 0, 0);
    struct world w = read_headers("", text);
    assert_warnings(&w, "47: the header lines can add more than 4096 bytes to an answer; the lines "
                        "below this path are not used\n");
    assert_int_equal(w.rules->count, 1 + 20 + 3);
    assert_in_range(rules_fields_most(w.rules), 4001, 4096);
    end_world(&w);
}

static void limits_the_lines_the_paths_and_the_redirects(void **state)
{
    (void)state;
    static char headers[256 * 1024], redirects[256 * 1024];
    size_t len = 0;
    for (int i = 0; i <= CONFIG_SITEFILE_BLOCKS_MAX; i++)
        len += (size_t)snprintf(headers + len, sizeof(headers) - len, "/%d\n X: 1\n", i);
    len = (size_t)snprintf(redirects, sizeof(redirects), "/long /%02000d\n", 0);
    for (int i = 0; i <= CONFIG_SITEFILE_REDIRECTS_MAX; i++)
        len += (size_t)snprintf(redirects + len, sizeof(redirects) - len, "/%d /to/%d 301\n", i, i);
    struct world w = make_world("", span_text(headers), span_text(redirects));
    assert_warnings(&w, "201: there are too many paths; the lines below this one are not used\n"
                        "1: the line has more than 2000 bytes\n"
                        "2102: there are more than 2100 redirects; this one is not used\n");
    assert_int_equal(w.rules->count, 1 + CONFIG_SITEFILE_BLOCKS_MAX);
    assert_int_equal(w.rules->list_count, CONFIG_SITEFILE_REDIRECTS_MAX);
    assert_action(&w, "/2099", NULL, "301 /to/2099");
    end_world(&w);
}

static void counts_further_warnings_without_a_text(void **state)
{
    (void)state;
    static char text[4096];
    size_t len = 0;
    for (int i = 0; i < 2 * CONFIG_SITEFILE_SHOWN; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "bad %d\n", i);
    struct world w = read_redirects(text);
    unsigned shown = 0;
    for (const struct config_problem *p = w.problems.first; p; p = p->next)
        shown++;
    assert_int_equal(shown, CONFIG_SITEFILE_SHOWN);
    assert_int_equal(w.problems.warning_count, 2 * CONFIG_SITEFILE_SHOWN);
    end_world(&w);
}

static void a_site_without_files_has_the_rules_of_weir_conf(void **state)
{
    (void)state;
    struct world w = read_headers("header = X-Site: conf\n", "");
    assert_warnings(&w, "");
    assert_int_equal(w.rules->count, 1);
    assert_int_equal(w.rules->list_count, 0);
    assert_fields(&w, "/x", false, "X-Site: conf\r\n");
    end_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(redirects_are_followed_as_the_vendors_show),
        cmocka_unit_test(rewrites_and_errors_have_the_file_of_their_line),
        cmocka_unit_test(the_first_line_decides_and_a_section_before_it),
        cmocka_unit_test(reports_the_lines_of_redirects_that_cannot_be_used),
        cmocka_unit_test(a_forced_redirect_may_lead_to_an_earlier_line),
        cmocka_unit_test(no_path_chooses_the_host_of_a_redirect),
        cmocka_unit_test(headers_are_added_as_the_vendors_show),
        cmocka_unit_test(all_blocks_apply_and_an_exclamation_mark_removes),
        cmocka_unit_test(weir_conf_is_above_the_file_and_the_site_below),
        cmocka_unit_test(an_error_has_no_lifetime_of_the_file),
        cmocka_unit_test(a_star_covers_what_the_vendors_say),
        cmocka_unit_test(reports_the_lines_of_headers_that_cannot_be_used),
        cmocka_unit_test(an_answer_has_space_for_the_lines_of_every_path),
        cmocka_unit_test(limits_the_lines_the_paths_and_the_redirects),
        cmocka_unit_test(counts_further_warnings_without_a_text),
        cmocka_unit_test(a_site_without_files_has_the_rules_of_weir_conf),
    };
    return cmocka_run_group_tests_name("config/sitefile", tests, make_folder, remove_folder);
}
