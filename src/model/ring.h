/* SPDX-License-Identifier: MIT
 *
 * An io_uring, and the buffers that the kernel receives into. Operations are submitted in batches.
 * The kernel reports the result of each as a completion.
 *
 * One thread uses a ring. Any thread may call model_ring_open and model_ring_close.
 */
#pragma once

#include "base/check.h"
#include "base/span.h"
#include "session/session.h"

#include <liburing.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RING_ENTRIES = 512,       /* operations in one batch, at most */
    RING_COMPLETIONS = 4096,  /* beyond these the kernel needs more memory and time for each */
    RING_BUFFERS = 256,       /* of each kind, to receive into; a power of two */
    RING_BUFFER_BYTES = 4096, /* each of those for a single receive */

    /* Each of those for a repeated receive. It fills 32 of them before it reports, if that much has
     * arrived. */
    RING_SMALL_BYTES = 1024,
};

/* How to receive. Each way has its own buffers. */
enum model_ring_way { RING_ONCE, RING_REPEATEDLY, RING_WAYS };

struct model_ring_buffers {
    struct io_uring_buf_ring *index; /* NULL: not made */
    char *bytes;                     /* of all buffers */
};

struct model_ring {
    struct io_uring uring;
    struct model_ring_buffers buffers[RING_WAYS];
    struct msghdr *messages;               /* one for each entry of the submission queue */
    struct iovec (*parts)[SESSION_PIECES]; /* likewise */
};

/* Makes a ring, which is not enabled yet. 0, or -errno and in *ret_call the name of the call that
 * failed. In both cases the caller closes the ring. */
MUST_USE int model_ring_open(struct model_ring *ring, const char **ret_call);

/* Closes a ring that has no operation for a connection any more. A zeroed ring is allowed. */
void model_ring_close(struct model_ring *ring);

/* Binds the ring to the calling thread, which alone uses it from now on. 0 or -errno. */
MUST_USE int model_ring_enable(struct model_ring *ring);

/* Returns the next free entry, whose completion will carry `about`. When no entry is free, it
 * submits them all first. The kernel copies what an entry points to when it is submitted, except
 * the bytes to send. */
struct io_uring_sqe *model_ring_entry(struct model_ring *ring, uint64_t about);

/* Submits a cancel of the operation with this `about`. */
void model_ring_cancel(struct model_ring *ring, uint64_t about, uint64_t cancel_about);

/* Receives into a buffer of the ring, once or whenever input arrives. */
void model_ring_receive(struct model_ring *ring, int fd, enum model_ring_way way, uint64_t about);

/* Sends the pieces of memory that `out` names, at least one. */
void model_ring_send(struct model_ring *ring, int fd, const struct session_out *out,
                     uint64_t about);

/* Submits, and waits for a completion until `due_ns` (UINT64_MAX: without a limit). 0 or -errno. */
MUST_USE int model_ring_wait(struct model_ring *ring, uint64_t now_ns, uint64_t due_ns);

/* The bytes of a completed receive. Lends them until model_ring_give, which returns the buffer
 * to the kernel. */
struct span model_ring_taken(const struct model_ring *ring, enum model_ring_way way,
                             const struct io_uring_cqe *done);
void model_ring_give(struct model_ring *ring, enum model_ring_way way,
                     const struct io_uring_cqe *done);
