/* SPDX-License-Identifier: MIT
 *
 * Sections [path PATTERN] in whole configurations: the rules that are made of them, and every
 * problem with its line.
 */
#include "rules/rules.h"
#include "unit/config/folder.h"

static void assert_field(const struct rules_field *field, const char *name, const char *line,
                         bool on_errors)
{
    assert_true(span_equal(field->name, span_text(name)));
    assert_true(span_equal(field->line, span_text(line)));
    assert_int_equal(field->on_errors, on_errors);
}

static void makes_rules_of_the_site_and_its_paths_in_order(void **state)
{
    (void)state;
    struct config_store *store =
        read_text(SITE "header = X-Own: 1\nheader = Cache-Control: max-age=60\n"
                       "[path /a/*]\nheader = X-Own:  2 \nheader = -X-Gone\n"
                       "cache-control = No-Store\nalways = on\n"
                       "[path /old/**]\nredirect = 308   https://b.example/*?x\n"
                       "[path /app/**]\nrewrite = /index.html\n"
                       "[path /gone]\nstatus = 410\n"
                       "[site b]\nhost = b.example\nroot = site\nheader = X-Own: 1\n");
    assert_int_equal(config_read_errors(store), 0);
    const struct config *config = config_read_result(store);
    const struct config_site *site = &config->sites[0];
    assert_null(config->sites[1].rules);
    assert_int_equal(site->path_count, 4);
    assert_string_equal(site->paths[0].pattern, "/a/*");
    assert_string_equal(site->paths[0].origin, "weir.conf:5");
    assert_true(site->paths[0].path_always);
    const struct rules *rules = site->rules;
    assert_int_equal(rules->count, 5);
    assert_null(rules->rule[0].origin);
    assert_int_equal(rules->rule[0].field_count, 2);
    assert_field(&rules->rule[0].fields[0], "X-Own", "X-Own: 1\r\n", true);
    assert_field(&rules->rule[0].fields[1], "Cache-Control", "Cache-Control: max-age=60\r\n",
                 false);
    assert_int_equal(rules->rule[0].listing, RULES_OFF);
    assert_int_equal(rules->rule[1].listing, RULES_UNSET);
    assert_string_equal(rules->rule[1].origin, "weir.conf:5");
    assert_int_equal(rules->rule[1].field_count, 3);
    assert_field(&rules->rule[1].fields[0], "X-Own", "X-Own: 2\r\n", true);
    assert_field(&rules->rule[1].fields[1], "X-Gone", "", true);
    assert_field(&rules->rule[1].fields[2], "Cache-Control", "Cache-Control: No-Store\r\n", true);
    assert_int_equal(rules->rule[1].action, RULES_SERVE);
    assert_int_equal(rules->rule[2].action, RULES_REDIRECT);
    assert_int_equal(rules->rule[2].status, 308);
    assert_true(span_equal(rules->rule[2].target.text, SPAN("https://b.example/*?x")));
    assert_int_equal(rules->rule[3].action, RULES_REWRITE);
    assert_int_equal(rules->rule[4].action, RULES_STATUS);
    assert_int_equal(rules->rule[4].status, 410);
    config_read_free(store);
}

static void a_site_whose_rules_answer_everything_needs_no_root(void **state)
{
    (void)state;
    struct config_store *store =
        read_text("[site a]\nlisting = on\n[path /**]\nredirect = 301 http://b.example/**\n"
                  "hidden = on\n[path /x/**]\nstatus = 410\n"
                  "[site b]\nhost = b.example\n[path /**]\nstatus = 503\n");
    assert_int_equal(config_read_errors(store), 0);
    assert_null(config_read_result(store)->sites[0].root);
    assert_int_equal(config_read_result(store)->sites[0].rules->count, 3);
    config_read_free(store);
    static const char missing[] =
        "weir.conf:1: error: [site a] has no root; write `root = /srv/www` or the like below it\n";
    assert_problems("[site a]\n[path /x/**]\nredirect = 301 http://b.example/**\n", missing);
    assert_problems("[site a]\n[path /**]\nheader = X-Own: 1\n", missing);
    assert_problems("[site a]\n[path /**]\nrewrite = /a.html\n", missing);
    assert_problems(
        "[site a]\nspa = a.html\n[path /**]\nstatus = 410\n[path /x]\nrewrite = /a.html\n",
        "weir.conf:2: error: spa: `a.html` needs a file, and [site a] has no root; write `root = "
        "/srv/www` or the like below the heading of the site\n"
        "weir.conf:6: error: rewrite: `/a.html` needs a file, and [site a] has no root; write "
        "`root = /srv/www` or the like below the heading of the site\n");
    assert_problems("[site a]\nsite-rules = on\n[path /**]\nstatus = 410\n",
                    "weir.conf:2: error: site-rules: `on` needs a file, and [site a] has no root; "
                    "write `root = /srv/www` or the like below the heading of the site\n");
}

