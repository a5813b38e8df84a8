/* SPDX-License-Identifier: MIT
 *
 * Answers for paths: from the cache while they are fresh, otherwise from the disk. A hit is a
 * hash, a lookup in the table and a comparison of two times, with an fstat for files that are
 * kept open. Everything else is in load_from_disk.
 *
 * Opening and reading files is in lookup.c and load.c. Absent paths are not cached. Each request
 * for one goes to the disk, so that the next request finds a file that appears. absent.h makes that
 * cheap for a path that stays absent.
 */
#include "site/site.h"

#include "base/buf.h"
#include "base/hash.h"
#include "os/file.h"
#include "site/content.h"
#include "site/entry.h"
#include "site/load.h"
#include "site/query.h"
#include "site/siblings.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>

enum site_result site_query_look_up(const struct site *site, const struct site_query *query,
                                    enum site_patience patience, struct site_lookup *ret_lookup)
{
    if (site->root_fd < 0 && query->kind != SITE_QUERY_ERROR_PAGE)
        return SITE_ABSENT;
    switch (query->kind) {
    case SITE_QUERY_PATH:
        return site_lookup(site, query->view, query->path, patience, ret_lookup);
    case SITE_QUERY_FALLBACK: {
        enum site_result result =
            site_lookup_file(site, site->root_fd, query->path, patience, ret_lookup);
        return ret_lookup->is_directory ? SITE_FORBIDDEN : result;
    }
    case SITE_QUERY_ERROR_PAGE:
        return site_lookup_file(site, query->pages_fd, query->path, patience, ret_lookup);
    case SITE_QUERY_LISTING:
        return site_lookup_directory(site, query->view, query->path, patience, ret_lookup);
    default:
        return SITE_ABSENT;
    }
}

enum site_result site_query_load(const struct site *site, const struct site_query *query,
                                 struct site_lookup *lookup, uint64_t now_ns,
                                 struct site_entry **ret_entry)
{
    if (query->kind != SITE_QUERY_LISTING)
        return site_load(site, lookup, query->key, query->hash, ret_entry);
    if (!query->may_render)
        return SITE_BUSY;
    if (lookup->patience == SITE_CACHED_ONLY)
        return SITE_NOT_IN_MEMORY; /* reading a folder takes long, also in memory */
    return site_load_listing(site, lookup, query->listing, query->key, query->hash, now_ns,
                             ret_entry);
}

static bool is_still_absent(const struct site *site, const struct site_query *query,
                            enum site_patience patience, uint64_t now_ns)
{
    if (!site_absent_likely(site->absent, query->hash, now_ns) || site->trace != NULL)
        return false;
    const int root_fd = query->kind == SITE_QUERY_ERROR_PAGE ? query->pages_fd : site->root_fd;
    return site_lookup_is_absent(site, query->view, root_fd, query->path, patience);
}

/* Signed, because another thread's time may be slightly ahead. */
static inline bool entry_is_fresh(uint64_t checked_ns, uint64_t now_ns)
{
    return (int64_t)(now_ns - checked_ns) < (int64_t)SITE_FRESH_NS;
}

/* The entry in the cache, fresh or not, or NULL. */
static inline struct site_entry *find_entry(const struct site *site,
                                            struct site_cache_reader *reader, struct span key,
                                            uint64_t hash)
{
    struct site_entry *entry = (struct site_entry *)site_cache_find(reader, hash, key);

    /* Two sites can have equal keys; their hashes differ by the seed of the site. */
    return entry != NULL && entry->cache.kind == &site->kind ? entry : NULL;
}

struct site_entry *site_query_find_entry(const struct site *site, struct site_cache_reader *reader,
                                         const struct site_query *query)
{
    return find_entry(site, reader, query->key, query->hash);
}

bool site_query_claim_recheck(struct site_entry *entry, uint64_t *ret_checked_ns, uint64_t now_ns)
{
    *ret_checked_ns = atomic_load_explicit(&entry->checked_ns, memory_order_relaxed);
    return !entry_is_fresh(*ret_checked_ns, now_ns) &&
           atomic_compare_exchange_strong_explicit(&entry->checked_ns, ret_checked_ns, now_ns,
                                                   memory_order_relaxed, memory_order_relaxed);
}

void site_query_return_recheck(struct site_entry *entry, uint64_t checked_ns, uint64_t claimed_ns)
{
    (void)atomic_compare_exchange_strong_explicit(&entry->checked_ns, &claimed_ns, checked_ns,
                                                  memory_order_relaxed, memory_order_relaxed);
}

/* Finds and loads from the disk, or compares `old` with the disk if it is not NULL. An old entry
 * that has changed leaves the cache at once, even if loading the new one fails. */
