# SPDX-License-Identifier: MIT
"""The trend of a measured quantity at the highest training loads, and its continuation.

The trend is a straight line of the logarithm of the quantity against the logarithm of users. It is
fitted to the last levels, and disturbed runs count less. Beyond these levels the line is damped:
its slope fades, because batches and wake-ups cannot change for ever. Nothing is chosen here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weir_lab.capacity.queueing import FloatArray

HUBER = 1.5  # standard deviations; larger errors count linearly
ROUNDS = 20
SCATTER_LEAST = 0.003  # relative; two equal runs do not prove that there is no noise
LEVELS_LEAST = 3
USUAL_COUNTS = 3


@dataclass(frozen=True, kw_only=True)
class Trend:
    """A line through logarithms, anchored at the last level that it was fitted to."""

    last: float  # users
    level: float  # logarithm of the quantity at `last`
    level_error: float  # standard error
    slope: float  # by the logarithm of users; as measured
    slope_error: float
    scatter: float  # standard deviation of one measurement, relative

    def shrunk(self, usual: float) -> float:
        """The slope, moved towards 0 as far as it is uncertain; `usual` is a common slope."""
        return self.slope * usual**2 / (usual**2 + self.slope_error**2)

    def at(self, users: FloatArray, *, slope: float, fading: float) -> FloatArray:
        """The quantity: as measured up to `last`, then with this slope and its fading."""
        behind = np.log(np.minimum(users, self.last) / self.last)
        beyond = slope * self.ahead(users, fading=fading)
        return np.asarray(np.exp(self.level + self.slope * behind + beyond))

    def ahead(self, users: FloatArray, *, fading: float) -> FloatArray:
        """The distance beyond `last` that a fading slope counts with; 0 up to `last`."""
        distance = np.log(np.maximum(users, self.last) / self.last)
        return np.asarray((1 - np.exp(-fading * distance)) / fading)

    def slope_off(
        self, users: FloatArray, values: FloatArray, *, slope: float, fading: float
    ) -> float:
        """How far the slope was off at later levels: that of a line through the errors."""
        off = np.log(values / self.at(users, slope=slope, fading=fading))
        ahead = np.log(users / self.last)
        return float((off @ ahead) / (ahead @ ahead))


def drift(usual: float, seen: Sequence[float]) -> float:
    """How far a slope may be off beyond the last level: a standard deviation.

    It may be off by as much as it usually is, and as it was seen to be off within the training
    levels. What is usual counts as much as three of these errors.
    """
    squares = USUAL_COUNTS * usual**2 + sum(each**2 for each in seen)
    return float(np.sqrt(squares / (USUAL_COUNTS + len(seen))))


def part_of(levels: list[int], part: float) -> list[int]:
    """The last levels: this part of them, and at least three where there are three."""
    count = max(LEVELS_LEAST, round(part * len(levels)))
    return levels[-count:]


def trend(users: FloatArray, values: FloatArray) -> Trend:
    """The trend of positive values, one for each run."""
    last = float(users.max())
    x, y = np.log(users / last), np.log(values)
    if len(set(users.tolist())) < 2:
        scatter = max(SCATTER_LEAST, float(y.std()))
        return Trend(
            last=last,
            level=float(np.median(y)),
            level_error=scatter / float(np.sqrt(len(y))),
            slope=0.0,
            slope_error=float("inf"),
            scatter=scatter,
        )
    design = np.column_stack([np.ones(len(x)), x])
    weights = np.ones(len(x))
    spare = max(1, len(x) - 2)
    for _ in range(ROUNDS):
        scaled = design * weights[:, None]
        normal = np.linalg.pinv(scaled.T @ design)
        found = normal @ (scaled.T @ y)
        off = y - design @ found
        spread = max(SCATTER_LEAST, 1.4826 * float(np.median(np.abs(off))))
        weights = np.minimum(1.0, HUBER * spread / np.maximum(np.abs(off), 1e-12))
    squares = float((weights * off**2).sum()) / max(1.0, float(weights.sum()) * spare / len(x))
    scatter = max(SCATTER_LEAST, float(np.sqrt(squares)))
    errors = scatter * np.sqrt(np.diag(normal))
    return Trend(
        last=last,
        level=float(found[0]),
        level_error=float(errors[0]),
        slope=float(found[1]),
        slope_error=float(errors[1]),
        scatter=scatter,
    )
