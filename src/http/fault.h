/* SPDX-License-Identifier: MIT
 *
 * Why a request is refused as such, from fault.def. Each cause has its status; a
 * client learns no more than that, an administrator may ask for the sentence.
 */
#pragma once

#include "base/span.h"
#include "http/status.h"

#include <stdint.h>

enum http_fault {
    HTTP_FAULT_NONE,
#define FAULT(name, word, status, sentence) HTTP_FAULT_##name,
#include "http/fault.def"
#undef FAULT
};

/* The status to answer with; 0 for HTTP_FAULT_NONE. */
int http_fault_status(enum http_fault fault);

/* A sentence without its full stop; static. */
struct span http_fault_sentence(enum http_fault fault);
