/* SPDX-License-Identifier: MIT
 *
 * Passwords of some paths of a site. The tests check which password a request needs, also where
 * another name leads to the file. They check what the cache may answer
 * without a lookup of the rules.
 */
#include "session/guard.h"

#include "base/base64.h"
#include "rules/rules.h"
#include "session/access.h"
#include "world.h"

/* The password of both is `sesame`. */
#define HASH ":$2b$04$abcdefghijklmnopqrstuuinwY/tkBVrn3xrxQI/TgnMHhkvl85RW\n"

enum { RULES = 10 };

static const struct rules_field public_fields[] = {
    { .name = SPAN("Cache-Control"), .line = SPAN("Cache-Control: public\r\n"), .on_errors = true },
};

/* ALICE and BOB are the numbers of the rules by which their lists are found. */
enum { ALICE = 1, BOB = 2 };

static struct rules_rule rule[RULES] = {
    { .auth = RULES_OFF, .fields = public_fields, .field_count = 1 },
    { .auth = RULES_ON, .number = ALICE },
    { .auth = RULES_ON, .number = BOB },
    { .auth = RULES_OFF },
    { .auth = RULES_ON, .number = ALICE },
    { .auth = RULES_ON, .number = ALICE },
    { .action = RULES_REWRITE },
    { .action = RULES_REWRITE, .auth = RULES_ON, .number = BOB },
    { .action = RULES_REWRITE },
    { .auth = RULES_ON, .number = BOB },
};
static const char *const patterns[RULES] = {
    "/**",         "/in/**", "/in/bob/**", "/in/open/**", "/page.html",
    "/index.html", "/to/**", "/of/bob/**", "/front",      "/**/*.tar.gz",
};
static const struct rules rules = { .rule = rule, .count = RULES };

static struct session_access access_of_rules[RULES];
static struct session_guard guard;
static struct auth_file *users[2];
static char challenge[SESSION_CHALLENGE_MAX];

static int set_up(void **state)
{
    (void)state;
    static const char *const lists[] = { "alice" HASH, "bob" HASH };
    static const char *const targets[RULES] = { [6] = "/in/**", [7] = "/in/**", [8] = "/" };
    const char *why;
    unsigned line;
    if (make_world() < 0 || auth_memory_new(&guard.memory) < 0)
        return -1;
    for (unsigned i = 0; i < RULES; i++) {
        if (!rules_pattern_parse(span_text(patterns[i]), &rule[i].pattern, &why) ||
            (targets[i] &&
             !rules_target_parse_rewrite(span_text(targets[i]), &rule[i].target, &why)))
            return -1;
    }
    for (unsigned i = 0; i < 2; i++) {
        users[i] = auth_file_parse(span_text(lists[i]), &line, &why);
        if (!users[i])
            return -1;
        access_of_rules[i + 1] = (struct session_access){
            .users = users[i],
            .number = i,
            .challenge = session_access_challenge(challenge, "Staff"),
        };
    }
    world.sites[0].rules = &rules;
    world.sites[0].access = access_of_rules;
    world.sites[0].access_by_path = true;
    world.shared.guard = &guard;
    return start_world();
}

static int tear_down(void **state)
{
    (void)state;
    int rc = end_world();
    for (unsigned i = 0; i < 2; i++)
        auth_file_free(users[i]);
    auth_memory_free(guard.memory);
    return rc;
}

/* The linker has the calls of weir's own code come here (-Wl,--wrap). */
const struct rules_rule *__real_rules_keeper(const struct rules *of, struct span path);
const struct rules_rule *__wrap_rules_keeper(const struct rules *of, struct span path);

static unsigned keepers; /* that were looked for */

const struct rules_rule *__wrap_rules_keeper(const struct rules *of, struct span path)
{
    keepers++;
    return __real_rules_keeper(of, path);
}

static char answer[64 * 1024];

/* The status of GET, with the password of a user or without one. */
static int status_of(const char *path, const char *user)
{
    char text[1024], plain[64], encoded[128] = "";
    struct session s;
    if (user) {
        (void)snprintf(plain, sizeof(plain), "%s:sesame", user);
        base64_encode((const uint8_t *)plain, strlen(plain), encoded);
    }
    (void)snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: a\r\n%s%s%s\r\n", path,
                   user ? "Authorization: Basic " : "", encoded, user ? "\r\n" : "");
    session_open(&s, &world.thread, (struct session_origin){ .peer.family = 4 }, world.now_ns);
    assert_int_equal(session_feed(&s, span_text(text), world.now_ns), SESSION_WRITE);
    struct session_out out = session_output(&s);
    assert_true(out.piece[0].len < sizeof(answer));
    memcpy(answer, out.piece[0].at, out.piece[0].len);
    answer[out.piece[0].len] = '\0';
    session_close(&s);
    return atoi(answer + sizeof("HTTP/1.1 ") - 1);
}

