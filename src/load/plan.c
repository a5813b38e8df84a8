/* SPDX-License-Identifier: MIT */
#include "load/plan.h"

#include "base/hash.h"

static uint64_t mix_text(uint64_t digest, const char *text)
{
    return hash_bytes(span_text(text), digest);
}

static uint64_t mix_number(uint64_t digest, uint64_t number)
{
    return hash_bytes(span_of((const char *)&number, sizeof(number)), digest);
}

static uint64_t mix_real(uint64_t digest, double number)
{
    return hash_bytes(span_of((const char *)&number, sizeof(number)), digest);
}

uint64_t load_plan_digest(const struct load_plan *plan)
{
    uint64_t digest = 0;
    for (size_t i = 0; i < plan->target_count; i++) {
        const struct load_target *target = &plan->targets[i];
        digest = mix_text(mix_text(digest, target->host), target->path);
        digest = hash_bytes(span_of(target->request, target->request_len), digest);
        digest = mix_real(digest, target->weight);
    }
    digest = mix_real(digest, plan->zipf);
    digest = mix_number(mix_number(digest, plan->step_count), plan->loop);
    digest = mix_number(mix_number(digest, plan->think.kind), plan->think.low_ns);
    digest = mix_number(mix_number(digest, plan->think.high_ns), plan->verify);
    digest = mix_number(digest, plan->requests > 0); /* each shard has its own number */
#define LOAD_PLANNED(name) digest = mix_number(digest, (uint64_t)plan->name);
#include "load/counts.def"
#undef LOAD_PLANNED
    return digest;
}
