/* SPDX-License-Identifier: MIT */
#include "load/target.h"

#include "base/buf.h"
#include "base/num.h"
#include "base/scan.h"
#include "http/token.h"
#include "load/http2.h"
#include "os/socket.h"

#include <netdb.h>
#include <stdlib.h>

enum { HOST_MAX = 255, URL_SHOWN_MAX = 100 };

static int shown(struct span url)
{
    return url.len < URL_SHOWN_MAX ? (int)url.len : URL_SHOWN_MAX;
}

static char *copy(struct span text)
{
    char *made = malloc(text.len + 1);
    if (made) {
        memcpy(made, text.at, text.len);
        made[text.len] = '\0';
    }
    return made;
}

/* ---- addresses ---- */

/* Splits "host", "host:port" and "[v6]:port". *ret_port stays without a port. */
static bool split_authority(struct span authority, struct span *ret_host, uint64_t *ret_port)
{
    const char *bracket = authority.len > 0 && authority.at[0] == '['
                              ? memchr(authority.at, ']', authority.len)
                              : NULL;
    size_t from = bracket ? (size_t)(bracket - authority.at) : 0;
    const char *colon = memchr(authority.at + from, ':', authority.len - from);
    *ret_host = authority;
    if (colon) {
        size_t len = (size_t)(colon - authority.at);
        struct span port = span_skip(authority, len + 1);
        *ret_host = span_first(authority, len);
        if (port.len > 0 && (!num_parse_u64(port, ret_port) || *ret_port == 0))
            return false;
    }
    return ret_host->len > 0 && ret_host->len <= HOST_MAX && *ret_port <= UINT16_MAX;
}

static bool look_up(const char *host, unsigned port, struct load_target *target,
                    struct option_refusal *refusal)
{
    char service[8];
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
    (void)snprintf(service, sizeof(service), "%u", port);
    int error = getaddrinfo(host, service, &hints, &found);
    if (error != 0)
        return option_refuse(refusal, "the host `%s` is not known: %s", host, gai_strerror(error));
    memcpy(&target->address, found->ai_addr, found->ai_addrlen);
    target->address_len = found->ai_addrlen;
    freeaddrinfo(found);
    return true;
}

static bool find_address(struct load_target *target, struct span authority, struct span url,
                         struct option_refusal *refusal)
{
    struct span host;
    uint64_t port = target->tls ? 443 : 80;
    if (!split_authority(authority, &host, &port))
        return option_refuse(refusal, "`%.*s` names no host and port", shown(url), url.at);
    char text[HOST_MAX + 8], name[HOST_MAX + 1];
    (void)snprintf(text, sizeof(text), "%.*s:%u", (int)host.len, host.at, (unsigned)port);
    (void)snprintf(name, sizeof(name), "%.*s", (int)host.len, host.at);
    bool bracketed = host.len > 2 && host.at[0] == '[' && host.at[host.len - 1] == ']';
    target->name = copy(bracketed ? span_of(host.at + 1, host.len - 2) : host);
    if (!target->name)
        return option_refuse(refusal, "out of memory");
    struct os_socket_address address;
    if (strcmp(name, "*") != 0 && os_socket_parse(text, &address) == 0) {
        target->address = address.storage;
        target->address_len = address.len;
        return true;
    }
    return look_up(name, (unsigned)port, target, refusal);
}

/* ---- URLs ---- */

/* The request target: up to a fragment, `/` when there is nothing. */
static bool take_path(struct load_target *target, struct span path, struct span url,
                      struct option_refusal *refusal)
{
    const char *hash = path.len > 0 ? memchr(path.at, '#', path.len) : NULL;
    if (hash)
        path = span_first(path, (size_t)(hash - path.at));
    if (scan_target_end(path.at, path.len) < path.len)
        return option_refuse(refusal, "`%.*s` has a byte that a URL cannot have; write it as %%20",
                             shown(url), url.at);
    bool query_alone = path.len > 0 && path.at[0] == '?';
    char *made = malloc(path.len + 2);
    if (!made)
        return option_refuse(refusal, "out of memory");
    (void)snprintf(made, path.len + 2, "%s%.*s", path.len == 0 || query_alone ? "/" : "",
                   (int)path.len, path.at);
    target->path = made;
    return true;
}