static __attribute__((noinline)) enum site_result load_from_disk(
    const struct site *site, struct site_cache_reader *reader, struct site_query *query,
    struct site_entry *old, uint64_t now_ns, enum site_patience patience,
    struct site_entry **ret_entry, bool *ret_new)
{
    const enum os_file_medium medium = query->kind == SITE_QUERY_ERROR_PAGE ? site->pages_medium
                                                                            : site->root_medium;
    struct site_lookup lookup;
    uint64_t checked_ns = 0;

    if (query->view == NULL)
        query->view = &site->view;
    if (medium == OS_FILE_REMOTE && patience == SITE_CACHED_ONLY)
        return SITE_NOT_IN_MEMORY; /* opening may wait, too */
    if (medium == OS_FILE_MEMORY && query->kind != SITE_QUERY_LISTING)
        patience = SITE_MAY_WAIT; /* it never waits, and most such filesystems cannot say so */
    if (old != NULL) {
        if (!site_query_claim_recheck(old, &checked_ns, now_ns)) {
            *ret_entry = old;
            *ret_new = false;
            return SITE_FILE;
        }
    } else if (is_still_absent(site, query, patience, now_ns)) {
        return SITE_ABSENT;
    }
    lookup.checked_ns = now_ns;
    enum site_result result = site_query_look_up(site, query, patience, &lookup);
    if (result == SITE_ABSENT)
        site_absent_note(site->absent, query->hash, now_ns);
    if (result == SITE_BUSY || result == SITE_BROKEN || result == SITE_NOT_IN_MEMORY) {
        if (old != NULL)
            site_query_return_recheck(old, checked_ns, now_ns);
        return result;
    }
    if (old != NULL && result == SITE_FILE && site_load_matches(old, &lookup, now_ns)) {
        struct site_entry *with_made = site_load_with_made(old, &lookup);
        site_query_return_recheck(old, lookup.checked_ns,
                                  now_ns); /* the siblings may be known since then */
        site_lookup_close(&lookup);
        *ret_entry = with_made != NULL ? with_made : old;
        *ret_new = with_made != NULL;
        return SITE_FILE;
    }
    if (old != NULL)
        site_cache_remove(reader, &old->cache);
    if (result != SITE_FILE)
        return result;
    result = site_query_load(site, query, &lookup, now_ns, ret_entry);
    site_lookup_close(&lookup);
    if (result == SITE_FILE)
        *ret_new = true;
    return result;
}

/* Compares size and time of the file behind an open variant with those measured. The inode's ctime
 * counts if the tag is made of the content. It changes when another file takes the name, too. */
static bool variant_is_current(const struct site_open_file *opened, bool asks,
                               struct site_identity *ret_now)
{
    struct stat status;

    *ret_now = (struct site_identity){ 0 };
    if ((asks ? os_file_stat(opened->fd, &status) : os_file_stat_cached(opened->fd, &status)) < 0)
        return false;
    *ret_now = site_lookup_identity_of(&status);
    return ret_now->size == opened->file.size && ret_now->modified_ns == opened->modified_ns &&
           (opened->changed_ns == 0 || ret_now->changed_ns == opened->changed_ns);
}

/* Whether the files that an entry keeps open are unchanged. Their lengths will be announced. Of a
 * remote filesystem, `asks` decides whether another machine or process is asked. Otherwise what the
 * kernel knows counts, and the next comparison of the entry asks. */
static bool open_files_are_current(const struct site_entry *entry, bool asks)
{
    struct site_identity now;

    for (unsigned left = entry->variants; left != 0; left &= left - 1) {
        const struct site_file *file = site_entry_file(entry, __builtin_ctz(left));
        if (file->open && !variant_is_current((const struct site_open_file *)file, asks, &now))
            return false;
    }
    return true;
}

/* Makes the next request for an entry compare it with the disk. */
static void make_stale(struct site_entry *entry, uint64_t now_ns)
{
    atomic_store_explicit(&entry->checked_ns, now_ns - SITE_FRESH_NS, memory_order_relaxed);
}

static enum site_result find_or_load(const struct site *site, struct site_cache_reader *reader,
                                     struct site_query *query, uint64_t now_ns,
                                     enum site_patience patience, struct site_entry **ret_entry,
                                     bool *ret_new)
{
    query->hash = hash_bytes(query->key, site->seed);
    struct site_entry *entry = find_entry(site, reader, query->key, query->hash);
    if (entry != NULL &&
        entry_is_fresh(atomic_load_explicit(&entry->checked_ns, memory_order_relaxed), now_ns)) {
        if (entry->cache.descriptors == 0 ||
            open_files_are_current(entry, patience == SITE_MAY_WAIT ||
                                              site->root_medium != OS_FILE_REMOTE)) {
            *ret_entry = entry;
            *ret_new = false;
            return SITE_FILE;
        }
        make_stale(entry, now_ns);
    }
    return load_from_disk(site, reader, query, entry, now_ns, patience, ret_entry, ret_new);
}

