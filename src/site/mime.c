/* SPDX-License-Identifier: MIT
 *
 * The table of media types: an open-addressed hash from endings to types, built once at the
 * start. The first entry for an ending stays, so the order of loading is the order of trust: types
 * of the site, FIXED lines of mime.def, the system's table, FILL lines of mime.def.
 *
 * Only names are used. Files are not opened.
 */
#include "site/mime.h"

#include "base/hash.h"
#include "base/mediatype.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    SLOTS_AT_FIRST = 512,   /* a power of two */
    ENDINGS_MAX = 24 * 1024 /* so that a number has 16 bits */
};

#define CHARSET "; charset=utf-8"

struct site_mime {
    struct slot *slots; /* slot_count of them, at least a quarter empty */
    size_t slot_count;  /* a power of two */
    size_t used;
};

struct slot {
    char *type; /* with its charset; NULL: empty */
    uint8_t type_len, ending_len;
    char ending[MEDIATYPE_ENDING_MAX];
};

enum trust { FIXED, FILL };

static const struct {
    struct span ending, type;
    enum trust trust;
} built_in[] = {
#define MIME(ending, type, trust) { SPAN(ending), SPAN(type), trust },
#include "site/mime.def"
#undef MIME
};

static bool carries_charset(struct span type)
{
    static const struct span texts[] = {
        SPAN("application/javascript"), SPAN("application/xml"),     SPAN("application/xhtml+xml"),
        SPAN("application/xslt+xml"),   SPAN("application/rss+xml"), SPAN("application/atom+xml"),
        SPAN("image/svg+xml"),
    };

    if (span_starts(type, SPAN("text/")))
        return true;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (span_equal(type, texts[i]))
            return true;
    return false;
}

/* The slot where `ending` (lower case) is, or where it would be put. */
static struct slot *find_type(const struct site_mime *mime, struct span ending)
{
    size_t at = (size_t)hash_bytes(ending, 0) & (mime->slot_count - 1);
    for (;;) {
        struct slot *slot = &mime->slots[at];
        if (slot->type == NULL || span_equal(ending, span_of(slot->ending, slot->ending_len)))
            return slot;
        at = (at + 1) & (mime->slot_count - 1);
    }
}

static bool grow_table(struct site_mime *mime)
{
    struct site_mime larger = { .slot_count = mime->slot_count * 2, .used = mime->used };

    larger.slots = calloc(larger.slot_count, sizeof(*larger.slots));
    if (larger.slots == NULL)
        return false;
    for (size_t i = 0; i < mime->slot_count; i++) {
        const struct slot *slot = &mime->slots[i];
        if (slot->type != NULL)
            *find_type(&larger, span_of(slot->ending, slot->ending_len)) = *slot;
    }
    free(mime->slots);
    *mime = larger;
    return true;
}

/* False without memory. An ending that is too long for a slot, or one too many, is left out. */
static bool add_type(struct site_mime *mime, struct span ending, struct span type)
{
    char lower[MEDIATYPE_ENDING_MAX];

    if (ending.len == 0 || ending.len > MEDIATYPE_ENDING_MAX || mime->used == ENDINGS_MAX)
        return true;
    for (size_t i = 0; i < ending.len; i++)
        lower[i] = ascii_lower(ending.at[i]);
    struct slot *slot = find_type(mime, span_of(lower, ending.len));
    if (slot->type != NULL)
        return true;

    const struct span charset = carries_charset(type) ? SPAN(CHARSET) : SPAN("");
    char *text = malloc(type.len + charset.len);
    if (text == NULL)
        return false;
    memcpy(text, type.at, type.len);
    memcpy(text + type.len, charset.at, charset.len);
    *slot = (struct slot){
        .type = text,
        .type_len = (uint8_t)(type.len + charset.len),
        .ending_len = (uint8_t)ending.len,
    };
    memcpy(slot->ending, lower, ending.len);
    mime->used++;
    return mime->used < mime->slot_count / 4 * 3 || mime->used == ENDINGS_MAX || grow_table(mime);
}

