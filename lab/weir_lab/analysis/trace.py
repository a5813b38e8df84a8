# SPDX-License-Identifier: MIT
"""Which objects are asked for, one after the other.

Requests to web servers follow Zipf's law roughly: the object of rank r is asked for in proportion
to r ** -exponent. The exponent says how much the popular ones stand out; figures between 0.6 and
1.2 are usual. Objects are known by their rank, from 0.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

Trace = NDArray[np.uint32]  # as bench/cache.c reads it
FloatArray = NDArray[np.float64]


def zipf_shares(objects: int, exponent: float) -> FloatArray:
    """The probability of each of a finite number of objects; they add up to 1."""
    weights = np.arange(1, objects + 1, dtype=np.float64) ** -exponent
    shares: FloatArray = weights / weights.sum()
    return shares


def zipf(objects: int, exponent: float, requests: int, seed: int) -> Trace:
    """Requests that know nothing of each other (the independent reference model)."""
    upto = np.cumsum(zipf_shares(objects, exponent))
    upto[-1] = 1.0
    drawn = np.random.default_rng(seed).random(requests)
    return np.searchsorted(upto, drawn, side="right").astype(np.uint32)


def with_scans(trace: Trace, objects: int, scan: int, between: int) -> Trace:
    """Someone walks through other objects: after every `between` requests, `scan` of them.

    What is scanned has numbers from `objects` on, as many as there are objects, round and round.
    The length of the trace stays, so that later requests of it fall away.
    """
    places = np.arange(len(trace))
    scanned = places % (between + scan) >= between
    mixed = np.empty_like(trace)
    mixed[~scanned] = trace[: int((~scanned).sum())]
    mixed[scanned] = objects + np.arange(int(scanned.sum())) % objects
    return mixed


def lru_in_theory(shares: FloatArray, capacity: int) -> float:
    """The hit ratio of a least-recently-used cache in the long run (Che's approximation).

    An object stays for a time that is about the same for all: the one in which as many different
    objects are asked for as the cache holds.
    """
    if capacity >= len(shares):
        return 1.0

    def too_many(log_time: float) -> float:
        return float((-np.expm1(-shares * np.exp(log_time))).sum()) - capacity

    stay = np.exp(optimize.brentq(too_many, -10.0, 100.0))
    return float((shares * -np.expm1(-shares * stay)).sum())
