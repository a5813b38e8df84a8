/* SPDX-License-Identifier: MIT
 *
 * The floor server: the least work that still answers HTTP/1.1 on one core. Its epoll loop
 * receives into one shared buffer, counts the request heads, and sends as many copies of one
 * canned answer in one call. The cost of other servers is given as a multiple of the floor's.
 *
 * It deliberately does not parse, look up files, log, time out, or read a request body. The
 * remaining cost is that of the kernel, which no server can avoid.
 *
 * With --root it opens, reads and closes the file of each request, and has no cache. A server does
 * at least this for a file that is not in its cache. With --sandbox it is confined as a worker of
 * weir is.
 */
#include "base/num.h"
#include "os/file.h"
#include "os/landlock.h"
#include "os/privilege.h"
#include "server/calls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FD_LIMIT = 65536,          /* connections are indexed by descriptor; higher ones are refused */
    INPUT_BYTES = 65536,       /* one receive; also the largest pipelined batch in one send */
    CARRY_BYTES = 3,           /* an unfinished CRLFCRLF at the end of a receive */
    COPIES_BYTES_MAX = 262144, /* small answers are laid out this far, so a batch is one send */
    FILE_CHUNK_BYTES = 1 << 20,
    ACCEPTS_PER_WAKE = 64,
    EVENTS_PER_WAKE = 256,
    BACKLOG = 4096,
};

struct conn {
    uint64_t owed_bytes;    /* of answers not sent yet */
    uint64_t answer_offset; /* where in the answer the next byte comes from */
    unsigned carry_len;
    char carry[CARRY_BYTES];
};

enum flow {
    FLOW_OPEN,  /* waits for the peer */
    FLOW_FULL,  /* waits for space in the socket */
    FLOW_CLOSE, /* finished or broken */
};

struct options {
    size_t head_bytes;
    size_t body_bytes;
    const char *file; /* NULL: the body is made up, and sent from memory */
    const char *root; /* NULL, or the folder of the files that are requested */
    const char *congestion;
    int ready_fd;
    uint16_t port;
    bool closes; /* one answer per connection */
    bool confined;
};

static struct conn conns[FD_LIMIT];
static char input[CARRY_BYTES + INPUT_BYTES];
static char *copies; /* the answer (without a file's bytes), as often as fits COPIES_BYTES_MAX */
static size_t copies_bytes;
static size_t answer_bytes; /* head and body */
static size_t head_bytes;
static int file_fd = -1;
static int root_fd = -1;
static int epoll_fd = -1;
static bool closes;

