/* SPDX-License-Identifier: MIT
 *
 * Opens the sites of the cases (tests/conformance/README.md) for sessions, as the
 * server does from its configuration.
 */
#pragma once

#include "fixture.h"
#include "server/auth.h"
#include "session/access.h"
#include "session/thread.h"
#include "task/task.h"

enum { SERVE_SITES = 9, SERVE_ACCESSES = 96 };

struct config_store;

struct serve {
    char *paths[SERVE_SITES]; /* roots, which serve_stop frees */
    char *errors;
    char *log_path;
    struct config_store *rules; /* rules.conf: rules.test and staff.test */
    char *rules_path;
    struct site_options options[SERVE_SITES];
    struct session_site sites[SERVE_SITES];
    struct site_mime *mime;
    struct log_access_sink log;
    struct server_auth auth; /* the users that rules.conf names */
    struct session_access access[SERVE_ACCESSES];
    char challenges[SERVE_ACCESSES][SESSION_CHALLENGE_MAX];
    unsigned accesses;
    struct session_guard guard;
    struct task_home home;
    struct session_shared shared;
    struct session_thread worker;
};

/* Opens all sites of the fixture, for one thread. The access log goes to a
 * file beside the site. `cache_bytes` 0 serves without a cache. Files larger than
 * `body_max` are kept open rather than in memory. With a cache, an answer is pending
 * while a password is compared. Without one, the comparison is made in the call. Returns 0, or -1
 * after a line on standard error. */
MUST_USE int serve_start(struct serve *serve, const struct fixture *fixture, size_t cache_bytes,
                         size_t body_max);
void serve_stop(struct serve *serve);

/* Forgets which passwords were right, and the attempts of each address. */
void serve_forget(struct session_thread *worker);

/* The number of whole lines in the access log. */
size_t serve_log_lines(struct serve *serve);
