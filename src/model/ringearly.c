/* SPDX-License-Identifier: MIT */
#include "model/ringearly.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

struct model_ringearly {
    size_t at, len; /* what waits: bytes[at .. len) */
    char bytes[];
};

bool model_ringearly_keep(struct model_ringearly **early, struct span in)
{
    struct span waiting = span_of(NULL, 0);
    if (*early)
        waiting = model_ringearly_bytes(*early);
    if (waiting.len + in.len > RINGEARLY_MAX)
        return false;
    struct model_ringearly *longer = malloc(sizeof(*longer) + waiting.len + in.len);
    if (!longer)
        return false;
    *longer = (struct model_ringearly){ .len = waiting.len + in.len };
    if (waiting.len > 0)
        memcpy(longer->bytes, waiting.at, waiting.len);
    memcpy(longer->bytes + waiting.len, in.at, in.len);
    free(*early);
    *early = longer;
    return true;
}

struct span model_ringearly_bytes(const struct model_ringearly *early)
{
    return span_of(early->bytes + early->at, early->len - early->at);
}

void model_ringearly_drop(struct model_ringearly **early, size_t count)
{
    (*early)->at += count;
    CHECK((*early)->at <= (*early)->len);
    if ((*early)->at < (*early)->len)
        return;
    free(*early);
    *early = NULL;
}

void model_ringearly_free(struct model_ringearly *early)
{
    free(early);
}
