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

/* ---- groups of addresses that may meet ---- */

/* Few addresses of a port stand for every address. So an address is compared with few others, or
 * is one of the few that are compared with all of its port. */
enum group_kind { SAME_ADDRESS, SAME_PORT, EVERY_ADDRESS_OF_PORT, GROUP_KINDS };

static const char group_scopes[GROUP_KINDS];

struct group_entry {
    struct group_entry *next;
    const struct config_item *item;
    const struct config_item **compared; /* the last one, shared by the entries of the item */
};

struct group {
    struct group_entry *first, *last;
};

static struct span key_of(const struct config_place *place, enum group_kind kind)
{
    const struct span address = span_text(place->address);
    return kind == SAME_ADDRESS ? address : config_address_port(address);
}

static const struct group *find_group(const struct config_store *store,
                                      const struct config_place *place, enum group_kind kind)
{
    return config_names_find(&store->names, &group_scopes[kind], key_of(place, kind));
}

static void add_entry(struct config_store *store, const struct config_place *place,
                      enum group_kind kind, struct group_entry entry)
{
    const struct group *known = find_group(store, place, kind);
    struct group *group = config_arena_take(&store->arena, sizeof(*group));
    struct group_entry *added = config_arena_take(&store->arena, sizeof(*added));
    *added = entry;
    *group = (struct group){ known ? known->first : added, added };
    if (known)
        known->last->next = added;
    config_names_set(&store->names, &group_scopes[kind],
                     span_text(config_arena_copy(&store->arena, key_of(place, kind))), group);
}

/* An address whose port the kernel picks meets no other. */
static void add_to_groups(struct config_store *store, const struct config_item *item)
{
    struct config_place places[CONFIG_PLACES_MAX];
    struct group_entry entry = { .item = item };
    if (config_address_is_any_port(span_text(item->text)))
        return;
    entry.compared = config_arena_take(&store->arena, sizeof(*entry.compared));
    *entry.compared = NULL;
    const unsigned count = config_address_places(item->text, places);
    for (unsigned i = 0; i < count; i++) {
        add_entry(store, &places[i], SAME_ADDRESS, entry);
        if (key_of(&places[i], SAME_PORT).len > 0)
            add_entry(store, &places[i], SAME_PORT, entry);
        if (config_address_is_every(span_text(places[i].address)))
            add_entry(store, &places[i], EVERY_ADDRESS_OF_PORT, entry);
    }
}

/* The groups whose addresses the place may meet. They have no address in common. */
enum { MEETING_MAX = 2 };
static void find_meeting(const struct config_store *store, const struct config_place *place,
                         const struct group *ret_groups[MEETING_MAX])
{
    const bool every = config_address_is_every(span_text(place->address));
    ret_groups[0] = find_group(store, place, every ? SAME_PORT : SAME_ADDRESS);
    ret_groups[1] = every ? NULL : find_group(store, place, EVERY_ADDRESS_OF_PORT);
}

static bool group_has(const struct group *group, const char *text)
{
    const struct group_entry *entry = group ? group->first : NULL;
    while (entry && compare_texts(entry->item->text, text) == LISTEN_APART)
        entry = entry->next;
    return entry != NULL;
}

bool config_listen_has(const struct config_store *store, const struct config_item *item)
{
    struct config_place places[CONFIG_PLACES_MAX];
    const struct group *groups[MEETING_MAX];
    const unsigned count = config_address_places(item->text, places);
    bool found = false;
    for (unsigned i = 0; i < count && !found; i++) {
        find_meeting(store, &places[i], groups);
        found = group_has(groups[0], item->text) || group_has(groups[1], item->text);
    }
    return found;
}

/* ---- messages ---- */

static const char *line_of(struct config_store *store, const struct config_item *item)
{
    if (item->origin.layer != CONFIG_BY_FILE)
        return "";
    return config_arena_print(&store->arena, " (line %u)", item->origin.line);
}

static void report_relation(struct config_store *store, const struct config_item *item,
                            const struct config_item *other)
{
    const char *name = config_store_label(store, SETTING_listen, item->origin);
    enum listen_relation relation = compare_texts(item->text, other->text);
    if (relation == LISTEN_OTHER_SCHEME)
        config_problem_error(&store->problems, item->origin,
                             "%s`%s` and `%s`%s are the same address; it is either http or https",
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

static void check_against_group(struct config_store *store, const struct config_item *item,
                                const struct group *group)
{
    for (const struct group_entry *entry = group ? group->first : NULL; entry;
         entry = entry->next) {
        if (*entry->compared != item)
            report_relation(store, item, entry->item);
        *entry->compared = item;
    }
}

static void check_against_earlier(struct config_store *store, const struct config_item *item)
{
    struct config_place places[CONFIG_PLACES_MAX];
    const struct group *groups[MEETING_MAX];
    const unsigned count = config_address_places(item->text, places);
    if (config_address_is_any_port(span_text(item->text)))
        return;
    for (unsigned i = 0; i < count; i++) {
        find_meeting(store, &places[i], groups);
        check_against_group(store, item, groups[0]);
        check_against_group(store, item, groups[1]);
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
         item = item->next) {
        check_against_earlier(store, item);
        add_to_groups(store, item);
    }
}
