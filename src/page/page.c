/* SPDX-License-Identifier: MIT
 *
 * Theory of operation. One thread waits with poll(2), which is good enough for some dozens of
 * descriptors. When all connections are in use, the page closes the one that has waited longest
 * for a request. If none waits for a request, it closes the one whose answer began first. So
 * clients that do not read their answers, and need no password for that, keep no other out.
 */
#include "page/page.h"

#include "base/duration.h"
#include "ipc/fdpass.h"
#include "ipc/mailbox.h"
#include "log/error.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/signal.h"
#include "os/socket.h"
#include "page/connection.h"
#include "stats/arena.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SIGNALS, MASTER, FIXED };

struct page {
    const struct page_plan *plan;
    struct page_shared shared;
    struct page_connection *connections; /* PAGE_CONNECTIONS of them */
    uint64_t tick_ns;                    /* when the next event is due */
    uint64_t end_ns;                     /* when the page must end; 0: it serves */
    bool paused;                         /* accepting failed; tries again at the next tick */
    struct pollfd *ends;                 /* what poll(2) waits for, PAGE_CONNECTIONS at the end */
    size_t end_count;
};

/* ---- clients ---- */

static struct page_connection *find_free(struct page *page)
{
    for (unsigned i = 0; i < PAGE_CONNECTIONS; i++)
        if (page->connections[i].phase == PAGE_FREE)
            return &page->connections[i];
    return NULL;
}

/* The one in either phase that is due first. */
static struct page_connection *first_due(struct page *page, enum page_phase a, enum page_phase b)
{
    struct page_connection *found = NULL;
    for (unsigned i = 0; i < PAGE_CONNECTIONS; i++) {
        struct page_connection *c = &page->connections[i];
        if ((c->phase == a || c->phase == b) && (!found || c->due_ns < found->due_ns))
            found = c;
    }
    return found;
}

/* The one to close for a new client. */
static_assert(PAGE_STREAMS < PAGE_CONNECTIONS, "not all of them are streams, so there is one");
static struct page_connection *longest_awaited(struct page *page)
{
    struct page_connection *found = first_due(page, PAGE_READING, PAGE_LINGERING);
    return found ? found : first_due(page, PAGE_SENDING, PAGE_SENDING);
}

/* Without a password only this machine may ask. A Unix socket is of this machine, and its file's
 * rights protect it. */
static bool is_guarded(const struct page *page, int listener)
{
    struct os_socket_address address;
    return !page->plan->password && os_socket_local(listener, &address) == 0 &&
           address.storage.ss_family != AF_UNIX;
}

static void accept_clients(struct page *page, size_t index, uint64_t now_ns)
{
    int listener = page->plan->listeners[index];
    struct page_tls *tls = page->plan->listener_tls[index] ? &page->shared.tls : NULL;
    for (unsigned i = 0; i < PAGE_CONNECTIONS; i++) {
        struct page_connection *c = find_free(page);
        struct page_connection *other = c ? NULL : longest_awaited(page);
        struct os_socket_address peer;
        int fd = os_socket_accept(listener, &peer);
        page->paused = fd < 0 && fd != -EAGAIN && fd != -EINTR;
        if (fd < 0)
            return;
        if (other)
            page_connection_close(other, &page->shared);
        page_connection_open(c ? c : other, fd, tls, is_guarded(page, listener), now_ns);
    }
}

/* ---- events ---- */

static void send_events(struct page *page, uint64_t now_ns)
{
    for (unsigned i = 0; i < PAGE_CONNECTIONS; i++)
        page_connection_send_event(&page->connections[i], &page->shared, now_ns);
}

/* Sends the first event of a stream at once. Later events go to all streams together, each
 * second. */
static void act_on_client(struct page *page, struct page_connection *c, short events,
                          uint64_t now_ns)
{
    bool streamed = c->answer.stream;
    page_connection_act(c, &page->shared, events, now_ns);
    if (!streamed && c->phase == PAGE_STREAMING)
        page_connection_send_event(c, &page->shared, now_ns);
}

/* ---- time ---- */

static void begin_ending(struct page *page, uint64_t now_ns)
{
    if (page->end_ns == 0)
        page->end_ns = now_ns + PAGE_ENDING_MS * DURATION_MS;
}

/* Closes what must end. Returns whether work is left. */
static bool close_ended(struct page *page, uint64_t now_ns)
{
    bool left = false;
    if (page->end_ns == 0)
        return true;
    for (unsigned i = 0; i < PAGE_CONNECTIONS; i++) {
        struct page_connection *c = &page->connections[i];
        if (c->phase == PAGE_FREE)
            continue;
        if (page_connection_is_idle(c) || now_ns >= page->end_ns)
            page_connection_close(c, &page->shared);
        else
            left = true;
    }
    return left;
}

static uint64_t next_wakeup_ns(const struct page *page)
{
    uint64_t due = page->end_ns ? page->end_ns : UINT64_MAX;
    bool ticks = page->paused;
    for (unsigned i = 0; i < PAGE_CONNECTIONS; i++) {
        const struct page_connection *c = &page->connections[i];
        if (c->phase != PAGE_FREE && c->due_ns < due)
            due = c->due_ns;
        ticks = ticks || (c->phase != PAGE_FREE && c->answer.stream);
    }
    return ticks && page->tick_ns < due ? page->tick_ns : due;
}

static void tick_second(struct page *page, uint64_t now_ns)
{
    if (now_ns < page->tick_ns)
        return;
    page->tick_ns = now_ns - now_ns % DURATION_SECOND + DURATION_SECOND;
    page->paused = false;
    send_events(page, now_ns);
}

