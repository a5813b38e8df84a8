/* SPDX-License-Identifier: MIT
 *
 * The configuration: the values of the file, the environment and the command line, checked and put
 * together. Flags win over WEIR_* variables, variables over the file, the file over the defaults.
 *
 * Reading a configuration has no side effects: it opens no socket, writes no file and needs no
 * privilege. The settings, and so the fields of the structs below, are in config/settings.def. All
 * values are checked and in one canonical form: a host in lower case, a bare port with its address.
 */
#pragma once

#include "base/check.h"
#include "base/duration.h"
#include "base/span.h"

#include <stdint.h>

enum {
    /* Most bytes of the header lines that a site and its paths add to one answer, each with its
     * CRLF: the session's space for a head leaves this much (SESSION_ANSWER_ROOM). */
    CONFIG_HEADERS_MAX = 4 * 1024,
    CONFIG_HSTS_MAX = 64 /* of them for the line of `hsts` */
};

/* The value of a timeout of 0, which means no limit: a hundred years. Added to a clock reading it
 * cannot overflow. Settings of kind DELAY keep their 0, which means at once. */
#define CONFIG_FOREVER_NS (UINT64_C(100) * 365 * 24 * 3600 * DURATION_SECOND)

/* An AGE of `off`, and a BODY of `auto`. */
#define CONFIG_NEVER UINT64_MAX
#define CONFIG_AUTO  UINT64_MAX

/* The size of a cache where the memory of the machine is not known. */
#define CONFIG_CACHE_BYTES (UINT64_C(64) << 20)

/* The types of fields, by the kind of their setting. */
#define CONFIG_FIELD_TEXT     const char *
#define CONFIG_FIELD_LIST     const char *const *
#define CONFIG_FIELD_COUNT    unsigned
#define CONFIG_FIELD_NUMBER   uint64_t
#define CONFIG_FIELD_SWITCH   bool
#define KIND(kind, type, ...) typedef CONFIG_FIELD_##type config_field_##kind;
#include "config/kinds.def"
#undef KIND

struct rules;

/* A section [path PATTERN] of a site: a field for each PATH_SETTING. */
struct config_path {
    const char *pattern;
    const char *origin; /* of its heading: "weir.conf:12" */
#define SERVER_SETTING(...)
#define SITE_SETTING(...)
#define PATH_SETTING(field, name, kind, ...) config_field_##kind field;
#include "config/settings.def"
#undef SERVER_SETTING
#undef SITE_SETTING
#undef PATH_SETTING
};

/* A field for each SITE_SETTING. */
struct config_site {
    const char *name;   /* of the section; "default" for the folder on the command line */
    const char *origin; /* of its heading: "weir.conf:3" */
#define SERVER_SETTING(...)
#define SITE_SETTING(field, name, kind, ...) config_field_##kind field;
#define PATH_SETTING(...)
#include "config/settings.def"
#undef SERVER_SETTING
#undef SITE_SETTING
#undef PATH_SETTING
    const struct config_path *paths; /* in the order of the file */
    unsigned path_count;
    /* Made of `headers` and `paths`; NULL: there are no paths, and `site_rules` is off. */
    const struct rules *rules;
    /* The folders of `path_error_pages`, each once, NULL at the end; or NULL. */
    const char *const *error_folders;
};

/* A field for each SERVER_SETTING. */
struct config {
#define SERVER_SETTING(field, name, kind, ...) config_field_##kind field;
#define SITE_SETTING(...)
#define PATH_SETTING(...)
#include "config/settings.def"
#undef SERVER_SETTING
#undef SITE_SETTING
#undef PATH_SETTING
    bool listen_by_default; /* `listen` is the default: an address that the machine lacks (no
                                     IPv6) may be skipped while another is left */
    bool
        stats_listen_by_default; /* the same of `stats_listen`: if its port is taken, any will do */
    /* With `cache-size = auto`: the memory of which the caches have a share. 0: unknown, or
     * `cache-size` is a number. */
    uint64_t cache_memory_bytes;
    bool cache_memory_of_group; /* it is the limit of a control group */
    const struct config_site *sites;
    unsigned site_count;
};
