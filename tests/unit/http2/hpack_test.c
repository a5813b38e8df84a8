/* SPDX-License-Identifier: MIT
 *
 * HPACK: the examples of RFC 7541 appendix C, and the boundaries of each primitive.
 */
#include "http2/hpack.h"

#include "support/guard.h"
#include "support/hpack.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { ROOM = 64 * 1024 };

static char name_storage[HTTP2_HPACK_TEXT_MAX], value_storage[HTTP2_HPACK_TEXT_MAX];

/* A decoder that keeps every field. */
struct decoder {
    struct http2_table table;
    char text[ROOM]; /* the fields of the last block, `name: value` and a newline each */
    size_t text_len;
    unsigned fields;
};

static struct decoder *decoder_new(void)
{
    struct decoder *decoder = calloc(1, sizeof(*decoder));
    CHECK(decoder);
    http2_table_init(&decoder->table, NULL);
    return decoder;
}

static void decoder_free(struct decoder *decoder)
{
    hpack_free(&decoder->table);
    free(decoder);
}

static void note_decoded(struct decoder *decoder, const struct http2_field *field)
{
    struct buf text = buf_over(decoder->text, sizeof(decoder->text));

    text.len = decoder->text_len;
    buf_add(&text, field->name);
    buf_add(&text, SPAN(": "));
    buf_add(&text, field->value);
    buf_add_char(&text, '\n');
    decoder->text_len = text.len;
    decoder->fields++;
}

/* Reads a block to its end. False: it is broken. */
static bool decode_span(struct decoder *decoder, struct span bytes)
{
    struct http2_hpack_reader reader;
    struct http2_field field;
    struct guard guard;
    enum http2_hpack step;

    decoder->text_len = decoder->fields = 0;
    bool begun = http2_hpack_begin(&reader, &decoder->table, guard_copy(&guard, bytes),
                                   name_storage, value_storage);
    do {
        step = begun ? http2_hpack_next(&reader, &field) : HTTP2_HPACK_BROKEN;
        if (step == HTTP2_HPACK_GROW)
            hpack_grow(&decoder->table, reader.needed);
        if (step == HTTP2_HPACK_FIELD)
            note_decoded(decoder, &field);
    } while (step == HTTP2_HPACK_FIELD || step == HTTP2_HPACK_GROW);
    guard_done(&guard);
    return step == HTTP2_HPACK_END;
}

static bool decode(struct decoder *decoder, const char *hex)
{
    static char bytes[ROOM];
    return decode_span(decoder, span_of(bytes, hpack_bytes(hex, bytes, sizeof(bytes))));
}

static bool is_broken(const char *hex)
{
    struct decoder *decoder = decoder_new();
    bool right = decode(decoder, hex);
    decoder_free(decoder);
    return !right;
}

/* Checks the fields of the last block. */
static void assert_fields(const struct decoder *decoder, const char *expected)
{
    struct span text = span_of(decoder->text, decoder->text_len);
    if (!span_equal(text, span_text(expected)))
        fail_msg("`%.*s` is not `%s`", (int)text.len, text.at, expected);
}

/* Decodes the block, and checks its fields and the size of the table after it. */
static void assert_block(struct decoder *decoder, const char *hex, const char *expected,
                         unsigned size)
{
    if (!decode(decoder, hex))
        fail_msg("`%s` is broken", hex);
    assert_fields(decoder, expected);
    assert_int_equal(decoder->table.size, size);
}

/* ---- RFC 7541 appendix C ---- */

