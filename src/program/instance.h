/* SPDX-License-Identifier: MIT
 *
 * Finds the server whose statistics a command reads.
 */
#pragma once

#include "program/command.h"
#include "stats/snapshot.h"

/* Finds the server with the process id `argument`, running or dead; NULL: the only server that
 * this user runs. Gives a snapshot, and sets `ret_instance` to where its segment is. On an error
 * it prints a message for `weir command` and returns the exit status; the snapshot is NULL
 * then. */
int program_instance_find(const char *command, const char *argument,
                          struct stats_snapshot **ret_snapshot,
                          struct stats_instance *ret_instance);

/* Gives a snapshot of the server of this user that started last and runs; NULL: none runs. It
 * prints nothing. */
struct stats_snapshot *program_instance_newest(struct stats_instance *ret_instance);
