/* SPDX-License-Identifier: MIT */
#include "server/control.h"

#include "base/buf.h"
#include "base/duration.h"
#include "base/span.h"
#include "log/error.h"
#include "os/file.h"
#include "os/socket.h"
#include "server/runtime.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BACKLOG = 8 };
#define PAUSE_NS (DURATION_SECOND / 10) /* after a failure to accept */
#define LAST_MAX sizeof("failed\n")

enum phase {
    READING, /* the request */
    WAITING, /* for the outcome */
    WRITING  /* the last of the answer */
};

struct server_control_client {
    int fd; /* -1: no client */
    enum phase phase;
    const struct server_control_command *command;
    uint64_t deadline_ns;
    size_t request_len;
    char request[SERVER_CONTROL_REQUEST_MAX];
    struct buf answer;
    size_t sent;
};

struct server_control {
    int fd; /* -1: a successor listens */
    bool paused;
    uint64_t again_ns; /* accepting pauses until then; 0: no pause */
    bool automatic;    /* the path contains this process's id */
    bool borrowed;     /* the socket is a predecessor's, which may continue to serve */
    const struct server_control_command *commands;
    void *context;
    char path[SERVER_RUNTIME_MAX];
    struct os_socket_file file;
    struct server_control_client clients[SERVER_CONTROL_CLIENTS];
};

/* ---- opening ---- */

static int listen_at(const char *path)
{
    struct os_socket_address address;
    char text[SERVER_RUNTIME_MAX + sizeof("unix:")];
    snprintf(text, sizeof(text), "unix:%s", path);
    int rc = os_socket_parse(text, &address);
    const struct os_socket_options options = { .mode = S_IRUSR | S_IWUSR };
    int fd = rc < 0 ? rc : os_socket_bind(&address, &options);
    rc = fd < 0 ? fd : os_socket_listen(fd, BACKLOG);
    if (fd >= 0 && rc < 0) {
        close(fd);
        (void)os_socket_unlink(path, NULL);
    }
    return rc < 0 ? rc : fd;
}

/* The path for `where`. In the runtime folder, stale sockets are removed first. */
static int find_path(struct server_control *c, const char *where)
{
    if (!c->automatic) {
        int len = snprintf(c->path, sizeof(c->path), "%s", where);
        return len < (int)sizeof(c->path) ? 0 : -ENAMETOOLONG;
    }
    char folder[SERVER_RUNTIME_MAX];
    int rc = server_runtime_folder(folder);
    if (rc == 0)
        memcpy(c->path, folder, sizeof(folder));
    if (rc == 0)
        rc = server_runtime_make(folder);
    if (rc == 0)
        rc = server_runtime_list(folder, NULL, 0);
    return rc < 0 ? rc : server_runtime_socket(folder, getpid(), c->path);
}

/* Listens with the socket of a predecessor. listen(2) makes SO_PEERCRED name this process to
 * clients. */
static int reuse_socket(int fd, const char *path)
{
    struct os_socket_address address, wanted;
    char text[SERVER_RUNTIME_MAX + sizeof("unix:")];
    snprintf(text, sizeof(text), "unix:%s", path);
    int rc = os_socket_parse(text, &wanted);
    if (rc == 0)
        rc = os_socket_local(fd, &address);
    if (rc == 0 && !os_socket_same(&wanted, &address))
        rc = -EADDRNOTAVAIL;
    return rc < 0 ? rc : os_socket_listen(fd, BACKLOG);
}

