/* SPDX-License-Identifier: MIT
 *
 * The second spelling of a case: the same requests over HTTP/2, and the comparison of the answers
 * with those of HTTP/1.1. README.md says which cases have no second spelling. libnghttp2 writes the
 * client's frames and reads the server's, so both are checked by code that is not ours.
 */
#pragma once

#include "cases.h"

struct spelling;

/* The client of one connection that sends the requests of the case. NULL: the case has no second
 * spelling. */
struct spelling *spelling_new(const struct cases_case *c);

/* All bytes that the client sends. It waits for nothing, so its windows are as large as possible.
 * Lent until spelling_free. */
struct span spelling_input(const struct spelling *s);

/* Compares the server's output with the answers that the same case got over HTTP/1.1. Writes a line
 * to `out` for each difference. Returns their number. May be called once. */
MUST_USE unsigned spelling_check(struct spelling *s, struct span output, struct span first,
                                 FILE *out);

/* Accepts NULL. */
void spelling_free(struct spelling *s);
