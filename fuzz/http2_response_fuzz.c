/* SPDX-License-Identifier: MIT
 *
 * The frames of a server, as a client reads them: any split of the bytes gives the same answers,
 * errors and replies, also with a memory that knows the heads already. Eight streams are kept
 * open, as far as the server allows.
 */
#include "base/check.h"
#include "base/hash.h"
#include "load/frames.h"

#include <stdint.h>
#include <stdlib.h>

enum { PLACES = 8, BODY = 1000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct reader {
    struct load_http2 http2;
    struct load_http2_stream streams[PLACES];
    struct buf out;
    uint64_t digest; /* of the events, without the split of bodies */
    uint64_t body_bytes;
    unsigned opened, ended;
    bool failed;
};

static uint64_t mix(uint64_t digest, uint64_t number)
{
    return hash_bytes(span_of((const char *)&number, sizeof(number)), digest);
}

static void open_streams(struct reader *reader)
{
    static const struct span blocks[LOAD_HTTP2_FORMS] = { { "\x82\x84", 2 },
                                                          { "\x82\x84", 2 },
                                                          { "\x82\x84", 2 } };
    static const char body[BODY];
    for (unsigned place = 0; place < PLACES; place++) {
        bool has_body = place % 4 == 0;
        if (reader->streams[place].id == 0 && load_http2_may_open(&reader->http2) &&
            load_http2_open(&reader->http2, place, blocks, has_body ? BODY : 0, place % 2,
                            &reader->out))
            reader->opened++;
        if (reader->streams[place].id != 0)
            load_http2_send_body(&reader->http2, place, span_of(body, BODY), &reader->out);
    }
}

static void grow_table(struct http2_table *table, size_t needed)
{
    char *old = table->memory, *memory = malloc(needed);
    CHECK(memory && needed <= HTTP2_TABLE_MEMORY_MAX);
    http2_table_move(table, memory, needed);
    free(old);
}

static void apply_event(struct reader *reader, enum load_frames_event event,
                        const struct load_frames_arrival *arrival)
{
    const struct load_http2_stream *stream = &reader->streams[arrival->place];
    bool freed = event == LOAD_FRAMES_MALFORMED || event == LOAD_FRAMES_RESET;
    switch (event) {
    case LOAD_FRAMES_ANSWER:
        CHECK(stream->status == 0 || (stream->status >= 200 && stream->status <= 599));
        break;
    case LOAD_FRAMES_DATA:
        CHECK(arrival->data.len <= stream->received && stream->status >= 200);
        reader->body_bytes += arrival->data.len;
        if (!arrival->ended)
            return;
        break;
    case LOAD_FRAMES_MORE:
        return;
    case LOAD_FRAMES_GROW:
        grow_table(&reader->http2.table, arrival->needed);
        return;
    case LOAD_FRAMES_GOAWAY:
        for (unsigned place = 0; place < PLACES; place++)
            if (load_http2_is_unprocessed(&reader->http2, place))
                load_http2_forget(&reader->http2, place);
        break;
    case LOAD_FRAMES_FAILED:
        reader->failed = true;
        reader->digest = mix(reader->digest, arrival->error);
        break;
    case LOAD_FRAMES_MALFORMED:
    case LOAD_FRAMES_RESET:
    case LOAD_FRAMES_SETTINGS:
    case LOAD_FRAMES_PING:
        break;
    }
    reader->digest = mix(reader->digest, event);
    if (freed || event == LOAD_FRAMES_ANSWER || event == LOAD_FRAMES_DATA) {
        bool ended = freed || arrival->ended;
        CHECK(ended == (stream->id == 0));
        reader->ended += ended;
        reader->digest = mix(mix(reader->digest, arrival->place), ended);
        if (!freed)
            reader->digest = mix(mix(reader->digest, stream->status), stream->received);
    }
    if (!reader->failed)
        open_streams(reader);
}

/* Reads a copy of the bytes. Returns how many are consumed. */
static size_t read_some(struct reader *reader, struct load_frames_memory *memory, struct span bytes)
{
    char *copy = malloc(bytes.len + 1);
    CHECK(copy);
    memcpy(copy, bytes.at, bytes.len);
    struct span in = span_of(copy, bytes.len);
    struct load_frames_arrival arrival = { 0 };
    enum load_frames_event event;
    do {
        event = load_frames_read(&reader->http2, memory, &in, &reader->out, &arrival);
        CHECK(in.len <= bytes.len && arrival.place < PLACES);
        apply_event(reader, event, &arrival);
    } while (event != LOAD_FRAMES_MORE && !reader->failed);
    CHECK(reader->failed || in.len <= LOAD_FRAMES_BLOCK_MAX);
    free(copy);
    return bytes.len - in.len;
}

static void read_all(struct reader *reader, struct load_frames_memory *memory, struct span bytes,
                     uint64_t random)
{
    size_t out_size = 4096 + 64 * bytes.len, from = 0, to = random ? 0 : bytes.len;
    memset(reader, 0, sizeof(*reader));
    reader->out = buf_over(malloc(out_size), out_size);
    CHECK(reader->out.at);
    load_http2_begin(&reader->http2, reader->streams, PLACES, false, &reader->out);
    open_streams(reader);
    while (!reader->failed && from < bytes.len) {
        size_t used = read_some(reader, memory, span_of(bytes.at + from, to - from));
        from += used;
        if (used == 0 && to == bytes.len)
            break;
        random = random * 6364136223846793005u + 1442695040888963407u;
        to += 1 + (size_t)(random >> 33) % (bytes.len / 8 + 1);
        to = to < bytes.len ? to : bytes.len;
    }
    CHECK(!reader->out.overflow);
    CHECK(reader->ended <= reader->opened);
    free(reader->http2.table.memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct load_frames_memory memory;
    static struct reader whole, split;
    struct span bytes = span_of((const char *)data, size);
    memset(&memory, 0, sizeof(memory));
    read_all(&whole, &memory, bytes, 0);
    read_all(&split, &memory, bytes, hash_bytes(bytes, 1) | 1);
    CHECK(whole.failed == split.failed && whole.ended == split.ended);
    CHECK(whole.opened == split.opened);
    CHECK(whole.digest == split.digest);
    /* A response that fails in the middle of a DATA frame may have had a part of its bytes. */
    CHECK(whole.body_bytes <= size && split.body_bytes <= size);
    free(whole.out.at);
    free(split.out.at);
    return 0;
}
