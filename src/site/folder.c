/* SPDX-License-Identifier: MIT
 *
 * Reading and sorting a directory. For natural order, each name gets a key. The order of the
 * keys' bytes is the order of the names. A key has letters in lower case. A run of digits becomes
 * '0', the count of its digits without leading zeros, and those digits. To compare bytes is fast,
 * and gives a total order for any names.
 */
#include "site/folder.h"

#include "base/buf.h"
#include "os/file.h"
#include "site/lookup.h"
#include "site/text.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

enum {
    ROWS_AT_FIRST = 64,
    NAME_LEN_MAX = 1024,        /* NAME_MAX counts UTF-16 units on some filesystems */
    KEY_MAX = 3 * NAME_LEN_MAX, /* a single digit becomes three bytes */
    DIGITS_MAX = 255,           /* of one run; its count is a byte */
};

struct reading {
    const struct site *site;
    struct span path;            /* of the directory */
    bool hidden;                 /* hidden names are shown */
    const _Atomic bool *stopped; /* as in the request */
    DIR *stream;
    struct site_folder folder;
    size_t rows_size;
    struct site_text names; /* each name with a NUL, then its key */
};

static bool is_ascii_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t make_key(struct span name, char out[KEY_MAX])
{
    size_t len = 0;

    for (size_t i = 0; i < name.len;) {
        if (!is_ascii_digit(name.at[i])) {
            out[len++] = ascii_lower(name.at[i++]);
            continue;
        }
        while (i < name.len && name.at[i] == '0')
            i++;
        const size_t start = i;
        while (i < name.len && i - start < DIGITS_MAX && is_ascii_digit(name.at[i]))
            i++;
        out[len++] = '0';
        out[len++] = (char)(i - start);
        memcpy(out + len, name.at + start, i - start);
        len += i - start;
    }
    return len;
}

static uint64_t start_of_key(const char *key, size_t len)
{
    uint64_t start = 0;
    for (size_t i = 0; i < sizeof(start); i++)
        start = start << 8 | (i < len ? (unsigned char)key[i] : 0);
    return start;
}

/* Measures the target of a link, if it is inside the root. */
static int stat_through_link(const struct reading *reading, struct span name,
                             struct stat *ret_status)
{
    char path[PATH_MAX];
    const struct span directory = span_skip(reading->path, 1);

    if (directory.len + name.len >= sizeof(path))
        return -ENAMETOOLONG;
    memcpy(path, directory.at, directory.len);
    memcpy(path + directory.len, name.at, name.len);
    path[directory.len + name.len] = '\0';
    int fd = os_file_peek_beneath(reading->site->root_fd, path);
    if (fd < 0)
        return fd;
    int error = os_file_stat(fd, ret_status);
    os_file_close(fd);
    return error;
}

static bool may_be_named(const struct reading *reading, struct span name)
{
    if (span_equal(name, SPAN(".")) || span_equal(name, SPAN("..")) || name.len > NAME_LEN_MAX ||
        (name.at[0] == '.' && !reading->hidden))
        return false;
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.at[i] < ' ' || name.at[i] == 0x7f)
            return false; /* no request can name it */
    return true;
}

/* The context of compare_rows, for qsort_r. */
struct ordering {
    const char *names;
    enum site_listing_order order;
    bool descending;
};

static int compare_bytes(struct span a, struct span b)
{
    int difference = memcmp(a.at, b.at, a.len < b.len ? a.len : b.len);
    return difference != 0 ? difference : (a.len > b.len) - (a.len < b.len);
}

/* Compares keys, and the bytes of the names where the keys are equal ("a" and "A", "1" and "01").
 * Names in a directory differ, so this is a total order. */
static int compare_names(const char *names, const struct site_folder_row *a,
                         const struct site_folder_row *b)
{
    if (a->key_start != b->key_start)
        return a->key_start < b->key_start ? -1 : 1;
    const struct span a_name = span_of(names + a->name_at, a->name_len);
    const struct span b_name = span_of(names + b->name_at, b->name_len);
    int difference = compare_bytes(span_of(a_name.at + a_name.len + 1, a->key_len),
                                   span_of(b_name.at + b_name.len + 1, b->key_len));
    return difference != 0 ? difference : compare_bytes(a_name, b_name);
}

static int compare_rows(const void *a_row, const void *b_row, void *context)
{
    const struct site_folder_row *a = a_row;
    const struct site_folder_row *b = b_row;
    const struct ordering *ordering = context;
    int difference = 0;

    if (a->directory != b->directory)
        return a->directory ? -1 : 1;
    if (ordering->order == SITE_LISTING_BY_SIZE)
        difference = (a->size > b->size) - (a->size < b->size);
    else if (ordering->order == SITE_LISTING_BY_TIME)
        difference = (a->modified_s > b->modified_s) - (a->modified_s < b->modified_s);
    if (difference == 0)
        difference = compare_names(ordering->names, a, b);
    return ordering->descending ? -difference : difference;
}

void site_folder_sort(struct site_folder *folder, enum site_listing_order order, bool descending)
{
    struct ordering ordering = { folder->names, order, descending };

    if (folder->count > 1)
        qsort_r(folder->rows, folder->count, sizeof(*folder->rows), compare_rows, &ordering);
}

