/* SPDX-License-Identifier: MIT
 *
 * Text that grows, for pages whose length nobody knows beforehand, with the
 * escapes that a listing needs. Names may be any bytes; what comes out is always
 * well-formed UTF-8 in HTML and JSON. Private to site/.
 */
#pragma once

#include "base/span.h"

#include <stdint.h>

struct site_text {
    char *at; /* from malloc; whoever takes it frees it */
    size_t len, size;
    bool failed; /* no memory: nothing is added any more */
};

void site_text_add(struct site_text *text, struct span s);
void site_text_add_u64(struct site_text *text, uint64_t value);

/* Escaped for an HTML text or a quoted attribute; bytes that are not UTF-8, and
 * controls, become U+FFFD. */
void site_text_add_html(struct site_text *text, struct span s);

/* Escaped for the inside of a JSON string (RFC 8259 section 7); bytes that are
 * not UTF-8 become U+FFFD. */
void site_text_add_json(struct site_text *text, struct span s);

/* Percent-encoded as one segment of a path: everything but unreserved
 * characters (RFC 3986 section 2.3), byte by byte. */
void site_text_add_segment(struct site_text *text, struct span s);

/* 2026-11-21T08:00:00Z (RFC 3339), or with a space and without seconds and zone
 * where `brief`. Years 0 to 9999; times outside are clamped to them. */
void site_text_add_time(struct site_text *text, int64_t seconds, bool brief);
