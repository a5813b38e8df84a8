/* SPDX-License-Identifier: MIT */
#include "program/control.h"

#include "base/buf.h"
#include "base/duration.h"
#include "base/num.h"
#include "os/clock.h"
#include "os/socket.h"
#include "program/command.h"
#include "server/control.h"
#include "server/runtime.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MASTERS_SHOWN = 16, STATUS_MS = 2000, PATIENCE_MS = 1000 };

/* ---- the conversation ---- */

/* An answer as it arrives. Whole lines go to `each`, except the last line, which is the result. It
 * needs no memory of the heap: a shortage here would look like a server that does not answer. */
struct reading {
    void (*each)(struct reading *reading, struct span line);
    uint64_t patience_ns; /* the time before which progress lines are not shown */
    enum program_control_answer answer;
    char *url; /* gets an address, and has this size */
    size_t url_size;
    bool kept_plain; /* the address is one without TLS */
    size_t len;
    char text[SERVER_CONTROL_ANSWER_MAX];
};

static void handle_answer_line(struct reading *reading, struct span line)
{
    if (span_equal(line, SPAN("ok")))
        reading->answer = PROGRAM_CONTROL_OK;
    else if (span_equal(line, SPAN("failed")))
        reading->answer = PROGRAM_CONTROL_FAILED;
    else
        reading->each(reading, line);
}

static void handle_answer_lines(struct reading *reading)
{
    struct span rest = span_of(reading->text, reading->len);
    const char *newline;
    while ((newline = memchr(rest.at, '\n', rest.len))) {
        struct span line = span_first(rest, (size_t)(newline - rest.at));
        handle_answer_line(reading, line);
        rest = span_skip(rest, line.len + 1);
    }
    memmove(reading->text, rest.at, rest.len);
    reading->len = rest.len;
}

/* Reads to the end of the answer. A `limit_ms` of -1 is no limit. */
static enum program_control_answer read_answer(int fd, struct reading *reading, int limit_ms)
{
    struct pollfd end = { .fd = fd, .events = POLLIN };
    reading->answer = PROGRAM_CONTROL_CUT;
    while (reading->len < sizeof(reading->text)) {
        int ready = poll(&end, 1, limit_ms);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            break;
        ssize_t len =
            recv(fd, reading->text + reading->len, sizeof(reading->text) - reading->len, 0);
        if (len < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (len <= 0)
            break;
        reading->len += (size_t)len;
        handle_answer_lines(reading);
    }
    return reading->answer;
}

static void send_request(int fd, const char *request)
{
    char line[SERVER_CONTROL_REQUEST_MAX];
    int len = snprintf(line, sizeof(line), "%s\n", request);
    (void)send(fd, line, (size_t)len, MSG_NOSIGNAL);
}

static void show_answer_line(struct reading *reading, struct span line)
{
    if (!span_starts(line, SPAN("..."))) {
        fprintf(stderr, "%.*s\n", (int)line.len, line.at);
        return;
    }
    line = span_skip(line, 3);
    if (isatty(STDERR_FILENO) == 1 && os_clock_now_ns() >= reading->patience_ns)
        fprintf(stderr, "weir: %.*s\n", (int)line.len, line.at);
}

enum program_control_answer program_control_ask(struct program_master *master, const char *request)
{
    struct reading reading = { .each = show_answer_line,
                               .patience_ns = os_clock_now_ns() + PATIENCE_MS * DURATION_MS };
    send_request(master->fd, request); /* a failure shows when the answer is read */
    (void)read_answer(master->fd, &reading, -1);
    close(master->fd);
    master->fd = -1;
    return reading.answer;
}

/* ---- the address of the server ---- */

/* Keeps the first address without TLS. If there is none, the first one. */
static void keep_url(struct reading *reading, struct span line)
{
    bool plain = !span_starts(line, SPAN("https://"));
    if (span_starts(line, SPAN("since ")) || reading->kept_plain || (!plain && reading->url[0]))
        return;
    snprintf(reading->url, reading->url_size, "%.*s", (int)line.len, line.at);
    reading->kept_plain = plain;
}

enum program_control_answer program_control_url(struct program_master *master, char *out,
                                                size_t size)
{
    struct reading reading = { .each = keep_url, .url = out, .url_size = size };
    out[0] = '\0';
    send_request(master->fd, "status");
    (void)read_answer(master->fd, &reading, STATUS_MS);
    close(master->fd);
    master->fd = -1;
    return reading.answer;
}

/* ---- finding ---- */

static int refuse_socket(int fd, const char *path, const char *why)
{
    if (fd >= 0)
        close(fd);
    fprintf(stderr, "weir: %s: %s\n", path, why);
    return PROGRAM_FAILED;
}

/* A connection to a file or a folder is refused, as by a socket without a server. */
static bool is_other_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && !S_ISSOCK(info.st_mode);
}

