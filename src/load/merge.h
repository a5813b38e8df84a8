/* SPDX-License-Identifier: MIT
 *
 * Runs of several machines, or of several processes on one, as the one run that they
 * were: counts add, histograms add without loss. Percentiles are never averaged.
 */
#pragma once

#include "load/read.h"

/* Reads the files, of which there is at least one, and makes them one run, as if its users had
 * been in one place. They have to ask the same of the same server. 0; or -errno, and `ret_why`
 * begins with the name of the file that is to blame. End with load_read_done after 0 only. */
MUST_USE int load_merge_files(const char *const *paths, size_t count, struct load_read *ret_read,
                              char ret_why[LOAD_WHY_MAX]);
