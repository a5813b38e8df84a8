/* SPDX-License-Identifier: MIT */
#include "rules/rules.h"

#include "rules/lifetime.h"

/* A cache must not give a script the answer to another origin (RFC 9110 section 12.5.5). */
static const struct span vary = SPAN("Vary: Origin\r\n");

/* A cache must not give a client without a password the answer to one that has it. */
static const struct span private_line = SPAN("Cache-Control: private\r\n");

static inline bool covers(const struct rules_rule *rule, struct span path, uint64_t head,
                          struct rules_captures *ret_captures)
{
    return ((head ^ rule->pattern.head) & rule->pattern.mask) == 0 &&
           rules_pattern_matches_rest(&rule->pattern, path, ret_captures);
}

size_t rules_index_storage(const struct rules *rules)
{
    return rules_index_bytes(rules->count) + rules_index_bytes(rules->list_count);
}

void rules_use_index(struct rules *rules, uint64_t *storage)
{
    uint64_t *const behind = storage + rules_index_bytes(rules->count) / sizeof(*storage);
    for (unsigned i = 0; i < rules->count; i++)
        rules_index_add(storage, rules->count, i, &rules->rule[i].pattern);
    for (unsigned i = 0; i < rules->list_count; i++)
        rules_index_add(behind, rules->list_count, i, &rules->list[i].pattern);
    rules->index = rules_index_over(storage, rules->count);
    rules->list_index = rules_index_over(behind, rules->list_count);
}

/* The first rule of the list that covers the path decides. */
static void find_in_list(const struct rules *rules, struct span path, uint64_t head,
                         struct rules_match *match)
{
    const unsigned count = rules->list_count;
    for (unsigned word = 0; word * RULES_INDEX_BITS < count; word++) {
        uint64_t left = rules_index_find(&rules->list_index, count, head, word);
        for (; left != 0; left &= left - 1) {
            const struct rules_rule *rule =
                &rules->list[word * RULES_INDEX_BITS + (unsigned)__builtin_ctzll(left)];
            if (!covers(rule, path, head, &match->captures))
                continue;
            match->actor = rule;
            return;
        }
    }
}

/* What the rule says about files replaces what earlier ones say. */
static void take_choices(const struct rules_rule *rule, struct rules_match *match)
{
    if (rule->listing != RULES_UNSET)
        match->listing = rule->listing;
    if (rule->markdown != RULES_UNSET)
        match->markdown = rule->markdown;
    if (rule->hidden != RULES_UNSET)
        match->hidden = rule->hidden;
    if (rule->dictionary != RULES_UNSET)
        match->dictionary = rule->dictionary == RULES_ON ? rule : NULL;
    if (rule->index)
        match->index = rule->index;
    if (rule->fallback)
        match->fallback = rule->fallback;
    if (rule->error_pages)
        match->pages = rule;
}

/* Rule number `i` covers the path. */
static inline void take_rule(const struct rules_rule *rule, unsigned i,
                             const struct rules_captures *captures, struct rules_match *match)
{
    match->bits[i / 64] |= UINT64_C(1) << i % 64;
    if (rule->field_count > 0)
        match->last = i;
    take_choices(rule, match);
    if (rule->network_count > 0)
        match->gate = rule;
    if (rule->rate.text)
        match->meter = rule->rate.interval_ns > 0 ? rule : NULL;
    if (rule->has_cors)
        match->cors = rule;
    if (rule->action == RULES_SERVE)
        return;
    match->actor = rule;
    for (unsigned star = 0; star < rule->pattern.stars; star++)
        match->captures.part[star] = captures->part[star];
}

