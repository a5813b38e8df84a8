/* SPDX-License-Identifier: MIT
 *
 * A server that takes a known time for each request, and reports the time that it really took.
 *
 *   metronome delay NS      answers each request NS after its arrival
 *   metronome service NS    answers one request after the other, each in NS: at most 1/NS a second
 *
 * The server prints its port and serves until its standard input ends. Then it prints the times of
 * its answers, from the arrival of a request in the kernel (SO_TIMESTAMPNS) to the send. So a late
 * wake-up is part of the reported time. A client measures in addition its own time and that of
 * the kernel between both.
 *
 * A connection has one request at a time. The program is for tests and ends on any error.
 */
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS = 1024, EVENTS = 64, REQUEST_MAX = 4096 };

static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n";

struct waiting {
    int fd;
    int64_t came_ns, due_ns;
};

/* In the order of their times, which is the order of arrival. */
static struct {
    struct waiting at[CONNECTIONS];
    unsigned first, count;
} queue;

static struct {
    uint64_t answers;
    int64_t sum_ns, least_ns, most_ns;
} given = { .least_ns = INT64_MAX };

static bool one_at_a_time;
static int64_t time_ns, free_ns; /* free: the end of the request before */

static void need(bool good, const char *what)
{
    if (good)
        return;
    perror(what);
    exit(1);
}

static int64_t ns_of(struct timespec time)
{
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static int64_t now(void)
{
    struct timespec time;
    need(clock_gettime(CLOCK_REALTIME, &time) == 0, "clock");
    return ns_of(time);
}

/* The kernel's time of arrival, or now where the message has none. */
static int64_t came_at(struct msghdr *message)
{
    for (struct cmsghdr *field = CMSG_FIRSTHDR(message); field;
         field = CMSG_NXTHDR(message, field)) {
        struct timespec time;
        if (field->cmsg_level != SOL_SOCKET || field->cmsg_type != SCM_TIMESTAMPNS)
            continue;
        memcpy(&time, CMSG_DATA(field), sizeof(time));
        return ns_of(time);
    }
    return now();
}

static void take(int fd)
{
    char bytes[REQUEST_MAX], control[128];
    struct iovec piece = { bytes, sizeof(bytes) };
    struct msghdr message = { .msg_iov = &piece,
                              .msg_iovlen = 1,
                              .msg_control = control,
                              .msg_controllen = sizeof(control) };
    ssize_t got = recvmsg(fd, &message, 0);
    if (got <= 0) {
        close(fd);
        return;
    }
    need(got > 4 && memcmp(bytes + got - 4, "\r\n\r\n", 4) == 0, "a request in one piece");
    need(queue.count < CONNECTIONS, "room");
    int64_t came_ns = came_at(&message);
    int64_t from_ns = one_at_a_time && free_ns > came_ns ? free_ns : came_ns;
    free_ns = from_ns + time_ns;
    queue.at[(queue.first + queue.count++) % CONNECTIONS] =
        (struct waiting){ fd, came_ns, from_ns + time_ns };
}

static void answer_those_due(void)
{
    for (; queue.count > 0; queue.count--) {
        const struct waiting *next = &queue.at[queue.first];
        int64_t now_ns = now(), took_ns = now_ns - next->came_ns;
        if (next->due_ns > now_ns)
            return;
        if (send(next->fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL) > 0) {
            given.answers++;
            given.sum_ns += took_ns;
            given.least_ns = took_ns < given.least_ns ? took_ns : given.least_ns;
            given.most_ns = took_ns > given.most_ns ? took_ns : given.most_ns;
        }
        queue.first = (queue.first + 1) % CONNECTIONS;
    }
}

static void watch(int epoll_fd, int fd)
{
    struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };
    need(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
}

static void admit(int epoll_fd, int listener)
{
    int on = 1, fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    need(fd >= 0, "accept");
    need(setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)) == 0, "SO_TIMESTAMPNS");
    need(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0, "TCP_NODELAY");
    watch(epoll_fd, fd);
}

static int listen_somewhere(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    need(fd >= 0 && bind(fd, (struct sockaddr *)&address, len) == 0 && listen(fd, 512) == 0 &&
             getsockname(fd, (struct sockaddr *)&address, &len) == 0,
         "listen");
    printf("%u\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

int main(int argc, char **argv)
{
    need(argc == 3, "metronome delay|service NS");
    one_at_a_time = strcmp(argv[1], "service") == 0;
    time_ns = strtoll(argv[2], NULL, 10);
    (void)prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    int listener = listen_somewhere(), epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    watch(epoll_fd, listener);
    watch(epoll_fd, STDIN_FILENO);
    for (bool over = false; !over;) {
        struct epoll_event events[EVENTS];
        struct timespec wait = { 0 };
        int64_t left_ns = queue.count > 0 ? queue.at[queue.first].due_ns - now() : 0;
        if (left_ns > 0)
            wait = (struct timespec){ left_ns / 1000000000, left_ns % 1000000000 };
        int count = epoll_pwait2(epoll_fd, events, EVENTS, queue.count > 0 ? &wait : NULL, NULL);
        need(count >= 0 || errno == EINTR, "epoll_pwait2");
        answer_those_due();
        for (int i = 0; i < count; i++) {
            if (events[i].data.fd == STDIN_FILENO)
                over = true;
            else if (events[i].data.fd == listener)
                admit(epoll_fd, listener);
            else
                take(events[i].data.fd);
        }
    }
    printf("{\"answers\": %" PRIu64 ", \"mean_ns\": %.1f, \"min_ns\": %" PRId64
           ", \"max_ns\": %" PRId64 "}\n",
           given.answers, (double)given.sum_ns / (double)(given.answers ? given.answers : 1),
           given.least_ns, given.most_ns);
    return 0;
}
