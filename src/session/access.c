/* SPDX-License-Identifier: MIT
 *
 * A comparison sees only its own copies, because it may end after the session, and after the lists
 * of users. All copies are cleared.
 */
#include "session/access.h"

#include "auth/basic.h"
#include "session/head.h"
#include "session/pending.h"
#include "session/trace.h"

#include <stdio.h>
#include <stdlib.h>

/* A comparison of a password with a hash. */
struct check {
    struct task task;
    struct auth_mark mark;
    bool known; /* the hash is that of the user */
    int same;   /* as auth_hash_compare */
    char password[AUTH_PASSWORD_MAX + 1];
    char hash[AUTH_HASH_MAX];
};

static void count(const struct session_exchange *x, enum stats_counter counter)
{
    stats_writer_add(&x->thread->stats, counter, 1);
}

/* ---- the comparison ---- */

static struct check *check_of(struct task *task)
{
    return (struct check *)task; /* the task is its first member */
}

static void run_check(struct task *task)
{
    struct check *check = check_of(task);
    check->same = auth_hash_compare(check->hash, check->password);
}

static void free_check(struct check *check)
{
    explicit_bzero(check, sizeof(*check));
    free(check);
}

static void drop_check(struct task *task)
{
    free_check(check_of(task));
}

static struct check *new_check(const struct session_exchange *x, const struct auth_basic *basic,
                               const struct auth_mark *mark)
{
    struct auth_mark choice; /* depends on the user alone */
    struct check *check = calloc(1, sizeof(*check));
    const struct session_access *access = x->access;
    if (!check || !auth_memory_mark(x->thread->shared->guard->memory, access->number, basic->user,
                                    SPAN(""), &choice)) {
        free(check);
        return NULL;
    }
    check->task = (struct task){
        .run = run_check,
        .drop = drop_check,
        .home = x->thread->home,
        .owner = x->session,
    };
    check->mark = *mark;
    const char *hash = auth_file_find(access->users, basic->user, choice.tag[0], &check->known);
    (void)snprintf(check->hash, sizeof(check->hash), "%s", hash);
    (void)snprintf(check->password, sizeof(check->password), "%s", basic->password);
    return check;
}

/* The comparison is made. */
static enum session_access_verdict judge_check(const struct session_exchange *x,
                                               const struct check *check)
{
    const struct session_peer *peer = session_answer_client(x);
    struct auth_memory *memory = x->thread->shared->guard->memory;
    if (check->same < 0)
        return SESSION_ACCESS_BUSY;
    count(x, STATS_passwords_compared);
    if (!((check->same > 0) & check->known))
        return SESSION_ACCESS_WRONG;
    auth_memory_add(memory, &check->mark, x->thread->now_ns);
    auth_memory_return_attempt(memory, peer->family, peer->address);
    return SESSION_ACCESS_RIGHT;
}

/* This thread serves one connection. Other threads may reclaim entries of the cache meanwhile. */
static enum session_access_verdict check_here(struct session_exchange *x, struct check *check)
{
    struct session_guard *guard = x->thread->shared->guard;
    enum session_access_verdict verdict = SESSION_ACCESS_BUSY;
    if (atomic_fetch_add(&guard->checks, 1) < SESSION_CHECKS_MAX) {
        session_thread_rest(x->thread);
        run_check(&check->task);
        session_thread_resume(x->thread);
        verdict = judge_check(x, check);
    }
    atomic_fetch_sub(&guard->checks, 1);
    free_check(check);
    return verdict;
}

static enum session_access_verdict begin_check(struct session_exchange *x, struct check *check)
{
    if (!check)
        return SESSION_ACCESS_BUSY;
    if (!x->thread->home)
        return check_here(x, check);
    struct session_pending *pending = session_pending_begin(x);
    if (pending &&
        task_submit(x->thread->shared->tasks, TASK_COMPUTES, TASK_NO_DISK, &check->task)) {
        pending->task = &check->task;
        session_pending_wait(x, pending);
        return SESSION_ACCESS_PENDING;
    }
    if (pending)
        session_pending_undo(x, pending);
    free_check(check);
    return SESSION_ACCESS_BUSY;
}

