/* SPDX-License-Identifier: MIT
 *
 * Media types by file name, from a table in the program (mime.def). So a file has the same type on
 * every machine. A site can name types of its own, and have the system's table fill the gaps of the
 * built-in one.
 */
#pragma once

#include "base/span.h"

#include <stdint.h>

struct site_mime;

/* A type by its number, which is shorter than a span. The numbers of endings follow these. */
enum { SITE_MIME_UNKNOWN, SITE_MIME_HTML, SITE_MIME_JSON, SITE_MIME_FIRST };

/* Makes a table. `types`: lines of a type and its endings, as in "text/x-rust rs", NULL at the end,
 * which win over all others; NULL: none. `system_path`: the system's table, which is read if it
 * exists; NULL: it is not used. Returns NULL only without memory. The table is constant afterwards,
 * for any thread. */
struct site_mime *site_mime_new(const char *const *types, const char *system_path);
void site_mime_free(struct site_mime *mime);

/* The Content-Type for a file name, by its last ending in any case. Text types (text/..., SVG, XML)
 * carry `; charset=utf-8`; JSON does not need it. An unknown ending gives
 * `application/octet-stream`. The span is valid as long as `mime`. */
struct span site_mime_type(const struct site_mime *mime, struct span file_name);

/* The same as a number. Each ending has its own. */
uint16_t site_mime_number(const struct site_mime *mime, struct span file_name);
struct span site_mime_of_number(const struct site_mime *mime, uint16_t number);
