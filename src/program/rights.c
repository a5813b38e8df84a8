/* SPDX-License-Identifier: MIT */
#include "program/rights.h"

#include "os/file.h"
#include "os/process.h"
#include "server/resources.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PART_MAX = 16 };

/* A folder of a site. This process opens it before the change of user, as a worker does: the path
 * to it may be closed to that user. */
struct site_folder {
    const struct config_store *store;
    unsigned site;
    enum config_setting_place place;
    unsigned index; /* of the path, for a setting of paths */
    const char *path;
    int fd;
    bool lists; /* the workers read its names, too */
};

/* Writes the name of something in the folder that the workers read: 0 is the folder itself, and
 * others are its error pages. False: there is no such number. */
static bool name_part(const struct site_folder *folder, unsigned number, char name[PART_MAX])
{
    enum { STATUS_FIRST = 400, STATUS_LAST = 599 };
    unsigned status = STATUS_FIRST - 1 + number;
    if (number == 0)
        (void)snprintf(name, PART_MAX, ".");
    else
        (void)snprintf(name, PART_MAX, "%u.html", status);
    return number == 0 || (folder->place != SETTING_root && status <= STATUS_LAST);
}

/* The permissions that every user must have. */
static mode_t needed_by(const struct site_folder *folder, unsigned number)
{
    return number > 0 ? S_IROTH : folder->lists ? S_IXOTH | S_IROTH : S_IXOTH;
}

/* Whether every user has the right that the workers need. Then no lookup of the user's groups is
 * necessary, which may open sockets. */
static bool is_open_to_all(const struct site_folder *folder)
{
    char name[PART_MAX];
    struct stat info;
    for (unsigned i = 0; name_part(folder, i, name); i++)
        if (fstatat(folder->fd, name, &info, 0) == 0 &&
            (info.st_mode & needed_by(folder, i)) != needed_by(folder, i))
            return false;
    return true;
}

/* Reports the first part of a folder that the effective user cannot read. Returns the number of
 * errors. */
static unsigned check_folder(const struct site_folder *folder, const char *user)
{
    char name[PART_MAX], origin[CONFIG_ORIGIN_MAX];
    for (unsigned i = 0; name_part(folder, i, name); i++) {
        const bool good = i == 0 ? os_file_can_enter(folder->fd, folder->lists)
                                 : faccessat(folder->fd, name, R_OK, AT_EACCESS) == 0;
        if (good || errno == ENOENT)
            continue;
        config_read_site_origin(folder->store, folder->site, folder->place, folder->index, origin);
        fprintf(stderr,
                "%s: error: user %s cannot read %s%s%s; give this user the right, or choose "
                "another user with --user\n",
                origin, user, folder->path, i > 0 ? "/" : "", i > 0 ? name : "");
        return 1;
    }
    return 0;
}

/* In a process of its own, because the change of user is permanent. */
static unsigned check_as_user(const struct site_folder *folders, size_t count, const char *setting)
{
    const char *user = server_resources_user(setting);
    fflush(NULL);
    pid_t pid = user ? fork() : -1;
    if (pid == 0) {
        unsigned errors = 0;
        if (server_resources_become(setting) == 0)
            for (size_t i = 0; i < count; i++)
                errors += check_folder(&folders[i], user);
        _exit(errors < UINT8_MAX ? (int)errors : UINT8_MAX);
    }
    int status = 0;
    if (pid > 0 && waitpid(pid, &status, 0) < 0)
        return 0;
    return WIFEXITED(status) ? (unsigned)WEXITSTATUS(status) : 0;
}

/* Opens the folder and adds it to the array, unless every user may read it. */
static size_t add_folder(struct site_folder *folders, size_t count, struct site_folder folder)
{
    if (folder.path)
        folder.fd = os_file_open_directory(folder.path);
    if (!folder.path || folder.fd < 0)
        return count;
    if (is_open_to_all(&folder)) {
        os_file_close(folder.fd);
        return count;
    }
    folders[count] = folder;
    return count + 1;
}

static size_t add_site(struct site_folder *folders, size_t count, const struct config_store *store,
                       unsigned number)
{
    const struct config_site *site = &config_read_result(store)->sites[number];
    struct site_folder folder = { store, number, SETTING_root, 0, site->root, -1, site->listing };
    count = add_folder(folders, count, folder);
    folder.lists = false;
    folder.place = SETTING_error_pages;
    folder.path = site->error_pages;
    count = add_folder(folders, count, folder);
    folder.place = SETTING_path_error_pages;
    for (; folder.index < site->path_count; folder.index++) {
        folder.path = site->paths[folder.index].path_error_pages;
        count = add_folder(folders, count, folder);
    }
    return count;
}

unsigned program_rights_check(const struct config_store *store)
{
    const struct config *config = config_read_result(store);
    size_t count = 0;
    for (unsigned i = 0; i < config->site_count; i++)
        count += 2 + (size_t)config->sites[i].path_count;
    struct site_folder *folders = calloc(count, sizeof(*folders));
    count = 0;
    unsigned errors = 0;
    for (unsigned i = 0; folders && i < config->site_count; i++)
        count = add_site(folders, count, store, i);
    if (count > 0 && geteuid() == 0) {
        errors = check_as_user(folders, count, config->user);
    } else if (count > 0) {
        char user[OS_PROCESS_USER_MAX];
        os_process_user_name(user);
        for (size_t i = 0; i < count; i++)
            errors += check_folder(&folders[i], user);
    }
    for (size_t i = 0; i < count; i++)
        os_file_close(folders[i].fd);
    free(folders);
    return errors;
}