static void rfc_7541_appendix_c_2_literals_and_indexed_fields(void **state)
{
    (void)state;
    static const struct {
        const char *hex, *fields;
        unsigned size;
    } rows[] = {
        { "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
          "custom-key: custom-header\n", 55 },
        { "040c 2f73 616d 706c 652f 7061 7468", ":path: /sample/path\n", 0 },
        { "1008 7061 7373 776f 7264 0673 6563 7265 74", "password: secret\n", 0 },
        { "82", ":method: GET\n", 0 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct decoder *decoder = decoder_new();
        assert_block(decoder, rows[i].hex, rows[i].fields, rows[i].size);
        decoder_free(decoder);
    }
}

#define REQUEST_1 ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\n"
#define REQUEST_3 \
    ":method: GET\n:scheme: https\n:path: /index.html\n:authority: www.example.com\n" \
    "custom-key: custom-value\n"

static void rfc_7541_appendix_c_3_requests_without_huffman(void **state)
{
    (void)state;
    struct decoder *decoder = decoder_new();
    assert_block(decoder, "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", REQUEST_1, 57);
    assert_block(decoder, "8286 84be 5808 6e6f 2d63 6163 6865",
                 REQUEST_1 "cache-control: no-cache\n", 110);
    assert_block(decoder,
                 "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
                 REQUEST_3, 164);
    decoder_free(decoder);
}

static void rfc_7541_appendix_c_4_requests_with_huffman(void **state)
{
    (void)state;
    struct decoder *decoder = decoder_new();
    assert_block(decoder, "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", REQUEST_1, 57);
    assert_block(decoder, "8286 84be 5886 a8eb 1064 9cbf", REQUEST_1 "cache-control: no-cache\n",
                 110);
    assert_block(decoder, "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", REQUEST_3,
                 164);
    decoder_free(decoder);
}

#define RESPONSE_1 \
    "cache-control: private\ndate: Mon, 21 Oct 2013 20:13:21 GMT\n" \
    "location: https://www.example.com\n"
#define RESPONSE_3 \
    ":status: 200\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:22 GMT\n" \
    "location: https://www.example.com\ncontent-encoding: gzip\n" \
    "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1\n"

static void rfc_7541_appendix_c_5_responses_without_huffman_evict(void **state)
{
    (void)state;
    struct decoder *decoder = decoder_new();
    assert_true(http2_table_resize(&decoder->table, 256));
    assert_block(decoder,
                 "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133"
                 "2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70"
                 "6c65 2e63 6f6d",
                 ":status: 302\n" RESPONSE_1, 222);
    assert_block(decoder, "4803 3330 37c1 c0bf", ":status: 307\n" RESPONSE_1, 222);
    assert_block(decoder,
                 "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d"
                 "54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049"
                 "5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e"
                 "3d31",
                 RESPONSE_3, 215);
    decoder_free(decoder);
}

static void rfc_7541_appendix_c_6_responses_with_huffman_evict(void **state)
{
    (void)state;
    struct decoder *decoder = decoder_new();
    assert_true(http2_table_resize(&decoder->table, 256));
    assert_block(decoder,
                 "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6"
                 "2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
                 ":status: 302\n" RESPONSE_1, 222);
    assert_block(decoder, "4883 640e ffc1 c0bf", ":status: 307\n" RESPONSE_1, 222);
    assert_block(decoder,
                 "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab"
                 "77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f"
                 "9587 3160 65c0 03ed 4ee5 b106 3d50 07",
                 RESPONSE_3, 215);
    decoder_free(decoder);
}

/* ---- integers, RFC 7541 section 5.1 ---- */

static void rfc_7541_section_5_1_writes_integers(void **state)
{
    (void)state;
    static const struct {
        unsigned mark, bits;
        size_t value;
        const char *hex;
    } rows[] = {
        { 0, 5, 10, "0a" },          { 0, 5, 30, "1e" },       { 0, 5, 31, "1f00" },
        { 0, 5, 1337, "1f9a0a" },    { 0, 8, 42, "2a" },       { 0x80, 7, 126, "fe" },
        { 0x80, 7, 127, "ff00" },    { 0x80, 7, 254, "ff7f" }, { 0x80, 7, 255, "ff8001" },
        { 0x20, 5, 4096, "3fe11f" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char bytes[8], expected[8];
        struct buf out = buf_over(bytes, sizeof(bytes));
        http2_hpack_add_integer(&out, rows[i].mark, rows[i].bits, rows[i].value);
        size_t len = hpack_bytes(rows[i].hex, expected, sizeof(expected));
        assert_int_equal(out.len, len);
        assert_memory_equal(bytes, expected, len);
    }
}

static void rfc_7541_section_5_1_reads_the_largest_index_and_refuses_larger_integers(void **state)
{
    (void)state;
    /* An index of 62 to 126 fits in the first byte; no entry of the dynamic table exists. */
    static const char *const broken[] = {
        "ff",           /* cut off behind the prefix */
        "ff80",         /* cut off behind a byte that continues */
        "ff8080808080", /* cut off after many */
        "ffffffffff0f", /* 2^32 and more */
        "ffffffffffffffffff7f",
        "ff808080808000",   /* leading zeros without end */
        "3fffffffff0f",     /* of a size update */
        "00ffffffffff0f61", /* of a length */
    };
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++)
        if (!is_broken(broken[i]))
            fail_msg("`%s` is read", broken[i]);

    /* Index 127 + 0 with every entry in place: 66 entries of 33 bytes make index 127 the oldest. */
    struct decoder *decoder = decoder_new();
    for (unsigned i = 0; i < 66; i++)
        assert_true(decode(decoder, "4001 6100"));
    assert_block(decoder, "ff00", "a: \n", 66 * 33);
    assert_block(decoder, "ff80 00", "a: \n", 66 * 33);
    assert_false(decode(decoder, "ff01"));
    decoder_free(decoder);
}

/* ---- indexes, RFC 7541 section 2.3.3 ---- */

static void rfc_7541_section_6_1_refuses_the_index_0_and_those_behind_the_table(void **state)
{
    (void)state;
    struct decoder *decoder = decoder_new();
    assert_true(is_broken("80"));
    assert_true(is_broken("be"));
    assert_true(is_broken("7e00")); /* the index of a name */
    assert_true(is_broken("0f2f00"));
    assert_block(decoder, "bd", "www-authenticate: \n", 0);
    assert_block(decoder, "4001 6101 62be", "a: b\na: b\n", 34);
    assert_false(decode(decoder, "bf"));
    decoder_free(decoder);
}

static void rfc_7541_section_2_3_has_the_whole_static_table(void **state)
{
    (void)state;
    struct decoder *decoder = decoder_new();
    unsigned first = 0;
    for (unsigned i = 1; i <= HTTP2_TABLE_STATIC_COUNT; i++) {
        char byte = (char)(0x80 | i);
        const struct http2_field *field = &http2_table_static[i];
        assert_true(decode_span(decoder, span_of(&byte, 1)));
        assert_int_equal(decoder->fields, 1);
        assert_int_equal(http2_table_name(field->name), field->id);
        first = http2_table_static[i - 1].id == field->id ? first : i;
        assert_int_equal(http2_table_name_index((enum http2_name)field->id), first);
    }
    assert_true(decode(decoder, "9c"));
    assert_fields(decoder, "content-length: \n");
    assert_true(decode(decoder, "90"));
    assert_fields(decoder, "accept-encoding: gzip, deflate\n");
    assert_true(decode(decoder, "8e"));
    assert_fields(decoder, ":status: 500\n");
    decoder_free(decoder);
}

static void knows_each_name_of_the_list_and_no_other(void **state)
{
    (void)state;
    for (unsigned name = 1; name < HTTP2_NAME_COUNT; name++) {
        struct span text = http2_table_names[name];
        char longer[64];
        assert_int_equal(http2_table_name(text), name);
        assert_int_equal(http2_table_name(span_first(text, text.len - 1)), HTTP2_NAME_OTHER);
        memcpy(longer, text.at, text.len);
        longer[text.len] = 'x';
        assert_int_equal(http2_table_name(span_of(longer, text.len + 1)), HTTP2_NAME_OTHER);
        longer[0] ^= 0x20;
        assert_int_equal(http2_table_name(span_of(longer, text.len)), HTTP2_NAME_OTHER);
    }
    assert_int_equal(http2_table_name(SPAN("")), HTTP2_NAME_OTHER);
}

/* ---- strings, RFC 7541 section 5.2 ---- */

static void rfc_7541_section_5_2_refuses_strings_that_are_cut_off(void **state)
{
    (void)state;
    static const char *const broken[] = {
        "00",         /* no name */
        "0001",       /* a name without its byte */
        "000161",     /* no value */
        "00016101",   /* a value without its byte */
        "04",         /* a known name and no value */
        "00016182f1", /* a Huffman value that is cut off */
        "0001617f00", /* a length that is cut off */
    };
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++)
        if (!is_broken(broken[i]))
            fail_msg("`%s` is read", broken[i]);
}

