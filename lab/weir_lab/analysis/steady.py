# SPDX-License-Identifier: MIT
"""The steady part of a run, and the precision of its mean.

The input is the number of answers in each second. MSER-5 averages five observations before it
searches for the cut. A second is already the mean of thousands, so plain MSER is used.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

BATCHES = 10
CORRELATION_MAX = 0.5
SAMPLES_MIN = 16  # fewer cannot show that the beginning differs
CHANGE_MIN = 0.02  # of the mean: smaller changes do not count as a warm-up or a drift
WINDOW = 3  # samples that are averaged
DRIFT_SIGNIFICANT = 0.01


def mser(series: Sequence[float]) -> int | None:
    """How many values to leave out at the beginning (White's MSER); None: never steady.

    The cut minimises the standard error of the mean of the remaining values. A cut in the second
    half means that there is no steady state.
    """
    values = np.asarray(series, dtype=np.float64)
    count = len(values)
    if count < SAMPLES_MIN:
        return None
    errors = [
        float(((values[cut:] - values[cut:].mean()) ** 2).sum()) / (count - cut) ** 2
        for cut in range(count - count // 4)  # few values may agree by chance
    ]
    cut = int(np.argmin(errors))
    return cut if cut <= count // 2 else None


def beginning(series: Sequence[float]) -> int | None:
    """How many samples to leave out at the beginning of a run; None: it drifts to its end.

    Chance moves the cut of MSER. So the cut is moved forward to the first samples that resemble
    those after it. A late cut counts only where the two halves differ significantly.
    """
    values = np.asarray(series, dtype=np.float64)
    cut = mser(series)
    whole = abs(float(values.mean()))
    if cut is None:
        first, second = np.array_split(values, 2)
        apart = abs(float(first.mean() - second.mean()))
        if apart <= CHANGE_MIN * whole:
            return 0
        test = stats.ttest_ind(first, second, equal_var=False)
        return None if test.pvalue < DRIFT_SIGNIFICANT else 0
    settled = float(values[cut:].mean())
    usual = max(CHANGE_MIN * whole, 2 * float(values[cut:].std(ddof=1)) / math.sqrt(WINDOW))
    for start in range(cut):
        if abs(float(values[start : start + WINDOW].mean()) - settled) <= usual:
            return start
    return cut


@dataclass(frozen=True, kw_only=True)
class Mean:
    """A mean with its 95 % interval."""

    value: float
    low: float
    high: float
    correlated: bool  # neighbouring batches are correlated: the interval is too narrow


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
