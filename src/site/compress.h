/* SPDX-License-Identifier: MIT
 *
 * The decisions about compression: which files are worth it, at which level, and how much CPU time
 * it may take. Nothing here compresses, reads a clock or waits (site/compressor.h).
 *
 * `weir trace` explains with it. Otherwise it is private to site/.
 */
#pragma once

#include "base/span.h"
#include "site/site.h"

/* A file of another size is sent as it is. A smaller one fits into a packet or two with its head.
 * A larger one would take seconds of CPU time and, as a variant, much of the cache. */
enum { SITE_COMPRESS_LEAST = 1024, SITE_COMPRESS_MOST = 8 * 1024 * 1024 };

/* The part of the cache that variants made by the server may use: a quarter. */
enum { SITE_COMPRESS_SHARE = 4 };

/* Whether files of this media type usually become much smaller. */
bool site_compress_suits_type(struct span type);

/* Whether a file of this type and size is worth it. */
bool site_compress_suits(struct span type, uint64_t size);

/* The most bytes that a variant of a file of `size` bytes may have. A larger one saves too little
 * for its memory and for the client's time. */
size_t site_compress_largest(uint64_t size);

/* The library's level for a coding and a file of `size` bytes: the best one up to 1 MiB, and one
 * that is several times as fast above. */
int site_compress_level(enum site_variant coding, uint64_t size);

/* CPU time: `percent` of one CPU on average, and what a minute gives at once. The times are of
 * os_clock_now_ns. */
struct site_compress_budget {
    unsigned percent; /* at least 1 */
    int64_t left_ns;  /* CPU time that may be spent now; negative after a long piece */
    uint64_t at_ns;   /* when left_ns was right */
};

/* A full budget. */
struct site_compress_budget site_compress_budget_of(unsigned percent, uint64_t now_ns);
void site_compress_budget_spend(struct site_compress_budget *budget, uint64_t cpu_ns);

/* How long to wait before the next piece; 0: it may begin. */
uint64_t site_compress_budget_wait_ns(struct site_compress_budget *budget, uint64_t now_ns);
