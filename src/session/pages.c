/* SPDX-License-Identifier: MIT */
#include "session/pages.h"

#include "session/http2.h"
#include "session/line.h"
#include "session/pending.h"
#include "session/tally.h"
#include "session/thread.h"
#include "site/pages.h"
#include "task/task.h"

#include <stdlib.h>

enum {
    WINDOW_BYTES = 2 * 1024 * 1024, /* judged, or read by a task, at a time */
    KNOWN_MAX = 64                  /* ranges that a thread remembers; a power of two */
};

#define KNOWN_NS UINT64_C(500000000)
#define RETRY_NS UINT64_C(50000000) /* until a task that found no place is submitted again */

/* ---- what a thread knows ---- */

/* The pages of [at, end) were in memory. The file may be freed, so its address is a number. */
struct known_range {
    uintptr_t file;
    uint64_t at, end, until_ns;
};

struct session_pages_known {
    struct known_range range[KNOWN_MAX];
};

void session_pages_forget(struct session_pages_known *known)
{
    free(known);
}

static struct known_range *find_known(struct session_thread *thread, const struct site_file *file,
                                      uint64_t at)
{
    if (!thread->pages_known)
        thread->pages_known = calloc(1, sizeof(*thread->pages_known));
    if (!thread->pages_known)
        return NULL;
    const uint64_t key = ((uintptr_t)file >> 4) + at / WINDOW_BYTES;
    return &thread->pages_known->range[key % KNOWN_MAX];
}

static void remember(struct session_thread *thread, const struct site_file *file, uint64_t at,
                     uint64_t end)
{
    struct known_range *known = find_known(thread, file, at);
    if (known)
        *known = (struct known_range){ (uintptr_t)file, at, end, thread->now_ns + KNOWN_NS };
}

/* ---- judging ---- */

/* Windows end at fixed places, so that answers that begin at different bytes share what is known.
 * The last window includes the tail. */
static uint64_t window_end(uint64_t at, uint64_t end)
{
    const uint64_t edge = (at / WINDOW_BYTES + 1) * WINDOW_BYTES;
    return end <= edge + SESSION_TAIL_BYTES ? end : edge;
}

/* Whether the last SESSION_TAIL_BYTES before `end` are all known, or none of them. */
static bool has_whole_tail(const struct known_range *known, uint64_t end)
{
    return end <= known->end || end > known->end + SESSION_TAIL_BYTES;
}

/* Whether bytes [at, end) can be read without waiting. *ret_end becomes the end of those that are
 * known to be ready: it may be before `end`. */
static bool probe(struct session_thread *thread, const struct site_file *file, uint64_t at,
                  uint64_t end, uint64_t *ret_end)
{
    *ret_end = end;
    if (!thread->home || !thread->shared->tasks)
        return true;
    const struct known_range *known = find_known(thread, file, at);
    if (known && thread->now_ns < known->until_ns && known->file == (uintptr_t)file &&
        known->at <= at && at < known->end && has_whole_tail(known, end)) {
        *ret_end = known->end < end ? known->end : end;
        return true;
    }
    *ret_end = window_end(at, end);
    if (!site_pages_in_memory(site_file_fd(file), at, *ret_end))
        return false;
    remember(thread, file, at, *ret_end);
    return true;
}

bool session_pages_copy(struct session_thread *thread, const struct site_file *file, uint64_t at,
                        size_t len, char *to)
{
    uint64_t ready_end;
    if (!file->open) {
        memcpy(to, site_file_body(file) + at, len);
        return true;
    }
    return probe(thread, file, at, at + len, &ready_end) && ready_end == at + len &&
           site_file_read(file, to, len, at) == 0 && site_file_unchanged(file);
}

uint64_t session_pages_ready(struct session_thread *thread, struct session_answer *answer)
{
    const uint64_t at = answer->file_at;
    if (__builtin_expect(answer->pages != NULL, 0))
        return 0;
    if (at >= answer->ready_end &&
        !probe(thread, answer->file, at, answer->file_end, &answer->ready_end)) {
        answer->ready_end = at;
        return 0;
    }
    return (answer->ready_end < answer->file_end ? answer->ready_end : answer->file_end) - at;
}

