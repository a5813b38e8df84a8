/* SPDX-License-Identifier: MIT */
#include "session/buffer.h"

#include "session/thread.h"

#include <stdlib.h>

enum { SPARES_MAX = 64 }; /* 2 MiB; more are freed */

/* ---- spares ---- */

static struct session_buffer *take_spare(struct session_spares *spares)
{
    struct session_buffer *buffer = spares->buffers;
    if (__builtin_expect(buffer != NULL, 1)) {
        spares->buffers = buffer->next;
        spares->count--;
    }
    return buffer;
}

static void give_spare(struct session_spares *spares, struct session_buffer *buffer)
{
    if (spares->count >= SPARES_MAX) {
        free(buffer);
        return;
    }
    buffer->next = spares->buffers;
    spares->buffers = buffer;
    spares->count++;
}

void session_spares_give(struct session_spares *spares, struct session_thread *thread)
{
    struct session_buffer *buffer = take_spare(&thread->spares);
    if (buffer)
        give_spare(spares, buffer);
}

void session_spares_take(struct session_spares *spares, struct session_thread *thread)
{
    struct session_buffer *buffer = take_spare(spares);
    if (buffer)
        give_spare(&thread->spares, buffer);
}

void session_spares_trim(struct session_spares *spares, unsigned most)
{
    while (spares->count > most)
        free(take_spare(spares));
}

/* ---- taking and giving back ---- */

struct session_buffer *session_buffer_take(struct session_thread *thread)
{
    struct session_buffer *buffer = take_spare(&thread->spares);
    if (__builtin_expect(!buffer, 0)) {
        buffer = malloc(sizeof(*buffer));
        if (!buffer)
            return NULL;
        buffer->loan_at = buffer->loan_count = 0;
        buffer->lent = 0;
        buffer->lines = buffer->last_line = NULL;
    }
    buffer->at = buffer->len = 0;
    buffer->answer.open = false;
    buffer->answer.pages = NULL;
    buffer->group_count = buffer->noted_count = 0;
    buffer->delayed_ns = 0;
    return buffer;
}

void session_buffer_give(struct session_thread *thread, struct session_buffer *buffer)
{
    CHECK(!buffer->answer.open && !buffer->lines);
    give_spare(&thread->spares, buffer);
}

static size_t smaller_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- loans ---- */

void session_buffer_lend(struct session_buffer *out, struct span memory, struct site_entry *entry)
{
    CHECK(out->loan_count < SESSION_LOANS_MAX && memory.len > 0);
    out->loan[out->loan_count++] =
        (struct session_loan){ .at = out->len, .memory = memory, .entry = entry };
    out->lent += memory.len;
}

static void hold_loan(struct session_loan *loan)
{
    if (loan->held)
        return;
    site_cache_hold(&loan->entry->cache);
    loan->held = true;
}

void session_buffer_hold(struct session_buffer *out)
{
    for (unsigned i = out->loan_at; i < out->loan_count; i++) {
        CHECK(out->loan[i].entry); /* the thread's memory gets bytes of another client's file */
        hold_loan(&out->loan[i]);
    }
}

void session_buffer_hold_entry(struct session_buffer *out, const struct site_entry *entry)
{
    for (unsigned i = out->loan_at; i < out->loan_count; i++)
        if (out->loan[i].entry == entry)
            hold_loan(&out->loan[i]);
}

/* Loans are sent in their order, so the last one keeps the entry for those before it. */
void session_buffer_keep(struct session_buffer *out, struct session_answer *answer)
{
    for (unsigned i = out->loan_count; answer->held && i > out->loan_at; i--) {
        struct session_loan *loan = &out->loan[i - 1];
        if (loan->entry != answer->entry)
            continue;
        answer->held = loan->held;
        loan->held = true;
        return;
    }
}

/* The first loan is sent, or will not be. */
static void end_loan(struct session_buffer *out)
{
    const struct session_loan *loan = &out->loan[out->loan_at++];
    if (loan->held)
        site_cache_release(&loan->entry->cache);
    if (out->loan_at == out->loan_count)
        out->loan_at = out->loan_count = 0;
}

void session_buffer_drop_loans(struct session_buffer *out)
{
    while (out->loan_count > 0)
        end_loan(out);
}

/* The staged bytes before a loan, or behind the last one. */
static size_t staged_before(const struct session_buffer *out, size_t at, unsigned loan)
{
    return (loan < out->loan_count ? out->loan[loan].at : out->len) - at;
}

unsigned session_buffer_pieces(const struct session_buffer *out, struct span *ret_pieces,
                               unsigned most, size_t bytes)
{
    size_t at = out->at;
    unsigned count = 0, loan = out->loan_at;
    while (count < most && bytes > 0) {
        struct span part = span_of(out->bytes + at, staged_before(out, at, loan));
        at += part.len;
        if (part.len == 0 && loan == out->loan_count)
            break;
        if (part.len == 0)
            part = out->loan[loan++].memory;
        part = span_first(part, bytes);
        bytes -= part.len;
        ret_pieces[count++] = part;
    }
    return count;
}

static bool take_lent(struct session_buffer *out, size_t bytes)
{
    while (bytes > 0) {
        const size_t staged = smaller_size(bytes, staged_before(out, out->at, out->loan_at));
        out->at += staged;
        bytes -= staged;
        if (bytes == 0)
            break;
        CHECK(out->loan_at < out->loan_count);
        struct session_loan *loan = &out->loan[out->loan_at];
        const size_t lent = smaller_size(bytes, loan->memory.len);
        loan->memory = span_skip(loan->memory, lent);
        bytes -= lent;
        if (loan->memory.len == 0)
            end_loan(out);
    }
    return session_buffer_has_bytes(out);
}

/* ---- what is sent ---- */

bool session_buffer_take_sent(struct session_buffer *out, size_t bytes)
{
    if (__builtin_expect(out->loan_count > 0, 0))
        return take_lent(out, bytes);
    size_t staged = smaller_size(bytes, out->len - out->at);
    out->at += staged;
    bytes -= staged;
    if (__builtin_expect(!out->answer.open, 1)) {
        CHECK(bytes == 0);
        return out->at < out->len;
    }
    size_t head = smaller_size(staged, out->answer.head_left);
    out->answer.head_left -= head;
    out->answer.body_sent += staged - head + bytes;
    size_t memory = smaller_size(bytes, out->answer.memory.len);
    out->answer.memory = span_skip(out->answer.memory, memory);
    bytes -= memory;
    CHECK(bytes <= out->answer.file_end - out->answer.file_at);
    out->answer.file_at += bytes;
    return out->at < out->len || out->answer.memory.len > 0 ||
           out->answer.file_end - out->answer.file_at > SESSION_TAIL_BYTES;
}

bool session_buffer_stage_tail(struct session_buffer *out)
{
    size_t len = (size_t)(out->answer.file_end - out->answer.file_at);
    if (site_file_read(out->answer.file, out->bytes, len, out->answer.file_at) < 0 ||
        !site_file_unchanged(out->answer.file))
        return false;
    out->at = 0;
    out->len = len;
    out->answer.file_at = out->answer.file_end;
    return true;
}
