/* SPDX-License-Identifier: MIT */
#include "load/kin.h"

#include "base/hash.h"

static uint64_t mix_text(uint64_t kin, const char *text)
{
    return hash_bytes(span_text(text), kin);
}

static uint64_t mix_number(uint64_t kin, uint64_t number)
{
    return hash_bytes(span_of((const char *)&number, sizeof(number)), kin);
}

static uint64_t mix_real(uint64_t kin, double number)
{
    return hash_bytes(span_of((const char *)&number, sizeof(number)), kin);
}

uint64_t load_kin(const struct load_plan *plan)
{
    uint64_t kin = 0;
    for (size_t i = 0; i < plan->target_count; i++) {
        const struct load_target *target = &plan->targets[i];
        kin = mix_text(mix_text(kin, target->host), target->path);
        kin = hash_bytes(span_of(target->request, target->request_len), kin);
        kin = mix_real(kin, target->weight);
    }
    kin = mix_real(kin, plan->zipf);
    kin = mix_number(mix_number(kin, plan->step_count), plan->loop);
    kin = mix_number(mix_number(kin, plan->think.kind), plan->think.low_ns);
    kin = mix_number(mix_number(kin, plan->think.high_ns), plan->verify);
    kin = mix_number(kin, plan->requests > 0); /* of which each has its share */
#define LOAD_PLANNED(name) kin = mix_number(kin, (uint64_t)plan->name);
#include "load/counts.def"
#undef LOAD_PLANNED
    return kin;
}
