/* SPDX-License-Identifier: MIT
 *
 * The pages are constant but for the id, so status.def makes them at compile time, and nothing
 * needs escaping. They name no path, header or version, which a prober could use.
 */
#include "session/errorpage.h"

#include "base/check.h"
#include "base/num.h"

static const struct span style =
    SPAN("<style>"
         ":root{color-scheme:light dark;--ink:#1c2b33;--soft:#5b6b73;--line:#0b7285;--page:#f7f9fa}"
         "@media(prefers-color-scheme:dark){"
         ":root{--ink:#e3eaee;--soft:#9aabb4;--line:#3bc9db;--page:#11181c}}"
         "body{margin:0;min-height:100vh;display:grid;place-items:center;background:var(--page);"
         "color:var(--ink);font:1.05rem/1.6 system-ui,sans-serif}"
         "main{max-width:32rem;padding:2rem}"
         "p{margin:0}"
         ".code{color:var(--line);font-size:4.5rem;line-height:1;font-weight:700;"
         "font-variant-numeric:tabular-nums}"
         "h1{margin:.75rem 0 .5rem;padding-bottom:.75rem;border-bottom:3px solid var(--line);"
         "font-size:1.5rem;line-height:1.3}"
         ".why,.id{color:var(--soft)}"
         ".id{margin-top:2rem;font-size:.8rem;font-variant-numeric:tabular-nums}"
         "</style>\n");

static const struct span end = SPAN("</p>\n</main>\n</html>\n");

/* The text before the style, and the text between the style and the id. */
struct errorpage {
    struct span title, text;
};

static const struct errorpage *find_page(enum http_status status)
{
    switch (status) {
#define STATUS(code, name, reason, sentence) \
    case HTTP_##name: { \
        static const struct errorpage page = { \
            .title = SPAN("<!doctype html>\n" \
                          "<html lang=\"en\">\n" \
                          "<meta charset=\"utf-8\">\n" \
                          "<meta name=\"viewport\" " \
                          "content=\"width=device-width, initial-scale=1\">\n" \
                          "<title>" #code " " reason "</title>\n"), \
            .text = SPAN("<main>\n" \
                         "<p class=\"code\">" #code "</p>\n" \
                         "<h1>" reason "</h1>\n" \
                         "<p class=\"why\">" sentence "</p>\n" \
                         "<p class=\"id\">Request "), \
        }; \
        return &page; \
    }
#include "http/status.def"
#undef STATUS
    }
    return NULL;
}

size_t session_errorpage_size(enum http_status status)
{
    const struct errorpage *page = find_page(status);
    CHECK(page != NULL);
    return page->title.len + style.len + page->text.len + NUM_HEX_DIGITS + end.len;
}

void session_errorpage_add(struct buf *out, enum http_status status, uint64_t id)
{
    const struct errorpage *page = find_page(status);
    CHECK(page != NULL);
    buf_add(out, page->title);
    buf_add(out, style);
    buf_add(out, page->text);
    buf_add_hex(out, id, NUM_HEX_DIGITS);
    buf_add(out, end);
}
