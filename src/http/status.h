/* SPDX-License-Identifier: MIT
 *
 * The status codes that this server sends (RFC 9110 section 15), from status.def.
 */
#pragma once

#include "base/span.h"

enum http_status {
#define STATUS(code, name, reason, sentence) HTTP_##name = code,
#include "http/status.def"
#undef STATUS
};

/* `HTTP/1.1 200 OK\r\n`: a static string; CHECKs that the code is in the table. */
struct span http_status_line(enum http_status status);

/* A sentence for people, which is empty for successes. Static. */
struct span http_status_sentence(enum http_status status);
