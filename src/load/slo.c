/* SPDX-License-Identifier: MIT */
#include "load/slo.h"

#include "base/span.h"
#include "load/trust.h"
#include "load/value.h"

#include <math.h>
#include <stdarg.h>

/* Sets the error of `word`; always false. */
__attribute__((format(printf, 3, 4))) static bool wrong(char *ret_why, struct span word,
                                                        const char *format, ...)
{
    va_list arguments;
    int len = snprintf(ret_why, LOAD_SLO_WHY_MAX, "`%.*s` ",
                       (int)(word.len < LOAD_SLO_TEXT_MAX ? word.len : LOAD_SLO_TEXT_MAX), word.at);
    va_start(arguments, format);
    (void)vsnprintf(ret_why + len, LOAD_SLO_WHY_MAX - (size_t)len, format, arguments);
    va_end(arguments);
    return false;
}

static bool parse_name(struct span name, struct span word, struct load_slo *slo, char *ret_why)
{
    static const struct {
        struct span name;
        enum load_slo_of of;
    } names[] = {
        { SPAN("mean"), LOAD_SLO_MEAN },
        { SPAN("max"), LOAD_SLO_MAX },
        { SPAN("errors"), LOAD_SLO_ERRORS },
        { SPAN("throughput"), LOAD_SLO_THROUGHPUT },
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (span_equal(name, names[i].name)) {
            slo->of = names[i].of;
            return true;
        }
    struct span digits = span_skip(name, name.len > 0 ? 1 : 0);
    double percent;
    if (!span_starts(name, SPAN("p")) || !load_value_decimal(digits, &percent))
        return wrong(ret_why, word,
                     "has no known name; write p50, p99.9, mean, max, errors or throughput");
    if (percent <= 0 || percent >= 100)
        return wrong(ret_why, word, "is no percentile between p0 and p100");
    slo->of = LOAD_SLO_QUANTILE;
    slo->part = percent / 100;
    return true;
}

static enum load_slo_order take_order(struct span *text)
{
    bool below = *text->at == '<';
    bool equal = text->len > 1 && text->at[1] == '=';
    *text = span_skip(*text, equal ? 2 : 1);
    if (below)
        return equal ? LOAD_SLO_AT_MOST : LOAD_SLO_BELOW;
    return equal ? LOAD_SLO_AT_LEAST : LOAD_SLO_ABOVE;
}

/* Removes `ending` from the text; false: the text ends otherwise. */
static bool remove_ending(struct span *text, struct span ending)
{
    bool ends = span_ends(*text, ending);
    text->len -= ends ? ending.len : 0;
    return ends;
}

static bool parse_limit(struct span limit, struct span word, struct load_slo *slo, char *ret_why)
{
    uint64_t ns;
    if (slo->of == LOAD_SLO_THROUGHPUT) {
        (void)remove_ending(&limit, SPAN("/s"));
        return load_value_decimal(limit, &slo->limit) ||
               wrong(ret_why, word, "needs a number of requests per second, as in throughput>1000");
    }
    if (slo->of == LOAD_SLO_ERRORS) {
        bool percent = remove_ending(&limit, SPAN("%"));
        if (!load_value_decimal(limit, &slo->limit))
            return wrong(ret_why, word, "needs a share, as in errors<0.1%%");
        slo->limit /= percent ? 100 : 1;
        return slo->limit <= 1 || wrong(ret_why, word, "has a share above 1; write 0.1%% or 0.001");
    }
    if (!load_value_duration(limit, &ns))
        return wrong(ret_why, word, "needs a time with a unit (us, ms, s, m or h), as in p99<10ms");
    slo->limit = (double)ns;
    return true;
}

static bool parse_one(struct span word, struct load_slos *slos, char *ret_why)
{
    if (slos->count == LOAD_SLOS_MAX)
        return wrong(ret_why, word, "is one objective too many; at most %d", LOAD_SLOS_MAX);
    if (word.len >= LOAD_SLO_TEXT_MAX)
        return wrong(ret_why, word, "is too long");
    struct load_slo *slo = &slos->slo[slos->count];
    *slo = (struct load_slo){ 0 };
    memcpy(slo->text, word.at, word.len);
    size_t name_len = strcspn(slo->text, "<>");
    if (name_len == word.len)
        return wrong(ret_why, word, "has no sign; write < <= > or >=, as in p99<10ms");
    struct span rest = span_skip(word, name_len);
    if (!parse_name(span_first(word, name_len), word, slo, ret_why))
        return false;
    slo->order = take_order(&rest);
    if (!parse_limit(rest, word, slo, ret_why))
        return false;
    slos->count++;
    return true;
}

static struct span trimmed(struct span word)
{
    while (word.len > 0 && *word.at == ' ')
        word = span_skip(word, 1);
    while (word.len > 0 && word.at[word.len - 1] == ' ')
        word.len--;
    return word;
}

bool load_slos_parse(const char *text, struct load_slos *slos, char ret_why[LOAD_SLO_WHY_MAX])
{
    for (;;) {
        size_t len = strcspn(text, ",");
        if (!parse_one(trimmed(span_of(text, len)), slos, ret_why))
            return false;
        if (text[len] == '\0')
            return true;
        text += len + 1;
    }
}

double load_slo_value(const struct load_slo *slo, const struct load_run *run,
                      const struct load_outcome *outcome)
{
    const struct load_durations *durations = load_trust_response(run, outcome);
    const struct load_derived d = load_trust_derive(run, outcome);
    bool of_times = slo->of != LOAD_SLO_ERRORS && slo->of != LOAD_SLO_THROUGHPUT;
    if (of_times ? durations->count == 0 : slo->of == LOAD_SLO_ERRORS && d.ended == 0)
        return NAN;
    switch (slo->of) {
    case LOAD_SLO_QUANTILE:
        return (double)load_durations_quantile_ns(durations, slo->part);
    case LOAD_SLO_MEAN:
        return load_durations_mean_ns(durations);
    case LOAD_SLO_MAX:
        return (double)durations->most_ns;
    case LOAD_SLO_ERRORS:
        return d.failed_share;
    case LOAD_SLO_THROUGHPUT:
        return d.throughput_per_s;
    }
    return 0;
}

bool load_slo_met(const struct load_slo *slo, double value)
{
    switch (slo->order) {
    case LOAD_SLO_BELOW:
        return value < slo->limit;
    case LOAD_SLO_AT_MOST:
        return value <= slo->limit;
    case LOAD_SLO_ABOVE:
        return value > slo->limit;
    case LOAD_SLO_AT_LEAST:
        return value >= slo->limit;
    }
    return false;
}
