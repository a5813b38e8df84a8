/* SPDX-License-Identifier: MIT */
#include "session/ready.h"

#include "base/buf.h"
#include "base/hash.h"
#include "http/head.h"
#include "http2/response.h"
#include "session/answer.h"

#include <stdlib.h>

enum {
    /* The lines of one answer: those of rules, Location, and the last ones. */
    LINES_MAX = 4096 + 2 * RULES_TARGET_MAX,
    /* A block has at most 4 bytes for each length, and no `: ` and CRLF. Escapes of HPACK are at
     * most 30 bits for a byte, but a text that they make longer is sent as it is. */
    BLOCKS_MAX = 2 * LINES_MAX
};

#define LOCATION SPAN("Location: ")

/* An example of the paths that a pattern covers. Each star stands for one letter. */
static void add_example(const struct rules_pattern *pattern, struct buf *path)
{
    const struct span text = pattern->text;
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] != '*')
            buf_add_char(path, text.at[i]);
        else if (text.at[i - 1] != '*')
            buf_add_char(path, 'x');
}

/* The lines and blocks of one rule, before they move to memory of their own. */
struct making {
    struct buf lines, blocks;
    struct span server_field;
};

/* Takes the lines from `begin` on, and makes their block. Lines that do not fit are not whole. */
static struct span take_lines(struct making *m, size_t begin, struct span *ret_block)
{
    const struct span lines = span_skip(buf_span(&m->lines), begin);
    const size_t block_begin = m->blocks.len;
    if (!m->lines.overflow)
        http2_response_add_lines(&m->blocks, lines);
    *ret_block = span_skip(buf_span(&m->blocks), block_begin);
    return lines;
}

static void make_status(struct making *m, struct session_ready_answer *answer, unsigned status)
{
    const size_t begin = m->blocks.len;
    answer->status = status;
    http2_response_add_status(&m->blocks, status);
    answer->status_block = span_skip(buf_span(&m->blocks), begin);
}

static void make_redirect(struct making *m, const struct rules *rules,
                          const struct rules_match *match, struct session_ready_answer *answer)
{
    const struct rules_rule *rule = match->actor;
    size_t begin = m->lines.len;
    make_status(m, answer, rule->status);
    rules_add_fields(rules, match, false, &m->lines);
    answer->front = take_lines(m, begin, &answer->front_block);
    begin = m->lines.len;
    if (rule->target.stars == 0) {
        buf_add(&m->lines, LOCATION);
        rules_target_add_location(&rule->target, &match->captures, false, SPAN(""), &m->lines);
        buf_add(&m->lines, SPAN("\r\n"));
    }
    answer->location = take_lines(m, begin, &answer->location_block);
    begin = m->lines.len;
    http_head_add_length(&m->lines, 0);
    http_head_end(&m->lines, m->server_field);
    answer->back = take_lines(m, begin, &answer->back_block);
}

static void make_preflight(struct making *m, const struct rules *rules,
                           const struct rules_match *match, struct session_ready_answer *answer)
{
    const size_t begin = m->lines.len;
    make_status(m, answer, HTTP_NO_CONTENT);
    rules_add_fields(rules, match, false, &m->lines);
    buf_add(&m->lines, SPAN(SESSION_ANSWER_ALLOW));
    buf_add(&m->lines, match->cors->preflight);
    answer->front = take_lines(m, begin, &answer->front_block);
    const size_t end = m->lines.len;
    http_head_end(&m->lines, m->server_field);
    answer->back = take_lines(m, end, &answer->back_block);
}

/* Moves a span from the storage of `m` to `memory`, which has the lines and then the blocks. */
static void move_span(const struct making *m, char *memory, struct span *span)
{
    if (span->len == 0)
        return;
    const bool is_line = span->at >= m->lines.at && span->at < m->lines.at + m->lines.len;
    const char *from = is_line ? m->lines.at : m->blocks.at;
    span->at = memory + (is_line ? 0 : m->lines.len) + (span->at - from);
}

static void move_answer(const struct making *m, char *memory, struct session_ready_answer *answer)
{
    struct span *const spans[] = { &answer->front,       &answer->location,
                                   &answer->back,        &answer->status_block,
                                   &answer->front_block, &answer->location_block,
                                   &answer->back_block };
    for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++)
        move_span(m, memory, spans[i]);
}

/* Whether the redirect is the answer to every client. */
static bool is_for_every_client(const struct rules_rule *rule, const struct rules_match *match)
{
    return match->actor == rule && rule->action == RULES_REDIRECT && !rule->if_absent &&
           !match->gate && !match->meter && !match->cors;
}

/* Whether all rules for the path of `actor` except itself cover every path. */
static bool is_alone(const struct rules *rules, const struct rules_rule *actor,
                     const struct rules_match *match)
{
    for (unsigned i = 0; i < rules->count; i++)
        if (rules_match_has(match, i) && &rules->rule[i] != actor &&
            !span_equal(rules->rule[i].pattern.text, SPAN("/**")))
            return false;
    return true;
}

