/* SPDX-License-Identifier: MIT
 *
 * A page in Markdown, for clients that prefer it to HTML (RFC 9110 section 12.1): page.md answers
 * in place of page.html. Both answers say `Vary: Accept`. There is no 406, because the page in HTML
 * is more useful.
 *
 * The answer has the fields of the rules of the requested path. No rule may restrict page.md in
 * another way than the requested path, or the page in HTML answers. Every check of the lookup
 * applies to page.md, too.
 *
 * Private to session/.
 */
#pragma once

#include "session/answer.h"

/* Finds the page in Markdown that answers in place of `page`, an entry with a path in
 * `page->markdown`. Otherwise, and when the client does not prefer it, returns false. As for
 * site_find. `match` has the rules of the requested path, or is NULL when the site has none. */
bool session_markdown_find(struct session_exchange *x, const struct site_entry *page,
                           const struct rules_match *match, struct site_entry **ret_entry,
                           bool *ret_new);

/* The path of the file, if the entry is a page in Markdown that answers for other paths. Else
 * nothing. Lent as long as the entry. */
struct span session_markdown_location(const struct site_entry *entry);

/* Whether the request prefers Markdown to HTML. */
bool session_markdown_is_preferred(const struct session_exchange *x);
