/* SPDX-License-Identifier: MIT
 *
 * Multipart bodies of random ranges. A body is assembled from its framing and the bytes of a
 * random file, and then taken apart again by its boundary. The parts must be the ranges in order,
 * and the length must be the one that was announced.
 */
#include "http/multipart.h"

#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

enum { ROUNDS = 2000, FILE_MAX = 200, BODY_MAX = 16 * 1024 };

static struct random_source rng;
static char file[FILE_MAX];

/* Up to HTTP_RANGES_MAX ranges inside a file of `size` bytes, in any order. */
static struct http_ranges random_ranges(size_t size)
{
    struct http_ranges ranges = { .count = 2 + (unsigned)random_below(&rng, HTTP_RANGES_MAX - 1) };
    for (unsigned i = 0; i < ranges.count; i++) {
        uint64_t first = random_below(&rng, size);
        ranges.range[i] = (struct http_range){ first, 1 + random_below(&rng, size - first) };
    }
    return ranges;
}

/* The whole body, as a client receives it. */
static void write_body(struct http_multipart *body, struct buf *out)
{
    struct http_range range;
    while (http_multipart_next(body, out, &range))
        buf_add(out, span_of(file + range.first, range.len));
    assert_false(out->overflow);
}

/* Takes `literal` from the front of the text. */
static void take(struct span *text, struct span literal)
{
    if (!span_starts(*text, literal))
        fail_msg("expected `%.*s` at `%.*s`", (int)literal.len, literal.at,
                 (int)(text->len < 60 ? text->len : 60), text->at);
    *text = span_skip(*text, literal.len);
}

static void take_part(struct span *text, struct span delimiter, struct http_range range,
                      size_t size)
{
    char line[128];
    int len = snprintf(line, sizeof(line), "Content-Range: bytes %llu-%llu/%zu\r\n\r\n",
                       (unsigned long long)range.first,
                       (unsigned long long)(range.first + range.len - 1), size);
    take(text, delimiter);
    take(text, SPAN("\r\nContent-Type: image/png\r\n"));
    take(text, span_of(line, (size_t)len));
    take(text, span_of(file + range.first, range.len));
    take(text, SPAN("\r\n"));
}

static void the_parts_are_the_ranges_and_the_length_is_the_announced_one(void **state)
{
    (void)state;
    static char storage[BODY_MAX];
    for (int round = 0; round < ROUNDS; round++) {
        size_t size = 1 + random_below(&rng, FILE_MAX);
        for (size_t i = 0; i < size; i++)
            file[i] = (char)random_u64(&rng);
        struct http_ranges ranges = random_ranges(size);
        struct http_multipart body =
            http_multipart_begin(&ranges, SPAN("image/png"), size, random_u64(&rng));
        char name[128];
        struct buf type = buf_over(name, sizeof(name)), out = buf_over(storage, sizeof(storage));
        http_multipart_add_type(&body, &type);
        struct span boundary = buf_span(&type);
        take(&boundary, SPAN("Content-Type: multipart/byteranges; boundary="));
        char text[64];
        struct buf delimiter = buf_over(text, sizeof(text));
        buf_add(&delimiter, SPAN("--"));
        buf_add(&delimiter, span_first(boundary, boundary.len - 2)); /* without the line's end */

        uint64_t announced = http_multipart_length(&body);
        write_body(&body, &out);
        assert_int_equal(out.len, announced);
        struct span rest = buf_span(&out);
        for (unsigned i = 0; i < ranges.count; i++)
            take_part(&rest, buf_span(&delimiter), ranges.range[i], size);
        take(&rest, buf_span(&delimiter));
        assert_true(span_equal(rest, SPAN("--\r\n")));
    }
}

int main(void)
{
    rng = random_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_parts_are_the_ranges_and_the_length_is_the_announced_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
