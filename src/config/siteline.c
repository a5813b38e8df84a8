/* SPDX-License-Identifier: MIT */
#include "config/siteline.h"

struct config_siteline_reader config_siteline_begin(const struct config_sitefile *file,
                                                    struct config_arena *arena,
                                                    struct config_problems *problems)
{
    static const struct span mark = SPAN("\xef\xbb\xbf");
    const size_t skipped = span_starts(file->text, mark) ? mark.len : 0;
    return (struct config_siteline_reader){ .path = file->path,
                                            .rest = span_skip(file->text, skipped),
                                            .arena = arena,
                                            .problems = problems };
}

void config_siteline_refuse_at(const struct config_siteline_reader *r, unsigned line,
                               const char *why)
{
    const struct config_origin origin = { CONFIG_BY_FILE, r->path, line };
    if (r->problems->warning_count < CONFIG_SITEFILE_SHOWN)
        config_problem_warning(r->problems, origin, "%s", why);
    else
        r->problems->warning_count++;
}

void config_siteline_refuse(const struct config_siteline_reader *r, const char *why)
{
    config_siteline_refuse_at(r, r->line, why);
}

bool config_siteline_take(struct config_siteline_reader *r, struct span *ret_line)
{
    while (r->rest.len > 0) {
        struct span line = span_take(&r->rest, '\n');
        r->line++;
        if (span_ends(line, SPAN("\r")))
            line.len--;
        line = span_trim(line);
        if (line.len > CONFIG_SITEFILE_LINE_MAX)
            config_siteline_refuse(r, "the line has more than 2000 bytes");
        else if (line.len > 0 && line.at[0] != '#') {
            *ret_line = line;
            return true;
        }
    }
    return false;
}

unsigned config_siteline_split(struct span line, struct span words[CONFIG_SITELINE_WORDS])
{
    unsigned count = 0;
    while (count < CONFIG_SITELINE_WORDS) {
        const struct span word = span_take_word(&line);
        if (word.len == 0 || word.at[0] == '#')
            break;
        words[count++] = word;
    }
    return count;
}

bool config_siteline_names_host(struct span word)
{
    const char *colon = word.len > 0 && word.at[0] != '/' ? memchr(word.at, ':', word.len) : NULL;
    return colon && span_starts(span_skip(word, (size_t)(colon - word.at)), SPAN("://"));
}

const char *config_siteline_origin(const struct config_siteline_reader *r, unsigned line)
{
    return config_arena_print(r->arena, "%s:%u", r->path, line);
}

struct span config_siteline_keep(const struct config_siteline_reader *r, struct span text)
{
    return span_of(config_arena_copy(r->arena, text), text.len);
}
