/* SPDX-License-Identifier: MIT
 *
 * Model `serial`: one connection at a time, served by a thread with blocking calls. A reactor
 * accepts. The other connections wait in the kernel's backlog. (The example of add-a-model.md.)
 *
 * Cost: the start and end of a thread for each connection, and every client waits for the others.
 * Failure: an idle client stops all others until its idle timeout.
 */
#include "base/duration.h"
#include "model/model.h"
#include "model/pump.h"
#include "model/reactor.h"
#include "os/file.h"

int model_serial_serve(struct server *server);

struct serial {
    struct model_reactor *reactor;
    struct session_thread thread; /* what the sessions of the serving thread share */
    struct model_pump pump;
    struct session_origin origin;
    int drain_fd; /* model/pump.h */
    pthread_t id;
    bool joinable;        /* a thread was started, and not joined yet */
    pthread_mutex_t lock; /* guards `open` */
    bool open;            /* the pump's descriptor is open, and may be shut down */
};

static void set_open(struct serial *s, bool open)
{
    CHECK(pthread_mutex_lock(&s->lock) == 0);
    s->open = open;
    CHECK(pthread_mutex_unlock(&s->lock) == 0);
}

static void *serve_client(void *context)
{
    struct serial *s = context;
    char input[SESSION_READ_MAX];
    session_thread_resume(&s->thread);
    model_pump_serve(&s->pump, &s->thread, s->origin, input);
    stats_writer_add(&s->thread.stats, STATS_connections_closed, 1);
    session_thread_rest(&s->thread);
    set_open(s, false);
    os_file_close(s->pump.fd);
    model_loop_ended(&s->reactor->loop); /* the reactor may accept again */
    return NULL;
}

static void join_client(struct serial *s)
{
    if (s->joinable)
        CHECK(pthread_join(s->id, NULL) == 0);
    s->joinable = false;
}

static bool start_client(struct model_reactor *r, int fd, struct session_origin origin)
{
    struct serial *s = r->place;
    join_client(s);
    model_pump_init(&s->pump, fd, s->drain_fd, r->loop.server->drain_idle_ns, r->loop.now_ns);
    s->origin = origin;
    set_open(s, true);
    s->joinable = pthread_create(&s->id, NULL, serve_client, s) == 0;
    if (!s->joinable)
        set_open(s, false);
    return s->joinable;
}

static void end_client(struct serial *s, bool (*end)(struct model_pump *pump))
{
    CHECK(pthread_mutex_lock(&s->lock) == 0);
    if (s->open)
        (void)end(&s->pump);
    CHECK(pthread_mutex_unlock(&s->lock) == 0);
}

static void drain_client(struct model_reactor *r)
{
    const struct serial *s = r->place;
    model_pump_report_drain(s->drain_fd);
}

static void close_idle_client(struct model_reactor *r)
{
    end_client(r->place, model_pump_end_idle);
}

static void close_client(struct model_reactor *r)
{
    end_client(r->place, model_pump_end);
}

static const struct model_placement serial_placement = {
    .turn_ns = DURATION_SECOND / 4, /* the reactor writes the access log of both threads */
    .place = start_client,
    .drain = drain_client,
    .close_idle = close_idle_client,
    .close_all = close_client,
};

int model_serial_serve(struct server *server)
{
    struct serial s = { .lock = PTHREAD_MUTEX_INITIALIZER, .drain_fd = model_pump_open_drain() };
    server->connections_max = 1;
    if (s.drain_fd < 0)
        return s.drain_fd;
    int rc = model_reactors_new(server, 1, &serial_placement, &s, &s.reactor);
    if (rc == 0) {
        session_thread_share_log(&s.reactor->loop.thread);
        session_thread_start_beside(&s.thread, &s.reactor->loop.thread, 1);
        rc = model_reactor_serve(&s.reactor->loop);
        end_client(&s, model_pump_end); /* a connection is left only when the reactor has failed */
        join_client(&s);
        session_thread_stop(&s.thread);
    }
    model_reactors_free(s.reactor);
    os_file_close(s.drain_fd);
    return rc;
}
