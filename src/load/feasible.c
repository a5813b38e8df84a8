/* SPDX-License-Identifier: MIT */
#include "load/feasible.h"

#include "base/duration.h"
#include "os/clock.h"
#include "os/usage.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static bool is_here(const struct sockaddr_storage *source, struct load_refusal *refusal)
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
    return load_refuse(refusal, "--source: %s: %s", text, strerror(error));
}

/* Who connects from where nobody has told would measure another way. */
static bool has_source(const struct load_plan *plan, const struct load_target *target,
                       struct load_refusal *refusal)
{
    int family = target->address.ss_family;
    for (unsigned i = 0; i < plan->source_count; i++)
        if (plan->sources[i].ss_family == family)
            return true;
    return load_refuse(refusal, "--source: none of these can reach %s%s", target->host,
                       family == AF_INET    ? ", which is of IPv4"
                       : family == AF_INET6 ? ", which is of IPv6"
                                            : ", a Unix socket");
}

/* Who is told a little late begins at once; merging tells by how much. More is a mistake, of the
 * unit or of a clock. */
static const int64_t late_ns_max = INT64_C(60) * 1000000000;

static bool is_to_come(int64_t at_unix_ns, struct load_refusal *refusal)
{
    int64_t ago_ns = os_clock_wall_ns() - at_unix_ns;
    if (at_unix_ns == 0 || ago_ns <= late_ns_max)
        return true;
    return load_refuse(refusal,
                       "--start-at: that was %" PRId64
                       " s ago; it is nanoseconds since 1970, as of "
                       "`date +%%s%%N`",
                       ago_ns / (int64_t)DURATION_SECOND);
}

bool load_feasible(const struct load_plan *plan, struct load_refusal *refusal)
{
    uint64_t user_ns, system_ns;
    for (unsigned i = 0; i < plan->source_count; i++)
        if (!is_here(&plan->sources[i], refusal))
            return false;
    for (size_t i = 0; plan->source_count > 0 && i < plan->target_count; i++)
        if (!has_source(plan, &plan->targets[i], refusal))
            return false;
    if (plan->server_pid > 0 && os_usage_of_family(plan->server_pid, &user_ns, &system_ns) < 0)
        return load_refuse(refusal, "--server-pid: there is no process %d", (int)plan->server_pid);
    return is_to_come(plan->start_at_unix_ns, refusal);
}
