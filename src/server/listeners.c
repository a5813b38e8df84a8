/* SPDX-License-Identifier: MIT */
#include "server/listeners.h"

#include "base/duration.h"
#include "config/address.h"
#include "config/read.h"
#include "log/error.h"
#include "os/clock.h"
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    RINGS_END_MS = 60000 /* by far enough for the kernel to end the rings of a dead process */
};

/* ---- addresses ---- */

static struct server_address *find_got(const struct server_addresses *addresses,
                                       const struct os_socket_address *got)
{
    struct server_address *address = addresses->first;
    while (address && !os_socket_same(&address->got, got))
        address = address->next;
    return address;
}

/* Whether the other kind has the address too: its sockets have moved. The socket file
 * then stays. */
static bool is_moving(const struct server_addresses *addresses,
                      const struct server_address *address)
{
    return addresses->other && find_got(addresses->other, &address->got);
}

static bool is_taken(const struct server_listeners *taken, const struct server_address *address)
{
    for (size_t i = 0; i < taken->count; i++)
        if (taken->each[i].address == address)
            return true;
    return false;
}

/* The open address for `asked` that these listeners do not use yet. Port 0 may be there twice. Then
 * an address with the same scheme is better, so that a reload does not exchange them. A Unix socket
 * that no client reaches gets a successor. */
static struct server_address *find_address(const struct server_addresses *addresses,
                                           const struct server_listeners *taken,
                                           const struct os_socket_address *asked, bool tls)
{
    struct server_address *found = NULL;
    for (struct server_address *a = addresses->first; a && (!found || found->tls != tls);
         a = a->next) {
        bool fits = os_socket_same(&a->asked, asked) || os_socket_same(&a->got, asked);
        if (fits && !is_moving(addresses, a) && !is_taken(taken, a) && (!found || a->tls == tls) &&
            !server_address_is_lost(a))
            found = a;
    }
    return found;
}

static bool uses_address(const struct server_listeners *listeners,
                         const struct server_address *address)
{
    for (size_t i = 0; listeners && i < listeners->count; i++)
        if (listeners->each[i].address == address)
            return true;
    return false;
}

/* Moves the sockets here that the other kind has at this address, unless they stay in use there. A
 * port that the kernel picked does not move: no setting names it. */
static int move_sockets(struct server_address *address, const struct server_addresses *addresses)
{
    const struct server_address *from =
        addresses->other ? find_got(addresses->other, &address->asked) : NULL;
    if (!from || from->managed || !os_socket_same(&from->asked, &from->got) ||
        uses_address(addresses->reserved, from))
        return -EADDRINUSE;
    int rc = 0;
    for (size_t i = 0; i < from->listening && rc == 0; i++) {
        int fd = fcntl(from->fd[i], F_DUPFD_CLOEXEC, 0);
        rc = server_address_add_socket(address, fd < 0 ? -errno : fd);
    }
    address->served = address->listening = address->count;
    return rc == 0 && address->count == 0 ? -EADDRINUSE : rc;
}

/* An address in use may be one of this server's own: *:80 and 192.0.2.1:80 can be open together
 * while one replaces the other. */
static int bind_beside_ours(const struct server_addresses *addresses,
                            const struct os_socket_address *asked, struct os_socket_options options)
{
    uint16_t port = os_socket_port(asked);
    bool ours = false;
    int rc = 0;
    for (const struct server_address *a = addresses->first; port > 0 && a && rc == 0; a = a->next) {
        if (os_socket_port(&a->got) != port || os_socket_same(&a->got, asked))
            continue;
        ours = true;
        rc = server_address_share_port(a);
    }
    if (rc < 0 || !ours)
        return rc < 0 ? rc : -EADDRINUSE;
    options.share_port = true;
    return os_socket_bind(asked, &options);
}

static int open_first_socket(struct server_address *address,
                             const struct server_addresses *addresses,
                             const struct os_socket_options *options)
{
    int rc = server_address_add_socket(address, os_socket_bind(&address->asked, options));
    if (rc == -EADDRINUSE)
        rc = move_sockets(address, addresses);
    if (rc == -EADDRINUSE)
        rc = server_address_add_socket(address,
                                       bind_beside_ours(addresses, &address->asked, *options));
    if (rc == 0)
        rc = os_socket_local(address->fd[0], &address->got);
    if (rc == 0 && !os_socket_url(&address->got, address->url, sizeof(address->url)))
        rc = -ENAMETOOLONG;
    if (rc == 0)
        server_address_note_file(address);
    if (rc == 0 && server_address_is_unix(address) &&
        address->listening ==
            0) { /* if nothing listens, another server removes the file as stale */
        rc = os_socket_listen(address->fd[0], SERVER_BACKLOG);
        address->listening = rc == 0;
    }
    return rc;
}

