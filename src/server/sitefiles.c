/* SPDX-License-Identifier: MIT */
#include "server/sitefiles.h"

#include "config/sitefile.h"
#include "log/error.h"
#include "os/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const names[] = { "_headers", "_redirects" };
enum { FILES = sizeof(names) / sizeof(names[0]) };

static void warn_of_file(struct server_sitefiles *files, const char *path, const char *why)
{
    const struct config_origin origin = { CONFIG_BY_FILE, path, 0 };
    config_problem_warning(&files->lines, origin, "%s; none of its lines is used", why);
}

/* Reads an open file into the arena. 0 or -errno. */
static int read_open(struct server_sitefiles *files, int fd, struct span *ret_text)
{
    struct stat status;
    int rc = os_file_stat(fd, &status);
    if (rc < 0)
        return rc;
    if (!S_ISREG(status.st_mode))
        return S_ISDIR(status.st_mode) ? -EISDIR : -EINVAL;
    if (status.st_size > CONFIG_SITEFILE_BYTES_MAX)
        return -EFBIG;
    const size_t len = (size_t)status.st_size;
    char *text = config_arena_take(&files->arena, len + 1);
    rc = os_file_read_at(fd, text, len, 0);
    if (rc == 0)
        *ret_text = span_of(text, len);
    return rc;
}

/* Reads a file, if it is there. A file that shrinks meanwhile changes, so it is read again. */
static struct span read_beneath(struct server_sitefiles *files, int root_fd, const char *name,
                                const char *path)
{
    struct span text = SPAN("");
    const int fd = os_file_open_beneath(root_fd, name);
    const int rc = fd < 0 ? fd : read_open(files, fd, &text);
    if (fd >= 0)
        os_file_close(fd);
    if (rc == -EFBIG)
        warn_of_file(files, path, "the file has more than 256 KiB");
    else if (rc == -EXDEV)
        warn_of_file(files, path, "the file is a link that leaves the root of the site");
    else if (rc < 0 && rc != -ENOENT)
        warn_of_file(files, path, strerror(-rc));
    return text;
}

/* Reads the files of one site. */
static int read_site(struct server_sitefiles *files, struct config_site *site)
{
    struct config_sitefile each[FILES];
    for (size_t i = 0; i < FILES; i++) {
        each[i] = (struct config_sitefile){
            config_arena_print(&files->arena, "%s/%s", site->root, names[i]), SPAN("")
        };
        int rc = server_watch_add(&files->watch, each[i].path);
        if (rc < 0)
            return rc;
    }
    const int root_fd = os_file_open_directory(site->root);
    for (size_t i = 0; i < FILES && root_fd >= 0; i++)
        each[i].text = read_beneath(files, root_fd, names[i], each[i].path);
    if (root_fd >= 0)
        os_file_close(root_fd);
    site->rules = config_sitefile_rules(site, &each[0], &each[1], &files->arena, &files->lines);
    return 0;
}

int server_sitefiles_open(struct server_sitefiles *files, const struct config **config,
                          char why[SERVER_SITEFILES_WHY_MAX])
{
    const struct config *from = *config;
    bool wanted = false;
    *files = (struct server_sitefiles){ .watch = { .quick = true } };
    for (unsigned i = 0; i < from->site_count; i++)
        wanted = wanted || from->sites[i].site_rules;
    if (!wanted)
        return 0;
    files->lines.arena = &files->arena;
    files->copy = *from;
    files->copy.sites = files->sites = calloc(from->site_count, sizeof(*files->sites));
    int rc = files->sites ? 0 : -ENOMEM;
    if (rc == 0)
        memcpy(files->sites, from->sites, from->site_count * sizeof(*files->sites));
    for (unsigned i = 0; i < from->site_count && rc == 0; i++)
        if (files->sites[i].site_rules)
            rc = read_site(files, &files->sites[i]);
    if (rc == 0)
        *config = &files->copy;
    else
        (void)snprintf(why, SERVER_SITEFILES_WHY_MAX,
                       "There is not enough memory for the rules of the sites.");
    return rc;
}

void server_sitefiles_close(struct server_sitefiles *files)
{
    config_arena_done(&files->arena);
    free(files->sites);
    server_watch_close(&files->watch);
    *files = (struct server_sitefiles){ .sites = NULL };
}

void server_sitefiles_log(const struct server_sitefiles *files)
{
    unsigned shown = 0;
    char origin[CONFIG_ORIGIN_MAX];
    for (const struct config_problem *line = files->lines.first; line; line = line->next) {
        config_problem_format_origin(line->origin, origin);
        log_error(LOG_WARNING, "%s: %s", origin, line->text);
        shown++;
    }
    if (files->lines.warning_count > shown)
        log_error(LOG_WARNING, "and %u more lines of rules of sites that cannot be used",
                  files->lines.warning_count - shown);
}