static void a_path_belongs_to_the_site_before_it(void **state)
{
    (void)state;
    assert_problems("[path /a]\nstatus = 410\n" SITE "[server]\n[path /b]\nstatus = 410\n"
                    "[site]\n[path bad]\n",
                    "weir.conf:1: error: [path /a] belongs to no site; a path stands below its "
                    "[site NAME]\n"
                    "weir.conf:6: error: [path /b] belongs to no site; a path stands below its "
                    "[site NAME]\n"
                    "weir.conf:8: error: a site needs a name, as in [site docs]\n"
                    "weir.conf:9: error: [path bad]: the pattern does not begin with a slash; for "
                    "any folder write `/**/` before the name\n");
}

static void reports_patterns_that_cover_nothing(void **state)
{
    (void)state;
    assert_problems(
        SITE "[path]\nstatus = 410\n[path *.css]\n[path /a//b]\nnonsense = 1\n"
             "[path /x]\nstatus = 410\n[path /x]\n"
             "[path /%41]\nstatus = 410\n[path /y?z]\nstatus = 410\n"
             "[path /empty]\n[pth /z]\n",
        "weir.conf:11: warning: [path /%41]: paths are decoded before they are matched; write the "
        "character in place of `%41`\n"
        "weir.conf:13: warning: [path /y?z]: a pattern is matched against the path without the "
        "query; this `?` is a byte of the path\n"
        "weir.conf:3: error: [path ]: the pattern is missing; write one, such as `/folder/**`\n"
        "weir.conf:5: error: [path *.css]: the pattern does not begin with a slash; for any folder "
        "write `/**/` before the name\n"
        "weir.conf:6: error: [path /a//b]: the pattern has two slashes side by side, which no path "
        "has\n"
        "weir.conf:7: error: unknown setting `nonsense`; a path has none like it\n"
        "weir.conf:10: error: [path /x] is there twice in [site a] (first on line 8)\n"
        "weir.conf:16: error: unknown section [pth /z]; did you mean [path PATTERN]?\n");
}

static void a_section_can_turn_listings_on_and_off(void **state)
{
    (void)state;
    struct config_store *store = read_text(SITE "listing = on\n[path /a]\nlisting = off\n"
                                                "[path /b]\nlisting = on\n");
    assert_int_equal(config_read_errors(store) + config_read_warnings(store), 0);
    const struct rules_rule *rule = config_read_result(store)->sites[0].rules->rule;
    assert_int_equal(rule[0].listing, RULES_ON);
    assert_int_equal(rule[1].listing, RULES_OFF);
    assert_int_equal(rule[2].listing, RULES_ON);
    config_read_free(store);
}

static void a_section_can_say_which_files_answer(void **state)
{
    (void)state;
    struct config_store *store =
        read_text(SITE "spa = index.html\n[path /a/**]\nindex = a.html, b.html\nspa = off\n"
                       "[path /b/**]\nspa = /index.html\nhidden = on\n"
                       "[path /c/**]\nhidden = off\n");
    char *problems = problems_of(store);
    assert_string_equal(problems, "");
    free(problems);
    const struct rules *rules = config_read_result(store)->sites[0].rules;
    const struct rules_rule *rule = rules->rule;
    assert_null(rule[0].index);
    assert_null(rule[0].fallback);
    assert_string_equal(rule[1].index[1], "b.html");
    assert_string_equal(rule[1].fallback, "");
    assert_string_equal(rule[2].fallback, "index.html");
    assert_int_equal(rule[1].hidden, RULES_UNSET);
    assert_int_equal(rule[2].hidden, RULES_ON);
    assert_int_equal(rule[3].hidden, RULES_OFF);
    struct rules_match match;
    rules_find(rules, SPAN("/b/x"), &match);
    assert_null(match.index);
    assert_string_equal(match.fallback, "index.html");
    assert_int_equal(match.hidden, RULES_ON);
    config_read_free(store);
    mkdir("site/.git", 0755);
    assert_problems(
        SITE "[path /a/**]\nspa = none.html\nhidden = on\n[path /b/**]\nspa = folder\n"
             "[path /**/.git/**]\nhidden = on\nindex = a/b\n",
        "weir.conf:9: warning: hidden: this setting also serves site/.git\n"
        "weir.conf:4: error: spa: `site/none.html` cannot be served: there is no such file\n"
        "weir.conf:7: error: spa: `site/folder` is not a file\n"
        "weir.conf:10: error: index: `a/b` has a slash; an index file is a name alone, "
        "looked for in each folder\n");
    rmdir("site/.git");
}

