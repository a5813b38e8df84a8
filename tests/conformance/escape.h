/* SPDX-License-Identifier: MIT
 *
 * The written form of bytes in the case files (tests/conformance/README.md):
 * escapes, repetitions, and tags that only the running server knows.
 */
#pragma once

#include "base/check.h"
#include "base/span.h"

#include <stdio.h>

/* The source of the text for `{etag NAME}`. */
struct escape_tags {
    /* The entity tag of the file at `path` below the root; an empty span without a tag. */
    struct span (*etag)(void *context, struct span path);
    void *context;
};

/* Writes the bytes that `text` stands for to `out`. Without `tags` (NULL)
 * `{etag}` is an error. Returns NULL, or a sentence about the error. */
MUST_USE const char *escape_expand(FILE *out, struct span text, const struct escape_tags *tags);

/* The same into new memory, with a NUL after it. The caller frees *ret_bytes. */
MUST_USE const char *escape_bytes(struct span text, const struct escape_tags *tags,
                                  char **ret_bytes, size_t *ret_len);

/* Writes bytes back in readable form: CR LF as \r\n and a line break, others as \xHH.
 * Stops after `most` bytes. */
void escape_show(FILE *out, struct span bytes, size_t most);