/* ---- reading ---- */

/* The task has a descriptor of its own: the answer may end before it. */
struct session_pages {
    struct task task; /* first; the session is its owner */
    struct session_thread *thread;
    uint64_t disk; /* of the file */
    int fd;
    uint64_t at, end;
    uint64_t since_ns; /* the answer waits */
    uint64_t limit_ns; /* then the answer waits no longer */
    uint64_t retry_ns; /* the queue was full: when it is submitted again; 0: it is submitted */
};

static void read_pages(struct task *task)
{
    const struct session_pages *pages = (const struct session_pages *)task;
    site_pages_read(pages->fd, pages->at, pages->end);
}

static void free_pages(struct task *task)
{
    struct session_pages *pages = (struct session_pages *)task;
    site_pages_close(pages->fd);
    free(pages);
}

static void submit_pages(struct session_pages *pages, uint64_t now_ns)
{
    const bool taken =
        task_submit(pages->thread->shared->tasks, TASK_FETCHES, pages->disk, &pages->task);
    pages->retry_ns = taken ? 0 : now_ns + RETRY_NS;
}

/* Without memory or a descriptor, the loop reads, and waits. */
void session_pages_wait(struct session *s, struct session_answer *answer, uint64_t now_ns)
{
    if (answer->pages)
        return;
    const uint64_t at = answer->file_at;
    struct session_pages *pages = malloc(sizeof(*pages));
    const int fd = pages ? site_pages_open(site_file_fd(answer->file)) : -1;
    if (fd < 0) {
        free(pages);
        answer->ready_end = answer->file_end;
        return;
    }
    *pages = (struct session_pages){
        .task = { .run = read_pages, .drop = free_pages, .home = s->thread->home, .owner = s },
        .thread = s->thread,
        .disk = site_entry_disk(answer->entry),
        .fd = fd,
        .at = at,
        .end = window_end(at, answer->file_end),
        .since_ns = now_ns,
        .limit_ns = now_ns + SESSION_PENDING_NS,
    };
    answer->pages = pages;
    session_tally_wait_begins(s->thread);
    s->pending_count++;
    if (s->http2)
        s->http2->fetching++;
    submit_pages(pages, now_ns);
}

bool session_pages_is_over(struct session *s, struct session_answer *answer, uint64_t now_ns,
                           bool *ret_late)
{
    struct session_pages *pages = answer->pages;
    *ret_late = false;
    if (pages->retry_ns != 0 && now_ns >= pages->retry_ns)
        submit_pages(pages, now_ns);
    if (pages->retry_ns == 0 && task_is_done(s->thread->shared->tasks, &pages->task)) {
        answer->ready_end = pages->end;
        remember(s->thread, answer->file, pages->at, pages->end);
        session_pages_drop(answer);
        return true;
    }
    *ret_late = now_ns >= pages->limit_ns;
    return *ret_late;
}

uint64_t session_pages_due_ns(const struct session_answer *answer)
{
    const struct session_pages *pages = answer->pages;
    return pages->retry_ns != 0 && pages->retry_ns < pages->limit_ns ? pages->retry_ns
                                                                     : pages->limit_ns;
}

void session_pages_drop(struct session_answer *answer)
{
    struct session_pages *pages = answer->pages;
    if (__builtin_expect(!pages, 1))
        return;
    struct session *s = pages->task.owner;
    const uint64_t waited_ns = session_tally_wait_ends(s->thread, pages->since_ns);
    answer->pages = NULL;
    answer->waited_ns += waited_ns;
    if (answer->line)
        session_line_add_wait(answer->line, waited_ns);
    s->pending_count--;
    if (s->http2)
        s->http2->fetching--;
    if (pages->retry_ns != 0)
        free_pages(&pages->task);
    else
        task_cancel(pages->thread->shared->tasks, &pages->task);
}
