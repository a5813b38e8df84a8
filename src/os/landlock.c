/* SPDX-License-Identifier: MIT
 *
 * The C library has no functions for these calls, and an old <linux/landlock.h> lacks later levels.
 * So the numbers and the structures of the kernel's interface are written here. The kernel takes a
 * structure that is longer than the one it knows as long as the rest is 0.
 */
#include "os/landlock.h"

#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The numbers are the same on every architecture. */
enum { CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446 };
enum { CREATE_VERSION = 1, RULE_PATH_BENEATH = 1 };

struct ruleset {
    uint64_t files;   /* level 1: bits of enum file_right */
    uint64_t network; /* level 4 */
    uint64_t scopes;  /* level 6 */
};

struct beneath {
    uint64_t allowed;
    int32_t parent_fd;
} __attribute__((packed));

enum file_right { READ_FILE = 1 << 2, READ_DIR = 1 << 3 };

#define FILES_LEVEL_1  UINT64_C(0x1fff) /* execute, write, read, list, remove, make */
#define FILES_REFER    (UINT64_C(1) << 13)
#define FILES_TRUNCATE (UINT64_C(1) << 14)
#define FILES_IOCTL    (UINT64_C(1) << 15) /* of devices */
#define NETWORK_TCP    UINT64_C(3)         /* bind, connect */
#define SCOPES_ALL     UINT64_C(3)         /* abstract Unix sockets, signals */

int os_landlock_level(void)
{
    long level = syscall(CREATE_RULESET, NULL, 0, CREATE_VERSION);
    return level < 0 ? -errno : (int)level;
}

static struct ruleset everything_at(int level)
{
    struct ruleset all = { .files = FILES_LEVEL_1 };
    if (level >= 2)
        all.files |= FILES_REFER;
    if (level >= 3)
        all.files |= FILES_TRUNCATE;
    if (level >= OS_LANDLOCK_TCP)
        all.network = NETWORK_TCP;
    if (level >= 5)
        all.files |= FILES_IOCTL;
    if (level >= OS_LANDLOCK_SCOPES)
        all.scopes = SCOPES_ALL;
    return all;
}

int os_landlock_begin(struct os_landlock *rules)
{
    *rules = (struct os_landlock){ .fd = -1, .level = os_landlock_level() };
    if (rules->level < 0)
        return rules->level;
    struct ruleset all = everything_at(rules->level);
    long fd = syscall(CREATE_RULESET, &all, sizeof(all), 0);
    if (fd < 0)
        return -errno;
    rules->fd = (int)fd;
    return 0;
}

int os_landlock_allow_reading(const struct os_landlock *rules, const char *folder)
{
    int fd = os_file_open_directory(folder);
    if (fd < 0)
        return fd;
    struct beneath rule = { .allowed = READ_FILE | READ_DIR, .parent_fd = fd };
    int rc = syscall(ADD_RULE, rules->fd, RULE_PATH_BENEATH, &rule, 0) < 0 ? -errno : 0;
    os_file_close(fd);
    return rc;
}

int os_landlock_allow_open(const struct os_landlock *rules, int directory_fd)
{
    struct beneath rule = { .allowed = READ_FILE | READ_DIR, .parent_fd = directory_fd };
    return syscall(ADD_RULE, rules->fd, RULE_PATH_BENEATH, &rule, 0) < 0 ? -errno : 0;
}

int os_landlock_enforce(struct os_landlock *rules)
{
    int rc = syscall(RESTRICT_SELF, rules->fd, 0) < 0 ? -errno : 0;
    os_landlock_drop(rules);
    return rc;
}

void os_landlock_drop(struct os_landlock *rules)
{
    os_file_close(rules->fd);
    rules->fd = -1;
}
