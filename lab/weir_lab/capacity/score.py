# SPDX-License-Identifier: MIT
"""Scores of a prediction on held-out levels.

The error is judged against the median of each level's runs, so that one disturbed run cannot ruin
it. The band is of a single run, so that its coverage is judged against every run.
"""

from dataclasses import dataclass

import numpy as np

from weir_lab.capacity.queueing import FloatArray


@dataclass(frozen=True, kw_only=True)
class Score:
    """How far a prediction was off, and how well its band knew that."""

    mape: float  # mean absolute error, relative to the medians of the levels
    coverage: float  # the part of the runs within the 95 % band; it should be 0.95
    width: float  # of the band, relative to the prediction


@dataclass(frozen=True, kw_only=True)
class Scored:
    """The errors of a forecast and of the two baselines on held-out levels."""

    forecast: Score
    linear: float  # mean relative error
    constant: float


def mape(predicted: FloatArray, measured: FloatArray) -> float:
    """Mean absolute percentage error, as a part of one."""
    return float(np.mean(np.abs(predicted - measured) / measured))


def coverage(low: FloatArray, high: FloatArray, measured: FloatArray) -> float:
    """The part of the measurements between both bounds."""
    return float(np.mean((low <= measured) & (measured <= high)))