enum site_result site_find_query(const struct site *site, struct site_cache_reader *reader,
                                 struct site_query *query, uint64_t now_ns,
                                 enum site_patience patience, struct site_entry **ret_entry,
                                 bool *ret_new)
{
    if (query->path.len == 0)
        return SITE_ABSENT;
    if (__builtin_expect(query->kind == SITE_QUERY_PATH, 1) && query->path.at[0] != '/')
        return SITE_ABSENT;
    return find_or_load(site, reader, query, now_ns, patience, ret_entry, ret_new);
}

enum site_result site_find(const struct site *site, struct site_cache_reader *reader,
                           struct span path, uint64_t now_ns, struct site_entry **ret_entry,
                           bool *ret_new)
{
    struct site_query query = { .kind = SITE_QUERY_PATH, .path = path, .key = path };
    return site_find_query(site, reader, &query, now_ns, SITE_MAY_WAIT, ret_entry, ret_new);
}

struct site_entry *site_find_kept(const struct site *site, struct site_cache_reader *reader,
                                  struct span path, uint64_t now_ns)
{
    struct site_entry *entry = find_entry(site, reader, path, hash_bytes(path, site->seed));
    if (entry == NULL ||
        !entry_is_fresh(atomic_load_explicit(&entry->checked_ns, memory_order_relaxed), now_ns))
        return NULL;
    if (entry->cache.descriptors > 0 &&
        (site->root_medium == OS_FILE_REMOTE || !open_files_are_current(entry, true)))
        return NULL;
    return entry;
}

bool site_query_error_page(const struct site *site, unsigned folder, unsigned status,
                           char storage[SITE_QUERY_ERROR_PAGE_MAX], struct site_query *ret_query)
{
    struct buf text = buf_over(storage, SITE_QUERY_ERROR_PAGE_MAX);

    if (site->pages_fd[folder] < 0)
        return false;
    buf_add(&text, SPAN("error"));
    if (folder > 0)
        buf_add_u64(&text, folder);
    buf_add_char(&text, '/');
    const size_t prefix_len = text.len;
    buf_add_u64(&text, status);
    buf_add(&text, SPAN(".html"));
    *ret_query = (struct site_query){
        .kind = SITE_QUERY_ERROR_PAGE,
        .path = span_skip(buf_span(&text), prefix_len),
        .key = buf_span(&text),
        .pages_fd = site->pages_fd[folder],
    };
    return true;
}

bool site_query_listing(const struct site_listing_request *request, bool may_render, char *storage,
                        size_t size, struct site_query *ret_query)
{
    size_t len;

    if (!site_listing_key(request, storage, size, &len))
        return false;
    *ret_query = (struct site_query){
        .kind = SITE_QUERY_LISTING,
        .view = request->view,
        .path = request->path,
        .key = span_of(storage, len),
        .listing = request,
        .may_render = may_render,
    };
    return true;
}

void site_query_complete(const struct site *site, struct site_query *query)
{
    query->hash = hash_bytes(query->key, site->seed);
    if (query->view == NULL)
        query->view = &site->view;
}

bool site_publish(struct site_cache_reader *reader, struct site_entry **at)
{
    /* No other thread knows the entry yet. */
    CHECK(atomic_load_explicit(&(*at)->cache.references, memory_order_relaxed) == 1);
    site_entry_pack(at);
    struct site_entry *const entry = *at;
    site_entry_measure(entry);
    /* The cache counts a refusal, and the caller has its own reference. */
    if (entry->whole && site_cache_insert(reader, &entry->cache))
        return true;
    /* No request finds a variant or a tag. */
    atomic_store_explicit(&entry->missing, 0, memory_order_relaxed);
    atomic_store_explicit(&entry->untagged, 0, memory_order_relaxed);
    return false;
}

int site_file_read(const struct site_file *file, char *bytes, size_t len, uint64_t offset)
{
    if (file->open)
        return os_file_read_at(site_file_fd(file), bytes, len, offset);
    if (offset > file->size || len > file->size - offset)
        return -ENODATA;
    memcpy(bytes, site_file_body(file) + offset, len);
    return 0;
}

