/* SPDX-License-Identifier: MIT
 *
 * Where a value came from, for messages and for `weir check --explain`.
 */
#pragma once

#include "base/span.h"

/* In ascending order of weight. */
enum config_layer {
    CONFIG_BY_DEFAULT,
    CONFIG_BY_FILE,
    CONFIG_BY_ENVIRONMENT,
    CONFIG_BY_FLAG,
    CONFIG_BY_ARGUMENT /* the folder on the command line */
};

struct config_origin {
    enum config_layer layer;
    const char *name; /* default: why it is not the usual one, or NULL; file: path; environment:
                         variable; flag: --name; argument: the folder */
    unsigned line;    /* of the file; 0: no line in particular */
};

/* "default", "weir.conf:12", "environment WEIR_MODEL", "flag --model", "command line". */
enum { CONFIG_ORIGIN_MAX = 512 };
void config_origin_format(struct config_origin origin, char out[CONFIG_ORIGIN_MAX]);
