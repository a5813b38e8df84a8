/* SPDX-License-Identifier: MIT
 *
 * Service level objectives: what a step has to reach, as somebody writes it,
 * `p99<10ms,errors<0.1%,throughput>1000,mean<=2ms`, and whether it has. Pure.
 *
 * Each is NAME SIGN LIMIT. Names: `p` with a percentage (p50, p99.9), `mean`, `max`:
 * a duration with its unit, us to h; of paced and open loops that from when
 * the request should have begun. `errors`: the share of requests that failed, an
 * answer of status 400 or above being a failure, as 0.1% or 0.001. `throughput`:
 * requests answered with success, a second. SIGN: < <= > >=.
 */
#pragma once

#include "load/result.h"

enum { LOAD_SLOS_MAX = 16, LOAD_SLO_TEXT_MAX = 32, LOAD_SLO_WHY_MAX = 128 };

enum load_slo_of {
    LOAD_SLO_QUANTILE,
    LOAD_SLO_MEAN,
    LOAD_SLO_MAX,
    LOAD_SLO_ERRORS,
    LOAD_SLO_THROUGHPUT
};
enum load_slo_order { LOAD_SLO_BELOW, LOAD_SLO_AT_MOST, LOAD_SLO_ABOVE, LOAD_SLO_AT_LEAST };

struct load_slo {
    enum load_slo_of of;
    double part; /* of a quantile, 0 to 1 */
    enum load_slo_order order;
    double limit; /* nanoseconds, a share, or answers a second */
    char text[LOAD_SLO_TEXT_MAX];
};

struct load_slos {
    unsigned count;
    struct load_slo slo[LOAD_SLOS_MAX];
};

/* Adds what `text` asks for. Else false, and `ret_why` says what is wrong, in one line. */
MUST_USE bool load_slos_parse(const char *text, struct load_slos *slos,
                              char ret_why[LOAD_SLO_WHY_MAX]);

/* What a step has of it, in the unit of the limit. */
double load_slo_value(const struct load_slo *slo, const struct load_run *run,
                      const struct load_outcome *outcome);

bool load_slo_met(const struct load_slo *slo, double value);
