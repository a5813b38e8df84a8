/* SPDX-License-Identifier: MIT */
#include "server/logs.h"

#include "base/buf.h"
#include "config/read.h"
#include "log/error.h"
#include "log/layout.h"
#include "os/file.h"
#include "os/process.h"
#include "server/resources.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum log_level log_level_of(const char *name)
{
    return strcmp(name, "debug") == 0     ? LOG_DEBUG
           : strcmp(name, "warning") == 0 ? LOG_WARNING
           : strcmp(name, "error") == 0   ? LOG_ERROR
                                          : LOG_INFO;
}

static struct log_file_opening opening_for(const struct config *config)
{
    struct os_process_user user;
    const char *name = server_resources_user(config->user);
    bool other = name && os_process_find_user(name, &user) == 0;
    return (struct log_file_opening){ .user = other ? user.uid : LOG_FILE_NO_USER };
}

/* Makes the layout of the lines, unless they are plain `combined`. 0 or -ENOMEM. */
static int make_layout(struct server_logs *logs, const struct config *config)
{
    const struct log_layout_request request = { .format = span_text(config->log_format),
                                                .fields = config->log_fields,
                                                .sample = (unsigned)config->log_sample };
    char why[LOG_LAYOUT_WHY_MAX];
    if (log_layout_is_combined(&request) &&
        log_message_kind(config->access_log) == LOG_MESSAGE_NONE) /* datagrams need a layout */
        return 0;
    logs->layout = malloc(sizeof(*logs->layout));
    if (!logs->layout)
        return -ENOMEM;
    CHECK(log_layout_make(logs->layout, &request, why)); /* config/log.c has checked the format */
    return 0;
}

#define CURE "; give this user the right to write there, or choose another file with "

/* A sentence of log/file.h names its own cure. The words of an error number name none. */
static const char *cure_of(const struct log_file_opening *opening, int error, const char *cure)
{
    return strcmp(opening->why, strerror(-error)) == 0 ? cure : "";
}

int server_logs_judge(const struct config *config, const char *path, char *why, size_t size)
{
    struct log_file_opening opening = opening_for(config);
    const int rc = log_file_judge(path, &opening);
    if (rc < 0)
        snprintf(why, size, "%s", opening.why);
    return rc;
}

/* Standard error that systemd has connected to its journal is a stream that all processes share.
 * Entries of the journal are better: each process has its own socket, and each line a severity. */
static int open_error(struct server_logs *logs, const char *setting,
                      struct log_file_opening *opening)
{
    logs->error_log = setting;
    if (!log_file_is_named(setting) && log_message_is_journal(STDERR_FILENO)) {
        int fd = log_error_open("journal", NULL);
        logs->error_log = fd >= 0 ? "journal" : setting;
        if (fd >= 0)
            return fd;
    }
    return log_error_open(setting, opening);
}

int server_logs_open(struct server_logs *logs, const struct config_store *store, char *why,
                     size_t size)
{
    const struct config *config = config_read_result(store);
    struct log_file_opening opening = opening_for(config);
    char label[CONFIG_ORIGIN_MAX];
    logs->config = config;
    logs->error_fd = open_error(logs, config->error_log, &opening);
    if (logs->error_fd < 0) {
        config_read_label(store, SETTING_error_log, 0, label);
        snprintf(why, size, "%scannot open the error log %s: %s%s", label, config->error_log,
                 opening.why, cure_of(&opening, logs->error_fd, CURE "--error-log"));
        return logs->error_fd;
    }
    int rc = make_layout(logs, config);
    if (rc == 0)
        rc = log_access_open(&logs->access, config->access_log, logs->layout, &opening);
    if (rc < 0) {
        config_read_label(store, SETTING_access_log, 0, label);
        snprintf(why, size, "%scannot open the access log %s: %s%s", label, config->access_log,
                 opening.why[0] ? opening.why : strerror(-rc),
                 cure_of(&opening, rc, CURE "--access-log"));
    }
    return rc;
}

void server_logs_use_error(struct server_logs *logs)
{
    if (logs->error_fd >= 0)
        log_error_use(logs->error_fd, logs->error_log, log_level_of(logs->config->log_level));
    logs->error_fd = -1;
}

static bool is_socket(const char *setting)
{
    return setting && log_message_kind(setting) != LOG_MESSAGE_NONE;
}

/* The log goes to the socket `fd` now, or `rc` says why not. Takes `fd`, or the -errno of opening.
 */
static void end_own(const char *which, int fd, int rc)
{
    if (rc < 0)
        log_error(LOG_WARNING,
                  "process %d shares the socket of the %s log with others, because it cannot open "
                  "one of its own: %s; SIGUSR1 tries again",
                  (int)getpid(), which, strerror(-rc));
    os_file_close(fd);
}

void server_logs_own_error(void)
{
    if (!is_socket(log_error_path()))
        return;
    int fd = log_message_open(log_error_path());
    end_own("error", fd, fd >= 0 ? log_error_replace(fd) : fd);
}

void server_logs_own(struct server_logs *logs)
{
    server_logs_own_error();
    if (!is_socket(logs->config->access_log))
        return;
    int fd = log_message_open(logs->config->access_log);
    end_own("access", fd, fd >= 0 ? log_access_replace(&logs->access, fd) : fd);
}

