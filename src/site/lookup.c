/* SPDX-License-Identifier: MIT
 *
 * From a path to open files. Every decision is about a descriptor that is already open, never
 * about a name, which could mean another file a moment later. Names are opened beneath the root
 * only.
 *
 * Reading the files is in load.c. This file knows nothing of the cache.
 */
#include "site/lookup.h"

#include "base/buf.h"
#include "base/hash.h"
#include "os/clock.h"
#include "os/file.h"
#include "site/siblings.h"
#include "site/trace.h"

#include <errno.h>
#include <sys/stat.h>

static const struct span endings[SITE_VARIANTS] = {
    [SITE_BR] = SPAN(".br"),
    [SITE_ZSTD] = SPAN(".zst"),
    [SITE_GZIP] = SPAN(".gz"),
    [SITE_PLAIN] = SPAN(""),
};

/* The file or directory under one name. */
struct place {
    int fd; /* -1 unless it is a regular file */
    bool is_directory;
    int error; /* why it could not be opened, -errno; or 0 */
    struct site_identity identity;
};

/* Clamped to the years 1678 to 2261, which 64 bits can hold; filesystems can exceed them. */
static int64_t to_ns(struct timespec time)
{
    const int64_t second = INT64_C(1000000000);
    const int64_t last = INT64_MAX / second - 1;
    if (time.tv_sec > last || time.tv_sec < -last)
        return time.tv_sec > 0 ? last * second : -last * second;
    return time.tv_sec * second + time.tv_nsec;
}

struct site_identity site_lookup_identity_of(const struct stat *status)
{
    return (struct site_identity){
        .device = status->st_dev,
        .inode = status->st_ino,
        .size = (uint64_t)status->st_size,
        .modified_ns = to_ns(status->st_mtim),
        .changed_ns = to_ns(status->st_ctim),
    };
}

bool site_lookup_identity_equal(const struct site_identity *a, const struct site_identity *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->modified_ns == b->modified_ns && a->changed_ns == b->changed_ns;
}

uint64_t site_lookup_version(const struct site *site, const struct site_identity *identity)
{
    return hash_bytes(span_of((const char *)identity, sizeof(*identity)), site->seed);
}

bool site_lookup_sibling_fits(const struct site_identity *sibling,
                              const struct site_identity *plain)
{
    return sibling->size > 0 && sibling->modified_ns >= plain->modified_ns;
}

static enum site_result result_of_error(int error)
{
    switch (-error) {
    case ENOENT:
    case ENOTDIR:
    case ENAMETOOLONG:
    case EINVAL: /* a name that this filesystem cannot have */
    case EILSEQ:
        return SITE_ABSENT;
    case EACCES:
    case EPERM:
    case EXDEV: /* out of the root */
    case ELOOP:
    case ENXIO: /* a socket, or a device without a driver */
    case ENODEV:
        return SITE_FORBIDDEN;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EAGAIN:
        return SITE_BUSY;
    case EINPROGRESS:
        return SITE_NOT_IN_MEMORY;
    default:
        return SITE_BROKEN;
    }
}

static int open_path(int root_fd, const char *path, enum site_patience patience)
{
    return patience == SITE_CACHED_ONLY ? os_file_open_cached(root_fd, path)
                                        : os_file_open_beneath(root_fd, path);
}

static int peek_path(int root_fd, const char *path, enum site_patience patience)
{
    return patience == SITE_CACHED_ONLY ? os_file_peek_cached(root_fd, path)
                                        : os_file_peek_beneath(root_fd, path);
}

/* A directory is SITE_ABSENT, with `is_directory` set: there is no file of that name. */
static enum site_result try_name(int root_fd, const char *path, enum site_patience patience,
                                 struct place *ret_place)
{
    struct stat status;

