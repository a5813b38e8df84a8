/* SPDX-License-Identifier: MIT */
#include "load/http2.h"

#include "http2/error.h"

enum {
    INITIAL_WINDOW = 65535, /* RFC 9113 section 6.9.2 */
    INITIAL_PAYLOAD = 16384 /* bytes of a frame, RFC 9113 section 6.5.2 */
};

void load_http2_begin(struct load_http2 *h, struct load_http2_stream *stream, unsigned places,
                      bool head, struct buf *out)
{
    char *memory = h->table.memory;
    size_t memory_size = h->table.memory_size;
    *h = (struct load_http2){ .stream = stream,
                              .places = places,
                              .next_id = 1,
                              .streams_max = UINT32_MAX,
                              .initial_window = INITIAL_WINDOW,
                              .frame_max = INITIAL_PAYLOAD,
                              .window = INITIAL_WINDOW,
                              .data_place = places,
                              .goaway_last = UINT32_MAX,
                              .form = HTTP2_CLIENT_FIRST,
                              .head = head };
    memset(stream, 0, places * sizeof(*stream));
    http2_table_init(&h->table, http2_client_keeps);
    if (memory)
        http2_table_move(&h->table, memory, memory_size);
    buf_add(out, HTTP2_FRAME_PREFACE);
    http2_frame_add(out, (struct http2_frame){ .length = 2 * HTTP2_FRAME_SETTING_BYTES,
                                               .type = HTTP2_FRAME_SETTINGS });
    http2_frame_add_setting(out, HTTP2_FRAME_ENABLE_PUSH, 0);
    http2_frame_add_setting(out, HTTP2_FRAME_INITIAL_WINDOW_SIZE, LOAD_HTTP2_WINDOW);
    http2_frame_add_window(out, 0, LOAD_HTTP2_WINDOW - INITIAL_WINDOW);
}

bool load_http2_open(struct load_http2 *h, unsigned place,
                     const struct span blocks[LOAD_HTTP2_FORMS], uint64_t body, unsigned slot,
                     struct buf *out)
{
    struct span block = blocks[h->form];
    size_t prefix = h->shrinks ? 1 : 0; /* http2_hpack_add_no_table */
    if (buf_room(out) < HTTP2_FRAME_HEAD + prefix + block.len)
        return false;
    struct load_http2_stream *stream = &h->stream[place];
    CHECK(stream->id == 0 && prefix + block.len <= INITIAL_PAYLOAD);
    *stream = (struct load_http2_stream){ .id = h->next_id,
                                          .slot = (uint8_t)(slot),
                                          .window = (int32_t)h->initial_window,
                                          .unsent = body };
    unsigned flags = HTTP2_FRAME_END_HEADERS | (body == 0 ? HTTP2_FRAME_END_STREAM : 0u);
    http2_frame_add(out, (struct http2_frame){ .length = (uint32_t)(prefix + block.len),
                                               .stream = stream->id,
                                               .type = HTTP2_FRAME_HEADERS,
                                               .flags = (uint8_t)flags });
    if (h->shrinks)
        http2_hpack_add_no_table(out);
    buf_add(out, block);
    h->shrinks = false;
    h->form = h->form == HTTP2_CLIENT_PLAIN ? HTTP2_CLIENT_PLAIN : HTTP2_CLIENT_LATER;
    h->open++;
    h->next_id += 2;
    h->closing = h->closing || h->next_id > INT32_MAX; /* identifiers have 31 bits */
    return true;
}

static uint64_t smaller(uint64_t a, int64_t b)
{
    return b <= 0 ? 0 : a < (uint64_t)b ? a : (uint64_t)b;
}

void load_http2_send_body(struct load_http2 *h, unsigned place, struct span body, struct buf *out)
{
    struct load_http2_stream *stream = &h->stream[place];
    while (stream->unsent > 0) {
        uint64_t part = smaller(smaller(stream->unsent, stream->window), h->window);
        part = smaller(smaller(part, h->frame_max), (int64_t)buf_room(out) - HTTP2_FRAME_HEAD);
        if (part == 0)
            return;
        bool last = part == stream->unsent;
        http2_frame_add(out, (struct http2_frame){ .length = (uint32_t)part,
                                                   .stream = stream->id,
                                                   .type = HTTP2_FRAME_DATA,
                                                   .flags = last ? HTTP2_FRAME_END_STREAM : 0 });
        buf_add(out, span_of(body.at + body.len - stream->unsent, (size_t)part));
        stream->unsent -= part;
        stream->window -= (int32_t)part;
        h->window -= (int64_t)part;
    }
}

void load_http2_forget(struct load_http2 *h, unsigned place)
{
    h->stream[place].id = 0;
    h->open--;
    if (h->data_place == place) /* the rest of its frame is skipped */
        h->data_place = h->places;
}

void load_http2_cancel(struct load_http2 *h, unsigned place, struct buf *out)
{
    http2_frame_add_reset(out, h->stream[place].id, HTTP2_CANCEL);
    load_http2_forget(h, place);
    h->closing = true;
}

void load_http2_end(struct buf *out)
{
    http2_frame_add_goaway(out, 0, HTTP2_NO_ERROR, SPAN(""));
}

void load_http2_move(struct load_http2 *h, unsigned from, unsigned to)
{
    h->stream[to] = h->stream[from];
    h->stream[from].id = 0;
    if (h->data_place == from)
        h->data_place = to;
}
