/* SPDX-License-Identifier: MIT
 *
 * Listings as a page and as JSON. The page is complete in itself: no image, no other request. Every
 * link in it is relative, so that it works behind a proxy that adds a prefix. Its script only adds
 * a filter and keys, and is left out where a policy of the site could forbid it.
 *
 * Whether a directory may be listed is decided by the caller.
 */
#include "site/listing.h"

#include "base/buf.h"
#include "base/size.h"
#include "site/folder.h"
#include "site/lookup.h"
#include "site/mime.h"
#include "site/readme.h"

#include <errno.h>
#include <stdlib.h>

struct sorting {
    enum site_listing_order order;
    bool descending;
};

static const char page_style[] =
    "<style>\n"
    ":root{color-scheme:light dark;--ink:#1c2b33;--soft:#5b6b73;--line:#d5dde1;--link:#0b7285;"
    "--page:#f7f9fa;--row:#e9f3f5}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e3eaee;--soft:#9aabb4;--line:#2a363d;"
    "--link:#3bc9db;--page:#11181c;--row:#18242a}}\n"
    "body{margin:0 auto;max-width:60rem;padding:1.5rem;background:var(--page);color:var(--ink);"
    "font:1rem/1.5 system-ui,sans-serif}\n"
    "a{color:var(--link);text-decoration:none}\n"
    "a:hover{text-decoration:underline}\n"
    "h1{margin:0;font-size:1.4rem;overflow-wrap:anywhere}\n"
    "h1 i{color:var(--soft);font-style:normal;font-weight:400;margin:0 .1em}\n"
    "p{margin:.25rem 0 1rem;color:var(--soft)}\n"
    "table{width:100%;border-collapse:collapse;font-variant-numeric:tabular-nums}\n"
    "th{padding:.4rem .6rem;text-align:left;border-bottom:2px solid var(--link);"
    "white-space:nowrap}\n"
    "th[aria-sort=ascending] a::after{content:\" \\2191\"}\n"
    "th[aria-sort=descending] a::after{content:\" \\2193\"}\n"
    "td{padding:.3rem .6rem;border-bottom:1px solid var(--line);overflow-wrap:anywhere}\n"
    "td+td,th+th{text-align:right;white-space:nowrap}\n"
    "td+td{color:var(--soft)}\n"
    ".d a{font-weight:600}\n"
    "tbody tr:hover,tbody tr:focus-within{background:var(--row)}\n"
    "tr[hidden]{display:none!important}\n"
    "input{width:100%;box-sizing:border-box;margin:0 0 1rem;padding:.5rem .6rem;font:inherit;"
    "color:inherit;background:var(--row);border:1px solid var(--line);border-radius:.3rem}\n"
    "h2{margin:2rem 0 .5rem;font-size:1.1rem}\n"
    "pre{margin:0;padding:1rem;border:1px solid var(--line);white-space:pre-wrap;"
    "overflow-wrap:anywhere;font:.9rem/1.5 ui-monospace,monospace}\n"
    "@media(max-width:36rem){body{padding:1rem .5rem}tr{display:flex;flex-wrap:wrap;"
    "border-bottom:1px solid var(--line)}td,th{border:0;flex:1 0 auto}td:first-child{flex:1 0 100%;"
    "box-sizing:border-box;padding-bottom:0}td+td{padding-top:0;font-size:.85rem}"
    "td:nth-child(2){text-align:left}}\n"
    "</style>\n";

/* Adds a field that hides the rows without its text. The keys: / goes to the field, the arrows go
 * from row to row, Enter in the field opens the first row, Escape shows all rows again. */
