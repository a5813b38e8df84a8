/* SPDX-License-Identifier: MIT */
#include "load/second.h"

#include "load/hdr.h"

#include <errno.h>
#include <stdlib.h>

static uint64_t quantile_ns(const struct load_second *second, const uint64_t *bucket, double part)
{
    size_t index = histogram_quantile(bucket, LOAD_SECOND_BUCKETS, second->answers, part);
    uint64_t high_ns = histogram_high(index, LOAD_SECOND_BITS);
    return high_ns < second->most_ns ? high_ns : second->most_ns;
}

int load_second_settle(struct load_second *second, const uint64_t *bucket)
{
    if (second->answers == 0)
        return 0;
    free(second->hdr);
    second->hdr = load_hdr_encode_second(bucket);
    second->p50_ns = quantile_ns(second, bucket, 0.5);
    second->p90_ns = quantile_ns(second, bucket, 0.9);
    second->p99_ns = quantile_ns(second, bucket, 0.99);
    return second->hdr ? 0 : -ENOMEM;
}

void load_second_done(struct load_second *second)
{
    free(second->hdr);
    second->hdr = NULL;
}

void load_second_count(struct load_second *to, const struct load_second *from)
{
    to->answers += from->answers;
    to->errors += from->errors;
    to->body_bytes += from->body_bytes;
    to->connects += from->connects;
    to->most_ns = from->most_ns > to->most_ns ? from->most_ns : to->most_ns;
    for (unsigned i = 0; i < sizeof(to->by_class) / sizeof(to->by_class[0]); i++)
        to->by_class[i] += from->by_class[i];
}

int load_second_add(struct load_second *to, const struct load_second *from)
{
    bool known = (to->hdr || to->answers == 0) && (from->hdr || from->answers == 0);
    uint64_t *bucket = calloc(LOAD_SECOND_BUCKETS, sizeof(*bucket));
    int rc = bucket ? 0 : -ENOMEM;
    load_second_count(to, from);
    if (rc == 0 && known && to->hdr)
        rc = load_hdr_decode_second(span_text(to->hdr), bucket);
    if (rc == 0 && known && from->hdr)
        rc = load_hdr_decode_second(span_text(from->hdr), bucket);
    if (rc == 0 && known)
        rc = load_second_settle(to, bucket);
    if (!known)
        load_second_done(to);
    free(bucket);
    return rc;
}
