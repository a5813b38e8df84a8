/* SPDX-License-Identifier: MIT
 *
 * The head of one response, and how its body is delimited (RFC 9112 sections 4
 * to 6), as a client reads them: in place, nothing copied or allocated.
 *
 * As strict as http/request.h about form, for a client that takes the wrong byte
 * for a body's end counts answers that never came: lines end with CRLF, no
 * folding, no space before a colon, no two lengths that differ.
 */
#pragma once

#include "http/body.h"
#include "http/request.h"

enum http_response_fault {
    HTTP_RESPONSE_FORM, /* these bytes are no head of HTTP/1, or one past HTTP_RESPONSE_HEAD_MAX */
    HTTP_RESPONSE_FRAMING /* a head, but where its body ends can be read in two ways or in none */
};

/* One parsed head. Zero it before the first call. */
struct http_response {
    uint16_t status;       /* 100 to 599 */
    uint16_t head_len;     /* bytes of the head with its empty line; set with HTTP_PARSED */
    uint8_t minor;         /* HTTP/1.minor: 0, or 1 for later ones too */
    bool persists;         /* another response may follow on this connection */
    uint8_t fault;         /* enum http_response_fault; set with HTTP_PARSE_FAILED */
    uint8_t marks;         /* parser's own: what the fields said */
    uint16_t next_line;    /* parser's own: offset where it goes on */
    struct http_body body; /* set with HTTP_PARSED; read it with http_body_read */
    uint64_t length;       /* parser's own: Content-Length */
};

/* Parses the head that begins at `bytes.at`; call it again after HTTP_PARSE_MORE as
 * http_request_parse. A head cut anywhere gives the same end result. `head_method`: it answers a
 * HEAD, and has no body whatever it says.
 *
 * A status of 1xx other than 101 is an interim one: it has no body, and the next head follows. (101
 * answers an Upgrade, which this client never asks for: a fault.) */
enum http_parse http_response_parse(struct http_response *response, struct span bytes,
                                    bool head_method);

static inline bool http_response_is_interim(const struct http_response *response)
{
    return response->status < 200;
}
