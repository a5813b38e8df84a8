/* SPDX-License-Identifier: MIT */
#include "config/reason.h"

#include <stdarg.h>
#include <stdio.h>

bool config_refuse(struct config_reason *reason, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(reason->text, sizeof(reason->text), format, args);
    va_end(args);
    return false;
}
