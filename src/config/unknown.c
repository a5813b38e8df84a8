/* SPDX-License-Identifier: MIT */
#include "config/unknown.h"

#include "base/nearest.h"
#include "config/hint.h"
#include "config/value.h"

struct unknown {
    struct config_store *store;
    enum config_section section;
    struct span name, value;
    struct config_origin origin;
};

/* A setting with a similar name. `slips` is the distance between the two. */
struct similar {
    const struct config_setting *setting; /* NULL: none */
    unsigned slips;
};

static struct similar find_similar(struct span name, const enum config_section *section)
{
    struct nearest nearest = nearest_to(name);
    struct similar similar = { .setting = NULL };
    for (size_t i = 0; i < CONFIG_SETTINGS; i++) {
        const struct config_setting *setting = &config_setting_table[i];
        if (section && setting->section != *section)
            continue;
        nearest_offer(&nearest, setting->name);
        if (nearest.best == setting->name)
            similar = (struct similar){ setting, nearest.distance };
    }
    return similar;
}

/* Whether the value is one of the setting. Of a list the first value counts. */
static bool fits(const struct unknown *u, const struct config_setting *setting)
{
    struct config_reason reason;
    const char *canonical;
    struct span value = config_hint_strip(setting, u->value);
    const char *comma = config_setting_has_commas(setting->kind) ? memchr(value.at, ',', value.len)
                                                                 : NULL;
    if (comma)
        value = span_trim(span_first(value, (size_t)(comma - value.at)));
    return config_value_check(setting, value, SPAN(""), &u->store->arena, &canonical, &reason);
}

/* The name belongs to another section, and may be a slip of one here: `listings = on`. */
static void report_two(const struct unknown *u, const struct config_setting *other,
                       struct similar here, const char *place)
{
    const bool other_fits = fits(u, other), here_fits = here.setting && fits(u, here.setting);
    if (here_fits && !other_fits)
        config_problem_error(&u->store->problems, u->origin,
                             "`%s` does not belong in %s; did you mean `%s`?", other->name, place,
                             here.setting->name);
    else if (here.setting && here_fits == other_fits && here.slips <= 1)
        config_problem_error(&u->store->problems, u->origin,
                             "`%s` does not belong in %s; it goes under %s, or did you mean `%s`?",
                             other->name, place, config_hint_heading(other->section),
                             here.setting->name);
    else
        config_problem_error(&u->store->problems, u->origin,
                             "`%s` does not belong in %s; it goes under %s", other->name, place,
                             config_hint_heading(other->section));
}

static void report_slip(const struct unknown *u, struct similar here, const char *place)
{
    const int len = config_problem_quote_len(u->name);
    const struct config_setting *there = find_similar(u->name, NULL).setting;
    if (here.setting)
        config_problem_error(&u->store->problems, u->origin,
                             "unknown setting `%.*s`; did you mean `%s`?", len, u->name.at,
                             here.setting->name);
    else if (there)
        config_problem_error(&u->store->problems, u->origin,
                             "unknown setting `%.*s`; did you mean `%s`, which goes under %s?", len,
                             u->name.at, there->name, config_hint_heading(there->section));
    else
        config_problem_error(&u->store->problems, u->origin,
                             "unknown setting `%.*s`; %s has none like it", len, u->name.at, place);
}

void config_unknown_report(struct config_store *store, enum config_section section,
                           struct span name, struct span value, struct config_origin origin)
{
    const struct unknown u = { store, section, name, value, origin };
    const struct similar here = find_similar(name, &section);
    const char *place = section == CONFIG_SERVER ? "[server]"
                        : section == CONFIG_SITE ? "a site"
                                                 : "a path";
    const struct config_setting *other = config_setting_find_elsewhere(section, name);
    struct config_reason reason;
    if (other)
        report_two(&u, other, here, place);
    else if (config_hint_explain(name, &reason))
        config_problem_error(&store->problems, origin, "%s", reason.text);
    else
        report_slip(&u, here, place);
}
