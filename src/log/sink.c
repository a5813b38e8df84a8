/* SPDX-License-Identifier: MIT
 *
 * The access log's descriptor. Several processes append to one file, so a buffer goes out in one
 * write, which the kernel does not mix with others. Nothing is truncated, because lines of
 * other programs may follow. A pipe or terminal gets at most PIPE_BUF bytes of whole lines at a
 * time, and only when poll(2) reports space. It does not rotate, and does not retry in a loop.
 */
#include "log/sink.h"

#include "log/loss.h"
#include "log/tail.h"
#include "os/clock.h"
#include "os/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static_assert(LOG_ACCESS_BUFFER >= 2 * LOG_LINE_MAX, "a line fits into an empty buffer");
static_assert(PIPE_BUF <= LOG_LINE_MAX, "what goes into a pipe is no longer than other lines");

/* Standard output is shared with the parent process, so it must not be made non-blocking.
 * Opening its file again gives a descriptor that may be. Where that is not allowed, poll(2)
 * before each write must do. */
static int open_standard_output(void)
{
    struct stat st;
    if (fstat(STDOUT_FILENO, &st) < 0)
        return -errno;
    if (S_ISFIFO(st.st_mode) || isatty(STDOUT_FILENO)) {
        const int fd = log_file_open("/dev/stdout", NULL);
        if (fd >= 0)
            return fd;
    }
    return STDOUT_FILENO;
}

static enum log_sink_kind kind_of(int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return LOG_SINK_FILE;
    if (S_ISSOCK(st.st_mode))
        return LOG_SINK_SOCKET;
    return S_ISFIFO(st.st_mode) || isatty(fd) ? LOG_SINK_PIPE : LOG_SINK_FILE;
}

static void set_destination(struct log_access_sink *sink, int fd)
{
    atomic_store(&sink->kind, kind_of(fd));
    atomic_store(&sink->tail, log_tail_of(fd));
}

int log_access_open(struct log_access_sink *sink, const char *setting,
                    const struct log_layout *layout, struct log_file_opening *opening)
{
    *sink = (struct log_access_sink){ .layout = layout,
                                      .is_named = log_file_is_named(setting),
                                      .message = log_message_kind(setting) };
    atomic_init(&sink->fd, -1);
    if (strcmp(setting, "off") == 0)
        return 0;
    const int rc = log_tail_prepare();
    if (rc < 0)
        return rc;
    const int fd = sink->is_named ? log_file_open(setting, opening) : open_standard_output();
    if (fd < 0)
        return fd;
    if (sink->message == LOG_MESSAGE_NONE)
        log_tail_examine(fd);
    set_destination(sink, fd);
    atomic_store(&sink->fd, fd);
    return 0;
}

int log_access_replace(struct log_access_sink *sink, int fd)
{
    const int old = atomic_load(&sink->fd);
    if (old < 0 || !sink->is_named)
        return 0;
    int result;
    do {
        result = dup3(fd, old, O_CLOEXEC);
    } while (result < 0 && (errno == EINTR || errno == EBUSY));
    if (result < 0)
        return -errno;
    set_destination(sink, fd);
    return 0;
}

void log_access_close(struct log_access_sink *sink)
{
    const int fd = atomic_exchange(&sink->fd, -1);
    if (fd >= 0 && (sink->is_named || fd != STDOUT_FILENO))
        (void)close(fd); /* lines that failed are already counted */
}

size_t log_sink_line_max(const struct log_access_sink *sink)
{
    const bool file = atomic_load_explicit(&sink->kind, memory_order_relaxed) == LOG_SINK_FILE;
    return file || sink->message == LOG_MESSAGE_JOURNAL ? LOG_LINE_MAX : PIPE_BUF;
}