bool site_file_unchanged(const struct site_file *file)
{
    const struct site_open_file *opened = (const struct site_open_file *)file;
    struct site_identity now;
    uint64_t end_hash;

    if (!file->open || variant_is_current(opened, true, &now))
        return true;
    /* A file without a date may be rewritten without a trace in size and mtime. Its ctime also
     * changes when it is replaced, linked or given other permissions, and then its end is the same.
     */
    const bool renamed = now.size == file->size && now.modified_ns == opened->modified_ns;
    return (now.size > file->size || renamed) &&
           site_content_hash_end(opened->fd, SITE_MAY_WAIT, file->size, &end_hash) == 0 &&
           end_hash == opened->end_hash;
}

/* The fallback has to exist at the start. Later it may come and go. */
static int fallback_is_file(const struct site *site)
{
    struct stat status;

    int fd = os_file_open_beneath(site->root_fd, site->view.fallback);
    if (fd < 0)
        return fd;
    int error = os_file_stat(fd, &status);
    os_file_close(fd);
    if (error == 0 && !S_ISREG(status.st_mode))
        error = S_ISDIR(status.st_mode) ? -EISDIR : -EINVAL;
    return error;
}

bool site_can_read(const struct site *site, bool lists)
{
    return site->root_fd < 0 || os_file_can_enter(site->root_fd, lists);
}

/* Opens the folders of error pages: that of the site, and those of its paths. */
static int open_error_folders(struct site *site, const char **ret_what)
{
    const struct site_options *options = site->options;
    unsigned count = 1;

    while (options->error_folders != NULL && options->error_folders[count - 1] != NULL)
        count++;
    site->pages_fd = malloc(count * sizeof(*site->pages_fd));
    if (site->pages_fd == NULL)
        return -ENOMEM;
    for (; site->pages_count < count; site->pages_count++) {
        const unsigned at = site->pages_count;
        const char *folder = at == 0 ? options->error_pages : options->error_folders[at - 1];
        const int fd = folder != NULL ? os_file_open_directory(folder) : -1;
        if (folder != NULL && fd < 0) {
            *ret_what = folder;
            return fd;
        }
        site->pages_fd[at] = fd;
        const enum os_file_medium medium = fd >= 0 ? os_file_medium(fd) : OS_FILE_MEMORY;
        if (medium > site->pages_medium)
            site->pages_medium = medium;
    }
    return 0;
}

static int open_root(struct site *site, const char **ret_what)
{
    struct stat root;

    if (site->options->root == NULL)
        return 0;
    site->root_fd = os_file_open_directory(site->options->root);
    if (site->root_fd < 0) {
        *ret_what = site->options->root;
        return site->root_fd;
    }
    site->root_medium = os_file_medium(site->root_fd);
    if (os_file_stat(site->root_fd, &root) == 0)
        site->disk = root.st_dev;
    return 0;
}

/* Opens what the options name. On failure *ret_what is the path that failed. */
static int open_paths(struct site *site, const char **ret_what)
{
    const struct site_options *options = site->options;
    int error = open_root(site, ret_what);

    if (error == 0)
        error = open_error_folders(site, ret_what);
    if (error < 0)
        return error;
    if (options->fallback != NULL) {
        site->view.fallback = options->fallback + strspn(options->fallback, "/");
        error = fallback_is_file(site);
        if (error < 0)
            *ret_what = options->fallback;
    }
    return error;
}

int site_open(struct site **ret_site, const struct site_options *options,
              const struct site_mime *mime, const char **ret_what)
{
    struct site *site = malloc(sizeof(*site));
    *ret_what = options->root != NULL ? options->root : options->name;
    if (site == NULL)
        return -ENOMEM;
    *site = (struct site){
        .kind = site_load_kind,
        .absent = calloc(1, sizeof(*site->absent)),
        .options = options,
        .view = { .index = options->index, .hidden = options->hidden },
        .mime = mime,
        .root_fd = -1,
    };
    int error = site->absent != NULL ? open_paths(site, ret_what) : -ENOMEM;
    if (error == 0 && getrandom(&site->seed, sizeof(site->seed), 0) != sizeof(site->seed)) {
        *ret_what = "a source of randomness";
        error = -errno;
    }
    if (error < 0) {
        site_close(site);
        return error;
    }
    /* Without memory, every lookup tries each sibling. */
    if (options->precompressed || options->markdown)
        site->siblings = site_siblings_new(site->seed);
    *ret_site = site;
    return 0;
}

void site_close(struct site *site)
{
    if (site == NULL)
        return;
    for (unsigned i = 0; i < site->pages_count; i++)
        os_file_close(site->pages_fd[i]);
    free(site->pages_fd);
    os_file_close(site->root_fd);
    site_siblings_free(site->siblings);
    free(site->absent);
    free(site);
}

const struct site_view *site_view(const struct site *site)
{
    return &site->view;
}

const struct site_options *site_options(const struct site *site)
{
    return site->options;
}
