/* SPDX-License-Identifier: MIT
 *
 * PROXY headers of both versions, whole and in pieces.
 */
#include "peer/proxy.h"

#include "support/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define V4_BLOCK \
    "\xc0\0\x02\x01" \
    "\xc6\x33\x64\x01" \
    "\x30\x39" \
    "\x01\xbb"
#define V6_HALF "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01"
#define V6_BLOCK \
    V6_HALF V6_HALF "\x30\x39" \
                    "\x01\xbb"

struct row {
    struct span bytes;
    enum peer_proxy_result result;
    size_t len;         /* of the header */
    const char *client; /* as text; NULL: none */
};

#define ROW(literal, result, len, client) \
    { \
        { literal, sizeof(literal) - 1 }, result, len, client \
    }
#define GOOD(literal, client) ROW(literal, PEER_PROXY_DONE, sizeof(literal) - 1, client)
#define BAD(literal)          ROW(literal, PEER_PROXY_BROKEN, 0, NULL)
#define OTHER(literal)        ROW(literal, PEER_PROXY_ABSENT, 0, NULL)
#define PART(literal)         ROW(literal, PEER_PROXY_MORE, 0, NULL)

#define X10 "xxxxxxxxxx"
#define X90 X10 X10 X10 X10 X10 X10 X10 X10 X10

static const struct row rows[] = {
    /* version 1 */
    GOOD("PROXY TCP4 192.0.2.1 198.51.100.1 12345 443\r\n", "192.0.2.1"),
    GOOD("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n", "255.255.255.255"),
    GOOD("PROXY TCP4 192.0.2.1 198.51.100.1 0 0\r\n", "192.0.2.1"),
    GOOD("PROXY TCP6 2001:db8::1 2001:db8::2 12345 443\r\n", "2001:db8::1"),
    GOOD("PROXY TCP6 ::ffff:192.0.2.1 ::1 1 2\r\n", "192.0.2.1"),
    GOOD("PROXY UNKNOWN\r\n", NULL),
    GOOD("PROXY UNKNOWN anything at all\r\n", NULL),
    GOOD("PROXY UNKNOWN " X90 "x\r\n", NULL),
    ROW("PROXY TCP4 192.0.2.1 198.51.100.1 1 2\r\nGET / HTTP/1.1\r\n", PEER_PROXY_DONE, 39,
        "192.0.2.1"),
    BAD("PROXY UNKNOWN " X90 "xx\r\n"),
    BAD("PROXY UNKNOWN " X90 "xxxx"),
    BAD("PROXY TCP4 192.0.2.1 198.51.100.1 12345 443\n"),
    BAD("PROXY \n"),
    BAD("PROXY \r\n"),
    BAD("PROXY TCP4\r\n"),
    BAD("PROXY TCP4 \r\n"),
    BAD("PROXY TCP5 192.0.2.1 198.51.100.1 1 2\r\n"),
    BAD("PROXY UNKNOWNX\r\n"),
    BAD("PROXY tcp4 192.0.2.1 198.51.100.1 1 2\r\n"),
    BAD("PROXY  TCP4 192.0.2.1 198.51.100.1 1 2\r\n"),
    BAD("PROXY TCP4  192.0.2.1 198.51.100.1 1 2\r\n"),
    BAD("PROXY TCP4 192.0.2.1 198.51.100.1 1 2 \r\n"),
    BAD("PROXY TCP4 192.0.2.1 198.51.100.1 1\r\n"),
    BAD("PROXY TCP4 192.0.2.1 198.51.100.1 1 2 3\r\n"),
    BAD("PROXY TCP4 192.0.2.256 198.51.100.1 1 2\r\n"),
    BAD("PROXY TCP4 192.0.2.1 198.51.100 1 2\r\n"),
    BAD("PROXY TCP4 192.0.2.1 198.51.100.1 65536 2\r\n"),
    BAD("PROXY TCP4 192.0.2.1 198.51.100.1 1 02\r\n"),
    BAD("PROXY TCP4 192.0.2.1 198.51.100.1 1 -2\r\n"),
    BAD("PROXY TCP4 2001:db8::1 2001:db8::2 1 2\r\n"),
    BAD("PROXY TCP6 192.0.2.1 198.51.100.1 1 2\r\n"),
    BAD("PROXY TCP4 192.0.2.1\0 198.51.100.1 1 2\r\n"),
    PART("P"),
    PART("PROXY"),
    PART("PROXY "),
    PART("PROXY TCP4 192.0.2.1 198.51.100.1 12345 443\r"),

    /* version 2 */
    GOOD(SIGNATURE "\x21\x11\0\x0c" V4_BLOCK, "192.0.2.1"),
    GOOD(SIGNATURE "\x21\x21\0\x24" V6_BLOCK, "2001:db8::1"),
    GOOD(SIGNATURE "\x21\x11\0\x13" V4_BLOCK "\x04\0\x04"
                   "abcd",
         "192.0.2.1"),
    GOOD(SIGNATURE "\x20\0\0\0", NULL),
    GOOD(SIGNATURE "\x20\xff\0\x03"
                   "abc",
         NULL),
    GOOD(SIGNATURE "\x20\x11\0\x0c" V4_BLOCK, NULL),
    GOOD(SIGNATURE "\x21\0\0\0", NULL),
    GOOD(SIGNATURE "\x21\x12\0\x0c" V4_BLOCK, NULL),
    ROW(SIGNATURE "\x21\x11\0\x0c" V4_BLOCK "GET /", PEER_PROXY_DONE, 28, "192.0.2.1"),
    BAD(SIGNATURE "\x11"),
    BAD(SIGNATURE "\x22"),
    BAD(SIGNATURE "\x21\x41"),
    BAD(SIGNATURE "\x21\x13"),
    BAD(SIGNATURE "\x21\x11\0\x0b"),
    BAD(SIGNATURE "\x21\x21\0\x23"),
    BAD(SIGNATURE "\x21\x31\0\xd7"),
    BAD(SIGNATURE "\x21\x11\x0f\xf1"),
    PART(SIGNATURE "\x21\x11\x0f\xf0"),
    PART("\r"),
    PART("\r\n\r\n\0\r\nQUIT"),
    PART(SIGNATURE),
    PART(SIGNATURE "\x21\x11\0\x0c"
                   "\xc0\0\x02"),

    OTHER("GET / HTTP/1.1\r\n"),
    OTHER("PRI * HTTP/2.0\r\n"),
    OTHER("POST"),
    OTHER("PROXYTCP4"),
    OTHER("\x16\x03\x01"),
    OTHER("\r\n\r\nG"),
    OTHER("proxy tcp4"),
};

