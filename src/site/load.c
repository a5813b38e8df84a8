/* SPDX-License-Identifier: MIT
 *
 * Entries: small files are read into memory, one whole version of each; large files stay open.
 * An entry of a file that was compressed since is made of the entry before it, without reading.
 * The validators of each version (entity tag, modification time) and its identity on the disk are
 * set here, once. Using and evicting entries is up to the caller and the cache.
 */
#include "site/load.h"

#include "base/duration.h"
#include "os/clock.h"
#include "os/file.h"
#include "site/compress.h"
#include "site/content.h"
#include "site/mime.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

struct loaded {
    struct site_entry entry; /* first */
    struct site_identity identity[SITE_VARIANTS];
    struct site_made made;
    size_t head_room;  /* bytes before a body in memory, until it is trimmed */
    uint64_t until_ns; /* of a listing: when it is rendered again; 0 for a file */
    bool settled;      /* the last change of each file was at least a tick before the load */
    bool whole;
    enum site_patience patience; /* while it is loaded */
    char etag[SITE_VARIANTS][SITE_CONTENT_ETAG];
    char key[];
};

static const struct loaded *loaded_of(const struct site_entry *entry)
{
    return (const struct loaded *)entry;
}

/* Files that the entries of this process keep open. An entry leaves the cache while a slow client
 * still reads it, so the cache does not know all of them. */
static _Atomic uint32_t open_files;

static bool count_open_files(const struct site_entry *entry)
{
    uint32_t count = entry->cache.descriptors, most = entry->site->options->open_files_max;
    if (count == 0)
        return true;
    uint32_t before = atomic_fetch_add_explicit(&open_files, count, memory_order_relaxed);
    return most == 0 || before + count <= most;
}

static void drop_variant(struct loaded *loaded, int v)
{
    struct site_file *file = &loaded->entry.file[v];

    if ((loaded->entry.made & (1u << v)) != 0)
        site_made_count(0, (size_t)file->size);
    if (file->body != NULL)
        free((void *)(uintptr_t)(file->body - file->head_room));
    else
        free((void *)(uintptr_t)file->head.at);
    os_file_close(file->fd);
    *file = (struct site_file){ .fd = -1 };
    loaded->entry.variants &= (uint8_t) ~(1u << v);
    loaded->entry.made &= (uint8_t) ~(1u << v);
}

static void release_entry(struct site_cache_entry *cached)
{
    struct loaded *loaded = (struct loaded *)cached;

    for (int v = 0; v < SITE_VARIANTS; v++)
        drop_variant(loaded, v);
    site_made_done(&loaded->made);
    if (cached->descriptors > 0)
        atomic_fetch_sub_explicit(&open_files, cached->descriptors, memory_order_relaxed);
    free(loaded);
}

/* Gives an open form the tag of its content, if it is small enough to be read now. A larger one is
 * left to the compressor. 0, or -EINPROGRESS. */
static int tag_by_content(struct loaded *loaded, int v)
{
    struct site_file *file = &loaded->entry.file[v];
    struct site_content_digest digest;

    file->changed_ns = loaded->identity[v].changed_ns;
    if (file->size > SITE_CONTENT_AT_ONCE)
        return 0;
    int error =
        site_content_digest_file(file->fd, loaded->patience, v, &loaded->identity[v], &digest);
    if (error == 0)
        file->etag = site_content_digest_etag(loaded->etag[v], &digest);
    return error == -EINPROGRESS ? error : 0;
}

/* Gives a loaded form its validators. `whole`: it is one version of the file. 0 or -EINPROGRESS. */
static int set_validators(struct loaded *loaded, int v, const struct site_lookup *lookup,
                          bool whole)
{
    const struct site_identity *identity = &loaded->identity[v];
    const struct site *site = loaded->entry.site;
    struct site_file *file = &loaded->entry.file[v];
    const bool dated = whole && site_content_is_dated(site, identity->modified_ns);
    const bool settled = site_content_is_settled(identity, lookup->began_ns);

    file->modified_ns = identity->modified_ns;
    file->last_modified_s = dated ? site_content_last_modified_s(identity, lookup->began_ns) : -1;
    loaded->settled = loaded->settled && settled;
    loaded->whole = loaded->whole && whole;
    if (whole && (file->body != NULL || (dated && settled)))
        file->etag = site_content_etag(loaded->etag[v], file, v);
    else if (whole && settled && site->options->etag != SITE_ETAG_TIME)
        return tag_by_content(loaded, v);
    return 0;
}