void rules_find(const struct rules *rules, struct span path, struct rules_match *ret_match)
{
    struct rules_captures captures;
    const uint64_t head = rules_pattern_head(path);

    memset(ret_match->bits, 0, sizeof(ret_match->bits));
    ret_match->last = RULES_MAX;
    ret_match->listing = ret_match->markdown = ret_match->hidden = RULES_UNSET;
    ret_match->index = NULL;
    ret_match->fallback = NULL;
    ret_match->actor = ret_match->gate = ret_match->cors = ret_match->pages = NULL;
    ret_match->dictionary = ret_match->meter = NULL;
    ret_match->is_private = false;
    for (unsigned word = 0; word * RULES_INDEX_BITS < rules->count; word++) {
        uint64_t left = rules_index_find(&rules->index, rules->count, head, word);
        for (; left != 0; left &= left - 1) {
            const unsigned i = word * RULES_INDEX_BITS + (unsigned)__builtin_ctzll(left);
            if (covers(&rules->rule[i], path, head, &captures))
                take_rule(&rules->rule[i], i, &captures, ret_match);
        }
    }
    if (!ret_match->actor)
        find_in_list(rules, path, head, ret_match);
}

const struct rules_rule *rules_keeper(const struct rules *rules, struct span path)
{
    struct rules_captures captures;
    const uint64_t head = rules_pattern_head(path);
    for (unsigned word = (rules->count + RULES_INDEX_BITS - 1) / RULES_INDEX_BITS; word-- > 0;) {
        uint64_t left = rules_index_find(&rules->index, rules->count, head, word);
        while (left != 0) {
            const unsigned bit = RULES_INDEX_BITS - 1 - (unsigned)__builtin_clzll(left);
            const struct rules_rule *rule = &rules->rule[word * RULES_INDEX_BITS + bit];
            if (rule->auth != RULES_UNSET && covers(rule, path, head, &captures))
                return rule;
            left ^= UINT64_C(1) << bit;
        }
    }
    return NULL;
}

