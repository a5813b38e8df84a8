/* SPDX-License-Identifier: MIT
 *
 * The loans of a session's output: memory of cache entries that leaves between staged bytes. Their
 * order, short sends, and who has the references to the entries. And buffers that pass from thread
 * to thread.
 */
#include "session/buffer.h"

#include "session/thread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static unsigned released;

static void count_release(struct site_cache_entry *entry)
{
    (void)entry;
    released++;
}

static const struct site_cache_kind kind = { count_release, NULL };

/* An entry with one reference, as the cache has it. */
static struct site_entry *new_entry(void)
{
    struct site_entry *entry = calloc(1, sizeof(*entry));
    assert_non_null(entry);
    site_cache_init(&entry->cache, &kind, 0, span_of((const char *)entry, 0));
    released = 0;
    return entry;
}

static unsigned references_of(struct site_entry *entry)
{
    return atomic_load(&entry->cache.references);
}

static struct session_buffer *new_buffer(void)
{
    struct session_buffer *out = calloc(1, sizeof(*out));
    assert_non_null(out);
    return out;
}

static void stage(struct session_buffer *out, const char *text)
{
    memcpy(out->bytes + out->len, text, strlen(text));
    out->len += strlen(text);
}

static void lend(struct session_buffer *out, const char *text, struct site_entry *entry)
{
    session_buffer_lend(out, span_text(text), entry);
}

static const char all[] = "head-LENT-more-ONE-TWO-tail-LAST";

/* `second` owns the second of two loans in a row. NULL: the thread does. */
static struct session_buffer *new_mixed(struct site_entry *entry, struct site_entry *second)
{
    struct session_buffer *out = new_buffer();
    stage(out, "head-");
    lend(out, "LENT-", entry);
    stage(out, "more-");
    lend(out, "ONE-", entry);
    lend(out, "TWO-", second);
    stage(out, "tail-");
    lend(out, "LAST", entry);
    assert_int_equal(session_buffer_end(out), sizeof(all) - 1);
    return out;
}

/* Takes the output away, at most `most` pieces and `step` bytes at a time. */
static void assert_leaves(struct session_buffer *out, unsigned most, size_t step)
{
    char found[sizeof(all)] = "";
    size_t len = 0;
    while (session_buffer_has_bytes(out)) {
        struct span pieces[8];
        const size_t before = len;
        const unsigned count = session_buffer_pieces(out, pieces, most, step);
        assert_in_range(count, 1, most);
        for (unsigned i = 0; i < count; i++) {
            assert_true(pieces[i].len > 0 && len + pieces[i].len < sizeof(all));
            memcpy(found + len, pieces[i].at, pieces[i].len);
            len += pieces[i].len;
        }
        assert_true(len - before <= step);
        assert_int_equal(session_buffer_take_sent(out, len - before), len < sizeof(all) - 1);
    }
    assert_string_equal(found, all);
    assert_int_equal(out->loan_count, 0);
}

static void every_short_send_gives_the_same_bytes(void **state)
{
    (void)state;
    struct site_entry *entry = new_entry();
    for (unsigned most = 1; most <= 8; most++) {
        for (size_t step = 1; step <= sizeof(all); step++) {
            const bool holds = step % 2 == 0;
            struct session_buffer *out = new_mixed(entry, holds ? entry : NULL);
            if (holds)
                session_buffer_hold(out);
            assert_leaves(out, most, step);
            assert_int_equal(references_of(entry), 1);
            free(out);
        }
    }
    free(entry);
}

static void a_loan_that_is_held_has_one_reference_until_it_is_sent(void **state)
{
    (void)state;
    struct site_entry *entry = new_entry();
    struct session_buffer *out = new_mixed(entry, entry);
    assert_int_equal(references_of(entry), 1);
    session_buffer_hold(out);
    session_buffer_hold(out);
    assert_int_equal(references_of(entry), 5);
    (void)session_buffer_take_sent(out, sizeof("head-LENT") - 1);
    assert_int_equal(references_of(entry), 5);
    (void)session_buffer_take_sent(out, 1);
    assert_int_equal(references_of(entry), 4);
    session_buffer_drop_loans(out);
    assert_int_equal(references_of(entry), 1);
    assert_int_equal(released, 0);
    free(out);
    free(entry);
}

