/* SPDX-License-Identifier: MIT
 *
 * `weir check` for the certificates of a configuration. For each it reports whether the key belongs
 * to it, which hosts of its site it does not cover, what clients may refuse, and when it ends.
 */
#pragma once

#include "config/read.h"

#include <stdio.h>

/* Prints a line for each certificate that can be used on standard output, and errors and warnings
 * on standard error. Adds to both counts. */
void program_certificates_check(const struct config_store *store, unsigned *errors,
                                unsigned *warnings);