/* The scheme may be in either case (RFC 3986 section 3.1). */
static bool has_scheme(struct span url, struct span scheme)
{
    return url.len >= scheme.len && span_equal_nocase(span_first(url, scheme.len), scheme);
}

/* "unix:/SOCKET:/PATH". */
static bool take_unix(struct load_target *target, struct span url, struct option_refusal *refusal)
{
    struct span rest = span_skip(url, 5), path = { "", 0 };
    for (size_t i = 0; i + 1 < rest.len; i++) {
        if (rest.at[i] == ':' && rest.at[i + 1] == '/') {
            path = span_skip(rest, i + 1);
            rest = span_first(rest, i);
        }
    }
    char text[256];
    struct os_socket_address address;
    (void)snprintf(text, sizeof(text), "unix:%.*s", (int)rest.len, rest.at);
    if (rest.len + 6 > sizeof(text) || os_socket_parse(text, &address) < 0)
        return option_refuse(refusal, "`%.*s` is not unix:/SOCKET:/PATH", shown(url), url.at);
    target->address = address.storage;
    target->address_len = address.len;
    target->host = copy(SPAN("localhost"));
    target->socket = copy(rest);
    if (!target->socket)
        return option_refuse(refusal, "out of memory");
    return take_path(target, path, url, refusal);
}

static bool take_http(struct load_target *target, struct span url, struct option_refusal *refusal)
{
    target->tls = has_scheme(url, SPAN("https://"));
    struct span rest = target->tls                        ? span_skip(url, 8)
                       : has_scheme(url, SPAN("http://")) ? span_skip(url, 7)
                                                          : url;
    size_t len = 0;
    while (len < rest.len && !strchr("/?#", rest.at[len]))
        len++;
    struct span authority = span_first(rest, len);
    if (authority.len == 0)
        return option_refuse(refusal, "`%.*s` names no host", shown(url), url.at);
    if (memchr(authority.at, '@', authority.len))
        return option_refuse(refusal, "`%.*s` has a user name; send credentials with --header",
                             shown(url), url.at);
    target->host = copy(authority);
    return find_address(target, authority, url, refusal) &&
           take_path(target, span_skip(rest, len), url, refusal);
}

/* A path on the host of the target before. */
static bool take_path_alone(const struct load_plan *plan, struct load_target *target,
                            struct span url, struct option_refusal *refusal)
{
    if (plan->target_count == 0)
        return option_refuse(refusal, "`%.*s` is a path, and no URL before it names a host",
                             shown(url), url.at);
    const struct load_target *before = &plan->targets[plan->target_count - 1];
    target->address = before->address;
    target->address_len = before->address_len;
    target->tls = before->tls;
    target->host = copy(span_text(before->host));
    target->name = before->name ? copy(span_text(before->name)) : NULL;
    target->socket = before->socket ? copy(span_text(before->socket)) : NULL;
    if ((before->name && !target->name) || (before->socket && !target->socket))
        return option_refuse(refusal, "out of memory");
    return take_path(target, url, url, refusal);
}

static bool take_url(const struct load_plan *plan, struct load_target *target, struct span url,
                     struct option_refusal *refusal)
{
    if (span_starts(url, SPAN("unix:")))
        return take_unix(target, url, refusal);
    if (url.len > 0 && url.at[0] == '/')
        return take_path_alone(plan, target, url, refusal);
    for (size_t i = 0; i + 2 < url.len; i++)
        if (memcmp(url.at + i, "://", 3) == 0 && !has_scheme(url, SPAN("http://")) &&
            !has_scheme(url, SPAN("https://")))
            return option_refuse(
                refusal, "`%.*s` is neither http://, https:// nor unix:", shown(url), url.at);
    return take_http(target, url, refusal);
}

static void free_target(struct load_target *target)
{
    void *owned[] = { (void *)(uintptr_t)target->host,    (void *)(uintptr_t)target->name,
                      (void *)(uintptr_t)target->socket,  (void *)(uintptr_t)target->path,
                      (void *)(uintptr_t)target->request, (void *)(uintptr_t)target->block[0].at };
    for (size_t i = 0; i < sizeof(owned) / sizeof(owned[0]); i++)
        free(owned[i]);
}

