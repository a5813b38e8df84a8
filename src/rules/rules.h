/* SPDX-License-Identifier: MIT
 *
 * The rules of a site for its paths. A rule has a pattern. It may have fields for the answers of
 * the paths that it covers, networks of clients, and an action. All rules that cover a path apply,
 * in order:
 *
 * - A later rule replaces or removes the fields that earlier rules set under the same name.
 * - The last rule with an action decides the answer.
 * - The last rule with networks decides which clients are admitted.
 * - The last rule about origins decides which scripts may read the answer (Fetch standard).
 * - The last rule about passwords decides whether the path needs one, and which.
 * - The last rule with a rate decides how many requests an address may send.
 *
 * A site may also have a list of rules with actions alone. The first of them that covers a path
 * decides, if no other rule has an action for it.
 *
 * Fields and actions are a function of the requested path alone. So the part that a rule adds
 * to the answer with a file is made once, and kept with the cached file. Rules are made once. Then
 * any thread may read them, and no thread writes them. They own no memory.
 */
#pragma once

#include "rules/index.h"
#include "rules/network.h"
#include "rules/target.h"

#include <stdint.h>

enum { RULES_MAX = 256, RULES_WORDS = RULES_MAX / 64 };

enum rules_action { RULES_SERVE, RULES_REDIRECT, RULES_REWRITE, RULES_STATUS };

/* A switch of a rule. */
enum rules_choice { RULES_UNSET, RULES_OFF, RULES_ON };

struct rules_field {
    struct span name;
    struct span line; /* `Name: value` and CRLF; empty: the field is removed */
    bool on_errors;   /* errors (status 400 and above) have it, too */
    bool joins; /* its value joins those of other fields that join. A removal takes them away */
};

/* A limit for the requests of each address: so many at once, and then one in each interval. All
 * paths of the rule count together. */
struct rules_rate {
    const char *text;     /* for people: 30/m; NULL: the rule does not say */
    uint64_t interval_ns; /* 0: no limit */
    uint64_t burst;       /* at least 1; `burst` intervals fit into an int64_t */
};

/* One of several origins whose scripts may read the answers. */
struct rules_origin {
    struct span origin; /* as a browser sends it: https://app.example.org */
    struct span line;   /* `Access-Control-Allow-Origin: ...` and CRLF */
};

struct rules_rule {
    struct rules_pattern pattern;
    const struct rules_field *fields;
    size_t field_count;
    const struct rules_network *networks; /* of clients that are admitted, or not */
    size_t network_count;
    bool has_cors;                      /* it decides which origins are allowed */
    const struct rules_origin *origins; /* if there are several; one is in `fields` */
    size_t origin_count;
    struct span preflight;      /* lines for the answer to OPTIONS */
    enum rules_choice auth;     /* RULES_ON: a password is needed; RULES_OFF: none */
    unsigned number;            /* of the section, below RULES_MAX; the caller's */
    struct rules_rate rate;     /* of the requests of each address */
    enum rules_choice listing;  /* of folders without an index file */
    enum rules_choice markdown; /* whether pages may be in Markdown */
    enum rules_choice hidden;   /* names that begin with a dot are served */
    const char *const *index;   /* names of index files, NULL at the end; NULL: not set */
    const char *fallback;       /* for absent paths, below the root; empty: none; NULL: not set */
    const char *error_pages;    /* folder with pages of errors; NULL: not set */
    unsigned error_folder;      /* with error_pages: its number, from 1; the caller's */
    /* Clients keep the files as compression dictionaries: RULES_ON, with the line
     * `Use-As-Dictionary: ...` and CRLF. */
    enum rules_choice dictionary;
    struct span dictionary_line;
    enum rules_action action;
    bool if_absent;             /* it acts only where no file answers */
    unsigned status;            /* of RULES_REDIRECT and RULES_STATUS */
    struct rules_target target; /* of RULES_REDIRECT and RULES_REWRITE; of RULES_STATUS, if a file
                                   is its page. Its stars stand for stars of `pattern` */
    const char *origin;         /* for people: weir.conf:12; NULL: not a rule of a path */
    struct span written;        /* for people: the path in a file of the site; empty: a section */
};

