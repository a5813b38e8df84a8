/* SPDX-License-Identifier: MIT */
#include "config/rate.h"

#include "base/duration.h"
#include "base/num.h"

#include <string.h>

enum { SAVED_S = 10, HOUR_S = 3600 };

#define HOUR_NS (HOUR_S * DURATION_SECOND)

/* The seconds of the unit behind the slash. 0: it is unknown. */
static uint64_t unit_s(struct span unit)
{
    return span_equal(unit, SPAN("s"))   ? 1
           : span_equal(unit, SPAN("m")) ? 60
           : span_equal(unit, SPAN("h")) ? HOUR_S
                                         : 0;
}

bool config_rate_read(struct span text, uint64_t *ret_value)
{
    const char *slash = memchr(text.at, '/', text.len);
    const struct span number = span_first(text, slash ? (size_t)(slash - text.at) : text.len);
    const struct span unit = slash ? span_skip(text, number.len + 1) : SPAN("s");
    const uint64_t unit_seconds = unit_s(unit);
    uint64_t count;
    if (unit_seconds == 0 || !num_parse_u64(number, &count) || count > UINT32_MAX)
        return false;
    *ret_value = count * (HOUR_S / unit_seconds);
    return true;
}

bool config_rate_check(struct span text, uint64_t most, struct config_reason *ret_reason)
{
    uint64_t per_hour;
    if (config_rate_read(text, &per_hour) && per_hour <= most * HOUR_S)
        return true;
    return config_problem_refuse(
        ret_reason,
        "`%.*s` is not a rate up to %llu per second; write 5 (per second), "
        "30/m, 100/h, or 0 for no limit",
        config_problem_quote_len(text), text.at, (unsigned long long)most);
}

/* A rate above that of the server never decides. */
static void check_server(struct config_store *store, const struct config_item *item,
                         uint64_t per_hour)
{
    const uint64_t server = store->config.address_request_rate;
    if (server > 0 && per_hour > server * HOUR_S)
        config_problem_warning(&store->problems, item->origin,
                               "address-request-rate: `%s` is more than the %llu per second of "
                               "[server], which holds first",
                               item->text, (unsigned long long)server);
}

void config_rate_make(struct config_store *store, const struct config_section_values *values,
                      const struct config_path *path, struct rules_rule *rule)
{
    const struct config_item *rate = config_store_first(values, SETTING_path_request_rate);
    const struct config_item *burst = config_store_first(values, SETTING_path_request_burst);
    const uint64_t per_hour = path->path_request_rate;
    if (burst && (!rate || per_hour == 0))
        config_problem_error(&store->problems, burst->origin,
                             "address-request-burst: the section has no `address-request-rate` "
                             "that limits");
    if (!rate)
        return;
    rule->rate.text = rate->text;
    if (per_hour == 0)
        return;
    const uint64_t saved = per_hour * SAVED_S / HOUR_S;
    rule->rate.interval_ns = HOUR_NS / per_hour;
    rule->rate.burst = burst ? path->path_request_burst : saved > 0 ? saved : 1;
    check_server(store, rate, per_hour);
}
