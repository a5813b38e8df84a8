/* SPDX-License-Identifier: MIT
 *
 * An element of Forwarded may have quoted commas. The text behind the last comma is tried first,
 * and then the text behind the comma before it. So an unclosed quote, which a client may have sent,
 * does not swallow the elements behind it.
 */
#include "peer/forwarded.h"

#include "base/num.h"

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

static struct span skip_spaces(struct span text)
{
    while (text.len > 0 && is_space(text.at[0]))
        text = span_skip(text, 1);
    return text;
}

/* ---- one address ---- */

enum node { NODE_ADDRESS, NODE_HIDDEN, NODE_BAD };

/* Letters, digits and . _ - of an obfuscated name or port (RFC 7239 section 6.3). */
static bool is_obfuscated(struct span text)
{
    if (text.len < 2 || text.at[0] != '_')
        return false;
    for (size_t i = 1; i < text.len; i++) {
        const char c = ascii_lower(text.at[i]);
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-'))
            return false;
    }
    return true;
}

/* Whether a node may end so: with nothing, or with a colon and a port. */
static bool is_port_or_nothing(struct span text)
{
    uint64_t port;
    if (text.len == 0)
        return true;
    if (text.at[0] != ':')
        return false;
    const struct span digits = span_skip(text, 1);
    return is_obfuscated(digits) ||
           (digits.len <= 5 && num_parse_u64(digits, &port) && port <= UINT16_MAX);
}

static bool is_hidden(struct span name)
{
    return span_equal_nocase(name, SPAN("unknown")) || is_obfuscated(name);
}

/* An address with an optional port, or a name that hides it (RFC 7239 section 6). X-Forwarded-For
 * also has IPv6 addresses without brackets. */
static enum node parse_node(struct span text, struct peer_address *ret_address)
{
    if (peer_address_parse(text, ret_address))
        return NODE_ADDRESS;
    const bool brackets = span_starts(text, SPAN("["));
    const char *end = text.len > 0 ? memchr(text.at, brackets ? ']' : ':', text.len) : NULL;
    if (brackets && !end)
        return NODE_BAD;
    const size_t len = end ? (size_t)(end - text.at) : text.len;
    const struct span name = span_skip(span_first(text, len), brackets ? 1 : 0);
    if (!is_port_or_nothing(span_skip(text, brackets ? len + 1 : len)))
        return NODE_BAD;
    if (peer_address_parse(name, ret_address))
        return (ret_address->family == 6) == brackets ? NODE_ADDRESS : NODE_BAD;
    return !brackets && is_hidden(name) ? NODE_HIDDEN : NODE_BAD;
}

/* ---- one element of Forwarded (RFC 7239 section 4) ---- */

static bool ends_word(char c)
{
    return is_space(c) || c == '"' || c == ',' || c == ';' || c == '=';
}

/* The bytes up to one that ends a word here. More than a token has is allowed: proxies write
 * addresses with colons and brackets unquoted. */
static size_t word_len(struct span text)
{
    size_t len = 0;
    while (len < text.len && !ends_word(text.at[len]))
        len++;
    return len;
}

/* Takes the value from the front of `rest`, without its quotes. */
static bool take_value(struct span *rest, struct span *ret_value)
{
    if (!span_starts(*rest, SPAN("\""))) {
        *ret_value = span_first(*rest, word_len(*rest));
        *rest = span_skip(*rest, ret_value->len);
        return ret_value->len > 0;
    }
    for (size_t i = 1; i < rest->len; i++) {
        if (rest->at[i] == '"') {
            *ret_value = span_of(rest->at + 1, i - 1);
            *rest = span_skip(*rest, i + 1);
            return true;
        }
        i += rest->at[i] == '\\';
    }
    return false;
}

/* Takes NAME=VALUE from the front of `rest`. */
static bool take_pair(struct span *rest, struct span *ret_name, struct span *ret_value)
{
    *ret_name = span_first(*rest, word_len(*rest));
    *rest = span_skip(*rest, ret_name->len);
    if (ret_name->len == 0 || !span_starts(*rest, SPAN("=")))
        return false;
    *rest = span_skip(*rest, 1);
    return take_value(rest, ret_value);
}

/* Keeps the value of a pair that is read. False: an element has it once. */
static bool keep_value(struct span *kept, struct span value)
{
    if (kept->at)
        return false;
    *kept = value;
    return true;
}

