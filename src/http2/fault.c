/* SPDX-License-Identifier: MIT */
#include "http2/fault.h"

#include "http2/limits.h"

/* One row of fault.def. */
struct fault_row {
    uint32_t limit;
    enum http2_error error;
    struct span sentence;
};

static const struct fault_row rows[] = {
    [HTTP2_FAULT_NONE] = { 0, HTTP2_NO_ERROR, SPAN("") },
#define FAULT(name, word, error, limit, sentence) \
    [HTTP2_FAULT_##name] = { limit, HTTP2_##error, SPAN(sentence) },
#include "http2/fault.def"
#undef FAULT
};

enum http2_error http2_fault_error(enum http2_fault fault)
{
    return rows[fault].error;
}

uint32_t http2_fault_limit(enum http2_fault fault)
{
    return rows[fault].limit;
}

struct span http2_fault_sentence(enum http2_fault fault)
{
    return rows[fault].sentence;
}