/* Whether both use the same connections. With TLS a connection is for one host (RFC 9110 section
 * 4.3.3). With HTTP/2 it is, too: later header blocks refer to the :authority of the first one. */
static bool shares_connections(const struct load_plan *plan, const struct load_target *a,
                               const struct load_target *b)
{
    if (plan->http2 && !span_equal_nocase(span_text(a->host), span_text(b->host)))
        return false;
    return a->tls == b->tls && a->address_len == b->address_len &&
           memcmp(&a->address, &b->address, a->address_len) == 0 &&
           (!a->tls ||
            (a->name && b->name && span_equal_nocase(span_text(a->name), span_text(b->name))));
}

/* The origin of a target that has `before` targets before it. */
static unsigned origin_of(const struct load_plan *plan, const struct load_target *target,
                          unsigned before)
{
    for (unsigned i = 0; i < before; i++)
        if (plan->targets[i].origin == i && shares_connections(plan, &plan->targets[i], target))
            return i;
    return before;
}

bool load_target_add(struct load_plan *plan, struct span url, double weight,
                     struct option_refusal *refusal)
{
    if (plan->target_count == LOAD_TARGETS_MAX)
        return option_refuse(refusal, "there are more than %d URLs", LOAD_TARGETS_MAX);
    if ((plan->target_count & (plan->target_count + 1)) ==
        0) { /* the space doubles: 1, 3, 7, ... */
        size_t room = 2 * plan->target_count + 1;
        struct load_target *more = reallocarray(plan->targets, room, sizeof(*more));
        if (!more)
            return option_refuse(refusal, "out of memory");
        plan->targets = more;
    }
    struct load_target target = { .weight = weight };
    if (!take_url(plan, &target, url, refusal) || !target.host) {
        free_target(&target);
        return false;
    }
    unsigned before = (unsigned)plan->target_count;
    bool as_before = before > 0 && url.at[0] == '/';
    target.origin = as_before ? plan->targets[before - 1].origin : origin_of(plan, &target, before);
    plan->targets[plan->target_count++] = target;
    return true;
}

void load_target_free_all(struct load_plan *plan)
{
    for (size_t i = 0; i < plan->target_count; i++)
        free_target(&plan->targets[i]);
    free(plan->targets);
    plan->targets = NULL;
    plan->target_count = 0;
}

/* ---- requests ---- */

static void add_field(struct buf *out, const char *text)
{
    buf_add(out, span_text(text));
    buf_add(out, SPAN("\r\n"));
}

static bool names_host(const char *field)
{
    return span_equal_nocase(span_first(span_text(field), 5), SPAN("host:"));
}

/* Whether a request needs `Content-Length: 0` when it has no body (RFC 9110 section 8.6). */
static bool needs_length(const char *method)
{
    return strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 ||
           strcmp(method, "PATCH") == 0;
}

/* Writes a head of HTTP/1.1. */
static void write_head(struct buf *out, const struct load_target *target,
                       const struct load_manner *manner)
{
    bool host = false;
    buf_add(out, span_text(manner->method));
    buf_add_char(out, ' ');
    buf_add(out, span_text(target->path));
    buf_add(out, SPAN(" HTTP/1.1\r\n"));
    for (const char *const *field = manner->fields; *field; field++)
        host = host || names_host(*field);
    if (!host) {
        buf_add(out, SPAN("Host: "));
        add_field(out, target->host);
    }
    for (const char *const *field = manner->fields; *field; field++)
        add_field(out, *field);
    if (!manner->keep_alive)
        add_field(out, "Connection: close");
    if (manner->has_data || needs_length(manner->method)) {
        buf_add(out, SPAN("Content-Length: "));
        buf_add_u64(out, manner->data.len);
        buf_add(out, SPAN("\r\n"));
    }
    buf_add(out, SPAN("\r\n"));
}

