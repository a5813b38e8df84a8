/* SPDX-License-Identifier: MIT */
#include "config/listen.h"

#include "config/address.h"

#include <sys/stat.h>

enum listen_relation { LISTEN_APART, LISTEN_SAME, LISTEN_OTHER_SCHEME, LISTEN_OVERLAP };

static enum listen_relation compare_places(const struct config_place *a,
                                           const struct config_place *b)
{
    if (strcmp(a->address, b->address) == 0)
        return a->tls == b->tls ? LISTEN_SAME : LISTEN_OTHER_SCHEME;
    return config_address_overlap(span_text(a->address), span_text(b->address)) ? LISTEN_OVERLAP
                                                                                : LISTEN_APART;
}

static enum listen_relation compare_texts(const char *a, const char *b)
{
    struct config_place mine[CONFIG_PLACES_MAX], other[CONFIG_PLACES_MAX];
    if (config_address_is_any_port(span_text(a)))
        return LISTEN_APART;
    unsigned mine_count = config_address_places(a, mine);
    unsigned other_count = config_address_places(b, other);
    for (unsigned i = 0; i < mine_count; i++)
        for (unsigned j = 0; j < other_count; j++) {
            const enum listen_relation relation = compare_places(&mine[i], &other[j]);
            if (relation != LISTEN_APART)
                return relation;
        }
    return LISTEN_APART;
}

bool config_listen_has(const struct config_store *store, const struct config_item *item)
{
    const struct config_item *listen = config_store_first(&store->server, SETTING_listen);
    while (listen && compare_texts(listen->text, item->text) == LISTEN_APART)
        listen = listen->next;
    return listen != NULL;
}

static const char *line_of(struct config_store *store, const struct config_item *item)
{
    if (item->origin.layer != CONFIG_BY_FILE)
        return "";
    return config_arena_print(&store->arena, " (line %u)", item->origin.line);
}

static void check_against_earlier(struct config_store *store, const struct config_item *item)
{
    const char *name = config_store_label(store, SETTING_listen, item->origin);
    for (const struct config_item *other = config_store_first(&store->server, SETTING_listen);
         other != item; other = other->next) {
        enum listen_relation relation = compare_texts(item->text, other->text);
        if (relation == LISTEN_OTHER_SCHEME)
            config_problem_error(&store->problems, item->origin,
                                 "%s`%s` and `%s`%s are the same address; it is either http or "
                                 "https",
                                 name, item->text, other->text, line_of(store, other));
        else if (relation == LISTEN_SAME)
            config_problem_error(&store->problems, item->origin,
                                 "%s`%s` and `%s`%s name the same address; remove one", name,
                                 item->text, other->text, line_of(store, other));
        else if (relation == LISTEN_OVERLAP)
            config_problem_error(&store->problems, item->origin,
                                 "%s`%s` and `%s`%s overlap, so that only one of them can be "
                                 "listened at; remove one",
                                 name, item->text, other->text, line_of(store, other));
    }
}

/* A start replaces a socket without a server, and no other file. */
static void check_files(struct config_store *store, enum config_setting_place place)
{
    const struct span scheme = SPAN("unix:");
    struct stat info;
    for (const struct config_item *item = config_store_first(&store->server, place); item;
         item = item->next)
        if (span_starts(span_text(item->text), scheme) &&
            lstat(item->text + scheme.len, &info) == 0 && !S_ISSOCK(info.st_mode))
            config_problem_error(&store->problems, item->origin,
                                 "%s`%s` names a file that is no socket; remove the file, or "
                                 "choose another path",
                                 config_store_label(store, place, item->origin), item->text);
}

void config_listen_verify(struct config_store *store)
{
    check_files(store, SETTING_listen);
    check_files(store, SETTING_stats_listen);
    for (const struct config_item *item = config_store_first(&store->server, SETTING_listen); item;
         item = item->next)
        check_against_earlier(store, item);
}