static const char page_script[] =
    "<script>\n"
    "(()=>{\n"
    "const rows=[...document.querySelectorAll('tbody tr')],"
    "field=document.createElement('input');\n"
    "field.type='search';field.placeholder='Filter ( / )';"
    "field.setAttribute('aria-label','Filter the names');\n"
    "document.querySelector('table').before(field);\n"
    "const links=()=>rows.filter(row=>!row.matches('[hidden]')).map(row=>row.querySelector('a'));\n"
    "const filter=()=>{const want=field.value.toLowerCase();for(const row of rows)"
    "row.toggleAttribute('hidden',!row.cells[0].textContent.toLowerCase().includes(want))};\n"
    "field.addEventListener('input',filter);filter();\n"
    "document.addEventListener('keydown',event=>{\n"
    "if(event.ctrlKey||event.altKey||event.metaKey)return;\n"
    "const step={ArrowDown:1,ArrowUp:-1}[event.key],here=document.activeElement,all=links();\n"
    "if(step){const to=all.indexOf(here)+step;"
    "(to<0?field:all[Math.min(to,all.length-1)])?.focus()}\n"
    "else if(event.key==='/'&&here!==field)field.focus();\n"
    "else if(event.key==='Enter'&&here===field)all[0]?.click();\n"
    "else if(event.key==='Escape'){field.value='';filter()}\n"
    "else return;\n"
    "event.preventDefault()})\n"
    "})()\n"
    "</script>\n";

static struct sorting parse_sorting(struct span query)
{
    struct sorting sorting = { SITE_LISTING_BY_NAME, false };

    while (query.len > 0) {
        struct span value = span_take(&query, '&');
        const struct span name = span_take(&value, '=');
        if (span_equal(name, SPAN("order")))
            sorting.descending = span_equal(value, SPAN("desc"));
        else if (!span_equal(name, SPAN("sort")))
            continue;
        else if (span_equal(value, SPAN("name")))
            sorting.order = SITE_LISTING_BY_NAME;
        else if (span_equal(value, SPAN("size")))
            sorting.order = SITE_LISTING_BY_SIZE;
        else if (span_equal(value, SPAN("time")))
            sorting.order = SITE_LISTING_BY_TIME;
    }
    return sorting;
}

static void add_count(struct site_text *text, size_t count, struct span one, struct span many)
{
    site_text_add_u64(text, count);
    site_text_add(text, count == 1 ? one : many);
}

static size_t count_slashes(struct span s)
{
    size_t count = 0;
    for (size_t i = 0; i < s.len; i++)
        count += s.at[i] == '/';
    return count;
}

/* The path as links to each directory above: / a / b / */
static void add_crumbs(struct site_text *text, struct span path)
{
    struct span rest = span_skip(path, 1);
    size_t above = count_slashes(rest);
    struct span name = SPAN("/");

    site_text_add(text, SPAN("<h1>"));
    for (bool first = true;; first = false) {
        if (above > 0) {
            site_text_add(text, SPAN("<a href=\""));
            for (size_t i = 0; i < above; i++)
                site_text_add(text, SPAN("../"));
            site_text_add(text, first ? SPAN("\" aria-label=\"Top\">") : SPAN("\">"));
        }
        site_text_add(text, SPAN("<bdi>"));
        site_text_add_html(text, name);
        site_text_add(text, above > 0 ? SPAN("</bdi></a>") : SPAN("</bdi>"));
        if (!first)
            site_text_add(text, SPAN("<i>/</i>"));
        if (above == 0)
            break;
        name = span_take(&rest, '/');
        above--;
    }
    site_text_add(text, SPAN("</h1>\n"));
}

static void add_summary(struct site_text *text, const struct site_folder *folder)
{
    site_text_add(text, SPAN("<p>"));
    if (folder->count == 0)
        site_text_add(text, SPAN("This folder is empty."));
    else {
        add_count(text, folder->directories, SPAN(" folder, "), SPAN(" folders, "));
        add_count(text, folder->count - folder->directories, SPAN(" file"), SPAN(" files"));
    }
    site_text_add(text, SPAN("</p>\n"));
}

/* The last line, if names are left out. The same line stands at the top. */
static void add_left_out(struct site_text *text, const struct site_folder *folder)
{
    if (folder->left_out == 0)
        return;
    site_text_add(text, folder->cut ? SPAN("<p>At least ") : SPAN("<p>"));
    add_count(text, folder->left_out, SPAN(" more name is"), SPAN(" more names are"));
    site_text_add(text, SPAN(" not shown: a list ends at "));
    site_text_add_u64(text, SITE_LISTING_ENTRIES_MAX);
    site_text_add(text, SPAN(" entries, folders first, then by name.</p>\n"));
}