/* Loads one variant into the entry, and takes *fd if the file stays open. Returns 0, or -errno with
 * the entry unchanged. */
static int load_variant(struct loaded *loaded, int v, const struct site_lookup *lookup, int *fd)
{
    struct site_identity *identity = &loaded->identity[v];
    struct site_file *file = &loaded->entry.file[v];
    bool whole = true;

    *identity = lookup->identity[v];
    int error = site_content_read(*fd, loaded->patience, identity,
                                  loaded->entry.site->options->body_max, loaded->head_room, file,
                                  &whole);
    if (error == 0 && file->body == NULL) {
        error = site_content_hash_end(*fd, loaded->patience, file->size, &file->end_hash);
        if (error < 0 && error != -EINPROGRESS)
            error = 0; /* it has become shorter, which sending will detect */
    }
    if (error == 0 && !whole && v != SITE_PLAIN)
        error = -EAGAIN; /* the plain file is better than a mixture of two siblings */
    loaded->entry.variants |= (uint8_t)(1u << v);
    if (error == 0 && file->body == NULL) {
        file->fd = *fd;
        *fd = -1;
    }
    if (error == 0)
        error = set_validators(loaded, v, lookup, whole);
    if (error < 0)
        drop_variant(loaded, v);
    return error;
}

/* Sets the costs of the entry for the cache. */
static void measure_entry(struct loaded *loaded)
{
    struct site_cache_entry *cached = &loaded->entry.cache;

    cached->size_bytes = sizeof(*loaded) + cached->key.len + loaded->entry.markdown.len;
    cached->descriptors = 0;
    for (int v = 0; v < SITE_VARIANTS; v++) {
        const struct site_file *file = &loaded->entry.file[v];
        if (file->body != NULL)
            cached->size_bytes += file->head_room + file->size;
        if (file->fd >= 0)
            cached->descriptors++;
    }
}

/* A new, empty entry, with one reference. It copies the path of the page in Markdown, which may be
 * empty. NULL without memory. */
static struct loaded *new_entry(const struct site *site, struct span key, uint64_t hash,
                                struct span markdown)
{
    struct loaded *loaded = calloc(1, sizeof(*loaded) + key.len + markdown.len);
    if (loaded == NULL)
        return NULL;
    memcpy(loaded->key, key.at, key.len);
    if (markdown.len > 0)
        memcpy(loaded->key + key.len, markdown.at, markdown.len);
    loaded->settled = loaded->whole = true;
    loaded->head_room = SITE_HEAD_ROOM + 2 * site->options->fields_max;

    struct site_entry *entry = &loaded->entry;
    entry->site = site;
    entry->cache.key = span_of(loaded->key, key.len);
    entry->markdown = span_of(loaded->key + key.len, markdown.len);
    entry->cache.hash = hash;
    entry->cache.release = release_entry;
    atomic_store_explicit(&entry->cache.references, 1, memory_order_relaxed);
    for (int v = 0; v < SITE_VARIANTS; v++)
        entry->file[v].fd = -1;
    return loaded;
}

/* Whether the server makes variants of this file: there is no stored one. */
static bool may_be_compressed(const struct site_entry *entry)
{
    return entry->site->options->compress != 0 &&
           (entry->variants & ~(unsigned)entry->made) == 1u << SITE_PLAIN &&
           site_compress_suits(entry->type, entry->file[SITE_PLAIN].size);
}

