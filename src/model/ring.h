/* SPDX-License-Identifier: MIT
 *
 * An io_uring with the buffers that the kernel receives into. Operations are
 * submitted in batches, and what became of each comes back as a completion.
 *
 * Used by one thread, but for model_ring_open and _close.
 */
#pragma once

#include "base/check.h"
#include "base/span.h"

#include <liburing.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RING_ENTRIES = 512,       /* submitted in one batch at most */
    RING_COMPLETIONS = 4096,  /* the kernel keeps more than these elsewhere, at a price */
    RING_BUFFERS = 256,       /* to receive into; a power of two */
    RING_BUFFER_BYTES = 4096, /* each */
};

struct model_ring {
    struct io_uring uring;
    struct io_uring_buf_ring *buffers;
    char *bytes;             /* of all buffers */
    struct msghdr *messages; /* one for each entry, as the two below */
    struct iovec (*parts)[2];
};

/* Makes a ring, which waits to be enabled. 0 or -errno, with *ret_call what failed; the ring is
 * for model_ring_close either way. */
MUST_USE int model_ring_open(struct model_ring *ring, const char **ret_call);

/* Nothing may be under way on behalf of a connection. A zeroed ring is allowed. */
void model_ring_close(struct model_ring *ring);

/* Binds the ring to the calling thread, the only one that uses it from now on. 0 or -errno. */
MUST_USE int model_ring_enable(struct model_ring *ring);

/* The next free entry, zeroed but for what completes: `about`, given back in the completion. When
 * all are taken they are submitted first. The kernel copies what an entry points to except the
 * bytes to send. */
struct io_uring_sqe *model_ring_entry(struct model_ring *ring, uint64_t about);

/* Asks to cancel what was submitted with `about`. */
void model_ring_cancel(struct model_ring *ring, uint64_t about, uint64_t cancel_about);

/* Receives into a buffer of the ring: once, or whenever there is something. */
void model_ring_receive(struct model_ring *ring, int fd, bool again, uint64_t about);

/* Sends one or two pieces of memory. */
void model_ring_send(struct model_ring *ring, int fd, const struct span piece[2], int flags,
                     uint64_t about);

/* Submits, and waits for a completion until `due_ns` (UINT64_MAX: for good). 0 or -errno. */
MUST_USE int model_ring_wait(struct model_ring *ring, uint64_t now_ns, uint64_t due_ns);

/* The bytes of a completed receive; lends until model_ring_give. */
struct span model_ring_taken(const struct model_ring *ring, const struct io_uring_cqe *done);
void model_ring_give(struct model_ring *ring, const struct io_uring_cqe *done);