static void assert_row(const struct row *row, struct span bytes)
{
    struct peer_proxy header;
    const enum peer_proxy_result result = peer_proxy_parse(bytes, &header);
    if (result != row->result)
        fail_msg("`%.*s`: %d instead of %d", (int)row->bytes.len, row->bytes.at, (int)result,
                 (int)row->result);
    if (result != PEER_PROXY_DONE)
        return;
    assert_int_equal(header.len, row->len);
    struct peer_address client = { 0 };
    assert_true(!row->client || peer_address_parse(span_text(row->client), &client));
    assert_int_equal(header.client.family, client.family);
    assert_memory_equal(header.client.bytes, client.bytes, sizeof(client.bytes));
}

static void reads_headers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct guard guard;
        assert_row(&rows[i], guard_copy(&guard, rows[i].bytes));
        guard_done(&guard);
    }
}

/* Each beginning asks for more, or gives the result of the whole. */
static void pieces_give_the_same_result(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (size_t len = 1; len < rows[i].bytes.len; len++) {
            struct guard guard;
            struct peer_proxy header;
            const struct span part = guard_copy(&guard, span_first(rows[i].bytes, len));
            if (peer_proxy_parse(part, &header) != PEER_PROXY_MORE)
                assert_row(&rows[i], part);
            guard_done(&guard);
        }
    }
}

static void recognises_a_beginning(void **state)
{
    (void)state;
    assert_true(peer_proxy_begins(SPAN("PROXY TCP4 broken")));
    assert_true(peer_proxy_begins(SPAN("\r\n\r\n\0")));
    assert_false(peer_proxy_begins(SPAN("PROXY")));
    assert_false(peer_proxy_begins(SPAN("\r\n\r\nGET")));
    assert_false(peer_proxy_begins(SPAN("")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_headers),
        cmocka_unit_test(pieces_give_the_same_result),
        cmocka_unit_test(recognises_a_beginning),
    };
    return cmocka_run_group_tests_name("peer/proxy", tests, NULL, NULL);
}
