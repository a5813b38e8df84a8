/* SPDX-License-Identifier: MIT
 *
 * Reads case files line by line. One state says which part of a case the line is in.
 * A case with a table is a template, which is expanded once for each row.
 */
#include "cases.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdlib.h>

enum { COLUMNS_MAX = 8, ROWS_MAX = 128, LINES_MAX = 256 };

struct lines {
    struct span at[LINES_MAX];
    size_t count;
};

/* One `## ` section of the file. */
struct section {
    int line;
    struct span title;
    bool cites; /* the section names an RFC section */
    bool only_http1;
    bool has_request, has_response;
    struct lines request, response;
    struct span column[COLUMNS_MAX];
    size_t columns;
    struct span cell[ROWS_MAX][COLUMNS_MAX];
    size_t rows;
    bool ruled; /* the |---| line of the table has been read */
};

struct reader {
    struct cases *cases;
    const struct escape_tags *tags;
    const char *path;
    char *file;
    int line;
    struct section section;
    bool in_section;
    enum { IN_PROSE, IN_REQUEST, IN_RESPONSE } in;
    bool failed;
};

static void complain(struct reader *r, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void complain(struct reader *r, int line, const char *format, ...)
{
    if (r->failed)
        return;
    r->failed = true;
    (void)fprintf(stderr, "%s:%d: ", r->path, line);
    va_list args;
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fputc('\n', stderr);
}

static void *grow(void *array, size_t count, size_t size)
{
    void *more = realloc(array, (count + 1) * size);
    CHECK(more);
    return more;
}

/* Replaces `{column}` by the cells of the row. The caller frees the text. */
static char *fill_row(const struct section *s, size_t row, struct span line)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    CHECK(out);
    for (size_t i = 0; i < line.len;) {
        struct span rest = span_skip(line, i);
        size_t used = 0;
        for (size_t c = 0; rest.at[0] == '{' && c < s->columns && used == 0; c++) {
            struct span name = s->column[c];
            if (rest.len < name.len + 2 || rest.at[name.len + 1] != '}' ||
                !span_equal(span_of(rest.at + 1, name.len), name))
                continue;
            struct span cell = s->cell[row][c];
            (void)fwrite(cell.at, 1, cell.len, out);
            used = name.len + 2;
        }
        if (used == 0) {
            (void)fputc(rest.at[0], out);
            used = 1;
        }
        i += used;
    }
    CHECK(fclose(out) == 0);
    return text;
}

/* Expands the lines of the request block for one row. */
static void write_request(struct reader *r, size_t row, struct cases_case *c)
{
    const struct section *s = &r->section;
    FILE *out = open_memstream(&c->request, &c->request_len);
    CHECK(out);
    for (size_t i = 0; i < s->request.count; i++) {
        struct span line = s->request.at[i];
        bool last = i + 1 == s->request.count;
        if (last && span_equal(line, SPAN("@half-close"))) {
            c->end = CASES_END_HALF_CLOSE;
            continue;
        }
        if (last && span_equal(line, SPAN("@expire"))) {
            c->end = CASES_END_EXPIRE;
            continue;
        }
        if (line.len > 0 && line.at[0] == '@')
            complain(r, s->line, "an unknown or misplaced @ line");
        char *filled = fill_row(s, row, line);
        const char *wrong = escape_expand(out, span_text(filled), r->tags);
        free(filled);
        if (wrong)
            complain(r, s->line, "%s", wrong);
    }
    CHECK(fclose(out) == 0);
}

static void add_case(struct reader *r, size_t row)
{
    const struct section *s = &r->section;
    struct cases_case c = { .file = r->file, .line = s->line, .only_http1 = s->only_http1 };
    char *title = NULL;
    size_t title_len = 0;
    FILE *out = open_memstream(&title, &title_len);
    CHECK(out);
    (void)fwrite(s->title.at, 1, s->title.len, out);
    if (s->columns > 0)
        (void)fprintf(out, ": %.*s", (int)s->cell[row][0].len, s->cell[row][0].at);
    CHECK(fclose(out) == 0);
    c.title = title;
    write_request(r, row, &c);
    for (size_t i = 0; i < s->response.count; i++) {
        if (s->response.at[i].len == 0)
            continue;
        c.expect = grow(c.expect, c.expect_count, sizeof *c.expect);
        c.expect[c.expect_count++] = fill_row(s, row, s->response.at[i]);
    }
    struct cases *all = r->cases;
    all->at = grow(all->at, all->count, sizeof *all->at);
    all->at[all->count++] = c;
}

static void end_section(struct reader *r)
{
    const struct section *s = &r->section;
    if (!r->in_section || r->failed)
        return;
    r->in_section = false;
    if (!s->cites)
        complain(r, s->line, "the case names no RFC section");
    else if (!s->has_request || !s->has_response)
        complain(r, s->line, "a case needs a request and a response block");
    else if (s->columns > 0 && s->rows == 0)
        complain(r, s->line, "a table without rows");
    else if (s->response.count == 0 ||
             !span_starts(s->response.at[s->response.count - 1], SPAN("then ")))
        complain(r, s->line, "the last line of a response block says `then ...`");
    else if (s->columns == 0)
        add_case(r, 0);
    for (size_t row = 0; row < s->rows && !r->failed; row++)
        add_case(r, row);
}

