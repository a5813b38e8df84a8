/* SPDX-License-Identifier: MIT
 *
 * A library to preload (LD_PRELOAD). It makes one call of the server fail: the i-th of its kind, in
 * any process or thread. It stands between the server and libc, and counts the calls of each kind
 * in calls.def.
 *
 * The plan and the counts are in a file that all processes of a server map. FAIL_PLAN names the
 * file, and struct plan is its content. A test writes the plan before the start, and reads the
 * counts at any time. Without a planned call the library only counts.
 *
 * The library forwards arguments as machine words. No call here has more than six, and 64-bit
 * calling conventions put six integers and pointers into registers.
 *
 * It does not see the calls that libc makes by itself, nor the operations of an io_uring ring.
 */
#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static_assert(sizeof(long) == sizeof(void *), "a word holds a pointer");

enum kind {
#define CALL(kind, failures) KIND_##kind,
#include "faults/calls.def"
#undef CALL
    KINDS
};

enum { FEW = -1, FEW_BYTES = 7 };

struct plan {
    uint64_t kind; /* 1: the first of calls.def, and so on; 0: no call fails */
    uint64_t call; /* the number of the call within its kind, from 1 */
    int64_t error; /* an errno, or FEW */
    _Atomic uint64_t failed;
    _Atomic uint64_t killed; /* children that died by a signal, as wait reports */
    _Atomic uint64_t count[KINDS];
};

static struct plan *plan;

/* The function of libc. The first call of any thread finds it. */
typedef long (*next_function)(long, long, long, long, long, long);

static next_function next_of(_Atomic(next_function) *known, const char *name)
{
    next_function next = atomic_load_explicit(known, memory_order_relaxed);
    if (!next) {
        next = (next_function)dlsym(RTLD_NEXT, name);
        if (!next)
            abort();
        atomic_store_explicit(known, next, memory_order_relaxed);
    }
    return next;
}

/* Counts a call. Returns 0, or the error with which the call ends. */
static int failure_of(enum kind kind)
{
    if (!plan)
        return 0;
    uint64_t call = atomic_fetch_add(&plan->count[kind], 1) + 1;
    if (plan->kind != (uint64_t)kind + 1 || plan->call != call)
        return 0;
    atomic_fetch_add(&plan->failed, 1);
    return (int)plan->error;
}

static long fail(int error)
{
    errno = error;
    return -1;
}

/* Defines a function in place of libc's `name`. `calls` is the expression that it returns. There
 * `next` is libc's function, and `error` is 0 or the planned error. */
