/* SPDX-License-Identifier: MIT
 *
 * Which server a command reads the statistics of.
 */
#pragma once

#include "program/command.h"
#include "stats/reader.h"

/* The one that `argument` names by its process id, running or dead; without one, the only one that
 * this user runs. Gives its snapshot and where its segment is. What is wrong is told on standard
 * error, with the name of the command, and returned as an exit status; the snapshot is
 * NULL then. */
int program_instance_find(const struct program_command *command, const char *argument,
                          struct stats_snapshot **ret_snapshot,
                          struct stats_instance *ret_instance);

/* The server of this user that was started last and runs; NULL: there is none. Tells nothing. */
struct stats_snapshot *program_instance_newest(struct stats_instance *ret_instance);
