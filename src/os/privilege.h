/* SPDX-License-Identifier: MIT
 *
 * The privileges of a process (capabilities(7)). They only ever shrink.
 */
#pragma once

#include "base/check.h"

#include <stdint.h>

/* A set of capabilities. Bit n stands for the capability number n of <linux/capability.h>. */
#define OS_PRIVILEGE(capability) (UINT64_C(1) << (capability))

/* Gives up every capability outside of `kept` in the bounding set, if the process is allowed to
 * change it. A process that changes its user does so before, because it loses the right then. 0 or
 * -errno. */
MUST_USE int os_privilege_bound(uint64_t kept);

/* Gives up every capability outside of `kept`: in the bounding set (if the process is allowed to
 * change it), then in the other sets. A capability that the process does not have stays absent. The
 * process has one thread. 0 or -errno. */
MUST_USE int os_privilege_keep(uint64_t kept);

/* From now on, no program that this process executes gains a privilege by it (PR_SET_NO_NEW_PRIVS).
 * 0 or -errno. */
MUST_USE int os_privilege_forbid_new(void);