#define INSTEAD_OF(name, kind, calls) \
    long fail_##name(long a, long b, long c, long d, long e, long f) __asm__(#name); \
    __attribute__((visibility("default"))) long fail_##name(long a, long b, long c, long d, \
                                                            long e, long f) \
    { \
        static _Atomic(next_function) known; \
        next_function next = next_of(&known, #name); \
        int error = failure_of(KIND_##kind); \
        return calls; \
    }

#define NEXT(length)        next(a, b, length, d, e, f)
#define PLAIN(name, kind)   INSTEAD_OF(name, kind, error ? fail(error) : NEXT(c))
#define POINTER(name, kind) INSTEAD_OF(name, kind, error ? (fail(error), 0) : NEXT(c))
#define CODE(name, kind)    INSTEAD_OF(name, kind, error ? error : NEXT(c))

#define RETURNED(name, kind) INSTEAD_OF(name, kind, error ? -error : NEXT(c))

/* The third argument is a length. */
#define COUNTED(name, kind) \
    INSTEAD_OF(name, kind, error == FEW ? NEXT((c + 1) / 2) : error ? fail(error) : NEXT(c))
#define COUNTED_INPUT(name, kind) \
    INSTEAD_OF(name, kind, \
               error == FEW ? NEXT(c < FEW_BYTES ? c : FEW_BYTES) \
               : error      ? fail(error) \
                            : NEXT(c))

CODE(posix_fallocate, allocate)
CODE(posix_fallocate64, allocate)
PLAIN(accept4, accept)
PLAIN(accept, accept)
PLAIN(bind, bind)
PLAIN(dup2, dup)
PLAIN(dup3, dup)
PLAIN(dup, dup)
PLAIN(epoll_create1, epoll_create)
PLAIN(epoll_wait, epoll_wait)
PLAIN(epoll_pwait, epoll_wait)
PLAIN(epoll_pwait2, epoll_wait)
PLAIN(eventfd, eventfd)
PLAIN(fork, fork)
PLAIN(getrandom, getrandom)
PLAIN(fchmod, mode)
PLAIN(ftruncate, truncate)
PLAIN(ftruncate64, truncate)
PLAIN(getpeername, getsockname)
PLAIN(getsockname, getsockname)
PLAIN(getsockopt, getsockname)
PLAIN(listen, listen)
PLAIN(madvise, mmap)
PLAIN(mprotect, mmap)
INSTEAD_OF(mmap, mmap, error ? (fail(error), (long)MAP_FAILED) : NEXT(c))
INSTEAD_OF(mmap64, mmap, error ? (fail(error), (long)MAP_FAILED) : NEXT(c))
PLAIN(memfd_create, open)
PLAIN(open, open)
PLAIN(open64, open)
PLAIN(__open_2, open)
PLAIN(__open64_2, open)
PLAIN(openat, open)
PLAIN(openat64, open)
PLAIN(__openat_2, open)
PLAIN(__openat64_2, open)
PLAIN(shm_open, open)
POINTER(sem_open, open)
POINTER(fopen, open)
POINTER(fopen64, open)
POINTER(opendir, open)
POINTER(fdopendir, memory)
POINTER(fdopen, memory)
PLAIN(pipe2, pipe)
PLAIN(poll, poll)
PLAIN(ppoll, poll)
PLAIN(__poll_chk, poll)
COUNTED(pread, pread)
COUNTED(pread64, pread)
COUNTED(__pread_chk, pread)
COUNTED(__pread64_chk, pread)
COUNTED(preadv2, pread)
COUNTED(preadv64v2, pread)
PLAIN(read, read)
PLAIN(__read_chk, read)
POINTER(readdir, readdir)
POINTER(readdir64, readdir)
COUNTED_INPUT(recv, recv)
COUNTED_INPUT(__recv_chk, recv)
PLAIN(mkdir, mkdir)
PLAIN(readlink, readlink)
PLAIN(recvmsg, recvmsg)
PLAIN(setrlimit, rlimit)
PLAIN(setrlimit64, rlimit)
PLAIN(sem_wait, sem_wait)
PLAIN(sem_timedwait, sem_wait)
PLAIN(sem_clockwait, sem_wait)
COUNTED(send, send)
INSTEAD_OF(sendfile, sendfile,
           error == FEW ? next(a, b, c, (d + 1) / 2, e, f)
           : error      ? fail(error)
                        : NEXT(c))
INSTEAD_OF(sendfile64, sendfile,
           error == FEW ? next(a, b, c, (d + 1) / 2, e, f)
           : error      ? fail(error)
                        : NEXT(c))
PLAIN(setsockopt, setsockopt)
PLAIN(shutdown, shutdown)
PLAIN(signalfd, signalfd)
PLAIN(socket, socket)
PLAIN(socketpair, socketpair)
INSTEAD_OF(splice, splice,
           error == FEW ? next(a, b, c, d, (e + 1) / 2, f)
           : error      ? fail(error)
                        : NEXT(c))
PLAIN(fstat, stat)
PLAIN(fstat64, stat)
PLAIN(fstatat, stat)
PLAIN(fstatat64, stat)
PLAIN(stat, stat)
PLAIN(stat64, stat)
PLAIN(lstat, stat)
PLAIN(lstat64, stat)
PLAIN(statx, stat)
CODE(pthread_create, thread)
PLAIN(timerfd_create, timerfd)

/* close releases the descriptor also when it fails. */
INSTEAD_OF(close, close, error ? (NEXT(c), fail(error)) : NEXT(c))

/* Only F_DUPFD can fail here. */
long fail_fcntl(int fd, int command, long argument) __asm__("fcntl");
long fail_fcntl64(int fd, int command, long argument) __asm__("fcntl64");

__attribute__((visibility("default"))) long fail_fcntl64(int fd, int command, long argument)
{
    bool duplicates = command == F_DUPFD || command == F_DUPFD_CLOEXEC;
    int error = duplicates ? failure_of(KIND_fcntl) : 0;
    return error ? fail(error) : syscall(SYS_fcntl, fd, command, argument);
}

__attribute__((visibility("default"))) long fail_fcntl(int fd, int command, long argument)
{
    return fail_fcntl64(fd, command, argument);
}

/* Changing or removing a descriptor of a set never fails. */
int fail_epoll_ctl(int set, int how, int fd, void *event) __asm__("epoll_ctl");
__attribute__((visibility("default"))) int fail_epoll_ctl(int set, int how, int fd, void *event)
{
    int error = how == EPOLL_CTL_ADD ? failure_of(KIND_epoll_ctl) : 0;
    return (int)(error ? fail(error) : syscall(SYS_epoll_ctl, set, how, fd, event));
}

/* ---- writing: some kinds of descriptors never fail ---- */

static int failure_of_write(int fd)
{
    struct stat st;
    if (syscall(SYS_newfstatat, fd, "", &st, AT_EMPTY_PATH) < 0)
        return 0;
    if (S_ISREG(st.st_mode))
        return failure_of(KIND_write);
    if (S_ISFIFO(st.st_mode))
        return failure_of(KIND_write_pipe);
    return 0; /* a write to an eventfd that is not full succeeds */
}

COUNTED(pwrite, write)
COUNTED(pwrite64, write)

ssize_t fail_write(int fd, const void *bytes, size_t len) __asm__("write");
__attribute__((visibility("default"))) ssize_t fail_write(int fd, const void *bytes, size_t len)
{
    int error = failure_of_write(fd);
    if (error > 0)
        return fail(error);
    return syscall(SYS_write, fd, bytes, error == FEW ? (len + 1) / 2 : len);
}

enum { PIECES_MAX = 16 };

/* The first half of some pieces. */
static int halve(const struct iovec *pieces, int count, struct iovec half[PIECES_MAX])
{
    size_t total = 0;
    for (int i = 0; i < count; i++)
        total += pieces[i].iov_len;
    size_t left = (total + 1) / 2;
    int used = 0;
    while (used < count && used < PIECES_MAX && left > 0) {
        half[used] = pieces[used];
        if (half[used].iov_len > left)
            half[used].iov_len = left;
        left -= half[used++].iov_len;
    }
    return used;
}

ssize_t fail_writev(int fd, const struct iovec *pieces, int count) __asm__("writev");
__attribute__((visibility("default"))) ssize_t fail_writev(int fd, const struct iovec *pieces,
                                                           int count)
{
    struct iovec half[PIECES_MAX];
    int error = failure_of(KIND_writev);
    if (error > 0)
        return fail(error);
    if (error == FEW)
        return syscall(SYS_writev, fd, half, halve(pieces, count, half));
    return syscall(SYS_writev, fd, pieces, count);
}

#define POSITIONED_WRITE(name) \
    ssize_t fail_##name(int fd, const struct iovec *pieces, int count, off_t at, \
                        int flags) __asm__(#name); \
    __attribute__((visibility("default"))) \
    ssize_t fail_##name(int fd, const struct iovec *pieces, int count, off_t at, int flags) \
    { \
        struct iovec half[PIECES_MAX]; \
        int error = failure_of_write(fd); \
        if (error > 0) \
            return fail(error); \
        if (error == FEW) \
            count = halve(pieces, count, half); \
        return syscall(SYS_pwritev2, fd, error == FEW ? half : pieces, count, at, 0, flags); \
    }

POSITIONED_WRITE(pwritev2)
POSITIONED_WRITE(pwritev64v2)

ssize_t fail_sendmsg(int fd, const struct msghdr *message, int flags) __asm__("sendmsg");
__attribute__((visibility("default"))) ssize_t fail_sendmsg(int fd, const struct msghdr *message,
                                                            int flags)
{
    struct iovec half[PIECES_MAX];
    struct msghdr shorter = *message;
    int error = failure_of(KIND_sendmsg);
    if (error > 0)
        return fail(error);
    if (error == FEW) {
        shorter.msg_iov = half;
        shorter.msg_iovlen = halve(message->msg_iov, (int)message->msg_iovlen, half);
    }
    return syscall(SYS_sendmsg, fd, &shorter, flags);
}

/* ---- calls that have no wrapper in libc ---- */

static int failure_of_syscall(long number)
{
    switch (number) {
    case SYS_openat2:
        return failure_of(KIND_open);
    case SYS_io_uring_setup:
        return failure_of(KIND_uring_setup);
    case SYS_io_uring_enter:
        return failure_of(KIND_uring_enter);
    default:
        return 0;
    }
}

long fail_syscall(long number, long a, long b, long c, long d, long e, long f) __asm__("syscall");
__attribute__((visibility("default"))) long fail_syscall(long number, long a, long b, long c,
                                                         long d, long e, long f)
{
    typedef long (*syscall_function)(long, long, long, long, long, long, long);
    static _Atomic(next_function) known;
    syscall_function next = (syscall_function)(void (*)(void))next_of(&known, "syscall");
    int error = failure_of_syscall(number);
    return error ? fail(error) : next(number, a, b, c, d, e, f);
}

/* ---- memory: dlsym allocates, so these call libc's other names for the functions ---- */

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

/* What libc (the names of users) and libseccomp do without memory is not for weir to mend: both
 * crash at some places. */
static bool is_call_of_library(const void *caller)
{
    Dl_info info;
    if (!plan || dladdr(caller, &info) == 0 || !info.dli_fname)
        return false;
    return strstr(info.dli_fname, "/libc.so") || strstr(info.dli_fname, "/libseccomp.so");
}

static bool out_of_memory(const void *caller)
{
    int error = is_call_of_library(caller) ? 0 : failure_of(KIND_memory);
    if (error)
        errno = error;
    return error != 0;
}

__attribute__((visibility("default"))) void *malloc(size_t size)
{
    return out_of_memory(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

__attribute__((visibility("default"))) void *calloc(size_t count, size_t size)
{
    return out_of_memory(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}

__attribute__((visibility("default"))) void *realloc(void *old, size_t size)
{
    return out_of_memory(__builtin_return_address(0)) ? NULL : __libc_realloc(old, size);
}

__attribute__((visibility("default"))) void *aligned_alloc(size_t alignment, size_t size)
{
    return out_of_memory(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, size);
}

__attribute__((visibility("default"))) int posix_memalign(void **ret, size_t alignment, size_t size)
{
    void *memory = out_of_memory(__builtin_return_address(0)) ? NULL
                                                              : __libc_memalign(alignment, size);
    if (memory)
        *ret = memory;
    return memory ? 0 : ENOMEM;
}

/* ---- the system calls of liburing ---- */

RETURNED(io_uring_queue_init_params, uring_setup)
RETURNED(io_uring_register, uring_register)
RETURNED(io_uring_register_buf_ring, uring_register)
RETURNED(io_uring_submit, uring_enter)
RETURNED(io_uring_submit_and_wait_timeout, uring_enter)

/* ---- children that die by a signal ---- */

pid_t fail_waitpid(pid_t pid, int *status, int options) __asm__("waitpid");
__attribute__((visibility("default"))) pid_t fail_waitpid(pid_t pid, int *status, int options)
{
    pid_t ended = (pid_t)syscall(SYS_wait4, pid, status, options, NULL);
    if (plan && ended > 0 && status && WIFSIGNALED(*status))
        atomic_fetch_add(&plan->killed, 1);
    return ended;
}

__attribute__((constructor)) static void read_plan(void)
{
    const char *path = getenv("FAIL_PLAN");
    if (!path)
        return;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    void *mapped =
        (void *)syscall(SYS_mmap, NULL, sizeof(*plan), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || mapped == MAP_FAILED)
        abort();
    (void)syscall(SYS_close, fd);
    plan = mapped;
}
