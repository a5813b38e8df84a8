/* SPDX-License-Identifier: MIT
 *
 * The versions of files that clients may have, by their SHA-256. The compressor makes differences
 * from them (delta.h). Each version belongs to a family: the files that are versions of each other.
 * A version is found by requests of its own family alone, so what one path may show never ends in
 * the answer of another.
 *
 * The least recently used versions leave when there are too many, or too many bytes. One thread
 * uses it. It knows no files.
 *
 * Private to site/.
 */
#pragma once

#include "site/coder.h"

enum { SITE_DICTIONARIES_MAX = 64, SITE_DICTIONARY_FOLDERS = 8 };

/* How long a folder that was read counts as read. */
#define SITE_DICTIONARY_AGAIN_NS UINT64_C(10000000000)

struct site_dictionary {
    unsigned char digest[SITE_CODER_DIGEST];
    const void *family;
    char *bytes; /* NULL: this place is free */
    size_t len;
    uint64_t used; /* larger: later */
};

/* Zeroed, with `bytes_most`, it is empty. */
struct site_dictionaries {
    size_t bytes_most, bytes;
    uint64_t uses;
    struct site_dictionary at[SITE_DICTIONARIES_MAX];
    struct {
        const void *family; /* NULL: this place is free */
        uint64_t hash, read_ns;
    } folders[SITE_DICTIONARY_FOLDERS];
    unsigned next_folder;
};

void site_dictionary_done(struct site_dictionaries *all);

/* The bytes of the family with this SHA-256, valid until the next addition. Empty: they are
 * unknown. */
struct span site_dictionary_find(struct site_dictionaries *all, const void *family,
                                 const unsigned char digest[SITE_CODER_DIGEST]);

/* Adds bytes in memory of malloc, and takes them. Bytes that are known, or too many, are freed. */
void site_dictionary_add(struct site_dictionaries *all, const void *family, char *bytes,
                         size_t len);

/* Whether the files of a folder are to be read for a family now. Then they count as read.
 * `hash` is that of the folder's path. */
bool site_dictionary_claim(struct site_dictionaries *all, const void *family, uint64_t hash,
                           uint64_t now_ns);
