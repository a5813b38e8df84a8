/* SPDX-License-Identifier: MIT
 *
 * Logs that go to a socket, one datagram for each line: systemd's journal by its native protocol,
 * or a syslog server by RFC 5424.
 *
 *   journal           /run/systemd/journal/socket
 *   journal:PATH      the socket of another journal, as a journal namespace has it
 *   syslog:           /dev/log
 *   syslog:PATH       another Unix socket
 *   syslog:udp://ADDRESS[:PORT]   port 514 unless given; an IPv6 address is in brackets
 *
 * Each process has a socket of its own, because a process can shut down a socket that it shares.
 * No datagram waits for its receiver. A receiver that has made its socket again is found after
 * SIGUSR1, as the new file of a log is.
 *
 * The journal accepts a long entry as a file (memfd). That is not used here, because a line has at
 * most LOG_LINE_MAX bytes, and a socket takes datagrams of more than ten times that size.
 */
#pragma once

#include "base/check.h"
#include "base/span.h"

#include <stdint.h>

enum log_message { LOG_MESSAGE_NONE, LOG_MESSAGE_JOURNAL, LOG_MESSAGE_SYSLOG };

/* What the setting of a log names; LOG_MESSAGE_NONE: a file, - or off. */
enum log_message log_message_kind(const char *setting);

/* Whether an address can be read from a setting that is a message. */
MUST_USE bool log_message_is_valid(const char *setting);

/* Opens a connected socket (CLOEXEC, non-blocking). Returns it or -errno. */
MUST_USE int log_message_open(const char *setting);

/* Whether systemd has connected the descriptor to its journal (systemd.exec(5), JOURNAL_STREAM). */
bool log_message_is_journal(int fd);

/* Severities of RFC 5424 section 6.2.1, which the journal uses, too. */
enum {
    LOG_MESSAGE_ERROR = 3,
    LOG_MESSAGE_WARNING = 4,
    LOG_MESSAGE_INFO = 6,
    LOG_MESSAGE_DEBUG = 7
};

/* The parts of a datagram beside the line. */
struct log_message_about {
    enum log_message kind;
    unsigned severity;
    const char *log; /* access or error */
    int64_t wall_ms;
};

/* The most bytes of each of the two. */
enum { LOG_MESSAGE_HEAD_MAX = 256 };

/* Writes what stands before the text of a line. Returns its length. */
size_t log_message_put_head(char out[LOG_MESSAGE_HEAD_MAX], const struct log_message_about *about);

/* Writes the other fields of an entry of the journal, each with its newline. Returns their length,
 * 0 for syslog. */
size_t log_message_put_fields(char out[LOG_MESSAGE_HEAD_MAX],
                              const struct log_message_about *about);

/* Sends one datagram, if the socket has space for it. 0 or -errno; -EAGAIN: it has none. */
MUST_USE int log_message_send(int fd, struct span bytes);