static void die(const char *what)
{
    (void)fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

static size_t number(const char *text, uint64_t max)
{
    uint64_t value;
    if (!num_parse_u64(span_text(text), &value) || value > max) {
        (void)fprintf(stderr, "floor: '%s' is not a number up to %ju\n", text, (uintmax_t)max);
        exit(2);
    }
    return value;
}

static struct options options_from(int argc, char **argv)
{
    static const char usage[] =
        "usage: floor [--port N] [--head BYTES] [--body BYTES | --file PATH] [--close]\n"
        "             [--root FOLDER] [--sandbox] [--congestion NAME] [--ready-fd N]\n";
    static const struct option table[] = {
        { "port", required_argument, NULL, 'p' },
        { "head", required_argument, NULL, 'h' },
        { "body", required_argument, NULL, 'b' },
        { "file", required_argument, NULL, 'f' },
        { "root", required_argument, NULL, 'o' },
        { "sandbox", no_argument, NULL, 's' },
        { "close", no_argument, NULL, 'x' },
        { "congestion", required_argument, NULL, 'c' },
        { "ready-fd", required_argument, NULL, 'r' },
        { NULL, 0, NULL, 0 },
    };
    struct options o = { .head_bytes = 192, .body_bytes = 308, .ready_fd = STDOUT_FILENO };
    int letter;
    while ((letter = getopt_long(argc, argv, "", table, NULL)) != -1) {
        switch (letter) {
        case 'p':
            o.port = (uint16_t)number(optarg, UINT16_MAX);
            break;
        case 'h':
            o.head_bytes = number(optarg, INPUT_BYTES);
            break;
        case 'b':
            o.body_bytes = number(optarg, 1UL << 30);
            break;
        case 'f':
            o.file = optarg;
            break;
        case 'o':
            o.root = optarg;
            break;
        case 's':
            o.confined = true;
            break;
        case 'x':
            o.closes = true;
            break;
        case 'c':
            o.congestion = optarg;
            break;
        case 'r':
            o.ready_fd = (int)number(optarg, FD_LIMIT);
            break;
        default:
            (void)fputs(usage, stderr);
            exit(2);
        }
    }
    return o;
}

/* Fills `head` with a valid response head of exactly `o->head_bytes`, padded by one field. */
static void head_write(char *head, const struct options *o)
{
    char fixed[256];
    int len = snprintf(fixed, sizeof fixed, "HTTP/1.1 200 OK\r\n%sContent-Length: %zu\r\nX: ",
                       o->closes ? "Connection: close\r\n" : "", o->body_bytes);
    if (len < 0 || (size_t)len + 5 > o->head_bytes) {
        (void)fprintf(stderr, "floor: --head must be at least %d\n", len + 5);
        exit(2);
    }
    memset(head, 'x', o->head_bytes);
    memcpy(head, fixed, (size_t)len);
    memcpy(head + o->head_bytes - 4, "\r\n\r\n", 4);
}

static void answer_init(struct options *o)
{
    if (o->file != NULL) {
        file_fd = open(o->file, O_RDONLY | O_CLOEXEC);
        off_t end = file_fd < 0 ? -1 : lseek(file_fd, 0, SEEK_END);
        if (end < 0) {
            die(o->file);
        }
        o->body_bytes = (size_t)end;
    }
    closes = o->closes;
    head_bytes = o->head_bytes;
    answer_bytes = head_bytes + o->body_bytes;

    size_t unit = o->file != NULL ? head_bytes : answer_bytes;
    size_t count = o->file != NULL || unit > COPIES_BYTES_MAX ? 1 : COPIES_BYTES_MAX / unit;
    copies_bytes = unit * count;
    copies = malloc(copies_bytes);
    if (copies == NULL) {
        die("malloc");
    }
    head_write(copies, o);
    memset(copies + head_bytes, 'b', unit - head_bytes);
    for (size_t i = 1; i < count; i++) {
        memcpy(copies + i * unit, copies, unit);
    }
}

/* One send or sendfile towards what is owed; returns what the call returned. */
static ssize_t conn_send(int fd, struct conn *c)
{
    if (file_fd >= 0 && c->answer_offset >= head_bytes) {
        off_t at = (off_t)(c->answer_offset - head_bytes);
        size_t left = answer_bytes - c->answer_offset;
        return sendfile(fd, file_fd, &at, left < FILE_CHUNK_BYTES ? left : FILE_CHUNK_BYTES);
    }
    size_t left = copies_bytes - c->answer_offset;
    /* In close mode MSG_MORE holds the answer until close() sends it together with the FIN. */
    int flags = file_fd >= 0 || (closes && left >= c->owed_bytes) ? MSG_MORE : 0;
    return send(fd, copies + c->answer_offset, c->owed_bytes < left ? c->owed_bytes : left, flags);
}

/* Sends until no byte is owed or the socket is full. */
static enum flow conn_flush(int fd, struct conn *c)
{
    while (c->owed_bytes > 0) {
        ssize_t sent = conn_send(fd, c);
        if (sent <= 0) {
            return sent < 0 && errno == EAGAIN ? FLOW_FULL : FLOW_CLOSE;
        }
        c->owed_bytes -= (uint64_t)sent;
        c->answer_offset = (c->answer_offset + (uint64_t)sent) % answer_bytes;
        if (closes && c->owed_bytes == 0) {
            return FLOW_CLOSE;
        }
    }
    return FLOW_OPEN;
}

/* How many request heads end in the `len` bytes just received behind the carry's place. */
static unsigned heads_count(struct conn *c, size_t len)
{
    const char *end = input + CARRY_BYTES + len;
    char *at = input + CARRY_BYTES - c->carry_len;
    memcpy(at, c->carry, c->carry_len);
    unsigned count = 0;
    for (char *hit; (hit = memmem(at, (size_t)(end - at), "\r\n\r\n", 4)) != NULL; count++) {
        at = hit + 4;
    }
    c->carry_len = end - at < CARRY_BYTES ? (unsigned)(end - at) : CARRY_BYTES;
    memcpy(c->carry, end - c->carry_len, c->carry_len);
    return count;
}

/* ---- a file for each answer ---- */

/* Terminates the path of a request, which begins behind the method and a slash. */
static const char *path_of(char *request, size_t len)
{
    char *slash = memchr(request, '/', len);
    char *end = slash == NULL ? NULL : memchr(slash, ' ', len - (size_t)(slash - request));
    if (end == NULL) {
        return NULL;
    }
    *end = '\0';
    return slash + 1;
}

static int file_open(const char *path)
{
    int fd = os_file_open_cached(root_fd, path);
    return fd == -EINPROGRESS ? os_file_open_beneath(root_fd, path) : fd;
}

/* Reads the file of a path behind the head. False if it has another length than the answer. */
static bool file_read(const char *path)
{
    struct stat status;
    const size_t size = answer_bytes - head_bytes;
    int fd = path == NULL ? -1 : file_open(path);
    if (fd < 0) {
        return false;
    }
    bool is_good = fstat(fd, &status) == 0 && status.st_size == (off_t)size &&
                   pread(fd, copies + head_bytes, size, 0) == (ssize_t)size;
    (void)close(fd);
    return is_good;
}

/* Answers one request, which has arrived as a whole. A client that pipelines is dropped. */
static enum flow conn_serve_file(int fd)
{
    ssize_t got = recv(fd, input, INPUT_BYTES, 0);
    if (got <= 0) {
        return got < 0 && errno == EAGAIN ? FLOW_OPEN : FLOW_CLOSE;
    }
    bool is_one = memmem(input, (size_t)got, "\r\n\r\n", 4) == input + got - 4;
    if (!is_one || !file_read(path_of(input, (size_t)got))) {
        return FLOW_CLOSE;
    }
    bool is_sent = send(fd, copies, answer_bytes, 0) == (ssize_t)answer_bytes;
    return is_sent && !closes ? FLOW_OPEN : FLOW_CLOSE;
}

/* ---- connections ---- */

/* Answers all requests that have arrived. Readiness is edge-triggered: a short read is the last. */
static enum flow conn_serve(int fd, struct conn *c)
{
    if (root_fd >= 0) {
        return conn_serve_file(fd);
    }
    ssize_t got = INPUT_BYTES;
    enum flow flow = conn_flush(fd, c);
    while (flow == FLOW_OPEN && got == INPUT_BYTES) {
        got = recv(fd, input + CARRY_BYTES, INPUT_BYTES, 0);
        if (got <= 0) {
            return got < 0 && errno == EAGAIN ? FLOW_OPEN : FLOW_CLOSE;
        }
        unsigned count = heads_count(c, (size_t)got);
        c->owed_bytes += (closes && count > 1 ? 1 : count) * answer_bytes;
        flow = conn_flush(fd, c);
    }
    return flow;
}

static void conn_close(int fd)
{
    conns[fd] = (struct conn){ 0 };
    (void)close(fd);
}

static void accept_all(int listen_fd)
{
    for (int i = 0; i < ACCEPTS_PER_WAKE; i++) {
        int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            return;
        }
        if (fd >= FD_LIMIT) {
            (void)close(fd);
            continue;
        }
        /* In close mode the request is already here (TCP_DEFER_ACCEPT), so most connections end
         * before epoll would have to learn of them. */
        if (closes && conn_serve(fd, &conns[fd]) == FLOW_CLOSE) {
            conn_close(fd);
            continue;
        }
        struct epoll_event event = {
            .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
            .data.fd = fd,
        };
        if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
            conn_close(fd);
        }
    }
}

