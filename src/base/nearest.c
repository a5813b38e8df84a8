/* SPDX-License-Identifier: MIT */
#include "base/nearest.h"

enum { LONGEST = 48, FAR = 1000 };

static char fold(char c)
{
    return c == '_' ? '-' : ascii_lower(c);
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Optimal string alignment: Levenshtein's distance and exchanged neighbours. */
unsigned nearest_distance(struct span a, struct span b)
{
    if (a.len > LONGEST || b.len > LONGEST)
        return FAR;
    unsigned rows[3][LONGEST + 1];
    unsigned *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= b.len; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= a.len; i++) {
        unsigned *spare = before;
        before = above;
        above = row;
        row = spare;
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b.len; j++) {
            unsigned wrong = fold(a.at[i - 1]) != fold(b.at[j - 1]);
            row[j] = least(above[j - 1] + wrong, least(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && fold(a.at[i - 1]) == fold(b.at[j - 2]) &&
                fold(a.at[i - 2]) == fold(b.at[j - 1]))
                row[j] = least(row[j], before[j - 2] + 1);
        }
    }
    return row[b.len];
}

struct nearest nearest_to(struct span wanted)
{
    return (struct nearest){ .wanted = wanted, .best = NULL, .distance = FAR };
}

/* Whether `name` is `end` after other words. */
static bool lacks_only_words(struct span end, struct span name)
{
    const size_t skipped = name.len - end.len;
    return name.at[skipped - 1] == '-' && span_equal_nocase(end, span_skip(name, skipped));
}

void nearest_offer(struct nearest *nearest, const char *name)
{
    struct span candidate = span_text(name);
    struct span wanted = nearest->wanted;
    if (wanted.len < 2)
        return;
    unsigned allowed = wanted.len < 6 ? 1 : (unsigned)(wanted.len / 3);
    unsigned distance = nearest_distance(wanted, candidate);
    if (wanted.len >= 4 && wanted.len < candidate.len) {
        if (span_equal_nocase(wanted, span_first(candidate, wanted.len)))
            distance = 0; /* an abbreviation counts as no slip */
        else if (distance > allowed && lacks_only_words(wanted, candidate))
            distance = allowed; /* a name with fewer slips is better */
    }
    if (distance > allowed || distance >= nearest->distance)
        return;
    nearest->best = name;
    nearest->distance = distance;
}

const char *nearest_of(struct span wanted, const char *const *names)
{
    struct nearest nearest = nearest_to(wanted);
    for (; *names; names++)
        nearest_offer(&nearest, *names);
    return nearest.best;
}
