/* SPDX-License-Identifier: MIT
 *
 * The rings of answers that failed, were slow or were cut: what a reader finds, and what it does
 * not believe.
 */
#include "stats/blocks.h"
#include "stats/recent.h"
#include "unit/stats/own.h"

#include <string.h>

static struct stats_writer writer;

static int open_writer(void **state)
{
    if (make_segment(state) < 0)
        return -1;
    stats_writer_open(&writer, &segment);
    return 0;
}

static int close_writer(void **state)
{
    stats_writer_close(&writer);
    return remove_segment(state);
}

static struct stats_answer answer_at(uint64_t at_ns)
{
    struct stats_answer answer = { .id = at_ns, .at_ns = at_ns, .status = 404, .text_len = 6 };
    memcpy(answer.text, "GET /a", 6);
    return answer;
}

static struct stats_recent_note add(enum stats_recent_kind kind, uint64_t at_ns)
{
    struct stats_answer answer = answer_at(at_ns);
    return stats_recent_add(&writer, kind, &answer);
}

static void a_reader_finds_the_newest_answers_first(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= 3; i++)
        (void)add(STATS_RECENT_4XX, 100 * i);
    struct stats_snapshot *snapshot = take_snapshot();
    assert_int_equal(snapshot->recent_count[STATS_RECENT_4XX], 3);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(snapshot->recent[STATS_RECENT_4XX][i].at_ns, 300 - 100 * i);
    assert_memory_equal(snapshot->recent[STATS_RECENT_4XX][0].text, "GET /a", 6);
    stats_snapshot_free(snapshot);
}

static void a_kind_displaces_only_its_own_oldest(void **state)
{
    (void)state;
    (void)add(STATS_RECENT_5XX, 1);
    for (uint64_t i = 0; i < 3 * STATS_RECENT_MAX + 5; i++)
        (void)add(STATS_RECENT_4XX, 1000 + i);
    struct stats_snapshot *snapshot = take_snapshot();
    assert_int_equal(snapshot->recent_count[STATS_RECENT_5XX], 1);
    assert_int_equal(snapshot->recent_count[STATS_RECENT_4XX], STATS_RECENT_MAX);
    for (unsigned i = 0; i < STATS_RECENT_MAX; i++)
        assert_int_equal(snapshot->recent[STATS_RECENT_4XX][i].at_ns,
                         1000 + 3 * STATS_RECENT_MAX + 4 - i);
    stats_snapshot_free(snapshot);
}

static void a_duration_is_replaced_while_the_answer_is_there(void **state)
{
    (void)state;
    struct stats_recent_note first = add(STATS_RECENT_CUT, 1), later = { 0 };
    stats_recent_set_duration(&first, 55);
    struct stats_snapshot *snapshot = take_snapshot();
    assert_int_equal(snapshot->recent[STATS_RECENT_CUT][0].duration_ns, 55);
    stats_snapshot_free(snapshot);
    for (unsigned i = 0; i < STATS_RECENT_MAX; i++)
        later = add(STATS_RECENT_CUT, 2 + i);
    assert_ptr_equal(later.place, first.place);
    stats_recent_set_duration(&first, 66); /* its place has another answer now */
    snapshot = take_snapshot();
    for (unsigned i = 0; i < STATS_RECENT_MAX; i++)
        assert_int_equal(snapshot->recent[STATS_RECENT_CUT][i].duration_ns, 0);
    stats_snapshot_free(snapshot);
}

static void an_answer_that_is_being_written_is_not_read(void **state)
{
    (void)state;
    struct stats_answer found;
    struct stats_recent_note note = add(STATS_RECENT_SLOW, 1);
    assert_true(stats_recent_read(note.place, &found));
    atomic_store(&note.place->begun, note.number + STATS_RECENT_MAX);
    assert_false(stats_recent_read(note.place, &found));
}

/* Each of these could lead a reader out of a table or a buffer. */
static void impossible_values_are_not_believed(void **state)
{
    (void)state;
    struct stats_answer found, answer = answer_at(1);
    answer.text_len = STATS_ANSWER_TEXT_MAX;
    answer.site = STATS_SITES_MAX - 1;
    answer.fault = STATS_FAULTS;
    struct stats_recent_note note = stats_recent_add(&writer, STATS_RECENT_4XX, &answer);
    assert_true(stats_recent_read(note.place, &found));
    for (unsigned i = 0; i < 5; i++) {
        struct stats_answer wrong = answer;
        wrong.text_len = i == 0 ? STATS_ANSWER_TEXT_MAX + 1 : 1;
        wrong.site = i == 1 ? STATS_SITES_MAX : 0;
        wrong.fault = i == 2 ? STATS_FAULTS + 1 : 0;
        wrong.status = i == 3 ? STATS_STATUS_LEAST - 1 : i == 4 ? STATS_STATUS_MOST + 1 : 404;
        note = stats_recent_add(&writer, STATS_RECENT_4XX, &wrong);
        assert_false(stats_recent_read(note.place, &found));
    }
}

static void without_a_reader_nothing_is_added(void **state)
{
    (void)state;
    struct stats_writer alone;
    struct stats_answer answer = answer_at(1);
    stats_writer_open(&alone, NULL);
    struct stats_recent_note note = stats_recent_add(&alone, STATS_RECENT_4XX, &answer);
    assert_null(note.place);
    stats_recent_set_duration(&note, 1);
    stats_writer_close(&alone);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_reader_finds_the_newest_answers_first, open_writer,
                                        close_writer),
        cmocka_unit_test_setup_teardown(a_kind_displaces_only_its_own_oldest, open_writer,
                                        close_writer),
        cmocka_unit_test_setup_teardown(a_duration_is_replaced_while_the_answer_is_there,
                                        open_writer, close_writer),
        cmocka_unit_test_setup_teardown(an_answer_that_is_being_written_is_not_read, open_writer,
                                        close_writer),
        cmocka_unit_test_setup_teardown(impossible_values_are_not_believed, open_writer,
                                        close_writer),
        cmocka_unit_test_setup_teardown(without_a_reader_nothing_is_added, open_writer,
                                        close_writer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
