/* SPDX-License-Identifier: MIT
 *
 * Whether this machine can run the model `uring`.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Makes the ring that the model needs, and closes it. When that fails, `why` names the call that
 * failed, and the cause as far as it is known. Call it before the process has threads. */
bool model_uring_possible(char *why, size_t size);
