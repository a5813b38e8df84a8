/* SPDX-License-Identifier: MIT
 *
 * Makes the load of a plan, and measures. It starts the threads of the plan, and returns when the
 * last one has ended.
 */
#pragma once

#include "load/result.h"

/* The state of a run that is under way. */
struct load_progress {
    size_t step, step_count; /* from 0 */
    struct load_step load;
    bool warming;
    uint64_t left_ns;          /* of the whole run; UINT64_MAX: not known, with --requests */
    uint64_t answers, errors;  /* of this step, in its whole seconds */
    struct load_second latest; /* the last whole second */
};

struct load_engine {
    int signal_fd; /* readable: end the run; again: end it at once. -1: none */
    /* Called twice a second, on the caller's thread; or NULL. */
    void (*progress)(void *context, const struct load_progress *progress);
    void *context;
};

/* Gives a run that borrows `plan`; end it with load_engine_done in every case. 0, or -errno:
 * -ENXIO when a thread may not run on one of the plan's CPUs. */
MUST_USE int load_engine_run(const struct load_plan *plan, const struct load_engine *how,
                             struct load_run *ret_run);
void load_engine_done(struct load_run *run);
