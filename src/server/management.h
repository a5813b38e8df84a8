/* SPDX-License-Identifier: MIT
 *
 * The management interface of the master: everything it exchanges with processes that are not its
 * workers. These are the process that started it (--ready-fd), the service manager (os/notify.h),
 * `weir reload` and `weir stop` (server/control.h), its predecessor (server/inherited.h) and its
 * successor (server/upgrade.h). It decides nothing: the master carries out the requests.
 */
#pragma once

#include "os/notify.h"
#include "server/control.h"
#include "server/inherited.h"
#include "server/listeners.h"
#include "server/upgrade.h"
#include "tls/tickets.h"

enum { SERVER_MANAGEMENT_POLL = SERVER_CONTROL_POLL + 1 };

/* What a request has the master do. */
struct server_management_master {
    bool (*reload)(void *context); /* false: not possible now */
    void (*stop)(void *context, bool drain);
    const struct server_listeners *(*serving)(void *context); /* NULL: nothing serves */
    void *context;
};

struct server_management {
    const struct server_management_master *master;
    struct os_notify notify;
    struct server_inherited inherited;
    struct tls_tickets tickets; /* of all generations; closed until one has TLS */
    int ready_fd;               /* gets the URLs, once; -1: none */
    struct server_upgrade upgrade;
    struct server_control *control; /* NULL: there is none */
    int64_t since_s;                /* when the server started */
    uint64_t watchdog_due_ns;       /* next message for the watchdog of the service manager */
    uint64_t progress_due_ns;       /* next progress line for clients that wait for a stop */
    bool handed_over;               /* a successor serves, and this process only drains */
    bool stop_asked;                /* since then */
    bool rotates_successor;         /* the logs were opened again while it started */
};

/* Opens a descriptor for the signals that are requests to the master, and SIGCHLD. On failure
 * -errno, reported in the error log. */
MUST_USE int server_management_open_signals(void);

/* Takes the descriptors that the environment names, and `ready_fd` (-1: none); the one of a
 * predecessor replaces it. `master` is borrowed until the close. 0 or -errno, reported in the error
 * log. */
MUST_USE int server_management_open(struct server_management *ret_management,
                                    const struct server_management_master *master, int ready_fd);

/* Makes the control socket that the setting names. A failure is only logged. */
void server_management_listen(struct server_management *management, const char *setting);

/* ---- for the master's loop ---- */

/* Fills at most SERVER_MANAGEMENT_POLL elements for poll; returns how many. */
size_t server_management_poll(const struct server_management *management, struct pollfd *ends);

/* The latest time for the next server_management_serve. */
uint64_t server_management_due_ns(const struct server_management *management);

/* Serves what is ready or due. `ends` are the `count` elements of server_management_poll, after
 * poll. `workers` is the present number of workers, for clients that wait for a stop. */
void server_management_serve(struct server_management *management, const struct pollfd *ends,
                             size_t count, unsigned workers);

/* ---- what the master reports ---- */

/* The server serves these addresses; `status` is a line for people. */
void server_management_serving(struct server_management *management,
                               const struct server_listeners *listeners, const char *status);
void server_management_reloading(struct server_management *management);

/* A reload has ended. `report` is text in lines, `status` as above. */
void server_management_reloaded(struct server_management *management, bool good, const char *report,
                                const char *status);
void server_management_stopping(struct server_management *management);

/* ---- the upgrade of the binary ---- */

/* Starts a successor with all listening sockets, those of the statistics page included. A failure
 * is reported in the error log. */
void server_management_upgrade(struct server_management *management,
                               const struct server_addresses *addresses,
                               const struct server_addresses *page);

/* Whether a successor is starting. */
bool server_management_is_upgrading(const struct server_management *management);

/* Whether the successor has just begun to serve: from now on this process only drains. Call it
 * before children are reaped. */
bool server_management_has_successor(struct server_management *management);

/* Notes a request to stop. True: it is the first one since a successor serves, so the drain that it
 * asks for is under way already. */
bool server_management_note_stop(struct server_management *management);

/* The logs were opened again. A predecessor that still drains does the same, and so does a
 * successor, once it serves: the operator does not know their ids. */
void server_management_rotated(struct server_management *management);

/* Asks a successor that is starting to end. server_upgrade_end waits for it. */
void server_management_abandon(struct server_management *management);

/* ---- the end ---- */

/* In a child process: closes what belongs to the master alone, and unless `tls` the ticket keys. */
void server_management_leave(struct server_management *management, bool tls);

/* Reports the stop to the clients that wait for it, and closes everything. */
void server_management_close(struct server_management *management);
