/* SPDX-License-Identifier: MIT */
#include "session/tally.h"

#include "session/answer.h"
#include "session/thread.h"
#include "session/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>
#include <strings.h>

/* ---- of the process ---- */

void session_tally_init(struct session_totals *totals, struct session_shared *shared)
{
    *totals = (struct session_totals){ 0 };
    if (!shared->stats)
        return;
    CHECK(pthread_mutex_init(&totals->lock, NULL) == 0);
    stats_writer_open(&totals->stats, shared->stats);
    stats_writer_set(&totals->stats, STATS_cache_limit_bytes,
                     site_cache_totals(shared->cache).limit_bytes);
    shared->totals = totals;
}

void session_tally_done(struct session_totals *totals)
{
    if (!totals->stats.block)
        return;
    stats_writer_close(&totals->stats);
    CHECK(pthread_mutex_destroy(&totals->lock) == 0);
}

static void publish_misses(struct session_totals *totals, const struct site_cache_totals *cache)
{
    static const enum stats_counter counters[SITE_CACHE_SIZES] = {
        [SITE_CACHE_HALF] = STATS_cache_misses_half,
        [SITE_CACHE_SAME] = STATS_cache_misses_same,
        [SITE_CACHE_DOUBLE] = STATS_cache_misses_double,
        [SITE_CACHE_QUADRUPLE] = STATS_cache_misses_quadruple,
    };
    for (unsigned i = 0; i < SITE_CACHE_SIZES; i++) {
        stats_writer_add(&totals->stats, counters[i], cache->misses[i] - totals->misses[i]);
        totals->misses[i] = cache->misses[i];
    }
}

void session_tally_publish(struct session_shared *shared)
{
    struct session_totals *totals = shared->totals;
    if (!totals)
        return;
    CHECK(pthread_mutex_lock(&totals->lock) == 0);
    struct site_cache_totals cache = site_cache_totals(shared->cache);
    uint64_t dropped = atomic_load_explicit(&shared->log->dropped, memory_order_relaxed);
    stats_writer_set(&totals->stats, STATS_cache_entries, cache.entries);
    stats_writer_set(&totals->stats, STATS_cache_bytes, cache.bytes);
    stats_writer_add(&totals->stats, STATS_cache_evictions, cache.evicted - totals->evictions);
    stats_writer_add(&totals->stats, STATS_log_lines_dropped, dropped - totals->dropped);
    publish_misses(totals, &cache);
    totals->evictions = cache.evicted;
    totals->dropped = dropped;
    CHECK(pthread_mutex_unlock(&totals->lock) == 0);
}

void session_tally_follow_cache(struct session_shared *shared)
{
    if (__builtin_expect(site_cache_has_shrunk(shared->cache), 0))
        session_tally_publish(shared);
}

void session_tally_count(const struct session_shared *shared, enum stats_counter counter)
{
    struct session_totals *totals = shared->totals;
    if (!totals)
        return;
    CHECK(pthread_mutex_lock(&totals->lock) == 0);
    stats_writer_add(&totals->stats, counter, 1);
    CHECK(pthread_mutex_unlock(&totals->lock) == 0);
}

void session_tally_inherit(struct session_thread *thread)
{
    struct session_totals *totals = thread->shared->totals;
    if (!totals)
        return;
    totals->stats = thread->stats;
    struct site_cache_totals cache = site_cache_totals(thread->shared->cache);
    totals->evictions = cache.evicted;
    memcpy(totals->misses, cache.misses, sizeof(totals->misses));
    totals->dropped = atomic_load_explicit(&thread->shared->log->dropped, memory_order_relaxed);
}

/* ---- of answers ---- */

static enum stats_counter protocol_of(const struct session_exchange *x)
{
    return x->request && x->request->minor == 0 ? STATS_requests_http_1_0 : STATS_requests_http_1_1;
}

static inline void count_request(struct session_exchange *x, enum stats_counter protocol)
{
    stats_writer_add(&x->thread->stats, protocol, 1);
    if (x->session->answers++ > 0)
        stats_writer_add(&x->thread->stats, STATS_requests_reusing, 1);
}

void session_tally_begun(struct session_exchange *x)
{
    count_request(x, STATS_requests_http_2);
}

