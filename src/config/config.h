/* SPDX-License-Identifier: MIT
 *
 * The configuration: what the file, the environment and the command line say,
 * checked and put together. Flags win over WEIR_* variables, variables over the
 * file, the file over the defaults; each value remembers where it came from.
 *
 * Reading a configuration has no side effects: no socket, no file written, no
 * privilege needed. Every setting is one line of settings.def, from which the
 * reader, `weir check --explain`, --help and the manual page are made.
 */
#pragma once

#include "base/check.h"
#include "base/duration.h"
#include "base/span.h"

#include <stdint.h>

enum {
    /* Header lines that one site adds to its answers, all together, each with its
     * CRLF: what the session's room for a head leaves them (SESSION_ANSWER_ROOM). */
    CONFIG_HEADERS_MAX = 4 * 1024
};

/* What a timeout of 0 ("no limit") is here: a hundred years, so that adding it to
 * a clock reading cannot overflow. Those of the end (drain_delay_ns, drain_timeout_ns,
 * drain_idle_ns, kill_timeout_ns) keep their 0: at once. */
#define CONFIG_FOREVER_NS (UINT64_C(100) * 365 * 24 * 3600 * DURATION_SECOND)

struct config_site {
    const char *name;         /* of the section; "default" for the folder on the command line */
    const char *const *hosts; /* lower case, no port; "*.example.org": any name below; NULL at
                                    the end; empty: answers any host (at most one site is so) */
    const char *root;
    const char *const *index;   /* NULL at the end */
    const char *fallback;       /* below the root, no leading slash; or NULL */
    const char *error_pages;    /* a folder; or NULL */
    const char *const *headers; /* "Name: value", checked; NULL at the end */
    bool listing;
    bool precompressed;
    bool hidden;
};

struct config {
    const char *const *listen; /* IPV4:PORT, [IPV6]:PORT, *:PORT or unix:PATH, checked; NULL at
                                    the end. A bare port has become 127.0.0.1:PORT */
    bool listen_by_default;    /* nobody chose these addresses: one that the machine lacks (no
                                    IPv6) may be passed over while another is left */
    const char *model;
    unsigned workers;        /* 0: by the model */
    unsigned threads;        /* 0: by the model */
    unsigned connections;    /* 0: by the descriptor limit */
    const char *pool_policy; /* park, sticky */
    uint64_t pool_queue;     /* connections that wait for a thread, at most */
    const char *access_log;  /* path, "-" (standard output) or "off" */
    const char *log_format;  /* combined, json */
    const char *error_log;   /* path or "-" (standard error) */
    const char *log_level;   /* debug, info, warning, error */
    uint64_t cache_size_bytes;
    uint64_t cache_entries;
    const char *cache_policy;      /* sieve, lru */
    uint64_t cache_file_max_bytes; /* larger files are kept open rather than in memory */
    uint64_t header_timeout_ns;
    uint64_t body_timeout_ns;
    uint64_t idle_timeout_ns;
    uint64_t send_timeout_ns;
    uint64_t drain_delay_ns;
    uint64_t drain_timeout_ns;
    uint64_t drain_idle_ns;
    uint64_t kill_timeout_ns;
    const char *congestion; /* of the listeners' connections; NULL: the system's */
    const char *user;       /* to become after the listeners are open; NULL: stay */
    const char *pid_file;   /* or NULL */
    const char *control;    /* path of the control socket, "auto" or "off" */
    bool server_header;
    bool stats;
    const char *const *stats_listen; /* as `listen`, of the statistics page; empty: there is none */
    bool stats_listen_by_default;    /* nobody chose it: if its port is taken, another will do */
    const char *stats_password;      /* hash of crypt(3), as it was written; or NULL */
    const struct config_site *sites;
    unsigned site_count;
};
