/* SPDX-License-Identifier: MIT
 *
 * `weir models`: lists the concurrency models. Up to the first empty line, the first word of each
 * line is a name that --model takes; programs may rely on that. Then it says which sandbox this
 * machine offers.
 */
#include "model/model.h"

#include "program/command.h"
#include "program/configuration.h"
#include "server/sandbox.h"

static int run_models(void *options, const char *const *words)
{
    (void)options, (void)words;
    int width = 0;
    for (const struct model *model = model_all(); model->name; model++)
        if ((int)strlen(model->name) > width)
            width = (int)strlen(model->name);
    char why[MODEL_WHY_MAX], why_not[MODEL_WHY_MAX];
    const struct model *automatic = model_choose(SPAN("auto"), why);
    for (const struct model *model = model_all(); model->name; model++) {
        printf("%-*s  %s. Use: %s", width, model->name, model->sentence, model->use);
        if (model == automatic)
            printf(" (`auto` picks it: %s)", why);
        const struct model *other = model_choose(span_text(model->name), why_not);
        if (other != model)
            printf(" (%s; %s serves in its place)", why_not, other->name);
        putchar('\n');
    }
    struct server_sandbox machine;
    server_sandbox_describe_machine(&machine);
    printf("\nSandbox on this machine: %s\n", machine.in_force);
    if (machine.missing[0])
        printf("It lacks %s.\n", machine.missing);
    return PROGRAM_OK;
}

static const struct option_group models_groups[] = {
    { .title = "Options", .options = option_answers },
    { .options = NULL },
};

const struct program_command program_models = {
    .options = { .name = "models", .groups = models_groups, .others = program_configuration_flags },
    .brief = "",
    .usage = "",
    .sentence = "list the concurrency models",
    .text = "One line each: its name, what it is, and when to use it. Choose one with\n"
            "`weir serve --model NAME`.\n",
    .run = run_models,
};
