/* SPDX-License-Identifier: MIT */
#include "site/content.h"

#include "base/buf.h"
#include "base/duration.h"
#include "base/hash.h"
#include "os/file.h"
#include "site/allocator.h"
#include "site/entry.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#define SECOND_NS ((int64_t)DURATION_SECOND)

/* The times of a file come from a clock with a tick of at most 10 ms, so two changes within a tick
 * look like one. A filesystem that stores whole seconds (FAT: even ones) is recognised by the
 * missing fraction. */
#define TICK_NS        (20 * (int64_t)DURATION_MS)
#define COARSE_TICK_NS (2 * SECOND_NS + TICK_NS)

enum { READ_ATTEMPTS = 4 };

/* Fixed, so that tags are the same after a restart and in every worker. Each variant adds its
 * number, so that equal bytes in two codings have two tags. */
#define ETAG_SEED UINT64_C(0x77656972)

static unsigned hex_digits(uint64_t value)
{
    return value == 0 ? 1 : (unsigned)(64 - __builtin_clzll(value) + 3) / 4;
}

static int read_bytes(int fd, enum site_patience patience, char *bytes, size_t len, uint64_t offset)
{
    return patience == SITE_CACHED_ONLY ? os_file_read_cached(fd, bytes, len, offset)
                                        : os_file_read_at(fd, bytes, len, offset);
}

/* Reads the version that `identity` describes. If the file has changed meanwhile, *identity becomes
 * that of the new version. Returns -EAGAIN then if as many bytes were read, and -ENODATA if the
 * file is shorter. */
