/* SPDX-License-Identifier: MIT */
#include "load/recall.h"

enum http_parse load_recall_parse(struct load_recall *recall, uint32_t target,
                                  struct http_response *response, struct span bytes,
                                  bool head_method)
{
    struct load_recalled *known = &recall->head[target % LOAD_RECALL_HEADS];
    size_t len = known->response.head_len;
    /* A head ends with its empty line: what begins with a whole one is that one. */
    if (len > 0 && len <= bytes.len && memcmp(known->bytes, bytes.at, len) == 0) {
        *response = known->response;
        return HTTP_PARSED;
    }
    *response = (struct http_response){ 0 };
    enum http_parse result = http_response_parse(response, bytes, head_method);
    if (result == HTTP_PARSED && response->head_len <= LOAD_RECALL_MAX) {
        known->response = *response;
        memcpy(known->bytes, bytes.at, response->head_len);
    }
    return result;
}