static bool make_request(struct load_target *target, const struct load_manner *manner)
{
    size_t fields_len = 0;
    for (const char *const *field = manner->fields; *field; field++)
        fields_len += strlen(*field) + 2;
    size_t size = strlen(manner->method) + strlen(target->path) + strlen(target->host) +
                  fields_len + manner->data.len + 128;
    char *storage = malloc(size);
    if (!storage)
        return false;
    struct buf out = buf_over(storage, size);
    write_head(&out, target, manner);
    target->head_len = out.len;
    buf_add(&out, manner->data);
    CHECK(!out.overflow);
    target->request = storage;
    target->request_len = out.len;
    return true;
}

/* ---- requests of HTTP/2 ---- */

/* A field that HTTP/2 has no place for (RFC 9113 section 8.2.2), or a second Host. */
static bool check_fields(const struct load_manner *manner, struct option_refusal *refusal)
{
    static const char *const none[] = { "keep-alive:", "proxy-connection:", "upgrade:",
                                        "http2-settings:", "te:" };
    unsigned hosts = 0;
    for (const char *const *field = manner->fields; *field; field++) {
        hosts += names_host(*field);
        for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
            if (span_equal_nocase(span_first(span_text(*field), strlen(none[i])),
                                  span_text(none[i])))
                return option_refuse(refusal, "--header: HTTP/2 has no field `%.*s`; leave it out",
                                     (int)strlen(none[i]) - 1, *field);
    }
    return hosts <= 1 || option_refuse(refusal, "--header: a request has one Host");
}

/* Makes the header blocks of a target. `storage` has space for the longest one. */
static bool make_blocks(struct load_target *target, char *storage, struct option_refusal *refusal)
{
    struct span head = span_of(target->request, target->head_len);
    struct span scheme = target->tls ? SPAN("https") : SPAN("http");
    size_t len[LOAD_HTTP2_FORMS], table_bytes = 0;
    struct buf out = buf_over(storage, LOAD_HTTP2_FORMS * (size_t)LOAD_HTTP2_REQUEST_MAX);
    for (unsigned form = 0; form < LOAD_HTTP2_FORMS; form++) {
        size_t from = out.len;
        /* Without space in the server's table, all blocks are plain. */
        enum http2_client_form used = table_bytes <= HTTP2_TABLE_MAX ? (enum http2_client_form)form
                                                                     : HTTP2_CLIENT_PLAIN;
        size_t needed = http2_client_add_request(&out, head, scheme, used);
        if (used == HTTP2_CLIENT_FIRST && needed > HTTP2_TABLE_MAX) {
            table_bytes = needed;
            out.len = from;
            (void)http2_client_add_request(&out, head, scheme, HTTP2_CLIENT_PLAIN);
        }
        len[form] = out.len - from;
        if (out.overflow || len[form] > LOAD_HTTP2_REQUEST_MAX)
            return option_refuse(refusal,
                                 "--http2: the fields of a request have more than %d bytes",
                                 LOAD_HTTP2_REQUEST_MAX);
    }
    char *blocks = malloc(out.len);
    if (!blocks)
        return option_refuse(refusal, "out of memory");
    memcpy(blocks, out.at, out.len);
    for (unsigned form = 0; form < LOAD_HTTP2_FORMS; form++) {
        target->block[form] = span_of(blocks, len[form]);
        blocks += len[form];
    }
    return true;
}

static bool make_all_blocks(struct load_plan *plan, const struct load_manner *manner,
                            struct option_refusal *refusal)
{
    char *storage = malloc(LOAD_HTTP2_FORMS * (size_t)LOAD_HTTP2_REQUEST_MAX);
    bool good = storage || option_refuse(refusal, "out of memory");
    good = good && check_fields(manner, refusal);
    for (size_t i = 0; i < plan->target_count && good; i++) {
        /* Targets were added before it was known that hosts do not share connections. */
        plan->targets[i].origin = origin_of(plan, &plan->targets[i], (unsigned)i);
        good = make_blocks(&plan->targets[i], storage, refusal);
    }
    free(storage);
    return good;
}

bool load_target_make_requests(struct load_plan *plan, const struct load_manner *manner,
                               struct option_refusal *refusal)
{
    plan->data = manner->data;
    for (size_t i = 0; i < plan->target_count; i++)
        if (!make_request(&plan->targets[i], manner))
            return option_refuse(refusal, "out of memory");
    return !plan->http2 || make_all_blocks(plan, manner, refusal);
}
