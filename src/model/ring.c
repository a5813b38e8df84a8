/* SPDX-License-Identifier: MIT */
#include "model/ring.h"

#include "base/duration.h"
#include "model/transfer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define INDEX_BYTES (RING_BUFFERS * sizeof(struct io_uring_buf))

/* ---- making and ending ---- */

/* The most bytes that a completion of such a receive reports. */
static int receive_most(enum model_ring_way way)
{
    return way == RING_ONCE ? RING_BUFFER_BYTES : RING_SMALL_BYTES;
}

static size_t buffers_size(enum model_ring_way way)
{
    return INDEX_BYTES + (size_t)RING_BUFFERS * (size_t)receive_most(way);
}

static void provide(struct model_ring *ring, enum model_ring_way way, unsigned id, int offset)
{
    const struct model_ring_buffers *buffers = &ring->buffers[way];
    unsigned most = (unsigned)receive_most(way);
    io_uring_buf_ring_add(buffers->index, buffers->bytes + (size_t)id * most, most,
                          (unsigned short)id, io_uring_buf_ring_mask(RING_BUFFERS), offset);
}

static int provide_all(struct model_ring *ring, enum model_ring_way way)
{
    struct model_ring_buffers *buffers = &ring->buffers[way];
    void *mapped =
        mmap(NULL, buffers_size(way), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
        return -errno;
    buffers->index = mapped;
    buffers->bytes = (char *)mapped + INDEX_BYTES;
    io_uring_buf_ring_init(buffers->index);
    for (unsigned id = 0; id < RING_BUFFERS; id++)
        provide(ring, way, id, (int)id);
    io_uring_buf_ring_advance(buffers->index, RING_BUFFERS);
    struct io_uring_buf_reg reg = {
        .ring_addr = (uintptr_t)mapped,
        .ring_entries = RING_BUFFERS,
        .bgid = (unsigned short)way,
    };
    return io_uring_register_buf_ring(&ring->uring, &reg, 0);
}

static const uint8_t needed[] = {
    IORING_OP_ACCEPT,  IORING_OP_RECV,     IORING_OP_SEND,
    IORING_OP_SENDMSG, IORING_OP_POLL_ADD, IORING_OP_ASYNC_CANCEL,
};
enum { OPERATIONS = sizeof(needed) / sizeof(needed[0]) };

static int check_operations(struct model_ring *ring)
{
    struct io_uring_probe *probe = io_uring_get_probe_ring(&ring->uring);
    if (!probe)
        return -EOPNOTSUPP;
    int rc = 0;
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
        if (!io_uring_opcode_supported(probe, needed[i]))
            rc = -EOPNOTSUPP;
    io_uring_free_probe(probe);
    return rc;
}

/* A system call filter does not see what a ring does. So the ring itself refuses every operation,
 * flag and registration that this file does not use, from model_ring_enable on. */
static int restrict_operations(struct model_ring *ring)
{
    struct io_uring_restriction rules[OPERATIONS + 3] = { 0 };
    for (size_t i = 0; i < OPERATIONS; i++) {
        rules[i].opcode = IORING_RESTRICTION_SQE_OP;
        rules[i].sqe_op = needed[i];
    }
    rules[OPERATIONS].opcode = IORING_RESTRICTION_SQE_FLAGS_ALLOWED;
    rules[OPERATIONS].sqe_flags = IOSQE_BUFFER_SELECT | IOSQE_CQE_SKIP_SUCCESS;
    rules[OPERATIONS + 1].opcode = IORING_RESTRICTION_REGISTER_OP;
    rules[OPERATIONS + 1].register_op = IORING_REGISTER_RING_FDS;
    rules[OPERATIONS + 2].opcode = IORING_RESTRICTION_REGISTER_OP;
    rules[OPERATIONS + 2].register_op = IORING_UNREGISTER_RING_FDS;
    /* liburing 2.3 declares io_uring_register_restrictions but does not export it. */
    return io_uring_register((unsigned)ring->uring.ring_fd, IORING_REGISTER_RESTRICTIONS, rules,
                             OPERATIONS + 3);
}

int model_ring_open(struct model_ring *ring, const char **ret_call)
{
    *ring = (struct model_ring){ .uring.ring_fd = -1 };
    struct io_uring_params params = {
        /* One thread submits. The kernel works on completions when the thread waits for them, not
         * when a packet arrives: it works in batches, and does not interrupt a request. */
        .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_R_DISABLED |
                 IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CQSIZE,
        .cq_entries = RING_COMPLETIONS,
    };
    *ret_call = "io_uring_setup";
    int rc = io_uring_queue_init_params(RING_ENTRIES, &ring->uring, &params);
    if (rc < 0) {
        ring->uring.ring_fd = -1;
        return rc;
    }
    *ret_call = "io_uring_register";
    rc = provide_all(ring, RING_ONCE);
    if (rc == 0)
        rc = provide_all(ring, RING_REPEATEDLY);
    if (rc == 0)
        rc = check_operations(ring);
    if (rc == 0)
        rc = restrict_operations(ring);
    if (rc < 0)
        return rc;
    *ret_call = "memory";
    ring->messages = calloc(RING_ENTRIES, sizeof(*ring->messages));
    ring->parts = calloc(RING_ENTRIES, sizeof(*ring->parts));
    return ring->messages && ring->parts ? 0 : -ENOMEM;
}

void model_ring_close(struct model_ring *ring)
{
    if (ring->uring.ring_fd > 0)
        io_uring_queue_exit(&ring->uring);
    for (enum model_ring_way way = 0; way < RING_WAYS; way++)
        if (ring->buffers[way].index)
            munmap(ring->buffers[way].index, buffers_size(way));
    free(ring->messages);
    free(ring->parts);
    *ring = (struct model_ring){ .uring.ring_fd = -1 };
}

int model_ring_enable(struct model_ring *ring)
{
    /* liburing 2.3 declares io_uring_enable_rings but does not export it. */
    int rc =
        io_uring_register((unsigned)ring->uring.ring_fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0);
    if (rc == 0)
        (void)io_uring_register_ring_fd(&ring->uring); /* it makes waiting cheaper, and may fail */
    return rc;
}

/* ---- operations ---- */

/* liburing sets every field of an entry but user_data. */
struct io_uring_sqe *model_ring_entry(struct model_ring *ring, uint64_t about)
{
    struct io_uring_sqe *entry = io_uring_get_sqe(&ring->uring);
    while (!entry) {
        int rc = io_uring_submit(&ring->uring);
        CHECK(rc >= 0 || rc == -EAGAIN || rc == -EINTR || rc == -EBUSY || rc == -ENOMEM);
        entry = io_uring_get_sqe(&ring->uring);
    }
    entry->user_data = about;
    return entry;
}

void model_ring_cancel(struct model_ring *ring, uint64_t about, uint64_t cancel_about)
{
    struct io_uring_sqe *entry = model_ring_entry(ring, cancel_about);
    io_uring_prep_cancel64(entry, about, 0);
    entry->flags |= IOSQE_CQE_SKIP_SUCCESS;
}

void model_ring_receive(struct model_ring *ring, int fd, enum model_ring_way way, uint64_t about)
{
    struct io_uring_sqe *entry = model_ring_entry(ring, about);
    if (way == RING_REPEATEDLY)
        io_uring_prep_recv_multishot(entry, fd, NULL, 0, 0);
    else
        io_uring_prep_recv(entry, fd, NULL, 0, 0);
    entry->flags |= IOSQE_BUFFER_SELECT;
    entry->buf_group = (unsigned short)way;
}

void model_ring_send(struct model_ring *ring, int fd, const struct session_out *out, uint64_t about)
{
    struct io_uring_sqe *entry = model_ring_entry(ring, about);
    int flags = model_transfer_flags(out);
    if (out->count == 1) {
        io_uring_prep_send(entry, fd, out->piece[0].at, out->piece[0].len, flags);
        return;
    }
    ptrdiff_t index = entry - ring->uring.sq.sqes;
    struct iovec *parts = ring->parts[index];
    ring->messages[index] =
        (struct msghdr){ .msg_iov = parts, .msg_iovlen = model_transfer_parts(out, parts) };
    io_uring_prep_sendmsg(entry, fd, &ring->messages[index], (unsigned)flags);
}

/* ---- waiting ---- */

int model_ring_wait(struct model_ring *ring, uint64_t now_ns, uint64_t due_ns)
{
    struct io_uring_cqe *done;
    uint64_t left = due_ns > now_ns ? due_ns - now_ns : 0;
    struct __kernel_timespec span = {
        .tv_sec = (int64_t)(left / DURATION_SECOND),
        .tv_nsec = (long long)(left % DURATION_SECOND),
    };
    int rc = io_uring_submit_and_wait_timeout(&ring->uring, &done, 1,
                                              due_ns == UINT64_MAX ? NULL : &span, NULL);
    return rc >= 0 || rc == -ETIME || rc == -EINTR || rc == -EAGAIN || rc == -EBUSY ? 0 : rc;
}

struct span model_ring_taken(const struct model_ring *ring, enum model_ring_way way,
                             const struct io_uring_cqe *done)
{
    unsigned id = done->flags >> IORING_CQE_BUFFER_SHIFT;
    size_t len = done->res > 0 ? (size_t)done->res : 0;
    return span_of(ring->buffers[way].bytes + (size_t)id * (size_t)receive_most(way), len);
}

void model_ring_give(struct model_ring *ring, enum model_ring_way way,
                     const struct io_uring_cqe *done)
{
    if (!(done->flags & IORING_CQE_F_BUFFER))
        return;
    provide(ring, way, done->flags >> IORING_CQE_BUFFER_SHIFT, 0);
    io_uring_buf_ring_advance(ring->buffers[way].index, 1);
}
