/* SPDX-License-Identifier: MIT
 *
 * Calls that the table allows without a check cost next to nothing. Since Linux 5.11 the kernel
 * keeps a bitmap of the numbers that a filter always allows, and does not run the filter for them.
 * So the calls of every request have no check. For older kernels these calls come first in the
 * filter, in the order of the table.
 */
#include "server/calls.h"

#include "log/error.h"
#include "model/model.h"
#include "stats/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

enum check {
    CHECK_NOTHING,        /* allowed with any arguments */
    CHECK_READ_ONLY,      /* openat: for reading alone */
    CHECK_NO_EXEC,        /* memory that cannot be executed */
    CHECK_THREAD,         /* clone: a thread of this process */
    CHECK_PROCESS,        /* clone: a process, in the same namespaces */
    CHECK_STRANGER,       /* kill: any process but the master */
    CHECK_SELF,           /* tgkill: a thread of this process */
    CHECK_TERMINAL,       /* ioctl: whether it is a terminal */
    CHECK_DEATH_SIGNAL,   /* prctl: PR_SET_PDEATHSIG */
    CHECK_OWN_NICE,       /* setpriority: of the calling thread */
    CHECK_OWN_LIMIT,      /* prlimit64: of this process */
    CHECK_CONNECTED,      /* sendto: without MSG_FASTOPEN, which connects */
    CHECK_CONNECTED_TOO,  /* sendmsg: likewise */
    CHECK_NO_INPUT_END,   /* shutdown: SHUT_WR, which leaves a listener as it is */
    CHECK_OF_CONNECTION,  /* setsockopt: options that a loop sets */
    CHECK_WAITING_TIME,   /* setsockopt: how long a call may block */
    CHECK_OWN_DESCRIPTOR, /* fcntl: nothing that another holder of the file sees */
    CHECK_MAKE_BLOCKING,  /* fcntl: F_SETFL of a connection */
    CHECK_NO_ERASURE,     /* fallocate: allocates, and punches no hole */
    CHECK_AT_THE_END,     /* pwritev2: a file that is opened to append grows, as with write */
    CHECK_HIDDEN          /* ENOSYS, and not counted: the C library tries it first */
};

struct call {
    int number; /* negative: this architecture does not have it */
    unsigned groups;
    enum check check;
};

static const struct call calls[] = {
#define CALL(name, groups, check, reason) { SCMP_SYS(name), groups, CHECK_##check },
#include "server/syscalls.def"
#undef CALL
};

unsigned server_calls_of_model(const struct model *model, bool ring)
{
    unsigned groups = CALLS_ALL | CALLS_SERVING;
    groups |= model->accepts == STATS_ACCEPTS_MASTER ? CALLS_PASSED : CALLS_ACCEPT;
    groups |= ring ? CALLS_RING : CALLS_READINESS;
    groups |= model->serves != STATS_SERVES_LOOP ? CALLS_BLOCKING : CALLS_LOOPS;
    /* Every worker that keeps a cache may start a thread for compression. */
    groups |= model->serves == STATS_SERVES_PROCESS ? CALLS_PROCESSES : CALLS_THREADS;
    return groups;
}

/* ---- refused calls ---- */

enum { NUMBERS_MAX = 1024 };

static const struct stats_writer *counts;
static _Atomic uint64_t logged[NUMBERS_MAX / 64]; /* a bit for each number */

static bool is_first_of_number(int number)
{
    if (number < 0 || number >= NUMBERS_MAX)
        return false;
    uint64_t bit = UINT64_C(1) << (number % 64);
    return (atomic_fetch_or(&logged[number / 64], bit) & bit) == 0;
}

/* Several threads may be here at once, and they share the counter. */
static void note_refusal(int number)
{
    if (counts && counts->block)
        atomic_fetch_add_explicit(&counts->block->counter[STATS_calls_refused], 1,
                                  memory_order_relaxed);
    if (is_first_of_number(number))
        log_error(LOG_ERROR,
                  "the sandbox refused system call number %d of process %d; weir does not make it, "
                  "so this is a fault of weir or of a library, or an attack",
                  number, (int)getpid());
}