/* A column's head is a link that sorts by it, or the other way round when the
 * rows already are. Names go up at first, sizes and times down. */
static void add_column(struct site_text *text, struct sorting now, enum site_listing_order order,
                       struct span query, struct span title)
{
    bool descending = order != SITE_LISTING_BY_NAME;

    site_text_add(text, SPAN("<th scope=\"col\""));
    if (now.order == order) {
        descending = !now.descending;
        site_text_add(text, now.descending ? SPAN(" aria-sort=\"descending\"")
                                           : SPAN(" aria-sort=\"ascending\""));
    }
    site_text_add(text, SPAN("><a href=\"?sort="));
    site_text_add(text, query);
    site_text_add(text, descending ? SPAN("&amp;order=desc\">") : SPAN("&amp;order=asc\">"));
    site_text_add(text, title);
    site_text_add(text, SPAN("</a></th>\n"));
}

static void add_html_row(struct site_text *text, const struct site_folder *folder,
                         const struct site_folder_row *row)
{
    const struct span name = site_folder_name(folder, row);

    site_text_add(text, row->directory ? SPAN("<tr class=\"d\"><td><a href=\"")
                                       : SPAN("<tr><td><a href=\""));
    site_text_add_segment(text, name);
    site_text_add(text, row->directory ? SPAN("/\"><bdi>") : SPAN("\"><bdi>"));
    site_text_add_html(text, name);
    if (row->directory) {
        site_text_add(text, SPAN("/</bdi></a></td><td></td><td>"));
    } else {
        site_text_add(text, SPAN("</bdi></a></td><td title=\""));
        add_count(text, row->size, SPAN(" byte\">"), SPAN(" bytes\">"));
        site_text_add(text, span_text(size_format(row->size).text));
        site_text_add(text, SPAN("</td><td>"));
    }
    site_text_add(text, SPAN("<time datetime=\""));
    site_text_add_time(text, row->modified_s, false);
    site_text_add(text, SPAN("\">"));
    site_text_add_time(text, row->modified_s, true);
    site_text_add(text, SPAN("</time></td></tr>\n"));
}

static void add_html(struct site_text *text, const struct site *site,
                     const struct site_listing_request *request, const struct site_folder *folder,
                     struct sorting sorting)
{
    const struct span path = request->path;
    site_text_add(text, SPAN("<!doctype html>\n"
                             "<html lang=\"en\">\n"
                             "<head>\n"
                             "<meta charset=\"utf-8\">\n"
                             "<meta name=\"viewport\" content=\"width=device-width, "
                             "initial-scale=1\">\n"
                             "<title>Index of "));
    site_text_add_html(text, path);
    site_text_add(text, SPAN("</title>\n"));
    site_text_add(text, span_of(page_style, sizeof(page_style) - 1));
    site_text_add(text, SPAN("</head>\n<body>\n<main>\n"));
    add_crumbs(text, path);
    add_summary(text, folder);
    add_left_out(text, folder);
    site_text_add(text, SPAN("<table>\n<thead>\n<tr>\n"));
    add_column(text, sorting, SITE_LISTING_BY_NAME, SPAN("name"), SPAN("Name"));
    add_column(text, sorting, SITE_LISTING_BY_SIZE, SPAN("size"), SPAN("Size"));
    add_column(text, sorting, SITE_LISTING_BY_TIME, SPAN("time"), SPAN("Changed (UTC)"));
    site_text_add(text, SPAN("</tr>\n</thead>\n<tbody>\n"));
    if (path.len > 1)
        site_text_add(text, SPAN("<tr class=\"d\"><td><a href=\"../\">../</a></td>"
                                 "<td></td><td></td></tr>\n"));
    for (size_t i = 0; i < folder->count; i++)
        add_html_row(text, folder, &folder->rows[i]);
    site_text_add(text, SPAN("</tbody>\n</table>\n"));
    add_left_out(text, folder);
    site_readme_add(text, site, request, folder);
    site_text_add(text, SPAN("</main>\n"));
    if (site_options(site)->scripts)
        site_text_add(text, span_of(page_script, sizeof(page_script) - 1));
    site_text_add(text, SPAN("</body>\n</html>\n"));
}