int server_control_open(struct server_control **ret_control, const char *where, int inherited_fd,
                        const struct server_control_command *commands, void *context,
                        char *ret_path)
{
    struct server_control *c = calloc(1, sizeof(*c));
    if (!c)
        return -ENOMEM;
    c->automatic = strcmp(where, "auto") == 0;
    c->commands = commands;
    c->context = context;
    c->fd = -1;
    for (int i = 0; i < SERVER_CONTROL_CLIENTS; i++)
        c->clients[i].fd = -1;
    int rc = find_path(c, where);
    c->borrowed = rc == 0 && inherited_fd >= 0 && reuse_socket(inherited_fd, c->path) == 0;
    if (c->borrowed)
        c->fd = inherited_fd;
    else if (inherited_fd >= 0)
        close(inherited_fd);
    if (rc == 0 && c->fd < 0)
        rc = c->fd = listen_at(c->path);
    snprintf(ret_path, SERVER_RUNTIME_MAX, "%s", c->path);
    if (rc < 0) {
        free(c);
        return rc;
    }
    c->file = os_socket_file_at(c->path);
    *ret_control = c;
    return 0;
}

/* ---- the file ---- */

static bool is_lost(const struct server_control *control)
{
    return control->fd >= 0 && os_file_is_absent(control->path);
}

void server_control_renew(struct server_control *control)
{
    if (!control || !is_lost(control))
        return;
    int rc = control->automatic ? find_path(control, "auto") : 0;
    const int fd = rc < 0 ? rc : listen_at(control->path);
    if (fd < 0) {
        log_error(LOG_WARNING, "cannot open the control socket %s again: %s", control->path,
                  os_socket_reason(fd));
        return;
    }
    close(control->fd);
    control->fd = fd;
    control->file = os_socket_file_at(control->path);
}

/* ---- clients ---- */

static void close_client(struct server_control_client *client)
{
    close(client->fd);
    free(client->answer.at);
    *client = (struct server_control_client){ .fd = -1 };
}

static struct server_control_client *find_free_client(struct server_control *c)
{
    for (int i = 0; i < SERVER_CONTROL_CLIENTS; i++)
        if (c->clients[i].fd < 0)
            return &c->clients[i];
    return NULL;
}

/* The mode of the socket file allows only this user. The check holds even if the operator widens
 * that mode. */
static bool is_peer_allowed(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}

static void send_answer(struct server_control_client *client)
{
    const struct buf *answer = &client->answer;
    ssize_t len = send(client->fd, answer->at + client->sent, answer->len - client->sent,
                       MSG_DONTWAIT | MSG_NOSIGNAL);
    if (len < 0 && errno != EAGAIN && errno != EINTR) {
        close_client(client);
        return;
    }
    client->sent += len > 0 ? (size_t)len : 0;
    if (client->phase == WRITING && client->sent == answer->len)
        close_client(client);
}

static void finish_request(struct server_control_client *client, bool good, uint64_t now_ns)
{
    struct buf *answer = &client->answer;
    answer->size = SERVER_CONTROL_ANSWER_MAX + LAST_MAX; /* the space reserved for the last line */
    answer->overflow = false;
    buf_add(answer, good ? SPAN("ok\n") : SPAN("failed\n"));
    client->phase = WRITING;
    client->deadline_ns = now_ns + SERVER_CONTROL_CLIENT_MS * DURATION_MS;
    send_answer(client);
}

static void run_command(struct server_control *c, struct server_control_client *client,
                        struct span line, uint64_t now_ns)
{
    const struct server_control_command *command = c->commands;
    while (command->request && !span_equal(line, span_text(command->request)))
        command++;
    client->phase = WAITING;
    client->command = command;
    client->deadline_ns = UINT64_MAX;
    if (!command->request) {
        server_control_say(client,
                           "this server does not know the request `%.*s`; its version is "
                           "weir " WEIR_VERSION "\n",
                           (int)line.len, line.at);
        finish_request(client, false, now_ns);
        return;
    }
    enum server_control_outcome outcome = command->run(c->context, client);
    if (client->phase != WAITING) /* the outcome came at once: the client may be closed */
        return;
    if (outcome == SERVER_CONTROL_LATER)
        send_answer(client);
    else
        finish_request(client, outcome == SERVER_CONTROL_OK, now_ns);
}

