/* SPDX-License-Identifier: MIT */
#include "site/delta.h"

#include "base/buf.h"
#include "base/hash.h"
#include "os/clock.h"
#include "os/file.h"
#include "site/compressing.h"
#include "site/folder.h"
#include "site/load.h"
#include "site/made.h"

#include <limits.h>
#include <stdlib.h>

enum {
    KEY_MAX = sizeof("delta ") + SITE_CODER_DIGEST + SITE_CONTENT_ETAG + 2 * PATH_MAX,
    /* Of the files beside the requested one, this many are read: those that changed last. */
    FILES_MAX = 32
};

bool site_delta_suits(const struct site_entry *entry)
{
    const struct site_file *plain = entry->plain;
    return span_starts(site_cache_key(&entry->cache), SPAN("/")) &&
           (site_of(entry)->options->compress & 1u << SITE_ZSTD) != 0 &&
           site_compress_suits(site_entry_type(entry), plain->size);
}

/* ---- places ---- */

static void drop_bytes(struct site_delta_place *place)
{
    if (place->bytes == NULL)
        return;
    site_made_free(place->bytes, place->len);
    site_made_count(0, place->len);
    place->bytes = NULL;
}

static void drop_place(struct site_delta_place *place)
{
    drop_bytes(place);
    free(place->key);
    *place = (struct site_delta_place){ .state = SITE_DELTA_FREE };
}

void site_deltas_done(struct site_deltas *deltas)
{
    for (unsigned i = 0; i < SITE_DELTAS_MAX; i++)
        drop_place(&deltas->at[i]);
}

/* The place with this key, or NULL. */
static struct site_delta_place *find_place(struct site_deltas *deltas, struct span key)
{
    for (unsigned i = 0; i < SITE_DELTAS_MAX; i++) {
        struct site_delta_place *place = &deltas->at[i];
        if (place->state == SITE_DELTA_FREE ||
            !span_equal(span_of(place->key, place->key_len), key))
            continue;
        place->used = ++deltas->uses;
        if (place->state != SITE_DELTA_LATER || os_clock_now_ns() < place->until_ns)
            return place;
        drop_place(place);
        return NULL;
    }
    return NULL;
}

/* A free place, or that of the least recently used result. NULL: all places are queued. */
static struct site_delta_place *choose_place(struct site_deltas *deltas)
{
    struct site_delta_place *oldest = NULL;
    for (unsigned i = 0; i < SITE_DELTAS_MAX; i++) {
        struct site_delta_place *place = &deltas->at[i];
        if (place->state == SITE_DELTA_FREE)
            return place;
        if (place->state != SITE_DELTA_QUEUED && (oldest == NULL || place->used < oldest->used))
            oldest = place;
    }
    return oldest;
}

/* Queues a difference. Nothing happens if there is no place or no memory for it. */
static void queue_delta(struct site_compressor *c, struct site_entry *entry, struct span key,
                        const struct site_delta_request *request)
{
    struct site_delta_place *place = choose_place(&c->deltas);
    char *copy = place != NULL ? malloc(key.len) : NULL;
    if (copy == NULL)
        return;
    drop_place(place);
    memcpy(copy, key.at, key.len);
    *place = (struct site_delta_place){ .state = SITE_DELTA_QUEUED,
                                        .key = copy,
                                        .key_len = key.len,
                                        .request = *request,
                                        .used = ++c->deltas.uses };
    const struct site_compressing_job job = { .entry = entry, .place = place };
    if (!site_compressing_add_job(c, job))
        drop_place(place);
}

/* ---- the serving threads ---- */

void site_delta_note(struct site_compressor *compressor, struct site_entry *entry,
                     const void *family)
{
    if (atomic_load_explicit(&entry->noted, memory_order_relaxed) ||
        pthread_mutex_trylock(&compressor->lock) != 0)
        return;
    const struct site_compressing_job job = { .entry = entry, .family = family };
    if (site_compressing_add_job(compressor, job))
        atomic_store_explicit(&entry->noted, true, memory_order_relaxed);
    CHECK(pthread_mutex_unlock(&compressor->lock) == 0);
}

