/* SPDX-License-Identifier: MIT
 *
 * Whether this machine can run the model `uring`.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Makes the ring that the model needs, and ends it at once. Where that fails, what failed and
 * why, as far as can be known, stands in `why`. Any process, at any time before it has threads. */
bool model_uring_possible(char *why, size_t size);
