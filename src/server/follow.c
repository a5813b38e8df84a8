/* SPDX-License-Identifier: MIT */
#include "server/follow.h"

#include "log/error.h"
#include "os/clock.h"

/* What a change is called: what is new, and what it replaces. */
static const struct {
    const char *served, *kept;
} words[] = {
    [FOLLOW_FOLDER] = { "the replaced folder is served", "folder is served" },
    [FOLLOW_CERTIFICATE] = { "the new certificates are in use", "certificate is used" },
    [FOLLOW_RULES] = { "the new rules of the site are in use", "rules are used" },
    [FOLLOW_USERS] = { "the new list of users is in use", "list of users is used" },
};

enum server_follow server_follow_check(struct server_generation *serving, struct server_look *look,
                                       uint64_t now_ns)
{
    const char *folder = server_roots_moved(&serving->roots, look, now_ns);
    if (folder) {
        log_error(LOG_INFO, "%s is another folder now: new workers open it", folder);
        return FOLLOW_FOLDER;
    }
    const char *file = server_watch_changed(&serving->tls.watch, look, now_ns);
    if (file) {
        log_error(LOG_INFO, "%s has changed: the certificates are read again", file);
        return FOLLOW_CERTIFICATE;
    }
    file = server_watch_changed(&serving->auth.watch, look, now_ns);
    if (file) {
        log_error(LOG_INFO, "%s has changed: the lists of users are read again", file);
        return FOLLOW_USERS;
    }
    file = server_watch_changed(&serving->sitefiles.watch, look, now_ns);
    if (!file)
        return FOLLOW_NONE;
    log_error(LOG_INFO, "%s has changed: the rules of the site are read again", file);
    return FOLLOW_RULES;
}

static uint64_t sooner_look(const struct server_watch *watch, uint64_t due_ns)
{
    return watch->count > 0 && watch->due_ns < due_ns ? watch->due_ns : due_ns;
}

uint64_t server_follow_due_ns(const struct server_generation *serving, uint64_t due_ns)
{
    if (serving->roots.due_ns < due_ns)
        due_ns = serving->roots.due_ns;
    due_ns = sooner_look(&serving->tls.watch, due_ns);
    due_ns = sooner_look(&serving->sitefiles.watch, due_ns);
    return sooner_look(&serving->auth.watch, due_ns);
}

void server_follow_report(enum server_follow change)
{
    log_error(LOG_INFO, "%s", words[change].served);
}

/* The file that keeps the generation from serving. */
static enum server_follow bad_file_of(const struct server_generation *refused)
{
    if (!refused)
        return FOLLOW_NONE;
    if (refused->tls.watch.count > 0 && !refused->tls.complete)
        return FOLLOW_CERTIFICATE;
    return refused->auth.watch.count > 0 && !refused->auth.complete ? FOLLOW_USERS : FOLLOW_NONE;
}

void server_follow_refuse(enum server_follow change, struct server_generation *serving,
                          const struct server_generation *refused, const char *why,
                          struct server_stats *stats)
{
    const enum server_follow bad = bad_file_of(refused);
    if (bad == FOLLOW_CERTIFICATE) {
        log_error(LOG_ERROR, "%s The certificates that were read before stay in use.", why);
        server_watch_postpone(&serving->tls.watch, &refused->tls.watch);
        server_stats_certificates(stats, true);
    } else if (bad == FOLLOW_USERS) {
        log_error(LOG_ERROR, "%s The lists of users that were read before stay in use.", why);
        server_watch_postpone(&serving->auth.watch, &refused->auth.watch);
        server_stats_users(stats, true);
    } else {
        log_error(LOG_ERROR, "%s; the old %s, the new one is tried again", why, words[change].kept);
    }
    if (change == FOLLOW_FOLDER)
        server_roots_postpone(&serving->roots, os_clock_now_ns());
    if (change == FOLLOW_RULES)
        server_watch_delay(&serving->sitefiles.watch, os_clock_now_ns());
}