static void a_section_can_have_pages_of_errors(void **state)
{
    (void)state;
    mkdir("site/folder/below", 0755);
    struct config_store *store = read_text(SITE "error-pages = site\n"
                                                "[path /a/**]\nerror-pages = site/folder\n"
                                                "[path /a/b/**]\nerror-pages = site/folder/below\n"
                                                "[path /c/**]\nerror-pages = site/folder\n");
    char *problems = problems_of(store);
    assert_string_equal(problems, "");
    free(problems);
    const struct config_site *site = &config_read_result(store)->sites[0];
    assert_string_equal(site->error_folders[0], "site/folder");
    assert_string_equal(site->error_folders[1], "site/folder/below");
    assert_null(site->error_folders[2]);
    static const struct {
        const char *path;
        unsigned section, folder;
    } rows[] = { { "/a/x", 1, 1 }, { "/a/b/x", 2, 2 }, { "/c/x", 3, 1 } };
    struct rules_match match;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        rules_find(site->rules, span_text(rows[i].path), &match);
        assert_ptr_equal(match.pages, &site->rules->rule[rows[i].section]);
        assert_int_equal(match.pages->error_folder, rows[i].folder);
    }
    rules_find(site->rules, SPAN("/x"), &match);
    assert_null(match.pages);
    char origin[CONFIG_ORIGIN_MAX];
    config_read_site_origin(store, 0, SETTING_path_error_pages, 1, origin);
    assert_string_equal(origin, "weir.conf:7");
    config_read_free(store);
    rmdir("site/folder/below");
    assert_problems(SITE "[path /a/**]\nerror-pages = nowhere\n"
                         "[path /b/**]\nerror-pages = site/index.html\n",
                    "weir.conf:4: error: error-pages: `nowhere` cannot be served: there is no such "
                    "folder\n"
                    "weir.conf:6: error: error-pages: `site/index.html` is a file; name its "
                    "folder\n");
}

static void assert_line(const struct rules_rule *rule, const char *line)
{
    assert_int_equal(rule->dictionary, RULES_ON);
    assert_true(span_equal(rule->dictionary_line, span_text(line)));
}

static void a_section_can_turn_dictionaries_on_and_off(void **state)
{
    (void)state;
    struct config_store *store =
        read_text(SITE "[path /a/app.*.js]\ndictionary = on\n[path /b/**/*d/c*]\ndictionary = on\n"
                       "[path /a/b/**]\ndictionary = off\n[path /a/c/**]\nlisting = on\n");
    const struct rules_rule *rule = config_read_result(store)->sites[0].rules->rule;
    assert_int_equal(config_read_errors(store), 0);
    assert_int_equal(rule[0].dictionary, RULES_UNSET);
    assert_line(&rule[1], "Use-As-Dictionary: match=\"/a/app.*.js\"\r\n");
    assert_line(&rule[2], "Use-As-Dictionary: match=\"/b/*/*d/c*\"\r\n");
    assert_int_equal(rule[3].dictionary, RULES_OFF);
    assert_int_equal(rule[4].dictionary, RULES_UNSET);
    config_read_free(store);
}

static void refuses_dictionaries_with_patterns_that_browsers_read_in_another_way(void **state)
{
    (void)state;
    static const char *const patterns[] = { "/a:b", "/a(b)", "/{a}", "/a#b", "/a+", "/\xc3\xa4" };
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        char text[256], expected[512];
        (void)snprintf(text, sizeof(text), SITE "[path %s]\ndictionary = on\n", patterns[i]);
        (void)snprintf(expected, sizeof(expected),
                       "weir.conf:4: error: dictionary: browsers read a character of the pattern "
                       "`%s` in another way. Letters, digits and - . _ ~ ! $ & ' , ; = @ / * are "
                       "possible\n",
                       patterns[i]);
        struct config_store *store = read_text(text);
        char *problems = problems_of(store);
        if (!strstr(problems, expected))
            fail_msg("%s: %s", patterns[i], problems);
        free(problems);
        config_read_free(store);
    }
}

static void a_section_can_need_a_password_or_none(void **state)
{
    (void)state;
    struct config_store *store =
        read_text(SITE "auth = one.users\n[path /a/**]\nauth = two.users\nauth-realm = A\n"
                       "[path /a/b/**]\nauth = off\ncache-control = public\n"
                       "[path /c]\nlisting = on\n");
    char *problems = problems_of(store);
    assert_string_equal(problems, "");
    free(problems);
    const struct config_site *site = &config_read_result(store)->sites[0];
    const struct rules_rule *rule = site->rules->rule;
    static const enum rules_choice expected[] = { RULES_ON, RULES_ON, RULES_OFF, RULES_UNSET };
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(rule[i].auth, expected[i]);
        assert_int_equal(rule[i].number, i);
    }
    assert_string_equal(site->paths[0].path_auth, "two.users");
    assert_string_equal(site->paths[0].path_auth_realm, "A");
    assert_string_equal(site->paths[1].path_auth, "off");
    assert_null(site->paths[2].path_auth);
    config_read_free(store);
}

