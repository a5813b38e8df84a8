/* SPDX-License-Identifier: MIT */
#include "site/content.h"

#include "base/buf.h"
#include "base/duration.h"
#include "base/hash.h"
#include "os/file.h"

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

int site_content_read(int fd, enum site_patience patience, struct site_identity *identity,
                      size_t body_max, size_t head_room, struct site_file *file, bool *ret_whole)
{
    for (int attempt = 1;; attempt++) {
        file->size = identity->size;
        if (file->size > body_max)
            return 0;
        char *memory = malloc(head_room + file->size);
        if (memory == NULL)
            return -ENOMEM;
        int error = read_version(fd, patience, identity, memory + head_room);
        bool last = attempt == READ_ATTEMPTS;
        if (error == 0 || (error == -EAGAIN && last)) {
            file->body = memory + head_room;
            file->head_room = (uint32_t)head_room;
            *ret_whole = error == 0;
            return 0;
        }
        free(memory);
        if (last || (error != -EAGAIN && error != -ENODATA))
            return error;
    }
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

int64_t site_content_last_modified_s(const struct site_identity *identity, int64_t began_ns)
{
    const int64_t modified_s = identity->modified_ns / SECOND_NS;
    const int64_t began_s = began_ns / SECOND_NS;
    return modified_s < began_s ? modified_s : began_s;
}

struct span site_content_etag(char out[SITE_CONTENT_ETAG], const struct site_file *file, int v)
{
    static const struct span names[SITE_VARIANTS] = {
        [SITE_BR] = SPAN("-br"),
        [SITE_ZSTD] = SPAN("-zst"),
        [SITE_GZIP] = SPAN("-gz"),
        [SITE_PLAIN] = SPAN(""),
    };
    struct buf tag = buf_over(out, SITE_CONTENT_ETAG);

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

struct site_content_digest site_content_digest_begin(int v)
{
    return (struct site_content_digest){ { ETAG_SEED + (unsigned)v, ~(ETAG_SEED + (unsigned)v) } };
}

void site_content_digest_add(struct site_content_digest *digest, struct span piece)
{
    for (int i = 0; i < 2; i++)
        digest->lane[i] = hash_bytes(piece, digest->lane[i]);
}

struct span site_content_digest_etag(char out[SITE_CONTENT_ETAG],
                                     const struct site_content_digest *digest)
{
    struct buf tag = buf_over(out, SITE_CONTENT_ETAG);

    buf_add_char(&tag, '"');
    buf_add_hex(&tag, digest->lane[0], 16);
    buf_add_hex(&tag, digest->lane[1], 16);
    buf_add_char(&tag, '"');
    CHECK(!tag.overflow);
    return buf_span(&tag);
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

bool site_content_copy(struct site_file *file, size_t head_room, struct span bytes)
{
    char *memory = malloc(head_room + bytes.len);
    if (memory == NULL)
        return false;
    memcpy(memory + head_room, bytes.at, bytes.len);
    file->body = memory + head_room;
    file->head_room = (uint32_t)head_room;
    file->size = bytes.len;
    // cppcheck-suppress memleak ; the body is in it, and its owner frees both
    return true;
}

/* ---- heads ---- */

bool site_set_head(struct site_entry *entry, enum site_variant variant, struct span head)
{
    struct site_file *file = &entry->file[variant];
    char *at;

    if (file->body != NULL) {
        if (head.len > file->head_room)
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
    if (file->body == NULL || file->head.len + block.len > file->head_room)
        return;
    char *at = (char *)(uintptr_t)file->head.at - block.len;
    memcpy(at, block.at, block.len);
    file->block = span_of(at, block.len);
}

/* A copy is cheaper than the memory from here on: 1 KiB takes about 50 ns, once for each miss. */
enum { TRIMMED_LEAST = 64, TRIMMED_SHARE = 8 };

size_t site_content_trim(struct site_file *file)
{
    const size_t heads = file->head.len + file->block.len;
    const size_t unused = file->body != NULL ? file->head_room - heads : 0;
    if (unused < TRIMMED_LEAST || unused < (unused + heads + file->size) / TRIMMED_SHARE)
        return 0;
    char *memory = malloc(heads + file->size);
    if (memory == NULL)
        return 0;
    memcpy(memory, file->body - heads, heads + file->size);
    free((void *)(uintptr_t)(file->body - file->head_room));
    file->body = memory + heads;
    file->head_room = (uint32_t)heads;
    file->head.at = file->body - file->head.len;
    if (file->block.len > 0)
        file->block.at = memory;
    // cppcheck-suppress memleak ; the body and the heads are in it, and their owner frees them
    return unused;
}