/* ---- size updates, RFC 7541 sections 4.2, 4.3 and 6.3 ---- */

static void rfc_7541_section_4_3_a_size_update_evicts(void **state)
{
    (void)state;
    struct decoder *decoder = decoder_new();
    assert_block(decoder, "4001 6101 3140 0161 0132 4001 6101 33", "a: 1\na: 2\na: 3\n", 102);
    assert_block(decoder, "3f25 bebf", "a: 3\na: 2\n", 68); /* 68 bytes: the oldest goes */
    assert_false(decode(decoder, "c0"));
    decoder_free(decoder);
}

static void rfc_7541_section_4_3_a_size_of_0_empties_the_table(void **state)
{
    (void)state;
    struct decoder *decoder = decoder_new();
    assert_block(decoder, "4001 6101 31", "a: 1\n", 34);
    assert_block(decoder, "20 3fe1 1f", "", 0); /* 0, then 4,096 again */
    assert_false(decode(decoder, "be"));
    assert_block(decoder, "20", "", 0);
    assert_block(decoder, "4001 6101 31", "a: 1\n", 0); /* nothing fits */
    decoder_free(decoder);
}

static void rfc_7541_section_6_3_refuses_a_size_above_the_limit(void **state)
{
    (void)state;
    struct decoder *decoder = decoder_new();
    assert_true(decode(decoder, "3fe1 1f"));
    assert_false(decode(decoder, "3fe2 1f"));
    decoder_free(decoder);
}

