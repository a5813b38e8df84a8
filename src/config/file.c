/* SPDX-License-Identifier: MIT */
#include "config/file.h"

#include "config/hint.h"
#include "config/setting.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { FILE_MAX_BYTES = 1024 * 1024, LINE_MAX_BYTES = 8 * 1024 };

struct file_line {
    const char *path;
    unsigned number;
    struct span text; /* trimmed */
};

static struct config_origin origin_of(const struct file_line *line)
{
    return (struct config_origin){ CONFIG_BY_FILE, line->path, line->number };
}

static void parse_section(const struct file_line *line, const struct config_file_handler *handler,
                          struct config_problems *problems)
{
    struct span name = span_skip(line->text, 1);
    const char *end = memchr(name.at, ']', name.len);
    if (!end)
        config_problem_error(problems, origin_of(line), "a section's name ends with `]`");
    else if ((size_t)(end - name.at) + 1 < name.len)
        config_problem_error(problems, origin_of(line), "nothing may follow the `]` of a section");
    /* The section begins here all the same: the settings below do not belong to the one before. */
    if (end)
        name.len = (size_t)(end - name.at);
    handler->section(handler->context, span_trim(name), line->number);
}

/* Reports a line that is written as for another server, and has `=` or `:` somewhere behind its
 * first word. Returns whether it is one. */
static bool report_foreign(const struct file_line *line, struct span name,
                           struct config_problems *problems)
{
    struct config_reason reason;
    if (config_setting_find_anywhere(name) || !config_hint_explain(line->text, &reason))
        return false;
    config_problem_error(problems, origin_of(line), "%s", reason.text);
    return true;
}

/* The name ends at the first `=` or `:`; the value may hold more of them. */
static void parse_setting(const struct file_line *line, const struct config_file_handler *handler,
                          struct config_problems *problems)
{
    size_t len = 0;
    while (len < line->text.len && line->text.at[len] != '=' && line->text.at[len] != ':')
        len++;
    if (len == line->text.len) {
        struct config_reason reason = { "this is neither `[section]` nor `name = value`" };
        (void)config_hint_explain(line->text, &reason);
        config_problem_error(problems, origin_of(line), "%s", reason.text);
        return;
    }
    if (len == 0) {
        config_problem_error(problems, origin_of(line), "a name is missing; write `name = value`");
        return;
    }
    struct span name = span_trim(span_first(line->text, len));
    if (report_foreign(line, name, problems))
        return;
    handler->setting(handler->context, name, span_trim(span_skip(line->text, len + 1)),
                     line->number);
}

static void parse_line(const struct file_line *line, const struct config_file_handler *handler,
                       struct config_problems *problems)
{
    struct span text = line->text;
    if (text.len == 0 || text.at[0] == '#' || text.at[0] == ';')
        return;
    if (memchr(text.at, 0, text.len))
        config_problem_error(problems, origin_of(line),
                             "the line has a NUL byte: this is not a text file");
    else if (text.len > LINE_MAX_BYTES)
        config_problem_error(problems, origin_of(line), "the line has %zu bytes; %d at most",
                             text.len, LINE_MAX_BYTES);
    else if (text.at[0] == '[')
        parse_section(line, handler, problems);
    else
        parse_setting(line, handler, problems);
}

void config_file_parse(struct span text, const char *path,
                       const struct config_file_handler *handler, struct config_problems *problems)
{
    if (span_starts(text, SPAN("\xef\xbb\xbf"))) /* the byte order mark of other systems */
        text = span_skip(text, 3);
    struct file_line line = { .path = path };
    while (text.len > 0) {
        const char *end = memchr(text.at, '\n', text.len);
        size_t len = end ? (size_t)(end - text.at) : text.len;
        line.number++;
        line.text = span_trim(span_first(text, len));
        if (span_ends(line.text, SPAN("\r")))
            line.text = span_trim(span_first(line.text, line.text.len - 1));
        parse_line(&line, handler, problems);
        text = span_skip(text, end ? len + 1 : len);
    }
}

static bool can_be_read_again(const char *path)
{
    struct stat info;
    return stat(path, &info) < 0 || S_ISREG(info.st_mode);
}

const char *config_file_load(const char *path, bool again, struct config_arena *arena,
                             struct span *ret_text)
{
    if (again && !can_be_read_again(path))
        return "it is no regular file, and is read again now; name a regular file";
    FILE *file = fopen(path, "re");
    if (!file)
        return strerror(errno);
    char *bytes = config_arena_take(arena, FILE_MAX_BYTES + 1);
    errno = 0;
    size_t len = fread(bytes, 1, FILE_MAX_BYTES + 1, file);
    int error = 0;
    if (ferror(file))
        error = errno ? errno : EIO;
    else if (len > FILE_MAX_BYTES)
        error = EFBIG;
    fclose(file);
    if (error != 0)
        return strerror(error);
    *ret_text = span_of(bytes, len);
    return NULL;
}
