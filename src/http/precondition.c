/* SPDX-License-Identifier: MIT
 *
 * The preconditions of RFC 9110 section 13, in the order of section 13.2.2. Entity tags have a
 * scanner of their own. In the list syntax of other fields a backslash escapes. In an entity tag
 * it is an ordinary character.
 */
#include "http/precondition.h"

#include "http/date.h"

/* One element of If-Match or If-None-Match. */
struct etag {
    struct span opaque; /* with its quotes */
    bool weak;
};

/* How two entity tags are compared (RFC 9110 section 8.8.3.2). */
enum comparison { COMPARE_STRONG, COMPARE_WEAK };

static bool is_etag_byte(char c)
{
    unsigned char byte = (unsigned char)c;
    return byte == 0x21 || (byte >= 0x23 && byte != 0x7f);
}

/* Takes one entity tag from the front of `text`. */
static bool take_etag(struct span *text, struct etag *ret_etag)
{
    struct span rest = *text;
    bool weak = span_starts(rest, SPAN("W/"));
    if (weak)
        rest = span_skip(rest, 2);
    if (!span_starts(rest, SPAN("\"")))
        return false;
    size_t len = 1;
    while (len < rest.len && is_etag_byte(rest.at[len]))
        len++;
    if (len == rest.len || rest.at[len] != '"')
        return false;
    len++;
    *ret_etag = (struct etag){ .opaque = span_first(rest, len), .weak = weak };
    *text = span_skip(rest, len);
    return true;
}

/* Takes the next entity tag of a list and the comma behind it. False at the list's end, and at a
 * malformed element: the rest of the list is ignored. */
static bool next_etag(struct span *list, struct etag *ret_etag)
{
    struct span rest = *list;
    while (rest.len > 0 && (rest.at[0] == ',' || rest.at[0] == ' ' || rest.at[0] == '\t'))
        rest = span_skip(rest, 1);
    struct etag etag;
    if (!take_etag(&rest, &etag))
        return false;
    rest = span_trim(rest);
    if (rest.len > 0 && rest.at[0] != ',')
        return false;
    *list = rest;
    *ret_etag = etag;
    return true;
}

static bool etag_matches(const struct etag *etag, struct span current, enum comparison comparison)
{
    if (comparison == COMPARE_STRONG && etag->weak)
        return false;
    return span_equal(etag->opaque, current);
}

/* Whether If-Match or If-None-Match names the current representation. `*` on its own does, and
 * so does a list with its tag, over all lines of the field. */
static bool field_matches(const struct http_request *request, const char *head,
                          enum http_field field, struct span current, enum comparison comparison)
{
    struct span value = http_request_field(request, head, field);
    bool repeated = http_request_repeats(request, field);
    /* Nearly every client sends one tag, that of its copy. Then the list is not taken apart. An
     * empty value names no tag, also where the representation has none. */
    if (!repeated && value.len > 0 && (span_equal(value, current) || span_equal(value, SPAN("*"))))
        return true;

    unsigned compared = 0;
    size_t cursor = 0;
    if (repeated && !http_request_next_value(request, head, field, &cursor, &value))
        return false;
    do {
        struct etag etag;
        while (next_etag(&value, &etag)) {
            if (++compared > HTTP_ETAGS_MAX)
                return false;
            if (etag_matches(&etag, current, comparison))
                return true;
        }
    } while (repeated && http_request_next_value(request, head, field, &cursor, &value));
    return false;
}

/* The date in a field that may have one line only. False: the field is ignored. */
static bool read_date(const struct http_request *request, const char *head, enum http_field field,
                      int64_t now_s, int64_t *ret_seconds)
{
    if (!http_request_has(request, field) || http_request_repeats(request, field))
        return false;
    return http_date_parse(http_request_field(request, head, field), now_s, ret_seconds);
}

/* RFC 9110 section 13.1.5. A date matches only once its second is over. Until then the file
 * could change again and keep its date (section 8.8.2.2). */
static bool range_still_fits(const struct http_request *request, const char *head,
                             struct http_validators current, int64_t now_s)
{
    if (http_request_repeats(request, HTTP_FIELD_IF_RANGE))
        return false;
    struct span value = http_request_field(request, head, HTTP_FIELD_IF_RANGE);
    struct etag etag;
    if (take_etag(&value, &etag))
        return value.len == 0 && etag_matches(&etag, current.etag, COMPARE_STRONG);

    int64_t date_s = 0;
    if (current.modified_s < 0 || !http_date_parse(value, now_s, &date_s))
        return false;
    return date_s == current.modified_s && current.modified_s < now_s;
}

enum http_precondition http_precondition_evaluate(const struct http_request *request,
                                                  const char *head, struct http_validators current,
                                                  int64_t now_s)
{
    bool has_modified = current.modified_s >= 0;
    int64_t date_s = 0;

    if (http_request_has(request, HTTP_FIELD_IF_MATCH)) {
        if (!field_matches(request, head, HTTP_FIELD_IF_MATCH, current.etag, COMPARE_STRONG))
            return HTTP_ANSWER_FAILED;
    } else if (has_modified &&
               read_date(request, head, HTTP_FIELD_IF_UNMODIFIED_SINCE, now_s, &date_s)) {
        if (current.modified_s > date_s)
            return HTTP_ANSWER_FAILED;
    }

    if (http_request_has(request, HTTP_FIELD_IF_NONE_MATCH)) {
        if (field_matches(request, head, HTTP_FIELD_IF_NONE_MATCH, current.etag, COMPARE_WEAK))
            return HTTP_ANSWER_NOT_MODIFIED;
    } else if (has_modified &&
               read_date(request, head, HTTP_FIELD_IF_MODIFIED_SINCE, now_s, &date_s)) {
        if (current.modified_s <= date_s)
            return HTTP_ANSWER_NOT_MODIFIED;
    }

    if (http_request_has(request, HTTP_FIELD_RANGE) &&
        http_request_has(request, HTTP_FIELD_IF_RANGE) &&
        !range_still_fits(request, head, current, now_s))
        return HTTP_IGNORE_RANGE;
    return HTTP_PROCEED;
}
