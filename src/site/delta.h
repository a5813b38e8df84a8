/* SPDX-License-Identifier: MIT
 *
 * Differences of files from earlier versions that clients have (compression dictionaries, RFC
 * 9842). The compressor (compressor.h) makes a difference once, after the first request that would
 * take it. It is then an entry of its own in the cache, for one version of the file and one
 * dictionary. Its only form is the plain one, and holds the difference.
 *
 * The serving threads find and request. They never wait for the compressor. Its thread knows the
 * versions that were noted, and those that lie beside the requested file (dictionary.h).
 */
#pragma once

#include "site/coder.h"
#include "site/compressor.h"

/* What a request for a file says about its dictionary. The pointers are valid as long as the
 * site. */
struct site_delta_request {
    unsigned char digest[SITE_CODER_DIGEST]; /* of the bytes that the client has */
    const void *family;                      /* names the files that are versions of each other */
    /* Whether the file at `path` belongs to the family, and every client of the family may have
     * it. Called by the thread of the compressor. */
    bool (*admits)(const void *context, const void *family, struct span path);
    const void *context;
};

/* Whether the entry answers for its own path, and differences of it can be made by its type and
 * size. It is the same before and after the file has an entity tag. */
bool site_delta_suits(const struct site_entry *entry);

/* The plain file of the entry is sent to a client that will keep it as a dictionary of the family.
 * `entry` is valid as for site_compressor_request. */
void site_delta_note(struct site_compressor *compressor, struct site_entry *entry,
                     const void *family);

/* Finds the difference of the entry's plain file from the dictionary. NULL: there is none that is
 * smaller than each form of the entry. This call may have requested it. *ret_new and the references
 * are as with site_find. */
struct site_entry *site_delta_find(struct site_compressor *compressor,
                                   struct site_cache_reader *reader, struct site_entry *entry,
                                   const struct site_delta_request *request, uint64_t now_ns,
                                   bool *ret_new);

/* ---- for the compressor ---- */

/* Differences that were requested and are not in the cache yet, under the lock of the compressor.
 * Zeroed, it is empty. */
enum { SITE_DELTAS_MAX = 64 };

struct site_delta_place {
    enum site_delta_state {
        SITE_DELTA_FREE,
        SITE_DELTA_QUEUED, /* the compressor makes it */
        SITE_DELTA_READY,  /* `bytes` wait for a request */
        SITE_DELTA_LATER,  /* unknown dictionary, or no space: requested again after `until_ns` */
        SITE_DELTA_USELESS /* it saves too little, or a form is smaller */
    } state;
    char *key; /* in memory of malloc: which version, which dictionary */
    size_t key_len;
    char *bytes; /* `len` bytes of site_made_allocate */
    size_t len;
    struct site_delta_request request;
    uint64_t until_ns;
    uint64_t used; /* larger: later */
};

struct site_deltas {
    struct site_delta_place at[SITE_DELTAS_MAX];
    uint64_t uses;
};

void site_deltas_done(struct site_deltas *deltas);

/* The two jobs of the compressor's thread, which holds the entry. The first makes the difference
 * for a queued place. The second copies the plain file of the entry to the dictionaries. */
void site_delta_make(struct site_compressor *c, const struct site_entry *entry,
                     struct site_delta_place *place);
void site_delta_copy(struct site_compressor *c, const struct site_entry *entry, const void *family);
