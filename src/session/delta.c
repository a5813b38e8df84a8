/* SPDX-License-Identifier: MIT */
#include "session/delta.h"

#include "http/accept.h"
#include "session/guard.h"
#include "session/rules.h"
#include "session/tally.h"
#include "session/variant.h"
#include "site/delta.h"

_Static_assert((int)HTTP_ACCEPT_DIGEST == (int)SITE_CODER_DIGEST, "both are a SHA-256");

bool session_delta_concerns(const struct session_exchange *x, const struct site_entry *entry)
{
    return entry->delta || (x->match && x->match->dictionary && !x->match->gate && !x->access &&
                            !entry->has_markdown && site_delta_suits(entry));
}

/* For the compressor: whether the file at `path` has the same rule about dictionaries, and every
 * client may have it. A function of the configuration alone, which all threads only read. */
static bool admits_every_client(const void *site_, const void *rule, struct span path)
{
    const struct session_site *site = site_;
    struct rules_match match;
    rules_find(site->rules, path, &match);
    if (match.dictionary != rule || match.gate || (match.actor && !match.actor->if_absent))
        return false;
    return !site->access ||
           (site->access_by_path &&
            !session_guard_rule(site->rules, site_options(site->site)->index, path));
}

/* Whether the client takes the difference in place of every other form. */
static bool prefers_delta(const struct session_exchange *x)
{
    char storage[SESSION_LIST_MAX];
    const struct span field = http_request_list(x->request, x->head, HTTP_FIELD_ACCEPT_ENCODING,
                                                storage, sizeof(storage));
    const int weight = http_accept_named_weight(field, SPAN("dcz"));
    const struct http_accept_weights others = http_accept_weigh(field);
    for (unsigned i = 0; i < HTTP_CODING_COUNT; i++)
        if (others.of[i] > weight)
            return false;
    return weight > 0;
}

/* Whether the answer without a difference is a 304. The compressor would make a difference from the
 * file to itself for a client that has the file already. */
static bool is_unchanged(const struct session_exchange *x, struct site_entry *entry)
{
    if (!http_request_has(x->request, HTTP_FIELD_IF_NONE_MATCH))
        return false;
    return session_variant_precondition(x, session_variant_choose(x, entry)) ==
           HTTP_ANSWER_NOT_MODIFIED;
}

/* NULL: the client has no dictionary that is known, or the difference is not made or too large. */
static struct site_entry *find_delta(const struct session_exchange *x, struct site_entry *entry,
                                     bool *ret_new)
{
    struct site_delta_request request = { .family = x->match->dictionary,
                                          .admits = admits_every_client,
                                          .context = x->site };
    if (!http_request_has(x->request, HTTP_FIELD_AVAILABLE_DICTIONARY) ||
        http_request_repeats(x->request, HTTP_FIELD_AVAILABLE_DICTIONARY) ||
        !http_accept_dictionary(
            http_request_field(x->request, x->head, HTTP_FIELD_AVAILABLE_DICTIONARY),
            request.digest) ||
        entry->no_transform || !prefers_delta(x) || session_variant_wants_stored(x) ||
        is_unchanged(x, entry))
        return NULL;
    struct site_entry *delta = site_delta_find(x->thread->shared->compressor, x->thread->reader,
                                               entry, &request, x->thread->now_ns, ret_new);
    if (!delta)
        session_tally_follow_cache(x->thread->shared);
    return delta;
}

bool session_delta_choose(struct session_exchange *x, struct site_entry **entry, bool *fresh)
{
    struct site_compressor *compressor = x->thread->shared->compressor;
    bool is_new;
    if (!x->secure || !session_delta_concerns(x, *entry))
        return false;
    x->dictionary_line = &x->match->dictionary->dictionary_line;
    if (!compressor || *fresh) /* a trace has none; this request publishes a fresh entry */
        return false;
    struct site_entry *delta = find_delta(x, *entry, &is_new);
    if (!delta)
        return false;
    *entry = delta;
    *fresh = is_new;
    return true;
}

enum session_publication session_delta_publish(const struct session_exchange *x,
                                               struct site_entry **entry, bool fresh)
{
    struct site_compressor *compressor = x->thread->shared->compressor;
    const enum session_publication published = fresh ? session_head_publish(x, entry)
                                                     : SESSION_PUBLISHED;
    if (published == SESSION_PUBLISHED && compressor && x->dictionary_line && !(*entry)->delta)
        site_delta_note(compressor, *entry, x->match->dictionary);
    return published;
}