static uint64_t count_lines(const char *at, size_t len)
{
    uint64_t count = 0;
    const char *const end = at + len;
    while ((at = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        count++;
        at++;
    }
    return count;
}

/* All threads read the sink, so it is written only when lines were lost. */
void log_sink_drop(struct log_access *log, uint64_t lines, const char *why)
{
    if (lines == 0)
        return;
    (void)atomic_fetch_add_explicit(&log->sink->dropped, lines, memory_order_relaxed);
    if (log->sink->loss != NULL)
        log_loss_add(log->sink->loss, lines, why, os_clock_now_ns());
}

static void drop_all(struct log_access *log, const char *why)
{
    log_sink_drop(log, log->lines_pending, why);
    log->lines_pending = 0;
    log->len = 0;
}

/* Lines were written, and none was lost. */
static void settle_loss(struct log_access_sink *sink)
{
    if (sink->loss != NULL && __builtin_expect(log_loss_is_open(sink->loss), 0))
        log_loss_settle(sink->loss, os_clock_now_ns());
}

/* `writev`, repeated after a signal. Returns how much was written. A write that is not whole leaves
 * the reason in *error; a short one has none of its own, and mostly the disk is full. */
static size_t append(int fd, const struct iovec *pieces, int count, int *error)
{
    ssize_t written;
    do {
        written = writev(fd, pieces, count);
    } while (written < 0 && errno == EINTR);
    *error = written < 0 ? errno : ENOSPC;
    return written > 0 ? (size_t)written : 0;
}

/* The lines of which the first `written` bytes hold all but the newline, which follows. */
static uint64_t count_written(const struct log_access *log, size_t written)
{
    const bool lacks_newline = written > 0 && written < log->len && log->bytes[written] == '\n';
    return count_lines(log->bytes, written) + lacks_newline;
}

/* On a full disk a write can end inside a line. A newline ends that rest as soon as one can be
 * written: at once, or before the next write by any process. The line counts as dropped, unless it
 * lacks the newline only. */
static void write_file(struct log_access *log, int fd)
{
    struct log_access_sink *sink = log->sink;
    char newline = '\n';
    struct log_tail *tail = atomic_load_explicit(&sink->tail, memory_order_relaxed);
    struct log_tail_turn turn = log_tail_claim(tail, &sink->wait_again_ns);
    bool torn = log_tail_needs_newline(&turn, fd);
    const size_t lead = torn ? 1 : 0;
    const struct iovec end = { &newline, 1 };
    const struct iovec pieces[] = { { &newline, lead }, { log->bytes, log->len } };
    int error;
    size_t written = append(fd, pieces, 2, &error);
    if (written > 0) {
        written -= lead;
        torn = written > 0 && log->bytes[written - 1] != '\n' && append(fd, &end, 1, &error) == 0;
    }
    log_tail_release(turn, torn);
    log->lines_pending -= count_written(log, written);
    if (log->lines_pending == 0)
        settle_loss(sink);
    drop_all(log, strerror(error));
}

/* The length of the next write: whole lines, as many as a pipe takes in one piece. */
static size_t chunk_len(const char *at, size_t len)
{
    if (len <= PIPE_BUF)
        return len;
    const char *newline = memrchr(at, '\n', PIPE_BUF);
    return newline != NULL ? (size_t)(newline + 1 - at) : PIPE_BUF;
}

static ssize_t write_chunk(int fd, enum log_sink_kind kind, const char *at, size_t len)
{
    return kind == LOG_SINK_SOCKET ? send(fd, at, len, MSG_DONTWAIT | MSG_NOSIGNAL)
                                   : os_file_try_write(fd, at, len);
}

static void write_bounded(struct log_access *log, int fd, enum log_sink_kind kind, int patience_ms)
{
    size_t done = 0;
    int error = 0;
    while (done < log->len && error == 0) {
        struct pollfd room = { .fd = fd, .events = POLLOUT };
        if (poll(&room, 1, patience_ms) <= 0)
            break;
        const char *at = log->bytes + done;
        const ssize_t written = write_chunk(fd, kind, at, chunk_len(at, log->len - done));
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0 && errno == EAGAIN)
            break;
        if (written > 0) {
            log->lines_pending -= count_lines(at, (size_t)written);
            done += (size_t)written;
        }
        if (written <= 0)
            error = written < 0 ? errno : EPIPE;
    }
    log->len -= done;
    memmove(log->bytes, log->bytes + done, log->len);
    if (error != 0)
        drop_all(log, strerror(error));
    else if (done > 0)
        settle_loss(log->sink);
}

/* ---- datagrams ---- */

/* The first line of the buffer, from `at` on, with the newline or the empty line that ends it. */
static size_t len_of_first(const struct log_access *log, size_t at)
{
    const bool journal = log->sink->message == LOG_MESSAGE_JOURNAL;
    const struct span rest = span_of(log->bytes + at, log->len - at);
    const struct span end = journal ? SPAN("\n\n") : SPAN("\n");
    const char *found = memmem(rest.at, rest.len, end.at, end.len);
    CHECK(found != NULL);
    return (size_t)(found - rest.at) + end.len;
}

/* -EAGAIN: the receiver has had no space for `patience_ms`. A refusal may belong to an earlier
 * datagram of UDP, so a second attempt follows. */
static int send_datagram(int fd, struct span bytes, int patience_ms)
{
    struct pollfd room = { .fd = fd, .events = POLLOUT };
    int rc = log_message_send(fd, bytes);
    if (rc == -ECONNREFUSED)
        rc = log_message_send(fd, bytes);
    if (rc == -ENOBUFS)
        rc = -EAGAIN;
    if (rc == -EAGAIN && patience_ms > 0 && poll(&room, 1, patience_ms) == 1)
        rc = log_message_send(fd, bytes);
    return rc;
}

/* Lines for which there is no space stay for the next call. A line that cannot be sent is dropped.
 * An entry of the journal ends with a newline, and a message of syslog has none. */
static void write_datagrams(struct log_access *log, int fd, int patience_ms)
{
    size_t done = 0, sent = 0;
    while (done < log->len) {
        const size_t len = len_of_first(log, done);
        const int rc = send_datagram(fd, span_of(log->bytes + done, len - 1), patience_ms);
        if (rc == -EAGAIN)
            break;
        if (rc < 0)
            log_sink_drop(log, 1, strerror(-rc));
        else
            sent++;
        log->lines_pending--;
        done += len;
    }
    log->len -= done;
    memmove(log->bytes, log->bytes + done, log->len);
    if (sent > 0)
        settle_loss(log->sink);
}

void log_sink_write(struct log_access *log, int patience_ms)
{
    const int fd = atomic_load_explicit(&log->sink->fd, memory_order_relaxed);
    const enum log_sink_kind kind = atomic_load_explicit(&log->sink->kind, memory_order_relaxed);
    if (fd < 0)
        drop_all(log, "the log is closed");
    else if (log->sink->message != LOG_MESSAGE_NONE)
        write_datagrams(log, fd, patience_ms);
    else if (kind == LOG_SINK_FILE)
        write_file(log, fd);
    else
        write_bounded(log, fd, kind, patience_ms);
}
