/* SPDX-License-Identifier: MIT
 *
 * Early hints (RFC 8297): before the answer with a page, the links that a browser can use at once.
 * They are those of the answer's own Link fields.
 *
 * Only a request of HTTP/2 with `Sec-Fetch-Mode: navigate` gets them. Clients of HTTP/1.1 exist
 * that take a 103 for the answer.
 *
 * Private to session/.
 */
#pragma once

#include "session/answer.h"

/* Puts a 103 into the output if the site has `early-hints` and the answer to GET, 200 with this
 * file, has such links. The request is a navigation over HTTP/2. Nothing happens where the output
 * has no space beside that of the answer. */
void session_hints_add(struct session_exchange *x, const struct site_file *file);
