/* SPDX-License-Identifier: MIT
 *
 * Input that came before the session had room for it. A ring receives without
 * being asked anew, so a client that sends its next request before it has read
 * the last answer is heard too early; these bytes wait here, not in a buffer of
 * the ring, which others need.
 */
#pragma once

#include "base/span.h"

#include <stdbool.h>

/* More than the kernel takes from one socket before it acts on a cancel: 32 buffers of the ring,
 * twice. */
enum { RINGEARLY_MAX = 512 * 1024 };

struct model_ringearly;

/* Puts bytes behind those that wait in *early, which is NULL when there are none. Borrows `in`.
 * False when there is no memory, or they would be more than RINGEARLY_MAX: all is as before. */
bool model_ringearly_keep(struct model_ringearly **early, struct span in);

/* The bytes that wait; lends until the next call. */
struct span model_ringearly_bytes(const struct model_ringearly *early);

/* Drops so many from the front; *early becomes NULL behind the last. */
void model_ringearly_drop(struct model_ringearly **early, size_t count);

void model_ringearly_free(struct model_ringearly *early);
