/* SPDX-License-Identifier: MIT
 *
 * Growing text, for pages of unknown length, with the escapes that a listing needs. Names may be
 * any bytes. The result is always well-formed UTF-8, in HTML and in JSON. Private to site/.
 */
#pragma once

#include "base/span.h"

#include <stdint.h>

struct site_text {
    char *at; /* from malloc; the owner frees it */
    size_t len, size;
    bool failed; /* memory ran out: nothing more is added */
};

/* Adds `count` bytes of any value. */
void site_text_reserve(struct site_text *text, size_t count);

void site_text_add(struct site_text *text, struct span s);
void site_text_add_u64(struct site_text *text, uint64_t value);

/* Escapes for HTML text or a quoted attribute. Controls, characters that reorder the text behind
 * them, and bytes that are not UTF-8 become U+FFFD. */
void site_text_add_html(struct site_text *text, struct span s);

/* Escapes for the inside of a JSON string (RFC 8259 section 7). Bytes that are not UTF-8 become
 * U+FFFD. */
void site_text_add_json(struct site_text *text, struct span s);

/* Percent-encodes one segment of a path: all bytes but unreserved characters (RFC 3986 section
 * 2.3). */
void site_text_add_segment(struct site_text *text, struct span s);

/* 2026-11-21T08:00:00Z (RFC 3339); if `brief`, 2026-11-21 08:00. Times are clamped to the years 0
 * to 9999. */
void site_text_add_time(struct site_text *text, int64_t seconds, bool brief);