static void a_section_can_limit_the_requests_of_an_address(void **state)
{
    (void)state;
    struct config_store *store = read_text(
        SITE "[path /a]\naddress-request-rate = 5\n[path /b]\naddress-request-rate = 30/m\n"
             "[path /c]\naddress-request-rate = 100/h\naddress-request-burst = 7\n"
             "[path /d]\naddress-request-rate = 0\n[path /e]\naddress-request-rate = 1/m\n");
    char *problems = problems_of(store);
    assert_string_equal(problems, "");
    free(problems);
    const struct rules_rule *rule = config_read_result(store)->sites[0].rules->rule;
    static const struct rules_rate expected[] = {
        { NULL, 0, 0 },
        { "5", DURATION_SECOND / 5, 50 },
        { "30/m", 2 * DURATION_SECOND, 5 },
        { "100/h", 36 * DURATION_SECOND, 7 },
        { "0", 0, 0 },
        { "1/m", 60 * DURATION_SECOND, 1 },
    };
    for (unsigned i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        assert_int_equal(rule[i].rate.interval_ns, expected[i].interval_ns);
        assert_int_equal(rule[i].rate.burst, expected[i].burst);
        assert_int_equal(rule[i].rate.text != NULL, expected[i].text != NULL);
        if (expected[i].text)
            assert_string_equal(rule[i].rate.text, expected[i].text);
    }
    config_read_free(store);
}

static void reports_limits_that_cannot_work(void **state)
{
    (void)state;
    static const char *const rates[] = { "5/d", "/m", "5/", "-1", "1.5", "1000001", "off" };
    for (unsigned i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        char text[256], expected[256];
        (void)snprintf(text, sizeof(text), SITE "[path /a]\naddress-request-rate = %s\n", rates[i]);
        (void)snprintf(expected, sizeof(expected),
                       "weir.conf:4: error: address-request-rate: `%s` is not a rate up to 1000000 "
                       "per second; write 5 (per second), 30/m, 100/h, or 0 for no limit\n",
                       rates[i]);
        assert_problems(text, expected);
    }
    assert_problems(SITE "[path /a]\naddress-request-burst = 5\nstatus = 410\n",
                    "weir.conf:4: error: address-request-burst: the section has no "
                    "`address-request-rate` that limits\n");
    assert_problems("[server]\naddress-request-rate = 2\n" SITE
                    "[path /a]\naddress-request-rate = 200/m\n",
                    "weir.conf:6: warning: address-request-rate: `200/m` is more than the 2 per "
                    "second of [server], which holds first\n");
}

/* A later section never takes the effect of an earlier one without a message. */
static void reports_passwords_that_a_later_section_replaces(void **state)
{
    (void)state;
    assert_problems(SITE "auth = one.users\n[path /**]\nauth = two.users\n",
                    "weir.conf:5: error: auth: this section covers every path, so the `auth` of "
                    "the site has no effect; remove one of them\n");
    assert_problems(SITE "[path /a/b/**]\nauth = one.users\n[path /a/**]\nauth = off\n",
                    "weir.conf:6: error: auth: this section covers all paths of [path /a/b/**] "
                    "(line 3), so the `auth` there has no effect; move this section before it\n");
    assert_problems(SITE "[path /a/b/**]\nauth = one.users\n[path /a/**]\nauth = two.users\n",
                    "weir.conf:6: error: auth: this section covers all paths of [path /a/b/**] "
                    "(line 3), so the `auth` there has no effect; move this section before it\n");
    assert_problems(SITE "[path /a/**]\nauth = one.users\n[path /**/*.css]\nauth = off\n",
                    "weir.conf:6: warning: auth: [path /a/**] (line 3) covers some of the same "
                    "paths; for them the `auth` of this section holds, because it is later\n");
    assert_problems(SITE "[path /a/**]\nauth = one.users\n[path /a/b/**]\nauth = two.users\n"
                         "[path /a/c/**]\nauth = off\n[path /**/x]\nauth = one.users\n"
                         "[path /d/**]\nauth = one.users\n",
                    "weir.conf:10: warning: auth: [path /a/b/**] (line 5) covers some of the same "
                    "paths; for them the `auth` of this section holds, because it is later\n"
                    "weir.conf:10: warning: auth: [path /a/c/**] (line 7) covers some of the same "
                    "paths; for them the `auth` of this section holds, because it is later\n");
}

static void reports_passwords_without_effect(void **state)
{
    (void)state;
    assert_problems(SITE "[path /a/**]\nauth = off\n[path /b/**]\nauth = one.users\n",
                    "weir.conf:4: warning: auth: this has no effect: no earlier section gives "
                    "these paths a password\n");
    assert_problems(SITE "[path /a]\nauth-realm = A\nstatus = 410\n",
                    "weir.conf:4: warning: auth-realm: this has no effect: the section has no "
                    "`auth` with a file\n");
    assert_problems(SITE "[path /folder]\nauth = one.users\n[path /folder/]\nauth = one.users\n"
                         "[path /folder/**]\nauth = two.users\n",
                    "weir.conf:4: warning: auth: `/folder` is a folder, and the pattern covers its "
                    "name alone; write [path /folder/**] for its files\n"
                    "weir.conf:6: warning: auth: `/folder/` is a folder, and the pattern covers "
                    "its name alone; write [path /folder/**] for its files\n"
                    "weir.conf:8: error: auth: this section covers all paths of [path /folder] "
                    "(line 3), so the `auth` there has no effect; move this section before it\n"
                    "weir.conf:8: error: auth: this section covers all paths of [path /folder/] "
                    "(line 5), so the `auth` there has no effect; move this section before it\n");
}

