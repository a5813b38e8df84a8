/* SPDX-License-Identifier: MIT */
#include "session/variant.h"

#include "http/accept.h"
#include "http/list.h"
#include "session/tally.h"
#include "session/trace.h"
#include "site/compressor.h"

_Static_assert((int)HTTP_CODING_BR == (int)SITE_BR && (int)HTTP_CODING_ZSTD == (int)SITE_ZSTD &&
                   (int)HTTP_CODING_GZIP == (int)SITE_GZIP &&
                   (int)HTTP_CODING_IDENTITY == (int)SITE_PLAIN,
               "a coding is the number of its variant");

static bool forbids_transforming(const struct session_exchange *x)
{
    char storage[SESSION_LIST_MAX];
    struct span element, field = http_request_list(x->request, x->head, HTTP_FIELD_CACHE_CONTROL,
                                                   storage, sizeof(storage));
    while (http_list_next(&field, &element))
        if (span_equal_nocase(element, SPAN("no-transform")))
            return true;
    return false;
}

/* With one of these fields the answer may have to be the file as it is on the disk. */
enum { FIELDS_FOR_STORED = 1u << HTTP_FIELD_RANGE | 1u << HTTP_FIELD_CACHE_CONTROL };

bool session_variant_wants_stored(const struct session_exchange *x)
{
    const bool ranged = x->request->method == HTTP_GET &&
                        http_request_has(x->request, HTTP_FIELD_RANGE);
    return ranged ||
           (http_request_has(x->request, HTTP_FIELD_CACHE_CONTROL) && forbids_transforming(x));
}

static void count_refusal(const struct session_exchange *x, enum site_compressor_reply reply)
{
    stats_writer_add(&x->thread->stats, STATS_compress_queue_refused,
                     reply == SITE_COMPRESSOR_QUEUE_FULL);
    stats_writer_add(&x->thread->stats, STATS_compress_share_refused,
                     reply == SITE_COMPRESSOR_SHARE_IN_USE);
}

/* Requests the missing form that the client would take, unless that is one that is made now. */
static __attribute__((noinline)) void request_missing(const struct session_exchange *x,
                                                      struct site_entry *entry,
                                                      const struct http_accept_weights *weights,
                                                      unsigned available)
{
    struct site_compressor *compressor = x->thread->shared->compressor;
    const unsigned awaited = site_compressor_awaited(entry);
    const unsigned best = http_accept_best(weights, available | awaited);
    const unsigned wanted = best & (0u - best); /* usually the smallest of those */
    if ((wanted & awaited) != 0)
        return;
    session_trace_note(x, wanted, wanted);
    if (!compressor)
        return;
    const enum site_compressor_reply reply = site_compressor_request(compressor, entry, wanted);
    count_refusal(x, reply);
    if (reply != SITE_COMPRESSOR_SHARE_IN_USE)
        return;
    site_compressor_make_space(compressor, x->thread->reader, x->thread->now_ns);
    session_tally_follow_cache(x->thread->shared);
}

void session_variant_request_tags(const struct session_exchange *x, struct site_entry *entry)
{
    struct site_compressor *compressor = x->thread->shared->compressor;
    if (compressor && atomic_load_explicit(&entry->untagged, memory_order_relaxed) != 0)
        count_refusal(x, site_compressor_request_tags(compressor, entry));
}

static enum http_coding smallest_of(const struct site_entry *entry, unsigned forms)
{
    int smallest = __builtin_ctz(forms);
    for (unsigned rest = forms & (forms - 1); rest != 0; rest &= rest - 1) {
        const int v = __builtin_ctz(rest);
        if (site_entry_file(entry, v)->size < site_entry_file(entry, smallest)->size)
            smallest = v;
    }
    return (enum http_coding)smallest;
}

const struct site_file *session_variant_choose(const struct session_exchange *x,
                                               struct site_entry *entry)
{
    session_trace_note(x, coding, HTTP_CODING_IDENTITY);
    if (!entry->negotiable || !http_request_has(x->request, HTTP_FIELD_ACCEPT_ENCODING))
        return entry->plain;
    char storage[SESSION_LIST_MAX];
    const struct span field = http_request_list(x->request, x->head, HTTP_FIELD_ACCEPT_ENCODING,
                                                storage, sizeof(storage));
    const struct http_accept_weights weights = http_accept_weigh(field);
    unsigned missing = atomic_load_explicit(&entry->missing, memory_order_relaxed);
    unsigned forms = entry->variants;
    if (__builtin_expect((x->request->present & FIELDS_FOR_STORED) != 0, 0) &&
        session_variant_wants_stored(x)) {
        forms &= ~(unsigned)entry->made;
        missing = 0;
    }
    unsigned best = http_accept_best(&weights, forms | missing);
    if (__builtin_expect((best & (0u - best) & missing) != 0, 0)) {
        request_missing(x, entry, &weights, forms | missing);
        best = http_accept_best(&weights, forms);
    }
    const enum http_coding coding = smallest_of(entry, best & forms);
    session_trace_note(x, coding, coding);
    return site_entry_file(entry, (int)coding);
}

enum http_precondition session_variant_precondition(const struct session_exchange *x,
                                                    const struct site_file *file)
{
    const struct http_validators current = { site_file_etag(file),
                                             site_file_last_modified_s(file) };
    return http_precondition_evaluate(x->request, x->head, current, x->thread->wall_s);
}