static inline void add_to_group(struct session_buffer *out, uint64_t began_ns, unsigned site)
{
    struct session_group *last = out->group_count > 0 ? &out->group[out->group_count - 1] : NULL;
    if (last && last->began_ns == began_ns && last->site == site) {
        last->count++;
        return;
    }
    CHECK(out->group_count < SESSION_GROUPS_MAX);
    out->group[out->group_count++] = (struct session_group){ began_ns, site, 1 };
}

void session_tally_ends(struct session_buffer *out, uint64_t began_ns, unsigned site)
{
    add_to_group(out, began_ns, site);
}

void session_tally_staged(struct session_exchange *x, unsigned site)
{
    count_request(x, protocol_of(x));
    add_to_group(x->out, x->began_ns, site);
}

void session_tally_answer(const struct stats_writer *stats, unsigned site, unsigned status,
                          uint64_t body_bytes)
{
    stats_writer_add(stats, STATS_requests, 1);
    stats_writer_add(stats, STATS_STATUS_FIRST + stats_counters_status_place(status), 1);
    stats_writer_add(stats, STATS_body_bytes, body_bytes);
    if (__builtin_expect(
            status == HTTP_NOT_IMPLEMENTED || status == HTTP_HTTP_VERSION_NOT_SUPPORTED, 0))
        stats_writer_add(stats, STATS_answers_5xx_expected, 1);
    if (!stats_writer_visible(stats))
        return;
    struct stats_row *row = stats_writer_row(stats, site);
    if (!row)
        return;
    stats_writer_add_to_cell(&row->requests, 1);
    stats_writer_add_to_cell(&row->by_class[status / 100 - 1], 1);
    stats_writer_add_to_cell(&row->body_bytes, body_bytes);
}

void session_tally_set_active(struct session *s, bool active)
{
    if (s->active == active)
        return;
    s->active = active;
    stats_writer_add(&s->thread->stats, active ? STATS_activities_begun : STATS_activities_ended,
                     1);
}

/* ---- of TLS ---- */

/* Something on which client and server agree, by OpenSSL's name. */
struct agreed_name {
    const char *name;
    enum stats_counter counter;
};

static const struct agreed_name suites[] = {
    { "TLS_AES_128_GCM_SHA256", STATS_tls_1_3_aes_128 },
    { "TLS_AES_256_GCM_SHA384", STATS_tls_1_3_aes_256 },
    { "TLS_CHACHA20_POLY1305_SHA256", STATS_tls_1_3_chacha20 },
    { "ECDHE-ECDSA-AES128-GCM-SHA256", STATS_tls_1_2_ecdsa_aes_128 },
    { "ECDHE-ECDSA-AES256-GCM-SHA384", STATS_tls_1_2_ecdsa_aes_256 },
    { "ECDHE-ECDSA-CHACHA20-POLY1305", STATS_tls_1_2_ecdsa_chacha20 },
    { "ECDHE-RSA-AES128-GCM-SHA256", STATS_tls_1_2_rsa_aes_128 },
    { "ECDHE-RSA-AES256-GCM-SHA384", STATS_tls_1_2_rsa_aes_256 },
    { "ECDHE-RSA-CHACHA20-POLY1305", STATS_tls_1_2_rsa_chacha20 },
};

static const struct agreed_name groups[] = {
    { "X25519MLKEM768", STATS_tls_group_x25519mlkem768 },
    { "x25519", STATS_tls_group_x25519 },
    { "secp256r1", STATS_tls_group_p256 },
    { "secp384r1", STATS_tls_group_p384 },
};

static void count_agreed(const struct stats_writer *stats, const struct agreed_name *names,
                         size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcasecmp(names[i].name, name) == 0) /* OpenSSL 3.0 and 3.5 differ in the case */
            stats_writer_add(stats, names[i].counter, 1);
}

void session_tally_handshake(const struct session *s, uint64_t took_ns)
{
    const struct stats_writer *stats = &s->thread->stats;
    const struct tls_agreement *agreed = &s->tls->agreed;
    stats_writer_add(stats, STATS_tls_handshakes, 1);
    stats_writer_add(stats, STATS_tls_resumed, agreed->resumed);
    stats_writer_add(stats, STATS_tls_version_1_3, strcmp(agreed->protocol, "TLSv1.3") == 0);
    count_agreed(stats, suites, sizeof(suites) / sizeof(suites[0]), agreed->cipher);
    count_agreed(stats, groups, sizeof(groups) / sizeof(groups[0]), agreed->group);
    if (stats_writer_visible(stats))
        stats_writer_record(stats, &stats->block->handshake, took_ns, 1);
}

