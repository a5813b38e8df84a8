/* SPDX-License-Identifier: MIT
 *
 * Makes the served folder (fixture.h) from the list in fixture.txt.
 */
#include "fixture.h"

#include "escape.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The user that reads the files when root starts the runner: "nobody" on Linux. */
enum { UNPRIVILEGED_ID = 65534 };

/* Sun, 06 Nov 1994 08:49:37 GMT */
#define FIXTURE_TIME_S 784111777

static char *join(const char *folder, const char *name)
{
    char *path = NULL;
    CHECK(asprintf(&path, "%s/%s", folder, name) >= 0);
    return path;
}

static int make_parents(char *path)
{
    for (size_t i = 1; path[i]; i++) {
        if (path[i] != '/')
            continue;
        path[i] = '\0';
        int result = mkdir(path, 0755);
        path[i] = '/';
        if (result != 0 && errno != EEXIST)
            return -1;
    }
    return 0;
}

static int write_file(const char *path, const char *bytes, size_t len)
{
    FILE *out = fopen(path, "we");
    if (!out)
        return -1;
    bool written = fwrite(bytes, 1, len, out) == len;
    return fclose(out) == 0 && written ? 0 : -1;
}

static int write_offsets(const char *path, size_t size)
{
    FILE *out = fopen(path, "we");
    if (!out)
        return -1;
    for (size_t at = 0; at < size; at += 8) {
        char block[32];
        (void)snprintf(block, sizeof block, "%07zu\n", at);
        (void)fwrite(block, 1, size - at < 8 ? size - at : 8, out);
    }
    return fclose(out);
}

static int set_time(const char *path, time_t seconds)
{
    struct timespec times[2] = { { .tv_sec = seconds }, { .tv_sec = seconds } };
    return utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW);
}

/* Makes what one line describes, at `path`. -1 with errno, which is 0 for a malformed line. */
static int make_thing(struct span verb, char *path, const char *rest, size_t rest_len)
{
    errno = 0;
    if (make_parents(path) != 0)
        return -1;
    if (span_equal(verb, SPAN("file")))
        return write_file(path, rest, rest_len);
    if (span_equal(verb, SPAN("offsets")))
        return write_offsets(path, strtoul(rest, NULL, 10));
    if (span_equal(verb, SPAN("link")))
        return symlink(rest, path);
    if (span_equal(verb, SPAN("fifo")))
        return mkfifo(path, 0644);
    if (span_equal(verb, SPAN("mode")))
        return chmod(path, (mode_t)strtoul(rest, NULL, 8));
    if (span_equal(verb, SPAN("time")))
        return set_time(path, strtol(rest, NULL, 10));
    errno = 0;
    return -1;
}

/* Removes the first word of `line` and the space after it, and returns the word. */
static struct span take_word(struct span *line)
{
    const char *space = memchr(line->at, ' ', line->len);
    size_t len = space ? (size_t)(space - line->at) : line->len;
    struct span word = span_first(*line, len);
    *line = span_skip(*line, space ? len + 1 : len);
    return word;
}

static int make_line(const struct fixture *fixture, struct span line)
{
    struct span verb = take_word(&line);
    struct span name = take_word(&line);
    char *path_text = NULL;
    char *rest = NULL;
    size_t path_len = 0;
    size_t rest_len = 0;
    const char *wrong = escape_bytes(name, NULL, &path_text, &path_len);
    if (!wrong)
        wrong = escape_bytes(line, NULL, &rest, &rest_len);
    int result = -1;
    if (!wrong) {
        char *path = join(fixture->root, path_text);
        result = make_thing(verb, path, rest, rest_len);
        wrong = errno ? strerror(errno) : "a malformed line";
        free(path);
    }
    if (result != 0)
        (void)fprintf(stderr, "fixture: %.*s %.*s: %s\n", (int)verb.len, verb.at, (int)name.len,
                      name.at, wrong);
    free(path_text);
    free(rest);
    return result;
}

static int give_away(const char *path, const struct stat *st, int kind, struct FTW *place)
{
    (void)st;
    (void)kind;
    (void)place;
    return lchown(path, UNPRIVILEGED_ID, UNPRIVILEGED_ID);
}

static int age(const char *path, const struct stat *st, int kind, struct FTW *place)
{
    (void)st;
    (void)kind;
    (void)place;
    return set_time(path, FIXTURE_TIME_S);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *place)
{
    (void)st;
    (void)kind;
    (void)place;
    return remove(path);
}

