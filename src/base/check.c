/* SPDX-License-Identifier: MIT
 *
 * The end of a process that found itself wrong. It formats nothing with stdio
 * and allocates nothing, since the heap may be what is broken.
 */
#include "base/check.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"

_Noreturn void check_failed(const char *condition, const char *file, int line)
{
    char storage[512];
    struct buf out = buf_over(storage, sizeof(storage) - 1); /* the newline always fits */

    buf_add(&out, SPAN("weir: "));
    buf_add(&out, span_text(file));
    buf_add_char(&out, ':');
    buf_add_u64(&out, (uint64_t)line);
    buf_add(&out, SPAN(": broken invariant: "));
    buf_add(&out, span_text(condition));
    storage[out.len++] = '\n';
    ssize_t written = write(STDERR_FILENO, out.at, out.len);
    (void)written; /* no process is left to report to */
    abort();
}
