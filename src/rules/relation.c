/* SPDX-License-Identifier: MIT
 *
 * A pattern is a small automaton: a state for each of its places, and one more within each `**`.
 * Both questions walk through pairs of states. A step never leads back, so one pass over the pairs
 * in their order visits all that can be reached, and two rows of them are kept.
 */
#include "rules/relation.h"

/* What a state takes to reach the next one. */
enum symbol { SYMBOL_END, SYMBOL_BYTE, SYMBOL_STAR, SYMBOL_DEEP };

struct place {
    enum symbol symbol;
    char byte;       /* of SYMBOL_BYTE */
    bool within;     /* of SYMBOL_DEEP: the slash that begins a segment is taken */
    unsigned next;   /* the state behind the symbol */
    unsigned inside; /* of SYMBOL_DEEP: the state with `within` */
};

/* A state is twice the place in the text. The one within a `**` is the odd number behind it. */
enum { STATES_MAX = 2 * RULES_PATTERN_MAX + 2 };

static unsigned states_of(const struct rules_pattern *pattern)
{
    return 2 * (unsigned)pattern->text.len + 1;
}

static struct place place_of(const struct rules_pattern *pattern, unsigned state)
{
    static const unsigned deep_len = sizeof("/**") - 1;
    const struct span rest = span_skip(pattern->text, state / 2);
    const unsigned even = state / 2 * 2;
    struct place place = { .within = state % 2 == 1 };
    if (rest.len == 0)
        return place;
    if (span_starts(rest, SPAN("/**"))) {
        place.symbol = SYMBOL_DEEP;
        place.next = even + 2 * deep_len;
        place.inside = even + 1;
        return place;
    }
    place.symbol = rest.at[0] == '*' ? SYMBOL_STAR : SYMBOL_BYTE;
    place.byte = rest.at[0];
    place.next = even + 2;
    return place;
}

/* The states that are reached, of the rows `from` to `from + ROWS - 1`. */
enum { ROWS = 2 * sizeof("/**") };

struct walk {
    bool reached[ROWS][STATES_MAX];
};

static void reach(struct walk *w, unsigned row, unsigned column)
{
    w->reached[row % ROWS][column] = true;
}

/* ---- covers ---- */

/* Whether the symbol of the wide pattern takes that of the narrow one. */
static bool takes_symbol(const struct place *wide, const struct place *narrow)
{
    switch (wide->symbol) {
    case SYMBOL_END:
        return false;
    case SYMBOL_BYTE:
        return narrow->symbol == SYMBOL_BYTE && narrow->byte == wide->byte;
    case SYMBOL_STAR:
        return narrow->symbol == SYMBOL_STAR ||
               (narrow->symbol == SYMBOL_BYTE && narrow->byte != '/');
    case SYMBOL_DEEP:
        return narrow->symbol == SYMBOL_DEEP || (narrow->symbol != SYMBOL_END && wide->within) ||
               (narrow->symbol == SYMBOL_BYTE && narrow->byte == '/');
    }
    return false;
}

/* The symbols of the narrow pattern are the input of the wide one. */
static void step_covers(struct walk *w, const struct rules_pattern *wide, unsigned row,
                        const struct place *narrow, unsigned column)
{
    const struct place place = place_of(wide, row);
    if (place.symbol == SYMBOL_STAR || place.symbol == SYMBOL_DEEP)
        reach(w, place.next, column);
    if (!takes_symbol(&place, narrow))
        return;
    if (place.symbol == SYMBOL_BYTE)
        reach(w, place.next, narrow->next);
    else if (place.symbol == SYMBOL_DEEP && narrow->symbol != SYMBOL_DEEP)
        reach(w, place.inside, narrow->next);
    else
        reach(w, row, narrow->next);
}

bool rules_relation_covers(const struct rules_pattern *wide, const struct rules_pattern *narrow)
{
    struct walk w = { 0 };
    const unsigned rows = states_of(wide), columns = states_of(narrow);
    reach(&w, 0, 0);
    for (unsigned row = 0; row < rows; row++) {
        bool *reached = w.reached[row % ROWS];
        if (row + 1 == rows)
            return reached[columns - 1];
        for (unsigned column = 0; column < columns; column += 2) {
            if (!reached[column])
                continue;
            const struct place place = place_of(narrow, column);
            step_covers(&w, wide, row, &place, column);
        }
        memset(reached, 0, sizeof(w.reached[0]));
    }
    return false;
}

/* ---- meets ---- */

/* The bytes that a state takes: one, all but a slash, or all. */
enum bytes { BYTES_NONE, BYTES_ONE, BYTES_SEGMENT, BYTES_ALL };

static enum bytes bytes_of(const struct place *place, char *ret_byte)
{
    *ret_byte = place->symbol == SYMBOL_BYTE ? place->byte : '/';
    switch (place->symbol) {
    case SYMBOL_END:
        return BYTES_NONE;
    case SYMBOL_BYTE:
        return BYTES_ONE;
    case SYMBOL_STAR:
        return BYTES_SEGMENT;
    case SYMBOL_DEEP:
        return place->within ? BYTES_ALL : BYTES_ONE;
    }
    return BYTES_NONE;
}

static bool share_a_byte(const struct place *a, const struct place *b)
{
    char byte_a, byte_b;
    const enum bytes of_a = bytes_of(a, &byte_a), of_b = bytes_of(b, &byte_b);
    if (of_a == BYTES_NONE || of_b == BYTES_NONE)
        return false;
    if (of_a == BYTES_ONE && of_b == BYTES_ONE)
        return byte_a == byte_b;
    if (of_a == BYTES_ONE)
        return of_b == BYTES_ALL || byte_a != '/';
    if (of_b == BYTES_ONE)
        return of_a == BYTES_ALL || byte_b != '/';
    return true;
}

/* The state behind the byte that a state takes. */
static unsigned after_byte(const struct place *place, unsigned state)
{
    return place->symbol == SYMBOL_BYTE   ? place->next
           : place->symbol == SYMBOL_DEEP ? place->inside
                                          : state;
}

static void step_meets(struct walk *w, const struct place *a, unsigned row, const struct place *b,
                       unsigned column)
{
    if (a->symbol == SYMBOL_STAR || a->symbol == SYMBOL_DEEP)
        reach(w, a->next, column);
    if (b->symbol == SYMBOL_STAR || b->symbol == SYMBOL_DEEP)
        reach(w, row, b->next);
    if (share_a_byte(a, b))
        reach(w, after_byte(a, row), after_byte(b, column));
}

bool rules_relation_meets(const struct rules_pattern *a, const struct rules_pattern *b)
{
    struct walk w = { 0 };
    const unsigned rows = states_of(a), columns = states_of(b);
    reach(&w, 0, 0);
    for (unsigned row = 0; row < rows; row++) {
        bool *reached = w.reached[row % ROWS];
        for (unsigned column = 0; column < columns; column++) {
            if (!reached[column])
                continue;
            const struct place of_a = place_of(a, row), of_b = place_of(b, column);
            step_meets(&w, &of_a, row, &of_b, column);
        }
        if (row + 1 == rows)
            return reached[columns - 1];
        memset(reached, 0, sizeof(w.reached[0]));
    }
    return false;
}
