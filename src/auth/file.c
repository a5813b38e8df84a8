/* SPDX-License-Identifier: MIT */
#include "auth/file.h"

#include "auth/basic.h"
#include "auth/hash.h"
#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct auth_user {
    struct span name;
    const char *hash;
};

struct auth_file {
    size_t count;
    struct auth_user *users; /* sorted by name */
    char text[];             /* of names and hashes */
};

/* ---- one line ---- */

/* The kinds of hashes, by how they begin, and the length of the last part, which is the hash. */
struct scheme {
    const char *start;
    size_t tail;     /* behind the last dollar; 0: the kind is not accepted */
    const char *why; /* it is not */
};

static const struct scheme schemes[] = {
    { "$2a$", 53, NULL },
    { "$2b$", 53, NULL },
    { "$2y$", 53, NULL },
    { "$y$", 43, NULL },
    { "$5$", 43, NULL },
    { "$6$", 86, NULL },
    { "$apr1$", 0, "This is a hash of Apache's MD5, which is too fast to be safe." },
    { "$1$", 0, "This is a hash of MD5, which is too fast to be safe." },
    { "{SHA}", 0, "This is a hash of SHA-1, which is too fast to be safe." },
    { "{SSHA}", 0, "This is a hash of SHA-1, which is too fast to be safe." },
    { "{PLAIN}", 0, "This is a password and not its hash." },
};

#define CURE " `weir password USER` makes a line that weir accepts."

/* The system's check of a hash does not look at the cost of bcrypt: 04 to 31, as two digits. */
static bool has_cost(const char *hash)
{
    return hash[1] != '2' || (hash[4] >= '0' && hash[4] <= '3' && hash[5] >= '0' &&
                              hash[5] <= (hash[4] == '3' ? '1' : '9') &&
                              (hash[4] > '0' || hash[5] >= '4') && hash[6] == '$');
}

/* NULL: the hash can be used. */
static const char *judge_hash(const char *hash)
{
    const struct span text = span_text(hash);
    const char *last = strrchr(hash, '$');
    const struct scheme *scheme = NULL;
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]) && !scheme; i++)
        if (span_starts(text, span_text(schemes[i].start)))
            scheme = &schemes[i];
    if (!scheme)
        return "This is no hash of bcrypt, yescrypt or SHA-crypt." CURE;
    if (scheme->why)
        return scheme->why;
    if (!last || strlen(last + 1) != scheme->tail || !auth_hash_can_use(hash) || !has_cost(hash))
        return "The hash has the wrong length or form. Perhaps a part of it is missing." CURE;
    return NULL;
}

static const char *judge_name(struct span name)
{
    if (name.len == 0)
        return "The line has no user name before the colon.";
    if (name.len > AUTH_USER_MAX)
        return "The user name is longer than 255 bytes.";
    while (name.len > 0) {
        uint32_t code = 0;
        const size_t len = utf8_decode(name, &code);
        if (len == 0)
            return "The user name is not text in UTF-8.";
        if (code < 0x20 || code == 0x7f)
            return "The user name has a control character.";
        name = span_skip(name, len);
    }
    return NULL;
}

/* Reads `user:hash`, or `user:hash:comment`, whose end is a NUL. NULL: the line is right. */
static const char *read_user(struct span line, struct auth_user *ret_user)
{
    const char *colon = memchr(line.at, ':', line.len);
    if (!colon)
        return "The line has no colon. Write a user name, a colon and a hash." CURE;
    char *hash = (char *)(uintptr_t)colon + 1;
    if (strlen(hash) != (size_t)(line.at + line.len - hash))
        return "The line has a NUL.";
    hash[strcspn(hash, ":")] = '\0';
    *ret_user = (struct auth_user){ span_of(line.at, (size_t)(colon - line.at)), hash };
    const char *why = judge_name(ret_user->name);
    return why ? why : judge_hash(hash);
}

/* ---- all lines ---- */

