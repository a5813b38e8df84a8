/* SPDX-License-Identifier: MIT
 *
 * The access log: one whole line for each request. A line is formatted into a buffer that one
 * thread owns, and the buffer is written with one O_APPEND write. So lines of several threads and
 * processes never mix, and a request costs no system call. Lines that cannot be written, because
 * the disk is full or the reader is gone, are dropped and counted. The error log reports the loss
 * (log/loss.h). A request never waits for its log line.
 *
 * It does not rotate. The program that moves the file sends SIGUSR1. The master then opens the
 * path again, and its workers replace their descriptors (log_access_replace).
 */
#pragma once

#include "base/calendar.h"
#include "base/check.h"
#include "base/span.h"
#include "log/file.h"
#include "log/message.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

struct log_layout;
struct log_loss;
struct log_tail;

/* A file is written at once. A pipe, terminal or socket is written only when it has space. */
enum log_sink_kind { LOG_SINK_FILE, LOG_SINK_PIPE, LOG_SINK_SOCKET };

/* The destination of the lines, shared by all threads of a process. */
struct log_access_sink {
    bool is_named;                   /* by a path or an address; else standard output or nothing */
    enum log_message message;        /* each line is a datagram */
    const struct log_layout *layout; /* borrowed; NULL: `combined` */
    _Atomic int fd;                  /* -1 when the log is off or could not be opened */
    _Atomic(enum log_sink_kind) kind;
    _Atomic(struct log_tail *) tail; /* of the file; shared with other processes (log/tail.h) */
    struct log_loss *loss;           /* log/loss.h; NULL: it is not reported */
    _Atomic uint64_t wait_again_ns;  /* log_tail_claim's */
    _Atomic uint64_t dropped;        /* lines lost since the start */
};

/* Opens the sink. The setting is a path or a socket for log_file_open, "-" for standard output, or
 * "off" for no log. Borrows the layout, NULL for `combined`, until log_access_close. Datagrams need
 * one. `opening` may be NULL. The process must ignore SIGPIPE. Returns 0 or -errno. */
MUST_USE int log_access_open(struct log_access_sink *sink, const char *setting,
                             const struct log_layout *layout, struct log_file_opening *opening);

/* Continues in the file `fd`, which the caller closes; the old file is closed. Other threads may be
 * writing: the descriptor's number stays the same. Standard output, and a log that is off, stay as
 * they are. Safe in a signal handler. 0, or -errno and the old file is kept. */
MUST_USE int log_access_replace(struct log_access_sink *sink, int fd);

/* Closes the sink, but never standard output itself. */
void log_access_close(struct log_access_sink *sink);

/* One request, as a line reports it. All spans are borrowed for the call, and may hold any bytes.
 * Unsafe bytes are escaped: \xHH in `combined` and in most formats of operators, \u00HH in JSON,
 * where valid UTF-8 stays as it is (base/escape.h).
 *
 *   peer - - [10/Oct/2000:13:55:36 +0000] "GET / HTTP/1.1" 200 308 "referer" "user agent" ID
 *   {"time":"2000-10-10T13:55:36.123Z","peer":"...","request":"...","host":"...","status":200,
 *    "bytes":308,"duration_us":87,"referer":"...","agent":"...","id":"ID"} (on one line)
 *
 * ID is the request's id, 16 hexadecimal digits, as an error page shows it. A request over TLS has
 * the protocol and the cipher too: two words after ID, and "tls" and "cipher" before "id". Programs
 * that read `combined` ignore such fields at the end. A well-formed Traceparent field is the last
 * word there, and "traceparent" before "id" in JSON. If a proxy has forwarded the request, "peer"
 * is the client that it names, and "via" behind it is the proxy's own address (JSON only). Times
 * are UTC. In `combined` an empty text is `-`, and 0 body bytes are `-`, as Apache's %b defines. In
 * JSON they are "" and 0. log/layout.h has all other formats. */
