/* SPDX-License-Identifier: MIT
 *
 * The output of a session. Answers that fit are staged in `bytes`, one behind the other.
 *
 * HTTP/1.1: at most one answer does not fit. It ends the batch, and its body follows the staged
 * bytes, as memory or as a range of a file.
 *
 * HTTP/2: frames are staged. The payload of a large DATA frame is not copied: a loan names memory
 * that leaves between two staged bytes.
 *
 * Private to session/. A session_thread keeps unused buffers, newest first, so that a busy
 * thread reuses the same buffer, which is in the CPU's cache.
 */
#pragma once

#include "base/check.h"
#include "http/multipart.h"
#include "site/site.h"
#include "stats/recent.h"

struct session_line;
struct session_pages;
struct session_thread;

enum {
    SESSION_BUFFER_BYTES = 32 * 1024,

    /* Space that a request needs in the buffer before it is planned: the longest head, with a
     * site's own fields, and a built-in error page. */
    SESSION_ANSWER_ROOM = 8 * 1024,

    /* Bodies up to this size are copied behind their head, so that several answers leave in one
     * send. Above this size, a second piece of memory is cheaper than the copy, and sendfile is
     * cheaper than reading the file. */
    SESSION_COPY_MAX = 12 * 1024,

    /* The last bytes of a file are read into memory, and only after a check that the file is
     * unchanged. So a body that mixes two versions is never completed. */
    SESSION_TAIL_BYTES = 1024,

    /* The most bytes of HTTP/2, and the most plaintext of TLS, that become output at a time. With
     * four TLS records around them and the heads of TCP and IP they are below 64 KiB. That is the
     * most that the kernel sends as one packet, so no batch has a small packet behind it. */
    SESSION_BATCH_BYTES = 64 * 1024 - 256,

    /* Shorter payloads of HTTP/2 are copied: another piece to encrypt or to send costs more. */
    SESSION_LEND_LEAST = 4 * 1024,
    SESSION_LOANS_MAX = SESSION_BATCH_BYTES / SESSION_LEND_LEAST + 1
};

/* Answers of one site to requests that began at the same moment. They share one latency. */
struct session_group {
    uint64_t began_ns;
    unsigned site; /* its place in the statistics */
    unsigned count;
};
enum { SESSION_GROUPS_MAX = 8 };

/* An answer whose duration is noted when it is sent (session/recent.h). */
struct session_noted {
    struct stats_recent_note note;
    uint64_t began_ns;
};

/* An answer whose body is not copied behind its head. The other members are set only while
 * `open`. */
struct session_answer {
    bool open;
    bool cut;                 /* it ends without its last byte */
    bool held;                /* the answer has a reference to `entry` */
    bool listing;             /* `entry` counts in session_shared.listings */
    struct site_entry *entry; /* the owner of `memory` or `file` */
    struct span memory;       /* follows the staged bytes */
    const struct site_file *file;
    uint64_t file_at, file_end; /* the rest of the file, behind `memory` */
    uint64_t ready_end;         /* of `file`: the bytes before it are in memory (session/pages.h) */
    struct session_pages *pages; /* the answer waits for them; NULL: it does not */
    size_t head_left;            /* staged bytes before this answer's body */
    uint64_t body_sent;
    struct session_line *line; /* NULL when the log is off */
    unsigned status;
    unsigned site; /* its place in the statistics */
    uint64_t id, began_ns;
    uint64_t waited_ns; /* for the disk */
    uint8_t text_len;
    char text[128]; /* for session/recent.h, when there is no `line` */

    struct http_multipart parts; /* framing of a multipart body; ended for other bodies */
};

/* Memory that leaves without being copied, behind bytes[.. at). */
struct session_loan {
    size_t at;
    struct span memory;       /* unsent; not empty */
    struct site_entry *entry; /* its owner. NULL: the thread; it is sealed in the same call */
    bool held;                /* the loan has a reference to `entry` */
};

struct session_buffer {
    struct session_buffer *next; /* the next spare buffer */
    size_t at, len;              /* staged and unsent: bytes[at .. len) */

    unsigned loan_at, loan_count; /* unsent: loan[loan_at .. loan_count). A spare buffer has none */
    size_t lent;                  /* bytes of loans, sent ones too, since the buffer was empty */

    struct session_answer answer; /* the one that ends the batch */

    /* Of answers before it, which are logged when they are sent; a spare buffer has none. */
    struct session_line *lines, *last_line;

    /* For the statistics, of all answers in the buffer. */
    unsigned group_count, noted_count;
    struct session_group group[SESSION_GROUPS_MAX];
    struct session_noted noted[SESSION_GROUPS_MAX];
    uint64_t delayed_ns; /* when a send was first partial; 0: never */

    struct session_loan loan[SESSION_LOANS_MAX];
    char bytes[SESSION_BUFFER_BYTES];
};

/* Returns a spare buffer of the thread or a new one, empty. NULL: out of memory. */
struct session_buffer *session_buffer_take(struct session_thread *thread);

/* Returns a buffer to the thread. It has neither an open answer nor a loan. */
void session_buffer_give(struct session_thread *thread, struct session_buffer *buffer);

/* Removes `bytes` from the front of the output. Returns whether some of it is left to send as it
 * is. */
bool session_buffer_take_sent(struct session_buffer *out, size_t bytes);

/* Staged bytes and loans in their order, as at most `most` pieces of at most `bytes` bytes
 * together. Returns the number of pieces. */
unsigned session_buffer_pieces(const struct session_buffer *out, struct span *ret_pieces,
                               unsigned most, size_t bytes);

/* Whether a payload of this length is lent. */
static inline bool session_buffer_lends(const struct session_buffer *out, size_t len)
{
    return len >= SESSION_LEND_LEAST && out->loan_count < SESSION_LOANS_MAX;
}

/* Lends `memory` of `entry` behind what is staged. There is space for a loan. The entry stays valid
 * until the thread's next tick, or until the loan is sent if session_buffer_hold is called. */
void session_buffer_lend(struct session_buffer *out, struct span memory, struct site_entry *entry);

/* Takes references to the entries of all loans. No loan is of the thread: it would change. */
void session_buffer_hold(struct session_buffer *out);

/* The same for the loans of one entry. Others may be of the thread. */
void session_buffer_hold_entry(struct session_buffer *out, const struct site_entry *entry);

/* An answer ends. If memory of its entry is lent, its reference goes to the last such loan. */
void session_buffer_keep(struct session_buffer *out, struct session_answer *answer);

/* Drops all loans. */
void session_buffer_drop_loans(struct session_buffer *out);

/* Whether staged bytes or loans are unsent. */
static inline bool session_buffer_has_bytes(const struct session_buffer *out)
{
    return out->at < out->len || out->loan_at < out->loan_count;
}

/* The staged and the lent bytes, sent ones too, since the buffer was empty. */
static inline size_t session_buffer_end(const struct session_buffer *out)
{
    return out->len + out->lent;
}

/* Stages the last bytes of a file. False when it is no longer the file whose length was
 * announced. */
bool session_buffer_stage_tail(struct session_buffer *out);
