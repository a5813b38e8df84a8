/* SPDX-License-Identifier: MIT
 *
 * The pages of files that answers send. A loop sends a range of a file only when its pages are in
 * memory. Otherwise a task reads them in a fetching thread (task/task.h), and only that answer
 * waits. Threads that serve one connection have no `home`, and wait in their calls.
 *
 * A range is judged by a few of its pages, read without waiting (RWF_NOWAIT). Pages that a thread
 * has found in memory are not judged again for half a second. So a file that is often sent costs no
 * further system calls. Pages can leave the memory before they are sent. Then the loop waits for
 * the disk, as for every page fault.
 *
 * A file system may not support such reads. Files in memory are then ready at once, and all others
 * are read by a task first (overlayfs, network file systems).
 *
 * Private to session/.
 */
#pragma once

#include "session/answer.h"

/* Copies bytes of a file to `to`. False when they are not in memory, or have changed. */
bool session_pages_copy(struct session_thread *thread, const struct site_file *file, uint64_t at,
                        size_t len, char *to);

/* How many bytes of the answer's file can be read now, from its `file_at` on. 0: session_pages_wait
 * comes first. The last SESSION_TAIL_BYTES of a file are ready together. */
uint64_t session_pages_ready(struct session_thread *thread, struct session_answer *answer);

/* The answer waits for the next pages of its file: they are read in another thread. When they are
 * ready, session_thread_next_ready returns the session. May be called again while it waits. */
void session_pages_wait(struct session *s, struct session_answer *answer, uint64_t now_ns);

/* Whether the answer waits no longer. Then it has its pages, or the disk took longer than
 * SESSION_PENDING_NS, which *ret_late says. Submits the task again that found no place. */
bool session_pages_is_over(struct session *s, struct session_answer *answer, uint64_t now_ns,
                           bool *ret_late);

/* While the answer waits: when session_pages_is_over must be called at the latest. */
uint64_t session_pages_due_ns(const struct session_answer *answer);

/* The answer waits no longer, whether or not its pages are there. Accepts an answer that does not
 * wait. */
void session_pages_drop(struct session_answer *answer);

/* Frees what a thread remembers. Accepts NULL. */
struct session_pages_known;
void session_pages_forget(struct session_pages_known *known);
