/* SPDX-License-Identifier: MIT
 *
 * `weir --version`: what this program was made from, and with what it runs.
 */
#pragma once

#include <stdio.h>

/* Prints "weir VERSION", and a line each for the commit, the compiler, the libraries with the
 * versions that are loaded, and the features of this build. */
void program_version_print(FILE *out);
