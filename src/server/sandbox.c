/* SPDX-License-Identifier: MIT */
#include "server/sandbox.h"

#include "base/num.h"
#include "log/error.h"
#include "os/landlock.h"
#include "os/privilege.h"
#include "os/process.h"
#include "server/calls.h"
#include "server/resources.h"
#include "site/lookup.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The run-time of a sanitizer reads /proc, starts processes, and traces its own process at the end.
 * A build with one has no filter of system calls, and reads every file. */
#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
enum { HAS_SANITIZER = 1 };
#else
enum { HAS_SANITIZER = 0 };
#endif

/* What a process does in the sandbox. */
struct confinement {
    const char *wish;                   /* on, off or require */
    const char *const *folders;         /* that it reads; NULL at the end, or NULL */
    const struct session_shared *sites; /* whose folders it reads, too; or NULL */
    unsigned calls;                     /* enum server_calls_group */
    pid_t master;
    const struct stats_writer *totals;
};

/* ---- words ---- */

static void add_part(char text[SERVER_SANDBOX_TEXT_MAX], const char *part, int number)
{
    size_t len = strlen(text);
    char digits[16] = "";
    if (number > 0)
        snprintf(digits, sizeof(digits), " %d", number);
    snprintf(text + len, SERVER_SANDBOX_TEXT_MAX - len, "%s%s%s", len > 0 ? ", " : "", part,
             digits);
}

static const char *reason_for_no_landlock(int error)
{
    return error == -ENOSYS       ? "Landlock (the kernel is older than Linux 5.13, or a filter "
                                    "of system calls hides it)"
           : error == -EOPNOTSUPP ? "Landlock (it is switched off at boot)"
                                  : "Landlock (a filter of system calls forbids it)";
}

static void add_user(char text[SERVER_SANDBOX_TEXT_MAX], const char *user)
{
    add_part(text, "user ", 0);
    size_t len = strlen(text);
    snprintf(text + len, SERVER_SANDBOX_TEXT_MAX - len, "%s", user);
}

/* ---- parts ---- */

static int shed_privileges(struct server_sandbox *sandbox)
{
    int rc = os_privilege_keep(0);
    if (rc == 0)
        rc = os_privilege_forbid_new();
    if (rc == 0)
        add_part(sandbox->in_force, "no_new_privs", 0);
    else
        log_error(LOG_ERROR, "cannot give up the privileges of a worker: %s", strerror(-rc));
    return rc;
}

int server_sandbox_begin(const char *wish)
{
    const int rc = strcmp(wish, "off") != 0 ? os_privilege_bound(0) : 0;
    if (rc < 0)
        log_error(LOG_ERROR, "cannot empty the bounding set of capabilities: %s", strerror(-rc));
    return rc;
}

static int allow_sites(const struct os_landlock *rules, const struct session_shared *sites)
{
    int rc = 0;
    for (size_t i = 0; sites && i < sites->site_count && rc == 0; i++) {
        const struct site *site = sites->sites[i].site;
        if (site->root_fd >= 0)
            rc = os_landlock_allow_open(rules, site->root_fd);
        for (unsigned k = 0; k < site->pages_count && rc == 0; k++)
            if (site->pages_fd[k] >= 0)
                rc = os_landlock_allow_open(rules, site->pages_fd[k]);
    }
    return rc;
}

static int close_file_system(const struct confinement *confinement, struct server_sandbox *sandbox)
{
    struct os_landlock rules;
    int rc = os_landlock_begin(&rules);
    if (rc < 0) {
        add_part(sandbox->missing, reason_for_no_landlock(rc), 0);
        return 0;
    }
    const char *folder = HAS_SANITIZER ? "/" : "a site";
    rc = HAS_SANITIZER ? os_landlock_allow_reading(&rules, folder)
                       : allow_sites(&rules, confinement->sites);
    for (const char *const *each = confinement->folders; each && *each && rc == 0; each++) {
        folder = *each;
        rc = os_landlock_allow_reading(&rules, folder);
    }
    if (rc < 0) {
        os_landlock_drop(&rules);
        log_error(LOG_ERROR, "cannot make a rule of the sandbox for %s: %s", folder, strerror(-rc));
        return rc;
    }
    rc = os_landlock_enforce(&rules);
    if (rc == 0)
        add_part(sandbox->in_force, "landlock", rules.level);
    else
        log_error(LOG_ERROR, "cannot put the rules of the sandbox in force: %s", strerror(-rc));
    return rc;
}

static const char *reason_for_no_seccomp(int error)
{
    return error == -ENOSYS || error == -EINVAL
               ? "seccomp (the kernel is older than Linux 4.14, or the call is hidden)"
               : "seccomp (a filter of system calls forbids it)";
}

/* The last part: the others make calls that the filter refuses. */
static int filter_calls(const struct confinement *confinement, struct server_sandbox *sandbox)
{
    int rc = server_calls_possible();
    if (HAS_SANITIZER) {
        add_part(sandbox->in_force, "no seccomp (sanitizer)", 0);
        return 0;
    }
    if (rc < 0) {
        add_part(sandbox->missing, reason_for_no_seccomp(rc), 0);
        return 0;
    }
    rc = server_calls_restrict(confinement->calls, confinement->master, confinement->totals);
    if (rc == 0)
        add_part(sandbox->in_force, "seccomp", 0);
    else
        log_error(LOG_ERROR, "cannot put the filter of system calls in force: %s", strerror(-rc));
    return rc;
}

