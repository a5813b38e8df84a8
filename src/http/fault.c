/* SPDX-License-Identifier: MIT */
#include "http/fault.h"

int http_fault_status(enum http_fault fault)
{
    static const uint16_t statuses[] = {
        [HTTP_FAULT_NONE] = 0,
#define FAULT(name, word, status, sentence) [HTTP_FAULT_##name] = HTTP_##status,
#include "http/fault.def"
#undef FAULT
    };
    return statuses[fault];
}

struct span http_fault_sentence(enum http_fault fault)
{
    static const struct span sentences[] = {
        [HTTP_FAULT_NONE] = SPAN(""),
#define FAULT(name, word, status, sentence) [HTTP_FAULT_##name] = SPAN(sentence),
#include "http/fault.def"
#undef FAULT
    };
    return sentences[fault];
}
