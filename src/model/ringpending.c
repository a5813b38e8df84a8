/* SPDX-License-Identifier: MIT */
#include "model/ringpending.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

struct model_ringpending {
    size_t at, len; /* bytes[at .. len) wait */
    char bytes[];
};

bool model_ringpending_keep(struct model_ringpending **pending, struct span in)
{
    struct span waiting = span_of(NULL, 0);
    if (*pending)
        waiting = model_ringpending_bytes(*pending);
    if (waiting.len + in.len > RINGPENDING_MAX)
        return false;
    struct model_ringpending *longer = malloc(sizeof(*longer) + waiting.len + in.len);
    if (!longer)
        return false;
    *longer = (struct model_ringpending){ .len = waiting.len + in.len };
    if (waiting.len > 0)
        memcpy(longer->bytes, waiting.at, waiting.len);
    memcpy(longer->bytes + waiting.len, in.at, in.len);
    free(*pending);
    *pending = longer;
    return true;
}

struct span model_ringpending_bytes(const struct model_ringpending *pending)
{
    return span_of(pending->bytes + pending->at, pending->len - pending->at);
}

void model_ringpending_drop(struct model_ringpending **pending, size_t count)
{
    (*pending)->at += count;
    CHECK((*pending)->at <= (*pending)->len);
    if ((*pending)->at < (*pending)->len)
        return;
    free(*pending);
    *pending = NULL;
}

void model_ringpending_free(struct model_ringpending *pending)
{
    free(pending);
}