/* The path needs the password of this user, or none for "". */
static void assert_needs(const char *path, const char *user)
{
    static const char *const all[] = { NULL, "alice", "bob" };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        const bool has_access = user[0] == '\0' || (all[i] && strcmp(all[i], user) == 0);
        tick(SECOND * 100); /* each wrong password is an attempt */
        const int status = status_of(path, all[i]);
        if ((status == 401) == has_access)
            fail_msg("%s gives %s the status %d", path, all[i] ? all[i] : "everyone", status);
        if (!has_access && strstr(answer, "ETag"))
            fail_msg("%s shows a validator of its file", path);
        const bool is_private = strstr(answer, "Cache-Control: private\r\n") != NULL;
        if (is_private != (user[0] != '\0') || is_private == (strstr(answer, "public") != NULL))
            fail_msg("%s has a wrong Cache-Control", path);
    }
}

static void each_path_needs_the_password_of_its_last_rule(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        assert_needs("/small.html", "");
        assert_needs("/in/none", "alice");
        assert_needs("/in", "alice");
        assert_needs("/x/../in//none", "alice");
        assert_needs("/%69n/none", "alice");
        assert_needs("/in/bob/none", "bob");
        assert_needs("/in/open/none", "");
        assert_needs("/page.html", "alice");
    }
}

static void another_name_of_a_file_needs_its_password(void **state)
{
    (void)state;
    assert_needs("/page.html.br", "alice");
    assert_needs("/page.html.gz", "alice");
    assert_needs("/page.html.zst", "alice");
    assert_needs("/in/x.tar.gz", "bob");
    assert_needs("/in/open/x.tar.gz", "bob");
    assert_needs("/", "alice");      /* by its index */
    assert_needs("/front", "alice"); /* a rewrite to it */
    assert_needs("/to/none", "alice");
    assert_needs("/to/bob/none", "bob");
    assert_needs("/to/open/none", "");
    assert_needs("/of/bob/none", "alice"); /* where it leads to, not where it is */
    assert_needs("/of/bob/open/none", "bob");
}

/* Each name costs a comparison with all patterns, and a path has space for thousands of endings. */
static void a_path_of_many_stored_forms_has_few_names(void **state)
{
    (void)state;
    enum { ENDINGS = 250, NAMES_MAX = 8 };
    char path[900] = "/page.html";
    for (unsigned i = 0; i < ENDINGS; i++)
        (void)strcat(path, ".br");
    keepers = 0;
    assert_int_equal(status_of(path, NULL), 401);
    assert_in_range(keepers, 2, NAMES_MAX);
    assert_needs(path, "alice"); /* still by the file of all the forms */
    assert_needs("/in/bob/x.gz.br.zst.gz.br.zst", "bob");
    assert_needs("/in/open/x.tar.gz.br.br.br.br", "bob");
}

static void a_cached_file_is_marked_if_it_needs_a_password(void **state)
{
    (void)state;
    struct site_entry *entry;
    bool fresh;
    const char *why;
    assert_true(rules_pattern_parse(SPAN("/small.html"), &rule[4].pattern, &why));
    do {
        tick(SECOND);
        assert_int_equal(status_of("/small.html", "alice"), 200);
        assert_int_equal(status_of("/middle.bin", NULL), 200);
        assert_int_equal(site_find(world.site, world.thread.reader, SPAN("/small.html"),
                                   world.now_ns, &entry, &fresh),
                         SITE_FILE);
        if (fresh)
            site_cache_release(&entry->cache);
    } while (fresh);
    assert_true(entry->guarded);
    assert_int_equal(status_of("/small.html", NULL), 401);
    settle("/middle.bin");
    assert_int_equal(site_find(world.site, world.thread.reader, SPAN("/middle.bin"), world.now_ns,
                               &entry, &fresh),
                     SITE_FILE);
    assert_false(fresh);
    assert_false(entry->guarded);
}

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_WORLD(each_path_needs_the_password_of_its_last_rule),
        WITH_WORLD(another_name_of_a_file_needs_its_password),
        WITH_WORLD(a_path_of_many_stored_forms_has_few_names),
        WITH_WORLD(a_cached_file_is_marked_if_it_needs_a_password),
    };
    return cmocka_run_group_tests_name("session/guard", tests, NULL, NULL);
}
