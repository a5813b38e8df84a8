/* SPDX-License-Identifier: MIT
 *
 * Input that arrives while the session has no capacity for it. A ring goes on receiving, so the
 * bytes of a client that sends its next request before it has read the last answer arrive too
 * early. They wait here, because the ring's buffers are shared by all its connections.
 */
#pragma once

#include "base/span.h"

#include <stdbool.h>

/* As much as the kernel can take from one socket before it acts on a cancel: all small buffers of a
 * ring. From Linux 6.8 on it takes 32 of them, which are 32 KiB. */
enum { RINGPENDING_MAX = 256 * 1024 };

struct model_ringpending;

/* Appends a copy of `in` to *pending, which is NULL when nothing waits. False when there is no
 * memory, or more than RINGPENDING_MAX bytes would wait: nothing has changed. */
bool model_ringpending_keep(struct model_ringpending **pending, struct span in);

/* The bytes that wait; lends until the next call. */
struct span model_ringpending_bytes(const struct model_ringpending *pending);

/* Drops the first `count` bytes. After the last, *pending becomes NULL. */
void model_ringpending_drop(struct model_ringpending **pending, size_t count);

void model_ringpending_free(struct model_ringpending *pending);