    int fd = open_path(root_fd, path, patience);
    bool unreadable = fd == -EACCES;
    *ret_place = (struct place){ .fd = -1, .error = fd < 0 ? fd : 0 };
    if (unreadable) /* a directory may be searchable but not readable */
        fd = peek_path(root_fd, path, patience);
    if (fd < 0)
        return result_of_error(fd);
    int error = os_file_stat(fd, &status);
    if (error == 0 && S_ISREG(status.st_mode) && !unreadable) {
        *ret_place = (struct place){ .fd = fd, .identity = site_lookup_identity_of(&status) };
        return SITE_FILE;
    }
    os_file_close(fd);
    if (error < 0)
        return SITE_BROKEN;
    ret_place->is_directory = S_ISDIR(status.st_mode);
    return ret_place->is_directory ? SITE_ABSENT : SITE_FORBIDDEN;
}

static enum site_result open_name(const struct site *site, int root_fd, enum site_purpose purpose,
                                  const char *path, enum site_patience patience,
                                  struct place *ret_place)
{
    enum site_result result = try_name(root_fd, path, patience, ret_place);
    if (site->trace != NULL)
        site_trace_lookup(site, root_fd, purpose, path,
                          ret_place->is_directory ? SITE_CAUSE_DIRECTORY
                                                  : site_trace_cause_of(result, ret_place->error),
                          ret_place->error, &ret_place->identity);
    return result;
}

static bool name_is_hidden(struct span name)
{
    return name.at[0] == '.' && !span_equal(name, SPAN(".well-known"));
}

/* The name of the file that a name with an ending of a stored form belongs to. */
static struct span plain_name(struct span name)
{
    for (int v = 0; v < SITE_PLAIN; v++)
        if (span_ends(name, endings[v]))
            return span_first(name, name.len - endings[v].len);
    return name;
}

/* A filesystem may ignore the case of names. */
bool site_lookup_has_rules(const struct site *site, struct span name)
{
    name = plain_name(name);
    return site->options->rule_files && (span_equal_nocase(name, SPAN("_headers")) ||
                                         span_equal_nocase(name, SPAN("_redirects")));
}

/* Whether a path can be served at all. A path that cannot be is absent, so that a client does not
 * learn whether it exists. Callers normalise paths, but this check does not rely on it. */
static bool path_may_be_served(const struct site *site, const struct site_view *view,
                               struct span path)
{
    const struct span whole = path;
    if (path.len == 0 || path.at[0] != '/' || memchr(path.at, '\0', path.len) != NULL)
        return false;
    path = span_skip(path, 1);
    if (site_lookup_has_rules(site, path)) {
        if (site->trace != NULL)
            site_trace_refuse(site, whole, path, SITE_CAUSE_RULES);
        return false;
    }
    while (path.len > 0) {
        const char *slash = memchr(path.at, '/', path.len);
        struct span name = span_first(path, slash != NULL ? (size_t)(slash - path.at) : path.len);
        if (name.len == 0 || span_equal(name, SPAN(".")) || span_equal(name, SPAN("..")))
            return false;
        if (!view->hidden && name_is_hidden(name)) {
            if (site->trace != NULL)
                site_trace_refuse(site, whole, name, SITE_CAUSE_HIDDEN);
            return false;
        }
        path = span_skip(path, name.len + (slash != NULL));
    }
    return true;
}

/* Joins `path` and `ending`, with a NUL. False when the result is longer than PATH_MAX. */
static bool join_path(char out[PATH_MAX], struct span path, struct span ending)
{
    if (path.len >= PATH_MAX || ending.len >= PATH_MAX - path.len)
        return false;
    memcpy(out, path.at, path.len);
    memcpy(out + path.len, ending.at, ending.len);
    out[path.len + ending.len] = '\0';
    return true;
}

static bool is_compressed(struct span path)
{
    for (int v = 0; v < SITE_PLAIN; v++)
        if (span_ends(path, endings[v]))
            return true;
    return false;
}

