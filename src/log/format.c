/* SPDX-License-Identifier: MIT
 *
 * A format is read once from left to right. `$` begins a variable as nginx writes it, and `%` a
 * directive as Apache does. The rest is literal text.
 *
 * Every value is escaped, so that no client can forge a value or a line. Between two quotes a space
 * stays. A value without quotes that stands between spaces is one word, so its spaces are escaped.
 */
#include "log/format.h"

#include "base/nearest.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- names ---- */

static const struct value_name {
    const char *nginx, *apache;
    bool is_own;
} values[] = {
#define TEXT                                       false
#define OWN                                        true
#define VALUE(name, nginx, apache, type, sentence) [LOG_VALUE_##name] = { nginx, apache, type },
#include "log/value.def"
#undef VALUE
#undef TEXT
#undef OWN
    [LOG_VALUE_FIELD] = { NULL, NULL, false },
};

static const struct {
    const char *name;
    enum http_field field;
} request_fields[] = {
#define FIELD(name, text) { text, HTTP_FIELD_##name },
    HTTP_FIELDS(FIELD)
#undef FIELD
};

enum { FIELDS = sizeof(request_fields) / sizeof(request_fields[0]) };

/* ---- the table ---- */

bool log_format_refuse(const struct log_format_making *m, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(m->why, LOG_LAYOUT_WHY_MAX, format, arguments);
    va_end(arguments);
    return false;
}

void log_format_add_literal(struct log_format_making *m, char c)
{
    buf_add_char(&m->text, c);
    if (c == '"')
        m->quoted = !m->quoted;
}

/* The literal text since the last value. */
struct span log_format_take_literal(struct log_format_making *m)
{
    const struct span literal = span_skip(buf_span(&m->text), m->literal);
    m->literal = m->text.len;
    return literal;
}

/* A value between two spaces is a word. `next`: the first byte behind it; 0: none. */
static enum escape escaping_of(const struct log_format_making *m, struct span before, char next)
{
    const char last = before.len > 0 ? before.at[before.len - 1] : '\0';
    if (m->layout->json)
        return ESCAPE_JSON;
    return !m->quoted && (last == ' ' || next == ' ') ? ESCAPE_WORD : ESCAPE_BYTES;
}

bool log_format_add_place(struct log_format_making *m, struct log_place place, char next)
{
    struct log_layout *layout = m->layout;
    if (layout->count == LOG_TEXTS_MAX)
        return log_format_refuse(m, "it has more than %d variables", LOG_TEXTS_MAX);
    place.before = log_format_take_literal(m);
    place.is_own = values[place.value].is_own;
    place.escaping = (uint8_t)escaping_of(m, place.before, next);
    layout->users = layout->users || place.value == LOG_VALUE_USER;
    if (place.value == LOG_VALUE_FIELD && place.field != HTTP_FIELD_REFERER &&
        place.field != HTTP_FIELD_USER_AGENT) /* every line has these two */
        layout->fields |= 1u << place.field;
    layout->place[layout->count++] = place;
    return true;
}

static bool add_value(struct log_format_making *m, enum log_value value, char next)
{
    return log_format_add_place(m, (struct log_place){ .value = (uint8_t)value }, next);
}

/* ---- a format of the operator's ---- */

/* Removes the first bytes of *text that `is_part` accepts, and returns them. */
static struct span take_while(struct span *text, bool (*is_part)(char c))
{
    size_t len = 0;
    while (len < text->len && is_part(text->at[len]))
        len++;
    const struct span taken = span_first(*text, len);
    *text = span_skip(*text, len);
    return taken;
}

