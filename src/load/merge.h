/* SPDX-License-Identifier: MIT
 *
 * Merges the runs of several machines, or of several processes on one machine, into one run.
 * Counts add, histograms add without loss. Percentiles are never averaged.
 */
#pragma once

#include "load/read.h"

/* Reads at least one file, and merges them as if all users had run in one place. The files must
 * have the same plan digest. 0; or -errno, and `ret_why` begins with the name of the wrong file.
 * End with load_read_done only after 0. */
MUST_USE int load_merge_files(const char *const *paths, size_t count, struct load_read *ret_read,
                              char ret_why[LOAD_WHY_MAX]);
