/* SPDX-License-Identifier: MIT */
#include "site/made.h"

#include "site/compress.h"
#include "site/entry.h"

#include <sys/mman.h>
#include <unistd.h>

static _Atomic size_t made_bytes;

size_t site_made_bytes(void)
{
    return atomic_load_explicit(&made_bytes, memory_order_relaxed);
}

void site_made_count(size_t more, size_t less)
{
    if (more > 0)
        atomic_fetch_add_explicit(&made_bytes, more, memory_order_relaxed);
    if (less > 0)
        atomic_fetch_sub_explicit(&made_bytes, less, memory_order_relaxed);
}

/* ---- offers ---- */

void site_made_offer(struct site_entry *entry, unsigned rejected)
{
    const unsigned codings = site_options(site_of(entry))->compress;
    struct site_made *made = rejected != 0 ? site_entry_made(entry) : NULL;
    if (made != NULL)
        atomic_store_explicit(&made->rejected, (uint8_t)rejected, memory_order_relaxed);
    atomic_store_explicit(&entry->missing, (uint8_t)(codings & ~entry->variants & ~rejected),
                          memory_order_relaxed);
}

void site_made_offer_again(struct site_entry *entry, struct site_made *made)
{
    if (atomic_load_explicit(&made->refused, memory_order_relaxed) == 0)
        return;
    const uint8_t refused = atomic_exchange_explicit(&made->refused, 0, memory_order_relaxed);
    atomic_fetch_or_explicit(&entry->missing, refused & ~SITE_MADE_TAGS, memory_order_relaxed);
    if ((refused & SITE_MADE_TAGS) != 0)
        atomic_store_explicit(&entry->untagged, 1, memory_order_relaxed);
}

/* ---- forms ---- */

bool site_made_has_forms(const struct site_made *made)
{
    const unsigned ready = atomic_load_explicit(&made->ready, memory_order_relaxed);
    return (ready & ~(unsigned)SITE_MADE_TAGS) != 0;
}

unsigned site_made_take(struct site_made *made)
{
    if (atomic_load_explicit(&made->ready, memory_order_relaxed) == 0)
        return 0;
    return atomic_exchange_explicit(&made->ready, 0, memory_order_acquire);
}

void site_made_offer_later(struct site_made *made, unsigned codings)
{
    atomic_fetch_or_explicit(&made->refused, (uint8_t)codings, memory_order_relaxed);
}

void site_made_return(struct site_made *made, unsigned codings)
{
    atomic_fetch_or_explicit(&made->ready, (uint8_t)codings, memory_order_release);
}

static size_t whole_pages(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

char *site_made_allocate(size_t room)
{
    void *pages =
        mmap(NULL, whole_pages(room), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages != MAP_FAILED ? pages : NULL;
}

void site_made_free(char *bytes, size_t room)
{
    CHECK(munmap(bytes, whole_pages(room)) == 0);
}

/* Has the next request compare the entry with the disk, and take what is ready. */
static void announce(struct site_entry *entry, struct site_made *made, uint8_t ready)
{
    atomic_fetch_or_explicit(&made->ready, ready, memory_order_release);
    atomic_fetch_sub_explicit(&entry->checked_ns, SITE_FRESH_NS, memory_order_release);
}

void site_made_shrink(char *bytes, size_t room, size_t len)
{
    const size_t used = whole_pages(len), all = whole_pages(room);
    if (used < all)
        (void)munmap(bytes + used,
                     all - used); /* can fail only for want of memory; then they stay */
}

void site_made_give(struct site_entry *entry, struct site_made *made, enum site_variant coding,
                    char *bytes, size_t room, size_t len)
{
    CHECK(len > 0 && coding < SITE_PLAIN && made->form[coding].len == 0);
    site_made_shrink(bytes, room, len);
    made->form[coding] = span_of(bytes, len);
    site_made_count(len, 0);
    announce(entry, made, (uint8_t)(1u << coding));
}

void site_made_give_tags(struct site_entry *entry, struct site_made *made, unsigned tagged)
{
    made->tagged = (uint8_t)tagged;
    announce(entry, made, SITE_MADE_TAGS);
}

void site_made_done(struct site_made *made)
{
    for (unsigned v = 0; v < SITE_PLAIN; v++) {
        const struct span form = made->form[v];
        if (form.len == 0)
            continue;
        site_made_free((char *)(uintptr_t)form.at, form.len);
        site_made_count(0, form.len);
    }
}