struct rules {
    const struct rules_rule *rule;
    unsigned count;                /* at most RULES_MAX */
    const struct rules_rule *list; /* rules with actions alone: the first decides */
    unsigned list_count;
    struct rules_index index, list_index; /* of both lists (rules_use_index); zeroed: none */
};

/* The rules that cover one path. */
struct rules_match {
    uint64_t bits[RULES_WORDS];     /* by the place of the rule */
    unsigned last;                  /* the last of them with fields; RULES_MAX: none */
    const struct rules_rule *actor; /* the rule whose action decides, or NULL */
    const struct rules_rule *gate;  /* the last rule with networks, or NULL */
    const struct rules_rule *meter; /* the last rule with a rate if it is a limit, or NULL */
    const struct rules_rule *cors;  /* the last rule about origins, or NULL */
    /* The last rule about dictionaries if it is on, or NULL. */
    const struct rules_rule *dictionary;
    struct rules_captures captures; /* of `actor` */
    enum rules_choice listing;      /* of the last rule that sets it, as the next four */
    enum rules_choice markdown;
    enum rules_choice hidden;
    const char *const *index;
    const char *fallback;
    const struct rules_rule *pages; /* the last rule with error_pages; NULL: none */
    bool is_private; /* set by the caller: the answer is for clients with a password */
};

/* Bytes of storage that rules_use_index needs for the index of both lists. */
size_t rules_index_storage(const struct rules *rules);

/* Makes the index of both lists in zeroed storage, which `rules` borrows. Call it when all patterns
 * are final. Without it each request tries all patterns. */
void rules_use_index(struct rules *rules, uint64_t *storage);

/* Whether a rule, or NULL, is one of the list. */
static inline bool rules_lists(const struct rules *rules, const struct rules_rule *rule)
{
    return rule && rule >= rules->list && rule < rules->list + rules->list_count;
}

/* Whether the answer depends on more than the path, so that each request has to be checked. */
static inline bool rules_match_is_guarded(const struct rules_match *match)
{
    return match->gate != NULL || match->meter != NULL || match->dictionary != NULL;
}

/* Finds the rules that cover `path`: decoded, normalised, or empty for a request without a path.
 * `captures` borrows the path. */
void rules_find(const struct rules *rules, struct span path, struct rules_match *ret_match);

/* The last rule about passwords that covers the path, or NULL. It costs one comparison for each
 * such rule behind it. */
const struct rules_rule *rules_keeper(const struct rules *rules, struct span path);

static inline bool rules_match_has(const struct rules_match *match, unsigned place)
{
    return (match->bits[place / 64] >> place % 64 & 1) != 0;
}

/* Appends the lines that the rules add to an answer. A private answer has a Cache-Control line that
 * says so (RFC 9111 section 5.2.2.7), and no line that lets shared caches keep it. */
void rules_add_fields(const struct rules *rules, const struct rules_match *match, bool is_error,
                      struct buf *out);

/* The line for a request from `origin` (the value of its Origin field), or an empty span: no line,
 * or the line is one of rules_add_fields. `cors` may be NULL. */
struct span rules_origin_line(const struct rules_rule *cors, struct span origin);

/* The most bytes that an answer has of rules, for any path; and of their lines that join. */
size_t rules_fields_most(const struct rules *rules);
size_t rules_joins_most(const struct rules *rules);

/* Appends which rules match, as hexadecimal digits, and `p` for a private answer. Two answers with
 * equal digests have equal fields. */
void rules_add_digest(const struct rules *rules, const struct rules_match *match, struct buf *out);
enum { RULES_DIGEST_MAX = RULES_WORDS * 16 + 1 };