#if defined(__x86_64__) || defined(__aarch64__)
#define COUNTED 1

static void set_result(ucontext_t *context, long result)
{
#ifdef __x86_64__
    context->uc_mcontext.gregs[REG_RAX] = result;
#else
    context->uc_mcontext.regs[0] = (unsigned long)result;
#endif
}

/* The signal comes from the call itself, so the thread is in no other code of weir. The call may
 * have been made within malloc or with a lock of the C library; logging needs neither. */
static void refuse_call(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    int saved_errno = errno;
    note_refusal(info->si_syscall);
    set_result(context, -ENOSYS);
    errno = saved_errno;
}

static int catch_refusals(void)
{
    struct sigaction action = { .sa_sigaction = refuse_call, .sa_flags = SA_SIGINFO | SA_NODEFER };
    sigemptyset(&action.sa_mask);
    return sigaction(SIGSYS, &action, NULL) < 0 ? -errno : 0;
}
#else
#define COUNTED 0 /* where the result of a call is stored is not known here */

static int catch_refusals(void)
{
    (void)note_refusal;
    return 0;
}
#endif

/* ---- the filter ---- */

/* What an argument, or two of them, must be. */
struct permission {
    enum check check;
    unsigned count; /* of `argument`; they hold together */
    struct scmp_arg_cmp argument[2];
};

#define EQUAL(number, value) \
    { \
        number, SCMP_CMP_EQ, (scmp_datum_t)(value), 0 \
    }
#define MASKED(number, mask, value) \
    { \
        number, SCMP_CMP_MASKED_EQ, mask, value \
    }
#define OPTION(level, option) \
    { \
        EQUAL(1, level), EQUAL(2, option) \
    }
#define PROCESS_FLAGS (0xffULL | CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID)

/* A call is allowed if one of the permissions of its check holds. Listeners, logs and channels are
 * shared with other processes, and outlive this one. So nothing here changes them for the others:
 * no mode, no option that cannot be undone, no byte that was written before. */
static const struct permission permissions[] = {
    { CHECK_READ_ONLY, 1, { MASKED(2, O_ACCMODE | O_CREAT | O_TRUNC, 0) } },
    { CHECK_NO_EXEC, 1, { MASKED(2, PROT_EXEC, 0) } },
    { CHECK_THREAD, 1, { MASKED(0, CLONE_THREAD, CLONE_THREAD) } },
    { CHECK_PROCESS, 1, { MASKED(0, ~PROCESS_FLAGS, 0) } },
    { CHECK_TERMINAL, 1, { EQUAL(1, TCGETS) } },
    { CHECK_DEATH_SIGNAL, 1, { EQUAL(0, PR_SET_PDEATHSIG) } },
    { CHECK_OWN_NICE, 2, { EQUAL(0, PRIO_PROCESS), EQUAL(1, 0) } },
    { CHECK_OWN_LIMIT, 1, { EQUAL(0, 0) } },
    { CHECK_CONNECTED, 1, { MASKED(3, MSG_FASTOPEN, 0) } },
    { CHECK_CONNECTED_TOO, 1, { MASKED(2, MSG_FASTOPEN, 0) } },
    { CHECK_NO_INPUT_END, 1, { EQUAL(1, SHUT_WR) } },
    { CHECK_OF_CONNECTION, 2, OPTION(SOL_SOCKET, SO_LINGER) },
    { CHECK_OF_CONNECTION, 2, OPTION(IPPROTO_TCP, TCP_NOTSENT_LOWAT) },
    { CHECK_WAITING_TIME, 2, OPTION(SOL_SOCKET, SO_RCVTIMEO) },
    { CHECK_WAITING_TIME, 2, OPTION(SOL_SOCKET, SO_SNDTIMEO) },
    { CHECK_OWN_DESCRIPTOR, 1, { EQUAL(1, F_DUPFD) } },
    { CHECK_OWN_DESCRIPTOR, 1, { EQUAL(1, F_DUPFD_CLOEXEC) } },
    { CHECK_OWN_DESCRIPTOR, 1, { EQUAL(1, F_GETFD) } },
    { CHECK_OWN_DESCRIPTOR, 1, { EQUAL(1, F_SETFD) } },
    { CHECK_OWN_DESCRIPTOR, 1, { EQUAL(1, F_GETFL) } },
    { CHECK_MAKE_BLOCKING, 2, { EQUAL(1, F_SETFL), EQUAL(2, O_RDWR) } },
    { CHECK_NO_ERASURE, 1, { EQUAL(1, 0) } },
    { CHECK_AT_THE_END, 1, { EQUAL(5, RWF_NOWAIT) } },
};

