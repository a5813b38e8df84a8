/* SPDX-License-Identifier: MIT
 *
 * Entries: small files are read into memory, one whole version of each; large files stay open.
 * The validators of each version (entity tag, modification time) and its identity on the disk are
 * set here, once.
 *
 * Using and evicting entries is up to the caller and the cache.
 */
#include "site/load.h"

#include "base/buf.h"
#include "base/duration.h"
#include "base/hash.h"
#include "os/clock.h"
#include "os/file.h"
#include "site/mime.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#define SECOND_NS ((int64_t)DURATION_SECOND)

/* The times of a file come from a clock with a tick of at most 10 ms, so two changes within a tick
 * look like one. A filesystem that stores whole seconds (FAT: even ones) is recognised by the
 * missing fraction. */
#define TICK_NS        (20 * (int64_t)DURATION_MS)
#define COARSE_TICK_NS (2 * SECOND_NS + TICK_NS)

enum {
    READ_ATTEMPTS = 4,
    ETAG_SIZE = 2 + 16 + 1 + 16 + 4, /* quotes, time, '-', size, "-zst" */
};

/* Fixed, so that tags are the same after a restart and in every worker. Each variant adds its
 * number, so that equal bytes in two codings have two tags. */
#define ETAG_SEED UINT64_C(0x77656972)

struct loaded {
    struct site_entry entry; /* first */
    struct site_identity identity[SITE_VARIANTS];
    size_t head_room;  /* bytes before a body in memory */
    uint64_t until_ns; /* of a listing: when it is rendered again; 0 for a file */
    bool settled;      /* the last change of each file was at least a tick before the load */
    bool whole;
    char etag[SITE_VARIANTS][ETAG_SIZE];
    char key[];
};

static const struct loaded *loaded_of(const struct site_entry *entry)
{
    return (const struct loaded *)entry;
}

static unsigned hex_digits(uint64_t value)
{
    return value == 0 ? 1 : (unsigned)(64 - __builtin_clzll(value) + 3) / 4;
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

    if (file->body != NULL)
        free((void *)(uintptr_t)(file->body - loaded->head_room));
    else
        free((void *)(uintptr_t)file->head.at);
    os_file_close(file->fd);
    *file = (struct site_file){ .fd = -1 };
    loaded->entry.variants &= (uint8_t) ~(1u << v);
}

static void release_entry(struct site_cache_entry *cached)
{
    struct loaded *loaded = (struct loaded *)cached;

    for (int v = 0; v < SITE_VARIANTS; v++)
        drop_variant(loaded, v);
    if (cached->descriptors > 0)
        atomic_fetch_sub_explicit(&open_files, cached->descriptors, memory_order_relaxed);
    free(loaded);
}

/* Reads the version that `identity` describes. If the file has changed meanwhile, *identity becomes
 * that of the new version. Returns -EAGAIN then if as many bytes were read, and -ENODATA if the
 * file is shorter. */
static int read_version(int fd, struct site_identity *identity, char *bytes)
{
    struct stat status;

    int read_error = os_file_read_at(fd, bytes, identity->size, 0);
    if (read_error < 0 && read_error != -ENODATA)
        return read_error;
    int error = os_file_stat(fd, &status);
    if (error < 0)
        return error;
    const struct site_identity after = site_lookup_identity_of(&status);
    bool same = site_lookup_identity_equal(identity, &after);
    *identity = after;
    if (read_error == 0 && same)
        return 0;
    return read_error < 0 ? read_error : -EAGAIN;
}

/* Reads a file into memory, unless it is larger than `body_max`; then the body stays NULL.
 * *ret_whole is false when the file changed during every attempt. Returns 0 or -errno. */
static int load_body(int fd, struct site_identity *identity, size_t body_max, size_t head_room,
                     struct site_file *file, bool *ret_whole)
{
    for (int attempt = 1;; attempt++) {
        file->size = identity->size;
        if (file->size > body_max)
            return 0;
        char *memory = malloc(head_room + file->size);
        if (memory == NULL)
            return -ENOMEM;
        int error = read_version(fd, identity, memory + head_room);
        bool last = attempt == READ_ATTEMPTS;
        if (error == 0 || (error == -EAGAIN && last)) {
            file->body = memory + head_room;
            *ret_whole = error == 0;
            return 0;
        }
        free(memory);
        if (last || (error != -EAGAIN && error != -ENODATA))
            return error;
    }
}

