/* SPDX-License-Identifier: MIT
 *
 * The content of the terminal, drawn without one: at any size, with any text, after any key.
 */
#include "top/format.h"
#include "top/frame.h"

#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static struct top_canvas canvas;
static struct top_frame frame;
static struct stats_snapshot snapshot;
static struct stats_site sites[STATS_SITES_MAX];
static struct view view;

static int begin(void **state)
{
    (void)state;
    memset(&snapshot, 0, sizeof(snapshot));
    memset(&frame, 0, sizeof(frame));
    memset(sites, 0, sizeof(sites));
    snapshot.site_count = STATS_SITES_MAX;
    snapshot.site = sites;
    snapshot.running = true;
    snapshot.master = 4711;
    strcpy(snapshot.weir, "1.2.3");
    view = (struct view){ .snapshot = &snapshot, .read_ns = 1000000000 };
    frame.now = &view;
    frame.clock_ns = view.read_ns;
    frame.state.interval_ns = 1000000000;
    frame.machine.cpu = NAN;
    top_rates_between(&frame.rates, NULL, &view);
    top_rates_workers(&frame.workers, NULL, &view);
    canvas.unicode = false;
    return 0;
}

static int end(void **state)
{
    (void)state;
    top_canvas_done(&canvas);
    return 0;
}

static const char *row_text(unsigned row)
{
    static char text[TOP_COLUMNS_MAX + 1];
    for (unsigned i = 0; i < canvas.columns; i++) {
        uint32_t code = canvas.cells[(size_t)row * canvas.columns + i].code;
        text[i] = code < 0x80 ? (char)code : '~';
    }
    text[canvas.columns] = '\0';
    return text;
}

static bool shows(const char *text)
{
    for (unsigned row = 0; row < canvas.rows; row++)
        if (strstr(row_text(row), text))
            return true;
    return false;
}

static void draw(unsigned rows, unsigned columns)
{
    assert_int_equal(top_canvas_resize(&canvas, rows, columns), 0);
    top_frame_draw(&frame, &canvas);
}

static void every_screen_is_drawn_at_every_size(void **state)
{
    (void)state;
    for (unsigned i = 0; i <= TOP_SCREENS; i++) {
        frame.state.help = i == TOP_SCREENS;
        frame.state.screen = (enum top_screen)(i % TOP_SCREENS);
        for (unsigned rows = 0; rows <= 60; rows++)
            for (unsigned columns = 0; columns <= 140; columns += 3)
                draw(rows, columns);
        draw(TOP_ROWS_MAX + 5, TOP_COLUMNS_MAX + 5);
        assert_int_equal(canvas.columns, TOP_COLUMNS_MAX);
        draw(TOP_ROWS_LEAST, TOP_COLUMNS_LEAST);
        assert_true(shows("weir 1.2.3"));
        draw(TOP_ROWS_LEAST, TOP_COLUMNS_LEAST - 1);
        assert_true(shows("needs 40x10"));
    }
}

static void the_help_fits_a_terminal_of_80_columns(void **state)
{
    (void)state;
    frame.state.help = true;
    draw(24, 80);
    for (unsigned row = 0; row < canvas.rows; row++)
        assert_int_equal(row_text(row)[79], ' ');
    assert_true(shows("the screen with that number"));
}

static void any_keys_leave_a_valid_selection(void **state)
{
    (void)state;
    static const unsigned keys[] = { '1',
                                     '2',
                                     '3',
                                     '4',
                                     '5',
                                     '\t',
                                     ' ',
                                     '+',
                                     '-',
                                     '?',
                                     'h',
                                     'j',
                                     'k',
                                     'g',
                                     'G',
                                     0x1b,
                                     'x',
                                     TOP_KEY_UP,
                                     TOP_KEY_DOWN,
                                     TOP_KEY_LEFT,
                                     TOP_KEY_RIGHT,
                                     TOP_KEY_PAGE_UP,
                                     TOP_KEY_PAGE_DOWN,
                                     TOP_KEY_HOME,
                                     TOP_KEY_END,
                                     TOP_KEY_TAB_BACK,
                                     TOP_KEY_OTHER };
    uint64_t seed = 1;
    for (unsigned i = 0; i < 5000; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        top_state_key(&frame.state, keys[(seed >> 33) % (sizeof(keys) / sizeof(keys[0]))]);
        draw(10 + (unsigned)(seed >> 40) % 20, 80);
        const struct top_choice *choice = &frame.state.choice[frame.state.screen];
        assert_true(choice->line >= choice->first);
        assert_true(frame.state.help || choice->line - choice->first < choice->page);
        assert_true(frame.state.interval_ns >= TOP_INTERVAL_LEAST_NS &&
                    frame.state.interval_ns <= TOP_INTERVAL_MOST_NS);
    }
    assert_false(frame.state.quit);
    top_state_key(&frame.state, 'q');
    assert_true(frame.state.quit);
}