void server_logs_drop_error(struct server_logs *logs)
{
    log_error_drop(logs->error_fd);
    logs->error_fd = -1;
}

void server_logs_close(struct server_logs *logs)
{
    server_logs_drop_error(logs);
    log_access_close(&logs->access);
    free(logs->layout);
    logs->layout = NULL;
}

/* ---- rotation ---- */

/* The descriptor of the path, which is opened if this rotation has not opened it yet; -1: it cannot
 * be opened. */
static int open_again(struct server_logs_rotation *rotation, const struct config *config,
                      const char *path, const char *which)
{
    for (unsigned i = 0; i < rotation->count; i++)
        if (strcmp(rotation->file[i].path, path) == 0)
            return rotation->file[i].fd;
    struct log_file_opening opening = opening_for(config);
    int fd = log_file_open(path, &opening);
    if (fd < 0)
        log_error_twice("cannot open the %s log %s again: %s; until the next SIGUSR1 its lines go "
                        "to the old file",
                        which, path, opening.why);
    CHECK(rotation->count < SERVER_LOGS_FILES);
    rotation->failed += fd < 0;
    rotation->file[rotation->count].path = path;
    rotation->file[rotation->count++].fd = fd < 0 ? -1 : fd;
    return fd < 0 ? -1 : fd;
}

/* The descriptors are in this process: only a lack of kernel memory can make a replacement fail. */
static void report_failure(struct server_logs_rotation *rotation, const char *which, int rc)
{
    log_error_twice("cannot continue the %s log in its new file: %s", which, strerror(-rc));
    rotation->failed++;
}

static void add_item(struct server_logs_message *message, char label, int fd, const char *setting)
{
    if (fd < 0)
        return;
    message->setting[message->count] = setting;
    message->item[message->count++] = (struct ipc_mailbox_item){ label, fd };
}

struct server_logs_message server_logs_rotate_own(const struct server_logs *logs,
                                                  struct server_logs_rotation *rotation)
{
    struct server_logs_message message = { 0 };
    if (!log_error_path())
        return message;
    int fd = open_again(rotation, logs->config, log_error_path(), "error");
    int rc = fd >= 0 ? log_error_replace(fd) : 0;
    if (rc < 0)
        report_failure(rotation, "error", rc);
    add_item(&message, LOG_FILE_ERROR, fd, log_error_path());
    return message;
}

struct server_logs_message server_logs_rotate(struct server_logs *logs,
                                              struct server_logs_rotation *rotation)
{
    struct server_logs_message message = { 0 };
    const struct config *config = logs->config;
    if (log_file_is_named(config->access_log)) {
        int fd = open_again(rotation, config, config->access_log, "access");
        int rc = fd >= 0 ? log_access_replace(&logs->access, fd) : 0;
        if (rc < 0)
            report_failure(rotation, "access", rc);
        add_item(&message, LOG_FILE_ACCESS, logs->access.fd, config->access_log);
    }
    if (log_file_is_named(logs->error_log)) {
        int fd = open_again(rotation, config, logs->error_log, "error");
        int copy = fd >= 0 && logs->error_fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
        if (copy >= 0) {
            log_error_drop(logs->error_fd);
            logs->error_fd = copy;
        }
        add_item(&message, LOG_FILE_ERROR, fd, logs->error_log);
    }
    return message;
}

void server_logs_pass(const struct ipc_mailbox *box, pid_t pid,
                      const struct server_logs_message *message,
                      struct server_logs_rotation *rotation)
{
    if (pid <= 0 || message->count == 0)
        return;
    int own[IPC_MAILBOX_MAX];
    struct ipc_mailbox_item item[IPC_MAILBOX_MAX];
    for (unsigned i = 0; i < message->count; i++) {
        own[i] = is_socket(message->setting[i]) ? log_message_open(message->setting[i]) : -1;
        item[i] = message->item[i];
        item[i].fd = own[i] >= 0 ? own[i] : item[i].fd;
    }
    int rc = ipc_mailbox_put(box, item, message->count);
    for (unsigned i = 0; i < message->count; i++)
        os_file_close(own[i]);
    if (rc == 0) {
        (void)kill(pid, SIGUSR1); /* an error means that it is gone already */
        return;
    }
    log_error_twice("cannot pass the new log files to process %d: %s; it writes to the old ones",
                    (int)pid, strerror(-rc));
    rotation->failed++;
}

void server_logs_rotation_report(const struct server_logs_rotation *rotation)
{
    char paths[LOG_ERROR_LINE_MAX];
    struct buf text = buf_over(paths, sizeof(paths));
    for (unsigned i = 0; i < rotation->count; i++) {
        if (rotation->file[i].fd < 0)
            continue;
        buf_add(&text, text.len > 0 ? SPAN(", ") : SPAN(""));
        buf_add(&text, span_text(rotation->file[i].path));
    }
    if (rotation->count == 0)
        log_error(LOG_INFO, "SIGUSR1 has no effect: no log is a file");
    else if (text.len > 0)
        log_error(LOG_INFO, "SIGUSR1 opened the logs again: %.*s", (int)text.len, text.at);
}

void server_logs_rotation_end(struct server_logs_rotation *rotation)
{
    for (unsigned i = 0; i < rotation->count; i++)
        os_file_close(rotation->file[i].fd);
}
