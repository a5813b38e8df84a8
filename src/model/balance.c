/* SPDX-License-Identifier: MIT */
#include "model/balance.h"

#include "base/duration.h"
#include "model/connection.h"
#include "model/reactor.h"

#define WINDOW_NS (DURATION_SECOND / 10)
#define QUIET_NS  DURATION_SECOND

enum {
    PERMILLE = 1000,
    BUSY = 100,      /* permille: below this a reactor shares no load */
    SATURATED = 900, /* permille: above this, utilisation does not show how much work waits */
    UNEVEN_LOAD = 50,
    UNEVEN_LOAD_SHARE = 4, /* or this part of the busier reactor's, whichever is more */
    UNEVEN_COUNT = 4,
    UNEVEN_COUNT_SHARE = 8, /* likewise. More than model_owner_choose allows, a twentieth */
    MEASURED = 100,         /* turns in a window, about */
    PATIENCE = 3,           /* windows that are uneven before a handover */
    FRESH = 2,              /* windows for which a measurement is valid */
    PAUSE_FIRST = 2,        /* windows after a handover */
    PAUSE_LAST = 256,
    STAY = 10,       /* windows that a connection stays */
    GIVEN_MAX = 128, /* connections in one handover */
    EXAMINED_MAX = 1024
};

/* This reactor beside the others. */
struct standing {
    struct model_reactor *idlest, *emptiest;
    unsigned busy, busy_least, busy_mean; /* permille; `busy` and `live` are this reactor's */
    unsigned live, live_least, live_mean;
};

void model_balance_init(struct model_balance *b, uint64_t now_ns)
{
    *b = (struct model_balance){
        .window_ns = now_ns,
        .woke_ns = now_ns,
        .stride = 1,
        .left = 1,
        .pause = PAUSE_FIRST,
    };
}

static uint64_t window_of(const struct model_reactor *r)
{
    return r->loop.now_ns / WINDOW_NS;
}

static unsigned smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static unsigned larger(unsigned a, unsigned b)
{
    return a > b ? a : b;
}

/* Neither a reactor that sleeps nor one that waits for a disk updates its load. */
static unsigned busy_of(struct model_reactor *other, uint64_t window)
{
    uint64_t load = atomic_load_explicit(&other->balance.load, memory_order_relaxed);
    if (window <= (load >> 16) + FRESH)
        return (unsigned)(load & 0xffff);
    return atomic_load_explicit(&other->balance.waiting, memory_order_relaxed) ? 0 : PERMILLE;
}

static struct standing compare_reactors(struct model_reactor *r)
{
    CHECK(r->loop.count > 0);
    uint64_t window = window_of(r);
    struct standing s = { .busy_least = UINT32_MAX, .live_least = UINT32_MAX };
    uint64_t busy_sum = 0, live_sum = 0;
    for (unsigned i = 0; i < r->loop.count; i++) {
        struct model_reactor *each = model_reactor_at(r, i);
        unsigned busy = busy_of(each, window);
        unsigned live = atomic_load_explicit(&each->loop.live, memory_order_relaxed);
        busy_sum += busy;
        live_sum += live;
        if (each == r) {
            s.busy = busy;
            s.live = live;
        }
        if (busy < s.busy_least && live < each->loop.connections_max) {
            s.busy_least = busy;
            s.idlest = each;
        }
        if (live < s.live_least) {
            s.live_least = live;
            s.emptiest = each;
        }
    }
    s.busy_mean = (unsigned)(busy_sum / r->loop.count);
    s.live_mean = (unsigned)(live_sum / r->loop.count);
    return s;
}

static bool has_more_load(const struct standing *s)
{
    return s->idlest && s->busy >= BUSY && s->busy > s->busy_mean &&
           s->busy > s->busy_least + larger(UNEVEN_LOAD, s->busy / UNEVEN_LOAD_SHARE);
}

static bool has_more_connections(const struct standing *s)
{
    return s->live > s->live_mean &&
           s->live > s->live_least + larger(UNEVEN_COUNT, s->live / UNEVEN_COUNT_SHARE);
}

/* Makes this reactor the only one that hands over to `to` for a while. */
static bool claim_reactor(struct model_reactor *to, uint64_t window)
{
    uint64_t claimed = atomic_load_explicit(&to->balance.claimed, memory_order_relaxed);
    return claimed < window &&
           atomic_compare_exchange_strong(&to->balance.claimed, &claimed, window + PAUSE_FIRST);
}

static bool give_away(struct model_reactor *r, struct model_connection *c, struct model_reactor *to)
{
    if (atomic_load_explicit(&to->loop.live, memory_order_relaxed) >= to->loop.connections_max)
        return false;
    c->stays_until = (uint32_t)window_of(r) + STAY;
    if (!model_connection_hand_over(r, c, to))
        return false;
    r->balance.given++;
    return true;
}