static enum stats_counter failed_handshake(unsigned long error)
{
    int reason = ERR_GET_REASON(error);
    if (error == 0)
        return STATS_tls_failed_cut;
    if (reason >= SSL_AD_REASON_OFFSET)
        return STATS_tls_failed_alert;
    switch (reason) {
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_WRONG_SSL_VERSION:
    case SSL_R_VERSION_TOO_LOW:
        return STATS_tls_failed_version;
    case SSL_R_NO_SHARED_CIPHER:
    case SSL_R_NO_SUITABLE_KEY_SHARE:
    case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
    case SSL_R_NO_SUITABLE_GROUPS:
    case SSL_R_NO_SHARED_GROUPS:
        return STATS_tls_failed_cipher;
    default:
        return STATS_tls_failed_other;
    }
}

void session_tally_handshake_failed(const struct session *s, unsigned long error)
{
    stats_writer_add(&s->thread->stats, failed_handshake(error), 1);
}

/* ---- of HTTP/2 ---- */

static void count_http2_fault(const struct stats_writer *stats, enum http2_fault fault)
{
    if (fault != HTTP2_FAULT_NONE)
        stats_writer_add(stats, STATS_HTTP2_FAULT_FIRST + (unsigned)fault - 1, 1);
}

void session_tally_http2_failed(const struct stats_writer *stats, enum http2_fault fault)
{
    enum http2_error error = http2_fault_error(fault);
    count_http2_fault(stats, fault);
    if (error == HTTP2_ENHANCE_YOUR_CALM)
        stats_writer_add(stats, STATS_http2_floods, 1);
    else if (error != HTTP2_NO_ERROR && error != HTTP2_CANCEL && error != HTTP2_INTERNAL_ERROR)
        stats_writer_add(stats, STATS_http2_violations, 1);
}

void session_tally_http2_reset(const struct stats_writer *stats, enum http2_fault fault)
{
    count_http2_fault(stats, fault);
    stats_writer_add(stats, STATS_http2_resets_sent, 1);
    stats_writer_add(stats, STATS_http2_streams_refused, fault == HTTP2_FAULT_REFUSED);
}

/* ---- of durations ---- */

uint64_t session_tally_wait_ends(const struct session_thread *thread, uint64_t since_ns)
{
    const struct stats_writer *stats = &thread->stats;
    const uint64_t waited_ns = thread->now_ns > since_ns ? thread->now_ns - since_ns : 0;
    stats_writer_add(stats, STATS_fetch_waits_ended, 1);
    stats_writer_add(stats, STATS_fetch_waits_us, waited_ns / 1000);
    if (stats_writer_visible(stats))
        stats_writer_record(stats, &stats->block->disk_wait, waited_ns, 1);
    return waited_ns;
}

static void record(const struct stats_writer *stats, const struct session_group *group,
                   uint64_t now_ns)
{
    struct stats_row *row = stats_writer_row(stats, group->site);
    if (row)
        stats_writer_record(stats, &row->latency, now_ns - group->began_ns, group->count);
    else
        stats_writer_add(stats, STATS_durations_unrecorded, group->count);
}

/* Of answers that session/recent.h has noted. */
static void set_noted_durations(struct session_buffer *out, uint64_t now_ns)
{
    for (unsigned i = 0; i < out->noted_count; i++)
        if (now_ns > out->noted[i].began_ns)
            stats_recent_set_duration(&out->noted[i].note, now_ns - out->noted[i].began_ns);
    out->noted_count = 0;
}

void session_tally_sent(const struct stats_writer *stats, struct session_buffer *out,
                        uint64_t now_ns)
{
    if (!stats_writer_visible(stats))
        return;
    for (unsigned i = 0; i < out->group_count; i++)
        record(stats, &out->group[i], now_ns);
    if (__builtin_expect(out->noted_count > 0, 0))
        set_noted_durations(out, now_ns);
    if (__builtin_expect(out->delayed_ns != 0, 0))
        stats_writer_record(stats, &stats->block->sending, now_ns - out->delayed_ns, 1);
}

void session_tally_cut(const struct stats_writer *stats, const struct session_buffer *out)
{
    for (unsigned i = 0; i < out->group_count; i++)
        stats_writer_add(stats, STATS_answers_cut, out->group[i].count);
}
