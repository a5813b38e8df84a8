/* SPDX-License-Identifier: MIT */
#include "session/markdown.h"

#include "base/buf.h"
#include "http/accept.h"
#include "session/fetch.h"
#include "session/rules.h"

#include <limits.h>

/* Begins the key of an entry that answers for another path. The digest of the rules and the path
 * follow. */
static const struct span prefix = SPAN("markdown ");

struct span session_markdown_location(const struct site_entry *entry)
{
    const struct span key = site_cache_key(&entry->cache);
    const char *path = span_starts(key, prefix) ? memchr(key.at, '/', key.len) : NULL;
    return path ? span_skip(key, (size_t)(path - key.at)) : SPAN("");
}

/* Browsers name HTML first, and most other clients name nothing. Both are seen without a parse. */
static bool names_html_first(struct span accept)
{
    return span_starts(accept, SPAN("text/html,")) || span_equal(accept, SPAN("*/*"));
}

bool session_markdown_is_preferred(const struct session_exchange *x)
{
    char storage[SESSION_LIST_MAX];
    if (!http_request_has(x->request, HTTP_FIELD_ACCEPT) ||
        (!http_request_repeats(x->request, HTTP_FIELD_ACCEPT) &&
         names_html_first(http_request_field(x->request, x->head, HTTP_FIELD_ACCEPT))))
        return false;
    const struct span accept =
        http_request_list(x->request, x->head, HTTP_FIELD_ACCEPT, storage, sizeof(storage));
    return http_accept_prefers(accept, SPAN("text/markdown"), SPAN("text/html"));
}

bool session_markdown_find(struct session_exchange *x, const struct site_entry *page,
                           const struct rules_match *match, struct site_entry **ret_entry,
                           bool *ret_new)
{
    char bytes[sizeof("markdown ") + RULES_DIGEST_MAX + PATH_MAX + sizeof("/.md")];
    struct buf key = buf_over(bytes, sizeof(bytes));
    struct site_view storage;
    if (match && !session_rules_restrict_alike(x, match, site_entry_markdown(page)))
        return false;
    buf_add(&key, prefix);
    if (match)
        rules_add_digest(x->site->rules, match, &key);
    buf_add(&key, site_entry_markdown(page));
    struct site_query query = {
        .kind = SITE_QUERY_PATH,
        .view = session_rules_view(x, &storage),
        .path = site_entry_markdown(page),
        .key = buf_span(&key),
    };
    return session_fetch_find(x, &query, ret_entry, ret_new) == SITE_FILE;
}
