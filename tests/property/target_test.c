/* SPDX-License-Identifier: MIT
 *
 * Random paths, made of the pieces of attacks. Every resolved path is inside the root. A second
 * reader, which first decodes everything and then walks the segments, must agree. An accepted
 * path is the same after it is encoded and resolved again.
 */
#include "http/target.h"

#include "base/buf.h"
#include "base/num.h"
#include "support/guard.h"
#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

enum { TARGET_ROOM = 512, PATHS = 200 * 1000, SEGMENTS_MAX = 64 };

static struct random_source random_bits;
static char *head_end, *storage; /* unreadable memory begins at head_end and behind storage */

struct answer {
    int status;
    struct http_target target;
    const char *target_at; /* the target's place in the head */
};

static struct answer resolve(struct span target)
{
    static const struct span before = SPAN("GET ");
    static const struct span after = SPAN(" HTTP/1.1\r\nHost: a\r\n\r\n");
    size_t len = before.len + target.len + after.len;
    char *at = head_end - len;
    struct http_request request = { 0 };
    struct answer answer = { .target_at = at + before.len };
    enum http_status status;

    memcpy(at, before.at, before.len);
    memcpy(at + before.len, target.at, target.len);
    memcpy(at + before.len + target.len, after.at, after.len);
    assert_int_equal(http_request_parse(&request, span_of(at, len), &status), HTTP_PARSED);
    answer.status = http_target_resolve(&answer.target, &request, at, storage, HTTP_TARGET_MAX);
    return answer;
}

static struct span make_target(char *out)
{
    static const char *const pieces[] = { "/",   "/",   "/",   "/",        ".",      "..",  "%2e",
                                          "%2E", "%2f", "%5c", "\\",       "a",      "bc",  "%61",
                                          "%00", "%",   "%4",  "%252e",    "?",      "#",   ".git",
                                          "~",   "%7f", "%0a", "\xc3\xa9", "%c0%ae", "/..", "/a" };
    size_t len = 1;

    out[0] = '/';
    for (size_t count = random_below(&random_bits, 12); count > 0; count--) {
        /* The first 8 are harmless, so that many targets resolve. */
        size_t kinds = random_one_in(&random_bits, 6) ? sizeof(pieces) / sizeof(pieces[0]) : 8;
        struct span piece = span_text(pieces[random_below(&random_bits, kinds)]);
        if (random_one_in(&random_bits, 3))
            piece = SPAN("abc");
        memcpy(out + len, piece.at, piece.len);
        len += piece.len;
    }
    return span_of(out, len);
}

/* The second reader. Decoded bytes are numbers, and an encoded slash is 256 + '/', so that it
 * does not separate segments. 0, 400 or 404. */
static int model_decode(struct span raw, int *symbols, size_t *ret_count)
{
    int status = 0;
    size_t count = 0;

    for (size_t i = 0; i < raw.len; i++) {
        int symbol = (unsigned char)raw.at[i];
        if (symbol == '%') {
            uint64_t byte;
            if (i + 2 >= raw.len || !num_parse_hex(span_of(raw.at + i + 1, 2), &byte) ||
                byte < 0x20 || byte == 0x7f)
                return 400;
            symbol = (int)byte;
            if (symbol == '/') {
                symbol += 256;
                status = 404;
            }
            i += 2;
        }
        symbols[count++] = symbol;
    }
    *ret_count = count;
    return status;
}

static int model(struct span raw, char *out, size_t *ret_len)
{
    int symbols[TARGET_ROOM];
    size_t starts[SEGMENTS_MAX + 1] = { 1 };
    size_t count, depth = 0, len = 1;
    int status = model_decode(raw, symbols, &count);

    if (status == 400)
        return 400;
    out[0] = '/';
    for (size_t i = 1; i < count;) {
        size_t end = i;
        while (end < count && symbols[end] != '/')
            end++;
        size_t size = end - i;
        bool dots = size > 0 && size <= 2 && symbols[i] == '.' && symbols[end - 1] == '.';
        if (dots && size == 2) {
            if (depth == 0)
                return 400;
            len = starts[--depth];
        } else if (size > 0 && !dots) {
            starts[depth++] = len;
            for (; i < end; i++)
                out[len++] = (char)symbols[i];
            if (end < count)
                out[len++] = '/';
        }
        i = end + 1;
    }
    *ret_len = len;
    return status;
}

