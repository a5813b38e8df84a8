/* SPDX-License-Identifier: MIT */
#include "server/inherited.h"

#include "base/num.h"
#include "log/error.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST = 3 };

/* ---- the environment ---- */

static bool is_for_us(void)
{
    uint64_t pid;
    const char *text = getenv("LISTEN_PID");
    return text && num_parse_u64(span_text(text), &pid) && pid == (uint64_t)getpid();
}

static struct span names(void)
{
    const char *text = getenv("LISTEN_FDNAMES");
    return text ? span_text(text) : SPAN("");
}

/* A service manager may give a socket any name, this one too. */
static bool is_ready_pipe(int fd, struct span name)
{
    struct stat status;
    const bool is_named = span_equal(name, SPAN(SERVER_INHERITED_READY)) ||
                          span_equal(name, SPAN(SERVER_INHERITED_STUCK));
    return is_named && fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode);
}

bool server_inherited_is_upgrade(void)
{
    struct span rest = names();
    for (int fd = FIRST; is_for_us() && rest.len > 0; fd++)
        if (is_ready_pipe(fd, span_take(&rest, ':')))
            return true;
    return false;
}

static void forget_environment(void)
{
    (void)unsetenv("LISTEN_PID");
    (void)unsetenv("LISTEN_FDS");
    (void)unsetenv("LISTEN_FDNAMES");
}

/* ---- taking ---- */

static int take_listener(struct server_inherited *in, int fd, struct span name)
{
    struct server_inherited_socket *socket = &in->sockets[in->count];
    bool page_any = span_equal(name, SPAN(SERVER_INHERITED_PAGE_ANY));
    bool page = page_any || span_equal(name, SPAN(SERVER_INHERITED_PAGE));
    bool any = page_any || span_equal(name, SPAN(SERVER_INHERITED_ANY));
    bool own = page || any || span_equal(name, SPAN(SERVER_INHERITED_OWN));
    *socket = (struct server_inherited_socket){
        .fd = fd, .managed = !own, .any_port = any, .page = page
    };
    int rc = os_socket_adopt(fd);
    if (rc == 0)
        rc = os_socket_local(fd, &socket->address);
    if (rc < 0) {
        log_error(LOG_ERROR,
                  "cannot serve descriptor %d of LISTEN_FDS: %s; it must be a listening "
                  "stream socket (in a .socket unit: ListenStream= with Accept=no)",
                  fd, rc == -EPROTOTYPE ? "it is another kind of descriptor" : strerror(-rc));
        return rc;
    }
    in->count++;
    return 0;
}

/* A predecessor holds the other end of the pipe. Where it has ended, the parent is another process,
 * for instance init. */
static pid_t find_predecessor(int ready_fd)
{
    const pid_t parent = getppid();
    struct pollfd end = { .fd = ready_fd };
    return poll(&end, 1, 0) == 0 ? parent : 0;
}

static int take_one(struct server_inherited *in, int fd, struct span name)
{
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
        log_error(LOG_ERROR, "LISTEN_FDS names descriptor %d, which is not open", fd);
        return -EBADF;
    }
    if (is_ready_pipe(fd, name)) {
        in->ready_fd = fd;
        in->beside_stuck = span_equal(name, SPAN(SERVER_INHERITED_STUCK));
        in->predecessor = find_predecessor(fd);
    } else if (span_equal(name, SPAN(SERVER_INHERITED_CONTROL))) {
        in->control_fd = fd;
    } else if (span_equal(name, SPAN(SERVER_INHERITED_TICKETS))) {
        in->tickets_fd = fd;
    } else {
        return take_listener(in, fd, name);
    }
    return 0;
}

static int take_all(struct server_inherited *in)
{
    uint64_t count = 0;
    const char *text = getenv("LISTEN_FDS");
    if (!text || !num_parse_u64(span_text(text), &count) ||
        count > (uint64_t)sysconf(_SC_OPEN_MAX)) {
        log_error(LOG_ERROR, "LISTEN_FDS is `%s`, which is not a number of descriptors",
                  text ? text : "");
        return -EINVAL;
    }
    in->sockets = calloc(count + 1, sizeof(*in->sockets));
    if (!in->sockets)
        return -ENOMEM;
    /* Only the names of a predecessor have a meaning. */
    struct span rest = server_inherited_is_upgrade() ? names() : SPAN("");
    int rc = 0;
    for (int fd = FIRST; fd < FIRST + (int)count && rc == 0; fd++)
        rc = take_one(in, fd, span_take(&rest, ':'));
    return rc;
}

int server_inherited_take(struct server_inherited *ret_inherited)
{
    struct server_inherited in = { .ready_fd = -1, .control_fd = -1, .tickets_fd = -1 };
    int rc = is_for_us() ? take_all(&in) : 0;
    forget_environment();
    if (rc < 0)
        server_inherited_free(&in);
    *ret_inherited = in;
    return rc;
}

void server_inherited_free(struct server_inherited *inherited)
{
    free(inherited->sockets);
    *inherited = (struct server_inherited){ .ready_fd = -1, .control_fd = -1, .tickets_fd = -1 };
}
