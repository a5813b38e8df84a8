/* SPDX-License-Identifier: MIT */
#include "model/model.h"

#include "ipc/mailbox.h"
#include "log/access.h"
#include "log/error.h"
#include "model/uring.h"
#include "os/file.h"
#include "os/process.h"
#include "session/thread.h"

#include <errno.h>
#include <stdio.h>

#define MODEL(name, ...) int model_##name##_serve(struct server *server);
#include "model/models.def"
#undef MODEL

static const struct model models[] = {
#define MODEL(name, accepts, serves, workers, threads, sentence, use) \
    { #name, STATS_ACCEPTS_##accepts, STATS_SERVES_##serves, workers, threads, sentence, \
      use,   model_##name##_serve },
#include "model/models.def"
#undef MODEL
    { .name = NULL },
};

const struct model *model_all(void)
{
    return models;
}

static const struct model *find_model(struct span name)
{
    for (const struct model *model = models; model->name; model++)
        if (span_equal(span_text(model->name), name))
            return model;
    return NULL;
}

static const struct model *choose_for_machine(char why[MODEL_WHY_MAX])
{
    unsigned cpus = os_process_cpus(0);
    if (cpus == 1) {
        snprintf(why, MODEL_WHY_MAX, "this process may use one CPU: one loop, nothing shared");
        return find_model(SPAN("epoll"));
    }
    snprintf(why, MODEL_WHY_MAX, "this process may use %u CPUs", cpus);
    return find_model(SPAN("percore"));
}

void model_prepare(const struct model *model, struct server *server)
{
    if (model->serve == model_uring_serve)
        server->rings = model_uring_open(server);
}

void model_discard(struct server *server)
{
    model_uring_discard(server->rings);
    server->rings = NULL;
}

const struct model *model_choose(struct span name, char why[MODEL_WHY_MAX])
{
    why[0] = '\0';
    if (span_equal(name, SPAN("auto")))
        return choose_for_machine(why);
    if (span_equal(name, SPAN("uring")) && !model_uring_possible(why, MODEL_WHY_MAX))
        return find_model(SPAN("percore"));
    return find_model(name);
}

int model_take_logs(const struct server *server)
{
    struct ipc_mailbox_item item[IPC_MAILBOX_MAX];
    int count = ipc_mailbox_read(server->logs_fd, item);
    int rc = count < 0 && count != -EAGAIN ? count : 0; /* empty: the signal is not the master's */
    for (int i = 0; i < count; i++) {
        int one = item[i].label == LOG_FILE_ACCESS
                      ? log_access_replace(server->shared->log, item[i].fd)
                      : log_error_replace(item[i].fd);
        rc = rc < 0 ? rc : one;
        os_file_close(item[i].fd);
    }
    return rc;
}
