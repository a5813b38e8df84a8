/* SPDX-License-Identifier: MIT
 *
 * `weir check --explain`: every value in force, one line each, with where it
 * came from; the columns aligned over all sections.
 */
#include "config/read.h"
#include "config/store.h"

enum { NAME_WIDTH = 16, VALUE_WIDTH_MAX = 44 };

static const char *shown_text(const struct config_setting *setting, const struct config_item *item)
{
    if (item && setting->kind == CONFIG_HASH)
        return "(hidden)"; /* what is shown here is sent to others for help */
    return item ? item->text : setting->fallback;
}

static int value_width(const struct config_section_values *values, int width)
{
    for (size_t i = 0; i < CONFIG_SETTINGS; i++) {
        const struct config_setting *setting = &config_setting_table[i];
        if (setting->section != values->section)
            continue;
        const struct config_item *item = values->items[i];
        do {
            size_t len = strlen(shown_text(setting, item));
            if (len <= VALUE_WIDTH_MAX && (int)len > width)
                width = (int)len;
            item = item ? item->next : NULL;
        } while (item);
    }
    return width;
}

static void print_section(const struct config_section_values *values, int width, FILE *out)
{
    char origin[CONFIG_ORIGIN_MAX];
    for (size_t i = 0; i < CONFIG_SETTINGS; i++) {
        const struct config_setting *setting = &config_setting_table[i];
        if (setting->section != values->section)
            continue;
        const struct config_item *item = values->items[i];
        const char *name = setting->name;
        do {
            struct config_origin from = { CONFIG_BY_DEFAULT, NULL, 0 };
            config_origin_format(item ? item->origin : from, origin);
            fprintf(out, "  %-*s  %-*s  %s\n", NAME_WIDTH, name, width, shown_text(setting, item),
                    origin);
            name = "";
            item = item ? item->next : NULL;
        } while (item);
    }
}

void config_explain(const struct config_store *store, FILE *out)
{
    char origin[CONFIG_ORIGIN_MAX];
    CHECK(store->problems.error_count == 0);
    int width = value_width(&store->server, 0);
    for (const struct config_section_values *site = store->sites; site; site = site->next)
        width = value_width(site, width);

    fprintf(out, "[server]\n");
    print_section(&store->server, width, out);
    for (const struct config_section_values *site = store->sites; site; site = site->next) {
        config_origin_format(site->origin, origin);
        int heading = NAME_WIDTH + width + 4;
        int len = (int)strlen(site->name) + (int)sizeof("[site ]") - 1;
        fprintf(out, "\n[site %s]%*s  %s\n", site->name, heading > len ? heading - len : 0, "",
                origin);
        print_section(site, width, out);
    }
}
