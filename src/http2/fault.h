/* SPDX-License-Identifier: MIT
 *
 * Why an HTTP/2 connection ends or a stream is reset by the server, from fault.def. Each fault
 * has its error code. GOAWAY carries the sentence too, for people who look for the cause.
 */
#pragma once

#include "base/span.h"
#include "http2/error.h"

#include <stdint.h>

enum http2_fault {
    HTTP2_FAULT_NONE,
#define FAULT(name, word, error, limit, sentence) HTTP2_FAULT_##name,
#include "http2/fault.def"
#undef FAULT
    HTTP2_FAULT_COUNT
};

/* The code that the client gets; HTTP2_NO_ERROR for HTTP2_FAULT_NONE. */
enum http2_error http2_fault_error(enum http2_fault fault);

/* The bound of http2/limits.h that the client exceeds; 0 when the fault is not about a bound. */
uint32_t http2_fault_limit(enum http2_fault fault);

/* A sentence without its full stop; static, and empty for HTTP2_FAULT_NONE. For a fault with a
 * limit it ends with "the limit". */
struct span http2_fault_sentence(enum http2_fault fault);
