/* SPDX-License-Identifier: MIT */
#include "rules/rules.h"

/* A cache must not give a script the answer to another origin (RFC 9110 section 12.5.5). */
static const struct span vary = SPAN("Vary: Origin\r\n");

void rules_find(const struct rules *rules, struct span path, struct rules_match *ret_match)
{
    struct rules_captures captures;
    const uint64_t head = rules_pattern_head(path);

    memset(ret_match->bits, 0, sizeof(ret_match->bits));
    ret_match->last = RULES_MAX;
    ret_match->listing = RULES_UNSET;
    ret_match->actor = ret_match->gate = ret_match->cors = NULL;
    for (unsigned i = 0; i < rules->count; i++) {
        const struct rules_rule *rule = &rules->rule[i];
        if (((head ^ rule->pattern.head) & rule->pattern.mask) != 0 ||
            !rules_pattern_matches(&rule->pattern, path, &captures))
            continue;
        ret_match->bits[i / 64] |= UINT64_C(1) << i % 64;
        if (rule->field_count > 0)
            ret_match->last = i;
        if (rule->listing != RULES_UNSET)
            ret_match->listing = rule->listing;
        if (rule->network_count > 0)
            ret_match->gate = rule;
        if (rule->has_cors)
            ret_match->cors = rule;
        if (rule->action == RULES_SERVE)
            continue;
        ret_match->actor = rule;
        ret_match->captures = captures;
    }
}

/* Whether `later`, in a rule behind that of `field`, replaces or removes it. */
static bool field_is_replaced(const struct rules_field *field, const struct rules_field *later,
                              bool is_error)
{
    return (!is_error || later->on_errors) && span_equal_nocase(field->name, later->name);
}

/* The first matching rule from `place` on. The last one with fields is not before `place`. */
static inline unsigned next_match(const struct rules_match *match, unsigned place)
{
    while (match->bits[place / 64] >> place % 64 == 0)
        place = (place / 64 + 1) * 64;
    return place + (unsigned)__builtin_ctzll(match->bits[place / 64] >> place % 64);
}

/* Whether a line is missing in the answer because of what stands behind it. Lines of one rule with
 * the same name stand side by side. */
static bool is_overruled(const struct rules *rules, const struct rules_match *match, unsigned place,
                         size_t index, bool is_error)
{
    const struct rules_rule *rule = &rules->rule[place];
    const struct rules_field *field = &rule->fields[index];

    for (size_t k = index + 1; k < rule->field_count; k++)
        if (rule->fields[k].line.len == 0 && field_is_replaced(field, &rule->fields[k], is_error))
            return true;
    for (unsigned i = place; i < match->last;) {
        i = next_match(match, i + 1);
        for (size_t k = 0; k < rules->rule[i].field_count; k++)
            if (field_is_replaced(field, &rules->rule[i].fields[k], is_error))
                return true;
    }
    return false;
}

/* Appends the lines of one rule. */
static void add_lines_of(const struct rules *rules, const struct rules_match *match, unsigned place,
                         bool is_error, struct buf *out)
{
    const struct rules_rule *rule = &rules->rule[place];
    for (size_t k = 0; k < rule->field_count; k++) {
        const struct rules_field *field = &rule->fields[k];
        if (field->line.len > 0 && (!is_error || field->on_errors) &&
            !is_overruled(rules, match, place, k, is_error))
            buf_add(out, field->line);
    }
}

void rules_add_fields(const struct rules *rules, const struct rules_match *match, bool is_error,
                      struct buf *out)
{
    for (unsigned i = 0; match->last < RULES_MAX && i <= match->last; i++) {
        i = next_match(match, i);
        add_lines_of(rules, match, i, is_error, out);
    }
    if (match->cors && match->cors->origin_count > 0)
        buf_add(out, vary);
}

struct span rules_origin_line(const struct rules_rule *cors, struct span origin)
{
    for (size_t i = 0; cors && origin.len > 0 && i < cors->origin_count; i++)
        if (span_equal(cors->origins[i].origin, origin))
            return cors->origins[i].line;
    return SPAN("");
}

/* The bytes that depend on the request: the line for its origin, and those for OPTIONS. */
static size_t bytes_of_cors(const struct rules_rule *rule)
{
    size_t most = 0;
    for (size_t i = 0; i < rule->origin_count; i++)
        most = rule->origins[i].line.len > most ? rule->origins[i].line.len : most;
    return most + rule->preflight.len + (most > 0 ? vary.len : 0);
}

/* The bytes of the lines that one rule sets under a name. */
static size_t bytes_under_name(const struct rules_rule *rule, struct span name)
{
    size_t bytes = 0;
    for (size_t k = 0; k < rule->field_count; k++)
        if (span_equal_nocase(rule->fields[k].name, name))
            bytes += rule->fields[k].line.len;
    return bytes;
}

/* Whether an earlier field has the same name. */
static bool name_is_known(const struct rules *rules, unsigned place, size_t index)
{
    const struct span name = rules->rule[place].fields[index].name;
    for (unsigned i = 0; i <= place; i++) {
        const size_t count = i < place ? rules->rule[i].field_count : index;
        for (size_t k = 0; k < count; k++)
            if (span_equal_nocase(rules->rule[i].fields[k].name, name))
                return true;
    }
    return false;
}

size_t rules_fields_most(const struct rules *rules)
{
    size_t most = 0, cors = 0;
    for (unsigned i = 0; i < rules->count; i++) {
        const size_t of_cors = bytes_of_cors(&rules->rule[i]);
        cors = of_cors > cors ? of_cors : cors;
        for (size_t k = 0; k < rules->rule[i].field_count; k++) {
            size_t of_name = 0;
            for (unsigned j = i; j < rules->count && !name_is_known(rules, i, k); j++) {
                size_t bytes = bytes_under_name(&rules->rule[j], rules->rule[i].fields[k].name);
                of_name = bytes > of_name ? bytes : of_name;
            }
            most += of_name;
        }
    }
    return most + cors;
}

void rules_add_digest(const struct rules *rules, const struct rules_match *match, struct buf *out)
{
    for (unsigned i = 0; i < rules->count; i += 64)
        buf_add_hex(out, match->bits[i / 64], 16);
}