static int report_connect_error(const char *path, int error)
{
    switch (error) {
    case ENOENT:
        return refuse_socket(-1, path,
                             "there is no such socket; is the server running, as this user, and "
                             "with this `control`?");
    case ECONNREFUSED:
        return refuse_socket(-1, path,
                             is_other_file(path)
                                 ? "it is no socket; name the socket of a server (`control`)"
                                 : "the server that made this socket has ended");
    case EACCES:
    case EPERM:
        return refuse_socket(-1, path,
                             "only the user that the server runs as, and root, may use it; try "
                             "sudo");
    case EAGAIN:
        return refuse_socket(-1, path, "the server is busy with other requests; try again");
    default:
        return refuse_socket(-1, path, strerror(error));
    }
}

/* Connects, and asks the kernel which process answers. `pid` is the process expected, or 0. */
static int connect_master(const char *path, pid_t pid, struct program_master *ret_master)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);
    int fd = os_socket_connect(path);
    if (fd < 0)
        return report_connect_error(path, -fd);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return refuse_socket(fd, path, strerror(errno));
    if (peer.uid != geteuid() && peer.uid != 0 && geteuid() != 0)
        return refuse_socket(fd, path, "it belongs to another user's process");
    if (pid != 0 && peer.pid != 0 && peer.pid != pid)
        return refuse_socket(fd, path, "another process than the one named has this socket");
    *ret_master = (struct program_master){ .pid = peer.pid, .fd = fd };
    return PROGRAM_OK;
}

/* Prints the lines `since N` and the URLs. */
static void show_status_line(struct reading *reading, struct span line)
{
    uint64_t since;
    (void)reading;
    if (!span_starts(line, SPAN("since "))) {
        fprintf(stderr, "  %.*s", (int)line.len, line.at);
        return;
    }
    if (!num_parse_u64(span_skip(line, 6), &since))
        return;
    char text[64];
    time_t when = (time_t)since;
    struct tm parts;
    if (localtime_r(&when, &parts) && strftime(text, sizeof(text), "%F %T", &parts) > 0)
        fprintf(stderr, "  since %s", text);
}

static void show_master(const char *folder, pid_t pid)
{
    char path[SERVER_RUNTIME_MAX];
    struct reading reading = { .each = show_status_line };
    fprintf(stderr, "  %d", (int)pid);
    int fd = server_runtime_socket(folder, pid, path) == 0 ? os_socket_connect(path) : -1;
    if (fd >= 0) {
        send_request(fd, "status");
        (void)read_answer(fd, &reading, STATUS_MS);
    }
    fputc('\n', stderr);
    if (fd >= 0)
        close(fd);
}

static int find_only_master(const char *folder, const char *command,
                            struct program_master *ret_master)
{
    pid_t pids[MASTERS_SHOWN];
    char path[SERVER_RUNTIME_MAX];
    int count = server_runtime_list(folder, pids, MASTERS_SHOWN);
    if (count < 0 && count != -ENOENT)
        return refuse_socket(-1, folder, strerror(-count));
    if (count <= 0) {
        fprintf(stderr,
                "weir: no server of this user has its socket in %s; name the socket of one with "
                "another `control` with --control PATH; `weir stats --list` shows what runs\n",
                folder);
        return PROGRAM_FAILED;
    }
    if (count == 1 && server_runtime_socket(folder, pids[0], path) == 0)
        return connect_master(path, pids[0], ret_master);
    fprintf(stderr, "weir: %d servers are running; name one by its process id: weir %s PID\n",
            count, command);
    for (int i = 0; i < count && i < MASTERS_SHOWN; i++)
        show_master(folder, pids[i]);
    return PROGRAM_USAGE;
}

/* Searches the folder where the servers of this user have their sockets. */
static int find_in_folder(const char *command, pid_t pid, struct program_master *ret_master)
{
    char folder[SERVER_RUNTIME_MAX], path[SERVER_RUNTIME_MAX];
    int rc = server_runtime_folder(folder);
    if (rc == 0)
        rc = server_runtime_check(folder);
    if (rc == -EPERM)
        return refuse_socket(-1, folder,
                             SERVER_RUNTIME_DISTRUSTED "; name a socket with --control PATH");
    if (rc < 0 && rc != -ENOENT)
        return refuse_socket(-1, folder, strerror(-rc));
    if (pid == 0)
        return find_only_master(folder, command, ret_master);
    rc = server_runtime_socket(folder, pid, path);
    return rc < 0 ? refuse_socket(-1, folder, strerror(-rc))
                  : connect_master(path, pid, ret_master);
}

int program_control_find(const char *command, const char *path, const char *pid,
                         struct program_master *ret_master)
{
    uint64_t number = 0;
    path = path ? path : getenv("WEIR_CONTROL");
    if (pid && (!num_parse_u64(span_text(pid), &number) || number == 0 || number > INT_MAX)) {
        fprintf(stderr, "weir: `%s` is no process id; `weir help %s` explains\n", pid, command);
        return PROGRAM_USAGE;
    }
    if (path && path[0] && strcmp(path, "auto") != 0)
        return connect_master(path, (pid_t)number, ret_master);
    return find_in_folder(command, (pid_t)number, ret_master);
}