static bool append_row(struct reading *reading, struct span name, bool directory)
{
    struct site_folder *folder = &reading->folder;
    char key[KEY_MAX];

    if (folder->count == reading->rows_size) {
        size_t larger = reading->rows_size > 0 ? reading->rows_size * 2 : ROWS_AT_FIRST;
        struct site_folder_row *rows = reallocarray(folder->rows, larger, sizeof(*rows));
        if (rows == NULL)
            return false;
        folder->rows = rows;
        reading->rows_size = larger;
    }
    const size_t key_len = make_key(name, key);
    const size_t name_at = reading->names.len;
    site_text_add(&reading->names, name);
    site_text_add(&reading->names, span_of("", 1)); /* for fstatat */
    site_text_add(&reading->names, span_of(key, key_len));
    if (reading->names.failed)
        return false;
    folder->rows[folder->count++] = (struct site_folder_row){
        .key_start = start_of_key(key, key_len),
        .name_at = (uint32_t)name_at, /* 100,000 names and keys are below 2^32 bytes */
        .name_len = (uint16_t)name.len,
        .key_len = (uint16_t)key_len,
        .directory = directory,
    };
    return true;
}

static bool is_stopped(const struct reading *reading)
{
    return reading->stopped != NULL && atomic_load_explicit(reading->stopped, memory_order_relaxed);
}

/* Reads the names, up to SITE_LISTING_NAMES_MAX. This costs little for each name. */
static int read_names(struct reading *reading)
{
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(reading->stream);
        if (entry == NULL)
            return -errno;
        if (is_stopped(reading))
            return -ECANCELED;
        const struct span name = span_text(entry->d_name);
        const unsigned char type = entry->d_type;
        const bool has_rules = reading->path.len == 1 && site_lookup_has_rules(reading->site, name);
        if (has_rules || !may_be_named(reading, name) || type == DT_FIFO || type == DT_SOCK ||
            type == DT_CHR || type == DT_BLK)
            continue;
        reading->folder.cut = reading->folder.count == SITE_LISTING_NAMES_MAX;
        if (reading->folder.cut)
            return 0;
        if (!append_row(reading, name, type == DT_DIR))
            return -ENOMEM;
    }
}

/* Measures what a row stands for. *ret_shown is false when it was removed meanwhile, or is not to
 * be served. */
static int measure_row(const struct reading *reading, struct site_folder_row *row, bool *ret_shown)
{
    struct stat status;
    const struct span name = site_folder_name(&reading->folder, row);

    int error = os_file_stat_at(dirfd(reading->stream), name.at, &status);
    if (error == 0 && S_ISLNK(status.st_mode))
        error = stat_through_link(reading, name, &status);
    if (error == -EMFILE || error == -ENFILE || error == -ENOMEM)
        return error;
    *ret_shown = error == 0 && (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode));
    if (*ret_shown) {
        row->directory = S_ISDIR(status.st_mode);
        row->size = row->directory ? 0 : (uint64_t)status.st_size;
        row->modified_s = status.st_mtim.tv_sec;
    }
    return 0;
}

static int measure_rows(struct reading *reading)
{
    struct site_folder *folder = &reading->folder;
    size_t kept = 0;

    for (size_t i = 0; i < folder->count; i++) {
        bool shown = false;
        int error = is_stopped(reading) ? -ECANCELED
                                        : measure_row(reading, &folder->rows[i], &shown);
        if (error < 0)
            return error;
        if (!shown)
            continue;
        folder->directories += folder->rows[i].directory;
        folder->rows[kept++] = folder->rows[i];
    }
    folder->count = kept;
    return 0;
}

/* Keeps the names that a reader of the list expects first. */
static void limit_rows(struct site_folder *folder)
{
    if (folder->count <= SITE_LISTING_ENTRIES_MAX)
        return;
    site_folder_sort(folder, SITE_LISTING_BY_NAME, false);
    folder->left_out = folder->count - SITE_LISTING_ENTRIES_MAX;
    folder->count = SITE_LISTING_ENTRIES_MAX;
}

int site_folder_read(const struct site *site, const struct site_listing_request *request, int *fd,
                     struct site_folder *ret_folder)
{
    const struct site_view *view = request->view != NULL ? request->view : site_view(site);
    struct reading reading = {
        .site = site,
        .path = request->path,
        .hidden = view->hidden,
        .stopped = request->stopped,
    };

    reading.stream = fdopendir(*fd);
    if (reading.stream == NULL)
        return -errno;
    *fd = -1;
    int error = read_names(&reading);
    reading.folder.names = reading.names.at;
    if (error == 0) {
        limit_rows(&reading.folder);
        error = measure_rows(&reading);
    }
    (void)closedir(reading.stream); /* only read */
    if (error < 0)
        site_folder_free(&reading.folder);
    else
        *ret_folder = reading.folder;
    return error;
}

void site_folder_filter(struct site_folder *folder, const struct site_listing_request *request)
{
    char bytes[2 * PATH_MAX];
    size_t kept = 0;

    if (request->shows == NULL)
        return;
    folder->directories = 0;
    for (size_t i = 0; i < folder->count; i++) {
        struct buf path = buf_over(bytes, sizeof(bytes));
        buf_add(&path, request->path);
        buf_add(&path, site_folder_name(folder, &folder->rows[i]));
        buf_add(&path, folder->rows[i].directory ? SPAN("/") : SPAN(""));
        if (path.overflow || !request->shows(request->context, buf_span(&path)))
            continue;
        folder->directories += folder->rows[i].directory;
        folder->rows[kept++] = folder->rows[i];
    }
    folder->count = kept;
}

void site_folder_free(struct site_folder *folder)
{
    free(folder->rows);
    free(folder->names);
    *folder = (struct site_folder){ 0 };
}
