/* SPDX-License-Identifier: MIT
 *
 * Reads the answers that a connection gave and compares them with what a case
 * expects. It has its own reader of responses on purpose: it shares nothing
 * with the code that wrote them.
 */
#pragma once

#include "cases.h"
#include "fixture.h"

/* How a connection stood when everything had been sent. */
enum answer_state {
    ANSWER_OPEN,    /* waiting for another request */
    ANSWER_WAITING, /* waiting for the rest of one */
    ANSWER_CLOSED
};

const char *answer_state_name(enum answer_state state);

/* Compares `bytes`, all that a connection sent, with the case's expectation, and
 * each answer with what every answer must be. Writes a line to `out` for each
 * difference; returns how many there were. */
MUST_USE unsigned answer_check(const struct cases_case *c, const struct fixture *fixture,
                               const struct escape_tags *tags, struct span bytes,
                               enum answer_state state, FILE *out);

/* The value of a field in the first answer of `bytes`; empty when it has none. */
struct span answer_first_field(struct span bytes, struct span name);
