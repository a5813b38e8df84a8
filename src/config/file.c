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

/* A space that an editor or a web page made, and that looks like any other. */
static bool has_odd_space(struct span text)
{
    const struct span odd = SPAN("\xc2\xa0");
    return span_starts(text, odd) || span_ends(text, odd);
}

static void report_odd_space(const struct file_line *line, struct config_problems *problems)
{
    config_problem_error(problems, origin_of(line),
                         "the line has a no-break space (U+00A0); write a plain space");
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

/* Whether the line is a heading without its brackets, and not the beginning of a block of nginx.
 * The heading holds all the same. */
static bool take_bare_heading(const struct file_line *line,
                              const struct config_file_handler *handler,
                              struct config_problems *problems)
{
    struct span text = line->text;
    if (span_ends(text, SPAN(":")))
        text = span_trim(span_first(text, text.len - 1));
    struct span rest = text;
    const struct span word = span_take_word(&rest);
    const bool has_name = span_trim(rest).len > 0;
    const bool fits = span_equal(word, SPAN("server"))
                          ? !has_name
                          : has_name &&
                                (span_equal(word, SPAN("site")) || span_equal(word, SPAN("path")));
    if (!fits || memchr(text.at, '=', text.len) || memchr(text.at, '{', text.len))
        return false;
    config_problem_error(problems, origin_of(line),
                         "the heading of a section stands in brackets; write [%.*s]",
                         config_problem_quote_len(text), text.at);
    handler->section(handler->context, text, line->number);
    return true;
}

/* The name ends at the first `=` or `:`; the value may hold more of them. */
static void parse_setting(const struct file_line *line, const struct config_file_handler *handler,
                          struct config_problems *problems)
{
    size_t len = 0;
    if (take_bare_heading(line, handler, problems))
        return;
    while (len < line->text.len && line->text.at[len] != '=' && line->text.at[len] != ':')
        len++;
    if (len == line->text.len) {
        struct config_reason reason = { "this is neither `[section]` nor `name = value`" };
        (void)config_hint_explain(line->text, &reason);
        config_problem_error(problems, origin_of(line), "%s", reason.text);
        return;
    }
    if (len == 0) {
        struct config_reason reason = { "a name is missing; write `name = value`" };
        (void)config_hint_explain(line->text, &reason);
        config_problem_error(problems, origin_of(line), "%s", reason.text);
        return;
    }
    struct span name = span_trim(span_first(line->text, len));
    const struct span value = span_trim(span_skip(line->text, len + 1));
    if (report_foreign(line, name, problems))
        return;
    if (has_odd_space(name) || has_odd_space(value))
        report_odd_space(line, problems);
    else
        handler->setting(handler->context, name, value, line->number);
}

static void parse_line(const struct file_line *line, const struct config_file_handler *handler,
                       struct config_problems *problems)
{
    struct span text = line->text;
    if (text.len == 0 || text.at[0] == '#' || text.at[0] == ';')
        return;
    if (text.len > LINE_MAX_BYTES)
        config_problem_error(problems, origin_of(line), "the line has %zu bytes; %d at most",
                             text.len, LINE_MAX_BYTES);
    else if (has_odd_space(text))
        report_odd_space(line, problems);
    else if (memchr(text.at, '\r', text.len))
        config_problem_error(problems, origin_of(line),
                             "the line has a carriage return in it; end each line with a line "
                             "feed");
    else if (span_starts(text, SPAN("//")) || span_starts(text, SPAN("/*")))
        config_problem_error(problems, origin_of(line), "a comment begins with # or ;");
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
    if (span_starts(text, SPAN("\xff\xfe")) || span_starts(text, SPAN("\xfe\xff"))) {
        config_problem_error(problems, origin_of(&line), "the file is UTF-16; save it as UTF-8");
        return;
    }
    while (text.len > 0) {
        const char *end = memchr(text.at, '\n', text.len);
        size_t len = end ? (size_t)(end - text.at) : text.len;
        line.number++;
        line.text = span_trim(span_first(text, len));
        if (span_ends(line.text, SPAN("\r")))
            line.text = span_trim(span_first(line.text, line.text.len - 1));
        if (memchr(line.text.at, 0, line.text.len)) {
            config_problem_error(problems, origin_of(&line),
                                 "the line has a NUL byte: this is not a text file");
            return;
        }
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
        return error == EFBIG ? "it has more than 1 MiB" : strerror(error);
    *ret_text = span_of(bytes, len);
    return NULL;
}
