/* SPDX-License-Identifier: MIT
 *
 * The terminal: taken over, shown a canvas, asked for keys, and given back as it was. There is one
 * for a process, on standard input and output; ncurses does the talking.
 *
 * While it is taken over, a process that dies of a fault of its own gives it back, too. What
 * nobody can catch, SIGKILL, leaves it to reset(1).
 */
#pragma once

#include "base/check.h"
#include "top/canvas.h"

/* Takes it over. 0, or -ENOTTY: this is no terminal; -ENOENT: one of a kind that is unknown, or
 * that cannot move its cursor. */
MUST_USE int top_terminal_open(void);

/* Gives it back. Idempotent. */
void top_terminal_close(void);

/* Gives it back for a while, and takes it over once more, with nothing on it. */
void top_terminal_leave(void);
void top_terminal_return(void);

/* Whether it writes more than ASCII, by the locale. */
bool top_terminal_unicode(void);

/* Its size now, which also becomes that of what is drawn: everything is shown anew. */
void top_terminal_measure(unsigned *ret_rows, unsigned *ret_columns);

/* Brings to it what is different from what it shows. */
void top_terminal_show(const struct top_canvas *canvas);

/* The next key (state.h); 0: none waits. */
unsigned top_terminal_key(void);
