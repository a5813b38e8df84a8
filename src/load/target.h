/* SPDX-License-Identifier: MIT
 *
 * The targets of a load: URLs become addresses and the bytes of requests.
 */
#pragma once

#include "load/plan.h"
#include "option/option.h"

/* How requests are made, the same for all targets. */
struct load_manner {
    const char *method;
    const char *const *fields; /* `Name: value`; NULL at the end */
    struct span data;          /* the body */
    bool has_data;
    bool keep_alive;
};

/* Adds a target for http[s]://HOST[:PORT]/PATH or unix:/SOCKET[:/PATH]; a name is looked up. A path
 * alone has the host of the target before it. */
MUST_USE bool load_target_add(struct load_plan *plan, struct span url, double weight,
                              struct option_refusal *refusal);

/* Makes the requests of all targets, once all targets are added. With HTTP/2, targets with
 * different hosts get different origins, and the plan borrows manner->data. */
MUST_USE bool load_target_make_requests(struct load_plan *plan, const struct load_manner *manner,
                                        struct option_refusal *refusal);

void load_target_free_all(struct load_plan *plan);