/* Whether a change after `began_ns` certainly changes the times of the file. */
static bool times_are_settled(const struct site_identity *identity, int64_t began_ns)
{
    const int64_t tick_ns = identity->changed_ns % SECOND_NS == 0 ? COARSE_TICK_NS : TICK_NS;
    const int64_t age_ns = began_ns - identity->changed_ns;
    return age_ns >= tick_ns || age_ns <= -tick_ns;
}

static struct span make_etag(char out[ETAG_SIZE], const struct site_file *file, int v,
                             bool trustworthy)
{
    static const struct span names[SITE_VARIANTS] = {
        [SITE_BR] = SPAN("-br"),
        [SITE_ZSTD] = SPAN("-zst"),
        [SITE_GZIP] = SPAN("-gz"),
        [SITE_PLAIN] = SPAN(""),
    };
    struct buf tag = buf_over(out, ETAG_SIZE);

    if (!trustworthy)
        return SPAN("");
    buf_add_char(&tag, '"');
    if (file->body != NULL) {
        const struct span body = span_of(file->body, file->size);
        buf_add_hex(&tag, hash_bytes(body, ETAG_SEED + (unsigned)v), 16);
    } else {
        buf_add_hex(&tag, (uint64_t)file->modified_ns, hex_digits((uint64_t)file->modified_ns));
        buf_add_char(&tag, '-');
        buf_add_hex(&tag, file->size, hex_digits(file->size));
        buf_add(&tag, names[v]);
    }
    buf_add_char(&tag, '"');
    CHECK(!tag.overflow);
    return buf_span(&tag);
}

int site_hash_end(int fd, uint64_t size, uint64_t *ret_hash)
{
    char end[SITE_END_BYTES];
    const size_t len = size < sizeof(end) ? (size_t)size : sizeof(end);
    int error = os_file_read_at(fd, end, len, size - len);
    if (error < 0)
        return error;
    *ret_hash = hash_bytes(span_of(end, len), 0);
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
    int error = load_body(*fd, identity, loaded->entry.site->options->body_max, loaded->head_room,
                          file, &whole);
    if (error == 0 && file->body == NULL && site_hash_end(*fd, file->size, &file->end_hash) < 0)
        file->end_hash = 0; /* it has become shorter, which sending will detect */
    if (error == 0 && !whole && v != SITE_PLAIN)
        error = -EAGAIN; /* the plain file is better than a mixture of two siblings */
    loaded->entry.variants |= (uint8_t)(1u << v);
    if (error < 0) {
        drop_variant(loaded, v);
        return error;
    }
    if (file->body == NULL) {
        file->fd = *fd;
        *fd = -1;
    }

    const int64_t modified_s = identity->modified_ns / SECOND_NS;
    const bool dated = modified_s > 1;
    const bool settled = times_are_settled(identity, lookup->began_ns);
    file->modified_ns = identity->modified_ns;
    file->etag =
        make_etag(loaded->etag[v], file, v, whole && (file->body != NULL || (dated && settled)));
    file->last_modified_s = -1;
    if (whole && dated) {
        const int64_t began_s = lookup->began_ns / SECOND_NS;
        file->last_modified_s = modified_s < began_s ? modified_s : began_s;
    }
    loaded->settled = loaded->settled && settled;
    loaded->whole = loaded->whole && whole;
    return 0;
}

/* Sets the costs of the entry for the cache. */
static void measure_entry(struct loaded *loaded)
{
    struct site_cache_entry *cached = &loaded->entry.cache;

    cached->size_bytes = sizeof(*loaded) + cached->key.len;
    cached->descriptors = 0;
    for (int v = 0; v < SITE_VARIANTS; v++) {
        const struct site_file *file = &loaded->entry.file[v];
        if (file->body != NULL)
            cached->size_bytes += loaded->head_room + file->size;
        if (file->fd >= 0)
            cached->descriptors++;
    }
}

