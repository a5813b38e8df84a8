/* SPDX-License-Identifier: MIT
 *
 * Frames as they arrive on a client's HTTP/2 connection: bytes become events. As load/http2.h, it
 * makes no system call, allocates nothing and knows no time.
 *
 * A frame other than DATA, and a whole header block, is read when all of it has arrived.
 */
#pragma once

#include "load/http2.h"
#include "load/result.h"

enum {
    /* Bytes of a header block of a response, with its frame heads. */
    LOAD_FRAMES_BLOCK_MAX = HTTP_RESPONSE_HEAD_MAX,
};

/* The memory that all connections of a thread share. Heads that were decoded before are kept, as
 * in load/headcache.h. Zero it before the first use. */
enum { LOAD_FRAMES_HEADS = 8, LOAD_FRAMES_HEAD_MAX = 512 };
struct load_frames_memory {
    struct load_frames_head {
        uint64_t length;
        uint16_t status;
        uint16_t block_len;  /* 0: none */
        uint16_t table_size; /* the maximum that the server's encoder had chosen */
        char block[LOAD_FRAMES_HEAD_MAX];
    } heads[LOAD_FRAMES_HEADS];
    struct http2_client_response response;
    char storage[HTTP2_CLIENT_STORAGE];
    char joined[LOAD_FRAMES_BLOCK_MAX];
};

enum load_frames_event {
    /* More input is needed. The rest of the input is an unfinished frame or header block, at most
     * LOAD_FRAMES_BLOCK_MAX bytes, which the caller keeps in front of the bytes that follow. */
    LOAD_FRAMES_MORE,

    /* A head of the response at `place` has arrived: `ended`. Its status is 100 to 199 for an
     * interim response, and then stream.status is 0. */
    LOAD_FRAMES_ANSWER,

    /* Bytes of its body: `data`, `ended`. */
    LOAD_FRAMES_DATA,

    /* The response is malformed: the stream is reset, and its place is free. */
    LOAD_FRAMES_MALFORMED,

    /* The server has reset the stream with `code`. Its place is free. */
    LOAD_FRAMES_RESET,

    /* Settings of the server have arrived: `first`. */
    LOAD_FRAMES_SETTINGS,

    /* The server has sent GOAWAY. The caller calls load_http2_forget for each stream that
     * load_http2_is_unprocessed, and sends its request on another connection. */
    LOAD_FRAMES_GOAWAY,

    /* The server has sent a PING. */
    LOAD_FRAMES_PING,

    /* The table needs memory: call http2_table_move with `needed` bytes, then call again with the
     * same input in the same place. */
    LOAD_FRAMES_GROW,

    /* The server has broken a rule: `error`. A GOAWAY is in `out`. */
    LOAD_FRAMES_FAILED
};

/* Only the members that the event names are set. */
struct load_frames_arrival {
    unsigned place;
    struct span data; /* lent as long as the input */
    bool ended;       /* the response is whole, and its place is free */
    bool first;       /* with these settings the server begins its side */
    uint32_t code;    /* enum http2_error, or any other number */
    size_t needed;
    enum load_error error;
};

/* Reads the next event from the front of *in, and removes what it has consumed. Appends frames that
 * the server must get to `out`. Any split of the input gives the same events, apart from the split
 * of DATA. Call again until the event is MORE or FAILED. After an event that frees a place, the
 * members of its stream are still as they were. */
enum load_frames_event load_frames_read(struct load_http2 *h, struct load_frames_memory *memory,
                                        struct span *in, struct buf *out,
                                        struct load_frames_arrival *ret);
