/* SPDX-License-Identifier: MIT
 *
 * The priority that a client gives a response (RFC 9218 section 4), as the Priority field and the
 * PRIORITY_UPDATE frame carry it. It is a wish: http2/schedule.h says what the server makes of it.
 */
#pragma once

#include "base/span.h"

#include <stdint.h>

struct http2_priority {
    uint8_t urgency; /* 0 to 7; 0 is sent first */
    bool incremental;
};

enum { HTTP2_URGENCY_DEFAULT = 3, HTTP2_URGENCIES = 8 };

/* Reads a field value, which is a dictionary (RFC 8941 section 3.2). A parameter that is absent,
 * unknown, out of range or of another type counts as absent (RFC 9218 section 4). False: the value
 * is not a dictionary. *ret_priority is then unchanged. */
bool http2_priority_read(struct span value, struct http2_priority *ret_priority);
