/* SPDX-License-Identifier: MIT
 *
 * The client's end of one HTTP/2 connection (RFC 9113), as bytes: its state, and the frames that
 * it sends. load/frames.h has those that it receives. It makes no system call, allocates nothing
 * and knows no time. It knows no user either: load/multiplex.h connects it to one.
 *
 * The caller numbers the streams by places, 0 to places - 1. A place holds one open stream.
 *
 * The windows of the client are large (LOAD_HTTP2_WINDOW), and received bytes are refunded when
 * they reach half of it. So a server never waits for the client's flow control.
 */
#pragma once

#include "base/check.h"
#include "http2/client.h"
#include "http2/frame.h"

enum {
    /* Bytes of the client's window, of the connection and of each stream. */
    LOAD_HTTP2_WINDOW = 1 << 30,
    /* Bytes of a header block of a request. Every server accepts a frame of 16 KiB (RFC 9113
     * section 4.2), so no request needs CONTINUATION. */
    LOAD_HTTP2_REQUEST_MAX = 16 * 1024 - 1,
    /* The number of enum http2_client_form. */
    LOAD_HTTP2_FORMS = HTTP2_CLIENT_LATER + 1,
};

/* An open stream. Members are for load/frames.c, unless they are marked. */
struct load_http2_stream {
    uint32_t id;         /* 0: the place is free; for the caller */
    uint16_t status;     /* of the final head; 0: none yet; for the caller */
    uint8_t slot;        /* of struct load_frames_memory */
    int32_t window;      /* bytes of its body that the server accepts; below 0 after a change */
    uint32_t unrefunded; /* received bytes */
    uint64_t unsent;     /* bytes of the request's body; for the caller */
    uint64_t length;     /* Content-Length, or HTTP2_CLIENT_NO_LENGTH */
    uint64_t received;   /* bytes of the response's body; for the caller */
};

/* One connection. Members are for load/frames.c, unless they are marked. */
struct load_http2 {
    struct load_http2_stream *stream; /* `places` of them; for the caller */
    struct http2_table table;         /* the caller frees table.memory */
    unsigned places, open;            /* `open`: streams; for the caller */
    unsigned found;                   /* the place that was found last */
    uint32_t next_id;                 /* of the next stream */
    uint32_t streams_max;             /* that the server allows; for the caller */
    uint32_t initial_window;          /* of a stream, as the server announced it */
    uint32_t frame_max;               /* bytes of payload that the server accepts */
    int64_t window;                   /* bytes of bodies that the server accepts */
    uint32_t unrefunded;              /* received bytes, of all streams */
    uint32_t data_left, padding_left; /* of the DATA frame that is being read */
    unsigned data_place;              /* its place; `places`: its bytes are skipped */
    uint32_t goaway_last;             /* of GOAWAY: the last stream that the server answers */
    uint32_t goaway_error;            /* its code; 0: none, or no error; for the caller */
    uint8_t form;                     /* enum http2_client_form of the next request */
    bool shrinks;                     /* the next block begins with a size update to 0 */
    bool decoding;                    /* a block that waits for memory of its table */
    bool in_data;                     /* a DATA frame is being read */
    bool data_ends;                   /* it ends its stream */
    bool head;                        /* requests are HEAD: responses have no body */
    bool ready;                       /* the server's SETTINGS have arrived; for the caller */
    bool closing;                     /* no further stream may be opened; for the caller */
};

/* Begins a connection, and appends the preface, SETTINGS and the window of the connection to
 * `out`. `stream` has `places` elements, and is borrowed. `head`: the method is HEAD. A memory of
 * the table that h->table.memory has already is used again; zero `h` before the first call. */
void load_http2_begin(struct load_http2 *h, struct load_http2_stream *stream, unsigned places,
                      bool head, struct buf *out);

/* Whether the server accepts a further stream now. Before its SETTINGS one stream is open at
 * most: the server may allow few, and then refuses the others. */
static inline bool load_http2_may_open(const struct load_http2 *h)
{
    return !h->closing && h->open < (h->ready ? h->streams_max : 1);
}

/* Opens a stream at a free place, and appends the head of its request: one of `blocks`, by enum
 * http2_client_form. The forms FIRST and LATER need at most HTTP2_TABLE_MAX bytes of the server's
 * table. `body`: bytes of the body that follows. `slot`: any number that tells targets apart.
 * false: `out` has too little space, and nothing has changed. */
MUST_USE bool load_http2_open(struct load_http2 *h, unsigned place,
                              const struct span blocks[LOAD_HTTP2_FORMS], uint64_t body,
                              unsigned slot, struct buf *out);

/* Appends DATA frames with the end of `body` that is not sent yet, as many as `out` and the
 * windows of the server have space for. */
void load_http2_send_body(struct load_http2 *h, unsigned place, struct span body, struct buf *out);

/* Resets a stream, whose answer takes too long, and opens no further one. */
void load_http2_cancel(struct load_http2 *h, unsigned place, struct buf *out);

/* Appends the GOAWAY that ends a connection. */
void load_http2_end(struct buf *out);

/* Frees a place, without a frame: the server has not processed the stream. */
void load_http2_forget(struct load_http2 *h, unsigned place);

/* Moves the stream of a place to another place, which is free. */
void load_http2_move(struct load_http2 *h, unsigned from, unsigned to);

/* Whether the server has declared that it does not answer the stream (GOAWAY). */
static inline bool load_http2_is_unprocessed(const struct load_http2 *h, unsigned place)
{
    return h->stream[place].id > h->goaway_last;
}

static inline bool load_http2_got_goaway(const struct load_http2 *h)
{
    return h->goaway_last != UINT32_MAX;
}
