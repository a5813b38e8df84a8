/* SPDX-License-Identifier: MIT */
#include "log/message.h"

#include "base/calendar.h"
#include "base/num.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { SYSLOG_PORT = 514, FACILITY_DAEMON = 3, HOSTNAME_MAX = 64 };

static const struct {
    const char *name, *socket;
    enum log_message kind;
} kinds[] = {
    { "journal", "/run/systemd/journal/socket", LOG_MESSAGE_JOURNAL },
    { "syslog", "/dev/log", LOG_MESSAGE_SYSLOG },
};

static const struct span udp = { "udp://", 6 };

/* The name of this machine; `-` where it has none that RFC 5424 allows. It is set before other
 * threads run. */
static char host_name[HOSTNAME_MAX] = "-";

static void note_host_name(void)
{
    char name[HOSTNAME_MAX] = "";
    if (gethostname(name, sizeof(name) - 1) < 0 || name[0] == '\0')
        return;
    for (const char *at = name; *at != '\0'; at++)
        if (*at <= ' ' || *at >= 0x7f)
            return;
    memcpy(host_name, name, sizeof(host_name));
}

/* Whether the setting names a message, and what follows its colon. */
static enum log_message split_setting(const char *setting, struct span *ret_address)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        const size_t len = strlen(kinds[i].name);
        if (strncmp(setting, kinds[i].name, len) != 0)
            continue;
        const bool journal = kinds[i].kind == LOG_MESSAGE_JOURNAL;
        if (setting[len] != ':' && !(journal && setting[len] == '\0'))
            continue;
        *ret_address = span_text(setting + len + (setting[len] == ':'));
        if (ret_address->len == 0)
            *ret_address = span_text(kinds[i].socket);
        return kinds[i].kind;
    }
    return LOG_MESSAGE_NONE;
}

enum log_message log_message_kind(const char *setting)
{
    struct span address;
    return split_setting(setting, &address);
}

/* ---- addresses ---- */

union address {
    struct sockaddr any;
    struct sockaddr_un un;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
};

/* Splits ADDRESS, ADDRESS:PORT or [ADDRESS]:PORT. */
static bool split_port(struct span text, struct span *ret_host, uint16_t *ret_port)
{
    const char *colon = memrchr(text.at, ':', text.len);
    const char *bracket = memrchr(text.at, ']', text.len);
    uint64_t port = SYSLOG_PORT;
    if (colon && (!bracket || colon > bracket)) {
        const size_t at = (size_t)(colon - text.at);
        if (!num_parse_u64(span_skip(text, at + 1), &port) || port == 0 || port > UINT16_MAX)
            return false;
        text = span_first(text, at);
    }
    if (bracket) {
        if (text.at[0] != '[' || bracket + 1 != text.at + text.len)
            return false;
        text = span_of(text.at + 1, text.len - 2);
    }
    *ret_host = text;
    *ret_port = (uint16_t)port;
    return text.len > 0 && text.len < INET6_ADDRSTRLEN;
}

/* The length of the address; 0: it cannot be read. */
static socklen_t read_udp(struct span text, union address *ret_address)
{
    char host[INET6_ADDRSTRLEN];
    struct span name;
    uint16_t port;
    if (text.len == 0 || !split_port(text, &name, &port))
        return 0;
    memcpy(host, name.at, name.len);
    host[name.len] = '\0';
    *ret_address = (union address){ .in = { .sin_family = AF_INET, .sin_port = htons(port) } };
    if (inet_pton(AF_INET, host, &ret_address->in.sin_addr) == 1)
        return sizeof(ret_address->in);
    *ret_address = (union address){ .in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) } };
    return inet_pton(AF_INET6, host, &ret_address->in6.sin6_addr) == 1 ? sizeof(ret_address->in6)
                                                                       : 0;
}

static socklen_t read_address(const char *setting, union address *ret_address)
{
    struct span text = SPAN("");
    const enum log_message kind = split_setting(setting, &text);
    if (kind == LOG_MESSAGE_SYSLOG && span_starts(text, udp))
        return read_udp(span_skip(text, udp.len), ret_address);
    if (kind == LOG_MESSAGE_NONE || text.at[0] != '/' ||
        text.len >= sizeof(ret_address->un.sun_path))
        return 0;
    *ret_address = (union address){ .un = { .sun_family = AF_UNIX } };
    memcpy(ret_address->un.sun_path, text.at, text.len);
    return sizeof(ret_address->un);
}

bool log_message_is_valid(const char *setting)
{
    union address address;
    return read_address(setting, &address) > 0;
}

int log_message_open(const char *setting)
{
    union address address;
    const socklen_t len = read_address(setting, &address);
    if (len == 0)
        return -EINVAL;
    const int fd = socket(address.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    note_host_name();
    if (connect(fd, &address.any, len) == 0)
        return fd;
    const int error = errno;
    (void)close(fd);
    return -error;
}

bool log_message_is_journal(int fd)
{
    const char *named = getenv("JOURNAL_STREAM"); /* DEVICE:INODE */
    char own[64];
    struct stat status;
    if (!named || fstat(fd, &status) < 0)
        return false;
    (void)snprintf(own, sizeof(own), "%ju:%ju", (uintmax_t)status.st_dev, (uintmax_t)status.st_ino);
    return strcmp(own, named) == 0;
}

/* ---- datagrams ---- */

size_t log_message_put_head(char out[LOG_MESSAGE_HEAD_MAX], const struct log_message_about *about)
{
    if (about->kind == LOG_MESSAGE_JOURNAL) {
        memcpy(out, "MESSAGE=", 8);
        return 8;
    }
    char now[CALENDAR_LEN];
    calendar_format(now, about->wall_ms / 1000);
    const int len = snprintf(out, LOG_MESSAGE_HEAD_MAX, "<%u>1 %.*s.%03uZ %s weir %d %s - ",
                             FACILITY_DAEMON * 8u + about->severity, CALENDAR_LEN - 1, now,
                             (unsigned)(about->wall_ms % 1000), host_name, (int)getpid(),
                             about->log);
    CHECK(len > 0 && len < LOG_MESSAGE_HEAD_MAX);
    return (size_t)len;
}

size_t log_message_put_fields(char out[LOG_MESSAGE_HEAD_MAX], const struct log_message_about *about)
{
    if (about->kind != LOG_MESSAGE_JOURNAL)
        return 0;
    const int len = snprintf(out, LOG_MESSAGE_HEAD_MAX,
                             "PRIORITY=%u\nSYSLOG_IDENTIFIER=weir\nWEIR_LOG=%s\n", about->severity,
                             about->log);
    CHECK(len > 0 && len < LOG_MESSAGE_HEAD_MAX);
    return (size_t)len;
}

int log_message_send(int fd, struct span bytes)
{
    ssize_t sent;
    do {
        sent = send(fd, bytes.at, bytes.len, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : 0;
}