static void intervals_go_in_steps(void **state)
{
    (void)state;
    frame.state.interval_ns = 300000000;
    top_state_key(&frame.state, '+');
    assert_int_equal(frame.state.interval_ns, 500000000);
    top_state_key(&frame.state, '-');
    assert_int_equal(frame.state.interval_ns, 200000000);
    for (unsigned i = 0; i < 20; i++)
        top_state_key(&frame.state, '-');
    assert_int_equal(frame.state.interval_ns, TOP_INTERVAL_LEAST_NS);
    for (unsigned i = 0; i < 20; i++)
        top_state_key(&frame.state, '+');
    assert_int_equal(frame.state.interval_ns, TOP_INTERVAL_MOST_NS);
}

/* ---- text from a segment ---- */

static void control_characters_in_a_segment_are_not_sent(void **state)
{
    (void)state;
    static const char hostile[] = "a\033]0;x\007\033[2J\x9b\x31m\xc2\x9b\xff\xe2\x80\xae\r\n\tb";
    strcpy(sites[1].name, hostile);
    frame.verdict_count = 1;
    frame.verdict[0].gravity = VIEW_WRONG;
    strcpy(frame.verdict[0].text, hostile);
    strcpy(snapshot.weir, "\033[2J");
    for (unsigned unicode = 0; unicode < 2; unicode++) {
        canvas.unicode = unicode;
        frame.state.screen = TOP_SITES;
        draw(24, 80);
        assert_true(shows(" a?"));
        for (size_t i = 0; i < (size_t)canvas.rows * canvas.columns; i++) {
            uint32_t code = canvas.cells[i].code;
            assert_true(code == 0 || (code >= ' ' && code != 0x7f && (code < 0x80 || code > 0x9f)));
            assert_true(code != 0x202e);
        }
    }
}

static void wide_characters_take_two_columns(void **state)
{
    (void)state;
    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        skip();
    assert_int_equal(top_canvas_resize(&canvas, 1, 10), 0);
    canvas.unicode = true;
    assert_int_equal(top_canvas_text(&canvas, 0, 0, 10, TOP_PLAIN, "\xe6\xb0\xb4x"), 3);
    assert_int_equal(canvas.cells[0].code, 0x6c34);
    assert_int_equal(canvas.cells[1].code, 0);
    assert_int_equal(canvas.cells[2].code, 'x');
    assert_int_equal(top_canvas_text(&canvas, 0, 9, 10, TOP_PLAIN, "\xe6\xb0\xb4"), 9);
    canvas.unicode = false;
    assert_int_equal(top_canvas_text(&canvas, 0, 0, 10, TOP_PLAIN, "\xe6\xb0\xb4x"), 2);
    assert_string_equal(row_text(0), "?xx       ");
}

/* ---- what is said of the server ---- */

