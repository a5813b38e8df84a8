/* SPDX-License-Identifier: MIT
 *
 * A segment that others have written: any words in its head and its arenas, and any lengths. It is
 * summed up and shown, or refused with one line.
 *
 * An input is a list of changes to a sound segment, because random bytes would never get past the
 * magic.
 */
#include "base/check.h"
#include "stats/arena.h"
#include "view/view.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENAS = 2, PARTS = 1 + ARENAS, WIDE = 1, SHORTER = 2, SECOND = 4 };
#define TO_ARENA (UINT32_C(1) << 31)

struct change {
    uint32_t place; /* in the head; with TO_ARENA, in an arena */
    uint32_t how;   /* WIDE: 8 bytes, not 4; SHORTER: end there; SECOND: in the second arena */
    uint64_t value;
};

static struct stats_copy make_sound_copy(void)
{
    struct stats_segment segments[ARENAS];
    struct stats_copy copy = { .arena_count = ARENAS }, each;
    char text[STATS_WHY_MAX];
    int why;
    copy.arena = calloc(ARENAS, sizeof(*copy.arena));
    CHECK(copy.arena);
    for (unsigned i = 0; i < ARENAS; i++) {
        struct stats_writer writer;
        CHECK(stats_segment_create(&segments[i], &why) == 0);
        for (unsigned block = 0; block < 2; block++) {
            stats_writer_open(&writer, &segments[i]); /* and keep it */
            stats_writer_add(&writer, STATS_requests, 1);
            struct stats_row *row = stats_writer_row(&writer, block);
            CHECK(row);
            stats_writer_record(&writer, &row->latency, 12345, 1);
            stats_writer_record(&writer, &writer.block->queue_wait, 99, 1);
        }
        stats_segment_add_site(&segments[i], "a site");
        stats_segment_generation(&segments[i], &(struct stats_generation){ .workers = 2 });
        CHECK(stats_copy_here(&segments[i], &each, text) && each.arena_count == 1);
        copy.arena[i] = each.arena[0];
        free((void *)(uintptr_t)copy.head.at);
        copy.head = each.head;
        free(each.arena);
        stats_segment_remove(&segments[i]);
    }
    struct stats_header *header = (struct stats_header *)(uintptr_t)copy.head.at;
    atomic_store(&header->arena_count, ARENAS);
    return copy;
}

static struct span copy_bytes(struct span from)
{
    char *to = aligned_alloc(CACHE_LINE, (from.len + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
    CHECK(to);
    memcpy(to, from.at, from.len);
    return span_of(to, from.len);
}

static void apply_change(struct span bytes, const struct change *change)
{
    size_t width = change->how & WIDE ? sizeof(uint64_t) : sizeof(uint32_t);
    if (bytes.len < width)
        return;
    size_t at = (change->place & ~TO_ARENA) / 4 * 4 % (bytes.len - width + 1);
    memcpy((char *)(uintptr_t)bytes.at + at, &change->value, width);
}

/* Makes a part of the segment sound again. Copying it for each input took most of the time. */
static void undo_changes(struct span bytes, struct span sound)
{
    CHECK(bytes.len == sound.len);
    memcpy((char *)(uintptr_t)bytes.at, sound.at, sound.len);
}

/* Lines for a terminal, which must not obey anything in them. */
static bool is_plain(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (((unsigned char)text[i] < ' ' && text[i] != '\n') || text[i] == 0x7f)
            return false;
    return true;
}

/* In one format for each input: writing takes most of the time. */
static void show_snapshot(struct stats_snapshot *snapshot, size_t form)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    CHECK(out);
    const struct view view = { .snapshot = snapshot, .read_ns = 1, .read_s = 1 };
    if (form % 4 == 0)
        view_print_text(&view, true, out);
    else if (form % 4 == 1)
        view_print_json(&view, out);
    else if (form % 4 == 2)
        view_print_prometheus(&view, out);
    else
        view_print_openmetrics(&view, out);
    CHECK(fclose(out) == 0 && (form % 4 > 1 || is_plain(text, len)));
    free(text);
}

static void read_copy(struct stats_copy *copy, size_t form)
{
    char why[STATS_WHY_MAX] = "";
    struct stats_snapshot *snapshot = stats_snapshot_of(copy, why);
    if (snapshot) {
        show_snapshot(snapshot, form);
    } else {
        CHECK(strlen(why) > 0 && !strchr(why, '\n') && is_plain(why, strlen(why)));
    }
    stats_snapshot_free(snapshot);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct stats_copy sound;
    static struct span own[PARTS]; /* copies of its parts: the head, and then the arenas */
    if (!sound.arena) {
        sound = make_sound_copy();
        own[0] = copy_bytes(sound.head);
        for (unsigned i = 0; i < ARENAS; i++)
            own[1 + i] = copy_bytes(sound.arena[i]);
    }
    struct span part[PARTS];
    bool changed[PARTS] = { false };
    memcpy(part, own, sizeof(part));
    struct change change;
    const size_t form = size / sizeof(change);
    while (size >= sizeof(change)) {
        memcpy(&change, data, sizeof(change));
        data += sizeof(change);
        size -= sizeof(change);
        const unsigned which = !(change.place & TO_ARENA) ? 0 : change.how & SECOND ? 2 : 1;
        if (change.how & SHORTER)
            part[which] = span_first(part[which], change.place & ~TO_ARENA);
        else
            apply_change(part[which], &change);
        changed[which] = true;
    }
    struct stats_copy copy = { part[0], ARENAS, part + 1 };
    read_copy(&copy, form);
    for (unsigned i = 0; i < PARTS; i++)
        if (changed[i])
            undo_changes(own[i], i == 0 ? sound.head : sound.arena[i - 1]);
    return 0;
}