/* The key names the version of the file. It names the path, too, because the head of an entry
 * depends on that. */
static bool make_key(const struct site_entry *entry, const struct site_delta_request *request,
                     struct buf *key)
{
    buf_add(key, SPAN("delta "));
    buf_add(key, span_of((const char *)request->digest, SITE_CODER_DIGEST));
    buf_add(key, site_file_etag(entry->plain));
    buf_add(key, site_cache_key(&entry->cache));
    return !key->overflow;
}

/* Whether a difference of `len` bytes is smaller than every form of the file. */
static bool is_smallest(const struct site_entry *entry, uint64_t len)
{
    for (unsigned left = entry->variants; left != 0; left &= left - 1)
        if (site_entry_file(entry, __builtin_ctz(left))->size <= len)
            return false;
    return true;
}

/* Takes the difference that is made. The caller frees it (site/made.h), and counts it there. Empty:
 * there is none. If it is not requested yet, it is requested. One that is too large is remembered
 * as such, so that it is made once. */
static struct span take_delta(struct site_compressor *c, struct site_entry *entry, struct span key,
                              const struct site_delta_request *request)
{
    struct span taken = span_of(NULL, 0);
    if (pthread_mutex_trylock(&c->lock) != 0)
        return taken;
    struct site_delta_place *place = find_place(&c->deltas, key);
    if (place == NULL) {
        queue_delta(c, entry, key, request);
    } else if (place->state == SITE_DELTA_READY && !is_smallest(entry, place->len)) {
        drop_bytes(place);
        place->state = SITE_DELTA_USELESS;
    } else if (place->state == SITE_DELTA_READY) {
        taken = span_of(place->bytes, place->len);
        place->bytes = NULL;
        drop_place(place);
    }
    CHECK(pthread_mutex_unlock(&c->lock) == 0);
    return taken;
}

struct site_entry *site_delta_find(struct site_compressor *compressor,
                                   struct site_cache_reader *reader, struct site_entry *entry,
                                   const struct site_delta_request *request, uint64_t now_ns,
                                   bool *ret_new)
{
    char storage[KEY_MAX];
    struct buf text = buf_over(storage, sizeof(storage));
    if (entry->plain->etag_len == 0 || !make_key(entry, request, &text))
        return NULL;
    const struct span key = buf_span(&text);
    const uint64_t hash = hash_bytes(key, site_of(entry)->seed);
    struct site_entry *found = (struct site_entry *)site_cache_find(reader, hash, key);
    *ret_new = false;
    if (found != NULL && site_of(found) == site_of(entry)) {
        const uint64_t checked_ns = atomic_load_explicit(&entry->checked_ns, memory_order_relaxed);
        if (atomic_load_explicit(&found->checked_ns, memory_order_relaxed) != checked_ns)
            atomic_store_explicit(&found->checked_ns, checked_ns, memory_order_relaxed);
        return is_smallest(entry, found->plain->size) ? found : NULL;
    }
    site_compressor_make_space(compressor, reader, now_ns);
    const struct span bytes = take_delta(compressor, entry, key, request);
    if (bytes.len == 0)
        return NULL;
    found = site_load_delta(entry, key, hash, bytes);
    site_made_free((char *)(uintptr_t)bytes.at, bytes.len);
    site_made_count(0, bytes.len);
    *ret_new = true;
    return found;
}

/* ---- the thread: files as dictionaries ---- */

/* Reads `size` bytes of an open file and adds them. */
static void add_open_file(struct site_compressor *c, const void *family, int fd, uint64_t size)
{
    char *bytes = malloc((size_t)size);
    if (bytes != NULL && os_file_read_at(fd, bytes, (size_t)size, 0) == 0)
        site_dictionary_add(&c->dictionaries, family, bytes, (size_t)size);
    else
        free(bytes);
}

