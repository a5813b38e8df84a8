/* SPDX-License-Identifier: MIT
 *
 * One 64-bit hash of bytes. With a secret random seed it keeps peers who pick
 * the keys from steering them into one bucket; with a fixed seed it names
 * contents (entity tags). Not for signatures.
 */
#pragma once

#include "base/span.h"

#include <stdint.h>

uint64_t hash_bytes(struct span bytes, uint64_t seed);
