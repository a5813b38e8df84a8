/* SPDX-License-Identifier: MIT */
#include "os/signal.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

int os_signal_open(const int *signals, size_t count)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < count; i++)
        sigaddset(&set, signals[i]);
    int rc = pthread_sigmask(SIG_SETMASK, &set, NULL);
    if (rc != 0)
        return -rc;
    struct sigaction ignore = { .sa_handler = SIG_IGN };
    if (sigaction(SIGPIPE, &ignore, NULL) < 0 || sigaction(SIGXFSZ, &ignore, NULL) < 0)
        return -errno;
    int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int os_signal_read(int fd)
{
    struct signalfd_siginfo info;
    ssize_t len;
    do
        len = read(fd, &info, sizeof(info));
    while (len < 0 && errno == EINTR);
    if (len < 0)
        return errno == EAGAIN ? 0 : -errno;
    return len == sizeof(info) ? (int)info.ssi_signo : -EIO;
}
