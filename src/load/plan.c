/* SPDX-License-Identifier: MIT */
#include "load/plan.h"

#include "base/duration.h"
#include "base/hash.h"
#include "os/clock.h"
#include "os/usage.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

static uint64_t mix_text(uint64_t digest, const char *text)
{
    return hash_bytes(span_text(text), digest);
}

static uint64_t mix_number(uint64_t digest, uint64_t number)
{
    return hash_bytes(span_of((const char *)&number, sizeof(number)), digest);
}

static uint64_t mix_real(uint64_t digest, double number)
{
    return hash_bytes(span_of((const char *)&number, sizeof(number)), digest);
}

uint64_t load_plan_digest(const struct load_plan *plan)
{
    uint64_t digest = 0;
    for (size_t i = 0; i < plan->target_count; i++) {
        const struct load_target *target = &plan->targets[i];
        digest = mix_text(mix_text(digest, target->host), target->path);
        digest = hash_bytes(span_of(target->request, target->request_len), digest);
        digest = mix_real(digest, target->weight);
        if (target->tls)
            digest = mix_text(digest, "https");
        if (target->socket)
            digest = mix_text(mix_text(digest, "unix"), target->socket);
    }
    if (plan->http2)
        digest = mix_text(digest, "HTTP/2");
    if (plan->tls != LOAD_TLS_NONE)
        digest = mix_number(digest, plan->tls);
    digest = mix_real(digest, plan->zipf);
    digest = mix_number(mix_number(digest, plan->step_count), plan->loop);
    digest = mix_number(mix_number(digest, plan->think.kind), plan->think.low_ns);
    digest = mix_number(mix_number(digest, plan->think.high_ns), plan->verify);
    digest = mix_number(digest, plan->requests > 0); /* each shard has its own number */
#define LOAD_PLANNED(name) digest = mix_number(digest, (uint64_t)plan->name);
#include "load/counts.def"
#undef LOAD_PLANNED
    return digest;
}

/* ---- whether this machine can do it ---- */

static bool check_source(const struct sockaddr_storage *source, struct option_refusal *refusal)
{
    bool v4 = source->ss_family == AF_INET;
    const void *bytes = v4 ? (const void *)&((const struct sockaddr_in *)source)->sin_addr
                           : (const void *)&((const struct sockaddr_in6 *)source)->sin6_addr;
    socklen_t len = v4 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    int fd = socket(source->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int error = fd >= 0 && bind(fd, (const struct sockaddr *)source, len) == 0 ? 0 : errno;
    char text[INET6_ADDRSTRLEN] = "";
    if (fd >= 0)
        close(fd);
    if (error == 0)
        return true;
    (void)inet_ntop(source->ss_family, bytes, text, sizeof(text));
    return option_refuse(refusal, "--source: %s: %s", text, strerror(error));
}

/* Without a source of its family, the kernel chooses the local address of a target's connections,
 * and the route may be another than the one meant. */
static bool check_target_has_source(const struct load_plan *plan, const struct load_target *target,
                                    struct option_refusal *refusal)
{
    int family = target->address.ss_family;
    for (unsigned i = 0; i < plan->source_count; i++)
        if (plan->sources[i].ss_family == family)
            return true;
    return option_refuse(refusal, "--source: none of these can reach %s%s", target->host,
                         family == AF_INET    ? ", which is of IPv4"
                         : family == AF_INET6 ? ", which is of IPv6"
                                              : ", a Unix socket");
}

/* A start time that is a little late starts the run at once, and merging reports by how much. A
 * start time that is later still is a mistake in the unit or in a clock. */
static const int64_t late_max_ns = INT64_C(60) * 1000000000;

static bool check_start_time(int64_t at_unix_ns, struct option_refusal *refusal)
{
    int64_t ago_ns = os_clock_wall_ns() - at_unix_ns;
    if (at_unix_ns == 0 || ago_ns <= late_max_ns)
        return true;
    return option_refuse(refusal,
                         "--start-at: that was %" PRId64
                         " s ago; it is nanoseconds since 1970, as of "
                         "`date +%%s%%N`",
                         ago_ns / (int64_t)DURATION_SECOND);
}

/* A thread that polls never leaves its core to a server that has no other one. */
static bool check_spin(const struct load_plan *plan, struct option_refusal *refusal)
{
    cpu_set_t set, server;
    if (!plan->spin || plan->spin_anyway || sched_getaffinity(0, sizeof(set), &set) < 0)
        return true;
    if (plan->server_pid > 0 && sched_getaffinity(plan->server_pid, sizeof(server), &server) == 0)
        CPU_OR(&set, &set, &server);
    unsigned cores = (unsigned)CPU_COUNT(&set);
    if (plan->threads < cores)
        return true;
    return option_refuse(refusal,
                         "--spin needs a core for each of %u threads and one for the server, and "
                         "there are %u here; leave it out, or use --spin-anyway if the server has "
                         "another core",
                         plan->threads, cores);
}

bool load_plan_check_resources(const struct load_plan *plan, struct option_refusal *refusal)
{
    uint64_t user_ns, system_ns;
    for (unsigned i = 0; i < plan->source_count; i++)
        if (!check_source(&plan->sources[i], refusal))
            return false;
    for (size_t i = 0; plan->source_count > 0 && i < plan->target_count; i++)
        if (!check_target_has_source(plan, &plan->targets[i], refusal))
            return false;
    if (plan->server_pid > 0 && os_usage_of_family(plan->server_pid, &user_ns, &system_ns) < 0)
        return option_refuse(refusal, "--server-pid: there is no process %d",
                             (int)plan->server_pid);
    return check_spin(plan, refusal) && check_start_time(plan->start_at_unix_ns, refusal);
}
