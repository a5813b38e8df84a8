/* SPDX-License-Identifier: MIT
 *
 * From the options and URLs of a command line to the plan of a load. Every mistake is reported in
 * one line.
 */
#pragma once

#include "load/option.h"

/* Sets the defaults. false: out of memory. */
MUST_USE bool load_parse_begin(struct load_reading *reading);

/* Adds a URL of the command line, in order with the options. */
MUST_USE bool load_parse_url(struct load_reading *reading, const char *url,
                             struct option_refusal *refusal);

/* Checks that the options agree, and makes the plan in `reading` complete. The plan borrows the
 * words of the command line. */
MUST_USE bool load_parse_finish(struct load_reading *reading, struct option_refusal *refusal);

/* Frees the plan and the rest. */
void load_parse_done(struct load_reading *reading);