static int permit(scmp_filter_ctx filter, const struct call *call)
{
    int rc = 0;
    for (size_t i = 0; i < sizeof(permissions) / sizeof(permissions[0]) && rc == 0; i++)
        if (permissions[i].check == call->check)
            rc = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, call->number, permissions[i].count,
                                        permissions[i].argument);
    return rc;
}

static int add_call(scmp_filter_ctx filter, const struct call *call, pid_t master)
{
    const uint32_t yes = SCMP_ACT_ALLOW;
    if (call->check == CHECK_NOTHING)
        return seccomp_rule_add(filter, yes, call->number, 0);
    if (call->check == CHECK_STRANGER)
        return seccomp_rule_add(filter, yes, call->number, 1,
                                SCMP_A0(SCMP_CMP_NE, (scmp_datum_t)master, 0));
    if (call->check == CHECK_SELF)
        return seccomp_rule_add(filter, yes, call->number, 1,
                                SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid(), 0));
    if (call->check == CHECK_HIDDEN)
        return COUNTED ? seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), call->number, 0) : 0;
    return permit(filter, call);
}

static int add_calls(scmp_filter_ctx filter, unsigned groups, pid_t master)
{
    enum { COUNT = sizeof(calls) / sizeof(calls[0]) };
    _Static_assert(COUNT <= UINT8_MAX, "each call has a priority of its own");
    int rc = 0;
    for (size_t i = 0; i < COUNT && rc == 0; i++) {
        if (calls[i].number < 0 || (calls[i].groups & groups) == 0)
            continue;
        rc = add_call(filter, &calls[i], master);
        if (rc == 0)
            rc = seccomp_syscall_priority(filter, calls[i].number, (uint8_t)(UINT8_MAX - i));
    }
    return rc;
}

/* From here on, a number means the same call on every architecture, up to those of x32. */
enum { NEWER_FIRST = 451, NEWER_LAST = 511 };

/* A later C library tries calls that this table does not know (syscalls.def). */
static int hide_newer_calls(scmp_filter_ctx filter)
{
    int rc = 0;
    for (int number = NEWER_FIRST; number <= NEWER_LAST && rc == 0; number++)
        rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), number, 0);
    return rc;
}

int server_calls_restrict(unsigned groups, pid_t master, const struct stats_writer *stats)
{
    const uint32_t no = COUNTED ? SCMP_ACT_TRAP : SCMP_ACT_ERRNO(ENOSYS);
    counts = stats;
    int rc = catch_refusals();
    if (rc < 0)
        return rc;
    scmp_filter_ctx filter = seccomp_init(no);
    if (!filter)
        return -ENOMEM;
    rc = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, no);
    if (rc == 0)
        rc = seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, 0); /* the process has it already */
    if (rc == 0)
        rc = add_calls(filter, groups, master);
    if (rc == 0 && COUNTED) /* else the default is the same */
        rc = hide_newer_calls(filter);
    if (rc == 0)
        rc = seccomp_load(filter);
    seccomp_release(filter);
    return rc;
}

/* The query needs Linux 4.14. Valgrind does not know the call and returns ENOSYS. A filter would
 * refuse calls that Valgrind makes for itself, so nothing but this call decides. */
int server_calls_possible(void)
{
    const uint32_t action = SECCOMP_RET_TRAP;
    long rc = syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action);
    return rc < 0 ? -errno : 0;
}
