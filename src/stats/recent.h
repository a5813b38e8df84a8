/* SPDX-License-Identifier: MIT
 *
 * The last answers that failed, were slow or were cut, with their paths, so that what fails right
 * now can be seen without a log. All writers of an arena share its rings. Adding takes no lock and
 * makes no system call. It is off the usual path: other answers are not added.
 *
 * A worker can store anything in its arena, so a reader checks each answer and believes none.
 */
#pragma once

#include "stats/writer.h"

/* An answer in a ring. Zeroed: none. */
struct stats_recent_note {
    struct stats_recent *place;
    uint64_t number;
};

/* Adds an answer. Has no effect when no reader would see it. Any thread. */
struct stats_recent_note stats_recent_add(const struct stats_writer *writer,
                                          enum stats_recent_kind kind,
                                          const struct stats_answer *answer);

/* Replaces the duration of an answer that is still in its ring. */
void stats_recent_set_duration(const struct stats_recent_note *note, uint64_t duration_ns);

/* Reads a place of a copied ring. False: it is empty, was being written, or is not believed. */
bool stats_recent_read(const struct stats_recent *place, struct stats_answer *ret_answer);
