/* SPDX-License-Identifier: MIT
 *
 * The built-in error page, made of constant texts, so nothing needs escaping. It names no path,
 * header or version, which a prober could use. It says what happened, and shows the id by which
 * an administrator finds the request in the log.
 */
#include "site/errorpage.h"

#include "base/buf.h"
#include "base/num.h"

static const char style[] =
    "<style>"
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
    "</style>\n";

size_t site_errorpage_render(char *out, size_t size, const struct site_errorpage *content)
{
    struct buf page = buf_over(out, size);

    buf_add(&page, SPAN("<!doctype html>\n"
                        "<html lang=\"en\">\n"
                        "<meta charset=\"utf-8\">\n"
                        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                        "<title>"));
    buf_add_u64(&page, content->status);
    buf_add_char(&page, ' ');
    buf_add(&page, content->reason);
    buf_add(&page, SPAN("</title>\n"));
    buf_add(&page, span_of(style, sizeof(style) - 1));
    buf_add(&page, SPAN("<main>\n<p class=\"code\">"));
    buf_add_u64(&page, content->status);
    buf_add(&page, SPAN("</p>\n<h1>"));
    buf_add(&page, content->reason);
    buf_add(&page, SPAN("</h1>\n"));
    if (content->sentence.len > 0) {
        buf_add(&page, SPAN("<p class=\"why\">"));
        buf_add(&page, content->sentence);
        buf_add(&page, SPAN("</p>\n"));
    }
    buf_add(&page, SPAN("<p class=\"id\">Request "));
    buf_add_hex(&page, content->id, NUM_HEX_DIGITS);
    buf_add(&page, SPAN("</p>\n"));
    buf_add(&page, SPAN("</main>\n</html>\n"));
    return page.len; /* storage that is too small gets whole pieces only */
}
