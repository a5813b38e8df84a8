/* SPDX-License-Identifier: MIT
 *
 * The master learns which file a name stands for, and does not wait for the disk.
 */
#include "server/look.h"

#include "base/duration.h"
#include "os/clock.h"
#include "tree.h"

#include <string.h>
#include <sys/wait.h>

/* A file of a filesystem that is on no block device. Its attributes are only believed where the
 * filesystem is known to be local. */
static const char elsewhere[] = "/proc/version";

struct fixture {
    struct tree tree;
    struct server_look look;
    uint64_t now_ns;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    tree_make(&f->tree);
    f->look = SERVER_LOOK_NONE;
    f->now_ns = os_clock_now_ns();
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    server_look_forget(&f->look);
    tree_remove(&f->tree);
    free(f);
    return 0;
}

/* A later tick. */
static void tick(struct fixture *f)
{
    f->now_ns += DURATION_SECOND;
    server_look_tick(&f->look, f->now_ns);
}

static void reap(struct server_look *look)
{
    const pid_t pid = look->errand.pid;
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(server_errand_reap(&look->errand, pid, 0));
}

static void what_is_in_memory_is_known_at_once(void **state)
{
    struct fixture *f = *state;
    struct server_identity found;
    tree_folder(&f->tree, "folder");
    tree_write(&f->tree, "file", "abc");
    const struct server_identity before = server_look_now(tree_absolute(&f->tree, "file"));
    assert_int_equal(before.size, 3);
    assert_false(before.is_folder);

    tree_write(&f->tree, "file", "abcd");
    assert_true(server_look_at(&f->look, tree_absolute(&f->tree, "file"), &before, &found));
    assert_int_equal(found.inode, before.inode);
    assert_int_equal(found.size, 4);
    assert_true(server_look_at(&f->look, tree_absolute(&f->tree, "folder"),
                               &(struct server_identity){ 0 }, &found));
    assert_true(found.is_folder);
    tick(f);
    assert_int_equal(f->look.errand.pid, 0);
}

static void a_file_of_another_machine_is_looked_up_by_a_process(void **state)
{
    struct fixture *f = *state;
    struct server_identity found, before = server_look_now(elsewhere);
    assert_true(before.inode > 0);
    before.is_remote = true;
    assert_false(server_look_at(&f->look, elsewhere, &before, &found));
    assert_int_equal(f->look.errand.pid, 0);
    tick(f);
    assert_true(server_look_due_ns(&f->look, f->now_ns, UINT64_MAX) < UINT64_MAX);
    reap(&f->look);
    tick(f);
    assert_int_equal(f->look.errand.pid, 0);
    assert_int_equal(server_look_due_ns(&f->look, f->now_ns, UINT64_MAX), UINT64_MAX);
    assert_true(server_look_at(&f->look, elsewhere, &before, &found));
    assert_int_equal(found.inode, before.inode);
    assert_false(server_look_at(&f->look, elsewhere, &before, &found)); /* a result is used once */
}

static void an_absent_name_is_found_to_be_absent(void **state)
{
    struct fixture *f = *state;
    const struct server_identity none = { 0 };
    struct server_identity found = { .inode = 1 };
    while (!server_look_at(&f->look, tree_absolute(&f->tree, "absent"), &none, &found)) {
        tick(f); /* not every filesystem remembers that a name is absent */
        if (f->look.errand.pid > 0)
            reap(&f->look);
        tick(f);
    }
    assert_int_equal(found.inode, 0);
}

static void a_forgotten_name_has_no_late_result(void **state)
{
    struct fixture *f = *state;
    struct server_identity found, before = server_look_now(elsewhere);
    before.is_remote = true;
    assert_false(server_look_at(&f->look, elsewhere, &before, &found));
    tick(f);
    const pid_t pid = f->look.errand.pid;
    server_look_forget(&f->look);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(server_errand_reap(&f->look.errand, pid, 0));
    tick(f); /* no name */
    assert_false(server_look_at(&f->look, elsewhere, &before, &found));
    tick(f);
    reap(&f->look);
    tick(f);
    assert_true(server_look_at(&f->look, elsewhere, &before, &found));
}

#define WITH_LOOK(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_LOOK(what_is_in_memory_is_known_at_once),
        WITH_LOOK(a_file_of_another_machine_is_looked_up_by_a_process),
        WITH_LOOK(an_absent_name_is_found_to_be_absent),
        WITH_LOOK(a_forgotten_name_has_no_late_result),
    };
    return cmocka_run_group_tests_name("server/look", tests, NULL, NULL);
}
