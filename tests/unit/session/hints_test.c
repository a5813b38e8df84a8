/* SPDX-License-Identifier: MIT
 *
 * Early hints: which requests get a 103, what is in it, and that the answer behind it is the same.
 */
#include "framed.h"

#define NAVIGATION(path) "GET " path " HTTP/1.1\r\nHost: a\r\nSec-Fetch-Mode: navigate\r\n\r\n"

/* Two links are hints, of three in two fields. */
static const char *const headers[] = {
    "X-Own: 1",
    "Link: </a,b.css>; rel=preload; as=style, </next.html>; rel=next",
    "link: <https://font.example>; rel=\"preconnect\"",
    NULL,
};

static int make_hinting_world(void **state)
{
    if (make_http2_world(state) < 0)
        return -1;
    world.sites[0].early_hints = true;
    return session_fields_join(&world.sites[0].fields, headers, NULL) ? 0 : -1;
}

static int end_hinting_world(void **state)
{
    session_fields_free(&world.sites[0].fields);
    return end_http2_world(state);
}

/* ---- what a client sees ---- */

/* What the client has received on one stream. */
struct hinted {
    unsigned interim;        /* responses before the answer */
    unsigned interim_fields; /* of these */
    char links[512];         /* of these, a line for each field */
    struct seen answer;
};

static void read_interim(struct span payload, struct hinted *ret)
{
    static char name[HTTP2_HPACK_TEXT_MAX], value[HTTP2_HPACK_TEXT_MAX];
    struct buf links = buf_over(ret->links, sizeof(ret->links) - 1);
    struct http2_hpack_reader reader;
    struct http2_table table;
    struct http2_field field = { 0 };
    http2_table_init(&table, NULL);
    assert_true(http2_hpack_begin(&reader, &table, payload, name, value));
    assert_int_equal(http2_hpack_next(&reader, &field), HTTP2_HPACK_FIELD);
    assert_int_equal(field.id, HTTP2_NAME_STATUS);
    assert_true(span_equal(field.value, SPAN("103")));
    while (http2_hpack_next(&reader, &field) == HTTP2_HPACK_FIELD) {
        assert_true(span_equal(field.name, SPAN("link")));
        buf_add(&links, field.value);
        buf_add_char(&links, '\n');
        ret->interim_fields++;
    }
    assert_false(links.overflow);
    links.at[links.len] = '\0';
    ret->interim++;
}

/* Reads the frames of a stream up to its answer, and the answer. */
static struct hinted read_hinted(uint32_t stream)
{
    struct hinted hinted = { 0 };
    struct http2_frame frame;
    struct span payload;
    size_t before = client.at;
    while (next_frame(&frame, &payload)) {
        if (frame.stream == stream && frame.type == HTTP2_FRAME_HEADERS) {
            if (status_of(payload) >= 200)
                break;
            assert_int_equal(frame.flags, HTTP2_FRAME_END_HEADERS);
            read_interim(payload, &hinted);
        }
        before = client.at;
    }
    client.at = before;
    hinted.answer = look(stream);
    return hinted;
}

static struct hinted exchange_hinted(const char *head)
{
    const uint32_t stream = add_request(head, true);
    send_frames();
    receive(SIZE_MAX);
    return read_hinted(stream);
}

#define LINKS \
    "</a,b.css>; rel=preload; as=style\n" \
    "<https://font.example>; rel=\"preconnect\"\n"

static void assert_hinted(const char *head, size_t body)
{
    const struct hinted hinted = exchange_hinted(head);
    assert_int_equal(hinted.interim, 1);
    assert_string_equal(hinted.links, LINKS);
    assert_int_equal(hinted.answer.status, 200);
    assert_int_equal(hinted.answer.body, body);
    assert_int_equal(hinted.answer.answers, 1);
}

static void assert_not_hinted(const char *head, unsigned status)
{
    const struct hinted hinted = exchange_hinted(head);
    assert_int_equal(hinted.interim, 0);
    assert_int_equal(hinted.answer.status, status);
    assert_int_equal(hinted.answer.answers, 1);
}

/* ---- tests ---- */

static void a_navigation_gets_the_links_before_the_page(void **state)
{
    (void)state;
    begin(LARGEST);
    assert_hinted(NAVIGATION("/small.html"), SMALL_SIZE); /* it is read */
    settle("/small.html");
    assert_hinted(NAVIGATION("/small.html"), SMALL_SIZE); /* the cache has it, with its block */
    assert_hinted(NAVIGATION("/middle.bin"), MIDDLE_SIZE);
    assert_hinted(NAVIGATION("/big.bin"), BIG_SIZE);
    end();
}

static void other_requests_get_no_links(void **state)
{
    (void)state;
    begin(LARGEST);
    assert_not_hinted(GET("/small.html"), 200);
    assert_not_hinted("GET /small.html HTTP/1.1\r\nHost: a\r\nSec-Fetch-Mode: cors\r\n\r\n", 200);
    assert_not_hinted("HEAD /small.html HTTP/1.1\r\nHost: a\r\nSec-Fetch-Mode: navigate\r\n\r\n",
                      200);
    end();
}

static void answers_without_a_whole_file_get_no_links(void **state)
{
    (void)state;
    begin(LARGEST);
    assert_not_hinted(NAVIGATION("/none"), 404);
    assert_not_hinted("GET /small.html HTTP/1.1\r\nHost: a\r\nSec-Fetch-Mode: navigate\r\n"
                      "If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT\r\n\r\n",
                      304);
    assert_not_hinted("GET /small.html HTTP/1.1\r\nHost: a\r\nSec-Fetch-Mode: navigate\r\n"
                      "Range: bytes=0-9\r\n\r\n",
                      206);
    end();
}

static void a_site_without_the_setting_sends_no_links(void **state)
{
    (void)state;
    world.sites[0].early_hints = false;
    begin(LARGEST);
    assert_not_hinted(NAVIGATION("/small.html"), 200);
    world.sites[0].early_hints = true;
    end();
}

static void http_1_1_has_no_interim_response(void **state)
{
    (void)state;
    struct session s;
    session_open(&s, &world.thread, (struct session_origin){ .peer.family = 4 }, world.now_ns);
    (void)session_feed(&s, SPAN(NAVIGATION("/small.html")), world.now_ns);
    const struct span head = session_output(&s).piece[0];
    assert_true(span_starts(head, SPAN("HTTP/1.1 200 ")));
    session_close(&s);
}

/* Links are left out where the output has no space for them beside the answer. */
static void many_navigations_at_once_are_all_answered(void **state)
{
    (void)state;
    begin(LARGEST);
    for (unsigned i = 0; i < HTTP2_STREAMS_MAX; i++)
        (void)add_request(NAVIGATION("/small.html"), true);
    send_frames();
    receive(SIZE_MAX);
    const struct seen seen = look(0);
    assert_int_equal(seen.answers, HTTP2_STREAMS_MAX);
    assert_int_equal(seen.body, (size_t)HTTP2_STREAMS_MAX * SMALL_SIZE);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_navigation_gets_the_links_before_the_page),
        cmocka_unit_test(other_requests_get_no_links),
        cmocka_unit_test(answers_without_a_whole_file_get_no_links),
        cmocka_unit_test(a_site_without_the_setting_sends_no_links),
        cmocka_unit_test(http_1_1_has_no_interim_response),
        cmocka_unit_test(many_navigations_at_once_are_all_answered),
    };
    return cmocka_run_group_tests_name("session/hints", tests, make_hinting_world,
                                       end_hinting_world);
}