static void read_request(struct server_control *c, struct server_control_client *client,
                         uint64_t now_ns)
{
    char *end = client->request + client->request_len;
    ssize_t len =
        recv(client->fd, end, sizeof(client->request) - client->request_len, MSG_DONTWAIT);
    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (len <= 0) {
        close_client(client);
        return;
    }
    client->request_len += (size_t)len;
    const char *newline = memchr(client->request, '\n', client->request_len);
    if (newline) {
        run_command(c, client, span_of(client->request, (size_t)(newline - client->request)),
                    now_ns);
    } else if (client->request_len == sizeof(client->request)) {
        server_control_say(client, "the request is too long\n");
        finish_request(client, false, now_ns);
    }
}

static void accept_client(struct server_control *c, uint64_t now_ns)
{
    struct os_socket_address peer;
    struct server_control_client *client = find_free_client(c);
    int fd = client ? os_socket_accept(c->fd, &peer) : -EAGAIN;
    if (fd < 0) {
        /* The client still waits, and would wake the master again at once. */
        c->again_ns = fd != -EAGAIN ? now_ns + PAUSE_NS : 0;
        return;
    }
    char *storage = malloc(SERVER_CONTROL_ANSWER_MAX + LAST_MAX);
    if (!storage) {
        close(fd);
        return;
    }
    *client = (struct server_control_client){
        .fd = fd,
        .deadline_ns = now_ns + SERVER_CONTROL_CLIENT_MS * DURATION_MS,
        .answer = buf_over(storage, SERVER_CONTROL_ANSWER_MAX),
    };
    if (is_peer_allowed(fd)) {
        read_request(c, client, now_ns);
    } else {
        server_control_say(client, "only root and the user that the server runs as may do that\n");
        finish_request(client, false, now_ns);
    }
}

/* ---- the master's side ---- */

size_t server_control_poll(const struct server_control *control, struct pollfd *ends)
{
    size_t count = 0;
    bool room = false;
    for (int i = 0; control && i < SERVER_CONTROL_CLIENTS; i++) {
        const struct server_control_client *client = &control->clients[i];
        bool unsent = client->sent < client->answer.len;
        short events = client->phase == READING ? POLLIN : POLLRDHUP;
        room = room || client->fd < 0;
        if (client->fd >= 0)
            ends[count++] =
                (struct pollfd){ client->fd, (short)(events | (unsent ? POLLOUT : 0)), 0 };
    }
    if (room && !control->paused && control->again_ns == 0 && control->fd >= 0)
        ends[count++] = (struct pollfd){ control->fd, POLLIN, 0 };
    return count;
}

uint64_t server_control_due_ns(const struct server_control *control)
{
    uint64_t due = control && control->again_ns > 0 ? control->again_ns : UINT64_MAX;
    for (int i = 0; control && i < SERVER_CONTROL_CLIENTS; i++)
        if (control->clients[i].fd >= 0 && control->clients[i].deadline_ns < due)
            due = control->clients[i].deadline_ns;
    return due;
}

static struct server_control_client *client_of(struct server_control *c, int fd)
{
    for (int i = 0; i < SERVER_CONTROL_CLIENTS; i++)
        if (c->clients[i].fd == fd)
            return &c->clients[i];
    return NULL;
}

static void serve_client(struct server_control *c, struct server_control_client *client,
                         short events, uint64_t now_ns)
{
    if (client->phase == READING)
        read_request(c, client, now_ns);
    else if (events & (POLLRDHUP | POLLHUP | POLLERR))
        close_client(client); /* the client closed the connection */
    else if (events & POLLOUT)
        send_answer(client);
}

void server_control_serve(struct server_control *control, const struct pollfd *ends, size_t count,
                          uint64_t now_ns)
{
    bool has_new_client = false;
    if (control && now_ns >= control->again_ns)
        control->again_ns = 0;
    for (size_t i = 0; control && i < count; i++) {
        struct server_control_client *client = client_of(control, ends[i].fd);
        if (ends[i].revents && client)
            serve_client(control, client, ends[i].revents, now_ns);
        else if (ends[i].revents && ends[i].fd == control->fd)
            has_new_client = true;
    }
    for (int i = 0; control && i < SERVER_CONTROL_CLIENTS; i++)
        if (control->clients[i].fd >= 0 && now_ns >= control->clients[i].deadline_ns)
            close_client(&control->clients[i]);
    if (has_new_client) /* last: its descriptor may be the number of a closed one with events */
        accept_client(control, now_ns);
}