static bool add_built_in(struct site_mime *mime, enum trust trust)
{
    for (size_t i = 0; i < sizeof(built_in) / sizeof(built_in[0]); i++)
        if (built_in[i].trust == trust && !add_type(mime, built_in[i].ending, built_in[i].type))
            return false;
    return true;
}

/* A line of a type and its endings. A line without a type is ignored. */
static bool add_line(struct site_mime *mime, struct span line)
{
    bool added = true;
    struct span ending;
    const struct span type = span_take_word(&line);
    if (!mediatype_valid(type))
        return true;
    while (added && (ending = span_take_word(&line)).len > 0)
        added = add_type(mime, ending, type);
    return added;
}

static bool add_own(struct site_mime *mime, const char *const *types)
{
    bool added = true;
    for (; added && types != NULL && *types != NULL; types++)
        added = add_line(mime, span_text(*types));
    return added;
}

/* Lines as above; `#` begins a comment. */
static bool add_system(struct site_mime *mime, const char *path)
{
    char *text = NULL;
    size_t size = 0;
    ssize_t len;
    bool added = true;

    FILE *file = path != NULL ? fopen(path, "re") : NULL;
    if (file == NULL)
        return true;
    while (added && (len = getline(&text, &size, file)) >= 0) {
        struct span rest = span_of(text, (size_t)len);
        struct span line = span_take(&rest, '#');
        while (span_ends(line, SPAN("\n")) || span_ends(line, SPAN("\r")))
            line.len--;
        added = add_line(mime, line);
    }
    free(text);
    (void)fclose(file); /* only read */
    return added;
}

struct site_mime *site_mime_new(const char *const *types, const char *system_path)
{
    struct site_mime *mime = malloc(sizeof(*mime));
    if (mime == NULL)
        return NULL;
    *mime = (struct site_mime){
        .slots = calloc(SLOTS_AT_FIRST, sizeof(struct slot)),
        .slot_count = SLOTS_AT_FIRST,
    };
    if (mime->slots != NULL && add_own(mime, types) && add_built_in(mime, FIXED) &&
        add_system(mime, system_path) && add_built_in(mime, FILL))
        return mime;
    site_mime_free(mime);
    return NULL;
}

void site_mime_free(struct site_mime *mime)
{
    if (mime == NULL)
        return;
    for (size_t i = 0; mime->slots != NULL && i < mime->slot_count; i++)
        free(mime->slots[i].type);
    free(mime->slots);
    free(mime);
}

uint16_t site_mime_number(const struct site_mime *mime, struct span file_name)
{
    char lower[MEDIATYPE_ENDING_MAX];
    size_t len = 0;

    while (len < file_name.len && file_name.at[file_name.len - 1 - len] != '.') {
        if (len == MEDIATYPE_ENDING_MAX || file_name.at[file_name.len - 1 - len] == '/')
            return SITE_MIME_UNKNOWN;
        len++;
    }
    if (len == 0 || len + 1 >= file_name.len) /* no dot, or only a leading one */
        return SITE_MIME_UNKNOWN;
    for (size_t i = 0; i < len; i++)
        lower[i] = ascii_lower(file_name.at[file_name.len - len + i]);
    const struct slot *slot = find_type(mime, span_of(lower, len));
    return slot->type != NULL ? (uint16_t)(SITE_MIME_FIRST + (slot - mime->slots))
                              : (uint16_t)SITE_MIME_UNKNOWN;
}

struct span site_mime_of_number(const struct site_mime *mime, uint16_t number)
{
    static const struct span known[SITE_MIME_FIRST] = {
        [SITE_MIME_UNKNOWN] = SPAN("application/octet-stream"),
        [SITE_MIME_HTML] = SPAN("text/html; charset=utf-8"),
        [SITE_MIME_JSON] = SPAN("application/json"),
    };
    if (number < SITE_MIME_FIRST)
        return known[number];
    const struct slot *slot = &mime->slots[number - SITE_MIME_FIRST];
    return span_of(slot->type, slot->type_len);
}

struct span site_mime_type(const struct site_mime *mime, struct span file_name)
{
    return site_mime_of_number(mime, site_mime_number(mime, file_name));
}