/* Whether the compressor can read a form for its tag. */
static bool can_be_tagged(const struct loaded *loaded)
{
    bool any = false;
    for (int v = 0; v < SITE_VARIANTS; v++)
        any = any || site_load_lacks_tag(&loaded->entry, v);
    return any && loaded->whole && loaded->settled && loaded->entry.site->options->digests &&
           loaded->entry.site->options->etag != SITE_ETAG_TIME;
}

bool site_load_lacks_tag(const struct site_entry *entry, int v)
{
    const struct site_file *file = &entry->file[v];
    return file->fd >= 0 && file->etag.len == 0 && file->size <= SITE_CONTENT_LARGEST;
}

/* Loads the plain file and its siblings. 0 or -errno: why the plain file cannot be loaded, or
 * -EINPROGRESS for any of them. */
static int load_variants(struct loaded *loaded, struct site_lookup *lookup)
{
    int error = load_variant(loaded, SITE_PLAIN, lookup, &lookup->fd[SITE_PLAIN]);
    for (int v = 0; v < SITE_PLAIN && error == 0 && loaded->whole; v++) {
        const int failed = lookup->fd[v] >= 0 ? load_variant(loaded, v, lookup, &lookup->fd[v])
                                              : -ENOENT;
        if (failed == -EINPROGRESS)
            error = failed;
        /* Either of the two may have changed since the lookup. */
        if (failed == 0 &&
            !site_lookup_sibling_fits(&loaded->identity[v], &loaded->identity[SITE_PLAIN]))
            drop_variant(loaded, v);
    }
    return error;
}

enum site_result site_load(const struct site *site, struct site_lookup *lookup, struct span key,
                           uint64_t hash, struct site_entry **ret_entry)
{
    char markdown[SITE_LOOKUP_MARKDOWN_MAX];
    struct loaded *loaded = new_entry(site, key, hash, site_lookup_markdown_path(lookup, markdown));
    if (loaded == NULL)
        return SITE_BUSY;
    struct site_entry *entry = &loaded->entry;
    entry->type = site_mime_type(site->mime, site_lookup_name(lookup));
    atomic_store_explicit(&entry->checked_ns, lookup->checked_ns, memory_order_relaxed);
    loaded->patience = lookup->patience;

    int error = load_variants(loaded, lookup);
    if (error < 0) {
        release_entry(&entry->cache);
        return error == -EINPROGRESS                   ? SITE_NOT_IN_MEMORY
               : error == -ENOMEM || error == -ENODATA ? SITE_BUSY
                                                       : SITE_BROKEN;
    }
    entry->negotiable = entry->variants != 1u << SITE_PLAIN || may_be_compressed(entry);
    if (may_be_compressed(entry) && loaded->whole && loaded->settled)
        site_made_offer(entry, &loaded->made);
    atomic_store_explicit(&entry->untagged, can_be_tagged(loaded), memory_order_relaxed);
    measure_entry(loaded);
    if (!count_open_files(entry)) {
        release_entry(&entry->cache);
        return SITE_BUSY;
    }
    *ret_entry = entry;
    return SITE_FILE;
}

/* How long a listing of so many entries is used while the directory does not change. The sizes and
 * times in it may be as old as that. Rendering an entry takes about 2 us of CPU time, so a listing
 * that is always asked for takes a thousandth of a CPU. */
static uint64_t listing_life_ns(size_t entries)
{
    return SITE_FRESH_NS + entries * SITE_LISTING_ENTRY_NS;
}

