/* SPDX-License-Identifier: MIT
 *
 * Why an answer is among the last ones that failed, were slow or were cut, in words.
 */
#include "view/recent.h"

#include "base/duration.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct stats_snapshot snapshot;

/* The cause of the only answer. */
static const char *cause_of(enum stats_recent_kind kind, struct stats_answer answer)
{
    static struct view_answer found[VIEW_RECENT_MAX];
    const struct view view = { .snapshot = &snapshot };
    memset(snapshot.recent_count, 0, sizeof(snapshot.recent_count));
    snapshot.recent_count[kind] = 1;
    snapshot.recent[kind][0] = answer;
    assert_int_equal(view_recent(&view, found), 1);
    return found[0].cause;
}

static void an_answer_that_waited_for_the_disk_says_how_long(void **state)
{
    (void)state;
    const struct stats_answer slow = { .status = 200,
                                       .duration_ns = 4 * DURATION_SECOND,
                                       .waited_ns = 2 * DURATION_SECOND };
    const struct stats_answer late = { .status = 503,
                                       .duration_ns = 30 * DURATION_SECOND,
                                       .waited_ns = 30 * DURATION_SECOND };
    assert_string_equal(cause_of(STATS_RECENT_SLOW, slow), "the answer waited 2.00 s for the disk");
    assert_string_equal(cause_of(STATS_RECENT_5XX, late), "the answer waited 30.0 s for the disk");
}

static void a_short_wait_is_no_cause(void **state)
{
    (void)state;
    const struct stats_answer slow = { .status = 200,
                                       .duration_ns = 4 * DURATION_SECOND,
                                       .waited_ns = 1 * DURATION_SECOND };
    const struct stats_answer absent = { .status = 404,
                                         .duration_ns = DURATION_SECOND,
                                         .waited_ns = DURATION_SECOND };
    assert_string_equal(cause_of(STATS_RECENT_SLOW, slow),
                        "the answer took `stats-slow` or longer");
    assert_string_equal(cause_of(STATS_RECENT_4XX, absent), "Not Found");
}

static void a_status_that_is_no_cause_says_where_the_cause_is(void **state)
{
    (void)state;
    const struct stats_answer forbidden = { .status = 403 }, failed = { .status = 500 },
                              unavailable = { .status = 503 };
    assert_string_equal(cause_of(STATS_RECENT_4XX, forbidden),
                        "Forbidden: `weir trace` with this path says why");
    assert_string_equal(cause_of(STATS_RECENT_5XX, failed),
                        "Internal Server Error: the error log says why");
    assert_string_equal(cause_of(STATS_RECENT_5XX, unavailable),
                        "Service Unavailable: a rule says so, or the server was busy, as a verdict "
                        "says then");
    assert_string_equal(cause_of(STATS_RECENT_CUT, unavailable),
                        "the connection ended before the answer did");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_that_waited_for_the_disk_says_how_long),
        cmocka_unit_test(a_short_wait_is_no_cause),
        cmocka_unit_test(a_status_that_is_no_cause_says_where_the_cause_is),
    };
    return cmocka_run_group_tests_name("view/recent", tests, NULL, NULL);
}