static void reports_the_health_of_the_server(void **state)
{
    (void)state;
    draw(24, 80);
    assert_false(shows("HANGS"));
    frame.clock_ns += UINT64_C(12000000000);
    draw(24, 80);
    assert_true(shows("HANGS: the last heartbeat of the master was 13 s ago."));
    frame.clock_ns -= UINT64_C(12000000000);
    frame.predecessor = 4700;
    frame.taken_ns = frame.clock_ns;
    draw(24, 80);
    assert_true(shows("FOLLOWED: process 4711 has taken the place of 4700."));
    frame.taken_ns -= UINT64_C(30000000000);
    draw(24, 80);
    assert_false(shows("FOLLOWED"));
    frame.clock_ns += UINT64_C(12000000000);
    frame.health = TOP_HEALTH_DIED;
    frame.waits = true;
    draw(24, 80);
    assert_true(shows("DIED: process 4711 was killed; waiting for another."));
    frame.health = TOP_HEALTH_GONE;
    frame.waits = false;
    draw(24, 80);
    assert_true(shows("STOPPED: process 4711 has gone. These are its last numbers."));
    frame.health = TOP_HEALTH_RUNS;
    frame.state.paused = true;
    draw(24, 80);
    assert_true(shows("PAUSED 12 s ago"));
}

static void verdicts_come_first_with_their_cure(void **state)
{
    (void)state;
    frame.verdict_count = 1;
    frame.verdict[0] = (struct view_verdict){
        .gravity = VIEW_WRONG, .rule = "x", .text = "Too much.", .why = "because", .cure = "less"
    };
    draw(24, 80);
    assert_true(shows(" wrong      Too much."));
    assert_true(shows("Why: because. Cure: less."));
    frame.state.screen = TOP_SITES;
    draw(24, 80);
    assert_true(shows("Too much."));
}

static void every_counter_is_shown_with_its_sentence(void **state)
{
    (void)state;
    frame.state.screen = TOP_COUNTERS;
    unsigned told = 0;
    for (unsigned i = 0; i < STATS_NAMED + STATS_PAIRS; i++) {
        draw(40, 200);
        for (unsigned c = 0; c < STATS_NAMED; c++)
            told += shows(stats_counters[c].sentence);
        for (unsigned c = 0; c < STATS_PAIRS; c++)
            told += shows(stats_pairs[c].about.sentence);
        top_state_key(&frame.state, TOP_KEY_DOWN);
    }
    assert_int_equal(told, STATS_NAMED + STATS_PAIRS);
}

/* A snapshot has memory for its own sites alone. */
static void a_site_that_a_reload_adds_has_counted_nothing_before(void **state)
{
    (void)state;
    struct stats_snapshot earlier = snapshot;
    struct view before = { .snapshot = &earlier };
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t bytes = (sizeof(struct stats_site) + page - 1) / page * page;
    char *memory =
        mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    assert_int_equal(mprotect(memory + bytes, bytes, PROT_NONE), 0);
    earlier.site = (struct stats_site *)(void *)(memory + bytes - sizeof(struct stats_site));
    earlier.site_count = 1;
    snapshot.site_count = 2;
    strcpy(sites[1].name, "new.example");
    sites[1].requests = 14;
    frame.before = &before;
    frame.rates.seconds = 2;
    frame.state.screen = TOP_SITES;
    draw(24, 80);
    assert_true(shows(" new.example"));
    assert_true(shows(" 7.00 "));
    assert_int_equal(munmap(memory, 2 * bytes), 0);
}

static void certificates_are_shown_with_the_days_that_are_left(void **state)
{
    (void)state;
    frame.state.screen = TOP_COUNTERS;
    snapshot.certificate_count = 2;
    snapshot.certificate[0] = (struct stats_certificate){ 86400, "old\x1b.test", "RSA" };
    snapshot.certificate[1] = (struct stats_certificate){ 86400 * 90, "shop.test", "ECDSA" };
    view.read_s = 86400 * 2;
    draw(60 + STATS_NAMED, 120);
    assert_true(shows(" RSA old\\x1b.test"));
    assert_true(shows(" ECDSA shop.test "));
    assert_true(shows(" 88 days"));
    assert_true(shows(" 0 days"));
}

/* ---- charts and numbers ---- */

static void a_chart_fills_its_height(void **state)
{
    (void)state;
    const float values[] = { 0, 1, 4, 8, NAN };
    assert_int_equal(top_canvas_resize(&canvas, 2, 6), 0);
    assert_true(top_canvas_spark(&canvas, 1, 0, 1, values, 5, TOP_ACCENT) == 8);
    assert_string_equal(row_text(1), "__-#  ");
    canvas.unicode = true;
    (void)top_canvas_spark(&canvas, 1, 0, 2, values, 5, TOP_ACCENT);
    assert_int_equal(canvas.cells[3].code, 0x2588);
    assert_int_equal(canvas.cells[6 + 3].code, 0x2588);
    assert_int_equal(canvas.cells[6 + 2].code, 0x2588);
    assert_int_equal(canvas.cells[2].code, ' ');
    assert_int_equal(canvas.cells[6 + 1].code, 0x2582);
}