/* One line of a table: its head, its rule, or a row. */
static void read_row(struct reader *r, struct span line)
{
    struct section *s = &r->section;
    struct span cell[COLUMNS_MAX];
    size_t count = 0;
    for (line = span_skip(line, 1); line.len > 0 && count < COLUMNS_MAX; count++) {
        const char *bar = memchr(line.at, '|', line.len);
        if (!bar) {
            complain(r, r->line, "a table line ends with |");
            return;
        }
        size_t len = (size_t)(bar - line.at);
        cell[count] = span_trim(span_first(line, len));
        line = span_skip(line, len + 1);
        struct span *c = &cell[count];
        if (c->len >= 2 && c->at[0] == '`' && c->at[c->len - 1] == '`')
            *c = span_of(c->at + 1, c->len - 2);
    }
    if (s->columns == 0) {
        memcpy(s->column, cell, sizeof cell);
        s->columns = count;
    } else if (count != s->columns || s->rows == ROWS_MAX) {
        complain(r, r->line, "a row has as many cells as the table's head");
    } else if (!s->ruled) {
        s->ruled = true;
    } else {
        memcpy(s->cell[s->rows++], cell, sizeof cell);
    }
}

static void keep_line(struct reader *r, struct lines *lines, struct span line)
{
    if (lines->count == LINES_MAX)
        complain(r, r->line, "too many lines in a block");
    else if (line.len > 0 && (line.at[line.len - 1] == ' ' || line.at[line.len - 1] == '\t'))
        complain(r, r->line, "white space at the end of a line is invisible: write \\x20");
    else
        lines->at[lines->count++] = line;
}

static void read_prose(struct reader *r, struct span line)
{
    struct section *s = &r->section;
    if (span_starts(line, SPAN("## "))) {
        end_section(r);
        r->in_section = true;
        *s = (struct section){ .line = r->line, .title = span_skip(line, 3) };
    } else if (!r->in_section) {
        return;
    } else if (span_equal(line, SPAN("```request")) && !s->has_request) {
        r->in = IN_REQUEST;
        s->has_request = true;
    } else if (span_equal(line, SPAN("```response")) && !s->has_response) {
        r->in = IN_RESPONSE;
        s->has_response = true;
    } else if (span_starts(line, SPAN("```"))) {
        complain(r, r->line, "an unknown block, or a second one of its kind");
    } else if (line.len > 0 && line.at[0] == '|') {
        read_row(r, line);
    } else if (span_starts(line, SPAN("HTTP/1.1 only: "))) {
        s->only_http1 = true;
    } else if (span_starts(line, SPAN("RFC ")) &&
               memmem(line.at, line.len, " section ", strlen(" section "))) {
        s->cites = true;
    }
}

static void read_text(struct reader *r, struct span text)
{
    while (text.len > 0 && !r->failed) {
        const char *end = memchr(text.at, '\n', text.len);
        size_t len = end ? (size_t)(end - text.at) : text.len;
        struct span line = span_first(text, len);
        text = span_skip(text, end ? len + 1 : len);
        r->line++;
        if (r->in == IN_PROSE)
            read_prose(r, line);
        else if (span_equal(line, SPAN("```")))
            r->in = IN_PROSE;
        else
            keep_line(r, r->in == IN_REQUEST ? &r->section.request : &r->section.response, line);
    }
    if (r->in != IN_PROSE)
        complain(r, r->line, "a block is not closed");
    end_section(r);
}

static char *read_file(const char *path, size_t *ret_len)
{
    FILE *in = fopen(path, "re");
    if (!in)
        return NULL;
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    CHECK(out);
    for (int c = fgetc(in); c != EOF; c = fgetc(in))
        (void)fputc(c, out);
    CHECK(fclose(out) == 0);
    (void)fclose(in);
    *ret_len = len;
    return text;
}

static int is_case_file(const struct dirent *entry)
{
    return span_ends(span_text(entry->d_name), SPAN(".md"));
}

static int read_case_file(struct cases *cases, const char *folder, const char *name,
                          const struct escape_tags *tags)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    struct reader *r = calloc(1, sizeof *r);
    CHECK(r);
    r->cases = cases;
    r->tags = tags;
    r->path = path;
    r->file = strdup(name);
    CHECK(r->file);
    cases->files = grow(cases->files, cases->file_count, sizeof *cases->files);
    cases->files[cases->file_count++] = r->file;
    size_t len = 0;
    char *text = read_file(path, &len);
    if (text)
        read_text(r, span_of(text, len));
    else
        complain(r, 0, "cannot be read");
    int result = r->failed ? -1 : 0;
    free(text);
    free(r);
    return result;
}

int cases_read(struct cases *ret_cases, const char *folder, const struct escape_tags *tags)
{
    struct dirent **names = NULL;
    int count = scandir(folder, &names, is_case_file, alphasort);
    if (count <= 0) {
        (void)fprintf(stderr, "%s: no case files\n", folder);
        free(names);
        return -1;
    }
    struct cases cases = { 0 };
    int result = 0;
    for (int i = 0; i < count; i++) {
        if (result == 0)
            result = read_case_file(&cases, folder, names[i]->d_name, tags);
        free(names[i]);
    }
    free(names);
    if (result == 0)
        *ret_cases = cases;
    else
        cases_done(&cases);
    return result;
}

void cases_done(struct cases *cases)
{
    for (size_t i = 0; i < cases->count; i++) {
        struct cases_case *c = &cases->at[i];
        for (size_t k = 0; k < c->expect_count; k++)
            free(c->expect[k]);
        free((void *)c->expect);
        free(c->request);
        free(c->title);
    }
    for (size_t i = 0; i < cases->file_count; i++)
        free(cases->files[i]);
    free((void *)cases->files);
    free(cases->at);
    *cases = (struct cases){ 0 };
}
