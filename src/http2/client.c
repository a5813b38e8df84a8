/* SPDX-License-Identifier: MIT */
#include "http2/client.h"

#include "base/check.h"
#include "base/num.h"
#include "http2/line.h"

/* RFC 7541 sections 2.3.3, 4.1 and 6. */
enum {
    INDEXED = 0x80,
    INDEXED_BITS = 7,
    INSERTED = 0x40,
    INSERTED_BITS = 6,
    NEVER = 0x10,
    LITERAL_BITS = 4,
    FIELD_OVERHEAD = 32,
};

/* ---- requests ---- */

/* A block that is being written. */
struct writer {
    struct buf *block;
    enum http2_client_form form;
    size_t table_bytes; /* that FIRST needs */
    unsigned stored;    /* fields that FIRST stores */
    unsigned place;     /* of the next of them */
};

/* The index of a field that the static table has whole, or 0. */
static unsigned static_index(enum http2_name name, struct span value)
{
    unsigned index = http2_table_name_index(name);

    for (; index > 0 && index <= HTTP2_TABLE_STATIC_COUNT; index++) {
        if (http2_table_static[index].id != name)
            return 0;
        if (span_equal(http2_table_static[index].value, value))
            return index;
    }
    return 0;
}

/* Credentials stay out of every table (RFC 7541 section 7.1.3). */
static bool is_secret(enum http2_name name)
{
    return name == HTTP2_NAME_AUTHORIZATION || name == HTTP2_NAME_PROXY_AUTHORIZATION;
}

/* Whether FIRST stores the field. Paths differ between requests, so they are not stored. */
static bool is_stored(enum http2_name name, struct span value)
{
    return name != HTTP2_NAME_METHOD && name != HTTP2_NAME_PATH && !is_secret(name) &&
           static_index(name, value) == 0;
}

static void add_literal(struct buf *block, unsigned mark, unsigned prefix_bits, struct span name,
                        struct span value)
{
    unsigned index = http2_table_name_index(http2_table_name(name));

    http2_hpack_add_integer(block, mark, prefix_bits, index);
    if (index == 0)
        http2_hpack_add_string(block, name);
    http2_hpack_add_string(block, value);
}

/* Adds a field whose name is in lower case. */
static void add_request_field(struct writer *writer, struct span name, struct span value)
{
    struct buf *block = writer->block;
    enum http2_name id = http2_table_name(name);
    unsigned index = static_index(id, value);

    if (index > 0) {
        http2_hpack_add_integer(block, INDEXED, INDEXED_BITS, index);
    } else if (writer->form == HTTP2_CLIENT_PLAIN || !is_stored(id, value)) {
        add_literal(block, is_secret(id) ? NEVER : 0, LITERAL_BITS, name, value);
    } else if (writer->form == HTTP2_CLIENT_FIRST) {
        add_literal(block, INSERTED, INSERTED_BITS, name, value);
    } else {
        writer->place++;
        http2_hpack_add_integer(block, INDEXED, INDEXED_BITS,
                                HTTP2_TABLE_STATIC_COUNT + 1 + writer->stored - writer->place);
    }
}

/* Counts a field in the table of FIRST. */
static void count_request_field(struct writer *writer, struct span name, struct span value)
{
    if (!is_stored(http2_table_name(name), value))
        return;
    writer->stored++;
    writer->table_bytes += name.len + value.len + FIELD_OVERHEAD;
}

/* Passes every line except Host to `use`, its name in lower case. Returns the value of Host. */
static struct span each_line(struct writer *writer, struct span lines,
                             void (*use)(struct writer *, struct span, struct span))
{
    struct span name, value, host = span_of("", 0);
    char lower[HTTP_FIELD_NAME_MAX];

    while (http2_line_next(&lines, &name, &value)) {
        if (name.len > sizeof(lower)) {
            writer->block->overflow = true;
            break;
        }
        for (size_t i = 0; i < name.len; i++)
            lower[i] = ascii_lower(name.at[i]);
        name.at = lower;
        if (span_equal(name, SPAN("host")))
            host = value;
        else if (use)
            use(writer, name, value);
    }
    return host;
}

