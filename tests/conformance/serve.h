/* SPDX-License-Identifier: MIT
 *
 * The sites of the cases (tests/conformance/README.md), opened and ready for
 * sessions: what the server would make of its configuration, without a server.
 */
#pragma once

#include "fixture.h"
#include "session/thread.h"

enum { SERVE_SITES = 7 };

struct serve {
    char *paths[SERVE_SITES]; /* roots, ours to free */
    char *errors;
    char *log_path;
    struct site_options options[SERVE_SITES];
    struct session_site sites[SERVE_SITES];
    struct site_mime *mime;
    struct log_access_sink log;
    struct session_shared shared;
    struct session_thread worker;
};

/* Opens everything over the fixture, with one worker. The access log goes to a
 * file beside the site. `cache_bytes` 0 serves without a cache; files larger than
 * `body_max` are kept open rather than in memory. Returns 0, or -1 after a line
 * on standard error. */
MUST_USE int serve_start(struct serve *serve, const struct fixture *fixture, size_t cache_bytes,
                         size_t body_max);
void serve_stop(struct serve *serve);

/* Whole lines that the access log holds by now. */
size_t serve_log_lines(struct serve *serve);