static int compare_names(struct span a, struct span b)
{
    const int order = memcmp(a.at, b.at, a.len < b.len ? a.len : b.len);
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_users(const void *a, const void *b)
{
    const struct auth_user *one = a, *two = b;
    const int order = compare_names(one->name, two->name);
    return order != 0 ? order : (one->name.at > two->name.at) - (one->name.at < two->name.at);
}

static unsigned line_of(const struct auth_file *file, const char *at)
{
    unsigned line = 1;
    for (const char *c = file->text; c < at; c++)
        line += *c == '\n';
    return line;
}

/* Takes the next line of *rest, with a NUL at its end. */
static struct span take_line(struct span *rest)
{
    char *at = (char *)(uintptr_t)rest->at;
    char *end = memchr(at, '\n', rest->len);
    size_t len = end ? (size_t)(end - at) : rest->len;
    *rest = span_skip(*rest, end ? len + 1 : len);
    at[len] = '\0';
    if (len > 0 && at[len - 1] == '\r')
        at[--len] = '\0';
    return span_of(at, len);
}

/* NULL: all lines are right. */
static const char *read_lines(struct auth_file *file, size_t len, unsigned *ret_line)
{
    struct span rest = span_of(file->text, len);
    if (span_starts(rest, SPAN("\xef\xbb\xbf"))) /* the byte order mark of other systems */
        rest = span_skip(rest, 3);
    for (*ret_line = 1; rest.len > 0; ++*ret_line) {
        const struct span line = take_line(&rest);
        if (span_trim(line).len == 0 || line.at[0] == '#')
            continue;
        const char *why = read_user(line, &file->users[file->count]);
        if (why)
            return why;
        file->count++;
    }
    *ret_line = 0;
    return file->count > 0 ? NULL : "The file has no user." CURE;
}

static size_t count_lines(struct span text)
{
    size_t lines = 1;
    for (size_t i = 0; i < text.len; i++)
        lines += text.at[i] == '\n';
    return lines;
}

/* Two lines for a user would contradict each other. NULL: each user has one. `text` is the file as
 * it was, with the ends of its lines. */
static const char *sort_users(struct auth_file *file, struct span text, unsigned *ret_line)
{
    qsort(file->users, file->count, sizeof(file->users[0]), compare_users);
    for (size_t i = 1; i < file->count; i++) {
        const struct auth_user *user = &file->users[i];
        if (!span_equal(user->name, user[-1].name))
            continue;
        const size_t at = (size_t)(user->name.at - file->text);
        memcpy(file->text, text.at, text.len);
        *ret_line = line_of(file, file->text + at);
        return "The user has a line before this one. Remove one of them.";
    }
    return NULL;
}

struct auth_file *auth_file_parse(struct span text, unsigned *ret_line, const char **ret_why)
{
    *ret_line = 0;
    *ret_why = "There is not enough memory.";
    struct auth_file *file = calloc(1, sizeof(*file) + text.len + 1);
    if (!file)
        return NULL;
    file->users = calloc(count_lines(text), sizeof(*file->users));
    if (file->users) {
        if (text.len > 0)
            memcpy(file->text, text.at, text.len);
        *ret_why = read_lines(file, text.len, ret_line);
        if (!*ret_why)
            *ret_why = sort_users(file, text, ret_line);
    }
    if (!*ret_why)
        return file;
    auth_file_free(file);
    return NULL;
}

void auth_file_free(struct auth_file *file)
{
    if (file)
        free(file->users);
    free(file);
}

/* ---- from the disk ---- */

/* Reads at most `size` bytes. Their number, or -errno. */
static ssize_t read_all(int fd, char *bytes, size_t size)
{
    size_t len = 0;
    while (len < size) {
        ssize_t got = read(fd, bytes + len, size - len);
        if (got == 0)
            break;
        if (got < 0 && errno != EINTR)
            return -errno;
        len += got > 0 ? (size_t)got : 0;
    }
    return (ssize_t)len;
}

/* O_NONBLOCK: a FIFO in place of the file must not stop the master. */
static ssize_t load_file(const char *path, char *bytes, size_t size)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    ssize_t len = fstat(fd, &info) < 0 ? -errno : !S_ISREG(info.st_mode) ? -EINVAL : 0;
    if (len == 0)
        len = read_all(fd, bytes, size);
    close(fd);
    return len;
}

struct auth_file *auth_file_read(const char *path, char why[AUTH_WHY_MAX])
{
    enum { SIZE = AUTH_FILE_MAX + 1 };
    char *bytes = malloc(SIZE);
    const ssize_t len = bytes ? load_file(path, bytes, SIZE) : -ENOMEM;
    struct auth_file *file = NULL;
    unsigned line = 0;
    const char *reason = len == -EINVAL ? "It is not a file." : "";
    if (len < 0 && len != -EINVAL)
        reason = strerror((int)-len);
    else if (len > AUTH_FILE_MAX)
        reason = "It has more than 1 MiB.";
    else if (len >= 0)
        file = auth_file_parse(span_of(bytes, (size_t)len), &line, &reason);
    if (!file && line > 0)
        (void)snprintf(why, AUTH_WHY_MAX, "%s:%u: %s", path, line, reason);
    else if (!file)
        (void)snprintf(why, AUTH_WHY_MAX, "%s cannot be used as a list of users. %s", path, reason);
    free(bytes);
    return file;
}

/* ---- users ---- */

size_t auth_file_count(const struct auth_file *file)
{
    return file->count;
}

const char *auth_file_find(const struct auth_file *file, struct span user, uint64_t choice,
                           bool *ret_known)
{
    size_t first = 0, last = file->count;
    CHECK(last > 0); /* a list without users is refused */
    while (first < last) {
        const size_t middle = first + (last - first) / 2;
        const int order = compare_names(user, file->users[middle].name);
        if (order == 0) {
            *ret_known = true;
            return file->users[middle].hash;
        }
        if (order < 0)
            last = middle;
        else
            first = middle + 1;
    }
    *ret_known = false;
    return file->users[choice % file->count].hash;
}
