/* SPDX-License-Identifier: MIT */
#include "site/readme.h"

#include "base/buf.h"
#include "os/file.h"
#include "site/lookup.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

static const struct site_folder_row *find_readme(const struct site_folder *folder)
{
    static const struct span names[] = { { "readme.md", 9 },
                                         { "readme.txt", 10 },
                                         { "readme", 6 } };
    for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++)
        for (size_t i = folder->directories; i < folder->count; i++)
            if (span_equal_nocase(site_folder_name(folder, &folder->rows[i]), names[n]))
                return &folder->rows[i];
    return NULL;
}

/* Opens a file of the folder. It may have become something else since it was listed. */
static int open_readme(const struct site *site, const struct site_listing_request *request,
                       struct span name, size_t *ret_size)
{
    char bytes[PATH_MAX];
    struct stat status;
    struct buf path = buf_over(bytes, sizeof(bytes) - 1);
    buf_add(&path, request->path);
    buf_add(&path, name);
    if (path.overflow || (request->quotes && !request->quotes(request->context, buf_span(&path))))
        return -1;
    bytes[path.len] = '\0';
    int fd = os_file_open_beneath(site->root_fd, bytes + 1);
    if (fd >= 0 && (os_file_stat(fd, &status) < 0 || !S_ISREG(status.st_mode))) {
        os_file_close(fd);
        return -1;
    }
    if (fd >= 0)
        *ret_size = (size_t)status.st_size;
    return fd;
}

/* Tabs and ends of lines are kept. All other controls are replaced. */
static void add_lines(struct site_text *text, struct span lines)
{
    while (lines.len > 0) {
        struct span line = span_take(&lines, '\n');
        if (span_ends(line, SPAN("\r")))
            line.len--;
        while (line.len > 0) {
            const size_t before = line.len;
            const struct span part = span_take(&line, '\t');
            site_text_add_html(text, part);
            if (part.len < before)
                site_text_add(text, SPAN("\t"));
        }
        site_text_add(text, SPAN("\n"));
    }
}

static void add_section(struct site_text *text, struct span name, struct span lines, bool cut)
{
    site_text_add(text, SPAN("<section>\n<h2><bdi>"));
    site_text_add_html(text, name);
    site_text_add(text, SPAN("</bdi></h2>\n<pre dir=\"auto\">\n"));
    add_lines(text, lines);
    site_text_add(text, SPAN("</pre>\n"));
    if (cut) {
        site_text_add(text, SPAN("<p>The file is longer. <a href=\""));
        site_text_add_segment(text, name);
        site_text_add(text, SPAN("\">Show all of it</a>.</p>\n"));
    }
    site_text_add(text, SPAN("</section>\n"));
}

void site_readme_add(struct site_text *text, const struct site *site,
                     const struct site_listing_request *request, const struct site_folder *folder)
{
    const struct site_folder_row *row = find_readme(folder);
    if (!row)
        return;
    const struct span name = site_folder_name(folder, row);
    size_t size = 0;
    const int fd = open_readme(site, request, name, &size);
    const bool cut = size > SITE_README_MAX;
    struct span lines = { NULL, cut ? SITE_README_MAX : size };
    char *bytes = fd >= 0 && size > 0 ? malloc(lines.len) : NULL;
    if (bytes && os_file_read_at(fd, bytes, lines.len, 0) == 0) {
        lines.at = bytes;
        while (cut && lines.len > 0 && bytes[lines.len - 1] != '\n')
            lines.len--;
        add_section(text, name, lines, cut);
    }
    free(bytes);
    os_file_close(fd);
}
