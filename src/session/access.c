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

/* What the memory knows of a check. */
enum role {
    UNNOTED, /* nothing: no check follows it, or it is made */
    NOTED,   /* it has an attempt, and other checks may follow it */
    FOLLOWS, /* it has no attempt, and needs the result of another check */
};

/* A comparison of a password with a hash. */
struct check {
    struct task task;
    struct auth_memory *memory; /* held */
    struct auth_mark mark;
    uint64_t now_ns;
    uint8_t family;
    uint8_t address[16];
    uint8_t role; /* enum role */
    bool in_turn; /* its thread makes other checks, too */
    bool attempt; /* it is counted, and to be returned */
    bool known;   /* the hash is that of the user */
    enum session_access_verdict verdict;
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

static void return_attempt(struct check *check)
{
    if (check->attempt)
        auth_memory_return_attempt(check->memory, check->family, check->address);
    check->attempt = false;
}

/* The comparison is made, or never will be: no check waits for it, and it waits for none. */
static void leave_memory(struct check *check)
{
    if (check->role == NOTED)
        auth_memory_compare_ends(check->memory, &check->mark);
    else if (check->role == FOLLOWS)
        auth_memory_unfollow(check->memory);
    check->role = UNNOTED;
}

static enum session_access_verdict compare(struct check *check)
{
    if (check->role == NOTED)
        auth_memory_compare_begins(check->memory, &check->mark);
    const int same = auth_hash_compare(check->hash, check->password);
    const bool right = (same > 0) & check->known;
    if (right)
        auth_memory_add(check->memory, &check->mark, check->now_ns);
    leave_memory(check);
    if (right || same < 0)
        return_attempt(check);
    check->attempt = false;
    return same < 0 ? SESSION_ACCESS_BUSY : right ? SESSION_ACCESS_RIGHT : SESSION_ACCESS_WRONG;
}

static void run_check(struct task *task)
{
    struct check *check = check_of(task);
    if (check->role == FOLLOWS)
        auth_memory_await(check->memory, &check->mark, check->now_ns, check->in_turn);
    if (auth_memory_knows(check->memory, &check->mark, check->now_ns)) /* since it was made */
        check->verdict = SESSION_ACCESS_REMEMBERED;
    else
        check->verdict = check->role == FOLLOWS ? SESSION_ACCESS_LIMITED : compare(check);
}

static void free_check(struct check *check)
{
    return_attempt(check); /* it was not used */
    leave_memory(check);
    auth_memory_release(check->memory);
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
    const struct session_peer *peer = session_answer_client(x);
    struct auth_memory *memory = x->thread->shared->guard->memory;
    if (!check || !auth_memory_mark(memory, access->number, basic->user, SPAN(""), &choice)) {
        free(check);
        return NULL;
    }
    check->task = (struct task){
        .run = run_check,
        .drop = drop_check,
        .home = x->thread->home,
        .owner = x->session,
    };
    auth_memory_hold(memory);
    check->memory = memory;
    check->mark = *mark;
    check->now_ns = x->thread->now_ns;
    check->family = peer->family;
    memcpy(check->address, peer->address, sizeof(check->address));
    check->in_turn = x->thread->home != NULL;
    const char *hash = auth_file_find(access->users, basic->user, choice.tag[0], &check->known);
    (void)snprintf(check->hash, sizeof(check->hash), "%s", hash);
    (void)snprintf(check->password, sizeof(check->password), "%s", basic->password);
    return check;
}

/* The comparison is made. */
static enum session_access_verdict judge_check(const struct session_exchange *x,
                                               const struct check *check)
{
    if (check->verdict == SESSION_ACCESS_RIGHT || check->verdict == SESSION_ACCESS_WRONG)
        count(x, STATS_passwords_compared);
    return check->verdict;
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

/* False: the address has no attempt, and no other request has one for the same credentials. */
static bool has_role(struct check *check)
{
    struct auth_memory *memory = check->memory;
    check->attempt = auth_memory_take_attempt(memory, check->family, check->address, check->now_ns);
    if (check->attempt && auth_memory_compare_later(memory, &check->mark, check->now_ns))
        check->role = NOTED;
    if (!check->attempt && auth_memory_follow(memory, &check->mark, check->now_ns))
        check->role = FOLLOWS;
    return check->attempt || check->role == FOLLOWS;
}

static enum session_access_verdict decide_basic(struct session_exchange *x,
                                                const struct auth_basic *basic)
{
    struct auth_memory *memory = x->thread->shared->guard->memory;
    const uint64_t now_ns = x->thread->now_ns;
    struct auth_mark mark;
    if (!auth_memory_mark(memory, x->access->number, basic->user, span_text(basic->password),
                          &mark))
        return SESSION_ACCESS_BUSY;
    if (auth_memory_knows(memory, &mark, now_ns))
        return SESSION_ACCESS_REMEMBERED;
    struct check *check = new_check(x, basic, &mark);
    if (!check)
        return SESSION_ACCESS_BUSY;
    if (has_role(check))
        return begin_check(x, check);
    free_check(check);
    return auth_memory_knows(memory, &mark, now_ns) ? SESSION_ACCESS_REMEMBERED
                                                    : SESSION_ACCESS_LIMITED;
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