static void option_set(int fd, int level, int name, int value)
{
    if (setsockopt(fd, level, name, &value, sizeof value) < 0) {
        die("setsockopt");
    }
}

/* Listens on loopback and prints the port. Accepted sockets inherit the options set here. */
static int listener_open(const struct options *o)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(o->port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    socklen_t len = sizeof address;
    if (fd < 0) {
        die("socket");
    }
    option_set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    option_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    if (closes) {
        option_set(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, 1);
    }
    if (o->congestion != NULL && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, o->congestion,
                                            (socklen_t)strlen(o->congestion)) < 0) {
        die(o->congestion);
    }
    if (bind(fd, (struct sockaddr *)&address, len) < 0 || listen(fd, BACKLOG) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &len) < 0) {
        die("listen");
    }
    if (dprintf(o->ready_fd, "http://127.0.0.1:%u\n", ntohs(address.sin_port)) < 0) {
        die("ready-fd");
    }
    if (o->ready_fd > STDERR_FILENO) {
        (void)close(o->ready_fd);
    }
    return fd;
}

static void root_open(const char *path)
{
    root_fd = os_file_open_directory(path);
    if (root_fd < 0) {
        errno = -root_fd;
        die(path);
    }
}

/* The parts of a worker's sandbox (server/sandbox.h) that cost something with each call. The groups
 * are those of `epoll`. server_calls_of_model would link every model, and all that they need. */
static void confine(void)
{
    const unsigned groups = CALLS_ALL | CALLS_SERVING | CALLS_ACCEPT | CALLS_READINESS |
                            CALLS_LOOPS | CALLS_THREADS;
    struct os_landlock rules;
    int rc = os_privilege_forbid_new();
    rc = rc < 0 ? rc : os_landlock_begin(&rules);
    if (rc == 0 && root_fd >= 0) {
        rc = os_landlock_allow_open(&rules, root_fd);
    }
    rc = rc < 0 ? rc : os_landlock_enforce(&rules);
    rc = rc < 0 ? rc : server_calls_restrict(groups, getppid(), NULL);
    if (rc < 0) {
        errno = -rc;
        die("sandbox");
    }
}

int main(int argc, char **argv)
{
    struct options o = options_from(argc, argv);
    (void)signal(SIGPIPE, SIG_IGN); /* sendfile() knows no MSG_NOSIGNAL */
    answer_init(&o);
    if (o.root != NULL) {
        root_open(o.root);
    }
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    int listen_fd = listener_open(&o);
    struct epoll_event event = { .events = EPOLLIN, .data.fd = listen_fd };
    if (epoll_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listen_fd, &event) < 0) {
        die("epoll");
    }
    if (o.confined) {
        confine();
    }
    for (;;) {
        struct epoll_event events[EVENTS_PER_WAKE];
        int count = epoll_wait(epoll_fd, events, EVENTS_PER_WAKE, -1);
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd == listen_fd) {
                accept_all(listen_fd);
            } else if (conn_serve(fd, &conns[fd]) == FLOW_CLOSE) {
                conn_close(fd);
            }
        }
    }
}