static bool is_name_byte(char c)
{
    return (ascii_lower(c) >= 'a' && ascii_lower(c) <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

static bool is_before_brace(char c)
{
    return c != '}';
}

static char first_of(struct span text)
{
    return text.len > 0 ? text.at[0] : '\0';
}

/* Removes the first byte and returns it; 0: there is none. */
static char take_byte(struct span *text)
{
    const char first = first_of(*text);
    if (text->len > 0)
        *text = span_skip(*text, 1);
    return first;
}

/* Whether `given` is the field's name. Case does not count, nor the difference of `-` and `_`. */
static bool is_field_named(struct span given, const char *name)
{
    const size_t len = strlen(name);
    if (given.len != len)
        return false;
    for (size_t i = 0; i < len; i++) {
        const char c = given.at[i] == '_' ? '-' : ascii_lower(given.at[i]);
        if (c != name[i])
            return false;
    }
    return true;
}

static unsigned count_bits(uint32_t bits)
{
    return (unsigned)__builtin_popcount(bits);
}

/* Adds a field of the request. weir keeps the fields that it needs, and no others. */
bool log_format_add_field(struct log_format_making *m, struct span name, char next)
{
    for (unsigned i = 0; i < FIELDS; i++) {
        if (!is_field_named(name, request_fields[i].name))
            continue;
        if (request_fields[i].field == HTTP_FIELD_AUTHORIZATION)
            return log_format_refuse(m,
                                     "the field Authorization has the password; write $remote_user "
                                     "for the user");
        const struct log_place place = { .value = LOG_VALUE_FIELD,
                                         .field = (uint8_t)request_fields[i].field };
        return log_format_add_place(m, place, next) &&
               (count_bits(m->layout->fields) <= LOG_FIELDS_MAX ||
                log_format_refuse(m, "it has more than %d fields of the request", LOG_FIELDS_MAX));
    }
    return log_format_refuse(m,
                             "weir does not keep the field `%.*s` of a request; it keeps host, "
                             "referer, user-agent, accept, accept-encoding, range, origin, "
                             "cache-control and the conditions",
                             (int)(name.len < 40 ? name.len : 40), name.at);
}

static bool refuse_variable(const struct log_format_making *m, struct span name)
{
    struct nearest nearest = nearest_to(name);
    const int len = (int)(name.len < 40 ? name.len : 40);
    for (unsigned i = 0; i < LOG_VALUE_FIELD; i++)
        if (values[i].nginx != NULL)
            nearest_offer(&nearest, values[i].nginx);
    if (nearest.best != NULL)
        return log_format_refuse(m, "there is no variable $%.*s; did you mean $%s?", len, name.at,
                                 nearest.best);
    return log_format_refuse(m, "there is no variable $%.*s; weir.conf(5) lists all of them", len,
                             name.at);
}

/* A variable behind its `$`: a name, or a name in braces. `$$` is a dollar sign. */
static bool add_variable(struct log_format_making *m, struct span *rest)
{
    struct span name;
    if (first_of(*rest) == '$') {
        *rest = span_skip(*rest, 1);
        log_format_add_literal(m, '$');
        return true;
    }
    if (first_of(*rest) == '{') {
        *rest = span_skip(*rest, 1);
        name = take_while(rest, is_before_brace);
        if (rest->len == 0)
            return log_format_refuse(m, "`${` has no `}`");
        *rest = span_skip(*rest, 1);
    } else {
        name = take_while(rest, is_name_byte);
    }
    if (name.len == 0)
        return log_format_refuse(m, "no name follows a `$`; write $$ for a dollar sign");
    for (unsigned i = 0; i < LOG_VALUE_FIELD; i++)
        if (values[i].nginx != NULL && span_equal(name, span_text(values[i].nginx)))
            return add_value(m, (enum log_value)i, first_of(*rest));
    if (span_starts(name, SPAN("http_")))
        return log_format_add_field(m, span_skip(name, sizeof("http_") - 1), first_of(*rest));
    return refuse_variable(m, name);
}

/* The value of a directive with an argument, as in %{ms}T. -1: there is none. */
static int value_of_argument(struct span argument, char directive)
{
    static const struct {
        char directive;
        const char *argument;
        enum log_value value;
    } known[] = {
        { 'T', "s", LOG_VALUE_DURATION_WHOLE_S },
        { 'T', "us", LOG_VALUE_DURATION_US },
        { 't', "sec", LOG_VALUE_WHOLE_S },
        { 'h', "c", LOG_VALUE_PEER },
        { 'a', "c", LOG_VALUE_PEER },
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (known[i].directive == directive && span_equal(argument, span_text(known[i].argument)))
            return (int)known[i].value;
    return -1;
}

static bool add_with_argument(struct log_format_making *m, struct span *rest)
{
    (void)take_byte(rest);
    const struct span argument = take_while(rest, is_before_brace);
    (void)take_byte(rest);
    const char directive = take_byte(rest);
    if (directive == 'i')
        return log_format_add_field(m, argument, first_of(*rest));
    const int value = value_of_argument(argument, directive);
    const int len = (int)(argument.len < 40 ? argument.len : 40);
    if (value >= 0)
        return add_value(m, (enum log_value)value, first_of(*rest));
    return log_format_refuse(m, "there is no directive %%{%.*s}%c; weir.conf(5) lists all of them",
                             len, argument.at, directive != '\0' ? directive : ' ');
}

/* A directive behind its `%`. `%%` is a percent sign. */
static bool add_directive(struct log_format_making *m, struct span *rest)
{
    const char name[] = { first_of(*rest), '\0' };
    if (name[0] == '%' || name[0] == 'l') { /* %l is the user of identd, which is out of use */
        (void)take_byte(rest);
        log_format_add_literal(m, name[0] == '%' ? '%' : '-');
        return true;
    }
    if (name[0] == '{')
        return add_with_argument(m, rest);
    if (name[0] == '>') /* the last status of a request; weir has one */
        (void)take_byte(rest);
    const char directive[] = { take_byte(rest), '\0' };
    if (directive[0] == 'a')
        return add_value(m, LOG_VALUE_PEER, first_of(*rest));
    for (unsigned i = 0; i < LOG_VALUE_FIELD && directive[0] != '\0'; i++)
        if (values[i].apache != NULL && strcmp(values[i].apache, directive) == 0)
            return add_value(m, (enum log_value)i, first_of(*rest));
    return log_format_refuse(
        m,
        "there is no directive %%%s; weir.conf(5) lists all of them, and %%%% is "
        "a percent sign",
        directive);
}

/* Apache's configuration has the format in quotes, so quotes in it have a backslash. */
static struct span strip_quotes(struct span format)
{
    const char first = first_of(format);
    if (format.len < 2 || (first != '\'' && first != '"') || format.at[format.len - 1] != first)
        return format;
    const struct span inner = span_of(format.at + 1, format.len - 2);
    if (first == '\'')
        return inner;
    for (size_t i = 0; i < inner.len; i++) {
        if (inner.at[i] == '\\')
            i++;
        else if (inner.at[i] == '"')
            return format; /* the quotes belong to the line */
    }
    return inner;
}

/* The byte that `\` and this one stand for; 0: none. */
static char unescape(char c)
{
    return c == 't' ? '\t' : c == '"' || c == '\'' || c == '\\' ? c : '\0';
}

bool log_format_compile(struct log_format_making *m, struct span format)
{
    struct span rest = strip_quotes(format);
    m->layout->json = span_starts(rest, SPAN("{")) && span_ends(rest, SPAN("}"));
    while (rest.len > 0) {
        const char c = take_byte(&rest);
        bool good = true;
        if (c == '$') {
            good = add_variable(m, &rest);
        } else if (c == '%') {
            good = add_directive(m, &rest);
        } else if (c == '\\' && unescape(first_of(rest)) != '\0') {
            log_format_add_literal(m, unescape(take_byte(&rest)));
        } else if ((unsigned char)c < ' ' && c != '\t') {
            good = log_format_refuse(m, "it has a control character");
        } else {
            log_format_add_literal(m, c);
        }
        if (!good)
            return false;
    }
    return m->layout->count > 0 ||
           log_format_refuse(m, "it has no variable, so each line would be the same");
}