/* Whether `later`, in a rule behind that of `field`, replaces or removes it. */
static bool field_is_replaced(const struct rules_field *field, const struct rules_field *later,
                              bool is_error)
{
    if ((is_error && !later->on_errors) || !span_equal_nocase(field->name, later->name))
        return false;
    const bool joined = field->joins && later->joins && later->line.len > 0;
    return !joined || span_equal(field->line, later->line); /* one of two equal lines is enough */
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

/* Whether the answer has a line of a rule. */
static bool is_in_force(const struct rules *rules, const struct rules_match *match, unsigned place,
                        size_t index, bool is_error)
{
    const struct rules_field *field = &rules->rule[place].fields[index];
    return field->line.len > 0 && (!is_error || field->on_errors) &&
           !(match->is_private && rules_lifetime_is_shared(field->line)) &&
           !is_overruled(rules, match, place, index, is_error);
}

/* Appends the values that one rule joins to a field, from its line `from` on. */
static void add_values_of(const struct rules *rules, const struct rules_match *match,
                          unsigned place, size_t from, const struct rules_field *field,
                          bool is_error, struct buf *out)
{
    static const struct span colon = SPAN(": "), end = SPAN("\r\n");
    const struct rules_rule *rule = &rules->rule[place];
    for (size_t k = from; k < rule->field_count; k++) {
        const struct rules_field *other = &rule->fields[k];
        if (!other->joins || !span_equal_nocase(other->name, field->name) ||
            !is_in_force(rules, match, place, k, is_error))
            continue;
        const struct span value = span_skip(other->line, other->name.len + colon.len);
        buf_add(out, other == field ? field->name : SPAN(","));
        buf_add(out, other == field ? colon : SPAN(" "));
        buf_add(out, span_first(value, value.len - end.len));
    }
}

/* Whether a line before this one joins the same field, and so has its value, too. */
static bool is_joined_before(const struct rules *rules, const struct rules_match *match,
                             unsigned place, size_t index, bool is_error)
{
    const struct span name = rules->rule[place].fields[index].name;
    for (unsigned i = 0; i <= place; i++) {
        const size_t count = i < place ? rules->rule[i].field_count : index;
        for (size_t k = 0; rules_match_has(match, i) && k < count; k++)
            if (rules->rule[i].fields[k].joins &&
                span_equal_nocase(rules->rule[i].fields[k].name, name) &&
                is_in_force(rules, match, i, k, is_error))
                return true;
    }
    return false;
}

/* Appends a field with the values of all lines that join it. */
static void add_joined(const struct rules *rules, const struct rules_match *match, unsigned place,
                       size_t index, bool is_error, struct buf *out)
{
    const struct rules_field *field = &rules->rule[place].fields[index];
    if (is_joined_before(rules, match, place, index, is_error))
        return;
    add_values_of(rules, match, place, index, field, is_error, out);
    for (unsigned i = place; i < match->last;) {
        i = next_match(match, i + 1);
        add_values_of(rules, match, i, 0, field, is_error, out);
    }
    buf_add(out, SPAN("\r\n"));
}

/* Appends the lines of one rule. A Set-Cookie has a line of its own (RFC 9110 section 5.3). */
static void add_lines_of(const struct rules *rules, const struct rules_match *match, unsigned place,
                         bool is_error, struct buf *out)
{
    const struct rules_rule *rule = &rules->rule[place];
    for (size_t k = 0; k < rule->field_count; k++) {
        const struct rules_field *field = &rule->fields[k];
        if (!is_in_force(rules, match, place, k, is_error))
            continue;
        if (field->joins && !span_equal_nocase(field->name, SPAN("Set-Cookie")))
            add_joined(rules, match, place, k, is_error, out);
        else
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
    if (match->is_private)
        buf_add(out, private_line);
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

/* The bytes of the lines that one rule sets under a name, without lines that join. */
static size_t bytes_under_name(const struct rules_rule *rule, struct span name)
{
    size_t bytes = 0;
    for (size_t k = 0; k < rule->field_count; k++)
        if (!rule->fields[k].joins && span_equal_nocase(rule->fields[k].name, name))
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

static size_t bytes_of_joins(const struct rules_rule *rule)
{
    size_t bytes = 0;
    for (size_t k = 0; k < rule->field_count; k++)
        bytes += rule->fields[k].joins ? rule->fields[k].line.len : 0;
    return bytes;
}

/* Whether both rules may cover a path. `longer` has at least as many bytes before its first star.
 */
static bool may_meet(const struct rules_rule *rule, const struct rules_rule *longer)
{
    const struct span literal = span_first(rule->pattern.text, rule->pattern.literal_len);
    const struct span other = span_first(longer->pattern.text, longer->pattern.literal_len);
    return span_starts(other, literal) && (rule->pattern.stars > 0 || other.len == literal.len);
}

size_t rules_joins_most(const struct rules *rules)
{
    size_t most = 0;
    for (unsigned i = 0; i < rules->count; i++) {
        size_t bytes = 0;
        for (unsigned j = 0; j < rules->count; j++)
            if (may_meet(&rules->rule[j], &rules->rule[i]))
                bytes += bytes_of_joins(&rules->rule[j]);
        most = bytes > most ? bytes : most;
    }
    return most;
}

size_t rules_fields_most(const struct rules *rules)
{
    size_t most = 0, cors = 0, of_password = 0, dictionary = 0;
    for (unsigned i = 0; i < rules->count; i++) {
        const size_t of_cors = bytes_of_cors(&rules->rule[i]);
        cors = of_cors > cors ? of_cors : cors;
        if (rules->rule[i].dictionary_line.len > dictionary)
            dictionary = rules->rule[i].dictionary_line.len;
        of_password = rules->rule[i].auth == RULES_ON ? private_line.len : of_password;
        for (size_t k = 0; k < rules->rule[i].field_count; k++) {
            size_t of_name = 0;
            for (unsigned j = i; j < rules->count && !name_is_known(rules, i, k); j++) {
                size_t bytes = bytes_under_name(&rules->rule[j], rules->rule[i].fields[k].name);
                of_name = bytes > of_name ? bytes : of_name;
            }
            most += of_name;
        }
    }
    return most + cors + of_password + dictionary + rules_joins_most(rules);
}

void rules_add_digest(const struct rules *rules, const struct rules_match *match, struct buf *out)
{
    for (unsigned i = 0; i < rules->count; i += 64)
        buf_add_hex(out, match->bits[i / 64], 16);
    if (match->is_private)
        buf_add_char(out, 'p');
}
