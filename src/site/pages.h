/* SPDX-License-Identifier: MIT
 *
 * Whether the pages of an open file are in memory, and reading those that are not. It keeps no
 * state: what a thread remembers, and who waits, is in session/pages.h.
 */
#pragma once

#include "base/check.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether bytes [at, end) can be read without waiting for the disk. It is judged by a byte in each
 * SITE_PAGES_PROBE_BYTES, with one system call for each. The kernel reads and evicts about so much
 * at a time. A file system that cannot say has no page in memory, unless all its files are (tmpfs).
 * True for a file that cannot be read: reading reports the error. */
enum { SITE_PAGES_PROBE_BYTES = 128 * 1024 };
bool site_pages_in_memory(int fd, uint64_t at, uint64_t end);

/* Reads bytes [at, end) into the kernel's memory, and waits for the disk. The attributes of the
 * file are read behind them, because they are compared before its last bytes are sent. The caller
 * finds an error when it reads. */
void site_pages_read(int fd, uint64_t at, uint64_t end);

/* A second descriptor of the open file, which the caller closes with site_pages_close, or -1. */
MUST_USE int site_pages_open(int fd);
void site_pages_close(int fd);
