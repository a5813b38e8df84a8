/* SPDX-License-Identifier: MIT
 *
 * Answers that the scheme of a connection decides, before the path is looked up. A plain request
 * may have to go to https. A request over TLS may be for a site that the certificate does not
 * cover.
 *
 * Private to session/.
 */
#pragma once

#include "session/answer.h"

/* Answers with 308 or 421, or returns false. The target of the request is resolved, and its site
 * is known. */
bool session_scheme_answers(struct session_exchange *x);
