/* SPDX-License-Identifier: MIT
 *
 * Content negotiation (RFC 9110 section 12): which content coding to send, and how much the
 * client wants a media type.
 */
#pragma once

#include "base/span.h"

/* The content codings that this server can send. */
enum http_coding {
    HTTP_CODING_BR,
    HTTP_CODING_ZSTD,
    HTTP_CODING_GZIP,
    HTTP_CODING_IDENTITY,
    HTTP_CODING_COUNT
};

/* The coding's name in Content-Encoding ("" for identity), and the suffix of a file that holds
 * it (".br", ".zst", ".gz", ""). Static. */
struct span http_accept_coding_name(enum http_coding coding);
struct span http_accept_coding_suffix(enum http_coding coding);

/* The weights, 0 to 1000, that an Accept-Encoding field gives the codings (RFC 9110 section
 * 12.5.3). A coding that the field does not name, and no `*` covers, has a negative weight.
 * Malformed elements are ignored. If a coding is listed twice, its higher weight counts. Join the
 * lines of a field with commas before the call. */
struct http_accept_weights {
    int of[HTTP_CODING_COUNT];
};
struct http_accept_weights http_accept_weigh(struct span accept_encoding);

/* The weight, 0 to 1000, that the field gives a coding with this name by itself: `*` does not
 * count. Negative: it does not name the coding. */
int http_accept_named_weight(struct span accept_encoding, struct span name);

/* Reads Available-Dictionary, `:BASE64:` (RFC 9842 section 2.2): the SHA-256 of the response that
 * the client can use as a dictionary. False: it is no SHA-256. */
enum { HTTP_ACCEPT_DIGEST = 32 };
bool http_accept_dictionary(struct span field, unsigned char ret_digest[HTTP_ACCEPT_DIGEST]);

/* The codings in `available` (bits 1 << coding) that share the highest weight. It is identity alone
 * when no weight is above 0, because a plain file is more useful than a 406. */
unsigned http_accept_best(const struct http_accept_weights *weights, unsigned available);

/* Chooses one of the codings in `available` (bits 1 << coding): the first of enum http_coding among
 * those with the highest weight. An absent (`present` false) or empty field means identity. It is
 * the last resort even when the client excludes it. */
enum http_coding http_accept_coding(bool present, struct span accept_encoding, unsigned available);

/* The weight, 0 to 1000, that an Accept field gives a media type `type/subtype` (RFC 9110
 * section 12.5.1). The most specific matching range counts. The weight is 1000 when the field is
 * absent or empty, and 0 when no range matches. A range with parameters is about another
 * representation and does not match, except a parameter that selects UTF-8. */
int http_accept_weight(bool present, struct span accept, struct span type);

/* Whether an Accept field prefers `type` to `other`: its weight is higher, or it is the same and
 * the field names `type`, and does not name `other` before it. A range with a star names no type.
 * An empty field prefers nothing. */
bool http_accept_prefers(struct span accept, struct span type, struct span other);
