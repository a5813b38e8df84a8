/* SPDX-License-Identifier: MIT
 *
 * Media types by file name. The system's table (/etc/mime.types) is read once at the start. The
 * built-in table (mime.def) fills its gaps, and wins where the system's entries are known to be
 * wrong or old (.mjs, .wasm, .webmanifest and others).
 */
#pragma once

#include "base/span.h"

struct site_mime;

/* Reads `system_path` (NULL: /etc/mime.types) if it exists. Returns NULL only without memory. The
 * table is constant afterwards, for any thread. */
struct site_mime *site_mime_new(const char *system_path);
void site_mime_free(struct site_mime *mime);

/* The Content-Type for a file name, by its last ending in any case. Text types (text/..., SVG, XML)
 * carry `; charset=utf-8`; JSON does not need it. An unknown ending gives
 * `application/octet-stream`. The span is valid as long as `mime`. */
struct span site_mime_type(const struct site_mime *mime, struct span file_name);
