/* SPDX-License-Identifier: MIT
 *
 * Finds the server whose statistics a command reads.
 */
#pragma once

#include "program/command.h"
#include "stats/snapshot.h"

/* The outcome of a search. */
enum program_instance_found {
    PROGRAM_INSTANCE_ONE,
    PROGRAM_INSTANCE_NONE,       /* there is no such server */
    PROGRAM_INSTANCE_SEVERAL,    /* several run, and none is named */
    PROGRAM_INSTANCE_MISNAMED,   /* the argument is no process id */
    PROGRAM_INSTANCE_UNREADABLE, /* its statistics cannot be read */
};

/* The exit status for an outcome. */
static inline int program_instance_status(enum program_instance_found found)
{
    if (found == PROGRAM_INSTANCE_ONE)
        return PROGRAM_OK;
    return found == PROGRAM_INSTANCE_SEVERAL || found == PROGRAM_INSTANCE_MISNAMED ? PROGRAM_USAGE
                                                                                   : PROGRAM_FAILED;
}

/* Finds the server with the process id `argument`, running or dead; NULL: the only server that
 * this user runs. Gives a snapshot, and sets `ret_instance` to where its segment is. On an error
 * it prints a message for `weir command` on standard error; the snapshot is NULL then. */
enum program_instance_found program_instance_find(const char *command, const char *argument,
                                                  struct stats_snapshot **ret_snapshot,
                                                  struct stats_instance *ret_instance);

/* Prints the servers that this user runs, one a line: process id, model, addresses. Returns how
 * many there are. */
unsigned program_instance_list(FILE *out);

/* Gives a snapshot of the server of this user that started last and runs; NULL: none runs. It
 * prints nothing. */
struct stats_snapshot *program_instance_newest(struct stats_instance *ret_instance);