static void remove_address(struct server_addresses *addresses, struct server_address *address)
{
    struct server_address **link = &addresses->first;
    while (*link != address)
        link = &(*link)->next;
    *link = address->next;
    for (size_t i = 0; i < address->count; i++)
        os_file_close(address->fd[i]);
    if (!address->managed && !addresses->handed_over &&
        !(addresses->borrowed && address->adopted) && !is_moving(addresses, address))
        server_address_remove_file(address);
    free(address->fd);
    free(address);
}

static struct server_address *add_address(struct server_addresses *addresses,
                                          const struct os_socket_address *asked)
{
    struct server_address *address = calloc(1, sizeof(*address));
    if (!address)
        return NULL;
    address->asked = *asked;
    struct server_address **end = &addresses->first; /* a successor gets them in this order */
    while (*end)
        end = &(*end)->next;
    *end = address;
    return address;
}

static void release_address(struct server_addresses *addresses, struct server_address *address)
{
    address->users--;
    if (address->users == 0 && !address->managed)
        remove_address(addresses, address);
    else
        server_address_shrink(address);
}

/* Adds the address to these listeners, and opens its sockets if it has none. */
static int use_address(struct server_listeners *l, struct server_addresses *addresses,
                       struct server_address *address, size_t sets, const char *congestion)
{
    struct os_socket_options options = {
        .defer_s = 1, /* the request has arrived before accept returns: one wait less */
        .congestion = congestion,
    };
    int rc = 0;
    address->users++;
    if (address->count == 0)
        rc = open_first_socket(address, addresses, &options);
    for (size_t i = 0; rc == 0 && address->adopted && i < address->count; i++)
        rc = os_socket_tune(address->fd[i], &options);
    if (rc == 0)
        rc = server_address_grow(address, sets, options);
    if (rc < 0) {
        release_address(addresses, address);
        return rc;
    }
    l->each[l->count] = (struct server_listener){ address, address->count, false };
    return 0;
}

static int open_place(struct server_listeners *l, struct server_addresses *addresses,
                      const struct config_place *place, size_t sets, const char *congestion)
{
    struct os_socket_address asked;
    int rc = os_socket_parse(place->address, &asked);
    if (rc < 0)
        return rc;
    struct server_address *address = find_address(addresses, l, &asked, place->tls);
    if (!address)
        address = add_address(addresses, &asked);
    rc = address ? use_address(l, addresses, address, sets, congestion) : -ENOMEM;
    if (rc == 0)
        address->tls = l->each[l->count].tls = place->tls;
    return rc;
}

/* Uses the sockets of a service manager in place of the default addresses. Returns how many there
 * are, or -errno. */
static int take_managed(struct server_listeners *l, struct server_addresses *addresses, size_t sets,
                        const char *congestion)
{
    int rc = 0;
    size_t count = 0;
    for (struct server_address *a = addresses->first; a; a = a->next)
        count += a->managed;
    if (count == 0)
        return 0;
    l->each = calloc(count, sizeof(*l->each));
    if (!l->each)
        return -ENOMEM;
    for (struct server_address *a = addresses->first; a && rc == 0; a = a->next) {
        rc = a->managed ? use_address(l, addresses, a, sets, congestion) : 0;
        if (rc < 0)
            (void)server_address_report(NULL, a->url, l->page, rc);
        l->count += a->managed && rc == 0;
    }
    if (rc < 0)
        server_listeners_close(l, addresses);
    return rc < 0 ? rc : (int)count;
}

static bool is_missing(int error)
{
    return error == -EADDRNOTAVAIL || error == -EAFNOSUPPORT;
}

/* Opens the addresses of one text. One that the machine lacks is skipped if the text, or with
 * `may_lack` the configuration, has another. Returns how many are open, or -errno, reported after
 * `label`. */
