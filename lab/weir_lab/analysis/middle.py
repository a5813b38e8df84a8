# SPDX-License-Identifier: MIT
"""The median of a few repeated measurements, with its interval."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

DRAWS = 2000


@dataclass(frozen=True, kw_only=True)
class Middle:
    """A median with its interval; infinitely wide when there is a single value."""

    value: float
    low: float
    high: float
    count: int


def middle(values: Sequence[float], *, confidence: float = 0.95, seed: int = 1) -> Middle:
    """The median and the percentile bootstrap's interval around it.

    With fewer than six values the interval is nearly their whole range, and its coverage is
    somewhat below the confidence. Chance alone cannot make it narrow, as it can make an interval
    from a standard deviation.
    """
    value = float(np.median(values))
    if len(values) < 2:
        return Middle(value=value, low=-math.inf, high=math.inf, count=len(values))
    rng = np.random.default_rng(seed)
    drawn = rng.choice(np.asarray(values, dtype=np.float64), size=(DRAWS, len(values)))
    tail = (1 - confidence) / 2
    low, high = np.quantile(np.median(drawn, axis=1), [tail, 1 - tail])
    return Middle(value=value, low=float(low), high=float(high), count=len(values))
