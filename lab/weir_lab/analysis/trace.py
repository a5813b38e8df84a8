# SPDX-License-Identifier: MIT
"""Traces: the sequence of objects that are requested.

Requests to web servers roughly follow Zipf's law: the object of rank r has a share of the requests
in proportion to r ** -exponent. A larger exponent concentrates requests on the popular objects;
0.6 to 1.2 are usual. Objects are numbered by their rank, from 0.
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
    """Independent requests (the independent reference model)."""
    upto = np.cumsum(zipf_shares(objects, exponent))
    upto[-1] = 1.0
    drawn = np.random.default_rng(seed).random(requests)
    return np.searchsorted(upto, drawn, side="right").astype(np.uint32)


def with_scans(trace: Trace, objects: int, scan: int, between: int) -> Trace:
    """Inserts a scan of other objects: `scan` requests after every `between` requests.

    The scanned objects have numbers from `objects` on. There are as many of them as objects, and
    the scan repeats them. The trace keeps its length, so its last requests are dropped.
    """
    places = np.arange(len(trace))
    scanned = places % (between + scan) >= between
    mixed = np.empty_like(trace)
    mixed[~scanned] = trace[: int((~scanned).sum())]
    mixed[scanned] = objects + np.arange(int(scanned.sum())) % objects
    return mixed


def lru_in_theory(shares: FloatArray, capacity: int) -> float:
    """The hit ratio of a least-recently-used cache in the long run (Che's approximation).

    Every object stays cached for about the same time. In that time as many different objects are
    requested as the cache holds.
    """
    if capacity >= len(shares):
        return 1.0

    def too_many(log_time: float) -> float:
        return float((-np.expm1(-shares * np.exp(log_time))).sum()) - capacity

    stay = np.exp(optimize.brentq(too_many, -10.0, 100.0))
    return float((shares * -np.expm1(-shares * stay)).sum())
