/* SPDX-License-Identifier: MIT */
#include "config/origin.h"

#include <stdio.h>

void config_origin_format(struct config_origin origin, char out[CONFIG_ORIGIN_MAX])
{
    const char *name = origin.name ? origin.name : "";
    switch (origin.layer) {
    case CONFIG_BY_DEFAULT:
        snprintf(out, CONFIG_ORIGIN_MAX, "default%s%s", *name ? ", " : "", name);
        return;
    case CONFIG_BY_FILE:
        if (origin.line > 0)
            snprintf(out, CONFIG_ORIGIN_MAX, "%.480s:%u", name, origin.line);
        else
            snprintf(out, CONFIG_ORIGIN_MAX, "%.480s", name);
        return;
    case CONFIG_BY_ENVIRONMENT:
        snprintf(out, CONFIG_ORIGIN_MAX, "environment %.480s", name);
        return;
    case CONFIG_BY_FLAG:
        snprintf(out, CONFIG_ORIGIN_MAX, "flag %.480s", name);
        return;
    case CONFIG_BY_ARGUMENT:
        snprintf(out, CONFIG_ORIGIN_MAX, "command line");
        return;
    }
}