/* Pairs with semicolons between them. The results are the values of `for` and `proto`, or empty. */
static bool parse_pairs(struct span element, struct span *ret_for, struct span *ret_proto)
{
    struct span rest = skip_spaces(element), name, value;
    *ret_for = *ret_proto = span_of(NULL, 0);
    for (;;) {
        if (rest.len > 0 && rest.at[0] != ';') {
            if (!take_pair(&rest, &name, &value))
                return false;
            if (span_equal_nocase(name, SPAN("for")) && !keep_value(ret_for, value))
                return false;
            if (span_equal_nocase(name, SPAN("proto")) && !keep_value(ret_proto, value))
                return false;
        }
        rest = skip_spaces(rest);
        if (rest.len == 0)
            return true;
        if (rest.at[0] != ';')
            return false;
        rest = skip_spaces(span_skip(rest, 1));
    }
}

static enum peer_forwarded_scheme scheme_of(struct span text)
{
    return span_equal_nocase(text, SPAN("https"))  ? PEER_FORWARDED_HTTPS
           : span_equal_nocase(text, SPAN("http")) ? PEER_FORWARDED_HTTP
                                                   : PEER_FORWARDED_NO_SCHEME;
}

/* Sets f->scheme, too. */
static enum node parse_element(struct peer_forwarded *f, struct span element,
                               struct peer_address *ret_address)
{
    struct span node = element, proto = span_of(NULL, 0);
    f->scheme = PEER_FORWARDED_NO_SCHEME;
    if (f->form == PEER_FORWARDED && !parse_pairs(element, &node, &proto))
        return NODE_BAD;
    const enum node kind = node.at ? parse_node(node, ret_address) : NODE_HIDDEN;
    if (kind != NODE_BAD)
        f->scheme = scheme_of(proto);
    return kind;
}

/* ---- all of them ---- */

/* Where the text behind the last comma of `line` begins. */
static size_t start_of_last(struct span line)
{
    size_t start = line.len;
    while (start > 0 && line.at[start - 1] != ',')
        start--;
    return start;
}

/* Reads the last element of `line`, and removes it with the comma before it. */
static enum node take_last(struct peer_forwarded *f, struct span *line,
                           struct peer_address *ret_address)
{
    enum node node = NODE_BAD;
    size_t start = line->len + 1;
    for (unsigned tries = 0; node == NODE_BAD && start > 0; tries++) {
        if (tries > (f->form == PEER_FORWARDED ? PEER_FORWARDED_COMMAS_MAX : 0))
            break;
        start = start_of_last(span_first(*line, start - 1));
        node = parse_element(f, span_trim(span_skip(*line, start)), ret_address);
    }
    *line = span_first(*line, start > 0 ? start - 1 : 0);
    return node;
}

/* Removes spaces and empty elements from the end (RFC 9110 section 5.6.1). */
static struct span trim_end(struct span line)
{
    while (line.len > 0 && (is_space(line.at[line.len - 1]) || line.at[line.len - 1] == ','))
        line.len--;
    return line;
}

/* Whether the elements before this one are to be read. */
static bool use_node(struct peer_forwarded *f, enum node node, const struct peer_address *address)
{
    if (++f->elements > PEER_FORWARDED_ELEMENTS_MAX || node != NODE_ADDRESS) {
        f->result = node == NODE_HIDDEN ? PEER_FORWARDED_HIDDEN : PEER_FORWARDED_MALFORMED;
        return false;
    }
    f->result = PEER_FORWARDED_CLIENT;
    f->client = *address;
    peer_address_unmap(&f->client);
    return peer_networks_have(f->trusted, f->client.family, f->client.bytes);
}

bool peer_forwarded_read(struct peer_forwarded *forwarded, struct span line)
{
    for (line = trim_end(line); line.len > 0; line = trim_end(line)) {
        struct peer_address address;
        const enum node node = take_last(forwarded, &line, &address);
        if (!use_node(forwarded, node, &address))
            return false;
    }
    return true;
}

bool peer_forwarded_read_scheme(struct peer_forwarded *forwarded, struct span line)
{
    const unsigned place = forwarded->elements > 0 ? forwarded->elements : 1;
    for (line = trim_end(line); line.len > 0; line = trim_end(line)) {
        const size_t start = start_of_last(line);
        const enum peer_forwarded_scheme scheme = scheme_of(span_trim(span_skip(line, start)));
        line = span_first(line, start > 0 ? start - 1 : 0);
        forwarded->schemes++;
        if (forwarded->schemes == 1 || forwarded->schemes == place)
            forwarded->scheme = scheme;
        else
            forwarded->scheme = PEER_FORWARDED_NO_SCHEME; /* a list that is shorter than `place` */
        if (forwarded->schemes == place)
            return false;
    }
    return true;
}
