/* SPDX-License-Identifier: MIT
 *
 * Why a value is not acceptable, in words that follow the setting's name and a
 * colon: "`64Q` is not a size; write ...".
 */
#pragma once

#include "base/span.h"

struct config_reason {
    char text[512];
};

/* Writes the reason and is false, so that a check can end with it. */
bool config_refuse(struct config_reason *reason, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* How much of a wrong value a message repeats; for "%.*s". */
enum { CONFIG_QUOTE_MAX = 80 };
static inline int config_quote_len(struct span text)
{
    return text.len < CONFIG_QUOTE_MAX ? (int)text.len : CONFIG_QUOTE_MAX;
}