/* Whether the lookup ends without an answer, because of a file beside the one that it is for. */
static bool ends_lookup(enum site_result result)
{
    return result == SITE_BUSY || result == SITE_NOT_IN_MEMORY;
}

/* Opens the siblings that can stand for the plain file. Only a lack of descriptors or memory is an
 * error. With any other fault of a sibling, the plain file is sent. */
static enum site_result find_siblings(const struct site *site, int root_fd, unsigned likely,
                                      struct site_lookup *lookup)
{
    char path[PATH_MAX];
    struct place place;
    const struct span plain = span_of(lookup->path, lookup->path_len);

    for (int v = 0; v < SITE_PLAIN; v++) {
        if ((likely & 1u << v) == 0 || !join_path(path, plain, endings[v]))
            continue;
        enum site_result result =
            open_name(site, root_fd, SITE_LOOKUP_SIBLING, path, lookup->patience, &place);
        if (ends_lookup(result))
            return result;
        if (result != SITE_FILE)
            continue;
        if (!site_lookup_sibling_fits(&place.identity, &lookup->identity[SITE_PLAIN])) {
            if (site->trace != NULL)
                site_trace_judge(site,
                                 place.identity.size > 0 ? SITE_CAUSE_OLDER : SITE_CAUSE_EMPTY);
            os_file_close(place.fd);
            continue;
        }
        lookup->fd[v] = place.fd;
        lookup->identity[v] = place.identity;
    }
    return SITE_FILE;
}

/* The length of a page's path without `.html` or `.htm`; 0: it has another ending. */
static size_t stem_of_page(struct span path)
{
    static const struct span pages[] = { SPAN(".html"), SPAN(".htm") };
    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++)
        if (span_ends(path, pages[i]))
            return path.len - pages[i].len;
    return 0;
}

/* Whether the page can be sent in Markdown. It is opened as a file of its own when it is. */
static enum site_result find_markdown(const struct site *site, int root_fd,
                                      struct site_lookup *lookup)
{
    char path[PATH_MAX];
    struct place place;
    const struct span page = span_of(lookup->path, lookup->path_len);
    const size_t stem = stem_of_page(page);

    if (stem == 0 || !join_path(path, span_first(page, stem), SPAN(".md")))
        return SITE_FILE;
    const enum site_result result =
        open_name(site, root_fd, SITE_LOOKUP_MARKDOWN, path, lookup->patience, &place);
    lookup->markdown = result == SITE_FILE;
    os_file_close(place.fd);
    return ends_lookup(result) ? result : SITE_FILE;
}

/* Whether an answer to a request for a path may be in another form that Accept chooses. */
static bool may_choose_markdown(const struct site *site, enum site_purpose purpose)
{
    return site->options->markdown && (purpose == SITE_LOOKUP_PATH || purpose == SITE_LOOKUP_INDEX);
}

/* The forms that may be beside the plain file, by what is remembered of its folder. A trace shows
 * each of them. */
static unsigned likely_siblings(const struct site *site, int root_fd, enum site_purpose purpose,
                                struct site_lookup *lookup)
{
    const struct span path = span_of(lookup->path, lookup->path_len);
    const unsigned codings =
        site->options->precompressed && !is_compressed(path) ? (1u << SITE_PLAIN) - 1 : 0;
    const unsigned markdown =
        may_choose_markdown(site, purpose) && stem_of_page(path) > 0 ? 1u << SITE_PLAIN : 0;
    const struct site_siblings_query query = {
        .root_fd = root_fd,
        .path = lookup->path,
        .path_len = lookup->path_len,
        .stem_len = stem_of_page(path),
        .now_ns = lookup->checked_ns,
        .may_read = lookup->patience == SITE_MAY_WAIT,
    };

    if ((codings | markdown) == 0 || site->trace != NULL || root_fd != site->root_fd)
        return codings | markdown;
    const unsigned likely = site_siblings_likely(site->siblings, &query, &lookup->checked_ns);
    return likely & (codings | markdown | SITE_SIBLINGS_UNREAD);
}

