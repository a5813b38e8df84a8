/* SPDX-License-Identifier: MIT
 *
 * The head of one response, and the framing of its body (RFC 9112 sections 4 to 6), as a client
 * reads them. It parses in place, and copies and allocates nothing.
 *
 * It is as strict about form as http/request.h. A client that ends a body at the wrong byte
 * would count answers that never arrived. So lines end with CRLF, and there is no folding, no
 * space before a colon, and no second length that differs.
 */
#pragma once

#include "http/body.h"
#include "http/request.h"

enum http_response_fault {
    HTTP_RESPONSE_FORM,   /* not a head of HTTP/1, or one above HTTP_RESPONSE_HEAD_MAX */
    HTTP_RESPONSE_FRAMING /* the end of its body is ambiguous or unknown */
};

/* One parsed head. Zero it before the first call. */
struct http_response {
    uint16_t status;       /* 100 to 599 */
    uint16_t head_len;     /* bytes of the head with its empty line; set with HTTP_PARSED */
    uint8_t minor;         /* HTTP/1.minor: 0, or 1 for later minors too */
    bool persists;         /* another response may follow on this connection */
    uint8_t fault;         /* enum http_response_fault; set with HTTP_PARSE_FAILED */
    uint8_t marks;         /* private: what the fields said */
    uint16_t next_line;    /* private: offset where the parser continues */
    struct http_body body; /* set with HTTP_PARSED; read it with http_body_read */
    uint64_t length;       /* private: Content-Length */
};

/* Parses the head that begins at `bytes.at`. Call it again after HTTP_PARSE_MORE, as
 * http_request_parse. Any split of the head gives the same result. `head_method`: the response
 * answers a HEAD, so it has no body, whatever its fields say.
 *
 * A status of 1xx other than 101 is an interim response. It has no body, and the next head
 * follows. A 101 would answer an Upgrade, which this client never requests: it is a fault. */
enum http_parse http_response_parse(struct http_response *response, struct span bytes,
                                    bool head_method);

static inline bool http_response_is_interim(const struct http_response *response)
{
    return response->status < 200;
}
