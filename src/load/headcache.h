/* SPDX-License-Identifier: MIT
 *
 * A cache of response heads that were parsed before. The answers of a server for one target have
 * the same head until its Date changes, and the same bytes mean the same. A comparison takes a
 * tenth of the time of parsing.
 */
#pragma once

#include "base/check.h"
#include "http/response.h"

enum { LOAD_HEADCACHE_HEADS = 8, LOAD_HEADCACHE_MAX = 1000 };

/* Zero it before the first call. `head_method` must be the same in all calls. */
struct load_headcache {
    struct load_headcache_entry {
        struct http_response response;
        char bytes[LOAD_HEADCACHE_MAX];
    } head[LOAD_HEADCACHE_HEADS];
};

/* The last response of target number `target`, or of another one that shares its place; zeroed:
 * none. Lent until the next load_headcache_parse. */
static inline const struct http_response *load_headcache_known(const struct load_headcache *cache,
                                                               uint32_t target)
{
    return &cache->head[target % LOAD_HEADCACHE_HEADS].response;
}

/* As http_response_parse of a response that was zeroed, of target number `target`. */
MUST_USE static inline enum http_parse load_headcache_parse(struct load_headcache *cache,
                                                            uint32_t target,
                                                            struct http_response *response,
                                                            struct span bytes, bool head_method)
{
    struct load_headcache_entry *known = &cache->head[target % LOAD_HEADCACHE_HEADS];
    size_t len = known->response.head_len;
    /* A head ends with its empty line, so bytes that begin with a whole head begin with that
     * head. */
    if (len > 0 && len <= bytes.len && memcmp(known->bytes, bytes.at, len) == 0) {
        *response = known->response;
        return HTTP_PARSED;
    }
    *response = (struct http_response){ 0 };
    enum http_parse result = http_response_parse(response, bytes, head_method);
    if (result == HTTP_PARSED && response->head_len <= LOAD_HEADCACHE_MAX) {
        known->response = *response;
        memcpy(known->bytes, bytes.at, response->head_len);
    }
    return result;
}
