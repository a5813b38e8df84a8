/* SPDX-License-Identifier: MIT */
#include "server/follow.h"

#include "log/error.h"
#include "os/clock.h"

enum server_follow server_follow_check(struct server_generation *serving, uint64_t now_ns)
{
    const char *folder = server_roots_moved(&serving->roots, now_ns);
    const char *file = folder ? NULL : server_tls_changed(&serving->tls, now_ns);
    if (folder)
        log_error(LOG_INFO, "%s is another folder now: new workers open it", folder);
    if (file)
        log_error(LOG_INFO, "%s has changed: the certificates are read again", file);
    return folder ? FOLLOW_FOLDER : file ? FOLLOW_CERTIFICATE : FOLLOW_NONE;
}

uint64_t server_follow_due_ns(const struct server_generation *serving, uint64_t due_ns)
{
    if (serving->roots.due_ns < due_ns)
        due_ns = serving->roots.due_ns;
    bool watches = serving->tls.file_count > 0;
    return watches && serving->tls.due_ns < due_ns ? serving->tls.due_ns : due_ns;
}

void server_follow_report(enum server_follow change)
{
    log_error(LOG_INFO, change == FOLLOW_FOLDER ? "the replaced folder is served"
                                                : "the new certificates are in use");
}

bool server_follow_refuse(enum server_follow change, struct server_generation *serving,
                          const struct server_generation *refused, const char *why)
{
    bool bad = refused && refused->tls.file_count > 0 && !refused->tls.complete;
    if (bad) {
        log_error(LOG_ERROR, "%s The certificates that were read before stay in use.", why);
        server_tls_postpone(&serving->tls, &refused->tls);
    } else {
        log_error(LOG_ERROR, "%s; the old %s, the new one is tried again", why,
                  change == FOLLOW_FOLDER ? "folder is served" : "certificate is used");
    }
    if (change == FOLLOW_FOLDER)
        server_roots_postpone(&serving->roots, os_clock_now_ns());
    return bad;
}