/* ---- the decision ---- */

static enum session_access_verdict decide_basic(struct session_exchange *x,
                                                const struct auth_basic *basic)
{
    const struct session_peer *peer = session_answer_client(x);
    struct auth_memory *memory = x->thread->shared->guard->memory;
    const uint64_t now_ns = x->thread->now_ns;
    struct auth_mark mark;
    if (!auth_memory_mark(memory, x->access->number, basic->user, span_text(basic->password),
                          &mark))
        return SESSION_ACCESS_BUSY;
    if (auth_memory_knows(memory, &mark, now_ns))
        return SESSION_ACCESS_REMEMBERED;
    if (!auth_memory_take_attempt(memory, peer->family, peer->address, now_ns))
        return SESSION_ACCESS_LIMITED;
    return begin_check(x, new_check(x, basic, &mark));
}

static enum session_access_verdict decide_field(struct session_exchange *x)
{
    struct auth_basic basic;
    if (!http_request_has(x->request, HTTP_FIELD_AUTHORIZATION) ||
        http_request_repeats(x->request, HTTP_FIELD_AUTHORIZATION) ||
        !auth_basic_read(http_request_field(x->request, x->head, HTTP_FIELD_AUTHORIZATION), &basic))
        return SESSION_ACCESS_MISSING;
    const enum session_access_verdict verdict = decide_basic(x, &basic);
    auth_basic_forget(&basic);
    return verdict;
}

/* The request has waited for a comparison, or for the disk after its password was decided. */
static enum session_access_verdict decide_resumed(struct session_exchange *x)
{
    const struct session_pending *resumed = x->resumed;
    if (resumed->task)
        return judge_check(x, check_of(resumed->task));
    if (resumed->access == x->access && resumed->verdict == SESSION_ACCESS_REMEMBERED)
        return SESSION_ACCESS_RIGHT; /* it is counted already */
    if (resumed->access == x->access && resumed->verdict != SESSION_ACCESS_OPEN)
        return resumed->verdict;
    return resumed->late ? SESSION_ACCESS_BUSY : decide_field(x);
}

enum session_access_verdict session_access_decide(struct session_exchange *x)
{
    const enum session_access_verdict verdict = x->resumed ? decide_resumed(x) : decide_field(x);
    x->verdict = (uint8_t)verdict;
    if (verdict == SESSION_ACCESS_REMEMBERED)
        count(x, STATS_passwords_remembered);
    session_trace_note(x, access, verdict);
    return verdict;
}

/* ---- answers ---- */

void session_access_refuse(struct session_exchange *x, enum session_access_verdict verdict)
{
    switch (verdict) {
    case SESSION_ACCESS_OPEN:
    case SESSION_ACCESS_REMEMBERED:
    case SESSION_ACCESS_RIGHT:
    case SESSION_ACCESS_PENDING:
        CHECK(false);
        return;
    case SESSION_ACCESS_WRONG:
    case SESSION_ACCESS_MISSING:
        session_answer_page(x, HTTP_UNAUTHORIZED, x->access->challenge);
        if (verdict == SESSION_ACCESS_WRONG && !x->pending)
            count(x, STATS_passwords_wrong);
        return;
    case SESSION_ACCESS_LIMITED:
        session_answer_page(x, HTTP_TOO_MANY_REQUESTS, SPAN("Retry-After: 6\r\n"));
        if (!x->pending)
            count(x, STATS_passwords_limited);
        return;
    case SESSION_ACCESS_BUSY:
        count(x, STATS_passwords_refused);
        session_answer_status(x, HTTP_SERVICE_UNAVAILABLE);
        return;
    }
}

static_assert(AUTH_ATTEMPT_S == 6, "Retry-After gives the time until the next attempt");

struct span session_access_challenge(char out[SESSION_CHALLENGE_MAX], const char *realm)
{
    int len = snprintf(out, SESSION_CHALLENGE_MAX,
                       "WWW-Authenticate: Basic realm=\"%s\", charset=\"UTF-8\"\r\n", realm);
    CHECK(len > 0 && len < SESSION_CHALLENGE_MAX);
    return span_of(out, (size_t)len);
}
