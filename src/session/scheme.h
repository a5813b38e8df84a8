/* SPDX-License-Identifier: MIT
 *
 * Answers that the scheme of a request decides, before the path is looked up. A plain request may
 * have to go to https. A request over TLS may be for a site that the certificate does not cover.
 *
 * Private to session/.
 */
#pragma once

#include "session/answer.h"

/* Whether session_scheme_answers will answer. */
bool session_scheme_decides(const struct session_exchange *x);

/* Whether the path is below /.well-known/acme-challenge/. */
bool session_scheme_is_challenge(const struct session_exchange *x);

/* Answers with 308 or 421, or returns false. The target of the request is resolved, and its site
 * is known. */
bool session_scheme_answers(struct session_exchange *x);
