/* SPDX-License-Identifier: MIT
 *
 * The limits of control groups and the memory of the machine, read from a tree of the test's own.
 */
#include "os/group.h"

#include "tree.h"

#define MIB     (UINT64_C(1) << 20)
#define MACHINE (1024 * MIB) /* what write_machine says */

static void make_folders(const struct tree *tree)
{
    static const char *const folders[] = {
        "proc",
        "proc/self",
        "proc/7",
        "sys",
        "sys/fs",
        "sys/fs/cgroup",
        "sys/fs/cgroup/a",
        "sys/fs/cgroup/a/b",
        "sys/fs/cgroup/memory",
        "sys/fs/cgroup/memory/a",
    };
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        tree_folder(tree, folders[i]);
}

static void write_text(const struct tree *tree, const char *path, const char *text)
{
    tree_write_bytes(tree, path, span_text(text));
}

static void write_machine(const struct tree *tree)
{
    write_text(tree, "proc/meminfo", "MemTotal:        1048576 kB\nMemFree:  5 kB\n");
}

static int set_up(void **state)
{
    static struct tree tree;
    tree_make(&tree);
    make_folders(&tree);
    write_machine(&tree);
    *state = &tree;
    return 0;
}

static int tear_down(void **state)
{
    tree_remove(*state);
    return 0;
}

static void assert_memory(const struct tree *tree, uint64_t bytes, bool of_group)
{
    const struct os_group_memory memory = os_group_memory(tree->path);
    assert_int_equal(memory.bytes, bytes);
    assert_int_equal(memory.of_group, of_group);
}

static void without_groups_it_is_the_memory_of_the_machine(void **state)
{
    assert_memory(*state, MACHINE, false);
}

static void without_any_file_it_is_unknown(void **state)
{
    const struct tree *tree = *state;
    assert_int_equal(unlinkat(tree->fd, "proc/meminfo", 0), 0);
    assert_memory(tree, 0, false);
}

static void without_the_memory_of_the_machine_a_group_limits_it(void **state)
{
    const struct tree *tree = *state;
    assert_int_equal(unlinkat(tree->fd, "proc/meminfo", 0), 0);
    write_text(tree, "proc/self/cgroup", "0::/a\n");
    write_text(tree, "sys/fs/cgroup/a/memory.max", "1048576\n");
    assert_memory(tree, MIB, true);
}

static void a_group_of_version_2_limits_it(void **state)
{
    const struct tree *tree = *state;
    write_text(tree, "proc/self/cgroup", "0::/a/b\n");
    write_text(tree, "sys/fs/cgroup/a/b/memory.max", "134217728\n");
    assert_memory(tree, 128 * MIB, true);
}

static void each_group_above_limits_it(void **state)
{
    const struct tree *tree = *state;
    write_text(tree, "proc/self/cgroup", "0::/a/b\n");
    write_text(tree, "sys/fs/cgroup/a/b/memory.max", "max\n");
    write_text(tree, "sys/fs/cgroup/a/memory.max", "67108864\n");
    assert_memory(tree, 64 * MIB, true);
    write_text(tree, "sys/fs/cgroup/memory.max", "33554432\n");
    assert_memory(tree, 32 * MIB, true);
}

static void a_container_sees_its_group_as_the_root(void **state)
{
    const struct tree *tree = *state;
    write_text(tree, "proc/self/cgroup", "0::/not/visible/here\n");
    write_text(tree, "sys/fs/cgroup/memory.max", "33554432\n");
    assert_memory(tree, 32 * MIB, true);
}

static void the_limit_at_which_a_group_is_slowed_down_counts(void **state)
{
    const struct tree *tree = *state;
    write_text(tree, "proc/self/cgroup", "0::/a\n");
    write_text(tree, "sys/fs/cgroup/a/memory.max", "134217728\n");
    write_text(tree, "sys/fs/cgroup/a/memory.high", "67108864\n");
    assert_memory(tree, 64 * MIB, true);
}

static void a_group_without_a_limit_leaves_the_memory_of_the_machine(void **state)
{
    const struct tree *tree = *state;
    write_text(tree, "proc/self/cgroup", "0::/a\n");
    write_text(tree, "sys/fs/cgroup/a/memory.max", "max\n");
    assert_memory(tree, MACHINE, false);
    write_text(tree, "sys/fs/cgroup/a/memory.max", "2147483648\n");
    assert_memory(tree, MACHINE, false);
    write_text(tree, "sys/fs/cgroup/a/memory.max", "much\n");
    assert_memory(tree, MACHINE, false);
}

static void a_group_of_version_1_limits_it(void **state)
{
    const struct tree *tree = *state;
    write_text(tree, "proc/self/cgroup", "9:cpu,cpuacct:/b\n4:pids,memory:/a\n0::/\n");
    write_text(tree, "sys/fs/cgroup/memory/a/memory.limit_in_bytes", "67108864\n");
    assert_memory(tree, 64 * MIB, true);
    write_text(tree, "sys/fs/cgroup/memory/memory.limit_in_bytes", "33554432\n");
    assert_memory(tree, 32 * MIB, true);
}

static void the_greatest_number_of_version_1_is_no_limit(void **state)
{
    const struct tree *tree = *state;
    write_text(tree, "proc/self/cgroup", "4:memory:/a\n");
    write_text(tree, "sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");
    assert_memory(tree, MACHINE, false);
    assert_int_equal(unlinkat(tree->fd, "proc/meminfo", 0), 0);
    assert_memory(tree, 0, false);
}

static void another_controller_of_version_1_is_not_the_memory(void **state)
{
    const struct tree *tree = *state;
    write_text(tree, "proc/self/cgroup", "4:memory2,mem:/a\nbroken\n:\n");
    write_text(tree, "sys/fs/cgroup/memory/a/memory.limit_in_bytes", "67108864\n");
    assert_memory(tree, MACHINE, false);
}

static void another_process_has_groups_of_its_own(void **state)
{
    const struct tree *tree = *state;
    write_text(tree, "proc/self/cgroup", "0::/a\n");
    write_text(tree, "proc/7/cgroup", "0::/a/b\n");
    write_text(tree, "sys/fs/cgroup/a/pids.max", "20\n");
    write_text(tree, "sys/fs/cgroup/a/b/pids.max", "10\n");
    assert_int_equal(os_group_least(tree->path, 0, NULL, "pids.max", os_group_number), 20);
    assert_int_equal(os_group_least(tree->path, 7, NULL, "pids.max", os_group_number), 10);
    assert_int_equal(os_group_least(tree->path, 8, NULL, "pids.max", os_group_number), UINT64_MAX);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_groups_it_is_the_memory_of_the_machine),
        TEST(without_any_file_it_is_unknown),
        TEST(without_the_memory_of_the_machine_a_group_limits_it),
        TEST(a_group_of_version_2_limits_it),
        TEST(each_group_above_limits_it),
        TEST(a_container_sees_its_group_as_the_root),
        TEST(the_limit_at_which_a_group_is_slowed_down_counts),
        TEST(a_group_without_a_limit_leaves_the_memory_of_the_machine),
        TEST(a_group_of_version_1_limits_it),
        TEST(the_greatest_number_of_version_1_is_no_limit),
        TEST(another_controller_of_version_1_is_not_the_memory),
        TEST(another_process_has_groups_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
