/* SPDX-License-Identifier: MIT
 *
 * The terminal on standard input and output, of which a process has one. It is taken over, shows
 * a canvas, gives keys, and is restored as it was. ncurses does the work.
 *
 * A process that dies of a fault of its own restores the terminal, too. After SIGKILL, which no
 * process can catch, reset(1) helps.
 */
#pragma once

#include "base/check.h"
#include "top/canvas.h"

/* Takes the terminal over. Returns 0; -ENOTTY: not a terminal; -ENOENT: its type is unknown, or it
 * cannot move its cursor. */
MUST_USE int top_terminal_open(void);

/* Restores the terminal. Idempotent. */
void top_terminal_close(void);

/* Restores the terminal for a while (SIGTSTP), and takes it over again, empty. */
void top_terminal_leave(void);
void top_terminal_return(void);

/* Whether the locale has characters beyond ASCII. */
bool top_terminal_unicode(void);

/* Reads the present size of the terminal. The next canvas is drawn completely. */
void top_terminal_measure(unsigned *ret_rows, unsigned *ret_columns);

/* Draws the cells that differ from what the terminal shows. */
void top_terminal_show(const struct top_canvas *canvas);

/* The next key (state.h); 0: no key waits. */
unsigned top_terminal_key(void);
