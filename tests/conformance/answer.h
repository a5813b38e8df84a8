/* SPDX-License-Identifier: MIT
 *
 * Reads the answers of a connection, and compares them with what a case expects.
 * It has its own reader of responses on purpose, and shares no code with the
 * writer.
 */
#pragma once

#include "cases.h"
#include "fixture.h"

/* The state of a connection after the last byte. */
enum answer_state {
    ANSWER_OPEN,    /* waiting for another request */
    ANSWER_WAITING, /* waiting for the rest of a request */
    ANSWER_CLOSED
};

const char *answer_state_name(enum answer_state state);

/* Compares `bytes`, the whole output of a connection, with what the case expects, and
 * each answer with the rules for every answer. Writes a line to `out` for each
 * difference. Returns their number. */
MUST_USE unsigned answer_check(const struct cases_case *c, const struct fixture *fixture,
                               const struct escape_tags *tags, struct span bytes,
                               enum answer_state state, FILE *out);

/* The value of a field in the first answer of `bytes`. Empty when it has none. */
struct span answer_first_field(struct span bytes, struct span name);