void fixture_give_up_rights(struct fixture *fixture)
{
    if (geteuid() == 0)
        fixture->unprivileged = setegid(UNPRIVILEGED_ID) == 0 && seteuid(UNPRIVILEGED_ID) == 0;
}

/* As root: changes the owner of the files, and becomes that user. */
static int drop_rights(struct fixture *fixture)
{
    if (geteuid() != 0) {
        fixture->unprivileged = true;
        return 0;
    }
    if (nftw(fixture->top, give_away, 16, FTW_PHYS) != 0)
        return -1;
    fixture_give_up_rights(fixture);
    return 0;
}

/* Runs the lines that come before (`late` is false) or after all files get their age. */
static int run_lines(const struct fixture *fixture, FILE *in, bool late)
{
    char *line = NULL;
    size_t size = 0;
    int result = 0;
    rewind(in);
    for (ssize_t len = getline(&line, &size, in); len > 0 && result == 0;
         len = getline(&line, &size, in)) {
        struct span text = span_of(line, (size_t)len);
        if (text.at[text.len - 1] == '\n')
            text.len--;
        if (text.len == 0 || text.at[0] == '#')
            continue;
        bool is_late = span_starts(text, SPAN("mode ")) || span_starts(text, SPAN("time "));
        if (is_late == late)
            result = make_line(fixture, text);
    }
    free(line);
    return result;
}

/* Copies the configuration beside the list into the temporary directory. Later this process may
 * have lost the right to read it. */
static int copy_rules(const struct fixture *fixture, const char *description_path)
{
    char bytes[16 * 1024];
    const char *slash = strrchr(description_path, '/');
    CHECK(slash);
    char *from = NULL;
    CHECK(asprintf(&from, "%.*s/rules.conf", (int)(slash - description_path), description_path) >=
          0);
    FILE *in = fopen(from, "re");
    if (!in)
        perror(from);
    free(from);
    if (!in)
        return -1;
    const size_t len = fread(bytes, 1, sizeof(bytes), in);
    (void)fclose(in);
    CHECK(len < sizeof(bytes));
    char *to = join(fixture->top, "rules.conf");
    int result = write_file(to, bytes, len);
    free(to);
    return result;
}

int fixture_make(struct fixture *ret_fixture, const char *description_path)
{
    FILE *in = fopen(description_path, "re");
    if (!in) {
        perror(description_path);
        return -1;
    }
    struct fixture fixture = { 0 };
    const char *folder = getenv("TMPDIR");
    fixture.top = join(folder ? folder : "/tmp", "weir-conformance-XXXXXX");
    CHECK(mkdtemp(fixture.top));
    CHECK(chmod(fixture.top, 0755) == 0);
    fixture.root = join(fixture.top, "site");
    int result = run_lines(&fixture, in, false);
    if (result == 0)
        result = copy_rules(&fixture, description_path);
    if (result == 0)
        result = nftw(fixture.top, age, 16, FTW_PHYS);
    if (result == 0)
        result = run_lines(&fixture, in, true);
    if (result == 0)
        result = drop_rights(&fixture);
    (void)fclose(in);
    if (result == 0)
        *ret_fixture = fixture;
    else
        fixture_remove(&fixture);
    return result;
}

static int open_up(const char *path, const struct stat *st, int kind, struct FTW *place)
{
    (void)place;
    if (kind != FTW_D && kind != FTW_DNR)
        return 0;
    return (st->st_mode & 0700) == 0700 ? 0 : chmod(path, 0700);
}

void fixture_regain_rights(void)
{
    if (geteuid() != getuid())
        CHECK(seteuid(getuid()) == 0 && setegid(getgid()) == 0);
}

void fixture_remove(struct fixture *fixture)
{
    if (fixture->top) {
        fixture_regain_rights();
        (void)nftw(fixture->top, open_up, 16, FTW_PHYS);
        if (nftw(fixture->top, remove_one, 16, FTW_PHYS | FTW_DEPTH) != 0)
            perror(fixture->top);
    }
    free(fixture->top);
    free(fixture->root);
    *fixture = (struct fixture){ 0 };
}

char *fixture_read(const struct fixture *fixture, struct span path, size_t *ret_len)
{
    char *name = strndup(path.at, path.len);
    CHECK(name);
    char *full = join(fixture->root, name);
    free(name);
    FILE *in = fopen(full, "re");
    free(full);
    if (!in)
        return NULL;
    char *bytes = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&bytes, &len);
    CHECK(out);
    for (int c = fgetc(in); c != EOF; c = fgetc(in))
        (void)fputc(c, out);
    CHECK(fclose(out) == 0);
    (void)fclose(in);
    *ret_len = len;
    return bytes;
}
