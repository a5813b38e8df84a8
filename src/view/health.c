/* SPDX-License-Identifier: MIT */
#include "view/health.h"

#include "base/duration.h"
#include "view/window.h"

#include <inttypes.h>

#define MASTER_LATE (5 * DURATION_SECOND) /* a heartbeat comes once a second */
#define MASTER_LOST (15 * DURATION_SECOND)

static const char *plural_ending(uint64_t count)
{
    return count == 1 ? "" : "s";
}

bool view_health_not_running(const struct view_window *w, struct view_verdict *out)
{
    if (w->view->snapshot->running)
        return false;
    out->gravity = VIEW_WRONG;
    view_verdict_say(out->text, "the server has died: these are the last numbers of process %d",
                     (int)w->view->snapshot->master);
    view_verdict_say(out->why,
                     "a server that stops removes its numbers, so this one crashed or was killed");
    view_verdict_say(out->cure,
                     "start it again, if possible under a supervisor. `error-log` and `dmesg` may "
                     "show the reason");
    return true;
}

bool view_health_master_hangs(const struct view_window *w, struct view_verdict *out)
{
    uint64_t age_ns = w->view->heartbeat_age_ns;
    if (!w->view->snapshot->running || age_ns < MASTER_LATE)
        return false;
    out->gravity = age_ns < MASTER_LOST ? VIEW_WARNING : VIEW_WRONG;
    view_verdict_say(out->text, "the last heartbeat of the master, process %d, was %.0f s ago",
                     (int)w->view->snapshot->master, (double)age_ns / 1e9);
    view_verdict_say(
        out->why, "it is stopped, waits for a disk, or gets no CPU time. Workers still serve, but "
                  "dead ones are not replaced and no reload is done");
    view_verdict_say(out->cure, "see what it waits for in /proc/%d/stack and /proc/%d/status",
                     (int)w->view->snapshot->master, (int)w->view->snapshot->master);
    return true;
}

bool view_health_calls_refused(const struct view_window *w, struct view_verdict *out)
{
    uint64_t calls = w->counter[STATS_calls_refused];
    if (calls == 0)
        return false;
    out->gravity = VIEW_WRONG;
    view_verdict_say(out->text,
                     "the sandbox refused %" PRIu64 " system call%s of a worker in %.0f s", calls,
                     plural_ending(calls), w->seconds);
    view_verdict_say(out->why,
                     "a worker made a call that weir does not use: a new version of a library, a "
                     "fault of weir, or an attacker who controls the worker");
    view_verdict_say(out->cure,
                     "`error-log` has the number of each call. Restart the server, and report it");
    return true;
}

bool view_health_workers_die(const struct view_window *w, struct view_verdict *out)
{
    uint64_t deaths = w->counter[STATS_worker_deaths];
    if (deaths == 0)
        return false;
    out->gravity = deaths > 2 ? VIEW_WRONG : VIEW_WARNING;
    view_verdict_say(
        out->text,
        "%" PRIu64 " worker%s died in %.0f s, and %" PRIu64 " connection%s ended with %s", deaths,
        plural_ending(deaths), w->seconds, w->counter[STATS_connections_lost],
        plural_ending(w->counter[STATS_connections_lost]), deaths == 1 ? "it" : "them");
    view_verdict_say(
        out->why, "a worker was killed (by hand, or because memory ran out, see `dmesg`), or weir "
                  "has a fault");
    view_verdict_say(out->cure,
                     "`error-log` has the signal of each death. Please report a fault of weir");
    return true;
}

bool view_health_statistics_damaged(const struct view_window *w, struct view_verdict *out)
{
    unsigned damaged = w->view->snapshot->damaged;
    if (damaged == 0)
        return false;
    out->gravity = VIEW_WRONG;
    view_verdict_say(out->text, "the counts of %u worker%s are damaged and missing here", damaged,
                     plural_ending(damaged));
    view_verdict_say(out->why,
                     "only a worker can damage its counts: it was taken over, or weir has a fault");
    view_verdict_say(out->cure,
                     "save `error-log`, install the newest weir, and restart the server");
    return true;
}

bool view_health_reload_failed(const struct view_window *w, struct view_verdict *out)
{
    if (!w->view->snapshot->reload_failed)
        return false;
    out->gravity = VIEW_WARNING;
    view_verdict_say(out->text,
                     "the last reload failed, and configuration number %" PRIu64 " stays in force",
                     w->view->snapshot->generation);
    view_verdict_say(out->why, "%s", w->view->snapshot->reload_error);
    view_verdict_say(out->cure, "check the file with `weir check -c FILE`, then run `weir reload`");
    return true;
}

bool view_health_log_lines_dropped(const struct view_window *w, struct view_verdict *out)
{
    uint64_t dropped = w->counter[STATS_log_lines_dropped];
    if (dropped == 0)
        return false;
    out->gravity = VIEW_WRONG;
    view_verdict_say(out->text,
                     "%" PRIu64 " line%s of the access log could not be written in %.0f s", dropped,
                     plural_ending(dropped), w->seconds);
    view_verdict_say(out->why,
                     "the disk is full or too slow, or the reader of the pipe does not keep up");
    view_verdict_say(out->cure, "free space where `access-log` is, or move it to another disk");
    return true;
}