/* ---- the loop ---- */

/* The master has opened the error log again. An empty mailbox: the signal came from elsewhere. */
static void take_error_log(const struct page *page)
{
    struct ipc_mailbox_item item[IPC_MAILBOX_MAX];
    int count = ipc_mailbox_read(page->plan->logs_fd, item);
    int rc = count < 0 && count != -EAGAIN ? count : 0;
    for (int i = 0; i < count; i++) {
        if (rc == 0 && item[i].label == LOG_FILE_ERROR)
            rc = log_error_replace(item[i].fd);
        os_file_close(item[i].fd);
    }
    if (rc < 0)
        log_error(LOG_ERROR, "cannot continue the error log in its new file: %s", strerror(-rc));
}

static void read_page_signals(struct page *page, uint64_t now_ns)
{
    int signal;
    while ((signal = os_signal_read(page->plan->signal_fd)) > 0) {
        if (signal == SIGTERM || signal == SIGQUIT)
            begin_ending(page, now_ns);
        if (signal == SIGUSR1)
            take_error_log(page);
    }
}

/* The numbers of messages continue those of the arenas that the process began with. */
static void receive_arenas(struct page *page, uint64_t now_ns)
{
    struct stats_segment *segment = page->plan->segment;
    struct ipc_fdpass_tally tally = { .taken = segment->arena_fd_count };
    struct ipc_fdpass_receiver receiver = { .fd = page->plan->master_fd,
                                            .tally = &tally,
                                            .files_max = SIZE_MAX };
    struct ipc_fdpass_origin unused;
    int fd;
    while ((fd = ipc_fdpass_receive(&receiver, &unused)) >= 0)
        if (stats_arena_add_file(segment, segment->arena_fd_count, fd) < 0)
            break;
    if (fd != -EAGAIN)
        begin_ending(page, now_ns);
}

/* The kernel refuses more elements than descriptors that the process may have, so free places get
 * none. */
static void collect_events(struct page *page)
{
    const struct page_plan *plan = page->plan;
    bool accepts = !page->paused && page->end_ns == 0;
    page->ends[SIGNALS] = (struct pollfd){ .fd = plan->signal_fd, .events = POLLIN };
    page->ends[MASTER] =
        (struct pollfd){ .fd = page->end_ns ? -1 : plan->master_fd, .events = POLLIN };
    struct pollfd *end = page->ends + FIXED;
    for (size_t i = 0; i < plan->listener_count; i++)
        *end++ = (struct pollfd){ .fd = accepts ? plan->listeners[i] : -1, .events = POLLIN };
    for (unsigned i = 0; i < PAGE_CONNECTIONS; i++) {
        const struct page_connection *c = &page->connections[i];
        if (c->phase != PAGE_FREE)
            *end++ = (struct pollfd){ .fd = c->transport.fd, .events = page_connection_events(c) };
    }
    page->end_count = (size_t)(end - page->ends);
}

/* Connections have their events in the order of collect_events. Nothing opens one meanwhile, and
 * acting on one ends no other. */
static void handle_events(struct page *page)
{
    const struct page_plan *plan = page->plan;
    const struct pollfd *ends = page->ends;
    uint64_t now_ns = os_clock_now_ns();
    page->shared.wall_s = os_clock_wall_s();
    if (ends[SIGNALS].revents)
        read_page_signals(page, now_ns);
    if (ends[MASTER].revents)
        receive_arenas(page, now_ns);
    const struct pollfd *client = ends + FIXED + plan->listener_count;
    for (unsigned i = 0; i < PAGE_CONNECTIONS; i++) {
        struct page_connection *c = &page->connections[i];
        if (c->phase == PAGE_FREE)
            continue;
        const short events = client++->revents;
        if (events || now_ns >= c->due_ns)
            act_on_client(page, c, events, now_ns);
    }
    tick_second(page, now_ns);
    for (size_t i = 0; i < plan->listener_count; i++)
        if (ends[FIXED + i].revents && page->end_ns == 0)
            accept_clients(page, i, now_ns);
}

static int run_page_loop(struct page *page)
{
    page->ends = calloc(FIXED + page->plan->listener_count + PAGE_CONNECTIONS, sizeof(*page->ends));
    page->connections = calloc(PAGE_CONNECTIONS, sizeof(*page->connections));
    int rc = page->ends && page->connections ? 0 : -ENOMEM;
    while (rc == 0 && close_ended(page, os_clock_now_ns())) {
        collect_events(page);
        if (poll(page->ends, page->end_count, os_clock_wait_ms(next_wakeup_ns(page))) < 0)
            for (size_t i = 0; i < page->end_count; i++)
                page->ends[i].revents = 0; /* interrupted: time may have passed */
        handle_events(page);
    }
    free(page->connections);
    free(page->ends);
    return rc;
}

int page_run(const struct page_plan *plan)
{
    struct page page = { .plan = plan };
    page.shared.segment = page.shared.numbers.segment = plan->segment;
    page.shared.streams_max = PAGE_STREAMS;
    page.shared.tls.server = plan->tls;
    int rc = page_password_init(&page.shared.password, plan->password);
    if (rc == 0)
        rc = run_page_loop(&page);
    page_numbers_done(&page.shared.numbers);
    tls_chunks_trim(&page.shared.tls.chunks, 0);
    if (rc < 0)
        log_error(LOG_ERROR, "the statistics page cannot be served: %s", strerror(-rc));
    return rc < 0 ? 1 : 0;
}
