/* SPDX-License-Identifier: MIT
 *
 * Lines are rare here, so each is formatted on the stack and written at once. It is written even
 * if the process dies the next moment. No lock is needed: a line is one write, and the
 * descriptor's number does not change once other threads run. On a full disk a write can end inside
 * a line. All processes that write to the file share this state (log/tail.h).
 */
#include "log/error.h"

#include "base/buf.h"
#include "base/calendar.h"
#include "base/duration.h"
#include "base/escape.h"
#include "log/message.h"
#include "log/tail.h"
#include "os/clock.h"
#include "os/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static_assert(LOG_ERROR_LINE_MAX <= PIPE_BUF, "a pipe takes a line in one piece");

static _Atomic int error_fd = STDERR_FILENO;
static _Atomic int threshold = LOG_INFO;
static _Atomic unsigned long lost; /* lines for which there was no space */
static _Atomic bool torn;          /* the last line was not written completely; not of a file */
static _Atomic(struct log_tail *) tail; /* of a file; NULL: of anything else */
static _Atomic uint64_t wait_again_ns;  /* log_tail_claim's */

/* Set before there are threads. */
static char error_path[PATH_MAX]; /* empty: standard error */
static enum log_message error_message;
static void (*divert)(void *context, const char *text);
static void *divert_context;

static const char *const level_names[] = {
    [LOG_DEBUG] = "debug",
    [LOG_INFO] = "info",
    [LOG_WARNING] = "warning",
    [LOG_ERROR] = "error",
};

int log_error_open(const char *path, struct log_file_opening *opening)
{
    if (path == NULL || !log_file_is_named(path))
        return STDERR_FILENO;
    const int rc = log_tail_prepare();
    const int fd = rc < 0 ? rc : log_file_open(path, opening);
    if (fd >= 0)
        log_tail_examine(fd);
    return fd;
}

static void note_tail(int fd)
{
    struct stat st;
    const bool is_file = fd != STDERR_FILENO && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    atomic_store(&tail, is_file ? log_tail_of(fd) : NULL);
}

void log_error_drop(int fd)
{
    if (fd >= 0 && fd != STDERR_FILENO)
        (void)close(fd);
}

void log_error_use(int fd, const char *path, enum log_level level)
{
    atomic_store(&threshold, (int)level);
    error_path[0] = '\0';
    error_message = fd != STDERR_FILENO ? log_message_kind(path) : LOG_MESSAGE_NONE;
    if (fd != STDERR_FILENO)
        (void)snprintf(error_path, sizeof(error_path), "%s", path);
    note_tail(fd);
    log_error_drop(atomic_exchange(&error_fd, fd));
}

void log_error_divert(void (*hear)(void *context, const char *text), void *context)
{
    divert = hear;
    divert_context = context;
}

const char *log_error_path(void)
{
    return error_path[0] != '\0' ? error_path : NULL;
}

int log_error_move(int least)
{
    const int fd = atomic_load(&error_fd);
    if (fd == STDERR_FILENO || fd >= least)
        return 0;
    const int moved = fcntl(fd, F_DUPFD_CLOEXEC, least);
    if (moved < 0)
        return -errno;
    log_error_drop(atomic_exchange(&error_fd, moved));
    return 0;
}

int log_error_replace(int fd)
{
    if (error_path[0] == '\0')
        return 0;
    int result;
    do {
        result = dup3(fd, atomic_load(&error_fd), O_CLOEXEC);
    } while (result < 0 && (errno == EINTR || errno == EBUSY));
    if (result < 0)
        return -errno;
    note_tail(fd);
    return 0;
}

/* Writes `2026-11-21T08:00:00.123Z error [4711] ` and returns its length. */
static size_t put_prefix(char *out, size_t size, enum log_level level)
{
    const int64_t now_ms = os_clock_wall_ms();
    char now[CALENDAR_LEN];
    calendar_format(now, now_ms / 1000);
    const int len = snprintf(out, size, "%.19s.%03dZ %s [%d] ", now, (int)(now_ms % 1000),
                             level_names[level], (int)getpid());
    CHECK(len > 0 && (size_t)len < size);
    return (size_t)len;
}

/* Another process can fill a pipe after poll(2). */
static bool can_fill(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
}

/* Writes a line, which begins with a newline. That newline is written only when the line before
 * is unfinished (*is_torn, which becomes the state of this line). */
static bool write_after(int fd, const char *line, size_t len, bool *is_torn)
{
    const size_t skipped = *is_torn ? 0 : 1;
    const bool now = can_fill(fd);
    ssize_t written;
    do {
        written = now ? os_file_try_write(fd, line + skipped, len - skipped)
                      : write(fd, line + skipped, len - skipped);
    } while (written < 0 && errno == EINTR);
    const bool whole = written == (ssize_t)(len - skipped);
    *is_torn = !whole && (written > 0 || *is_torn);
    return whole;
}

static bool write_to_file(int fd, struct log_tail *file_tail, const char *line, size_t len)
{
    struct log_tail_turn turn = log_tail_claim(file_tail, &wait_again_ns);
    bool is_torn = log_tail_needs_newline(&turn, fd);
    const bool whole = write_after(fd, line, len, &is_torn);
    log_tail_release(turn, is_torn);
    return whole;
}