static void refuses_public_answers_where_a_password_is_needed(void **state)
{
    (void)state;
    assert_problems(
        SITE "header = Cache-Control: public\n[path /a/**]\nauth = one.users\n"
             "cache-control = public\n[path /a/b/*]\nheader = CDN-Cache-Control: max-age=9\n"
             "[path /**/*.css]\ncache-control = public, max-age=9\n"
             "[path /a/open/**]\nauth = off\ncache-control = public\n",
        "weir.conf:6: error: cache-control: shared caches would keep answers that need a password "
        "(`auth`); remove this line\n"
        "weir.conf:8: error: header: shared caches would keep answers that need a password "
        "(`auth`); remove this line\n");
    assert_problems(SITE "[path /a/**]\nauth = none.users\n[path /b/**]\nauth = site/index.html\n"
                         "[path /c]\nauth =\n",
                    "weir.conf:6: warning: auth: every user of this machine can read the hashes in "
                    "`site/index.html`; run: chmod o-r site/index.html\n"
                    "weir.conf:4: error: auth: `none.users` cannot be read: there is no such file; "
                    "`weir password NAME` makes a line of one\n"
                    "weir.conf:6: error: auth: `site/index.html` is inside the root of [site a], "
                    "so clients could read the hashes; move it elsewhere\n"
                    "weir.conf:8: error: auth: a value is missing\n");
}

static void warns_of_a_section_without_settings(void **state)
{
    (void)state;
    assert_problems(SITE "[path /a]\n[path /b]\nalways = on\n[path /c]\nstatus = 410\n",
                    "weir.conf:3: warning: [path /a] changes nothing: it has no field, network or "
                    "action\n"
                    "weir.conf:4: warning: [path /b] changes nothing: it has no field, network or "
                    "action\n");
}

static void reports_settings_that_a_path_does_not_have(void **state)
{
    (void)state;
    assert_problems(
        SITE "rewrite = /x\n[path /x]\nroot = site\nworkers = 2\nredirct = 301 /y\n",
        "weir.conf:3: error: `rewrite` does not belong in a site; it goes under [path PATTERN]\n"
        "weir.conf:5: error: `root` does not belong in a path; it goes under [site NAME]\n"
        "weir.conf:6: error: `workers` does not belong in a path; it goes under [server]\n"
        "weir.conf:7: error: unknown setting `redirct`; did you mean `redirect`?\n");
}

static void reports_fields_that_weir_controls(void **state)
{
    (void)state;
    static const char *const names[] = {
        "Content-Length", "transfer-encoding", "Connection", "Content-Type", "ETag", "Location",
        "Date",           "Upgrade",           "Trailer"
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        static const char *const forms[] = { "header = %s: 1\n", "header = -%s\n" };
        for (size_t k = 0; k < 2; k++) {
            char text[256] = SITE "[path /x]\nstatus = 410\n";
            size_t len = strlen(text);
            snprintf(text + len, sizeof(text) - len, forms[k], names[i]);
            struct config_store *store = read_text(text);
            char *problems = problems_of(store);
            if (!strstr(problems, "weir.conf:5: error: header: weir itself sends "))
                fail_msg("%s gives %s", text, problems);
            free(problems);
            config_read_free(store);
        }
    }
    assert_problems(SITE "[path /x]\nstatus = 410\nheader = -Server\nheader = -X-A: 1\n"
                         "header = X-A\nheader = X-A: a\x01X-B: b\nheader = -a b\n",
                    "weir.conf:5: error: header: use the setting `server-header` for the field "
                    "Server\n"
                    "weir.conf:6: error: header: `-X-A: 1` removes a field, so it has no value; "
                    "write -Name\n"
                    "weir.conf:7: error: header: `X-A` has no colon; write Name: value\n"
                    "weir.conf:8: error: header: the value of `X-A` has a control byte, such as a "
                    "line break\n"
                    "weir.conf:9: error: header: `a b` is not a field name (letters, digits and - "
                    ", then directly the colon)\n");
}