size_t http2_client_add_request(struct buf *block, struct span head, struct span scheme,
                                enum http2_client_form form)
{
    struct writer writer = { .block = block, .form = form };
    const char *end = memchr(head.at, '\n', head.len);
    CHECK(end);
    struct span line = span_of(head.at, (size_t)(end - head.at));
    struct span lines = span_skip(head, line.len + 1);
    struct span method = span_take(&line, ' '), path = span_take(&line, ' ');
    struct span host = each_line(&writer, lines, NULL);

    count_request_field(&writer, SPAN(":scheme"), scheme);
    count_request_field(&writer, SPAN(":authority"), host);
    (void)each_line(&writer, lines, count_request_field);

    add_request_field(&writer, SPAN(":method"), method);
    add_request_field(&writer, SPAN(":scheme"), scheme);
    add_request_field(&writer, SPAN(":authority"), host);
    add_request_field(&writer, SPAN(":path"), path);
    (void)each_line(&writer, lines, add_request_field);
    return writer.table_bytes;
}

/* ---- responses ---- */

const bool http2_client_keeps[HTTP2_NAME_COUNT] = {
    [HTTP2_NAME_STATUS] = true,
    [HTTP2_NAME_CONTENT_LENGTH] = true,
};

void http2_client_begin(struct http2_client_response *response, struct http2_table *table,
                        struct span block, bool trailers)
{
    *response = (struct http2_client_response){ .content_length = HTTP2_CLIENT_NO_LENGTH,
                                                .trailers = trailers };
    response->broken = !http2_hpack_begin(&response->reader, table, block, NULL, NULL);
}

/* RFC 9113 section 8.3.2: exactly one, before all other fields, and none in trailers. */
static bool take_status(struct http2_client_response *response, struct span value)
{
    uint64_t status;

    if (response->trailers || response->regular || response->status != 0 || value.len != 3 ||
        !num_parse_u64(value, &status) || status < 100 || status > 599)
        return false;
    response->status = (uint16_t)status;
    return true;
}

static bool take_response_field(struct http2_client_response *response,
                                const struct http2_field *field)
{
    if (!field->valid)
        return false;
    if (field->id == HTTP2_NAME_STATUS)
        return take_status(response, field->value);
    response->regular = true;
    switch (field->id) {
    case HTTP2_NAME_METHOD:
    case HTTP2_NAME_SCHEME:
    case HTTP2_NAME_AUTHORITY:
    case HTTP2_NAME_PATH:
    case HTTP2_NAME_CONNECTION:
    case HTTP2_NAME_KEEP_ALIVE:
    case HTTP2_NAME_PROXY_CONNECTION:
    case HTTP2_NAME_TRANSFER_ENCODING:
    case HTTP2_NAME_UPGRADE:
        return false;
    case HTTP2_NAME_CONTENT_LENGTH:
        return response->trailers || (response->content_length == HTTP2_CLIENT_NO_LENGTH &&
                                      num_parse_u64(field->value, &response->content_length));
    default:
        return true;
    }
}

enum http2_client_result http2_client_decode(struct http2_client_response *response, char *storage)
{
    struct http2_field field;
    enum http2_hpack step;

    if (response->broken)
        return HTTP2_CLIENT_BROKEN;
    response->reader.value_storage = storage;
    response->reader.name_storage = storage + HTTP2_HPACK_TEXT_MAX;
    while ((step = http2_hpack_next(&response->reader, &field)) == HTTP2_HPACK_FIELD)
        response->malformed = !take_response_field(response, &field) || response->malformed;
    if (step == HTTP2_HPACK_GROW)
        return HTTP2_CLIENT_GROW;
    if (step == HTTP2_HPACK_BROKEN)
        return HTTP2_CLIENT_BROKEN;
    if (response->malformed || (response->status == 0 && !response->trailers))
        return HTTP2_CLIENT_MALFORMED;
    return HTTP2_CLIENT_DECODED;
}
