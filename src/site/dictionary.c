/* SPDX-License-Identifier: MIT */
#include "site/dictionary.h"

#include <openssl/sha.h>
#include <stdlib.h>

_Static_assert((int)SITE_CODER_DIGEST == (int)SHA256_DIGEST_LENGTH, "a digest is a SHA-256");

static void drop_version(struct site_dictionaries *all, struct site_dictionary *version)
{
    all->bytes -= version->len;
    free(version->bytes);
    *version = (struct site_dictionary){ 0 };
}

void site_dictionary_done(struct site_dictionaries *all)
{
    for (unsigned i = 0; i < SITE_DICTIONARIES_MAX; i++)
        if (all->at[i].bytes != NULL)
            drop_version(all, &all->at[i]);
}

struct span site_dictionary_find(struct site_dictionaries *all, const void *family,
                                 const unsigned char digest[SITE_CODER_DIGEST])
{
    for (unsigned i = 0; i < SITE_DICTIONARIES_MAX; i++) {
        struct site_dictionary *version = &all->at[i];
        if (version->bytes == NULL || version->family != family ||
            memcmp(version->digest, digest, SITE_CODER_DIGEST) != 0)
            continue;
        version->used = ++all->uses;
        return span_of(version->bytes, version->len);
    }
    return span_of(NULL, 0);
}

/* A free place, with space for `len` bytes. Older versions leave for it. */
static struct site_dictionary *make_space(struct site_dictionaries *all, size_t len)
{
    for (;;) {
        struct site_dictionary *place = NULL, *oldest = NULL;
        for (unsigned i = 0; i < SITE_DICTIONARIES_MAX; i++) {
            struct site_dictionary *version = &all->at[i];
            if (version->bytes == NULL)
                place = version;
            else if (oldest == NULL || version->used < oldest->used)
                oldest = version;
        }
        if (oldest == NULL || (place != NULL && all->bytes + len <= all->bytes_most))
            return place;
        drop_version(all, oldest);
    }
}

void site_dictionary_add(struct site_dictionaries *all, const void *family, char *bytes, size_t len)
{
    unsigned char digest[SITE_CODER_DIGEST];
    SHA256((const unsigned char *)bytes, len, digest);
    if (len > all->bytes_most || site_dictionary_find(all, family, digest).len > 0) {
        free(bytes);
        return;
    }
    struct site_dictionary *place = make_space(all, len);
    *place = (struct site_dictionary){
        .family = family, .bytes = bytes, .len = len, .used = ++all->uses
    };
    memcpy(place->digest, digest, sizeof(digest));
    all->bytes += len;
}

bool site_dictionary_claim(struct site_dictionaries *all, const void *family, uint64_t hash,
                           uint64_t now_ns)
{
    unsigned at = 0;
    while (at < SITE_DICTIONARY_FOLDERS &&
           (all->folders[at].family != family || all->folders[at].hash != hash))
        at++;
    if (at == SITE_DICTIONARY_FOLDERS)
        at = all->next_folder++ % SITE_DICTIONARY_FOLDERS;
    else if (now_ns - all->folders[at].read_ns < SITE_DICTIONARY_AGAIN_NS)
        return false;
    all->folders[at].family = family;
    all->folders[at].hash = hash;
    all->folders[at].read_ns = now_ns;
    return true;
}
