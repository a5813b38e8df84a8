/* SPDX-License-Identifier: MIT */
#include "http/fault.h"

#include "http/limits.h"

/* One row of fault.def. */
struct fault_row {
    uint32_t limit;
    int status;
    struct span sentence;
};

static const struct fault_row rows[] = {
    [HTTP_FAULT_NONE] = { 0, 0, SPAN("") },
#define FAULT(name, word, status, limit, sentence) \
    [HTTP_FAULT_##name] = { limit, HTTP_##status, SPAN(sentence) },
#include "http/fault.def"
#undef FAULT
};

int http_fault_status(enum http_fault fault)
{
    return rows[fault].status;
}

uint32_t http_fault_limit(enum http_fault fault)
{
    return rows[fault].limit;
}

struct span http_fault_sentence(enum http_fault fault)
{
    return rows[fault].sentence;
}
