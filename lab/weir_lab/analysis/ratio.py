# SPDX-License-Identifier: MIT
"""Whether two servers differ, from figures taken side by side in interleaved rounds.

The unit is a round with a fresh start of each server, not a request, because requests of one run
depend on that run. A ratio is the geometric mean of the ratios within the rounds. A difference is
shown only where Student's interval and the BCa bootstrap interval both exclude 1. With few rounds
the bootstrap alone finds differences too often. A report with many ratios needs a higher confidence
for each (Bonferroni). At most one report in twenty then claims a difference that does not exist.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import stats

ROUNDS_MIN = 3
DRAWS = 4000


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """One server's figure as a multiple of the other's; the wider of the two intervals."""

    value: float
    low: float
    high: float
    rounds: int
    confidence: float

    @property
    def is_shown(self) -> bool:
        """Whether the interval excludes 1."""
        return self.low > 1 or self.high < 1

    def sentence(self, ours: str, theirs: str, figure: str) -> str:
        """The finding in words."""
        if not self.is_shown:
            if math.isinf(self.high):
                return f"{figure}: no difference shown between {ours} and {theirs}; too few rounds."
            return (
                f"{figure}: no difference shown between {ours} and {theirs} "
                f"({self.value:.2f} times, {self.low:.2f} to {self.high:.2f})."
            )
        return (
            f"{figure}: {ours} has {self.value:.2f} times that of {theirs} "
            f"({self.low:.2f} to {self.high:.2f})."
        )


def confidence_for(looks: int, error: float = 0.05) -> float:
    """The confidence of each of `looks` intervals so that all hold together."""
    return 1 - error / max(1, looks)


def ratio(
    ours: Mapping[int, float],
    theirs: Mapping[int, float],
    *,
    confidence: float = 0.95,
    seed: int = 1,
) -> Ratio | None:
    """The ratio from figures by round; None where they share no round with positive figures."""
    both = sorted(n for n in ours.keys() & theirs.keys() if ours[n] > 0 and theirs[n] > 0)
    if not both:
        return None
    logs = np.log([ours[n] / theirs[n] for n in both])
    middle = float(logs.mean())
    if len(both) < ROUNDS_MIN:
        return Ratio(
            value=math.exp(middle), low=0.0, high=math.inf, rounds=len(both), confidence=confidence
        )
    low = high = middle
    if float(logs.std()) > 1e-12:
        half = float(stats.t.ppf((1 + confidence) / 2, len(logs) - 1) * stats.sem(logs))
        booted = stats.bootstrap(
            (logs,),
            np.mean,
            n_resamples=DRAWS,
            confidence_level=confidence,
            method="BCa",
            rng=np.random.default_rng(seed),
        ).confidence_interval
        low = min(middle - half, _number(booted.low, middle))
        high = max(middle + half, _number(booted.high, middle))
    return Ratio(
        value=math.exp(middle),
        low=math.exp(low),
        high=math.exp(high),
        rounds=len(both),
        confidence=confidence,
    )


def _number(value: float, instead: float) -> float:
    return float(value) if math.isfinite(value) else instead
