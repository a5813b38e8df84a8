/* SPDX-License-Identifier: MIT */
#include "page/asset.h"

#include <page_assets.inc> /* made by tools/embed.py */

#define BYTES(array) \
    { \
        (const char *)(array), sizeof(array) \
    }
#define PAGE_ASSET(path, type, tag, plain, gzip) { path, type, tag, BYTES(plain), BYTES(gzip) },

static const struct page_asset assets[] = { PAGE_ASSETS };

const struct page_asset *page_asset_find(struct span path)
{
    if (span_equal(path, SPAN("/")))
        path = SPAN("/index.html");
    for (size_t i = 0; i < sizeof(assets) / sizeof(assets[0]); i++)
        if (span_equal(path, span_text(assets[i].path)))
            return &assets[i];
    return NULL;
}