/* Opens the file at `lookup->path`, and its siblings. */
static enum site_result find_variants(const struct site *site, int root_fd,
                                      enum site_purpose purpose, struct site_lookup *lookup)
{
    struct place place;

    for (int v = 0; v < SITE_VARIANTS; v++)
        lookup->fd[v] = -1;
    lookup->markdown = false;
    lookup->began_ns = os_clock_wall_ms() * 1000000;
    enum site_result result =
        open_name(site, root_fd, purpose, lookup->path, lookup->patience, &place);
    lookup->is_directory = place.is_directory;
    if (result != SITE_FILE)
        return result;
    lookup->fd[SITE_PLAIN] = place.fd;
    lookup->identity[SITE_PLAIN] = place.identity;
    const unsigned likely = likely_siblings(site, root_fd, purpose, lookup);
    if ((likely & SITE_SIBLINGS_UNREAD) != 0 && lookup->patience == SITE_CACHED_ONLY)
        result = SITE_NOT_IN_MEMORY;
    else if ((likely & ~(1u << SITE_PLAIN)) != 0)
        result = find_siblings(site, root_fd, likely, lookup);
    if (result == SITE_FILE && (likely & 1u << SITE_PLAIN) != 0)
        result = find_markdown(site, root_fd, lookup);
    if (result != SITE_FILE)
        site_lookup_close(lookup);
    return result;
}

/* The path below the root: no leading slash, and "." for the root itself. */
static struct span below_root(struct span path)
{
    while (path.len > 0 && path.at[0] == '/')
        path = span_skip(path, 1);
    return path.len > 0 ? path : SPAN(".");
}

/* Opens the directory `path` (of a request, ending with '/') for reading. Returns a descriptor or
 * -errno; -ENOENT for a hidden directory, too. */
static int open_directory(const struct site *site, const struct site_view *view, struct span path,
                          enum site_patience patience)
{
    char below[PATH_MAX];

    if (!path_may_be_served(site, view, path) || path.at[path.len - 1] != '/')
        return -ENOENT;
    if (!join_path(below, below_root(path), SPAN("")))
        return -ENAMETOOLONG;
    return open_path(site->root_fd, below, patience);
}

static enum site_result find_index(const struct site *site, const struct site_view *view,
                                   struct span path, struct site_lookup *lookup)
{
    const struct span directory = span_skip(path, 1);

    for (const char *const *index = view->index; index != NULL && *index != NULL; index++) {
        if (!join_path(lookup->path, directory, span_text(*index)))
            continue;
        lookup->path_len = directory.len + strlen(*index);
        enum site_result result = find_variants(site, site->root_fd, SITE_LOOKUP_INDEX, lookup);
        if (result != SITE_ABSENT)
            return result;
    }
    int fd = open_directory(site, view, path, lookup->patience);
    enum site_result result = fd < 0 ? result_of_error(fd) : SITE_LISTING;
    os_file_close(fd);
    if (site->trace != NULL && join_path(lookup->path, below_root(path), SPAN("")))
        site_trace_lookup(site, site->root_fd, SITE_LOOKUP_DIRECTORY, lookup->path,
                          site_trace_cause_of(result, fd), fd < 0 ? fd : 0, NULL);
    if (fd < 0)
        return result;
    if (site->trace != NULL)
        site_trace_judge(site, site->options->listing ? SITE_CAUSE_LISTED : SITE_CAUSE_NO_INDEX);
    return site->options->listing ? SITE_LISTING : SITE_FORBIDDEN;
}

static enum site_result find_named_file(const struct site *site, int root_fd,
                                        enum site_purpose purpose, struct span path,
                                        struct site_lookup *lookup)
{
    path = below_root(path);
    lookup->is_directory = false;
    if (!join_path(lookup->path, path, SPAN("")))
        return SITE_ABSENT;
    lookup->path_len = path.len;
    return find_variants(site, root_fd, purpose, lookup);
}

