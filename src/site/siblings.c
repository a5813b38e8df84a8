/* SPDX-License-Identifier: MIT
 *
 * A table of folders, in sets of a few slots. The user of a slot holds its flag, also while it
 * makes system calls. A thread that finds the flag taken tries all siblings instead of waiting.
 */
#include "site/siblings.h"

#include "base/check.h"
#include "base/hash.h"
#include "os/clock.h"
#include "os/file.h"
#include "site/content.h"
#include "site/lookup.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

enum {
    SET = 8,
    SETS = 4096,
    MISSES_FIRST = 4,        /* in a folder before it is read for the first time */
    MISSES_FACTOR = 4,       /* more misses after a reading that found too many names */
    MISSES_MOST = 256,       /* a reading covers at most 16,384 names: one or two milliseconds */
    MISSES_HOPELESS = 16384, /* in a folder that has more names, or no reliable time */
    NAMES_FOR_MISS = 64,
    NAME_MOST = 1024, /* NAME_MAX counts UTF-16 units on some filesystems */
    MARKDOWN = SITE_PLAIN,
    FORMS = 4,
};

/* In order. A form that is there is the hash of its plain name, with the form in the lowest bits.
 * Two names with equal hashes cost a call that finds nothing. */
struct forms {
    size_t count;
    uint32_t at[];
};

struct slot {
    _Atomic uint64_t folder; /* the hash of its path; 0: the slot was never used */
    _Atomic bool taken;      /* by the thread that uses the rest */
    bool known;              /* `forms` are those of the identity below */
    uint16_t misses;         /* since the folder was last read */
    uint16_t misses_enough;  /* to read it */
    struct forms *forms;     /* NULL: the folder has none */
    uint64_t device, inode;
    int64_t changed_ns;
    uint64_t used_ns; /* known: when the folder was last compared with the disk */
};

struct site_siblings {
    uint64_t seed;
    _Atomic size_t bytes;
    struct slot slots[SETS * SET];
};

static const struct span endings[FORMS] = {
    [SITE_BR] = SPAN(".br"),
    [SITE_ZSTD] = SPAN(".zst"),
    [SITE_GZIP] = SPAN(".gz"),
    [MARKDOWN] = SPAN(".md"),
};

struct site_siblings *site_siblings_new(uint64_t seed)
{
    /* Fresh pages: a slot that is never used takes no memory. */
    struct site_siblings *siblings = calloc(1, sizeof(*siblings));
    if (siblings != NULL)
        siblings->seed = seed;
    return siblings;
}

static size_t bytes_of(size_t count)
{
    return sizeof(struct forms) + count * sizeof(uint32_t);
}

static void forget_folder(struct site_siblings *siblings, struct slot *slot)
{
    if (slot->forms != NULL)
        atomic_fetch_sub_explicit(&siblings->bytes, bytes_of(slot->forms->count),
                                  memory_order_relaxed);
    free(slot->forms);
    slot->forms = NULL;
    slot->known = false;
}

void site_siblings_free(struct site_siblings *siblings)
{
    for (size_t i = 0; siblings != NULL && i < SETS * SET; i++)
        free(siblings->slots[i].forms);
    free(siblings);
}

/* ---- slots ---- */

static bool take_slot(struct slot *slot)
{
    return !atomic_exchange_explicit(&slot->taken, true, memory_order_acquire);
}

static void leave_slot(struct slot *slot)
{
    atomic_store_explicit(&slot->taken, false, memory_order_release);
}

/* Takes the slot of a folder, unless another folder has got the slot meanwhile. */
static bool take_slot_of(struct slot *slot, uint64_t folder)
{
    if (!take_slot(slot))
        return false;
    if (atomic_load_explicit(&slot->folder, memory_order_relaxed) == folder)
        return true;
    leave_slot(slot);
    return false;
}

/* Whether the slot was not used lately. Signed, because another thread's time may be ahead. */
static bool is_idle(const struct slot *slot, uint64_t now_ns)
{
    return (int64_t)(now_ns - slot->used_ns) >= (int64_t)SITE_FRESH_NS;
}

/* Gives the taken slot of a folder, or NULL. A folder that is in use keeps its slot. */
static struct slot *slot_of(struct site_siblings *siblings, uint64_t folder, uint64_t now_ns)
{
    struct slot *set = &siblings->slots[folder % SETS * SET];

