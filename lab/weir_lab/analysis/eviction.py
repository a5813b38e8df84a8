# SPDX-License-Identifier: MIT
"""Who leaves a full cache, played through request by request: objects of equal size, no threads.

Each policy takes a trace and says for each request whether it is a hit. All of them let in whatever
they have missed. `sieve` and `lru` are those of src/site/eviction.c, and bench/cache.c has to count
the same hits; `fifo` is what both would be if they did not look at hits; `belady` knows the future
and cannot be beaten by any that lets in what it misses.
"""

import heapq
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Hits = NDArray[np.bool_]
NOBODY = -1


def fifo(trace: Sequence[int], capacity: int) -> Hits:
    """The one that came first leaves first."""
    held: set[int] = set()
    queue: deque[int] = deque()
    hits = bytearray(len(trace))
    for at, wanted in enumerate(trace):
        if wanted in held:
            hits[at] = 1
            continue
        if len(held) == capacity:
            held.remove(queue.popleft())
        held.add(wanted)
        queue.append(wanted)
    return np.frombuffer(hits, dtype=np.bool_)


def lru(trace: Sequence[int], capacity: int) -> Hits:
    """The one that was not asked for the longest leaves."""
    held: OrderedDict[int, None] = OrderedDict()
    hits = bytearray(len(trace))
    for at, wanted in enumerate(trace):
        if wanted in held:
            hits[at] = 1
            held.move_to_end(wanted)
            continue
        if len(held) == capacity:
            held.popitem(last=False)
        held[wanted] = None
    return np.frombuffer(hits, dtype=np.bool_)


def sieve(trace: Sequence[int], capacity: int) -> Hits:
    """Newcomers queue up and never move; a hand spares, once, those that were asked for since.

    The hand walks from the oldest to the newest, and then begins again; it stays where it was.
    """
    newer: dict[int, int] = {}
    older: dict[int, int] = {}
    visited: set[int] = set()
    newest = oldest = hand = NOBODY
    hits = bytearray(len(trace))
    for at, wanted in enumerate(trace):
        if wanted in newer:
            hits[at] = 1
            visited.add(wanted)
            continue
        if len(newer) == capacity:
            if hand == NOBODY:
                hand = oldest
            while hand in visited:
                visited.remove(hand)
                hand = newer[hand] if newer[hand] != NOBODY else oldest
            left, right = older.pop(hand), newer.pop(hand)
            if right != NOBODY:
                older[right] = left
            else:
                newest = left
            if left != NOBODY:
                newer[left] = right
            else:
                oldest = right
            hand = right
        newer[wanted], older[wanted] = NOBODY, newest
        if newest != NOBODY:
            newer[newest] = wanted
        else:
            oldest = wanted
        newest = wanted
    return np.frombuffer(hits, dtype=np.bool_)


def next_uses(trace: Sequence[int]) -> list[int]:
    """For each request where the same object is asked for next; past the end, where never."""
    following: dict[int, int] = {}
    uses = [0] * len(trace)
    for at in range(len(trace) - 1, -1, -1):
        uses[at] = following.get(trace[at], len(trace))
        following[trace[at]] = at
    return uses


def belady(trace: Sequence[int], capacity: int) -> Hits:
    """The one that is needed last, or never again, leaves (Belady's MIN)."""
    uses = next_uses(trace)
    held: dict[int, int] = {}  # object -> its next use
    furthest: list[tuple[int, int]] = []  # (-next use, object); what is out of date is passed over
    hits = bytearray(len(trace))
    for at, wanted in enumerate(trace):
        if wanted in held:
            hits[at] = 1
        elif len(held) == capacity:
            while True:
                use, victim = heapq.heappop(furthest)
                if held.get(victim) == -use:
                    break
            del held[victim]
        held[wanted] = uses[at]
        heapq.heappush(furthest, (-uses[at], wanted))
    return np.frombuffer(hits, dtype=np.bool_)


POLICIES: dict[str, Callable[[Sequence[int], int], Hits]] = {
    "belady": belady,
    "sieve": sieve,
    "lru": lru,
    "fifo": fifo,
}
