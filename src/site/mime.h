/* SPDX-License-Identifier: MIT
 *
 * Media types by file name. The system's table (/etc/mime.types) is read once
 * at start; the built-in table (mime.def) fills what it lacks and wins where
 * the system's are known to be wrong or old (.mjs, .wasm, .webmanifest, ...).
 */
#pragma once

#include "base/span.h"

struct site_mime;

/* Reads `system_path` (NULL: /etc/mime.types) where it exists; never fails for
 * want of it. Returns NULL only without memory. Immutable afterwards: any thread. */
struct site_mime *site_mime_new(const char *system_path);
void site_mime_free(struct site_mime *mime);

/* The Content-Type for a file name: the last ending counts, case is ignored,
 * text types carry `; charset=utf-8` (text/ anything, JavaScript, SVG, XML,
 * JSON-like manifests excepted: JSON is UTF-8 by definition).
 * `application/octet-stream` when nothing is known. Lives as long as `mime`. */
struct span site_mime_type(const struct site_mime *mime, struct span file_name);
