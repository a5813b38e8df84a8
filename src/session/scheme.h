/* SPDX-License-Identifier: MIT
 *
 * Answers that the scheme of a connection decides, before the path is looked up. A plain request
 * may have to go to https.
 *
 * Private to session/.
 */
#pragma once

#include "session/answer.h"

/* Answers with 308, or returns false. The target of the request is resolved, and its site
 * is known. */
bool session_scheme_answers(struct session_exchange *x);
