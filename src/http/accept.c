/* SPDX-License-Identifier: MIT
 *
 * Proactive negotiation (RFC 9110 section 12): weights from Accept-Encoding and Accept. An
 * element that does not follow the grammar is ignored, so that it can never make an answer
 * acceptable.
 */
#include "http/accept.h"

#include "base/base64.h"
#include "base/check.h"
#include "http/list.h"

enum {
    WEIGHT_NONE = -1,
    WEIGHT_MAX = 1000,
    FIT_NAMED = 3, /* a range that is the type itself */
};

/* One element of either field. */
struct choice {
    struct span name;
    int weight;
    bool narrowed; /* it has parameters that no answer of this server meets */
};

struct span http_accept_coding_name(enum http_coding coding)
{
    switch (coding) {
    case HTTP_CODING_BR:
        return SPAN("br");
    case HTTP_CODING_ZSTD:
        return SPAN("zstd");
    case HTTP_CODING_GZIP:
        return SPAN("gzip");
    case HTTP_CODING_IDENTITY:
    case HTTP_CODING_COUNT:
        break;
    }
    CHECK(coding == HTTP_CODING_IDENTITY);
    return SPAN("");
}

struct span http_accept_coding_suffix(enum http_coding coding)
{
    switch (coding) {
    case HTTP_CODING_BR:
        return SPAN(".br");
    case HTTP_CODING_ZSTD:
        return SPAN(".zst");
    case HTTP_CODING_GZIP:
        return SPAN(".gz");
    case HTTP_CODING_IDENTITY:
    case HTTP_CODING_COUNT:
        break;
    }
    CHECK(coding == HTTP_CODING_IDENTITY);
    return SPAN("");
}

/* A qvalue (RFC 9110 section 12.4.2) in thousandths. */
static bool read_weight(struct span text, int *ret_weight)
{
    if (text.len < 1 || text.len > 5 || (text.at[0] != '0' && text.at[0] != '1'))
        return false;
    if (text.len > 1 && text.at[1] != '.')
        return false;
    int weight = (text.at[0] - '0') * WEIGHT_MAX;
    int place = WEIGHT_MAX / 10;
    for (size_t i = 2; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
        weight += (text.at[i] - '0') * place;
        place /= 10;
    }
    if (weight > WEIGHT_MAX)
        return false;
    *ret_weight = weight;
    return true;
}

/* Takes the text before the next `;` outside quotes, trimmed, and the `;`. False when a quoted
 * string is not closed. */
static bool take_until_semicolon(struct span *text, struct span *ret_piece)
{
    bool quoted = false;
    size_t len = 0;
    while (len < text->len && (quoted || text->at[len] != ';')) {
        if (text->at[len] == '"')
            quoted = !quoted;
        else if (quoted && text->at[len] == '\\' && len + 1 < text->len)
            len++;
        len++;
    }
    if (quoted)
        return false;
    *ret_piece = span_trim(span_first(*text, len));
    *text = span_skip(*text, len < text->len ? len + 1 : len);
    return true;
}

/* Reads one parameter, `name=value`. */
static bool read_parameter(struct span parameter, struct choice *choice)
{
    size_t equals = 0;
    while (equals < parameter.len && parameter.at[equals] != '=')
        equals++;
    if (equals == 0 || equals == parameter.len)
        return false;
    struct span name = span_first(parameter, equals);
    struct span value = span_skip(parameter, equals + 1);

    if (span_equal_nocase(name, SPAN("q")))
        return read_weight(value, &choice->weight);

    /* All text that this server makes is UTF-8, so this parameter excludes nothing. */
    bool utf8 =
        span_equal_nocase(name, SPAN("charset")) &&
        (span_equal_nocase(value, SPAN("utf-8")) || span_equal_nocase(value, SPAN("\"utf-8\"")));
    if (!utf8)
        choice->narrowed = true;
    return true;
}

/* `name *( OWS ";" OWS [ parameter ] )`. q may be any of the parameters. */
static bool read_choice(struct span element, struct choice *ret_choice)
{
    struct choice choice = { .weight = WEIGHT_MAX };
    if (!take_until_semicolon(&element, &choice.name) || choice.name.len == 0)
        return false;
    while (element.len > 0) {
        struct span parameter;
        if (!take_until_semicolon(&element, &parameter))
            return false;
        if (parameter.len > 0 && !read_parameter(parameter, &choice))
            return false;
    }
    *ret_choice = choice;
    return true;
}

/* The coding with this name, or HTTP_CODING_COUNT. */
static enum http_coding coding_of(struct span name)
{
    if (span_equal_nocase(name, SPAN("identity")))
        return HTTP_CODING_IDENTITY;
    if (span_equal_nocase(name, SPAN("x-gzip"))) /* RFC 9110 section 8.4.1.3 */
        return HTTP_CODING_GZIP;
    for (int coding = 0; coding < HTTP_CODING_IDENTITY; coding++)
        if (span_equal_nocase(name, http_accept_coding_name((enum http_coding)coding)))
            return (enum http_coding)coding;
    return HTTP_CODING_COUNT;
}