static int open_text(struct server_listeners *l, struct server_addresses *addresses,
                     const char *text, size_t sets, const char *congestion, bool may_lack,
                     const char *label)
{
    struct config_place places[CONFIG_PLACES_MAX];
    unsigned count = config_address_places(text, places);
    int opened = 0;
    for (unsigned i = 0; i < count; i++) {
        int rc = open_place(l, addresses, &places[i], sets, congestion);
        bool spare = may_lack || (places[i].optional && (opened > 0 || i + 1 < count));
        if (rc < 0 && (!is_missing(rc) || !spare))
            return server_address_report(label, places[i].address, l->page, rc);
        opened += rc == 0;
        l->count++;
    }
    return opened;
}

int server_listeners_open(struct server_listeners *listeners, struct server_addresses *addresses,
                          const struct server_listeners_request *request)
{
    static const char *const any_port[] = { "127.0.0.1:0", NULL };
    const struct config *config = config_read_result(request->store);
    const char *const *listen = request->any_port ? any_port
                                : request->page   ? config->stats_listen
                                                  : config->listen;
    enum config_setting_place place = request->page ? SETTING_stats_listen : SETTING_listen;
    bool by_default = !request->page && config->listen_by_default;
    size_t sets = request->sets, count = 0;
    *listeners = (struct server_listeners){ .page = request->page };
    int managed = by_default ? take_managed(listeners, addresses, sets, config->congestion) : 0;
    if (managed != 0)
        return managed < 0 ? managed : 0;
    while (listen[count])
        count++;
    listeners->each = calloc(CONFIG_PLACES_MAX * count, sizeof(*listeners->each));
    int rc = listeners->each ? 0 : -ENOMEM, opened = 0;
    for (size_t i = 0; i < count && rc >= 0; i++) {
        char label[CONFIG_ORIGIN_MAX];
        bool spare = by_default && (i + 1 < count || opened > 0);
        config_read_label(request->store, place, i, label);
        rc = open_text(listeners, addresses, listen[i], sets, config->congestion, spare, label);
        opened += rc > 0 ? rc : 0;
    }
    if (rc < 0)
        server_listeners_close(listeners, addresses);
    return rc < 0 ? rc : 0;
}

/* ---- sockets of other processes ---- */

static int adopt_socket(struct server_addresses *addresses,
                        const struct server_inherited_socket *socket)
{
    struct server_address *address = find_got(addresses, &socket->address);
    if (!address) {
        address = add_address(addresses, &socket->address);
        if (!address)
            return -ENOMEM;
        address->adopted = addresses->borrowed = true;
        address->managed = socket->managed;
        address->got = socket->address;
        if (socket->any_port)
            os_socket_forget_port(&address->asked);
        if (!os_socket_url(&address->got, address->url, sizeof(address->url)))
            return -ENAMETOOLONG;
        server_address_note_file(address);
    }
    int rc = server_address_add_socket(address, socket->fd);
    address->served = address->listening = address->count;
    return rc;
}

void server_listeners_note_death(struct server_addresses *addresses, uint64_t now_ns)
{
    const uint64_t until_ns = now_ns + RINGS_END_MS * DURATION_MS;
    if (addresses->dead_waiters_until_ns < until_ns)
        addresses->dead_waiters_until_ns = until_ns;
}

int server_listeners_adopt(struct server_addresses *addresses,
                           const struct server_inherited *inherited)
{
    if (inherited->count > 0)
        server_listeners_note_death(addresses, os_clock_now_ns()); /* of an earlier server */
    if (inherited->beside_stuck)
        addresses->dead_waiters_until_ns = UINT64_MAX;
    int rc = 0;
    for (size_t i = 0; i < inherited->count && rc == 0; i++)
        rc = adopt_socket(inherited->sockets[i].page ? addresses->other : addresses,
                          &inherited->sockets[i]);
    return rc;
}

void server_listeners_close_unused(struct server_addresses *addresses)
{
    addresses->borrowed = false;
    struct server_address *next;
    for (struct server_address *a = addresses->first; a; a = next) {
        next = a->next;
        if (a->users > 0)
            continue;
        log_error(
            a->managed ? LOG_WARNING : LOG_INFO,
            "closed the socket for %s, which another process handed over: no `listen` names it",
            a->url);
        remove_address(addresses, a);
    }
}

void server_listeners_close_all(struct server_addresses *addresses)
{
    while (addresses->first)
        remove_address(addresses, addresses->first);
}

/* ---- serving ---- */