/* Makes the answers of a rule. One that does not fit is left out. False: there is no memory. */
static bool make_answers(const struct rules *rules, const struct rules_rule *rule,
                         struct span server_field, struct session_ready *ready)
{
    char lines[2 * LINES_MAX], blocks[2 * BLOCKS_MAX], path[RULES_PATTERN_MAX];
    struct making m = { buf_over(lines, sizeof(lines)), buf_over(blocks, sizeof(blocks)),
                        server_field };
    struct buf example = buf_over(path, sizeof(path));
    struct rules_match match;
    add_example(&rule->pattern, &example);
    rules_find(rules, buf_span(&example), &match);
    memcpy(ready->bits, match.bits, sizeof(ready->bits));
    if (match.actor == rule && rule->action == RULES_REDIRECT)
        make_redirect(&m, rules, &match, &ready->redirect);
    if (match.cors == rule && rule->preflight.len > 0)
        make_preflight(&m, rules, &match, &ready->preflight);
    if (m.lines.overflow || m.blocks.overflow) {
        *ready = (struct session_ready){ 0 };
        return true;
    }
    if (m.lines.len == 0)
        return true;
    if (is_for_every_client(rule, &match)) {
        ready->is_alone = is_alone(rules, rule, &match);
        if (rule->pattern.form == RULES_PATTERN_PLAIN)
            ready->path = rule->pattern.text;
    }
    ready->has_query = rule->target.has_query;
    ready->memory = malloc(m.lines.len + m.blocks.len);
    if (!ready->memory)
        return false;
    memcpy(ready->memory, m.lines.at, m.lines.len);
    memcpy(ready->memory + m.lines.len, m.blocks.at, m.blocks.len);
    move_answer(&m, ready->memory, &ready->redirect);
    move_answer(&m, ready->memory, &ready->preflight);
    return true;
}

static unsigned count_of(const struct rules *rules)
{
    return rules->count + rules->list_count;
}

static uint64_t length_bit(struct span path)
{
    return UINT64_C(1) << path.len % 64;
}

/* The slot of the path, or the empty one where it would be. */
static const struct session_ready **find_slot(const struct session_ready_set *set, struct span path)
{
    size_t at = (size_t)hash_bytes(path, 0) & (set->slot_count - 1);
    while (set->slots[at] && !span_equal(set->slots[at]->path, path))
        at = (at + 1) & (set->slot_count - 1);
    return &set->slots[at];
}

const struct session_ready *session_ready_find(const struct session_ready_set *set,
                                               struct span path)
{
    return (set->lengths & length_bit(path)) != 0 ? *find_slot(set, path) : NULL;
}

const struct session_ready *session_ready_find_alone(const struct session_ready_set *set,
                                                     const struct rules *rules, struct span path,
                                                     const struct rules_rule **ret_rule,
                                                     struct rules_captures *ret_captures)
{
    const uint64_t head = rules_pattern_head(path);
    if (rules->count > RULES_INDEX_BITS)
        return NULL;
    const uint64_t left = rules_index_find(&rules->index, rules->count, head, 0);
    if (left == 0)
        return NULL;
    const unsigned place = RULES_INDEX_BITS - 1 - (unsigned)__builtin_clzll(left);
    const struct session_ready *ready = &set->each[place];
    *ret_rule = &rules->rule[place];
    return ready->is_alone && ready->bits[0] == left &&
                   rules_pattern_matches(&(*ret_rule)->pattern, path, ret_captures)
               ? ready
               : NULL;
}

/* False: there is no memory. */
static bool make_slots(struct session_ready_set *set, unsigned count)
{
    size_t paths = 0;
    for (unsigned i = 0; i < count; i++)
        paths += set->each[i].path.len > 0;
    if (paths == 0)
        return true;
    set->slot_count = 2;
    while (set->slot_count < 2 * paths)
        set->slot_count *= 2;
    set->slots = calloc(set->slot_count, sizeof(*set->slots));
    for (unsigned i = 0; set->slots && i < count; i++)
        if (set->each[i].path.len > 0) {
            *find_slot(set, set->each[i].path) = &set->each[i];
            set->lengths |= length_bit(set->each[i].path);
        }
    return set->slots != NULL;
}

struct session_ready_set *session_ready_new(const struct rules *rules, struct span server_field)
{
    const unsigned count = count_of(rules);
    struct session_ready_set *set = calloc(1, sizeof(*set));
    bool made = set && (set->each = calloc(count, sizeof(*set->each)));
    for (unsigned i = 0; made && i < count; i++) {
        const struct rules_rule *rule = i < rules->count ? &rules->rule[i]
                                                         : &rules->list[i - rules->count];
        made = make_answers(rules, rule, server_field, &set->each[i]);
    }
    if (made && make_slots(set, count))
        return set;
    session_ready_free(set, rules);
    return NULL;
}

void session_ready_free(struct session_ready_set *set, const struct rules *rules)
{
    if (!set)
        return;
    for (unsigned i = 0; set->each && i < count_of(rules); i++)
        free(set->each[i].memory);
    free((void *)set->slots);
    free(set->each);
    free(set);
}
