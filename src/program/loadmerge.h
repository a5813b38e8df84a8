/* SPDX-License-Identifier: MIT
 *
 * `weir load merge FILE...`: the results of several machines as one.
 */
#pragma once

/* `arguments` are those behind `merge`, NULL at the end. Returns the exit status. */
int program_load_merge(const char *const *arguments);
