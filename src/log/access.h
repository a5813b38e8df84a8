/* SPDX-License-Identifier: MIT
 *
 * The access log: one whole line for each request, formatted into a buffer
 * that one thread owns and written with one O_APPEND write, so that lines of
 * several threads and processes never interleave and no request pays for a
 * system call. What cannot be written (disk full, reader gone) is dropped and
 * counted; a request never waits for its log line.
 *
 * It does not rotate: whoever moves the file sends SIGUSR1, and the owner of
 * the descriptor reopens it (log_access_reopen).
 */
#pragma once

#include "base/check.h"
#include "base/span.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

enum log_format { LOG_COMBINED, LOG_JSON };

/* A file takes whatever it is given; a pipe or terminal, and a socket, are written
 * only when they have room. */
enum log_sink_kind { LOG_SINK_FILE, LOG_SINK_PIPE, LOG_SINK_SOCKET };

/* The place lines go to, shared by all threads of a process. */
struct log_access_sink {
    const char *path; /* NULL: standard output. Borrowed, outlives the sink */
    enum log_format format;
    _Atomic int fd; /* -1 when the log is off or could not be opened */
    _Atomic(enum log_sink_kind) kind;
    _Atomic bool torn;        /* the file's last line is unfinished; the next write ends it first */
    _Atomic uint64_t dropped; /* lines lost, since start */
};

/* Opens the sink; `path` "-" is standard output and "off" no log at all. The
 * process ignores SIGPIPE. Returns 0 or -errno. */
MUST_USE int log_access_open(struct log_access_sink *sink, const char *path,
                             enum log_format format);

/* Opens the path anew (after a rotation) and lets go of the old file; when that
 * fails the old one is kept and -errno returned. Safe while other threads write:
 * the descriptor number stays the same. Standard output and a log that is off
 * stay as they are. */
MUST_USE int log_access_reopen(struct log_access_sink *sink);

/* Never closes standard output itself. */
void log_access_close(struct log_access_sink *sink);

/* One request, as a line tells it. All spans are borrowed for the call, and may
 * hold any bytes: whatever is hostile is escaped (\xHH in `combined`, \u00HH in
 * JSON, where valid UTF-8 stands as it is; base/escape.h).
 *
 *   peer - - [10/Oct/2000:13:55:36 +0000] "GET / HTTP/1.1" 200 308 "referer" "user agent" ID
 *   {"time":"2000-10-10T13:55:36Z","peer":"...","request":"...","host":"...",
 *    "status":200,"bytes":308,"referer":"...","agent":"...","id":"ID"} (on one line)
 *
 * ID is the request's, 16 hexadecimal digits, as an error page shows it; readers of
 * `combined` pass such a field at the end over. Times are UTC. In `combined` an empty
 * text is `-`, and so are no body bytes, as Apache's %b has it; in JSON they are "" and 0. */
struct log_access_line {
    struct span peer;         /* address in text, "-" when unknown */
    struct span request_line; /* METHOD target HTTP/x.y as it came; empty when none was read */
    struct span host;         /* the site's name or Host; JSON only */
    struct span referer;
    struct span user_agent;
    unsigned status;
    uint64_t body_bytes; /* of the response body, as sent */
    uint64_t id;
};

enum { LOG_ACCESS_BUFFER = 64 * 1024 };

/* One thread's buffer, or with `lock` that of several. Zero it, then log_access_start. */
struct log_access {
    struct log_access_sink *sink;
    pthread_mutex_t *lock; /* guards the rest, `bytes` itself apart; NULL: it is one thread's own */
    char *bytes;           /* LOG_ACCESS_BUFFER of them; NULL while the log is off */
    size_t len;            /* whole lines, but for what a short write left of the first */
    int64_t stamp_s;       /* second that `stamp` tells */
    char stamp[40];        /* the time, and what stands around it in each line */
    size_t stamp_len;      /* 0: no stamp yet */
    uint64_t lines_pending;
};

/* Binds a thread's buffer to the sink. Returns 0 or -ENOMEM. */
MUST_USE int log_access_start(struct log_access *log, struct log_access_sink *sink);

/* From now on several threads add to the buffer. Borrows `lock` until log_access_stop. */
void log_access_share(struct log_access *log, pthread_mutex_t *lock);

/* Whether there is anything to flush. */
bool log_access_pending(struct log_access *log);

/* Appends a line; writes the buffer out first when the line does not fit, and
 * drops the line, counted, when it still does not. A line longer than LOG_LINE_MAX
 * (unless it goes to a file, PIPE_BUF: what a pipe takes in one piece) has its
 * longest pieces cut, marked with "...". */
enum { LOG_LINE_MAX = 16 * 1024 };
void log_access_add(struct log_access *log, const struct log_access_line *line, int64_t wall_s);

/* Writes out what is there; called at least once a second and at the end. A file
 * takes it in one write; what it does not take is dropped and counted. A pipe,
 * socket or terminal takes what it has room for now; the rest stays for the next
 * time, unless the reader is gone. */
void log_access_flush(struct log_access *log);

/* In a process that was forked off: what is in the buffer is the parent's to write. */
void log_access_forget(struct log_access *log);

/* Flushes, giving a slow reader a moment, and frees. Accepts a zeroed log. */
void log_access_stop(struct log_access *log);
