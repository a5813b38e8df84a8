/* SPDX-License-Identifier: MIT
 *
 * `weir models`: what models there are. The first word of each line is a name
 * that --model takes; programs may rely on that.
 */
#include "model/model.h"

#include "program/command.h"
#include "program/options.h"

static int list(const struct program_command *command, const struct program_options *options)
{
    (void)command, (void)options;
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
    return PROGRAM_OK;
}

int program_models(const struct program_command *command, const char *const *arguments)
{
    return program_options_act(command, arguments, list);
}
