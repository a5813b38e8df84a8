/* SPDX-License-Identifier: MIT
 *
 * Content negotiation (RFC 9110 section 12): which content coding to send, and
 * whether a listing is wanted as JSON rather than HTML.
 */
#pragma once

#include "base/span.h"

/* Content codings this server can send, best first when weights are equal. */
enum http_coding {
    HTTP_CODING_BR,
    HTTP_CODING_ZSTD,
    HTTP_CODING_GZIP,
    HTTP_CODING_IDENTITY,
    HTTP_CODING_COUNT
};

/* The coding's name in Content-Encoding ("" for identity) and the ending of a
 * file that holds it (".br", ".zst", ".gz", ""). Static. */
struct span http_coding_name(enum http_coding coding);
struct span http_coding_suffix(enum http_coding coding);

/* Picks the best of the codings in `available` (bit 1 << coding) for an
 * Accept-Encoding field (RFC 9110 section 12.5.3). Highest weight wins; among
 * equal weights the order of enum http_coding. An absent field (`present`
 * false) or an empty one means identity. Identity is used as the last resort
 * even when it is excluded: a file sent plainly serves better than a 406.
 * Malformed elements are passed over; of a coding listed twice the higher weight
 * counts. For a field in several lines give them joined by commas. */
enum http_coding http_accept_coding(bool present, struct span accept_encoding, unsigned available);

/* The weight, 0 to 1000, that an Accept field gives a media type `type/subtype`
 * (RFC 9110 section 12.5.1): the most specific matching range counts. 1000 when
 * the field is absent or empty, 0 when no range matches. A range with parameters
 * is about another representation than `type`, and does not match, unless they
 * only ask for UTF-8. */
int http_accept_weight(bool present, struct span accept, struct span type);
