/* SPDX-License-Identifier: MIT
 *
 * `weir trace --live`: what a running server was started with, as the kernel keeps
 * it, and one request to it over a listener of its own.
 */
#include "program/trace.h"

#include "os/clock.h"
#include "os/socket.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

enum { PATIENCE_MS = 10000, WORDS_MAX = 4096, TEXT_MAX = 2 * 1024 * 1024 };
#define MS_NS UINT64_C(1000000)

/* ---- how it was started ---- */

/* A file of /proc that is words, each ended by a NUL. NULL at the end; for the program's life. */
static const char **read_words(int pid, const char *name)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
    FILE *file = fopen(path, "re");
    char *text = malloc(TEXT_MAX);
    const char **words = calloc(WORDS_MAX + 1, sizeof(*words));
    size_t len = file && text ? fread(text, 1, TEXT_MAX - 1, file) : 0;
    if (file)
        (void)fclose(file);
    if (!file || !text || !words) {
        free(text);
        free(words);
        return NULL;
    }
    text[len] = '\0';
    size_t count = 0;
    for (char *at = text; at < text + len && count < WORDS_MAX; at += strlen(at) + 1)
        words[count++] = at;
    if (count == 0)
        free(text);
    return words;
}

static int go_where(int pid)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/cwd", pid);
    return chdir(path) < 0 ? -errno : 0;
}

int program_trace_read_start(int pid, struct program_options *ret_options,
                             const char *const **ret_environment)
{
    const char **words = read_words(pid, "cmdline");
    const char **environment = read_words(pid, "environ");
    int rc = words && words[0] && environment ? go_where(pid) : -errno;
    if (rc < 0 || !words || !words[0]) {
        fprintf(stderr,
                "weir: cannot see how process %d was started%s%s; say what it serves: -c FILE or "
                "DIR\n",
                pid, rc < 0 ? ": " : "", rc < 0 ? strerror(-rc) : "");
        return PROGRAM_FAILED;
    }
    const char *const *arguments = words + 1;
    if (arguments[0] && strcmp(arguments[0], "serve") == 0)
        arguments++;
    *ret_environment = environment;
    return program_options_read(program_command_find("serve"), arguments, ret_options) ==
                   PROGRAM_OPTIONS_READ
               ? PROGRAM_OK
               : PROGRAM_FAILED;
}

/* ---- asking it ---- */

/* "http://127.0.0.1:8080/" or "unix:/path". */
static int connect_to(const char *url)
{
    struct os_socket_address address;
    char text[256];
    struct span name = span_text(url);
    if (!span_starts(name, SPAN("http://")))
        return os_socket_connect(url + (span_starts(name, SPAN("unix:")) ? 5 : 0));
    name = span_skip(name, sizeof("http://") - 1);
    (void)snprintf(text, sizeof(text), "%.*s", (int)name.len - span_ends(name, SPAN("/")), name.at);
    int rc = os_socket_parse(text, &address);
    int fd = rc < 0 ? rc : socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (rc == 0 && fd < 0)
        return -errno;
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address.storage, address.len) < 0) {
        rc = -errno;
        close(fd);
        return rc;
    }
    return fd;
}

static bool send_all(int fd, struct span bytes)
{
    while (bytes.len > 0) {
        ssize_t len = send(fd, bytes.at, bytes.len, MSG_NOSIGNAL);
        if (len < 0 && errno == EINTR)
            continue;
        if (len < 0)
            return false; /* what it said before may be there all the same */
        bytes = span_skip(bytes, (size_t)len);
    }
    return true;
}

/* Up to the end of the head. 0 or -errno. */
static int read_head(int fd, struct program_trace_live *live)
{
    uint64_t due_ns = os_clock_now_ns() + PATIENCE_MS * MS_NS;
    size_t len = 0;
    while (len < sizeof(live->head)) {
        struct pollfd end = { .fd = fd, .events = POLLIN };
        int ready = poll(&end, 1, os_clock_wait_ms(due_ns));
        if (ready == 0)
            return -ETIMEDOUT;
        ssize_t got = ready < 0 ? -1 : recv(fd, live->head + len, sizeof(live->head) - len, 0);
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got <= 0)
            return got < 0 ? -errno : -ECONNRESET;
        len += (size_t)got;
        const char *last = memmem(live->head, len, "\r\n\r\n", 4);
        if (last) {
            live->head_len = (size_t)(last + 4 - live->head);
            return 0;
        }
    }
    return -EMSGSIZE;
}

int program_trace_ask(struct program_trace_live *live, struct span request)
{
    int fd = connect_to(live->url);
    int rc = fd < 0 ? fd : 0;
    if (rc == 0)
        (void)send_all(fd, request);
    if (rc == 0)
        rc = read_head(fd, live);
    if (fd >= 0)
        close(fd);
    if (rc < 0) {
        fprintf(stderr, "weir: process %d does not answer at %s: %s\n", live->pid, live->url,
                strerror(-rc));
        return PROGRAM_FAILED;
    }
    live->asked = true;
    return PROGRAM_OK;
}