/* A new, empty entry, with one reference. NULL without memory. */
static struct loaded *new_entry(const struct site *site, struct span key, uint64_t hash)
{
    struct loaded *loaded = calloc(1, sizeof(*loaded) + key.len);
    if (loaded == NULL)
        return NULL;
    memcpy(loaded->key, key.at, key.len);
    loaded->settled = true;
    loaded->whole = true;
    loaded->head_room = SITE_HEAD_ROOM + 2 * site->options->fields_max;

    struct site_entry *entry = &loaded->entry;
    entry->site = site;
    entry->cache.key = span_of(loaded->key, key.len);
    entry->cache.hash = hash;
    entry->cache.release = release_entry;
    atomic_store_explicit(&entry->cache.references, 1, memory_order_relaxed);
    for (int v = 0; v < SITE_VARIANTS; v++)
        entry->file[v].fd = -1;
    return loaded;
}

enum site_result site_load(const struct site *site, struct site_lookup *lookup, struct span key,
                           uint64_t hash, uint64_t now_ns, struct site_entry **ret_entry)
{
    struct loaded *loaded = new_entry(site, key, hash);
    if (loaded == NULL)
        return SITE_BUSY;
    struct site_entry *entry = &loaded->entry;
    entry->type = site_mime_type(site->mime, site_lookup_name(lookup));
    atomic_store_explicit(&entry->checked_ns, now_ns, memory_order_relaxed);

    int error = load_variant(loaded, SITE_PLAIN, lookup, &lookup->fd[SITE_PLAIN]);
    if (error < 0) {
        release_entry(&entry->cache);
        return error == -ENOMEM || error == -ENODATA ? SITE_BUSY : SITE_BROKEN;
    }
    for (int v = 0; v < SITE_PLAIN && loaded->whole; v++) {
        if (lookup->fd[v] < 0 || load_variant(loaded, v, lookup, &lookup->fd[v]) < 0)
            continue;
        /* Either of the two may have changed since the lookup. */
        if (!site_lookup_sibling_fits(&loaded->identity[v], &loaded->identity[SITE_PLAIN]))
            drop_variant(loaded, v);
    }
    entry->negotiable = entry->variants != 1u << SITE_PLAIN;
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
    struct loaded *loaded = new_entry(site, key, hash);
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
    loaded->settled = times_are_settled(&lookup->identity[SITE_PLAIN], lookup->began_ns);
    loaded->until_ns = now_ns + listing_life_ns(entries);
    file->body = text + loaded->head_room;
    file->size = len - loaded->head_room;
    file->last_modified_s = -1;
    file->etag = make_etag(loaded->etag[SITE_PLAIN], file, SITE_PLAIN, true);
    measure_entry(loaded);
    *ret_entry = entry;
    return SITE_FILE;
}

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
    if (variants_of(lookup) != entry->variants)
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

bool site_set_head(struct site_entry *entry, enum site_variant variant, struct span head)
{
    struct site_file *file = &entry->file[variant];
    char *at;

    if (file->body != NULL) {
        if (head.len > loaded_of(entry)->head_room)
            return false;
        at = (char *)(uintptr_t)file->body - head.len;
    } else {
        at = malloc(head.len > 0 ? head.len : 1);
        if (at == NULL)
            return false;
        free((void *)(uintptr_t)file->head.at);
        entry->cache.size_bytes += head.len - file->head.len;
    }
    memcpy(at, head.at, head.len);
    file->head = span_of(at, head.len);
    return true;
}

void site_set_block(struct site_entry *entry, enum site_variant variant, struct span block)
{
    struct site_file *file = &entry->file[variant];
    if (file->body == NULL || file->head.len + block.len > loaded_of(entry)->head_room)
        return;
    char *at = (char *)(uintptr_t)file->head.at - block.len;
    memcpy(at, block.at, block.len);
    file->block = span_of(at, block.len);
}