static void add_text(struct server_control_client *client, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

static void add_text(struct server_control_client *client, const char *format, va_list arguments)
{
    char text[SERVER_CONTROL_ANSWER_MAX];
    int len = vsnprintf(text, sizeof(text), format, arguments);
    struct span lines = span_of(text, len > 0 ? (size_t)len : 0);
    if (lines.len >= sizeof(text))
        lines.len = sizeof(text) - 1;
    if (lines.len > buf_room(&client->answer)) /* then as many whole lines as fit */
        lines.len = buf_room(&client->answer);
    while (lines.len > 0 && lines.at[lines.len - 1] != '\n')
        lines.len--;
    buf_add(&client->answer, lines);
}

void server_control_say(struct server_control_client *client, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_text(client, format, arguments);
    va_end(arguments);
}

static bool waits_for(const struct server_control_client *client, const char *request)
{
    return client->fd >= 0 && client->phase == WAITING &&
           strcmp(client->command->request, request) == 0;
}

void server_control_report(struct server_control *control, const char *request, const char *format,
                           ...)
{
    for (int i = 0; control && i < SERVER_CONTROL_CLIENTS; i++) {
        struct server_control_client *client = &control->clients[i];
        if (!waits_for(client, request))
            continue;
        va_list arguments;
        va_start(arguments, format);
        add_text(client, format, arguments);
        va_end(arguments);
        send_answer(client);
    }
}

void server_control_finish(struct server_control *control, const char *request, bool good,
                           uint64_t now_ns)
{
    for (int i = 0; control && i < SERVER_CONTROL_CLIENTS; i++)
        if (waits_for(&control->clients[i], request))
            finish_request(&control->clients[i], good, now_ns);
}

void server_control_pause(struct server_control *control)
{
    if (control && !control->automatic)
        control->paused = true;
}

void server_control_continue(struct server_control *control)
{
    if (!control || !control->paused)
        return;
    control->paused = false;
    /* It listens already. With the call, SO_PEERCRED names this process to clients again. */
    const int rc = os_socket_listen(control->fd, BACKLOG);
    if (rc < 0)
        log_error(LOG_WARNING, "%s names another process to clients: %s", control->path,
                  strerror(-rc));
}

void server_control_keep(struct server_control *control)
{
    if (control)
        control->borrowed = false;
}

int server_control_listener(const struct server_control *control)
{
    return control && !control->automatic && !is_lost(control) ? control->fd : -1;
}

/* ---- the end ---- */

/* A successor may have the socket of a fixed path. Its configuration may also name another path. */
static bool is_left(const struct server_control *control)
{
    const int fd = control->automatic ? -ECONNREFUSED : os_socket_connect(control->path);
    if (fd >= 0)
        close(fd);
    return fd == -ECONNREFUSED;
}

void server_control_retire(struct server_control *control)
{
    if (!control || control->fd < 0)
        return;
    close(control->fd);
    control->fd = -1;
    if (is_left(control))
        (void)os_socket_unlink(control->path, &control->file);
}

void server_control_leave(struct server_control *control)
{
    if (!control)
        return;
    for (int i = 0; i < SERVER_CONTROL_CLIENTS; i++)
        if (control->clients[i].fd >= 0)
            close_client(&control->clients[i]);
    if (control->fd >= 0)
        close(control->fd);
    free(control);
}

void server_control_close(struct server_control *control)
{
    if (control && control->fd >= 0 && !control->borrowed)
        (void)os_socket_unlink(control->path, &control->file); /* an error: it is not ours */
    server_control_leave(control);
}