static void add_json(struct site_text *text, const struct site *site,
                     const struct site_folder *folder)
{
    site_text_add(text, SPAN("["));
    for (size_t i = 0; i < folder->count; i++) {
        const struct site_folder_row *row = &folder->rows[i];
        site_text_add(text, i > 0 ? SPAN(",\n{\"name\":\"") : SPAN("\n{\"name\":\""));
        site_text_add_json(text, site_folder_name(folder, row));
        if (row->directory) {
            site_text_add(text, SPAN("\",\"type\":\"directory\",\"size\":null"));
        } else {
            site_text_add(text, SPAN("\",\"type\":\"file\",\"size\":"));
            site_text_add_u64(text, row->size);
        }
        site_text_add(text, SPAN(",\"modified\":\""));
        site_text_add_time(text, row->modified_s, false);
        if (row->directory) {
            site_text_add(text, SPAN("\",\"media_type\":null}"));
        } else {
            site_text_add(text, SPAN("\",\"media_type\":\""));
            site_text_add_json(text, site_mime_type(site->mime, site_folder_name(folder, row)));
            site_text_add(text, SPAN("\"}"));
        }
    }
    if (folder->left_out > 0) {
        site_text_add(text, folder->count > 0 ? SPAN(",\n") : SPAN("\n"));
        site_text_add(text, SPAN("{\"type\":\"omitted\",\"count\":"));
        site_text_add_u64(text, folder->left_out);
        site_text_add(text, SPAN("}"));
    }
    site_text_add(text, SPAN("\n]\n"));
}

struct span site_listing_type(enum site_listing_form form)
{
    return form == SITE_LISTING_JSON ? SPAN("application/json") : SPAN("text/html; charset=utf-8");
}

bool site_listing_key(const struct site_listing_request *request, char *out, size_t size,
                      size_t *ret_len)
{
    const struct sorting sorting = parse_sorting(request->query);
    struct buf key = buf_over(out, size);
    buf_add(&key, SPAN("list"));
    buf_add_u64(&key, request->form);
    buf_add_u64(&key, sorting.order);
    buf_add_u64(&key, sorting.descending);
    buf_add(&key, request->path);
    *ret_len = key.len;
    return !key.overflow;
}

bool site_listing_begin(struct site_listing_limit *limit)
{
    const unsigned before = atomic_fetch_add_explicit(&limit->count, 1, memory_order_relaxed);
    if (limit->max == 0 || before < limit->max)
        return true;
    site_listing_end(limit);
    return false;
}

void site_listing_count(struct site_listing_limit *limit)
{
    atomic_fetch_add_explicit(&limit->count, 1, memory_order_relaxed);
}

void site_listing_end(struct site_listing_limit *limit)
{
    atomic_fetch_sub_explicit(&limit->count, 1, memory_order_relaxed);
}

int site_listing_render(const struct site *site, const struct site_listing_request *request,
                        int *fd, size_t room, char **ret_text, size_t *ret_len, size_t *ret_entries)
{
    const struct sorting sorting = parse_sorting(request->query);
    struct site_folder folder;
    struct site_text text = { 0 };

    int error = site_folder_read(site, request, fd, &folder);
    if (error < 0)
        return error;
    site_folder_filter(&folder, request);
    site_folder_sort(&folder, sorting.order, sorting.descending);
    site_text_reserve(&text, room);
    if (request->form == SITE_LISTING_JSON)
        add_json(&text, site, &folder);
    else
        add_html(&text, site, request, &folder, sorting);
    *ret_entries = folder.count;
    site_folder_free(&folder);
    if (text.failed) {
        free(text.at);
        return -ENOMEM;
    }
    char *smaller = realloc(text.at, text.len); /* the text had grown by doubling */
    if (smaller != NULL)
        text.at = smaller;
    *ret_text = text.at;
    *ret_len = text.len;
    return 0;
}