    for (int i = 0; i < SET; i++)
        if (atomic_load_explicit(&set[i].folder, memory_order_relaxed) == folder)
            return take_slot_of(&set[i], folder) ? &set[i] : NULL;
    for (int i = 0; i < SET; i++) {
        if (!take_slot(&set[i]))
            continue;
        if (atomic_load_explicit(&set[i].folder, memory_order_relaxed) == 0 ||
            is_idle(&set[i], now_ns)) {
            forget_folder(siblings, &set[i]);
            atomic_store_explicit(&set[i].folder, folder, memory_order_relaxed);
            set[i].misses = 0;
            set[i].misses_enough = MISSES_FIRST;
            return &set[i];
        }
        leave_slot(&set[i]);
    }
    return NULL;
}

/* ---- names ---- */

/* Of a name in lower case, because a folder may ignore case. */
static uint32_t form_of(const struct site_siblings *siblings, struct span name, unsigned form)
{
    char lower[NAME_MOST];

    for (size_t i = 0; i < name.len; i++)
        lower[i] = ascii_lower(name.at[i]);
    const uint64_t hash = hash_bytes(span_of(lower, name.len), siblings->seed);
    return ((uint32_t)(hash >> 32) & ~(uint32_t)(FORMS - 1)) | form;
}

/* Whether folding the case of a name takes more than ascii_lower. */
static bool is_ascii(struct span name)
{
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.at[i] > 0x7f)
            return false;
    return true;
}

static int compare_forms(const void *a_, const void *b_)
{
    const uint32_t *a = a_, *b = b_;
    return (*a > *b) - (*a < *b);
}

static bool has_form(const struct site_siblings *siblings, const struct forms *forms,
                     struct span name, unsigned form)
{
    const uint32_t key = form_of(siblings, name, form);
    return bsearch(&key, forms->at, forms->count, sizeof(key), compare_forms) != NULL;
}

static unsigned forms_beside(const struct site_siblings *siblings, const struct forms *forms,
                             const struct site_siblings_query *query, size_t name_at)
{
    const struct span name = span_of(query->path + name_at, query->path_len - name_at);
    unsigned found = 0;

    if (forms == NULL)
        return 0;
    if (name.len > NAME_MOST || !is_ascii(name))
        return SITE_SIBLINGS_ALL;
    for (unsigned v = 0; v < MARKDOWN; v++)
        if (has_form(siblings, forms, name, v))
            found |= 1u << v;
    if (query->stem_len > name_at &&
        has_form(siblings, forms, span_first(name, query->stem_len - name_at), MARKDOWN))
        found |= 1u << MARKDOWN;
    return found;
}

/* ---- reading a folder ---- */

/* Names that a reading has found. */
struct reading {
    const struct site_siblings *siblings;
    struct forms *forms;
    size_t size; /* how many `forms` can hold */
};

static bool add_form(struct reading *reading, uint32_t form)
{
    struct forms *forms = reading->forms;
    const size_t count = forms != NULL ? forms->count : 0;

    if (forms == NULL || count == reading->size) {
        const size_t larger = reading->size > 0 ? 2 * reading->size : 16;
        forms = realloc(forms, bytes_of(larger));
        if (forms == NULL)
            return false;
        reading->forms = forms;
        reading->size = larger;
    }
    forms->at[count] = form;
    forms->count = count + 1;
    return true;
}

static bool add_name(struct reading *reading, struct span name)
{
    for (unsigned form = 0; form < FORMS; form++) {
        const struct span ending = endings[form];
        if (name.len <= ending.len || name.len > NAME_MOST ||
            !span_equal_nocase(span_skip(name, name.len - ending.len), ending))
            continue;
        const struct span plain = span_first(name, name.len - ending.len);
        return add_form(reading, form_of(reading->siblings, plain, form));
    }
    return true;
}

/* False when the folder has more names than `most`, or cannot be read. */
static bool read_names(struct reading *reading, DIR *stream, size_t most)
{
    for (size_t count = 0;; count++) {
        errno = 0;
        const struct dirent *entry = readdir(stream);
        if (entry == NULL)
            return errno == 0;
        if (count == most || !add_name(reading, span_text(entry->d_name)))
            return false;
    }
}

/* Opens the folder, and notes its identity. NULL: its names cannot be remembered now. */
static DIR *open_folder(struct slot *slot, const struct site_siblings_query *query,
                        const char *folder, bool *ret_hopeless)
{
    struct stat status;
    const int64_t began_ns = os_clock_wall_ms() * 1000000;
    const int fd = os_file_open_beneath(query->root_fd, folder);

    if (fd < 0)
        return NULL;
    *ret_hopeless = !os_file_dates_folders(fd);
    if (!*ret_hopeless && os_file_stat(fd, &status) == 0) {
        const struct site_identity identity = site_lookup_identity_of(&status);
        slot->device = identity.device;
        slot->inode = identity.inode;
        slot->changed_ns = identity.changed_ns;
        DIR *stream = site_content_is_settled(&identity, began_ns) ? fdopendir(fd) : NULL;
        if (stream != NULL)
            return stream;
    }
    os_file_close(fd);
    return NULL;
}

