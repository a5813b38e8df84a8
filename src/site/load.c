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
#include "site/allocator.h"
#include "site/compress.h"
#include "site/content.h"
#include "site/entry.h"
#include "site/mime.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

/* An entry, with its key. */
struct loaded {
    struct site_entry entry; /* first */
    char key[];
};

/* An entry while it is loaded. */
struct loading {
    struct site_entry *entry;
    struct site_lookup *lookup;
    struct site_identity identity[SITE_VARIANTS]; /* of the forms that were read */
};

/* Adds a form. False without memory; the form is freed then. */
static bool add_variant(struct site_entry *entry, int v, struct site_file *file)
{
    if (file == NULL || (v != SITE_PLAIN && site_entry_make_rest(entry, SPAN("")) == NULL)) {
        site_content_free(site_of(entry), file);
        return false;
    }
    site_entry_put(entry, v, file);
    entry->variants |= (uint8_t)(1u << v);
    return true;
}

/* Files that the entries of this process keep open. An entry leaves the cache while a slow client
 * still reads it, so the cache does not know all of them. */
static _Atomic uint32_t open_files;

static bool count_open_files(const struct site_entry *entry)
{
    uint32_t count = entry->cache.descriptors, most = site_of(entry)->options->open_files_max;
    if (count == 0)
        return true;
    uint32_t before = atomic_fetch_add_explicit(&open_files, count, memory_order_relaxed);
    return most == 0 || before + count <= most;
}

static void drop_variant(struct site_entry *entry, int v)
{
    if ((entry->variants & 1u << v) == 0)
        return;
    struct site_file *file = site_entry_file(entry, v);
    if ((entry->made & (1u << v)) != 0)
        site_made_count(0, (size_t)file->size);
    if (!site_entry_is_joined(entry, file))
        site_content_free(site_of(entry), file);
    site_entry_put(entry, v, NULL);
    entry->variants &= (uint8_t) ~(1u << v);
    entry->made &= (uint8_t) ~(1u << v);
}

static void release_entry(struct site_cache_entry *cached)
{
    struct site_entry *entry = (struct site_entry *)cached;
    struct site_entry_rest *rest = site_entry_rest(entry);

    while (entry->variants != 0)
        drop_variant(entry, __builtin_ctz(entry->variants));
    if (rest != NULL)
        site_made_done(&rest->made);
    free(rest);
    if (cached->descriptors > 0)
        atomic_fetch_sub_explicit(&open_files, cached->descriptors, memory_order_relaxed);
    site_allocator_give(site_of(entry)->options->allocator, entry);
}

/* The first open form has the entry's place among those with open files. */
static struct site_cache_link *open_link_of(struct site_cache_entry *cached)
{
    int v = 0;
    struct site_file *file = NULL;

    while (file == NULL || !file->open)
        file = site_entry_file((struct site_entry *)cached, v++);
    return &site_content_opened(file)->link;
}

const struct site_cache_kind site_load_kind = { release_entry, open_link_of };

/* Gives an open form the tag of its content, if it is small enough to be read now. A larger one is
 * left to the compressor. 0, or -EINPROGRESS. */
static int tag_by_content(const struct loading *loading, int v, struct site_file *file)
{
    const struct site_identity *identity = &loading->identity[v];
    struct site_content_digest digest;

    site_content_opened(file)->changed_ns = identity->changed_ns;
    if (file->size > SITE_CONTENT_AT_ONCE)
        return 0;
    int error = site_content_digest_file(site_file_fd(file), loading->lookup->patience, v, identity,
                                         &digest);
    if (error == 0)
        site_content_set_digest(file, &digest);
    return error == -EINPROGRESS ? error : 0;
}

/* Gives a loaded form its validators. `whole`: it is one version of the file. 0 or -EINPROGRESS. */
static int set_validators(const struct loading *loading, int v, struct site_file *file, bool whole)
{
    struct site_entry *entry = loading->entry;
    const struct site *site = site_of(entry);
    const struct site_identity *identity = &loading->identity[v];
    const int64_t began_ns = loading->lookup->began_ns;
    const bool dated = whole && site_content_is_dated(site, identity->modified_ns);
    const bool settled = site_content_is_settled(identity, began_ns);

    file->version = site_lookup_version(site, identity);
    file->last_modified_s = dated ? site_content_last_modified_s(identity, began_ns) : 0;
    if (file->open)
        site_content_opened(file)->modified_ns = identity->modified_ns;
    entry->settled = entry->settled && settled;
    entry->whole = entry->whole && whole;
    if (whole && (!file->open || (dated && settled)))
        site_content_make_etag(file, v);
    else if (whole && settled && site->options->etag != SITE_ETAG_TIME)
        return tag_by_content(loading, v, file);
    return 0;
}