bool view_health_logs_not_reopened(const struct view_window *w, struct view_verdict *out)
{
    uint64_t stale = w->view->snapshot->counter[STATS_logs_stale];
    if (stale == 0 && w->counter[STATS_log_reopens_failed] == 0)
        return false;
    out->gravity = VIEW_WRONG;
    view_verdict_say(out->text, "logs could not be opened again after SIGUSR1");
    view_verdict_say(out->why,
                     "their lines go to the old files; standard error and the error log have the "
                     "reason");
    view_verdict_say(
        out->cure, "mend the log's folder (owner, rights, space), then send SIGUSR1 to the master "
                   "again");
    return true;
}

bool view_health_numbers_incomplete(const struct view_window *w, struct view_verdict *out)
{
    uint64_t unseen = w->view->snapshot->unseen;
    uint64_t unrecorded = w->view->snapshot->counter[STATS_durations_unrecorded];
    if (unseen == 0 && unrecorded == 0)
        return false;
    out->gravity = VIEW_WARNING;
    view_verdict_say(out->text,
                     "these numbers are incomplete: %" PRIu64 " thread%s or process%s and %" PRIu64
                     " duration%s are missing",
                     unseen, plural_ending(unseen), unseen == 1 ? "" : "es", unrecorded,
                     plural_ending(unrecorded));
    view_verdict_say(out->why, "no shared memory was left in " STATS_FOLDER);
    view_verdict_say(out->cure, "give " STATS_FOLDER
                                " more space (docker: --shm-size), and restart the server");
    return true;
}

bool view_health_folder_gone(const struct view_window *w, struct view_verdict *out)
{
    const uint64_t gone = w->view->snapshot->counter[STATS_folders_gone];
    if (gone == 0)
        return false;
    out->gravity = VIEW_WRONG;
    view_verdict_say(out->text, "%" PRIu64 " folder%s of a site %s gone from the disk", gone,
                     plural_ending(gone), gone == 1 ? "is" : "are");
    view_verdict_say(out->why, "a `root` or `error-pages` was deleted or renamed. Deleted files "
                               "get 404, and renamed ones are still served. `error-log` has its "
                               "name");
    view_verdict_say(out->cure, "put the folder back, or change the setting and run `weir "
                                "reload`. The server sees a new folder itself");
    return true;
}

bool view_health_certificates_stale(const struct view_window *w, struct view_verdict *out)
{
    if (w->view->snapshot->counter[STATS_certificates_stale] == 0)
        return false;
    out->gravity = VIEW_WRONG;
    view_verdict_say(out->text, "a certificate has changed on the disk, and it cannot be used");
    view_verdict_say(out->why, "its file and its key do not match, or cannot be read. `error-log` "
                               "has the reason. The certificates that were read before stay in "
                               "use until they end");
    view_verdict_say(out->cure, "mend the files that `weir check -c FILE` names. The server sees "
                                "the change itself");
    return true;
}

bool view_health_users_stale(const struct view_window *w, struct view_verdict *out)
{
    if (w->view->snapshot->counter[STATS_users_stale] == 0)
        return false;
    out->gravity = VIEW_WRONG;
    view_verdict_say(out->text, "a list of users has changed on the disk, and it cannot be used");
    view_verdict_say(out->why, "a line of it is wrong, or the file cannot be read. `error-log` has "
                               "the reason. The list that was read before stays in use: a user "
                               "who was removed still has access");
    view_verdict_say(out->cure, "mend the line that `weir check -c FILE` names. The server sees "
                                "the change itself");
    return true;
}

bool view_health_site_rules_refused(const struct view_window *w, struct view_verdict *out)
{
    const uint64_t lines = w->view->snapshot->counter[STATS_site_rules_refused];
    if (lines == 0)
        return false;
    out->gravity = VIEW_WARNING;
    view_verdict_say(out->text, "%" PRIu64 " line%s of _headers and _redirects cannot be used",
                     lines, plural_ending(lines));
    view_verdict_say(out->why, "such a line is wrong, or asks for what weir does not do. "
                               "`error-log` has the file, the line and the reason. The other lines "
                               "are in force");
    view_verdict_say(out->cure, "mend the lines that `weir check -c FILE` names. The server reads "
                                "the files again when they change");
    return true;
}

bool view_health_certificates_end(const struct view_window *w, struct view_verdict *out)
{
    int64_t end_s = (int64_t)w->view->snapshot->counter[STATS_certificates_end_s];
    int64_t left_s = end_s - w->view->read_s;
    if (end_s == 0 || left_s >= VIEW_CERTIFICATE_SOON_S)
        return false;
    out->gravity = left_s > 0 ? VIEW_WARNING : VIEW_WRONG;
    if (left_s > 0)
        view_verdict_say(out->text, "a certificate ends in %.1f days", (double)left_s / VIEW_DAY_S);
    else
        view_verdict_say(out->text, "a certificate ended %.1f days ago, and browsers refuse it",
                         (double)-left_s / VIEW_DAY_S);
    view_verdict_say(out->why, "it was not renewed, or the files that `tls-certificate` names were "
                               "not replaced");
    view_verdict_say(out->cure, "renew it. The server uses the new files without a restart. `weir "
                                "stats` shows when each certificate ends");
    return true;
}