void site_delta_copy(struct site_compressor *c, const struct site_entry *entry, const void *family)
{
    const struct site_file *file = entry->plain;
    if (!site_compressing_may_continue(c, entry))
        return;
    const uint64_t began_ns = os_clock_thread_ns();
    char *copy = !file->open ? malloc((size_t)file->size) : NULL;
    if (copy != NULL) {
        memcpy(copy, site_file_body(file), (size_t)file->size);
        site_dictionary_add(&c->dictionaries, family, copy, (size_t)file->size);
    } else if (file->open) {
        add_open_file(c, family, site_file_fd(file), file->size);
    }
    site_compressing_spend_since(c, began_ns);
    site_compressing_add_total(c, SITE_TOTAL_NOTES, 1);
}

/* The folder of a requested file. */
struct scan {
    struct site_compressor *c;
    const struct site_entry *entry; /* whose file is requested */
    const struct site_delta_request *request;
    struct span path;
};

/* Names that begin with a dot are no dictionaries, whatever the rules of their paths say. */
static const struct site_view plain_view = { .hidden = false };

static bool shows(const void *scan_, struct span path)
{
    const struct scan *scan = scan_;
    const struct site_delta_request *request = scan->request;
    return request->admits(request->context, request->family, path);
}

/* Reads the names in the folder that may be dictionaries, those that changed last first. */
static bool read_folder(const struct scan *scan, struct site_folder *ret_folder)
{
    const struct site *site = site_of(scan->entry);
    const struct site_listing_request listing = {
        .path = scan->path, .view = &plain_view, .shows = shows, .context = scan
    };
    struct site_lookup lookup;
    const uint64_t hash = hash_bytes(scan->path, site->seed);
    if (!site_dictionary_claim(&scan->c->dictionaries, scan->request->family, hash,
                               os_clock_now_ns()) ||
        site_lookup_directory(site, &plain_view, scan->path, SITE_MAY_WAIT, &lookup) != SITE_FILE)
        return false;
    const int error = site_folder_read(site, &listing, &lookup.fd[SITE_PLAIN], ret_folder);
    site_lookup_close(&lookup);
    if (error < 0)
        return false;
    site_folder_filter(ret_folder, &listing);
    site_folder_sort(ret_folder, SITE_LISTING_BY_TIME, true);
    return true;
}

/* Opens a file of the folder. Returns whether its size is that of a dictionary. */
static bool open_file(const struct scan *scan, struct span name, struct site_lookup *ret_lookup)
{
    char storage[PATH_MAX];
    struct buf path = buf_over(storage, sizeof(storage));
    buf_add(&path, scan->path);
    buf_add(&path, name);
    ret_lookup->checked_ns = 0; /* for no request: the next one compares the names again */
    if (path.overflow || site_lookup(site_of(scan->entry), &plain_view, buf_span(&path),
                                     SITE_MAY_WAIT, ret_lookup) != SITE_FILE)
        return false;
    const uint64_t size = ret_lookup->identity[SITE_PLAIN].size;
    if (size >= SITE_COMPRESS_LEAST && size <= SITE_COMPRESS_MOST)
        return true;
    site_lookup_close(ret_lookup);
    return false;
}

static void add_files(const struct scan *scan, const struct site_folder *folder)
{
    struct site_compressor *c = scan->c;
    struct site_lookup lookup;
    uint64_t bytes = 0;
    unsigned added = 0;
    for (size_t i = 0; i < folder->count && added < FILES_MAX; i++) {
        const struct site_folder_row *row = &folder->rows[i];
        if (row->directory || row->size < SITE_COMPRESS_LEAST || row->size > SITE_COMPRESS_MOST ||
            bytes + row->size > c->dictionaries.bytes_most)
            continue;
        if (!site_compressing_may_continue(c, scan->entry))
            return;
        const uint64_t began_ns = os_clock_thread_ns();
        const bool opened = open_file(scan, site_folder_name(folder, row), &lookup);
        if (opened) {
            const uint64_t size = lookup.identity[SITE_PLAIN].size;
            add_open_file(c, scan->request->family, lookup.fd[SITE_PLAIN], size);
            site_lookup_close(&lookup);
            bytes += size;
            added++;
        }
        site_compressing_spend_since(c, began_ns);
    }
}

