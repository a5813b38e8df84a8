/* SPDX-License-Identifier: MIT */
#include "server/look.h"

#include "base/duration.h"
#include "log/error.h"
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { EVERY_MS = 400, HUNG_MS = 5000, FAILED_MS = 10000 };
enum { UNASKED_MAX = 100 }; /* errands after which a name is forgotten */

struct server_look_name {
    struct server_look_name *next;
    struct server_identity found;
    unsigned index;   /* in the errand; UINT_MAX: it has no result to come */
    unsigned unasked; /* errands since the last question for it */
    bool is_known;    /* `found` is a result that no question has taken */
    char text[];
};

/* What a process finds. Shorter than PIPE_BUF, so it arrives whole. */
struct result {
    unsigned index;
    struct server_identity identity;
};
_Static_assert(sizeof(struct result) <= PIPE_BUF, "a result is written at once");

static struct server_identity identity_of(const struct stat *status)
{
    return (struct server_identity){ status->st_dev,  status->st_ino,           status->st_size,
                                     status->st_mtim, S_ISDIR(status->st_mode), false };
}

struct server_identity server_look_now(const char *name)
{
    struct server_identity identity = { 0 };
    struct stat status;
    const int fd = open(name, O_PATH | O_CLOEXEC);
    if (fd >= 0 && os_file_stat(fd, &status) == 0) {
        identity = identity_of(&status);
        identity.is_remote = os_file_medium(fd) == OS_FILE_REMOTE;
    }
    os_file_close(fd);
    return identity;
}

/* In the process of the errand. */
static void look_up_all(void *context, int fd)
{
    const struct server_look *look = context;
    for (const struct server_look_name *name = look->names; name; name = name->next) {
        struct result result = { .index = name->index };
        if (name->index == UINT_MAX)
            continue;
        result.identity = server_look_now(name->text);
        if (write(fd, &result, sizeof(result)) < 0)
            return;
    }
}

/* Whether no other machine can have changed what the kernel remembers. The number of a folder does
 * not change. A filesystem on a block device is local. */
static bool is_exact(const struct stat *status, const struct server_identity *before)
{
    return S_ISDIR(status->st_mode) || major(status->st_dev) != 0 ||
           (status->st_dev == before->device && !before->is_remote);
}

static struct server_look_name *name_of(struct server_look *look, const char *text)
{
    for (struct server_look_name *name = look->names; name; name = name->next)
        if (strcmp(name->text, text) == 0)
            return name;
    const size_t size = strlen(text) + 1;
    struct server_look_name *name = malloc(sizeof(*name) + size);
    if (!name)
        return NULL;
    *name = (struct server_look_name){ .next = look->names, .index = UINT_MAX };
    memcpy(name->text, text, size);
    look->names = name;
    return name;
}

bool server_look_at(struct server_look *look, const char *text,
                    const struct server_identity *before, struct server_identity *ret_identity)
{
    struct stat status;
    const int rc = os_file_stat_remembered(text, &status);
    if (rc == 0 && is_exact(&status, before)) {
        *ret_identity = identity_of(&status);
        return true;
    }
    if (rc < 0 && rc != -EINPROGRESS) {
        *ret_identity = (struct server_identity){ 0 };
        return true;
    }
    struct server_look_name *name = name_of(look, text);
    if (!name)
        return false;
    const bool known = name->is_known;
    if (known)
        *ret_identity = name->found;
    name->is_known = false;
    name->unasked = known ? 1 : 0; /* an answer of now would be old at the next question */
    return known;
}

static struct server_look_name *name_at(const struct server_look *look, unsigned index)
{
    struct server_look_name *name = look->names;
    while (name && name->index != index)
        name = name->next;
    return name;
}

static void report_return(struct server_look *look)
{
    if (look->hung)
        log_error(LOG_INFO, "the disk of %s answers again", look->hung->text);
    look->hung = NULL;
}

static void take_results(struct server_look *look)
{
    struct result result;
    int rc;
    while ((rc = server_errand_read(&look->errand, &result, sizeof(result))) > 0) {
        struct server_look_name *name = name_at(look, result.index);
        CHECK(name);
        name->found = result.identity;
        name->is_known = true;
        name->index = UINT_MAX;
    }
    if (rc < 0)
        report_return(look);
}

/* Names are looked up in the order of the list: the first one without a result is the cause. */
static void report_hung(struct server_look *look)
{
    const struct server_look_name *name = look->names;
    while (name && name->index == UINT_MAX)
        name = name->next;
    look->hung = name;
    if (name)
        log_error(LOG_ERROR,
                  "the disk of %s does not answer: changes are not seen there until it does",
                  name->text);
}

/* Chooses the names of the next errand, and drops those without a question for a while. */
static unsigned choose_names(struct server_look *look)
{
    unsigned count = 0;
    struct server_look_name **link = &look->names;
    while (*link) {
        struct server_look_name *name = *link;
        name->index = name->unasked == 0 ? count++ : UINT_MAX;
        if (name->unasked++ < UNASKED_MAX) {
            link = &name->next;
        } else {
            *link = name->next;
            free(name);
        }
    }
    return count;
}

static void begin_errand(struct server_look *look, uint64_t now_ns)
{
    if (choose_names(look) == 0)
        return;
    const int rc = server_errand_begin(&look->errand, look_up_all, look);
    look->begun_ns = rc < 0 ? now_ns + FAILED_MS * DURATION_MS : now_ns;
    if (rc < 0)
        log_error(LOG_ERROR, "cannot start a process that looks at the disk: %s", strerror(-rc));
}

void server_look_tick(struct server_look *look, uint64_t now_ns)
{
    if (look->errand.fd >= 0)
        take_results(look);
    if (look->errand.fd < 0 && look->errand.pid == 0 &&
        now_ns >= look->begun_ns + EVERY_MS * DURATION_MS)
        begin_errand(look, now_ns);
    else if (look->errand.fd >= 0 && !look->hung &&
             now_ns >= look->begun_ns + HUNG_MS * DURATION_MS)
        report_hung(look);
}

uint64_t server_look_due_ns(const struct server_look *look, uint64_t now_ns, uint64_t due_ns)
{
    const uint64_t its = now_ns + EVERY_MS * DURATION_MS;
    return look->errand.fd >= 0 && its < due_ns ? its : due_ns;
}

void server_look_forget(struct server_look *look)
{
    while (look->names) {
        struct server_look_name *next = look->names->next;
        free(look->names);
        look->names = next;
    }
    look->hung = NULL;
    server_errand_give_up(&look->errand);
}
