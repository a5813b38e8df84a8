/* SPDX-License-Identifier: MIT
 *
 * Answers as they arrive on a user's connection: received, decrypted where it uses TLS, parsed and
 * counted.
 */
#pragma once

#include "load/user.h"

#include <stdbool.h>

/* Receives until nothing is left, or until other users must have their turn. `to_its_end`: the
 * server has closed its side. false: the connection is closed, and its requests have ended. */
bool load_answer_receive(struct load_thread *thread, struct load_user *user, bool to_its_end);
