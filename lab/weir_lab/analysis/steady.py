# SPDX-License-Identifier: MIT
"""When a run has become steady, and how well its mean is known then."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

MSER_BATCH = 5
BATCHES = 10
CORRELATION_MAX = 0.5


def mser5(series: Sequence[float]) -> int | None:
    """How many values to leave out at the beginning (White's MSER-5); None: it never was steady.

    Batches of five are averaged; the cut is where the standard error of the mean of what is left is
    least. A cut in the second half says that there was no steady state to be found.
    """
    count = len(series) // MSER_BATCH
    if count < 4:
        return None
    batches = np.asarray(series[: count * MSER_BATCH], dtype=np.float64)
    means = batches.reshape(count, MSER_BATCH).mean(axis=1)
    errors = [
        float(((means[cut:] - means[cut:].mean()) ** 2).sum()) / (count - cut) ** 2
        for cut in range(count - max(3, count // 4))  # what a few batches share is chance
    ]
    cut = int(np.argmin(errors))
    return cut * MSER_BATCH if cut <= count // 2 else None


@dataclass(frozen=True, kw_only=True)
class Mean:
    """A mean with its 95 % interval."""

    value: float
    low: float
    high: float
    correlated: bool  # the batches resemble their neighbours: the interval is too narrow


def batch_means(series: Sequence[float], batches: int = BATCHES) -> Mean:
    """The mean of values that depend on their neighbours, by non-overlapping batches."""
    size = len(series) // batches
    value = float(np.mean(series)) if len(series) else math.nan
    if size < 1:
        return Mean(value=value, low=-math.inf, high=math.inf, correlated=True)
    used = np.asarray(series[-size * batches :], dtype=np.float64).reshape(batches, size)
    means = used.mean(axis=1)
    half = float(stats.t.ppf(0.975, batches - 1) * stats.sem(means))
    off = means - means.mean()
    total = float((off**2).sum())
    lag = float((off[1:] * off[:-1]).sum()) / total if total > 0 else 0.0
    return Mean(
        value=float(means.mean()),
        low=float(means.mean()) - half,
        high=float(means.mean()) + half,
        correlated=abs(lag) > CORRELATION_MAX,
    )