/* A loan of the thread is sealed in the same call, and has no entry that could be held. */
static void the_loans_of_one_entry_are_held_beside_those_of_the_thread(void **state)
{
    (void)state;
    struct site_entry *entry = new_entry(), *other = new_entry();
    struct session_buffer *out = new_mixed(entry, NULL);
    lend(out, "!", other);
    session_buffer_hold_entry(out, other);
    session_buffer_hold_entry(out, other);
    assert_int_equal(references_of(other), 2);
    assert_int_equal(references_of(entry), 1);
    session_buffer_hold_entry(out, entry);
    assert_int_equal(references_of(entry), 4);
    session_buffer_drop_loans(out);
    assert_true(references_of(entry) == 1 && references_of(other) == 1);
    free(out);
    free(entry);
    free(other);
}

static void the_reference_of_an_answer_goes_to_its_last_loan(void **state)
{
    (void)state;
    struct site_entry *entry = new_entry();
    struct session_answer answer = { .open = true, .held = true, .entry = entry };
    struct session_buffer *out = new_mixed(entry, entry);
    session_buffer_keep(out, &answer);
    assert_false(answer.held);
    assert_int_equal(references_of(entry), 1); /* the answer's, which the loan has now */
    (void)session_buffer_take_sent(out, sizeof(all) - 2);
    assert_int_equal(released, 0);
    assert_false(session_buffer_take_sent(out, 1));
    assert_int_equal(released, 1);
    free(out);
    free(entry);
}

static void an_answer_keeps_its_reference_if_no_loan_needs_it(void **state)
{
    (void)state;
    struct site_entry *entry = new_entry(), *other = new_entry();
    struct session_answer answer = { .open = true, .held = true, .entry = other };
    struct session_buffer *out = new_mixed(entry, entry);
    session_buffer_keep(out, &answer); /* nothing of it is lent */
    assert_true(answer.held);
    answer.entry = entry;
    session_buffer_hold(out);
    session_buffer_keep(out, &answer); /* the last loan has a reference of its own */
    assert_true(answer.held);
    assert_int_equal(references_of(entry), 5);
    session_buffer_drop_loans(out);
    assert_int_equal(references_of(entry), 1);
    free(out);
    free(entry);
    free(other);
}

/* ---- spare buffers ---- */

/* As many answers as fill `count` buffers are under way in the thread, and end. */
static void use_buffers(struct session_thread *thread, unsigned count)
{
    struct session_buffer *used[8];
    assert_true(count <= 8);
    for (unsigned i = 0; i < count; i++) {
        used[i] = session_buffer_take(thread);
        assert_non_null(used[i]);
    }
    while (count > 0)
        session_buffer_give(thread, used[--count]);
}

static void a_thread_without_a_client_passes_its_buffer_on(void **state)
{
    (void)state;
    static struct session_thread first, second;
    struct session_spares spares = { NULL, 0 };
    use_buffers(&first, 3);
    session_thread_shrink(&first);
    assert_int_equal(first.spares.count, 1);
    struct session_buffer *kept = first.spares.buffers;
    session_spares_give(&spares, &first);
    assert_int_equal(first.spares.count, 0);
    assert_null(first.spares.buffers);

    session_spares_take(&spares, &second);
    assert_int_equal(spares.count, 0);
    assert_ptr_equal(session_buffer_take(&second), kept);
    session_buffer_give(&second, kept);
    session_spares_take(&spares, &second); /* there is none */
    assert_int_equal(second.spares.count, 1);
    session_spares_trim(&second.spares, 0);
}

static void a_crowd_that_has_left_keeps_few_buffers(void **state)
{
    (void)state;
    static struct session_thread crowd[1000];
    struct session_spares spares = { NULL, 0 };
    for (unsigned i = 0; i < 1000; i++)
        use_buffers(&crowd[i], 1);
    for (unsigned i = 0; i < 1000; i++) {
        session_thread_shrink(&crowd[i]);
        session_spares_give(&spares, &crowd[i]);
        assert_int_equal(crowd[i].spares.count, 0);
    }
    assert_in_range(spares.count, 1, 64);
    session_spares_trim(&spares, 0);
    assert_null(spares.buffers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_short_send_gives_the_same_bytes),
        cmocka_unit_test(a_loan_that_is_held_has_one_reference_until_it_is_sent),
        cmocka_unit_test(the_loans_of_one_entry_are_held_beside_those_of_the_thread),
        cmocka_unit_test(the_reference_of_an_answer_goes_to_its_last_loan),
        cmocka_unit_test(an_answer_keeps_its_reference_if_no_loan_needs_it),
        cmocka_unit_test(a_thread_without_a_client_passes_its_buffer_on),
        cmocka_unit_test(a_crowd_that_has_left_keeps_few_buffers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
