/* SPDX-License-Identifier: MIT */
#include "stats/recent.h"

#include "stats/blocks.h"

#include <string.h>

enum { WORDS = sizeof(struct stats_answer) / sizeof(uint64_t) };
static_assert(sizeof(struct stats_answer) % sizeof(uint64_t) == 0, "an answer is whole words");
static_assert(offsetof(struct stats_answer, duration_ns) == 2 * sizeof(uint64_t), "DURATION");
enum { DURATION = 2 }; /* its word */

/* The words of an answer up to the end of its text. */
static size_t words_of(const struct stats_answer *answer)
{
    const size_t end = offsetof(struct stats_answer, text) + answer->text_len;
    return end < sizeof(*answer) ? (end + sizeof(uint64_t) - 1) / sizeof(uint64_t) : WORDS;
}

struct stats_recent_note stats_recent_add(const struct stats_writer *writer,
                                          enum stats_recent_kind kind,
                                          const struct stats_answer *answer)
{
    uint64_t words[WORDS];
    const size_t used = words_of(answer); /* the rest of the place is of an earlier answer */
    if (!stats_writer_visible(writer))
        return (struct stats_recent_note){ 0 };
    struct stats_recent_ring *ring = &stats_blocks_header(writer->segment)->recent[kind];
    uint64_t before = atomic_fetch_add_explicit(&ring->next, 1, memory_order_relaxed);
    struct stats_recent *place = &ring->place[before % STATS_RECENT_MAX];
    memcpy(words, answer, used * sizeof(uint64_t));
    atomic_store_explicit(&place->begun, before + 1, memory_order_relaxed);
    for (size_t i = 0; i < used; i++) /* not before `begun` */
        atomic_store_explicit(&place->word[i], words[i], memory_order_release);
    atomic_store_explicit(&place->whole, before + 1, memory_order_release);
    return (struct stats_recent_note){ place, before + 1 };
}

void stats_recent_set_duration(const struct stats_recent_note *note, uint64_t duration_ns)
{
    if (note->place &&
        atomic_load_explicit(&note->place->begun, memory_order_relaxed) == note->number)
        atomic_store_explicit(&note->place->word[DURATION], duration_ns, memory_order_relaxed);
}

bool stats_recent_read(const struct stats_recent *place, struct stats_answer *ret_answer)
{
    uint64_t words[WORDS];
    uint64_t whole = atomic_load_explicit(&place->whole, memory_order_relaxed);
    for (unsigned i = 0; i < WORDS; i++)
        words[i] = atomic_load_explicit(&place->word[i], memory_order_relaxed);
    if (whole == 0 || atomic_load_explicit(&place->begun, memory_order_relaxed) != whole)
        return false;
    memcpy(ret_answer, words, sizeof(words));
    return ret_answer->text_len <= STATS_ANSWER_TEXT_MAX && ret_answer->site < STATS_SITES_MAX &&
           ret_answer->fault <= STATS_FAULTS && ret_answer->status >= STATS_STATUS_LEAST &&
           ret_answer->status <= STATS_STATUS_MOST;
}
