/* SPDX-License-Identifier: MIT
 *
 * The lists of users of a configuration: which sites and paths have one, and how the files are
 * followed.
 */
#include "server/auth.h"

#include "tree.h"

#include <errno.h>

#define ALICE "alice:$2b$04$abcdefghijklmnopqrstuuinwY/tkBVrn3xrxQI/TgnMHhkvl85RW\n"

struct fixture {
    struct tree tree;
    char path[2][160];
    struct config_site sites[3];
    struct config config;
    struct server_auth auth;
    char why[AUTH_WHY_MAX];
};

/* No process looks at a disk here: what the kernel has just written is in memory. */
static struct server_look look = { .errand = { .fd = -1 } };

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    tree_make(&f->tree);
    for (unsigned i = 0; i < 2; i++) {
        static const char *const names[] = { "one", "two" };
        (void)snprintf(f->path[i], sizeof(f->path[i]), "%s/%s", f->tree.path, names[i]);
        tree_write(&f->tree, names[i], ALICE);
        f->sites[i].auth = f->path[i];
    }
    f->config = (struct config){ .sites = f->sites, .site_count = 3 };
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    server_auth_close(&f->auth);
    tree_remove(&f->tree);
    free(f);
    return 0;
}

static void each_file_is_read_once_for_sites_and_paths(void **state)
{
    struct fixture *f = *state;
    static struct config_path paths[3];
    paths[0].path_auth = f->path[1];
    paths[1].path_auth = "off";
    f->sites[0].paths = f->sites[2].paths = paths;
    f->sites[0].path_count = f->sites[2].path_count = 3;
    f->sites[2].auth = f->path[0];
    assert_int_equal(server_auth_open(&f->auth, &f->config, f->why), 0);
    assert_true(f->auth.complete);
    assert_int_equal(f->auth.count, 2);
    assert_int_equal(f->auth.watch.count, 2);
    for (unsigned i = 0; i < 2; i++)
        assert_non_null(f->auth.lists[server_auth_find(&f->auth, f->path[i])].users);
    assert_int_not_equal(server_auth_find(&f->auth, f->path[0]),
                         server_auth_find(&f->auth, f->path[1]));
    assert_string_equal(server_auth_path(&f->sites[0], 0), f->path[1]);
    assert_null(server_auth_path(&f->sites[0], 1));
    assert_null(server_auth_path(&f->sites[0], 2));
    assert_string_equal(server_auth_path(&f->sites[0], 3), f->path[0]);
    assert_string_equal(server_auth_path(&f->sites[1], 0), f->path[1]);
}

static void nothing_is_read_where_no_site_needs_a_password(void **state)
{
    struct fixture *f = *state;
    f->sites[0].auth = f->sites[1].auth = NULL;
    assert_int_equal(server_auth_open(&f->auth, &f->config, f->why), 0);
    assert_int_equal(f->auth.count, 0);
    assert_int_equal(f->auth.watch.count, 0);
}

static void a_broken_list_is_named_and_tried_again_after_its_next_change(void **state)
{
    struct fixture *f = *state;
    struct server_auth refused;
    assert_int_equal(server_auth_open(&f->auth, &f->config, f->why), 0);
    struct server_watch *watch = &f->auth.watch;
    assert_null(server_watch_changed(watch, &look, watch->due_ns));
    tree_write(&f->tree, "one", "alice\n");
    assert_null(server_watch_changed(watch, &look, watch->due_ns)); /* it may still change */
    const char *changed = server_watch_changed(watch, &look, watch->due_ns);
    assert_non_null(changed);
    assert_string_equal(changed, f->path[0]);

    assert_int_equal(server_auth_open(&refused, &f->config, f->why), -EINVAL);
    assert_false(refused.complete);
    assert_true(span_starts(span_text(f->why), span_text(f->path[0])));
    server_watch_postpone(watch, &refused.watch);
    server_auth_close(&refused);
    for (unsigned i = 0; i < 3; i++)
        assert_null(server_watch_changed(watch, &look, watch->due_ns));
    tree_write(&f->tree, "one", ALICE "# mended\n");
    assert_null(server_watch_changed(watch, &look, watch->due_ns));
    assert_non_null(server_watch_changed(watch, &look, watch->due_ns));
}

#define WITH_FILES(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FILES(each_file_is_read_once_for_sites_and_paths),
        WITH_FILES(nothing_is_read_where_no_site_needs_a_password),
        WITH_FILES(a_broken_list_is_named_and_tried_again_after_its_next_change),
    };
    return cmocka_run_group_tests_name("server/auth", tests, NULL, NULL);
}