struct http_accept_weights http_accept_weigh(struct span accept_encoding)
{
    struct http_accept_weights weights = { { WEIGHT_NONE, WEIGHT_NONE, WEIGHT_NONE, WEIGHT_NONE } };
    int others = WEIGHT_NONE; /* the weight of `*`, for codings that are not listed */
    struct span element;
    while (http_list_next(&accept_encoding, &element)) {
        struct choice choice;
        if (!read_choice(element, &choice) || choice.narrowed)
            continue;
        enum http_coding coding = coding_of(choice.name);
        int *weight = &others;
        if (coding != HTTP_CODING_COUNT)
            weight = &weights.of[coding];
        else if (!span_equal(choice.name, SPAN("*")))
            continue;
        if (choice.weight > *weight)
            *weight = choice.weight;
    }
    for (int coding = 0; coding < HTTP_CODING_COUNT; coding++)
        if (weights.of[coding] == WEIGHT_NONE)
            weights.of[coding] = others;
    return weights;
}

int http_accept_named_weight(struct span accept_encoding, struct span name)
{
    int weight = WEIGHT_NONE;
    struct span element;
    while (http_list_next(&accept_encoding, &element)) {
        struct choice choice;
        if (read_choice(element, &choice) && !choice.narrowed &&
            span_equal_nocase(choice.name, name) && choice.weight > weight)
            weight = choice.weight;
    }
    return weight;
}

bool http_accept_dictionary(struct span field, unsigned char ret_digest[HTTP_ACCEPT_DIGEST])
{
    enum { CHARS = BASE64_CHARS(HTTP_ACCEPT_DIGEST) };
    size_t len;
    return field.len == CHARS + 2 && field.at[0] == ':' && field.at[field.len - 1] == ':' &&
           base64_decode(span_of(field.at + 1, CHARS), ret_digest, HTTP_ACCEPT_DIGEST, &len) &&
           len == HTTP_ACCEPT_DIGEST;
}

unsigned http_accept_best(const struct http_accept_weights *weights, unsigned available)
{
    unsigned best = 1u << HTTP_CODING_IDENTITY;
    int best_weight = 0;
    for (int coding = 0; coding < HTTP_CODING_COUNT; coding++) {
        const unsigned bit = 1u << coding;
        const int weight = (available & bit) != 0 ? weights->of[coding] : WEIGHT_NONE;
        if (weight > best_weight)
            best = bit;
        else if (weight == best_weight && weight > 0)
            best |= bit;
        best_weight = weight > best_weight ? weight : best_weight;
    }
    return best;
}

enum http_coding http_accept_coding(bool present, struct span accept_encoding, unsigned available)
{
    if (!present)
        return HTTP_CODING_IDENTITY;
    const struct http_accept_weights weights = http_accept_weigh(accept_encoding);
    return (enum http_coding)__builtin_ctz(http_accept_best(&weights, available));
}

/* How specifically a media range matches `type`: 3 for the type itself, 2 for its type with any
 * subtype, 1 for any type, 0 for no match. */
static int fit_of(struct span range, struct span type)
{
    if (span_equal_nocase(range, type))
        return FIT_NAMED;
    if (span_equal(range, SPAN("*/*")))
        return 1;
    size_t slash = 0;
    while (slash < type.len && type.at[slash] != '/')
        slash++;
    if (range.len != slash + 2 || !span_ends(range, SPAN("/*")))
        return 0;
    return span_equal_nocase(span_first(range, slash), span_first(type, slash)) ? 2 : 0;
}

/* What a field says about a type. */
struct opinion {
    int fit; /* of the most specific range; 0: no range matches */
    int weight;
    unsigned place; /* of that range in the field */
    bool empty;     /* the field has no element */
};

static struct opinion opinion_of(struct span accept, struct span type)
{
    struct opinion opinion = { .empty = true };
    struct span element;
    for (unsigned place = 0; http_list_next(&accept, &element); place++) {
        opinion.empty = false;
        struct choice choice;
        if (!read_choice(element, &choice) || choice.narrowed)
            continue;
        const int fit = fit_of(choice.name, type);
        if (fit == 0 || fit < opinion.fit ||
            (fit == opinion.fit && choice.weight <= opinion.weight))
            continue;
        opinion = (struct opinion){ fit, choice.weight, place, false };
    }
    return opinion;
}

int http_accept_weight(bool present, struct span accept, struct span type)
{
    const struct opinion opinion = opinion_of(present ? accept : SPAN(""), type);
    return opinion.empty ? WEIGHT_MAX : opinion.weight;
}

bool http_accept_prefers(struct span accept, struct span type, struct span other)
{
    const struct opinion a = opinion_of(accept, type), b = opinion_of(accept, other);
    if (a.weight != b.weight || a.weight == 0)
        return a.weight > b.weight;
    return a.fit == FIT_NAMED && (b.fit != FIT_NAMED || a.place < b.place);
}