/* First claims every address: another process may have begun to listen there. */
int server_listeners_begin(struct server_listeners *listeners, const char *congestion,
                           uint64_t send_timeout_ns)
{
    for (int claimed = 0; claimed < 2; claimed++) {
        for (size_t i = 0; i < listeners->count; i++) {
            struct server_address *address = listeners->each[i].address;
            int rc = !address  ? 0
                     : claimed ? server_address_begin(address, congestion, send_timeout_ns)
                               : server_address_claim(address);
            if (rc < 0)
                return server_address_report(NULL, address->url, listeners->page, rc);
        }
    }
    return 0;
}

void server_listeners_serve(const struct server_listeners *listeners)
{
    for (size_t i = 0; i < listeners->count; i++)
        if (listeners->each[i].address)
            server_address_serve(listeners->each[i].address);
}

void server_listeners_close(struct server_listeners *listeners, struct server_addresses *addresses)
{
    for (size_t i = 0; listeners->each && i < listeners->count; i++)
        if (listeners->each[i].address)
            release_address(addresses, listeners->each[i].address);
    free(listeners->each);
    *listeners = (struct server_listeners){ 0 };
}

uint16_t server_listeners_tls_port(const struct server_listeners *listeners)
{
    for (size_t i = 0; i < listeners->count; i++)
        if (listeners->each[i].tls)
            return os_socket_port(&listeners->each[i].address->got);
    return 0;
}

/* The address itself has a URL with http, because other generations may use it without TLS. */
void server_listeners_url(const struct server_listener *listener, char out[SERVER_URL_MAX + 1])
{
    const char *url = listener->address->url;
    (void)snprintf(out, SERVER_URL_MAX + 1, "%.4s%s%s", url, listener->tls ? "s" : "", url + 4);
}

int server_listeners_print(const struct server_listeners *listeners, int fd)
{
    char url[SERVER_URL_MAX + 1];
    int rc = 0;
    for (size_t i = 0; rc >= 0 && i < listeners->count; i++) {
        if (!listeners->each[i].address)
            continue;
        server_listeners_url(&listeners->each[i], url);
        rc = dprintf(fd, "%s\n", url);
    }
    return rc;
}

/* ---- in a worker ---- */

/* The places of a listener in each of `sets` sets. */
static size_t columns_of(const struct server_listener *listener, size_t sets)
{
    return (listener->sockets + sets - 1) / sets;
}

static size_t count_columns(const struct server_listeners *listeners, size_t sets)
{
    size_t columns = 0;
    for (size_t i = 0; i < listeners->count; i++)
        columns += columns_of(&listeners->each[i], sets);
    return columns;
}

int *server_listeners_lay_out(const struct server_listeners *listeners, size_t sets, size_t first,
                              size_t count, size_t *ret_columns)
{
    size_t columns = count_columns(listeners, sets);
    int *fd = malloc((count * columns + 1) * sizeof(*fd));
    for (size_t i = 0; fd && i < count * columns; i++)
        fd[i] = -1;
    size_t column = 0;
    for (size_t i = 0; fd && i < listeners->count; i++) {
        const struct server_listener *l = &listeners->each[i];
        for (size_t j = 0; j < l->sockets; j++)
            if (j % sets >= first && j % sets < first + count)
                fd[(j % sets - first) * columns + column + j / sets] = l->address->fd[j];
        if (l->address && server_address_is_unix(l->address) && count > 0)
            fd[column] = l->address->fd[0]; /* one socket for all, in one thread of each worker */
        column += columns_of(l, sets);
    }
    *ret_columns = columns;
    return fd;
}

bool *server_listeners_tls(const struct server_listeners *listeners, size_t sets)
{
    bool *tls = malloc((count_columns(listeners, sets) + 1) * sizeof(*tls));
    size_t column = 0;
    for (size_t i = 0; tls && i < listeners->count; i++)
        for (size_t j = 0; j < columns_of(&listeners->each[i], sets); j++)
            tls[column++] = listeners->each[i].tls;
    return tls;
}

uint64_t server_listeners_drops(const struct server_addresses *addresses)
{
    uint64_t sum = 0;
    for (const struct server_address *a = addresses->first; a; a = a->next)
        for (size_t i = 0; i < a->count; i++)
            sum += os_socket_drops(a->fd[i]);
    return sum;
}

void server_listeners_leave(const struct server_addresses *addresses, const int *keep, size_t kept)
{
    for (const struct server_address *a = addresses->first; a; a = a->next) {
        for (size_t i = 0; i < a->count; i++) {
            bool mine = false;
            for (size_t k = 0; k < kept && !mine; k++)
                mine = keep[k] == a->fd[i];
            if (!mine)
                os_file_close(a->fd[i]);
        }
    }
}
