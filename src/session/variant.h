/* SPDX-License-Identifier: MIT
 *
 * Which form of a file answers a request: the plain file, a stored sibling, or a variant that the
 * server has made (RFC 9110 section 12.5.3). A variant that is missing is requested from the
 * compressor here, and the plain file is sent meanwhile.
 *
 * Private to session/.
 */
#pragma once

#include "http/precondition.h"
#include "session/answer.h"

/* Among the forms that the client weighs equally, the smallest one wins. A variant that the server
 * made answers no request for a range and none that says `no-transform` (RFC 9111 section
 * 5.2.1.6). `entry` is as for session_answer_entry. */
const struct site_file *session_variant_choose(const struct session_exchange *x,
                                               struct site_entry *entry);

/* What the preconditions of the request say of this form (RFC 9110 section 13.2.2). */
enum http_precondition session_variant_precondition(const struct session_exchange *x,
                                                    const struct site_file *file);

/* Has the compressor read the open files of the entry that have no tag yet. */
void session_variant_request_tags(const struct session_exchange *x, struct site_entry *entry);

/* Whether the request has to be answered with bytes of the disk: it has a range, or forbids
 * transforming. */
bool session_variant_wants_stored(const struct session_exchange *x);