static void reports_cache_directives_that_are_misspelt(void **state)
{
    (void)state;
    assert_problems(
        SITE "[path /a]\ncache-control = public, max-age=60, stale-if-error=5, x=\"a\"\n"
             "[path /b]\ncache-control = max-age\n"
             "[path /c]\ncache-control = public, maxage=60\n"
             "[path /d]\ncache-control = max-age=1y\n"
             "[path /e]\ncache-control = public max-age=60\n"
             "[path /f]\ncache-control = no-store\nheader = cache-control: private\n",
        "weir.conf:6: error: cache-control: `max-age` needs a number of seconds, as in "
        "max-age=3600\n"
        "weir.conf:8: error: cache-control: `maxage` is no directive; did you mean `max-age`?\n"
        "weir.conf:10: error: cache-control: `max-age=1y` needs a number of seconds, as in "
        "max-age=3600\n"
        "weir.conf:12: error: cache-control: `public max-age=60` is not a directive; write "
        "directives as in public, max-age=3600\n"
        "weir.conf:14: error: cache-control: the section also has a `header` of that name; remove "
        "one of them\n");
}

static void reports_actions_that_cannot_work(void **state)
{
    (void)state;
    assert_problems(
        SITE "[path /a]\nredirect = /b\n"
             "[path /b]\nredirect = 200 /b\n"
             "[path /c]\nredirect = 301 //evil.example\n"
             "[path /d/*]\nredirect = 301 /e/*/*\n"
             "[path /f]\nrewrite = index.html\n"
             "[path /g]\nrewrite = /index.html\nstatus = 410\nredirect = 301 /x\n"
             "[path /h]\nstatus = 200\n"
             "[path /i/**]\nredirect = 302 /i/x/**\n"
             "[path /j]\nrewrite = /none.html\n",
        "weir.conf:20: warning: redirect: the pattern of its section also covers the target, so a "
        "client that follows is redirected again\n"
        "weir.conf:22: warning: rewrite: there is no `/none.html` in site now, so the answer is "
        "404\n"
        "weir.conf:4: error: redirect: `/b` does not begin with a status of a redirect; write 301, "
        "302, 303, 307 or 308, as in 301 /new\n"
        "weir.conf:6: error: redirect: `200 /b` does not begin with a status of a redirect; write "
        "301, 302, 303, 307 or 308, as in 301 /new\n"
        "weir.conf:8: error: redirect: the target `//evil.example` names another host; write "
        "https:// before it, or one slash for a path\n"
        "weir.conf:10: error: redirect: the target has 2 stars, and the pattern of its section has "
        "1; each star stands for the one at the same place of the pattern\n"
        "weir.conf:12: error: rewrite: `index.html` does not begin with a slash; a rewrite leads "
        "to a path of the same site\n"
        "weir.conf:14: error: rewrite: the path already has a `redirect` (line 16); remove one of "
        "them\n"
        "weir.conf:15: error: status: the path already has a `redirect` (line 16); remove one of "
        "them\n"
        "weir.conf:18: error: status: `200` is not 403, 404, 410, 451 or 503\n");
}

static void makes_networks_of_allow_and_deny(void **state)
{
    (void)state;
    struct config_store *store =
        read_text(SITE "[path /a]\nallow = 10.0.0.0/8, 2001:DB8::/32\nallow = all\n"
                       "deny = 10.1.2.3, ::1\n[path /b]\nstatus = 410\n");
    assert_int_equal(config_read_errors(store), 0);
    const struct rules_rule *rule = &config_read_result(store)->sites[0].rules->rule[1];
    static const struct {
        const char *text;
        unsigned family, bits, first, last;
        bool admits;
    } expected[] = {
        { "10.0.0.0/8", 4, 8, 10, 0, true }, { "2001:DB8::/32", 6, 32, 0x20, 0, true },
        { "all", 0, 0, 0, 0, true },         { "10.1.2.3", 4, 32, 10, 0, false },
        { "::1", 6, 128, 0, 1, false },
    };
    assert_int_equal(rule->network_count, 5);
    for (size_t i = 0; i < 5; i++) {
        const struct rules_network *network = &rule->networks[i];
        assert_true(span_equal(network->text, span_text(expected[i].text)));
        assert_int_equal(network->family, expected[i].family);
        assert_int_equal(network->bits, expected[i].bits);
        assert_int_equal(network->address[0], expected[i].first);
        assert_int_equal(network->address[15], expected[i].last);
        assert_int_equal(network->admits, expected[i].admits);
    }
    assert_int_equal(rule[1].network_count, 0);
    config_read_free(store);
    assert_problems(SITE "[path /a]\nallow = 10.0.0.0/8, 10.0.0.0/33\ndeny = 10.9.9.9/8, alle\n"
                         "[path /b]\nallow = all\ndeny = all\n"
                         "[path /c]\ndeny = ::ffff:10.1.2.3/104, ::fffe:0:0/95\n",
                    "weir.conf:5: warning: deny: `10.9.9.9/8` covers a whole network; write zeros "
                    "behind the bits that count, or one address without /\n"
                    "weir.conf:4: error: allow: `10.0.0.0/33` ends without a number of bits from 0 "
                    "to 32\n"
                    "weir.conf:5: error: deny: `alle` is not a network; write 192.0.2.0/24, "
                    "2001:db8::/32 or one address\n"
                    "weir.conf:5: error: deny: `10.9.9.9/8` is the same network as `10.0.0.0/8` in "
                    "allow; remove one of them\n"
                    "weir.conf:8: error: deny: `all` is the same network as `all` in allow; remove "
                    "one of them\n"
                    "weir.conf:10: error: deny: `::ffff:10.1.2.3/104` is a network of IPv4 in the "
                    "form of IPv6, and matches no client; write 10.0.0.0/8\n");
}

