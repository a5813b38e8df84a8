/* SPDX-License-Identifier: MIT
 *
 * The word of a file is found by the file's inode number, so a rotation needs no message about it.
 * Two files that share a word cost at most an empty line.
 */
#include "log/tail.h"

#include "base/duration.h"
#include "os/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    WORDS = 61,    /* a prime number, so that inode numbers in a pattern get different words */
    SPINS = 20000, /* about as long as the write of a full buffer takes, some 50 us */
    LOOKS = 20,    /* log_tail_examine reads again, 1 ms apart, while a line looks unfinished */
};

/* The states of a word. A word that is claimed holds the writer's ticket above these bits. */
enum { WHOLE = 0, TORN = 1, CLAIMED = 2, TICKET_SHIFT = 2 };

static struct log_tails {
    _Atomic uint32_t tickets;
    struct log_tail word[WORDS];
} * tails;

int log_tail_prepare(void)
{
    if (tails != NULL)
        return 0;
    void *memory =
        mmap(NULL, sizeof(*tails), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return -errno;
    tails = memory;
    return 0;
}

struct log_tail *log_tail_of(int fd)
{
    struct stat st;
    return &tails->word[fstat(fd, &st) == 0 ? st.st_ino % WORDS : 0];
}

/* ---- the end of a file that exists ---- */

static bool is_unfinished(int fd)
{
    struct stat st;
    char last = '\n';
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
        return false;
    return pread(fd, &last, 1, st.st_size - 1) == 1 && last != '\n';
}

/* Another master's worker may be writing to the file. Its line is whole soon. */
static bool stays_unfinished(int fd)
{
    for (unsigned look = 0; look < LOOKS; look++) {
        if (!is_unfinished(fd))
            return false;
        (void)poll(NULL, 0, 1);
    }
    return true;
}

void log_tail_examine(int fd)
{
    char name[32];
    (void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd); /* `fd` is open for writing only */
    const int reading = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (reading < 0)
        return;
    uint32_t state = WHOLE; /* unless a worker of this master has the word */
    if (stays_unfinished(reading))
        (void)atomic_compare_exchange_strong(&log_tail_of(fd)->state, &state, TORN);
    (void)close(reading);
}

/* ---- turns ---- */

static bool try_claim(struct log_tail_turn *turn)
{
    uint32_t state = atomic_load_explicit(&turn->tail->state, memory_order_relaxed);
    if (state & CLAIMED || !atomic_compare_exchange_strong(&turn->tail->state, &state, turn->mine))
        return false;
    turn->torn = state == TORN;
    return true;
}

static bool claim_in_time(struct log_tail_turn *turn, unsigned sleeps_max)
{
    for (unsigned spin = 0; spin < SPINS; spin++)
        if (try_claim(turn))
            return true;
    for (unsigned sleep = 0; sleep < sleeps_max; sleep++) {
        (void)poll(NULL, 0, 1);
        if (try_claim(turn))
            return true;
    }
    return false;
}

struct log_tail_turn log_tail_claim(struct log_tail *tail, _Atomic uint64_t *wait_again_ns)
{
    const uint32_t ticket = atomic_fetch_add_explicit(&tails->tickets, 1, memory_order_relaxed);
    struct log_tail_turn turn = { .tail = tail, .mine = ticket << TICKET_SHIFT | CLAIMED };
    if (__builtin_expect(try_claim(&turn), 1))
        return turn;
    const uint64_t now_ns = os_clock_now_ns();
    const bool waits = now_ns >= atomic_load_explicit(wait_again_ns, memory_order_relaxed);
    if (claim_in_time(&turn, waits ? LOG_TAIL_WAIT_MS : 0))
        return turn;
    if (waits)
        atomic_store_explicit(wait_again_ns, os_clock_now_ns() + DURATION_SECOND,
                              memory_order_relaxed);
    atomic_store(&tail->state, turn.mine);
    turn.torn = true;
    return turn;
}

bool log_tail_needs_newline(const struct log_tail_turn *turn, int fd)
{
    struct stat st;
    return turn->torn && (fstat(fd, &st) < 0 || st.st_size > 0);
}

/* The word holds another ticket when another writer has taken it, after LOG_TAIL_WAIT_MS. Then the
 * order of the two writes is unknown, and the next writer begins with a newline. */
void log_tail_release(struct log_tail_turn turn, bool torn)
{
    uint32_t mine = turn.mine;
    if (!atomic_compare_exchange_strong(&turn.tail->state, &mine, torn ? TORN : WHOLE))
        atomic_store(&turn.tail->state, TORN);
}
