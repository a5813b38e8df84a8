/* SPDX-License-Identifier: MIT
 *
 * The results of the compressor at an entry: compressed forms of its plain file, and digests of its
 * open files for their tags. The next comparison with the disk takes them into an entry that
 * replaces this one. So an entry never changes under its readers, and a form never outlives its
 * version of the file.
 *
 * Forms are in pages of their own, not in malloc's memory. A serving thread that frees them then
 * never waits for a lock that the compressor, a thread of low priority, holds.
 *
 * Private to site/.
 */
#pragma once

#include "site/content.h"
#include "site/site.h"

/* In a set of codings: the tags. The plain file is no coding. */
enum { SITE_MADE_TAGS = 1 << SITE_PLAIN };

/* Part of an entry. Zeroed, it has no forms. */
struct site_made {
    struct span form[SITE_PLAIN]; /* written by the compressor before the bit in `ready` */
    struct site_content_digest digest[SITE_VARIANTS]; /* written before the bit of the tags */
    uint8_t tagged;           /* bits 1 << enum site_variant: which of `digest` there are */
    _Atomic uint8_t ready;    /* forms, and SITE_MADE_TAGS, that no entry has taken yet */
    _Atomic uint8_t refused;  /* codings that could not be queued; offered again later */
    _Atomic uint8_t rejected; /* codings that are of no use for this version of the file */
};

/* An entry for a file that can be compressed: offers the codings of its site, but for those that
 * are `rejected`. The entry is not published yet. */
void site_made_offer(struct site_entry *entry, unsigned rejected);

/* Offers again what could not be queued. Any thread. */
void site_made_offer_again(struct site_entry *entry, struct site_made *made);

/* Whether forms wait to be taken. Any thread. */
bool site_made_has_forms(const struct site_made *made);

/* Takes the forms that are ready: a set of codings. Any thread; each form is taken once. They stay
 * in `made`, and are valid as long as the entry. */
unsigned site_made_take(struct site_made *made);

/* Has the next comparison with the disk offer these codings again: those that could not be queued,
 * and those that were taken. They belong to an entry then that the cache may refuse. If it does,
 * this entry stays. Its forms are not made again. */
void site_made_offer_later(struct site_made *made, unsigned codings);

/* Forms that were taken could not be used, or are there already: they are ready again. */
void site_made_return(struct site_made *made, unsigned codings);

/* Memory for a form of at most `room` bytes; NULL: there is none. */
char *site_made_allocate(size_t room);
void site_made_free(char *bytes, size_t room);

/* Returns the memory behind the first `len` bytes. The memory has `len` bytes of space then. */
void site_made_shrink(char *bytes, size_t room, size_t len);

/* The compressor has made a form: the first `len` bytes of `room`. Takes the memory. The next
 * request for the entry compares it with the disk, and takes the form. */
void site_made_give(struct site_entry *entry, struct site_made *made, enum site_variant coding,
                    char *bytes, size_t room, size_t len);

/* The compressor has written the digests of the open forms in the set `tagged`. The next request
 * for the entry compares it with the disk, and takes the tags. */
void site_made_give_tags(struct site_entry *entry, struct site_made *made, unsigned tagged);

/* Frees the forms, with the entry. */
void site_made_done(struct site_made *made);

/* Bytes of all forms and made variants of this process, in the cache or only in answers. */
size_t site_made_bytes(void);
void site_made_count(size_t more, size_t less);
