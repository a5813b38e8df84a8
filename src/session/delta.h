/* SPDX-License-Identifier: MIT
 *
 * Compression dictionaries (RFC 9842). An answer below a rule with `dictionary` says that the
 * client may keep it as a dictionary. A client that has done so gets a later version as the
 * difference (site/delta.h). Until the difference is made, it gets what any client gets.
 *
 * Only connections with TLS take part (RFC 9842 section 9). On a plain connection, a third party
 * could choose the dictionary. And only files that every client may have take part. So a difference
 * has no bytes of a file behind a password, a network or another action of a rule.
 *
 * Private to session/.
 */
#pragma once

#include "session/answer.h"
#include "session/head.h"

/* Whether the answer with the entry depends on Available-Dictionary. A page that is there in
 * Markdown, too, takes no part. */
bool session_delta_concerns(const struct session_exchange *x, const struct site_entry *entry);

/* A lookup has found *entry for the request below x->match. Announces it as a dictionary, and puts
 * the difference that the client can use in its place. *fresh: it is not published yet. Returns
 * whether *entry is a difference. */
bool session_delta_choose(struct session_exchange *x, struct site_entry **entry, bool *fresh);

/* Publishes the entry that session_delta_choose has left, if it is fresh. Then the compressor gets
 * a file that the client may keep as a dictionary. It gets no entry before, because an entry may
 * move when it is published: *entry is where it is afterwards. */
enum session_publication session_delta_publish(const struct session_exchange *x,
                                               struct site_entry **entry, bool fresh);
