/* SPDX-License-Identifier: MIT */
#include "load/names.h"

const char *const load_loop_names[LOAD_LOOPS] = {
    [LOAD_CLOSED] = "closed",
    [LOAD_PACED] = "paced",
    [LOAD_OPEN] = "open",
};

const char *const load_think_names[LOAD_THINKS] = {
    [LOAD_THINK_CONSTANT] = "constant",
    [LOAD_THINK_EXPONENTIAL] = "exponential",
    [LOAD_THINK_UNIFORM] = "uniform",
};

const char *const load_verify_names[LOAD_VERIFIES] = {
    [LOAD_VERIFY_NOT] = "not",
    [LOAD_VERIFY_LENGTH] = "length",
    [LOAD_VERIFY_HASH] = "hash",
};

const struct load_error_about load_errors[LOAD_ERROR_COUNT] = {
#define LOAD_ERROR(name, phase, sentence) { #name, #phase, sentence },
    LOAD_ERRORS(LOAD_ERROR)
#undef LOAD_ERROR
};