static const struct rules_rule *read_first_rule(struct config_store **ret_store, const char *text)
{
    *ret_store = read_text(text);
    if (config_read_errors(*ret_store) > 0) {
        char *problems = problems_of(*ret_store);
        fail_msg("%s gives %s", text, problems);
    }
    return &config_read_result(*ret_store)->sites[0].rules->rule[1];
}

static void makes_fields_and_origins_of_cors(void **state)
{
    (void)state;
    struct config_store *store;
    const struct rules_rule *rule = read_first_rule(&store, SITE
                                                    "[path /a]\ncors = *\ncors-expose = ETag, X-A\n"
                                                    "cors-headers = *\ncors-max-age = 1d\n");
    assert_true(rule->has_cors);
    assert_int_equal(rule->origin_count, 0);
    assert_int_equal(rule->field_count, 3);
    assert_field(&rule->fields[0], "Access-Control-Allow-Origin",
                 "Access-Control-Allow-Origin: *\r\n", true);
    assert_field(&rule->fields[1], "Access-Control-Allow-Credentials", "", true);
    assert_field(&rule->fields[2], "Access-Control-Expose-Headers",
                 "Access-Control-Expose-Headers: ETag, X-A\r\n", true);
    assert_true(span_equal(rule->preflight, SPAN("Access-Control-Allow-Methods: GET, HEAD\r\n"
                                                 "Access-Control-Allow-Headers: *\r\n"
                                                 "Access-Control-Max-Age: 86400\r\n")));
    config_read_free(store);

    rule = read_first_rule(&store, SITE "[path /a]\ncors-credentials = on\n"
                                        "cors = HTTPS://A.example:8443, http://[::1]\n");
    assert_int_equal(rule->origin_count, 2);
    assert_field(&rule->fields[0], "Access-Control-Allow-Origin", "", true);
    assert_field(&rule->fields[1], "Access-Control-Allow-Credentials",
                 "Access-Control-Allow-Credentials: true\r\n", true);
    assert_true(span_equal(rule->origins[0].origin, SPAN("https://a.example:8443")));
    assert_true(span_equal(rule->origins[0].line,
                           SPAN("Access-Control-Allow-Origin: https://a.example:8443\r\n")));
    assert_true(span_equal(rule->origins[1].origin, SPAN("http://[::1]")));
    config_read_free(store);

    rule = read_first_rule(&store, SITE "[path /a]\ncors = none\n");
    assert_true(rule->has_cors);
    assert_field(&rule->fields[0], "Access-Control-Allow-Origin", "", true);
    assert_int_equal(rule->preflight.len, 0);
    config_read_free(store);

    rule = read_first_rule(&store, SITE "[path /a]\nstatus = 410\n");
    assert_false(rule->has_cors);
    assert_int_equal(rule->field_count, 0);
    config_read_free(store);
}

