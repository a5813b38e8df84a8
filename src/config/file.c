/* SPDX-License-Identifier: MIT
 *
 * inih takes lines apart; what it does not tell (the number of a line, where a
 * section begins, which lines it could not read) is seen here, on the way in:
 * it asks for each line through `give_line`, and hands each setting to
 * `take_setting` before it asks for the next.
 */
#include "config/file.h"

#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <string.h>

enum { FILE_MAX_BYTES = 1024 * 1024, LINE_MAX_BYTES = 8 * 1024 };

/* Debian's inih has these as variables; elsewhere they were fixed when it was
 * built, and then weir lives with its limits (give_line checks for both). */
extern bool ini_use_stack __attribute__((weak));
extern bool ini_allow_inline_comments __attribute__((weak));
extern bool ini_allow_realloc __attribute__((weak));
extern int ini_max_line __attribute__((weak));
extern int ini_initial_alloc __attribute__((weak));

struct reading {
    struct span rest;
    const char *path;
    const struct config_file_handler *handler;
    struct config_problems *problems;
    unsigned line;
    bool expecting; /* the line given last should be told as a setting */
    bool inline_comments;
};

static void complain(struct reading *reading, const char *what)
{
    struct config_origin origin = { CONFIG_BY_FILE, reading->path, reading->line };
    config_problem_error(reading->problems, origin, "%s", what);
}

static struct span next_line(struct reading *reading)
{
    const char *end = memchr(reading->rest.at, '\n', reading->rest.len);
    size_t len = end ? (size_t)(end - reading->rest.at) : reading->rest.len;
    struct span line = span_first(reading->rest, len);
    reading->rest = span_skip(reading->rest, end ? len + 1 : len);
    reading->line++;
    if (reading->line == 1 && span_starts(line, SPAN("\xef\xbb\xbf")))
        line = span_skip(line, 3);
    line = span_trim(line);
    if (span_ends(line, SPAN("\r")))
        line.len--;
    return span_trim(line);
}

static void take_section(struct reading *reading, struct span line)
{
    const char *end = memchr(line.at, ']', line.len);
    if (!end) {
        complain(reading, "a section's name ends with `]`");
        return;
    }
    size_t len = (size_t)(end - line.at) + 1;
    if (len < line.len) {
        complain(reading, "nothing may follow the `]` of a section");
        return;
    }
    struct span text = span_trim(span_of(line.at + 1, len - 2));
    reading->handler->section(reading->handler->context, text, reading->line);
}

/* Whether inih would cut the value at a `;` behind a space. */
static bool is_cut_short(struct span line)
{
    for (size_t i = 1; i < line.len; i++)
        if (line.at[i] == ';' && (line.at[i - 1] == ' ' || line.at[i - 1] == '\t'))
            return true;
    return false;
}

/* Whether the line is one for inih; all others are dealt with here. */
static bool is_setting(struct reading *reading, struct span line, size_t room)
{
    if (line.len == 0 || line.at[0] == '#' || line.at[0] == ';')
        return false;
    if (memchr(line.at, 0, line.len)) {
        complain(reading, "the line has a NUL byte: this is not a text file");
        return false;
    }
    if (line.at[0] == '[') {
        take_section(reading, line);
        return false;
    }
    if (line.len + sizeof("\n") > room) {
        struct config_origin origin = { CONFIG_BY_FILE, reading->path, reading->line };
        config_problem_error(reading->problems, origin, "the line has %zu bytes; %zu at most",
                             line.len, room - sizeof("\n"));
        return false;
    }
    if (line.at[0] == '=' || line.at[0] == ':') {
        complain(reading, "a name is missing; write `name = value`");
        return false;
    }
    if (reading->inline_comments && is_cut_short(line)) {
        complain(reading,
                 "`;` behind a space begins a comment here; put comments on their own line");
        return false;
    }
    return true;
}

static void settle(struct reading *reading)
{
    if (reading->expecting)
        complain(reading, "this is neither `[section]` nor `name = value`");
    reading->expecting = false;
}

/* inih's fgets: `size` bytes of room, a NUL at the end, NULL when all is read. */
static char *give_line(char *out, int size, void *stream)
{
    struct reading *reading = stream;
    settle(reading);
    while (reading->rest.len > 0) {
        struct span line = next_line(reading);
        if (!is_setting(reading, line, (size_t)size))
            continue;
        memcpy(out, line.at, line.len);
        memcpy(out + line.len, "\n", sizeof("\n"));
        reading->expecting = true;
        return out;
    }
    return NULL;
}

static int take_setting(void *context, const char *section, const char *name, const char *value)
{
    (void)section; /* always "": sections do not reach inih */
    struct reading *reading = context;
    reading->expecting = false;
    reading->handler->setting(reading->handler->context, span_text(name), span_text(value),
                              reading->line);
    return 1;
}

void config_file_parse(struct span text, const char *path,
                       const struct config_file_handler *handler, struct config_problems *problems)
{
    struct reading reading = { .rest = text,
                               .path = path,
                               .handler = handler,
                               .problems = problems,
                               .inline_comments = &ini_allow_inline_comments == NULL };
    if (&ini_use_stack && &ini_max_line && &ini_initial_alloc && &ini_allow_realloc) {
        ini_use_stack = false;
        ini_allow_realloc = false;
        ini_max_line = LINE_MAX_BYTES;
        ini_initial_alloc = LINE_MAX_BYTES;
    }
    if (&ini_allow_inline_comments)
        ini_allow_inline_comments = false;
    int rc = ini_parse_stream(give_line, &reading, take_setting, &reading);
    CHECK(rc != -2); /* its one allocation, at start-up */
    settle(&reading);
}

int config_file_load(const char *path, struct config_arena *arena, struct span *ret_text)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return -errno;
    char *bytes = config_arena_take(arena, FILE_MAX_BYTES + 1);
    errno = 0;
    size_t len = fread(bytes, 1, FILE_MAX_BYTES + 1, file);
    int rc = 0;
    if (ferror(file))
        rc = errno ? -errno : -EIO;
    else if (len > FILE_MAX_BYTES)
        rc = -EFBIG;
    fclose(file);
    if (rc == 0)
        *ret_text = span_of(bytes, len);
    return rc;
}
