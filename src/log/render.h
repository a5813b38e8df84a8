/* SPDX-License-Identifier: MIT
 *
 * Writing a line with a layout (log/layout.h): first all its values are found and measured, and
 * then they are written between the literal text.
 *
 * Private to log/.
 */
#pragma once

#include "log/access.h"
#include "log/layout.h"

/* A line that is measured. The values that weir writes itself are in `own`. */
struct log_render {
    const struct log_layout *layout;
    struct log_text text[LOG_TEXTS_MAX];
    char own[LOG_TEXTS_MAX][LOG_OWN_MAX];
};

/* Measures a line of at most `line_max` bytes, and cuts its texts if they are longer. Returns the
 * most bytes that it takes. Borrows what the spans point to until log_render_put. `moment` is kept
 * between calls, zeroed at first. */
size_t log_render_measure(struct log_render *render, const struct log_layout *layout,
                          const struct log_access_line *line,
                          const struct log_access_details *details, struct log_moment *moment,
                          size_t line_max);

/* Writes the line to `out`, and returns its end. */
char *log_render_put(const struct log_render *render, char *out);