/* Keeps what was read, if all folders together stay below their limit. Takes the forms. */
static void keep_forms(struct site_siblings *siblings, struct slot *slot, struct forms *forms)
{
    const size_t bytes = forms != NULL ? bytes_of(forms->count) : 0;
    const size_t before = atomic_fetch_add_explicit(&siblings->bytes, bytes, memory_order_relaxed);

    if (before + bytes > SITE_SIBLINGS_BYTES) {
        atomic_fetch_sub_explicit(&siblings->bytes, bytes, memory_order_relaxed);
        free(forms);
        return;
    }
    if (forms != NULL)
        qsort(forms->at, forms->count, sizeof(forms->at[0]), compare_forms);
    slot->forms = forms;
    slot->known = true;
}

/* Reads the folder, as far as its misses have paid for that. A folder that has too many names is
 * read more and more rarely. */
static void learn_folder(struct site_siblings *siblings, struct slot *slot,
                         const struct site_siblings_query *query, const char *folder)
{
    struct reading reading = { .siblings = siblings };
    const unsigned paid = slot->misses_enough < MISSES_MOST ? slot->misses_enough : MISSES_MOST;
    bool hopeless = false;
    DIR *stream = open_folder(slot, query, folder, &hopeless);

    slot->misses = 0;
    if (stream != NULL) {
        hopeless = !read_names(&reading, stream, (size_t)paid * NAMES_FOR_MISS);
        (void)closedir(stream); /* only read */
        if (!hopeless)
            keep_forms(siblings, slot, reading.forms);
        else
            free(reading.forms);
    }
    if (!slot->known && slot->misses_enough < (hopeless ? MISSES_HOPELESS : MISSES_MOST))
        slot->misses_enough = (uint16_t)(slot->misses_enough * MISSES_FACTOR);
}

/* ---- lookups ---- */

/* Whether the path still leads to the folder that was read, and none of its names has changed. A
 * path that has come to leave the root leads to another folder. */
static bool is_current(const struct slot *slot, int root_fd, const char *folder)
{
    struct stat status;

    if (os_file_stat_path(root_fd, folder, &status) < 0)
        return false;
    const struct site_identity now = site_lookup_identity_of(&status);
    return now.device == slot->device && now.inode == slot->inode &&
           now.changed_ns == slot->changed_ns;
}

/* Brings a slot up to date. Returns 0, or SITE_SIBLINGS_UNREAD: the folder is to be read by a
 * caller that may. */
static unsigned refresh_folder(struct site_siblings *siblings, struct slot *slot,
                               const struct site_siblings_query *query, const char *folder)
{
    const bool idle = is_idle(slot, query->now_ns);

    if (slot->known && idle && !is_current(slot, query->root_fd, folder))
        forget_folder(siblings, slot);
    if (idle)
        slot->used_ns = query->now_ns;
    if (slot->known)
        return 0;
    if (slot->misses < slot->misses_enough) {
        slot->misses++;
        return 0;
    }
    if (!query->may_read)
        return idle ? SITE_SIBLINGS_UNREAD : 0;
    learn_folder(siblings, slot, query, folder);
    slot->used_ns = query->now_ns;
    return 0;
}

/* The folder of a path, or "." for the root. Returns where the last name of the path begins. */
static size_t folder_of(const struct site_siblings_query *query, char out[PATH_MAX])
{
    const char *slash = memrchr(query->path, '/', query->path_len);
    const size_t len = slash != NULL ? (size_t)(slash - query->path) : 0;

    memcpy(out, len > 0 ? query->path : ".", len > 0 ? len : 1);
    out[len > 0 ? len : 1] = '\0';
    return slash != NULL ? len + 1 : 0;
}

unsigned site_siblings_likely(struct site_siblings *siblings,
                              const struct site_siblings_query *query, uint64_t *ret_checked_ns)
{
    char folder[PATH_MAX];

    *ret_checked_ns = query->now_ns;
    if (siblings == NULL)
        return SITE_SIBLINGS_ALL;
    const size_t name_at = folder_of(query, folder);
    const uint64_t hash = hash_bytes(span_text(folder), siblings->seed);
    struct slot *slot = slot_of(siblings, hash, query->now_ns);
    if (slot == NULL)
        return SITE_SIBLINGS_ALL;
    unsigned found = refresh_folder(siblings, slot, query, folder);
    if (found == 0 && !slot->known)
        found = SITE_SIBLINGS_ALL;
    if (slot->known) {
        found = forms_beside(siblings, slot->forms, query, name_at);
        *ret_checked_ns = slot->used_ns;
    }
    leave_slot(slot);
    return found;
}