static void assert_inside_the_root(struct span path)
{
    assert_true(path.len > 0 && path.at[0] == '/');
    for (size_t i = 0; i < path.len; i++) {
        unsigned char c = (unsigned char)path.at[i];
        struct span rest = span_skip(path, i);
        assert_true(c >= 0x20 && c != 0x7f);
        assert_false(span_starts(rest, SPAN("//")));
        assert_false(span_starts(rest, SPAN("/./")) || span_equal(rest, SPAN("/.")));
        assert_false(span_starts(rest, SPAN("/../")) || span_equal(rest, SPAN("/..")));
    }
}

static void agrees_with_a_simple_reader_and_stays_inside_the_root(void **state)
{
    (void)state;
    char text[TARGET_ROOM], want[TARGET_ROOM];
    unsigned resolved = 0, normal = 0;

    for (unsigned i = 0; i < PATHS; i++) {
        struct span target = make_target(text);
        struct span raw = target;
        size_t want_len = 0;
        const char *query = memchr(target.at, '?', target.len);
        if (query)
            raw.len = (size_t)(query - target.at);
        int want_status = memchr(target.at, '#', target.len) ? 400 : model(raw, want, &want_len);

        struct answer got = resolve(target);
        if (got.status != want_status)
            fail_msg("`%.*s`: expected %d, got %d", (int)target.len, target.at, want_status,
                     got.status);
        if (got.status != 0)
            continue;
        if (!span_equal(got.target.path, span_of(want, want_len)))
            fail_msg("`%.*s`: expected `%.*s`, got `%.*s`", (int)target.len, target.at,
                     (int)want_len, want, (int)got.target.path.len, got.target.path.at);
        assert_inside_the_root(got.target.path);
        assert_int_equal(got.target.has_query, query != NULL);
        assert_int_equal(got.target.normal, got.target.path.at == got.target_at);
        resolved++;
        normal += got.target.normal;
    }
    assert_in_range(resolved, PATHS / 4, PATHS); /* the generator makes enough valid targets */
    assert_in_range(normal, PATHS / 20, PATHS);
}

static void reads_an_encoded_path_back_as_it_was(void **state)
{
    (void)state;
    char text[TARGET_ROOM], path[TARGET_ROOM], encoded[3 * TARGET_ROOM];

    for (unsigned i = 0; i < PATHS / 4; i++) {
        struct answer first = resolve(make_target(text));
        if (first.status != 0)
            continue;
        size_t len = first.target.path.len;
        memcpy(path, first.target.path.at, len);
        struct buf out = buf_over(encoded, sizeof(encoded));
        http_target_encode_path(&out, span_of(path, len));
        assert_false(out.overflow);

        struct answer second = resolve(buf_span(&out));
        assert_int_equal(second.status, 0);
        assert_true(span_equal(second.target.path, span_of(path, len)));
        assert_false(second.target.has_query);
    }
}

static int start(void **state)
{
    static struct guard head_guard, storage_guard;
    enum { HEAD_ROOM = 4096 };

    (void)state;
    random_bits = random_start();
    head_end = guard_room(&head_guard, HEAD_ROOM) + HEAD_ROOM;
    storage = guard_room(&storage_guard, HTTP_TARGET_MAX);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_a_simple_reader_and_stays_inside_the_root),
        cmocka_unit_test(reads_an_encoded_path_back_as_it_was),
    };
    return cmocka_run_group_tests_name("target", tests, start, NULL);
}