static void reports_cors_that_browsers_do_not_accept(void **state)
{
    (void)state;
    static const struct {
        const char *line, *problem;
    } rows[] = {
        { "cors = app.example", "cors: `app.example` is not an origin; write" },
        { "cors = null", "cors: `null` is not an origin" },
        { "cors = https://", "cors: the origin has no host" },
        { "cors = https://a.example/", "cors: `a.example/` is more than an origin" },
        { "cors = https://*.example", "cors: `*.example` is more than an origin" },
        { "cors = https://a.example:443", "browsers leave out the port 443" },
        { "cors = http://a.example:80", "browsers leave out the port 80" },
        { "cors = https://a.example:", "has no port behind its colon" },
        { "cors = https://a.example:0", "has no port behind its colon" },
        { "cors = https://a.example:70000", "has no port behind its colon" },
        { "cors = *, https://a.example", "cors: `*` and `none` stand alone" },
        { "cors = https://a.example, none", "cors: `*` and `none` stand alone" },
        { "cors = https://a.example, https://A.example", "is there twice" },
        { "cors-expose = ETag", "cors-expose: the section has no `cors`" },
        { "cors-credentials = on", "cors-credentials: the section has no `cors`" },
        { "cors = *\ncors-credentials = on", "browsers do not accept `*` together with" },
        { "cors = https://a.example\ncors-credentials = on\ncors-headers = *",
          "browsers do not accept `*` together with" },
        { "cors = *\ncors-headers = a b", "cors-headers: `a b` is not the name of a field" },
        { "cors = *\ncors-max-age = 2d", "cors-max-age: `2d` is too long; at most 1d" },
        { "cors = *\nheader = Access-Control-Allow-Origin: *",
          "cors: the section also has a `header` Access-Control-Allow-Origin" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[512];
        snprintf(text, sizeof(text), SITE "[path /a]\nstatus = 410\n%s\n", rows[i].line);
        struct config_store *store = read_text(text);
        char *problems = problems_of(store);
        if (config_read_errors(store) != 1 || !strstr(problems, rows[i].problem))
            fail_msg("%s gives %s", rows[i].line, problems);
        free(problems);
        config_read_free(store);
    }
}

static void limits_the_lines_that_an_answer_can_have(void **state)
{
    (void)state;
    static char text[64 * 1024];
    int len = snprintf(text, sizeof(text), SITE "header = X-0: %01000d\n", 0);
    for (int i = 0; i < 10; i++) /* the lines of one name replace each other */
        len += snprintf(text + len, sizeof(text) - (size_t)len,
                        "[path /%d*]\nheader = X-0: %01500d\n", i, 0);
    struct config_store *store = read_text(text);
    assert_int_equal(config_read_errors(store), 0);
    config_read_free(store);
    for (int i = 1; i < 3; i++)
        len += snprintf(text + len, sizeof(text) - (size_t)len,
                        "[path /x/%d]\nheader = X-%d: %01300d\n", i, i, 0);
    assert_problems(text,
                    "weir.conf:1: error: [site a]: the header lines of the site and its paths "
                    "can add more than 4096 bytes to an answer\n");
}

static void limits_the_paths_of_a_site(void **state)
{
    (void)state;
    static char text[64 * 1024];
    int len = snprintf(text, sizeof(text), SITE);
    for (int i = 1; i < RULES_MAX; i++)
        len += snprintf(text + len, sizeof(text) - (size_t)len, "[path /%d]\nstatus = 410\n", i);
    struct config_store *store = read_text(text);
    assert_int_equal(config_read_errors(store), 0);
    assert_int_equal(config_read_result(store)->sites[0].rules->count, RULES_MAX);
    config_read_free(store);
    snprintf(text + len, sizeof(text) - (size_t)len, "[path /more]\nstatus = 410\n");
    assert_problems(text, "weir.conf:3: error: [site a] has 256 paths; 255 at most\n");
}

static void explains_a_path_below_its_site(void **state)
{
    (void)state;
    struct config_store *store = read_text(SITE "[path /a/*]\nredirect = 301 /b/*\n");
    char *text = explanation_of(store);
    const char *site = strstr(text, "\n[site a] "), *path = strstr(text, "\n[path /a/*] ");
    assert_true(site && path && site < path);
    assert_non_null(strstr(path, " weir.conf:3\n"));
    assert_non_null(strstr(path, "\n  redirect                 301 /b/*  "));
    assert_non_null(strstr(path, " weir.conf:4\n"));
    assert_non_null(strstr(path, "\n  always                   off  "));
    free(text);
    config_read_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(makes_rules_of_the_site_and_its_paths_in_order),
        cmocka_unit_test(a_site_whose_rules_answer_everything_needs_no_root),
        cmocka_unit_test(a_path_belongs_to_the_site_before_it),
        cmocka_unit_test(reports_patterns_that_cover_nothing),
        cmocka_unit_test(a_section_can_turn_listings_on_and_off),
        cmocka_unit_test(a_section_can_say_which_files_answer),
        cmocka_unit_test(a_section_can_have_pages_of_errors),
        cmocka_unit_test(a_section_can_turn_dictionaries_on_and_off),
        cmocka_unit_test(refuses_dictionaries_with_patterns_that_browsers_read_in_another_way),
        cmocka_unit_test(a_section_can_need_a_password_or_none),
        cmocka_unit_test(a_section_can_limit_the_requests_of_an_address),
        cmocka_unit_test(reports_limits_that_cannot_work),
        cmocka_unit_test(reports_passwords_that_a_later_section_replaces),
        cmocka_unit_test(reports_passwords_without_effect),
        cmocka_unit_test(refuses_public_answers_where_a_password_is_needed),
        cmocka_unit_test(warns_of_a_section_without_settings),
        cmocka_unit_test(reports_settings_that_a_path_does_not_have),
        cmocka_unit_test(reports_fields_that_weir_controls),
        cmocka_unit_test(reports_cache_directives_that_are_misspelt),
        cmocka_unit_test(reports_actions_that_cannot_work),
        cmocka_unit_test(makes_networks_of_allow_and_deny),
        cmocka_unit_test(makes_fields_and_origins_of_cors),
        cmocka_unit_test(reports_cors_that_browsers_do_not_accept),
        cmocka_unit_test(limits_the_lines_that_an_answer_can_have),
        cmocka_unit_test(limits_the_paths_of_a_site),
        cmocka_unit_test(explains_a_path_below_its_site),
    };
    return cmocka_run_group_tests_name("config/rules", tests, make_folder, remove_folder);
}