static void rfc_7541_section_4_2_a_size_update_is_at_the_beginning_only(void **state)
{
    (void)state;
    assert_true(is_broken("82 20"));
    assert_true(is_broken("82 20 82"));
    assert_false(is_broken("20 20 3f01 82"));
}

/* ---- eviction, RFC 7541 section 4.4 ---- */

static void rfc_7541_section_4_4_a_field_larger_than_the_table_empties_it(void **state)
{
    (void)state;
    struct decoder *decoder = decoder_new();
    assert_block(decoder, "4001 6101 31", "a: 1\n", 34);
    assert_block(decoder, "3f03 4001 6102 3131", "a: 11\n", 0); /* 34 of 35 bytes */
    decoder_free(decoder);
}

static void rfc_7541_section_4_4_a_name_may_be_of_an_entry_that_goes(void **state)
{
    (void)state;
    struct decoder *decoder = decoder_new();
    assert_true(decode(decoder, "3f1d")); /* 60 bytes */
    assert_block(decoder, "400a 6162 6364 6566 6768 696a 0131", "abcdefghij: 1\n", 43);
    /* The new field takes the name of the entry that it evicts. */
    assert_block(decoder, "7e0d 3232 3232 3232 3232 3232 3232 32", "abcdefghij: 2222222222222\n",
                 55);
    assert_block(decoder, "be", "abcdefghij: 2222222222222\n", 55);
    decoder_free(decoder);
}

/* ---- memory ---- */

static void keeps_no_value_that_no_reader_uses(void **state)
{
    (void)state;
    static const bool keeps[HTTP2_NAME_COUNT] = { [HTTP2_NAME_USER_AGENT] = true };
    struct http2_hpack_reader reader;
    struct http2_field field = { 0 };
    struct http2_table table;
    char bytes[64];
    size_t len = hpack_bytes("6006 636f 6f6b 6965 4001 6102 6262 7a03 5553 45", bytes, 64);

    http2_table_init(&table, keeps);
    hpack_grow(&table, 3 * 8 + 3);
    assert_true(
        http2_hpack_begin(&reader, &table, span_of(bytes, len), name_storage, value_storage));
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(http2_hpack_next(&reader, &field), HTTP2_HPACK_FIELD);
    assert_int_equal(http2_table_used(&table), 3 * 8 + 3);
    assert_int_equal(table.size, 3 * 32 + 6 + 6 + 1 + 2 + 10 + 3);

    assert_true(http2_table_get(&table, 0, &field));
    assert_true(span_equal(field.value, SPAN("USE")));
    assert_true(http2_table_get(&table, 1, &field));
    assert_int_equal(field.id, HTTP2_NAME_OTHER);
    assert_null(field.name.at);
    assert_int_equal(field.name.len, 1);
    assert_int_equal(field.value.len, 2);
    assert_true(http2_table_get(&table, 2, &field));
    assert_int_equal(field.id, HTTP2_NAME_COOKIE);
    assert_null(field.value.at);
    assert_int_equal(field.value.len, 6);
    hpack_free(&table);
}