static int confine(const struct confinement *confinement, struct server_sandbox *sandbox)
{
    *sandbox = (struct server_sandbox){ 0 };
    int rc = 0;
    if (strcmp(confinement->wish, "off") != 0) {
        rc = shed_privileges(sandbox);
        if (rc == 0)
            rc = close_file_system(confinement, sandbox);
        if (rc == 0)
            rc = filter_calls(confinement, sandbox);
    } else {
        add_part(sandbox->in_force, "off", 0);
    }
    if (rc == 0 && sandbox->missing[0] && strcmp(confinement->wish, "require") == 0) {
        log_error(LOG_ERROR,
                  "sandbox = require, and this system lacks %s; `sandbox = on` starts without it",
                  sandbox->missing);
        rc = -EPERM;
    }
    return rc;
}

/* ---- processes ---- */

int server_sandbox_confine_worker(const struct server_sandbox_worker *worker,
                                  struct server_sandbox *ret_sandbox)
{
    char user[OS_PROCESS_USER_MAX];
    os_process_user_name(user); /* reads /etc/passwd, which the sandbox closes */
    int rc = confine(&(struct confinement){ .wish = worker->config->sandbox,
                                            .sites = worker->sites,
                                            .calls = worker->calls,
                                            .master = worker->master,
                                            .totals = worker->totals },
                     ret_sandbox);
    add_user(ret_sandbox->in_force, user);
    return rc;
}

int server_sandbox_confine_page(const char *wish, pid_t master)
{
    /* The page shows the CPU time and the memory of the server, within its control group. */
    static const char control_groups[] = "/sys/fs/cgroup";
    const char *folders[] = { "/proc", NULL, NULL };
    struct server_sandbox sandbox;
    if (access(control_groups, F_OK) == 0) /* containers may lack it */
        folders[1] = control_groups;
    return confine(
        &(struct confinement){
            .wish = wish, .folders = folders, .calls = CALLS_ALL | CALLS_PAGE, .master = master },
        &sandbox);
}

/* ---- the master ---- */

static bool has_low_port(const struct config *config)
{
    const char *const *lists[] = { config->listen, config->stats_listen };
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        for (const char *const *each = lists[i]; *each; each++) {
            const char *colon = strrchr(*each, ':');
            uint64_t port;
            if (colon && num_parse_u64(span_text(colon + 1), &port) && port > 0 && port < 1024)
                return true;
        }
    return false;
}

/* Files of the configuration, logs and site folders may belong to any user. A master that is root
 * reads them and writes logs there. SETPCAP empties the bounding set of a worker. */
static uint64_t privileges_of_master(const struct config *config)
{
    uint64_t kept = has_low_port(config) ? OS_PRIVILEGE(CAP_NET_BIND_SERVICE) : 0;
    if (config->congestion)
        kept |= OS_PRIVILEGE(CAP_NET_ADMIN); /* for an algorithm that only root may choose */
    if (geteuid() == 0)
        kept |= OS_PRIVILEGE(CAP_SETPCAP) | OS_PRIVILEGE(CAP_DAC_OVERRIDE) |
                OS_PRIVILEGE(CAP_DAC_READ_SEARCH);
    if (geteuid() == 0 && server_resources_user(config->user))
        kept |= OS_PRIVILEGE(CAP_SETUID) | OS_PRIVILEGE(CAP_SETGID) | OS_PRIVILEGE(CAP_KILL);
    return kept;
}

void server_sandbox_confine_master(const struct config *config)
{
    if (strcmp(config->sandbox, "off") == 0)
        return;
    int rc = os_privilege_keep(privileges_of_master(config));
    if (rc == 0)
        rc = os_privilege_forbid_new();
    if (rc < 0)
        log_error(LOG_WARNING, "the master cannot give up privileges: %s", strerror(-rc));
}

/* ---- reports ---- */

void server_sandbox_report(struct server_sandbox *sandbox, const char *missing)
{
    if (sandbox->missing[0])
        return;
    snprintf(sandbox->missing, sizeof(sandbox->missing), "%s", missing);
    log_error(LOG_WARNING, "the sandbox is not complete: this system lacks %s", missing);
}

void server_sandbox_describe_machine(struct server_sandbox *ret_sandbox)
{
    *ret_sandbox = (struct server_sandbox){ 0 };
    add_part(ret_sandbox->in_force, "no_new_privs", 0);
    int level = os_landlock_level();
    if (level > 0)
        add_part(ret_sandbox->in_force, "landlock", level);
    else
        add_part(ret_sandbox->missing, reason_for_no_landlock(level), 0);
    int rc = server_calls_possible();
    if (rc == 0)
        add_part(ret_sandbox->in_force, "seccomp", 0);
    else
        add_part(ret_sandbox->missing, reason_for_no_seccomp(rc), 0);
}
