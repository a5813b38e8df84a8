/* SPDX-License-Identifier: MIT
 *
 * What the master has to do with processes that are not its workers, in one place:
 * whoever started it and waits, the service manager (os/notify.h), `weir reload` and
 * `weir stop` (server/control.h), the master whose place it takes (server/inherited.h)
 * and the one that takes its place (server/upgrade.h). It decides nothing: what is
 * asked for is the master's to do.
 */
#pragma once

#include "os/notify.h"
#include "server/control.h"
#include "server/inherited.h"
#include "server/listeners.h"
#include "server/upgrade.h"

enum { SERVER_MANAGEMENT_POLL = SERVER_CONTROL_POLL + 1 };

/* What can be asked of the master. */
struct server_management_master {
    bool (*reload)(void *context); /* false: not now */
    void (*stop)(void *context, bool drain);
    const struct server_listeners *(*serving)(void *context); /* NULL: nothing at present */
    void *context;
};

struct server_management {
    const struct server_management_master *master;
    struct os_notify notify;
    struct server_inherited inherited;
    int ready_fd;      /* gets the URLs, once; -1: nobody waits for them */
    pid_t predecessor; /* whose place this process takes; 0: nobody's */
    struct server_upgrade upgrade;
    struct server_control *control; /* NULL: there is none */
    int64_t since_s;                /* when the server began */
    uint64_t watchdog_due_ns;       /* when the service manager has to hear from us */
    uint64_t progress_due_ns;       /* when those who wait for a stop are told how it goes */
    bool handed_over;               /* a successor serves, and this process only drains */
};

/* Takes what the environment holds, and `ready_fd` (-1: none), of which a predecessor's
 * takes the place. `master` is borrowed until the close. 0 or -errno, told in the error log. */
MUST_USE int server_management_open(struct server_management *ret_management,
                                    const struct server_management_master *master, int ready_fd);

/* Makes the control socket that the setting asks for; that it cannot be made is told in the
 * error log, and no more. */
void server_management_listen(struct server_management *management, const char *setting);

/* ---- for the master's loop ---- */

/* What to wait for: fills at most SERVER_MANAGEMENT_POLL elements; how many. */
size_t server_management_poll(const struct server_management *management, struct pollfd *ends);

/* When server_management_serve is due at the latest. */
uint64_t server_management_due_ns(const struct server_management *management);

/* Does what can be done, with the `count` elements of server_management_poll after poll. There
 * are `workers` at the time, which is told to those who wait for a stop. */
void server_management_serve(struct server_management *management, const struct pollfd *ends,
                             size_t count, unsigned workers);

/* ---- what the master tells ---- */

/* It serves these addresses; `status` is a line for people. */
void server_management_serving(struct server_management *management,
                               const struct server_listeners *listeners, const char *status);
void server_management_reloading(struct server_management *management);

/* `report` is text in lines, `status` as above. */
void server_management_reloaded(struct server_management *management, bool good, const char *report,
                                const char *status);
void server_management_stopping(struct server_management *management);

/* ---- the binary ---- */

/* Starts a successor with all sockets, those of the statistics page too. What stands against it is
 * told in the error log. */
void server_management_upgrade(struct server_management *management,
                               const struct server_addresses *addresses,
                               const struct server_addresses *page);

/* Whether one is starting. */
bool server_management_is_upgrading(const struct server_management *management);

/* Whether the successor has just begun to serve: from now on this process is there to drain only.
 * To be called before children are reaped. */
bool server_management_has_successor(struct server_management *management);

/* Ends a successor that is starting. */
void server_management_abandon(struct server_management *management);

/* ---- the end ---- */

/* In a worker: closes what is the master's alone. */
void server_management_leave(struct server_management *management);

/* Tells those who wait that the server is gone, and closes everything. */
void server_management_close(struct server_management *management);
