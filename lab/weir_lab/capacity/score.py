# SPDX-License-Identifier: MIT
"""Scores of a prediction on held-out points."""

from dataclasses import dataclass

import numpy as np

from weir_lab.capacity.queueing import FloatArray


@dataclass(frozen=True, kw_only=True)
class Score:
    """Errors on held-out points. Smaller is better; coverage should be 0.95."""

    mape: float  # mean absolute error, relative to the measurements
    rmse: float  # per second
    crps: float  # per second; the absolute error of a distribution
    coverage: float  # of the 95 % intervals
    width: float  # of these intervals, relative to the measurements


def mape(predicted: FloatArray, measured: FloatArray) -> float:
    """Mean absolute percentage error, as a part of one."""
    return float(np.mean(np.abs(predicted - measured) / measured))


def crps(draws: FloatArray, measured: FloatArray) -> float:
    """Continuous ranked probability score of samples: E|x-y| - E|x-x'|/2, averaged over points.

    `draws` has a row for each draw and a column for each point.
    """
    error = np.abs(draws - measured).mean(axis=0)
    ordered = np.sort(draws, axis=0)
    count = len(ordered)
    weights = 2 * np.arange(1, count + 1) - count - 1
    spread = (weights[:, None] * ordered).sum(axis=0) / count**2
    return float(np.mean(error - spread))


def score(
    predicted: FloatArray,
    low: FloatArray,
    high: FloatArray,
    draws: FloatArray,
    measured: FloatArray,
) -> Score:
    """Scores a prediction, its 95 % band and the draws around it."""
    return Score(
        mape=mape(predicted, measured),
        rmse=float(np.sqrt(np.mean((predicted - measured) ** 2))),
        crps=crps(draws, measured),
        coverage=float(np.mean((low <= measured) & (measured <= high))),
        width=float(np.mean((high - low) / measured)),
    )
