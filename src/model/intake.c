/* SPDX-License-Identifier: MIT */
#include "model/intake.h"

#include "model/model.h"
#include "model/reactor.h"
#include "os/file.h"

#include <errno.h>
#include <sys/epoll.h>

int *model_intake_listeners(const struct model_reactor *r)
{
    const struct server *server = r->server;
    return server->listeners + (size_t)r->index * server->listener_count;
}

bool model_intake_is_passed(const struct model_reactor *r)
{
    return r->index == 0 && r->server->intake.fd >= 0;
}

static int set_watched(const struct model_reactor *r, int fd, bool watched)
{
    struct epoll_event event = { .events = EPOLLIN,
                                 .data.u64 = model_event_data(MODEL_EVENT_LISTENER, fd) };
    int how = watched ? EPOLL_CTL_ADD : EPOLL_CTL_DEL;
    return epoll_ctl(r->epoll_fd, how, fd, &event) < 0 ? -errno : 0;
}

int model_intake_listen(struct model_reactor *r, bool listening)
{
    int rc = model_intake_is_passed(r) ? set_watched(r, r->server->intake.fd, listening) : 0;
    const int *set = model_intake_listeners(r);
    for (unsigned i = 0; i < r->server->listener_count && rc == 0; i++)
        if (set[i] >= 0)
            rc = set_watched(r, set[i], listening);
    r->listening = listening;
    return rc;
}

void model_intake_close_listeners(struct model_reactor *r)
{
    int *set = model_intake_listeners(r);
    /* Out of the epoll set first: it outlives our descriptor. */
    if (r->listening && !model_intake_is_passed(r))
        (void)model_intake_listen(r, false);
    for (unsigned i = 0; i < r->server->listener_count; i++) {
        os_file_close(set[i]);
        set[i] = -1;
    }
}

void model_intake_end_passing(struct model_reactor *r)
{
    if (!model_intake_is_passed(r))
        return;
    if (r->listening)
        (void)model_intake_listen(r, false);
    os_file_close(r->server->intake.fd);
    r->server->intake.fd = -1;
}
