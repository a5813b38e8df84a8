/* SPDX-License-Identifier: MIT */
#include "os/privilege.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { WORDS = _LINUX_CAPABILITY_U32S_3 }; /* of 32 bits, in each set */

static int read_sets(struct __user_cap_data_struct sets[WORDS])
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    return syscall(SYS_capget, &header, sets) < 0 ? -errno : 0;
}

static int write_sets(const struct __user_cap_data_struct sets[WORDS])
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    return syscall(SYS_capset, &header, sets) < 0 ? -errno : 0;
}

/* The kernel knows the capabilities from 0 up to the first one that PR_CAPBSET_READ refuses. */
static int shrink_bounding_set(uint64_t kept)
{
    for (unsigned long each = 0; each < 64; each++) {
        int has = prctl(PR_CAPBSET_READ, each);
        if (has < 0)
            return 0;
        if (has > 0 && (kept & OS_PRIVILEGE(each)) == 0 && prctl(PR_CAPBSET_DROP, each) < 0)
            return -errno;
    }
    return 0;
}

int os_privilege_bound(uint64_t kept)
{
    struct __user_cap_data_struct sets[WORDS] = { 0 };
    const int rc = read_sets(sets);
    const bool may = rc == 0 && (sets[0].effective & OS_PRIVILEGE(CAP_SETPCAP)) != 0;
    return may ? shrink_bounding_set(kept) : rc;
}

int os_privilege_keep(uint64_t kept)
{
    struct __user_cap_data_struct sets[WORDS] = {
        0
    }; /* some tools do not see the kernel's write */
    int rc = os_privilege_bound(kept);
    if (rc == 0)
        rc = read_sets(sets);
    if (rc < 0)
        return rc;
    bool changes = false;
    for (unsigned i = 0; i < WORDS; i++) {
        uint32_t word = (uint32_t)(kept >> (32 * i));
        changes |= ((sets[i].permitted | sets[i].effective | sets[i].inheritable) & ~word) != 0;
        sets[i].permitted &= word;
        sets[i].effective &= word;
        sets[i].inheritable &= word; /* an ambient capability is lost with its inheritable one */
    }
    return changes ? write_sets(sets) : 0; /* a filter may forbid capset */
}

int os_privilege_forbid_new(void)
{
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}