enum site_result site_load_listing(const struct site *site, struct site_lookup *lookup,
                                   const struct site_listing_request *request, struct span key,
                                   uint64_t hash, uint64_t now_ns, struct site_entry **ret_entry)
{
    struct loaded *loaded = new_entry(site, key, hash, SPAN(""));
    if (loaded == NULL)
        return SITE_BUSY;
    struct site_entry *entry = &loaded->entry;
    struct site_file *file = &entry->file[SITE_PLAIN];
    char *text;
    size_t len, entries;
    int error = site_listing_render(site, request, &lookup->fd[SITE_PLAIN], loaded->head_room,
                                    &text, &len, &entries);
    if (error < 0) {
        release_entry(&entry->cache);
        return error == -ENOMEM || error == -EMFILE || error == -ENFILE ? SITE_BUSY : SITE_BROKEN;
    }
    entry->type = site_listing_type(request->form);
    entry->variants = 1u << SITE_PLAIN;
    atomic_store_explicit(&entry->checked_ns, now_ns, memory_order_relaxed);
    loaded->identity[SITE_PLAIN] = lookup->identity[SITE_PLAIN];
    loaded->settled = site_content_is_settled(&lookup->identity[SITE_PLAIN], lookup->began_ns);
    loaded->until_ns = now_ns + listing_life_ns(entries);
    file->body = text + loaded->head_room;
    file->head_room = (uint32_t)loaded->head_room;
    file->size = len - loaded->head_room;
    file->last_modified_s = -1;
    file->etag = site_content_etag(loaded->etag[SITE_PLAIN], file, SITE_PLAIN);
    measure_entry(loaded);
    *ret_entry = entry;
    return SITE_FILE;
}

/* ---- with forms that were made since ---- */

/* Copies a form that is on the disk, the plain file or a stored one, with the tag that the
 * compressor has read meanwhile. */
static bool copy_stored(struct loaded *loaded, const struct loaded *from, int v, int *fd)
{
    const struct site_file *old = &from->entry.file[v];
    struct site_file *file = &loaded->entry.file[v];

    if (old->body != NULL &&
        !site_content_copy(file, loaded->head_room, span_of(old->body, (size_t)old->size)))
        return false;
    if (old->body == NULL) {
        file->fd = *fd;
        *fd = -1;
        file->size = old->size;
        file->end_hash = old->end_hash;
        file->changed_ns = old->changed_ns;
    }
    memcpy(loaded->etag[v], from->etag[v], SITE_CONTENT_ETAG);
    file->etag = span_of(loaded->etag[v], old->etag.len);
    file->modified_ns = old->modified_ns;
    file->last_modified_s = old->last_modified_s;
    loaded->identity[v] = from->identity[v];
    loaded->entry.variants |= (uint8_t)(1u << v);
    return true;
}

/* Gives the forms the tags that the compressor has made for the old entry. */
static void use_tags(struct loaded *loaded, const struct loaded *old)
{
    for (int v = 0; v < SITE_VARIANTS; v++)
        if ((old->made.tagged & 1u << v) != 0 && loaded->entry.file[v].fd >= 0)
            loaded->entry.file[v].etag =
                site_content_digest_etag(loaded->etag[v], &old->made.digest[v]);
}

static bool add_form(struct loaded *loaded, int v, struct span form, const struct site_file *plain)
{
    struct site_file *file = &loaded->entry.file[v];
    if (!site_content_copy(file, loaded->head_room, form))
        return false;
    file->modified_ns = plain->modified_ns;
    file->last_modified_s = plain->last_modified_s;
    file->etag = site_content_etag(loaded->etag[v], file, v);
    loaded->entry.variants |= (uint8_t)(1u << v);
    loaded->entry.made |= (uint8_t)(1u << v);
    site_made_count(form.len, 0);
    return true;
}

/* Copies what the old entry has, and adds its `ready` forms and tags. */
static bool fill_from(struct loaded *loaded, const struct loaded *old, unsigned ready,
                      struct site_lookup *lookup)
{
    struct site_entry *entry = &loaded->entry;
    const unsigned stored = old->entry.variants & ~(unsigned)old->entry.made;

    entry->type = old->entry.type;
    entry->negotiable = old->entry.negotiable;
    for (int v = 0; v < SITE_VARIANTS; v++)
        if ((stored & 1u << v) != 0 && !copy_stored(loaded, old, v, &lookup->fd[v]))
            return false;
    if ((ready & SITE_MADE_TAGS) != 0)
        use_tags(loaded, old);
    for (int v = 0; v < SITE_PLAIN; v++) {
        const struct site_file *made = &old->entry.file[v];
        const bool is_ready = (ready & 1u << v) != 0;
        if (!is_ready && (old->entry.made & 1u << v) == 0)
            continue;
        if (!add_form(loaded, v, is_ready ? old->made.form[v] : span_of(made->body, made->size),
                      &entry->file[SITE_PLAIN]))
            return false;
    }
    measure_entry(loaded);
    return count_open_files(entry);
}

