/* SPDX-License-Identifier: MIT
 *
 * One 64-bit hash of bytes. With a secret random seed, a peer that chooses the keys cannot steer
 * them into one bucket. With a fixed seed, the hash names contents (entity tags). Not for
 * signatures.
 */
#pragma once

#include "base/span.h"

#include <stdint.h>

uint64_t hash_bytes(struct span bytes, uint64_t seed);
