/* SPDX-License-Identifier: MIT */
#include "site/trace.h"

#include "os/file.h"
#include "site/lookup.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

struct span site_trace_cause_sentence(enum site_cause cause)
{
    static const struct span sentences[] = {
#define CAUSE(name, sentence) SPAN(sentence),
#include "site/cause.def"
#undef CAUSE
    };
    return sentences[cause];
}

void site_trace_begin(struct site *site, struct site_trace *trace)
{
    site->trace = trace;
}

static enum site_cause cause_of_error(int error)
{
    switch (-error) {
    case ENOENT:
    case ENOTDIR:
        return SITE_CAUSE_NOTHING;
    case EACCES:
    case EPERM:
        return SITE_CAUSE_DENIED;
    case EXDEV:
        return SITE_CAUSE_OUTSIDE;
    case ELOOP:
        return SITE_CAUSE_LOOP;
    default:
        return SITE_CAUSE_SPECIAL;
    }
}

enum site_cause site_trace_cause_of(enum site_result result, int error)
{
    switch (result) {
    case SITE_FILE:
        return SITE_CAUSE_FILE;
    case SITE_REDIRECT:
    case SITE_LISTING:
        return SITE_CAUSE_DIRECTORY;
    case SITE_ABSENT:
        return error == -ENOENT || error == -ENOTDIR ? SITE_CAUSE_NOTHING : SITE_CAUSE_NAME;
    case SITE_FORBIDDEN:
        return error < 0 ? cause_of_error(error) : SITE_CAUSE_SPECIAL;
    case SITE_NOT_IN_MEMORY:
    case SITE_BUSY:
        return SITE_CAUSE_BUSY;
    case SITE_BROKEN:
        break;
    }
    return SITE_CAUSE_BROKEN;
}

/* Records the target if the path up to `end` is a symbolic link. */
static void read_link(int root_fd, struct site_step *step, size_t start, size_t end)
{
    char parent[PATH_MAX], name[PATH_MAX];
    struct stat status;

    (void)snprintf(parent, sizeof(parent), "%.*s", (int)start, step->path);
    (void)snprintf(name, sizeof(name), "%.*s", (int)(end - start), step->path + start);
    int fd = os_file_peek_beneath(root_fd, start > 0 ? parent : ".");
    if (fd < 0)
        return;
    if (os_file_stat_at(fd, name, &status) == 0 && S_ISLNK(status.st_mode) &&
        os_file_read_link(fd, name, step->target, sizeof(step->target)) < 0)
        step->target[0] = '\0';
    os_file_close(fd);
}

/* Follows the path to where it ends, and records the last link on the way. */
static void follow_path(int root_fd, struct site_step *step)
{
    char prefix[PATH_MAX];
    const size_t len = strlen(step->path);

    step->end = len;
    for (size_t start = 0; start < len;) {
        size_t end = start + strcspn(step->path + start, "/");
        if (end == start) {
            start++;
            continue;
        }
        (void)snprintf(prefix, sizeof(prefix), "%.*s", (int)end, step->path);
        int fd = os_file_peek_beneath(root_fd, prefix);
        read_link(root_fd, step, start, end);
        if (fd < 0) { /* a folder without search permission denies its contents */
            step->end = fd == -EACCES && start > 0 ? start - 1 : end;
            return;
        }
        os_file_close(fd);
        start = end + 1;
    }
}

static struct site_step *record_step(struct site_trace *trace, enum site_purpose purpose,
                                     enum site_cause cause)
{
    if (trace->count == SITE_STEPS_MAX) {
        trace->more++;
        return NULL;
    }
    struct site_step *step = &trace->step[trace->count++];
    step->purpose = purpose;
    step->cause = cause;
    step->error = 0;
    step->size = 0;
    step->modified_ns = 0;
    step->version = 0;
    step->target[0] = '\0';
    return step;
}

void site_trace_lookup(const struct site *site, int root_fd, enum site_purpose purpose,
                       const char *path, enum site_cause cause, int error,
                       const struct site_identity *identity)
{
    struct site_step *step = record_step(site->trace, purpose, cause);
    if (step == NULL)
        return;
    (void)snprintf(step->path, sizeof(step->path), "%s", path);
    step->error = error;
    if (cause == SITE_CAUSE_FILE) {
        step->size = identity->size;
        step->modified_ns = identity->modified_ns;
        step->version = site_lookup_version(site, identity);
    }
    follow_path(root_fd, step);
}

void site_trace_judge(const struct site *site, enum site_cause cause)
{
    struct site_trace *trace = site->trace;
    if (trace->count > 0 && trace->more == 0)
        trace->step[trace->count - 1].cause = cause;
}

void site_trace_refuse(const struct site *site, struct span path, struct span name,
                       enum site_cause cause)
{
    struct site_step *step = record_step(site->trace, SITE_LOOKUP_PATH, cause);
    if (step == NULL)
        return;
    (void)snprintf(step->path, sizeof(step->path), "%.*s", (int)path.len - 1, path.at + 1);
    step->end = (size_t)(name.at + name.len - (path.at + 1));
}