enum site_result site_lookup(const struct site *site, const struct site_view *view,
                             struct span path, enum site_patience patience,
                             struct site_lookup *ret_lookup)
{
    ret_lookup->patience = patience;
    if (!path_may_be_served(site, view, path))
        return SITE_ABSENT;
    if (path.at[path.len - 1] == '/')
        return find_index(site, view, path, ret_lookup);
    enum site_result result =
        find_named_file(site, site->root_fd, SITE_LOOKUP_PATH, path, ret_lookup);
    return ret_lookup->is_directory ? SITE_REDIRECT : result;
}

enum site_result site_lookup_file(const struct site *site, int root_fd, struct span path,
                                  enum site_patience patience, struct site_lookup *ret_lookup)
{
    ret_lookup->patience = patience;
    enum site_purpose purpose = root_fd == site->root_fd ? SITE_LOOKUP_FALLBACK
                                                         : SITE_LOOKUP_ERROR_PAGE;
    return find_named_file(site, root_fd, purpose, path, ret_lookup);
}

enum site_result site_lookup_directory(const struct site *site, const struct site_view *view,
                                       struct span path, enum site_patience patience,
                                       struct site_lookup *ret_lookup)
{
    struct stat status;

    ret_lookup->patience = patience;

    for (int v = 0; v < SITE_VARIANTS; v++)
        ret_lookup->fd[v] = -1;
    ret_lookup->path_len = 0;
    ret_lookup->is_directory = true;
    ret_lookup->markdown = false;
    ret_lookup->began_ns = os_clock_wall_ms() * 1000000;
    int fd = open_directory(site, view, path, patience);
    int error = fd < 0 ? fd : os_file_stat(fd, &status);
    if (error < 0) {
        os_file_close(fd);
        return result_of_error(error);
    }
    ret_lookup->fd[SITE_PLAIN] = fd;
    ret_lookup->identity[SITE_PLAIN] = site_lookup_identity_of(&status);
    return SITE_FILE;
}

bool site_lookup_is_absent(const struct site *site, const struct site_view *view, int root_fd,
                           struct span path, enum site_patience patience)
{
    char below[PATH_MAX];

    if (path.len > 0 && path.at[0] == '/' && !path_may_be_served(site, view, path))
        return true;
    if (!join_path(below, below_root(path), SPAN("")))
        return false;
    if (patience == SITE_CACHED_ONLY) {
        const int fd = os_file_peek_cached(root_fd, below);
        os_file_close(fd);
        return fd < 0 && result_of_error(fd) == SITE_ABSENT;
    }
    const int error = os_file_probe(root_fd, below);
    return error < 0 && result_of_error(error) == SITE_ABSENT;
}

void site_lookup_close(struct site_lookup *lookup)
{
    for (int v = 0; v < SITE_VARIANTS; v++) {
        os_file_close(lookup->fd[v]);
        lookup->fd[v] = -1;
    }
}

struct span site_lookup_markdown_path(const struct site_lookup *lookup,
                                      char out[SITE_LOOKUP_MARKDOWN_MAX])
{
    struct buf path = buf_over(out, SITE_LOOKUP_MARKDOWN_MAX);
    const struct span page = span_of(lookup->path, lookup->path_len);
    if (!lookup->markdown)
        return SPAN("");
    buf_add_char(&path, '/');
    buf_add(&path, span_first(page, stem_of_page(page)));
    buf_add(&path, SPAN(".md"));
    return buf_span(&path);
}

struct span site_lookup_name(const struct site_lookup *lookup)
{
    const char *slash = memrchr(lookup->path, '/', lookup->path_len);
    const char *name = slash != NULL ? slash + 1 : lookup->path;
    return span_of(name, (size_t)(lookup->path + lookup->path_len - name));
}
