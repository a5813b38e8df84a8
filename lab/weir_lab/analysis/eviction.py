# SPDX-License-Identifier: MIT
"""Policies of eviction, simulated request by request: objects of equal size, no threads.

Each policy takes a trace and returns for each request whether it is a hit. Every miss is cached.
`sieve` and `lru` are those of src/site/eviction.c, and bench/cache.c has to count the same hits.
`fifo` ignores hits. `belady` knows the future: no policy that caches every miss has more hits.
"""

import heapq
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Hits = NDArray[np.bool_]
NO_OBJECT = -1


def fifo(trace: Sequence[int], capacity: int) -> Hits:
    """Evicts the object that was cached first."""
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
    """Evicts the object whose last request is the oldest."""
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
    """Objects stay in the order of insertion. A hand skips each object once that had a hit.

    The hand moves from the oldest to the newest object, then starts again at the oldest. It keeps
    its position between evictions.
    """
    newer: dict[int, int] = {}
    older: dict[int, int] = {}
    visited: set[int] = set()
    newest = oldest = hand = NO_OBJECT
    hits = bytearray(len(trace))
    for at, wanted in enumerate(trace):
        if wanted in newer:
            hits[at] = 1
            visited.add(wanted)
            continue
        if len(newer) == capacity:
            if hand == NO_OBJECT:
                hand = oldest
            while hand in visited:
                visited.remove(hand)
                hand = newer[hand] if newer[hand] != NO_OBJECT else oldest
            left, right = older.pop(hand), newer.pop(hand)
            if right != NO_OBJECT:
                older[right] = left
            else:
                newest = left
            if left != NO_OBJECT:
                newer[left] = right
            else:
                oldest = right
            hand = right
        newer[wanted], older[wanted] = NO_OBJECT, newest
        if newest != NO_OBJECT:
            newer[newest] = wanted
        else:
            oldest = wanted
        newest = wanted
    return np.frombuffer(hits, dtype=np.bool_)


def next_uses(trace: Sequence[int]) -> list[int]:
    """For each request, the index of the object's next request; the trace's length if none."""
    following: dict[int, int] = {}
    uses = [0] * len(trace)
    for at in range(len(trace) - 1, -1, -1):
        uses[at] = following.get(trace[at], len(trace))
        following[trace[at]] = at
    return uses


def belady(trace: Sequence[int], capacity: int) -> Hits:
    """Evicts the object whose next request is the furthest (Belady's MIN)."""
    uses = next_uses(trace)
    held: dict[int, int] = {}  # object -> its next use
    furthest: list[tuple[int, int]] = []  # (-next use, object); outdated pairs are skipped
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