/* Loads one variant into the entry, and takes its descriptor if the file stays open. Returns 0, or
 * -errno with the entry unchanged. */
static int load_variant(struct loading *loading, int v)
{
    const struct site_lookup *lookup = loading->lookup;
    const struct site *site = site_of(loading->entry);
    struct site_identity *identity = &loading->identity[v];
    int *fd = &loading->lookup->fd[v];
    struct site_file *file = NULL;
    bool whole = true;

    *identity = lookup->identity[v];
    int error = site_content_read(*fd, lookup->patience, identity, site->options->body_max,
                                  site_content_head_room(site), &file, &whole);
    if (error == 0 && file->open) {
        error = site_content_hash_end(*fd, lookup->patience, file->size,
                                      &site_content_opened(file)->end_hash);
        if (error < 0 && error != -EINPROGRESS)
            error = 0; /* it has become shorter, which sending will detect */
    }
    if (error == 0 && !whole && v != SITE_PLAIN)
        error = -EAGAIN; /* the plain file is better than a mixture of two siblings */
    if (error == 0 && file->open) {
        site_content_opened(file)->fd = *fd;
        *fd = -1;
    }
    if (error == 0)
        error = set_validators(loading, v, file, whole);
    if (error < 0) {
        site_content_free(site, file);
        return error;
    }
    return add_variant(loading->entry, v, file) ? 0 : -ENOMEM;
}

/* A new, empty entry, with one reference. It copies the path of the page in Markdown, which may be
 * empty. NULL without memory. */
static struct site_entry *new_entry(const struct site *site, struct span key, uint64_t hash,
                                    struct span markdown)
{
    struct loaded *loaded = malloc(sizeof(*loaded) + key.len);
    if (loaded == NULL)
        return NULL;
    memset(loaded, 0, sizeof(*loaded));
    memcpy(loaded->key, key.at, key.len);

    struct site_entry *entry = &loaded->entry;
    if (markdown.len > 0 && site_entry_make_rest(entry, markdown) == NULL) {
        free(loaded);
        return NULL;
    }
    entry->has_markdown = markdown.len > 0;
    entry->settled = entry->whole = true;
    site_cache_init(&entry->cache, &site->kind, hash, span_of(loaded->key, key.len));
    return entry;
}

/* Whether the server makes variants of this file: there is no stored one. */
static bool may_be_compressed(const struct site_entry *entry)
{
    return site_of(entry)->options->compress != 0 &&
           (entry->variants & ~(unsigned)entry->made) == 1u << SITE_PLAIN &&
           site_compress_suits(site_entry_type(entry), entry->plain->size);
}

/* Whether the compressor can read a form for its tag. */
static bool can_be_tagged(const struct site_entry *entry)
{
    bool any = false;
    for (unsigned left = entry->variants; left != 0; left &= left - 1)
        any = any || site_load_lacks_tag(entry, __builtin_ctz(left));
    return any && entry->whole && entry->settled && site_of(entry)->options->digests &&
           site_of(entry)->options->etag != SITE_ETAG_TIME;
}

bool site_load_lacks_tag(const struct site_entry *entry, int v)
{
    const struct site_file *file = site_entry_file(entry, v);
    return file != NULL && file->open && file->etag_len == 0 && file->size <= SITE_CONTENT_LARGEST;
}

/* Offers what the compressor can make, as far as it is of use. */
static void offer(struct site_entry *entry, unsigned rejected)
{
    if (may_be_compressed(entry) && entry->whole && entry->settled)
        site_made_offer(entry, rejected);
    atomic_store_explicit(&entry->untagged, can_be_tagged(entry), memory_order_relaxed);
}

/* Loads the plain file and its siblings. 0 or -errno: why the plain file cannot be loaded, or
 * -EINPROGRESS for any of them. */
static int load_variants(struct loading *loading)
{
    struct site_entry *entry = loading->entry;
    int error = load_variant(loading, SITE_PLAIN);
    for (int v = 0; v < SITE_PLAIN && error == 0 && entry->whole; v++) {
        const int failed = loading->lookup->fd[v] >= 0 ? load_variant(loading, v) : -ENOENT;
        if (failed == -EINPROGRESS)
            error = failed;
        /* Either of the two may have changed since the lookup. */
        if (failed == 0 &&
            !site_lookup_sibling_fits(&loading->identity[v], &loading->identity[SITE_PLAIN]))
            drop_variant(entry, v);
    }
    return error;
}

