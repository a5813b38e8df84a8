/* SPDX-License-Identifier: MIT
 *
 * A compressor with a real thread, over the site of the fixture, with a text in the file /a.txt.
 */
#pragma once

#include "site/coder.h"
#include "support/compressing.h"
#include "unit/site/fixture.h"

enum { TEXT_BYTES = 5000, MEMORY_MAX = 64 * 1024 };

struct bench {
    struct fixture *f;
    struct site_compressor *compressor;
    char text[TEXT_BYTES + 1];
};

static struct bench bench;

static inline void begin_with(struct fixture *f, size_t body_max, size_t share_bytes)
{
    f->options.compress = site_coder_codings();
    f->options.body_max = body_max;
    reopen(f);
    bench.f = f;
    bench.compressor =
        site_compressor_new((struct site_compressor_plan){ .cpu_percent = 100,
                                                           .share_bytes = share_bytes,
                                                           .entry_bytes = 128 * 1024,
                                                           .start = start_compressing,
                                                           .context = &bench.compressor });
    assert_non_null(bench.compressor);
    for (size_t i = 0; i < TEXT_BYTES; i++)
        bench.text[i] = "a line of text\n"[i % 15];
    tree_write(&f->tree, "root/a.txt", bench.text);
}

static inline void begin(struct fixture *f, size_t body_max)
{
    begin_with(f, body_max, 1024 * 1024);
}

static inline void end(void)
{
    end_compressing(bench.compressor);
}

static inline struct site_compressor_totals totals(void)
{
    return site_compressor_totals(bench.compressor);
}
