/* SPDX-License-Identifier: MIT
 *
 * The floor of a load generator: the least work that still loads a server in a closed loop, on one
 * thread. It waits for events, receives what has arrived, and sends the next request when the bytes
 * of an answer are there. The cost of other generators is compared with its cost.
 *
 * The first answer to each connection is read by its Content-Length. All further answers must have
 * as many bytes. It deliberately does not parse them, measure response times, or connect again.
 *
 * With --spin it polls and never sleeps, as `weir load --spin` does.
 */
#include "base/num.h"
#include "os/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    USERS_MAX = 4096,
    INPUT_BYTES = 65536, /* one receive; the first answer must fit */
    EVENTS_PER_WAKE = 256,
    WAIT_MS = 1000, /* a server that is silent for so long has failed; not known with --spin */
};

struct user {
    int fd;
    size_t left_bytes; /* of the present answer */
};

struct options {
    uint16_t port;
    unsigned users;
    unsigned seconds;
    const char *path;
    bool spins;
};

static char input[INPUT_BYTES];
static char request[512];
static size_t request_bytes;
static size_t answer_bytes;
static uint64_t answers;
static struct user users[USERS_MAX];

static void die(const char *what)
{
    (void)fprintf(stderr, "floor-load: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

static void fail(const char *what)
{
    (void)fprintf(stderr, "floor-load: %s\n", what);
    exit(EXIT_FAILURE);
}

static unsigned number(const char *text, unsigned max)
{
    uint64_t value;
    if (!num_parse_u64(span_text(text), &value) || value == 0 || value > max) {
        (void)fprintf(stderr, "floor-load: '%s' is not a number from 1 to %u\n", text, max);
        exit(2);
    }
    return (unsigned)value;
}

static struct options options_from(int argc, char **argv)
{
    static const char usage[] =
        "usage: floor-load --port N [--users N] [--seconds N] [--path PATH] [--spin]\n";
    static const struct option table[] = {
        { "port", required_argument, NULL, 'p' },    { "users", required_argument, NULL, 'u' },
        { "seconds", required_argument, NULL, 's' }, { "path", required_argument, NULL, 'a' },
        { "spin", no_argument, NULL, 'i' },          { NULL, 0, NULL, 0 },
    };
    struct options o = { .users = 64, .seconds = 2, .path = "/" };
    int letter;
    while ((letter = getopt_long(argc, argv, "", table, NULL)) != -1) {
        switch (letter) {
        case 'p':
            o.port = (uint16_t)number(optarg, UINT16_MAX);
            break;
        case 'u':
            o.users = number(optarg, USERS_MAX);
            break;
        case 's':
            o.seconds = number(optarg, 3600);
            break;
        case 'a':
            o.path = optarg;
            break;
        case 'i':
            o.spins = true;
            break;
        default:
            (void)fputs(usage, stderr);
            exit(2);
        }
    }
    if (o.port == 0) {
        (void)fputs(usage, stderr);
        exit(2);
    }
    return o;
}

static int connect_to(uint16_t port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        die("connect");
    }
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0) {
        die("setsockopt");
    }
    return fd;
}

static void ask(struct user *user)
{
    if (send(user->fd, request, request_bytes, MSG_NOSIGNAL) != (ssize_t)request_bytes) {
        die("send");
    }
    user->left_bytes = answer_bytes;
}

/* Reads one whole answer. Returns its length with the head. */
static size_t read_first(int fd)
{
    static const char name[] = "\r\nContent-Length:";
    size_t len = 0, all = SIZE_MAX;
    while (len < all) {
        ssize_t got = recv(fd, input + len, INPUT_BYTES - 1 - len, 0);
        if (got <= 0) {
            fail("the first answer ended too early, or is too long");
        }
        len += (size_t)got;
        input[len] = '\0';
        const char *end = strstr(input, "\r\n\r\n"), *field = strcasestr(input, name);
        if (end != NULL && (field == NULL || field > end)) {
            fail("the first answer has no Content-Length");
        }
        if (end != NULL) {
            all = (size_t)(end - input) + 4 + strtoul(field + sizeof name - 1, NULL, 10);
        }
    }
    if (len != all || strncmp(input, "HTTP/1.1 200 ", 13) != 0) {
        fail("the first answer is not one answer with the status 200");
    }
    return len;
}

static void open_all(const struct options *o, int epoll_fd)
{
    for (unsigned i = 0; i < o->users; i++) {
        users[i].fd = connect_to(o->port);
        ask(&users[i]);
        size_t len = read_first(users[i].fd);
        if (answer_bytes != 0 && len != answer_bytes) {
            fail("two answers differ in length");
        }
        answer_bytes = len;
        answers++;
        struct epoll_event event = {
            .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
            .data.ptr = &users[i],
        };
        if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, users[i].fd, &event) < 0) {
            die("epoll");
        }
    }
}

/* Readiness is edge-triggered: a short read is the last. */
static void receive(struct user *user)
{
    ssize_t got = recv(user->fd, input, INPUT_BYTES, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) {
        return;
    }
    if (got <= 0 || (size_t)got > user->left_bytes) {
        fail("an answer was cut, or is longer than the first one");
    }
    user->left_bytes -= (size_t)got;
    if (user->left_bytes == 0) {
        answers++;
        ask(user);
    }
}

int main(int argc, char **argv)
{
    const struct options o = options_from(argc, argv);
    int len = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n",
                       o.path, o.port);
    if (len < 0 || (size_t)len >= sizeof request) {
        fail("the path is too long");
    }
    request_bytes = (size_t)len;
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0) {
        die("epoll");
    }
    const uint64_t from_ns = os_clock_now_ns(),
                   until_ns = from_ns + o.seconds * UINT64_C(1000000000);
    open_all(&o, epoll_fd);
    for (unsigned i = 0; i < o.users; i++) {
        ask(&users[i]);
    }
    uint64_t at_ns;
    while ((at_ns = os_clock_now_ns()) < until_ns) {
        struct epoll_event events[EVENTS_PER_WAKE];
        int count = epoll_wait(epoll_fd, events, EVENTS_PER_WAKE, o.spins ? 0 : WAIT_MS);
        if (count < 0 || (count == 0 && !o.spins)) {
            fail("the server does not answer");
        }
        for (int i = 0; i < count; i++) {
            receive(events[i].data.ptr);
        }
    }
    (void)printf("%ju answers in %ju ns\n", (uintmax_t)answers, (uintmax_t)(at_ns - from_ns));
    return EXIT_SUCCESS;
}