enum site_result site_load(const struct site *site, struct site_lookup *lookup, struct span key,
                           uint64_t hash, struct site_entry **ret_entry)
{
    char markdown[SITE_LOOKUP_MARKDOWN_MAX];
    struct site_entry *entry =
        new_entry(site, key, hash, site_lookup_markdown_path(lookup, markdown));
    if (entry == NULL)
        return SITE_BUSY;
    entry->type = site_mime_number(site->mime, site_lookup_name(lookup));
    atomic_store_explicit(&entry->checked_ns, lookup->checked_ns, memory_order_relaxed);

    struct loading loading = { .entry = entry, .lookup = lookup };
    int error = load_variants(&loading);
    if (error < 0) {
        release_entry(&entry->cache);
        return error == -EINPROGRESS                   ? SITE_NOT_IN_MEMORY
               : error == -ENOMEM || error == -ENODATA ? SITE_BUSY
                                                       : SITE_BROKEN;
    }
    entry->negotiable = entry->variants != 1u << SITE_PLAIN || may_be_compressed(entry);
    offer(entry, 0);
    site_entry_measure(entry);
    if (!count_open_files(entry)) {
        release_entry(&entry->cache);
        return SITE_BUSY;
    }
    *ret_entry = entry;
    return SITE_FILE;
}

enum site_result site_load_listing(const struct site *site, struct site_lookup *lookup,
                                   const struct site_listing_request *request, struct span key,
                                   uint64_t hash, uint64_t now_ns, struct site_entry **ret_entry)
{
    const struct site_identity *identity = &lookup->identity[SITE_PLAIN];
    const size_t head_room = site_content_head_room(site);
    struct site_entry *entry = new_entry(site, key, hash, SPAN(""));
    struct site_entry_rest *rest = entry != NULL ? site_entry_make_rest(entry, SPAN("")) : NULL;
    char *text = NULL;
    size_t len = 0, entries = 0;
    int error = -ENOMEM;

    if (rest != NULL)
        error = site_listing_render(site, request, &lookup->fd[SITE_PLAIN],
                                    SITE_CONTENT_BEGIN + head_room, &text, &len, &entries);
    if (error < 0) {
        if (entry != NULL)
            release_entry(&entry->cache);
        if (error == -ECANCELED)
            return SITE_NOT_IN_MEMORY;
        return error == -ENOMEM || error == -EMFILE || error == -ENFILE ? SITE_BUSY : SITE_BROKEN;
    }
    struct site_file *file = site_content_over(text, head_room, len);
    entry->type = request->form == SITE_LISTING_JSON ? SITE_MIME_JSON : SITE_MIME_HTML;
    atomic_store_explicit(&entry->checked_ns, now_ns, memory_order_relaxed);
    entry->settled = site_content_is_settled(identity, lookup->began_ns);
    /* Rendering takes 2 us of CPU time for an entry. So a listing that is requested all the time
     * takes a thousandth of a CPU. */
    rest->until_ns = now_ns + SITE_FRESH_NS + entries * SITE_LISTING_ENTRY_NS;
    file->version = site_lookup_version(site, identity);
    site_content_make_etag(file, SITE_PLAIN);
    CHECK(add_variant(entry, SITE_PLAIN, file)); /* it needs no memory */
    site_entry_measure(entry);
    *ret_entry = entry;
    return SITE_FILE;
}

/* ---- with forms that were made since ---- */

/* Copies a form that is on the disk, the plain file or a stored one, with its tag. */
static bool copy_stored(struct site_entry *entry, const struct site_entry *from, int v, int *fd)
{
    struct site_file *old = site_entry_file(from, v), *file;

    if (old->open)
        file = site_content_open(old->size);
    else
        file = site_content_copy(site_content_head_room(site_of(entry)),
                                 span_of(site_file_body(old), (size_t)old->size));
    if (file == NULL)
        return false;
    if (old->open) {
        struct site_open_file *opened = site_content_opened(file);
        const struct site_open_file *from_open = site_content_opened(old);
        opened->modified_ns = from_open->modified_ns;
        opened->changed_ns = from_open->changed_ns;
        opened->end_hash = from_open->end_hash;
        opened->fd = *fd;
        *fd = -1;
    }
    file->version = old->version;
    file->last_modified_s = old->last_modified_s;
    site_content_set_etag(file, site_file_etag(old));
    return add_variant(entry, v, file);
}

/* Gives the forms the tags that the compressor has made for the old entry. */
static void use_tags(struct site_entry *entry, const struct site_made *made)
{
    for (int v = 0; v < SITE_VARIANTS; v++) {
        struct site_file *file = site_entry_file(entry, v);
        if ((made->tagged & 1u << v) != 0 && file != NULL && file->open)
            site_content_set_digest(file, &made->digest[v]);
    }
}

