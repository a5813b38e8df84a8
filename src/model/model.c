/* SPDX-License-Identifier: MIT */
#include "model/model.h"

#define MODEL(name, threads, sentence, use) int model_##name##_run(struct server *server);
#include "model/models.def"
#undef MODEL

static const struct model models[] = {
#define MODEL(name, threads, sentence, use) \
    { #name, MODEL_THREADS_##threads, sentence, use, model_##name##_run },
#include "model/models.def"
#undef MODEL
    { .name = NULL },
};

const struct model *model_all(void)
{
    return models;
}

const struct model *model_find(struct span name)
{
    if (span_equal(name, SPAN("auto")))
        name = SPAN("percore");
    for (const struct model *model = models; model->name; model++)
        if (span_equal(span_text(model->name), name))
            return model;
    return NULL;
}
