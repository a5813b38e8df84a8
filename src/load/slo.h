/* SPDX-License-Identifier: MIT
 *
 * Service level objectives of a step, as `p99<10ms,errors<0.1%,throughput>1000,mean<=2ms`. Pure.
 *
 * Each is NAME SIGN LIMIT; SIGN is < <= > or >=. The names are:
 *   p50, p99.9, mean, max   response times, with a unit from us to h; in paced and open loops they
 *                           count from the time when the request was due
 *   errors                  the share of failed requests, as 0.1% or 0.001; a status of 400 or
 *                           above is a failure
 *   throughput              successful requests per second
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

/* Adds the objectives in `text`. false: `ret_why` is one line about the error. */
MUST_USE bool load_slos_parse(const char *text, struct load_slos *slos,
                              char ret_why[LOAD_SLO_WHY_MAX]);

/* The value of a step, in the unit of the limit. NAN: nothing has ended that it could be of. */
double load_slo_value(const struct load_slo *slo, const struct load_run *run,
                      const struct load_outcome *outcome);

/* NAN meets no objective. */
bool load_slo_met(const struct load_slo *slo, double value);