struct site_entry *site_load_with_made(struct site_entry *entry, struct site_lookup *lookup)
{
    struct loaded *old = (struct loaded *)entry;
    const unsigned ready = site_made_take(&old->made);

    site_made_offer_again(entry, &old->made);
    if (ready == 0)
        return NULL;
    struct loaded *loaded =
        new_entry(entry->site, entry->cache.key, entry->cache.hash, entry->markdown);
    if (loaded == NULL || !fill_from(loaded, old, ready, lookup)) {
        if (loaded != NULL)
            release_entry(&loaded->entry.cache);
        site_made_return(&old->made, ready);
        return NULL;
    }
    atomic_store_explicit(&loaded->entry.checked_ns, lookup->checked_ns, memory_order_relaxed);
    atomic_store_explicit(&loaded->made.rejected,
                          atomic_load_explicit(&old->made.rejected, memory_order_relaxed),
                          memory_order_relaxed);
    if (may_be_compressed(&loaded->entry))
        site_made_offer(&loaded->entry, &loaded->made);
    atomic_store_explicit(&loaded->entry.untagged, can_be_tagged(loaded), memory_order_relaxed);
    site_made_offer_later(&old->made, ready);
    return &loaded->entry;
}

struct site_entry *site_load_delta(const struct site_entry *of, struct span key, uint64_t hash,
                                   struct span bytes)
{
    struct loaded *loaded = new_entry(of->site, key, hash, SPAN(""));
    if (loaded == NULL)
        return NULL;
    if (!add_form(loaded, SITE_PLAIN, bytes, &of->file[SITE_PLAIN])) {
        release_entry(&loaded->entry.cache);
        return NULL;
    }
    loaded->entry.type = of->type;
    loaded->entry.delta = true;
    measure_entry(loaded);
    return &loaded->entry;
}

struct site_made *site_load_made(struct site_entry *entry)
{
    return &((struct loaded *)entry)->made;
}

bool site_load_is_current(const struct site_entry *entry, int v)
{
    struct stat status;
    if (os_file_stat(entry->file[v].fd, &status) < 0)
        return false;
    const struct site_identity now = site_lookup_identity_of(&status);
    return site_lookup_identity_equal(&now, &loaded_of(entry)->identity[v]);
}

/* ---- comparing ---- */

static uint8_t variants_of(const struct site_lookup *lookup)
{
    unsigned variants = 0;
    for (unsigned v = 0; v < SITE_VARIANTS; v++)
        if (lookup->fd[v] >= 0)
            variants |= 1u << v;
    return (uint8_t)variants;
}

static bool is_of_time(const struct loaded *loaded, const struct site_lookup *lookup,
                       uint64_t now_ns)
{
    if (loaded->until_ns != 0)
        return (int64_t)(now_ns - loaded->until_ns) < 0;
    return site_mime_type(loaded->entry.site->mime, site_lookup_name(lookup)).at ==
           loaded->entry.type.at;
}

bool site_load_matches(const struct site_entry *entry, const struct site_lookup *lookup,
                       uint64_t now_ns)
{
    const struct loaded *loaded = loaded_of(entry);

    if (!loaded->settled || !is_of_time(loaded, lookup, now_ns))
        return false;
    if (variants_of(lookup) != (entry->variants & ~entry->made) ||
        lookup->markdown != (entry->markdown.len > 0))
        return false;
    for (int v = 0; v < SITE_VARIANTS; v++)
        if (lookup->fd[v] >= 0 &&
            !site_lookup_identity_equal(&loaded->identity[v], &lookup->identity[v]))
            return false;
    return true;
}

bool site_load_is_whole(const struct site_entry *entry)
{
    return loaded_of(entry)->whole;
}