/* Adds the files beside the requested one that belong to its family. */
static void scan_folder(struct site_compressor *c, const struct site_entry *entry,
                        const struct site_delta_request *request)
{
    const struct span key = site_cache_key(&entry->cache); /* a path: site_delta_suits */
    const char *slash = memrchr(key.at, '/', key.len);
    const struct scan scan = { c, entry, request, span_first(key, (size_t)(slash + 1 - key.at)) };
    struct site_folder folder;
    if (!site_compressing_may_continue(c, entry))
        return;
    const uint64_t began_ns = os_clock_thread_ns();
    const bool read = read_folder(&scan, &folder);
    site_compressing_spend_since(c, began_ns);
    if (!read)
        return;
    add_files(&scan, &folder);
    site_folder_free(&folder);
}

/* ---- the thread: one difference ---- */

static struct span find_dictionary(struct site_compressor *c, const struct site_entry *entry,
                                   const struct site_delta_request *request)
{
    struct span found = site_dictionary_find(&c->dictionaries, request->family, request->digest);
    if (found.len == 0) {
        scan_folder(c, entry, request);
        found = site_dictionary_find(&c->dictionaries, request->family, request->digest);
    }
    return found;
}

static enum site_compressing_outcome compress_delta(struct site_compressor *c,
                                                    const struct site_entry *entry,
                                                    struct span dictionary,
                                                    const unsigned char *digest, char *out,
                                                    size_t room, size_t *ret_len)
{
    struct site_coder coder;
    const uint64_t began_ns = os_clock_thread_ns();
    const bool opened =
        site_coder_open_delta(&coder, dictionary, digest, entry->plain->size, out, room);
    site_compressing_spend_since(c, began_ns);
    return opened ? site_compressing_encode(c, entry, &coder, ret_len) : SITE_OUTCOME_BROKEN;
}

/* Ends the work for a place. `bytes` is NULL: there is no difference. */
static void settle_place(struct site_compressor *c, struct site_delta_place *place,
                         enum site_delta_state state, char *bytes, size_t len)
{
    CHECK(pthread_mutex_lock(&c->lock) == 0);
    place->state = state;
    place->bytes = bytes;
    place->len = len;
    place->until_ns = os_clock_now_ns() + SITE_DICTIONARY_AGAIN_NS;
    if (state == SITE_DELTA_FREE)
        drop_place(place);
    CHECK(pthread_mutex_unlock(&c->lock) == 0);
}

void site_delta_make(struct site_compressor *c, const struct site_entry *entry,
                     struct site_delta_place *place)
{
    const size_t room = site_compress_largest(entry->plain->size);
    const struct span dictionary = find_dictionary(c, entry, &place->request);
    if (dictionary.len == 0) {
        /* If the work was cut off, the dictionary may be known all the same. */
        const bool whole = site_compressing_may_continue(c, entry);
        site_compressing_add_total(c, SITE_TOTAL_UNKNOWN, whole);
        settle_place(c, place, whole ? SITE_DELTA_LATER : SITE_DELTA_FREE, NULL, 0);
        return;
    }
    char *out = site_made_allocate(room);
    size_t len = 0;
    enum site_compressing_outcome outcome = SITE_OUTCOME_BROKEN;
    if (out != NULL)
        outcome = compress_delta(c, entry, dictionary, place->request.digest, out, room, &len);
    const bool fits = site_compressing_request_space(c, entry, len);
    site_compressing_count(c, outcome);
    site_compressing_add_total(c, SITE_TOTAL_SHARE_REFUSED, outcome == SITE_OUTCOME_MADE && !fits);
    if (outcome == SITE_OUTCOME_MADE && fits) {
        site_made_shrink(out, room, len);
        site_made_count(len, 0);
        site_compressing_add_total(c, SITE_TOTAL_DELTAS, 1);
        settle_place(c, place, SITE_DELTA_READY, out, len);
        return;
    }
    if (out != NULL)
        site_made_free(out, room);
    settle_place(c, place,
                 outcome == SITE_OUTCOME_USELESS ? SITE_DELTA_USELESS
                 : outcome == SITE_OUTCOME_MADE  ? SITE_DELTA_LATER
                                                 : SITE_DELTA_FREE,
                 NULL, 0);
}