static void needs_no_more_memory_than_its_maximum(void **state)
{
    (void)state;
    struct decoder *decoder = decoder_new();
    /* Long values, then the shortest fields, then long names: each kind fills the table. */
    static char block[3000];
    for (unsigned round = 0; round < 400; round++) {
        struct buf out = buf_over(block, sizeof(block));
        char text[2000];
        size_t len = round < 100 ? 1900 - round : round < 300 ? 0 : round;
        memset(text, 'a' + (int)(round % 26), sizeof(text));
        buf_add_char(&out, 0x40);
        http2_hpack_add_integer(&out, 0, 7, round < 300 ? 1 : len);
        buf_add(&out, span_of(text, round < 300 ? 1 : len));
        http2_hpack_add_integer(&out, 0, 7, len);
        buf_add(&out, span_of(text, len));
        assert_true(decode_span(decoder, buf_span(&out)));
        assert_true(decoder->table.memory_size <= HTTP2_TABLE_MEMORY_MAX);
        assert_true(decode(decoder, "be"));
        assert_int_equal(decoder->text_len, 3 + (round < 300 ? 1 : len) + len);
    }
    decoder_free(decoder);
}

/* ---- the encoder ---- */

static void writes_fields_that_the_decoder_reads(void **state)
{
    (void)state;
    struct decoder *decoder = decoder_new();
    char bytes[256];
    struct buf out = buf_over(bytes, sizeof(bytes));
    http2_hpack_add_no_table(&out);
    http2_hpack_add_field(&out, SPAN("Content-Type"), SPAN("text/html"));
    http2_hpack_add_field(&out, SPAN("X-Odd"), SPAN("<>\\^~"));
    http2_hpack_add_field(&out, SPAN("ETag"), SPAN("\"68\""));
    http2_hpack_add_field(&out, SPAN("x"), SPAN(""));
    assert_false(out.overflow);
    assert_true(decode_span(decoder, buf_span(&out)));
    assert_fields(decoder, "content-type: text/html\nx-odd: <>\\^~\netag: \"68\"\nx: \n");
    assert_int_equal(decoder->table.count, 0);
    decoder_free(decoder);
}

static void records_an_overflow_of_the_block(void **state)
{
    (void)state;
    char bytes[64];
    struct buf whole = buf_over(bytes, sizeof(bytes));
    http2_hpack_add_field(&whole, SPAN("content-type"), SPAN("text/html"));
    assert_false(whole.overflow);
    for (size_t room = 0; room < whole.len; room++) {
        struct guard guard;
        struct buf part = buf_over(guard_room(&guard, room), room);
        http2_hpack_add_field(&part, SPAN("content-type"), SPAN("text/html"));
        assert_true(part.overflow);
        guard_done(&guard);
    }
    char name[HTTP_FIELD_NAME_MAX + 1];
    memset(name, 'a', sizeof(name));
    http2_hpack_add_field(&whole, span_of(name, sizeof(name)), SPAN(""));
    assert_true(whole.overflow);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rfc_7541_appendix_c_2_literals_and_indexed_fields),
        cmocka_unit_test(rfc_7541_appendix_c_3_requests_without_huffman),
        cmocka_unit_test(rfc_7541_appendix_c_4_requests_with_huffman),
        cmocka_unit_test(rfc_7541_appendix_c_5_responses_without_huffman_evict),
        cmocka_unit_test(rfc_7541_appendix_c_6_responses_with_huffman_evict),
        cmocka_unit_test(rfc_7541_section_5_1_writes_integers),
        cmocka_unit_test(rfc_7541_section_5_1_reads_the_largest_index_and_refuses_larger_integers),
        cmocka_unit_test(rfc_7541_section_6_1_refuses_the_index_0_and_those_behind_the_table),
        cmocka_unit_test(rfc_7541_section_2_3_has_the_whole_static_table),
        cmocka_unit_test(knows_each_name_of_the_list_and_no_other),
        cmocka_unit_test(rfc_7541_section_5_2_refuses_strings_that_are_cut_off),
        cmocka_unit_test(rfc_7541_section_4_3_a_size_update_evicts),
        cmocka_unit_test(rfc_7541_section_4_3_a_size_of_0_empties_the_table),
        cmocka_unit_test(rfc_7541_section_6_3_refuses_a_size_above_the_limit),
        cmocka_unit_test(rfc_7541_section_4_2_a_size_update_is_at_the_beginning_only),
        cmocka_unit_test(rfc_7541_section_4_4_a_field_larger_than_the_table_empties_it),
        cmocka_unit_test(rfc_7541_section_4_4_a_name_may_be_of_an_entry_that_goes),
        cmocka_unit_test(keeps_no_value_that_no_reader_uses),
        cmocka_unit_test(needs_no_more_memory_than_its_maximum),
        cmocka_unit_test(writes_fields_that_the_decoder_reads),
        cmocka_unit_test(records_an_overflow_of_the_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