struct log_access_line {
    struct span peer;         /* address as text, "-" when unknown */
    struct span via;          /* the address of the proxy, without unsafe bytes; empty: none */
    struct span request_line; /* METHOD target HTTP/x.y as received; empty when none was read */
    struct span host;         /* the requested host; JSON only */
    struct span referer;
    struct span user_agent;
    unsigned status;
    uint64_t body_bytes; /* of the response body, really sent */
    uint64_t id;
    struct span protocol, cipher; /* of TLS, without unsafe bytes; empty: there is no TLS */
    struct span traceparent;      /* without unsafe bytes; empty: there is none */
};

/* Whether the answer had a file of the cache. */
enum log_cache { LOG_CACHE_NONE, LOG_CACHE_HIT, LOG_CACHE_MISS };

enum { LOG_FIELDS_MAX = 8 }; /* the most fields of the request that a layout adds to a line */

/* What a line with a layout reports beside. The spans are as those of a line. */
struct log_access_details {
    int64_t wall_ms;      /* the time, in milliseconds since 1970; 0: now */
    uint64_t duration_ns; /* from the first byte of the request to the last of the answer */
    uint64_t receive_ns;  /* of it, until the answer was decided */
    uint64_t waited_ns;   /* of the duration, for the disk while the loop served others */
    enum log_cache cache;
    struct span site; /* its name */
    struct span user;
    struct span field[LOG_FIELDS_MAX]; /* of log_layout.fields, in the order of enum http_field */
};

enum { LOG_ACCESS_BUFFER = 64 * 1024 };

/* A second as text. */
struct log_moment {
    int64_t second; /* since 1970 */
    bool known;
    char iso[CALENDAR_LEN]; /* 2000-10-10T13:55:36Z */
    char local[32];         /* 10/Oct/2000:13:55:36 +0000, and a NUL */
};

/* One thread's buffer, or with `lock` that of several threads. Zero it, then call
 * log_access_start. */
struct log_access {
    struct log_access_sink *sink;
    const struct log_layout *layout; /* of the sink */
    pthread_mutex_t
        *lock;        /* guards the rest except the pointer `bytes`; NULL: one thread owns all */
    char *bytes;      /* LOG_ACCESS_BUFFER bytes; NULL while the log is off */
    size_t len;       /* whole lines; the first may have lost its front to a short write */
    int64_t stamp_s;  /* the second of `stamp` */
    char stamp[40];   /* the time, with the fixed text around it; for `combined` */
    size_t stamp_len; /* 0: no stamp yet */
    struct log_moment moment; /* for a layout */
    uint64_t lines_pending;
};

/* Binds a thread's buffer to the sink. Returns 0 or -ENOMEM. */
MUST_USE int log_access_start(struct log_access *log, struct log_access_sink *sink);

/* From now on several threads may add to the buffer. Borrows `lock` until log_access_stop. */
void log_access_share(struct log_access *log, pthread_mutex_t *lock);

/* Whether the buffer holds anything. */
bool log_access_pending(struct log_access *log);

/* Appends a line. If it does not fit, writes the buffer first. If it still does not fit, drops
 * and counts it. A line is at most LOG_LINE_MAX bytes long, or PIPE_BUF unless the sink is a
 * file, so that a pipe takes it in one piece. In a longer line the longest texts are cut and
 * marked with "...". */
enum { LOG_LINE_MAX = 16 * 1024 };
void log_access_add(struct log_access *log, const struct log_access_line *line, int64_t wall_s);

/* The same for a log with a layout. `wall_s` of log_access_add is the whole time there, and all
 * details are 0. */
void log_access_add_detailed(struct log_access *log, const struct log_access_line *line,
                             const struct log_access_details *details);

/* Writes the buffer. Call it at least once a second and at the end. A file takes the buffer in
 * one write; what it does not take is dropped and counted. A pipe, socket or terminal takes what
 * it has space for. The rest stays for the next call, unless the reader is gone. */
void log_access_flush(struct log_access *log);

/* In a forked process: empties the buffer, which the parent writes. */
void log_access_forget(struct log_access *log);

/* Flushes, with a short wait for a slow reader, and frees. Accepts a zeroed log. */
void log_access_stop(struct log_access *log);
