/* SPDX-License-Identifier: MIT */
#include "site/compress.h"

#include "base/duration.h"

/* ---- what is worth it ---- */

bool site_compress_suits_type(struct span type)
{
    /* Besides text: formats that hold their data uncompressed. Types that are not here are
     * compressed already (images, film, archives, woff2), or unknown. */
    static const struct span types[] = {
        SPAN("application/javascript"),
        SPAN("application/json"),
        SPAN("application/xml"),
        SPAN("application/wasm"),
        SPAN("application/x-javascript"),
        SPAN("application/x-ndjson"),
        SPAN("application/ecmascript"),
        SPAN("application/rtf"),
        SPAN("application/sql"),
        SPAN("application/toml"),
        SPAN("application/yaml"),
        SPAN("application/x-sh"),
        SPAN("application/postscript"),
        SPAN("application/vnd.ms-fontobject"),
        SPAN("application/x-font-ttf"),
        SPAN("font/ttf"),
        SPAN("font/otf"),
        SPAN("font/collection"),
        SPAN("image/bmp"),
        SPAN("image/x-icon"),
        SPAN("image/vnd.microsoft.icon"),
        SPAN("model/obj"),
    };
    size_t len = 0;
    while (len < type.len && type.at[len] != ';')
        len++;
    type = span_trim(span_first(type, len));
    if (span_starts(type, SPAN("text/")) || span_ends(type, SPAN("+xml")) ||
        span_ends(type, SPAN("+json")) || span_ends(type, SPAN("+yaml")))
        return true;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (span_equal_nocase(type, types[i]))
            return true;
    return false;
}

bool site_compress_suits(struct span type, uint64_t size)
{
    return size >= SITE_COMPRESS_LEAST && size <= SITE_COMPRESS_MOST &&
           site_compress_suits_type(type);
}

size_t site_compress_largest(uint64_t size)
{
    return (size_t)(size - size / 16);
}

int site_compress_level(enum site_variant coding, uint64_t size)
{
    const bool large = size > SITE_COMPRESS_MOST / 8;
    switch (coding) {
    case SITE_BR:
        return large ? 9 : 11;
    case SITE_ZSTD:
        return large ? 12 : 19;
    case SITE_GZIP:
        return 9;
    case SITE_PLAIN:
    case SITE_VARIANTS:
        break;
    }
    return 0;
}

/* ---- the budget ---- */

#define BURST_NS (60 * DURATION_SECOND)

/* A pause ends when this much CPU time is there again, so that there are few of them. */
#define QUANTUM_NS ((int64_t)(20 * DURATION_MS))

static int64_t burst_of(const struct site_compress_budget *budget)
{
    return (int64_t)(BURST_NS / 100 * budget->percent);
}

struct site_compress_budget site_compress_budget_of(unsigned percent, uint64_t now_ns)
{
    struct site_compress_budget budget = { .percent = percent, .at_ns = now_ns };
    budget.left_ns = burst_of(&budget);
    return budget;
}

void site_compress_budget_spend(struct site_compress_budget *budget, uint64_t cpu_ns)
{
    budget->left_ns -= (int64_t)cpu_ns;
}

uint64_t site_compress_budget_wait_ns(struct site_compress_budget *budget, uint64_t now_ns)
{
    const uint64_t passed_ns = now_ns > budget->at_ns ? now_ns - budget->at_ns : 0;
    const int64_t most_ns = burst_of(budget);
    budget->at_ns = now_ns > budget->at_ns ? now_ns : budget->at_ns;
    /* After a minute and the time of any debt the budget is full, so nothing overflows. */
    if (passed_ns / 100 * budget->percent >= (uint64_t)(most_ns - budget->left_ns))
        budget->left_ns = most_ns;
    else
        budget->left_ns += (int64_t)(passed_ns / 100 * budget->percent);
    if (budget->left_ns > 0)
        return 0;
    return (uint64_t)(QUANTUM_NS - budget->left_ns) / budget->percent * 100;
}
