/* SPDX-License-Identifier: MIT
 *
 * The form of a media type (RFC 9110 section 8.3.1), and the limits of the tables that map endings
 * of names to types. The tables themselves are in site/mime.h.
 */
#pragma once

#include "base/span.h"

enum {
    MEDIATYPE_MAX = 127, /* RFC 6838 section 4.2 allows 127 for each half; real ones are shorter */
    MEDIATYPE_ENDING_MAX = 31 /* no known table has a longer one */
};

/* Whether the text is two tokens with a slash between them, at most MEDIATYPE_MAX bytes, and so has
 * no parameter. */
bool mediatype_valid(struct span text);
