/* SPDX-License-Identifier: MIT
 *
 * The options of a load, as a table.
 */
#pragma once

#include "load/reading.h"

/* The rows read into a struct load_reading. NULL name at the end. */
extern const struct option load_option_table[];