/* No request has arrived for a while: each request moves the deadline. */
static bool is_quiet(const struct model_reactor *r, const struct model_connection *c)
{
    return session_deadline_ns(&c->session) + QUIET_NS <=
           r->loop.now_ns + r->loop.thread.shared->idle_timeout_ns;
}

static bool has_to_stay(const struct model_reactor *r, const struct model_connection *c)
{
    return (int32_t)(c->stays_until - (uint32_t)window_of(r)) > 0;
}

static void give_for_number(struct model_reactor *r, const struct standing *s)
{
    struct model_balance *b = &r->balance;
    unsigned emptiest_busy = busy_of(s->emptiest, window_of(r));
    bool idle = s->busy < BUSY && emptiest_busy < BUSY;
    bool saturated = s->busy >= SATURATED && emptiest_busy >= SATURATED;
    unsigned wanted = smaller(s->live - s->live_mean, s->live_mean - s->live_least);
    wanted = smaller(wanted, GIVEN_MAX);
    unsigned examined = 0;
    for (unsigned i = 0; i < WHEEL_SLOTS; i++) {
        struct model_wheel_node *head = &r->loop.wheel.slot[b->slot];
        struct model_wheel_node *next;
        for (struct model_wheel_node *node = head->next; node != head; node = next) {
            next = node->next;
            struct model_connection *c = model_connection_of(node);
            if (b->given >= wanted || ++examined > EXAMINED_MAX)
                return;
            if (!has_to_stay(r, c) && (idle || saturated || is_quiet(r, c)))
                (void)give_away(r, c, s->emptiest);
        }
        b->slot = (b->slot + 1) % WHEEL_SLOTS;
    }
}

static void pause_handover(struct model_balance *b, uint64_t window)
{
    b->pause = b->received ? smaller(b->pause * 2, PAUSE_LAST) : PAUSE_FIRST;
    b->received = false;
    b->again = window + b->pause;
    b->to = NULL;
}

static void decide_handover(struct model_reactor *r)
{
    struct model_balance *b = &r->balance;
    uint64_t window = window_of(r);
    struct standing s = compare_reactors(r);
    bool load = has_more_load(&s), number = has_more_connections(&s);
    b->uneven = load || number ? b->uneven + 1 : 0;
    if (b->uneven < PATIENCE || window < b->again ||
        !claim_reactor(load ? s.idlest : s.emptiest, window))
        return;
    b->seen = b->given = 0;
    if (load) {
        b->to = s.idlest;
        b->share = smaller(s.busy - s.busy_mean, s.busy_mean - s.busy_least) * PERMILLE / s.busy;
        return;
    }
    give_for_number(r, &s);
    if (b->given > 0)
        pause_handover(b, window);
}

/* Publishes the utilisation. Where no turn was measured, the previous value stays. */
static void end_window(struct model_balance *b, uint64_t now_ns)
{
    uint64_t busy = atomic_load_explicit(&b->load, memory_order_relaxed) & 0xffff;
    if (b->span_ns > 0)
        busy = b->busy_ns * PERMILLE / b->span_ns;
    atomic_store_explicit(&b->load, now_ns / WINDOW_NS << 16 | busy, memory_order_relaxed);
    b->stride = larger(b->turns / MEASURED, 1);
    b->left = smaller(b->left, b->stride);
    b->turns = 0;
    b->busy_ns = b->span_ns = 0;
    b->window_ns = now_ns;
}

bool model_balance_turn(struct model_reactor *r)
{
    struct model_balance *b = &r->balance;
    if (b->left == 0) {
        b->busy_ns += b->work_ns;
        b->span_ns += r->loop.now_ns - b->woke_ns;
        b->left = b->stride;
    }
    b->woke_ns = r->loop.now_ns;
    b->turns++;
    if (r->loop.now_ns - b->window_ns < WINDOW_NS)
        return b->to != NULL;
    end_window(b, r->loop.now_ns);
    if (b->to)
        pause_handover(b, window_of(r));
    else if (!r->loop.draining && !r->placement)
        decide_handover(r);
    return b->to != NULL;
}

void model_balance_offer(struct model_reactor *r, struct model_connection *c)
{
    struct model_balance *b = &r->balance;
    if (r->loop.draining || c->owner != r || has_to_stay(r, c) || b->given >= GIVEN_MAX)
        return;
    c->stays_until = (uint32_t)window_of(r) + 2; /* offered once: the window ends before that */
    b->seen++;
    if ((b->given + 1) * PERMILLE <= b->share * b->seen)
        (void)give_away(r, c, b->to);
}
