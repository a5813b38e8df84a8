/* SPDX-License-Identifier: MIT
 *
 * Why a request is refused before its path is looked up, from fault.def. Each fault has its status.
 * A client learns the status only. `weir trace` and the statistics show the sentence.
 */
#pragma once

#include "base/span.h"
#include "http/status.h"

#include <stdint.h>

enum http_fault {
    HTTP_FAULT_NONE,
#define FAULT(name, word, status, limit, sentence) HTTP_FAULT_##name,
#include "http/fault.def"
#undef FAULT
};

/* The status to answer with; 0 for HTTP_FAULT_NONE. */
int http_fault_status(enum http_fault fault);

/* The bound of http/limits.h that the request exceeds; 0 when the fault is not about a bound. */
uint32_t http_fault_limit(enum http_fault fault);

/* A sentence without its full stop; static. For a fault with a limit it ends with "the limit". */
struct span http_fault_sentence(enum http_fault fault);