static int read_version(int fd, enum site_patience patience, struct site_identity *identity,
                        char *bytes)
{
    struct stat status;

    int read_error = read_bytes(fd, patience, bytes, identity->size, 0);
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

struct site_file *site_content_over(char *memory, size_t head_room, size_t len)
{
    struct site_file *file = (struct site_file *)(void *)memory;
    const size_t end_at = SITE_CONTENT_BEGIN + head_room;

    *file = (struct site_file){ .size = len - end_at, .end_at = (uint32_t)end_at };
    return file;
}

struct site_file *site_content_open(uint64_t size)
{
    struct site_open_file *file = malloc(sizeof(*file) + SITE_CONTENT_ETAG);

    if (file == NULL)
        return NULL;
    *file = (struct site_open_file){
        .file = { .size = size, .end_at = sizeof(*file) + SITE_CONTENT_ETAG, .open = true },
        .fd = -1,
    };
    return &file->file;
}

int site_content_read(int fd, enum site_patience patience, struct site_identity *identity,
                      size_t body_max, size_t head_room, struct site_file **ret_file,
                      bool *ret_whole)
{
    const size_t body_at = SITE_CONTENT_BEGIN + head_room;

    for (int attempt = 1;; attempt++) {
        const uint64_t size = identity->size;
        if (size > body_max) {
            *ret_file = site_content_open(size);
            return *ret_file != NULL ? 0 : -ENOMEM;
        }
        char *memory = malloc(body_at + size);
        if (memory == NULL)
            return -ENOMEM;
        int error = read_version(fd, patience, identity, memory + body_at);
        bool last = attempt == READ_ATTEMPTS;
        if (error == 0 || (error == -EAGAIN && last)) {
            *ret_file = site_content_over(memory, head_room, body_at + size);
            *ret_whole = error == 0;
            return 0;
        }
        free(memory);
        if (last || (error != -EAGAIN && error != -ENODATA))
            return error;
    }
}

void site_content_free(const struct site *site, struct site_file *file)
{
    if (file == NULL)
        return;
    os_file_close(site_file_fd(file));
    site_allocator_give(site->options->allocator, file);
}

size_t site_content_bytes(const struct site_file *file)
{
    return file->end_at + (file->open ? 0 : (size_t)file->size);
}

bool site_content_is_settled(const struct site_identity *identity, int64_t began_ns)
{
    const int64_t tick_ns = identity->changed_ns % SECOND_NS == 0 ? COARSE_TICK_NS : TICK_NS;
    const int64_t age_ns = began_ns - identity->changed_ns;
    return age_ns >= tick_ns || age_ns <= -tick_ns;
}

/* Seconds since 1970 that tools write into archives, so that equal contents give equal archives. */
static const struct {
    int64_t first_s, last_s;
} constants[] = {
    { INT64_MIN, 1 },         /* nothing, Nix, Guix, OSTree, Jib */
    { 315446400, 315705600 }, /* 1 January 1980, the first day of ZIP files, in any time zone */
    { 318124800, 318384000 }, /* 1 February 1980 (Gradle), in any time zone */
    { 499162500, 499162500 }, /* 1985-10-26T08:15:00Z (npm) */
    { 946684800, 946684800 }, /* 2000-01-01T00:00:00Z (Bazel) */
};

static bool is_time_of_root(const struct site *site, int64_t modified_ns)
{
    struct stat status;
    return modified_ns % SECOND_NS == 0 && os_file_stat(site->root_fd, &status) == 0 &&
           site_lookup_identity_of(&status).modified_ns == modified_ns;
}

bool site_content_is_dated(const struct site *site, int64_t modified_ns)
{
    const enum site_etag etag = site->options->etag;
    const size_t count = etag == SITE_ETAG_TIME ? 1 : sizeof(constants) / sizeof(constants[0]);
    const int64_t modified_s = modified_ns / SECOND_NS;
    if (etag == SITE_ETAG_CONTENT)
        return false;
    for (size_t i = 0; i < count; i++)
        if (modified_s >= constants[i].first_s && modified_s <= constants[i].last_s)
            return false;
    return etag == SITE_ETAG_TIME || !is_time_of_root(site, modified_ns);
}

uint32_t site_content_last_modified_s(const struct site_identity *identity, int64_t began_ns)
{
    const int64_t modified_s = identity->modified_ns / SECOND_NS;
    const int64_t began_s = began_ns / SECOND_NS;
    const int64_t last_s = modified_s < began_s ? modified_s : began_s;
    return last_s > 0 && last_s <= UINT32_MAX ? (uint32_t)last_s : 0;
}

void site_content_set_etag(struct site_file *file, struct span etag)
{
    char *at = (char *)file + (file->open ? sizeof(struct site_open_file) : sizeof(*file));

    CHECK(etag.len <= SITE_CONTENT_ETAG && file->head_len == 0);
    memcpy(at, etag.at, etag.len);
    file->etag_len = (uint8_t)etag.len;
}

void site_content_make_etag(struct site_file *file, int v)
{
    static const struct span names[SITE_VARIANTS] = {
        [SITE_BR] = SPAN("-br"),
        [SITE_ZSTD] = SPAN("-zst"),
        [SITE_GZIP] = SPAN("-gz"),
        [SITE_PLAIN] = SPAN(""),
    };
    char text[SITE_CONTENT_ETAG];
    struct buf tag = buf_over(text, sizeof(text));

    buf_add_char(&tag, '"');
    if (!file->open) {
        const struct span body = span_of(site_file_body(file), file->size);
        buf_add_hex(&tag, hash_bytes(body, ETAG_SEED + (unsigned)v), 16);
    } else {
        const uint64_t modified_ns = (uint64_t)site_content_opened(file)->modified_ns;
        buf_add_hex(&tag, modified_ns, hex_digits(modified_ns));
        buf_add_char(&tag, '-');
        buf_add_hex(&tag, file->size, hex_digits(file->size));
        buf_add(&tag, names[v]);
    }
    buf_add_char(&tag, '"');
    CHECK(!tag.overflow);
    site_content_set_etag(file, buf_span(&tag));
}

struct site_content_digest site_content_digest_begin(int v)
{
    return (struct site_content_digest){ { ETAG_SEED + (unsigned)v, ~(ETAG_SEED + (unsigned)v) } };
}

void site_content_digest_add(struct site_content_digest *digest, struct span piece)
{
    for (int i = 0; i < 2; i++)
        digest->lane[i] = hash_bytes(piece, digest->lane[i]);
}

void site_content_set_digest(struct site_file *file, const struct site_content_digest *digest)
{
    char text[SITE_CONTENT_ETAG];
    struct buf tag = buf_over(text, sizeof(text));

    buf_add_char(&tag, '"');
    buf_add_hex(&tag, digest->lane[0], 16);
    buf_add_hex(&tag, digest->lane[1], 16);
    buf_add_char(&tag, '"');
    CHECK(!tag.overflow);
    site_content_set_etag(file, buf_span(&tag));
}

int site_content_digest_file(int fd, enum site_patience patience, int v,
                             const struct site_identity *identity,
                             struct site_content_digest *ret_digest)
{
    struct site_content_digest digest = site_content_digest_begin(v);
    char piece[SITE_CONTENT_PIECE];
    struct stat status;

    for (uint64_t at = 0; at < identity->size; at += sizeof(piece)) {
        const uint64_t left = identity->size - at;
        const size_t len = left < sizeof(piece) ? (size_t)left : sizeof(piece);
        int error = read_bytes(fd, patience, piece, len, at);
        if (error < 0)
            return error;
        site_content_digest_add(&digest, span_of(piece, len));
    }
    int error = os_file_stat(fd, &status);
    if (error < 0)
        return error;
    const struct site_identity after = site_lookup_identity_of(&status);
    *ret_digest = digest;
    return site_lookup_identity_equal(identity, &after) ? 0 : -EAGAIN;
}

int site_content_hash_end(int fd, enum site_patience patience, uint64_t size, uint64_t *ret_hash)
{
    char end[SITE_END_BYTES];
    const size_t len = size < sizeof(end) ? (size_t)size : sizeof(end);
    int error = read_bytes(fd, patience, end, len, size - len);
    if (error < 0)
        return error;
    *ret_hash = hash_bytes(span_of(end, len), 0);
    return 0;
}

struct site_file *site_content_copy(size_t head_room, struct span bytes)
{
    const size_t body_at = SITE_CONTENT_BEGIN + head_room;
    char *memory = malloc(body_at + bytes.len);

    if (memory == NULL)
        return NULL;
    memcpy(memory + body_at, bytes.at, bytes.len);
    return site_content_over(memory, head_room, body_at + bytes.len);
}

/* ---- heads ---- */

/* Where the heads of a form can begin: behind its tag. */
static size_t heads_at(const struct site_file *file)
{
    return file->open ? sizeof(struct site_open_file) + file->etag_len : SITE_CONTENT_BEGIN;
}

/* An open form has exactly the memory for its head. */
static struct site_file *resize_open(struct site_entry *entry, enum site_variant variant,
                                     size_t head_len)
{
    struct site_file *file = site_entry_file(entry, variant);
    const size_t end_at = heads_at(file) + head_len;

    struct site_file *resized = realloc(file, end_at);

    if (resized == NULL)
        return NULL;
    resized->end_at = (uint32_t)end_at;
    site_entry_put(entry, variant, resized);
    site_entry_measure(entry);
    return resized;
}

bool site_set_head(struct site_entry *entry, enum site_variant variant, struct span head)
{
    struct site_file *file = site_entry_file(entry, variant);

    if (head.len > UINT16_MAX || (!file->open && heads_at(file) + head.len > file->end_at))
        return false;
    if (file->open)
        file = resize_open(entry, variant, head.len);
    if (file == NULL)
        return false;
    memcpy((char *)file + file->end_at - head.len, head.at, head.len);
    file->head_len = (uint16_t)head.len;
    file->block_len = 0;
    return true;
}

void site_set_block(struct site_entry *entry, enum site_variant variant, struct span block)
{
    struct site_file *file = site_entry_file(entry, variant);
    const size_t len = file->head_len + block.len;

    if (file->open || heads_at(file) + len > file->end_at || block.len > UINT16_MAX)
        return;
    memcpy((char *)file + file->end_at - len, block.at, block.len);
    file->block_len = (uint16_t)block.len;
}

/* Where the head has the tag, too; 0: nowhere. */
static uint16_t find_etag(const struct site_file *file)
{
    const struct span head = site_file_head(file), etag = site_file_etag(file);
    const char *found = etag.len > 0 ? memmem(head.at, head.len, etag.at, etag.len) : NULL;
    return found != NULL ? (uint16_t)(found - head.at) : 0;
}

/* A copy is cheaper than the memory from here on: 1 KiB takes about 50 ns, once for each miss. */
enum { PACKED_LEAST = 64, PACKED_SHARE = 8 };

char *site_content_pack(const struct site *site, const struct site_file *file, size_t before,
                        struct span key)
{
    struct site_allocator *const allocator = site->options->allocator;
    const uint16_t etag_at = file->open ? 0 : find_etag(file);
    const size_t begin = sizeof(*file) + (etag_at > 0 ? 0 : file->etag_len);
    const size_t kept = (size_t)file->head_len + file->block_len + (size_t)file->size;
    const size_t bytes = site_content_bytes(file);

    const bool frees_much = bytes >= begin + kept + PACKED_LEAST &&
                            bytes - begin - kept >= (bytes - begin) / PACKED_SHARE;
    char *memory = !file->open && (allocator != NULL || frees_much)
                       ? site_allocator_take(allocator, before + begin + key.len + kept)
                       : NULL;
    if (memory == NULL)
        return NULL;
    struct site_file *packed = (struct site_file *)(void *)(memory + before);
    memcpy(packed, file, begin);
    memcpy((char *)packed + begin, key.at, key.len);
    memcpy((char *)packed + begin + key.len, (const char *)file + bytes - kept, kept);
    packed->end_at = (uint32_t)(begin + key.len + kept - (size_t)file->size);
    packed->etag_at = etag_at;
    return memory;
}