static bool write_line(const char *line, size_t len)
{
    struct log_tail *file_tail = atomic_load(&tail);
    struct pollfd room = { .fd = atomic_load_explicit(&error_fd, memory_order_relaxed),
                           .events = POLLOUT };
    if (poll(&room, 1, 0) != 1)
        return false;
    if (file_tail != NULL)
        return write_to_file(room.fd, file_tail, line, len);
    bool is_torn = atomic_exchange(&torn, false);
    const bool whole = write_after(room.fd, line, len, &is_torn);
    if (is_torn)
        atomic_store(&torn, true);
    return whole;
}

static void put_note(struct buf *line, struct span before, unsigned long count, struct span after)
{
    if (count == 0)
        return;
    buf_add(line, before);
    buf_add_u64(line, count);
    buf_add(line, after);
}

static struct log_message_about about_message(enum log_level level)
{
    static const unsigned severities[] = {
        [LOG_DEBUG] = LOG_MESSAGE_DEBUG,
        [LOG_INFO] = LOG_MESSAGE_INFO,
        [LOG_WARNING] = LOG_MESSAGE_WARNING,
        [LOG_ERROR] = LOG_MESSAGE_ERROR,
    };
    return (struct log_message_about){ .kind = error_message,
                                       .severity = severities[level],
                                       .log = "error",
                                       .wall_ms = os_clock_wall_ms() };
}

/* Sends a line, which ends with a newline, as a datagram. */
static bool send_line(struct buf *line, const struct log_message_about *about)
{
    line->len += log_message_put_fields(line->at + line->len, about);
    const size_t len = line->len - (about->kind == LOG_MESSAGE_SYSLOG);
    return log_message_send(atomic_load_explicit(&error_fd, memory_order_relaxed),
                            span_of(line->at, len)) == 0;
}

static void write_text(enum log_level level, struct span text, bool cut, unsigned long held_back)
{
    enum { NOTES_MAX = 120 }; /* "...", two notes and the newline */
    char bytes[LOG_ERROR_LINE_MAX];
    struct buf line = buf_over(bytes, sizeof(bytes));
    const struct log_message_about about = about_message(level);
    const bool is_message = about.kind != LOG_MESSAGE_NONE;
    if (is_message) {
        line.len += log_message_put_head(line.at, &about);
    } else {
        buf_add_char(&line, '\n');
        line.len += put_prefix(line.at + line.len, buf_room(&line), level);
    }

    const size_t room = buf_room(&line) - NOTES_MAX - (is_message ? LOG_MESSAGE_HEAD_MAX : 0);
    if (escape_text(NULL, SIZE_MAX, text, ESCAPE_TEXT) > room)
        cut = true;
    line.len += escape_text(line.at + line.len, room, text, ESCAPE_TEXT);
    if (cut)
        buf_add(&line, SPAN("..."));
    const unsigned long lost_before = atomic_exchange(&lost, 0);
    put_note(&line, SPAN(" (and "), held_back, SPAN(" more like it)"));
    put_note(&line, SPAN(" (lines lost before this: "), lost_before, SPAN(")"));
    buf_add_char(&line, '\n');
    CHECK(!line.overflow);
    if (!(is_message ? send_line(&line, &about) : write_line(line.at, line.len)))
        (void)atomic_fetch_add(&lost, lost_before + 1);
}

static void __attribute__((format(printf, 3, 0)))
write_formatted(enum log_level level, unsigned long held_back, const char *format,
                va_list arguments)
{
    const int saved_errno = errno;
    char text[LOG_ERROR_LINE_MAX];
    const int len = vsnprintf(text, sizeof(text), format, arguments);
    if (len >= 0 && level == LOG_ERROR && divert != NULL)
        divert(divert_context, text);
    else if (len >= 0)
        write_text(level, span_first(span_of(text, (size_t)len), sizeof(text) - 1),
                   (size_t)len >= sizeof(text), held_back);
    errno = saved_errno;
}

static bool is_level_wanted(enum log_level level)
{
    return (int)level >= atomic_load_explicit(&threshold, memory_order_relaxed);
}

void log_error(enum log_level level, const char *format, ...)
{
    if (!is_level_wanted(level))
        return;
    va_list arguments;
    va_start(arguments, format);
    write_formatted(level, 0, format, arguments);
    va_end(arguments);
}

void log_error_twice(const char *format, ...)
{
    const int saved_errno = errno;
    char text[LOG_ERROR_LINE_MAX];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    log_error(LOG_ERROR, "%s", text);
    const bool is_same = error_path[0] == '\0' || (error_message == LOG_MESSAGE_JOURNAL &&
                                                   log_message_is_journal(STDERR_FILENO));
    struct pollfd room = { .fd = STDERR_FILENO, .events = POLLOUT };
    if (!is_same && poll(&room, 1, 0) == 1)
        dprintf(STDERR_FILENO, "weir: %s\n", text);
    errno = saved_errno;
}

void log_error_limited(struct log_error_limit *limit, int interval_s, enum log_level level,
                       const char *format, ...)
{
    if (!is_level_wanted(level))
        return;
    const long now_s = 1 + (long)(os_clock_now_ns() / DURATION_SECOND); /* 0 means never */
    long last_s = atomic_load(&limit->last_s);
    if ((last_s != 0 && now_s - last_s < interval_s) ||
        !atomic_compare_exchange_strong(&limit->last_s, &last_s, now_s)) {
        (void)atomic_fetch_add(&limit->held_back, 1);
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    write_formatted(level, atomic_exchange(&limit->held_back, 0), format, arguments);
    va_end(arguments);
}