static bool add_form(struct site_entry *entry, int v, struct span form,
                     const struct site_file *plain)
{
    struct site_file *file = site_content_copy(site_content_head_room(site_of(entry)), form);
    if (file == NULL)
        return false;
    file->last_modified_s = plain->last_modified_s;
    site_content_make_etag(file, v);
    if (!add_variant(entry, v, file))
        return false;
    entry->made |= (uint8_t)(1u << v);
    site_made_count(form.len, 0);
    return true;
}

/* Copies what the old entry has, and adds its `ready` forms and tags. */
static bool fill_from(struct site_entry *entry, const struct site_entry *old, unsigned ready,
                      struct site_lookup *lookup)
{
    const struct site_made *made = &site_entry_rest(old)->made;
    const unsigned stored = old->variants & ~(unsigned)old->made;

    entry->type = old->type;
    entry->negotiable = old->negotiable;
    for (int v = 0; v < SITE_VARIANTS; v++)
        if ((stored & 1u << v) != 0 && !copy_stored(entry, old, v, &lookup->fd[v]))
            return false;
    if ((ready & SITE_MADE_TAGS) != 0)
        use_tags(entry, made);
    for (int v = 0; v < SITE_PLAIN; v++) {
        const struct site_file *before = site_entry_file(old, v);
        const bool is_ready = (ready & 1u << v) != 0;
        if (!is_ready && (old->made & 1u << v) == 0)
            continue;
        if (!add_form(entry, v,
                      is_ready ? made->form[v] : span_of(site_file_body(before), before->size),
                      entry->plain))
            return false;
    }
    site_entry_measure(entry);
    return count_open_files(entry);
}

struct site_entry *site_load_with_made(struct site_entry *old, struct site_lookup *lookup)
{
    struct site_entry_rest *rest = site_entry_rest(old);
    const unsigned ready = rest != NULL ? site_made_take(&rest->made) : 0;

    if (rest != NULL)
        site_made_offer_again(old, &rest->made);
    if (ready == 0)
        return NULL;
    struct site_entry *entry = new_entry(site_of(old), site_cache_key(&old->cache), old->cache.hash,
                                         site_entry_markdown(old));
    if (entry == NULL || !fill_from(entry, old, ready, lookup)) {
        if (entry != NULL)
            release_entry(&entry->cache);
        site_made_return(&rest->made, ready);
        return NULL;
    }
    const uint8_t rejected = atomic_load_explicit(&rest->made.rejected, memory_order_relaxed);
    atomic_store_explicit(&entry->checked_ns, lookup->checked_ns, memory_order_relaxed);
    offer(entry, rejected);
    site_made_offer_later(&rest->made, ready);
    return entry;
}

struct site_entry *site_load_delta(const struct site_entry *of, struct span key, uint64_t hash,
                                   struct span bytes)
{
    struct site_entry *entry = new_entry(site_of(of), key, hash, SPAN(""));
    if (entry == NULL)
        return NULL;
    if (!add_form(entry, SITE_PLAIN, bytes, of->plain)) {
        release_entry(&entry->cache);
        return NULL;
    }
    entry->type = of->type;
    entry->delta = true;
    atomic_store_explicit(&entry->checked_ns,
                          atomic_load_explicit(&of->checked_ns, memory_order_relaxed),
                          memory_order_relaxed);
    site_entry_measure(entry);
    return entry;
}

bool site_load_is_current(const struct site_entry *entry, int v)
{
    const struct site_file *file = site_entry_file(entry, v);
    struct stat status;
    if (os_file_stat(site_file_fd(file), &status) < 0)
        return false;
    const struct site_identity now = site_lookup_identity_of(&status);
    return site_lookup_version(site_of(entry), &now) == file->version;
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

static bool is_of_time(const struct site_entry *entry, const struct site_lookup *lookup,
                       uint64_t now_ns)
{
    const struct site_entry_rest *rest = site_entry_rest(entry);
    if (rest != NULL && rest->until_ns != 0)
        return (int64_t)(now_ns - rest->until_ns) < 0;
    return site_mime_number(site_of(entry)->mime, site_lookup_name(lookup)) == entry->type;
}

bool site_load_matches(const struct site_entry *entry, const struct site_lookup *lookup,
                       uint64_t now_ns)
{
    if (!entry->settled || !is_of_time(entry, lookup, now_ns))
        return false;
    if (variants_of(lookup) != (entry->variants & ~entry->made) ||
        lookup->markdown != entry->has_markdown)
        return false;
    for (int v = 0; v < SITE_VARIANTS; v++)
        if (lookup->fd[v] >= 0 && site_entry_file(entry, v)->version !=
                                      site_lookup_version(site_of(entry), &lookup->identity[v]))
            return false;
    return true;
}
