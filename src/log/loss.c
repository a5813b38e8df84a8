/* SPDX-License-Identifier: MIT */
#include "log/loss.h"

#include "base/duration.h"
#include "log/error.h"

#include <inttypes.h>
#include <sys/mman.h>

struct log_loss *log_loss_new(void)
{
    void *memory = mmap(NULL, sizeof(struct log_loss), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory != MAP_FAILED ? memory : NULL;
}

void log_loss_add(struct log_loss *loss, uint64_t lines, const char *why, uint64_t now_ns)
{
    atomic_store(&loss->last_ns, now_ns);
    if (atomic_fetch_add(&loss->lines, lines) == 0)
        log_error(LOG_WARNING,
                  "lines of the access log are lost: %s; requests are answered meanwhile, and a "
                  "line here will report how many were lost",
                  why);
}

void log_loss_settle(struct log_loss *loss, uint64_t now_ns)
{
    if (now_ns - atomic_load(&loss->last_ns) < LOG_LOSS_CALM_S * DURATION_SECOND)
        return;
    const uint64_t lines = atomic_exchange(&loss->lines, 0);
    if (lines > 0)
        log_error(LOG_WARNING, "the access log is written again; %" PRIu64 " line%s lost", lines,
                  lines == 1 ? " was" : "s were");
}

void log_loss_end(struct log_loss *loss)
{
    if (loss == NULL)
        return;
    const uint64_t lines = atomic_load(&loss->lines);
    if (lines > 0)
        log_error(LOG_WARNING, "%" PRIu64 " line%s of the access log %s lost before the end", lines,
                  lines == 1 ? "" : "s", lines == 1 ? "was" : "were");
    (void)munmap(loss, sizeof(*loss));
}