static void a_bar_is_as_long_as_its_part(void **state)
{
    (void)state;
    assert_int_equal(top_canvas_resize(&canvas, 1, 10), 0);
    top_canvas_bar(&canvas, 0, 1, 8, 0.5, TOP_ACCENT);
    assert_string_equal(row_text(0), " ####     ");
    top_canvas_clear(&canvas);
    top_canvas_bar(&canvas, 0, 1, 8, 0.001, TOP_ACCENT);
    assert_string_equal(row_text(0), " #        ");
    top_canvas_clear(&canvas);
    top_canvas_bar(&canvas, 0, 1, 8, 7, TOP_ACCENT);
    assert_string_equal(row_text(0), " ######## ");
    top_canvas_clear(&canvas);
    top_canvas_bar(&canvas, 0, 1, 8, NAN, TOP_ACCENT);
    assert_string_equal(row_text(0), "          ");
}

static void numbers_are_short_and_have_units(void **state)
{
    (void)state;
    assert_string_equal(top_format_count(0).text, "0");
    assert_string_equal(top_format_count(999).text, "999");
    assert_string_equal(top_format_count(1234567).text, "1,234,567");
    assert_string_equal(top_format_count(UINT64_MAX).text, "18,446,744,073,709,551,615");
    assert_string_equal(top_format_rate(NAN).text, "-");
    assert_string_equal(top_format_rate(0).text, "0");
    assert_string_equal(top_format_rate(0.25).text, "0.25");
    assert_string_equal(top_format_rate(12.34).text, "12.3");
    assert_string_equal(top_format_rate(99.96).text, "100");
    assert_string_equal(top_format_rate(1e30).text, "18,446,744,073,709,551,615");
    assert_string_equal(top_format_bytes(0).text, "0 B");
    assert_string_equal(top_format_bytes(1000).text, "1000 B");
    assert_string_equal(top_format_bytes(1e18).text, "888 PiB");
    assert_string_equal(top_format_duration(0).text, "-");
    assert_string_equal(top_format_duration(1234).text, "1.23 us");
    assert_string_equal(top_format_duration(999600).text, "1.00 ms");
    assert_string_equal(top_format_duration(UINT64_C(61000000000)).text, "61.0 s");
    assert_string_equal(top_format_span(100000000).text, "0.1 s");
    assert_string_equal(top_format_span(UINT64_C(60000000000)).text, "1 min");
    assert_string_equal(top_format_span(UINT64_C(11100000000000)).text, "3 h 05 min");
    assert_string_equal(top_format_share(1, 0).text, "-");
    assert_string_equal(top_format_share(1, 3).text, "33.3 %");
}

#define WITH_FRAME(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FRAME(every_screen_is_drawn_at_every_size),
        WITH_FRAME(the_help_fits_a_terminal_of_80_columns),
        WITH_FRAME(any_keys_leave_a_valid_selection),
        WITH_FRAME(intervals_go_in_steps),
        WITH_FRAME(control_characters_in_a_segment_are_not_sent),
        WITH_FRAME(wide_characters_take_two_columns),
        WITH_FRAME(reports_the_health_of_the_server),
        WITH_FRAME(verdicts_come_first_with_their_cure),
        WITH_FRAME(a_site_that_a_reload_adds_has_counted_nothing_before),
        WITH_FRAME(certificates_are_shown_with_the_days_that_are_left),
        WITH_FRAME(every_counter_is_shown_with_its_sentence),
        WITH_FRAME(a_chart_fills_its_height),
        WITH_FRAME(a_bar_is_as_long_as_its_part),
        WITH_FRAME(numbers_are_short_and_have_units),
    };
    return cmocka_run_group_tests_name("frame", tests, NULL, NULL);
}
