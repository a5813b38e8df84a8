# SPDX-License-Identifier: MIT
"""The uncertainty of a fit, by the bootstrap: the same fit on resampled measurements.

Levels with several repeats have their repeats resampled. For other levels the relative errors of
the fit are resampled. A prediction also contains the scatter of a single measurement, so its band
covers future measurements and not only their mean.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from weir_lab.capacity.curves import CannotFitError, Fitted, Model, demand_of
from weir_lab.capacity.queueing import FloatArray
from weir_lab.capacity.sweep import Point, Sweep

REPEATS_MIN = 3
ROWS_MIN = 2000
INTERVAL = (0.025, 0.975)


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A value and the 95 % interval around it."""

    value: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """Relative to the value."""
        return (self.high - self.low) / abs(self.value) if self.value else float("inf")


def interval(value: float, draws: FloatArray) -> Interval:
    """The percentiles of the finite draws; infinitely wide when most are not finite."""
    known = draws[np.isfinite(draws)]
    if len(known) < max(2, len(draws) // 2):
        return Interval(value=value, low=-np.inf, high=np.inf)
    low, high = np.quantile(known, INTERVAL)
    return Interval(value=value, low=float(low), high=float(high))


@dataclass(frozen=True, kw_only=True)
class Ensemble:
    """A fit, and the same model fitted to resampled points (its siblings)."""

    fitted: Fitted
    siblings: tuple[Fitted, ...]
    scatter: FloatArray  # relative errors of single measurements
    seed: int

    def rate(self, users: FloatArray) -> FloatArray:
        """Draws of future measurements, one row each."""
        rng = np.random.default_rng(self.seed)
        each = max(1, ROWS_MIN // len(self.siblings))
        means = np.repeat([sibling.predict(users) for sibling in self.siblings], each, axis=0)
        return np.asarray(means * (1 + rng.choice(self.scatter, size=(len(means), 1))))

    def band(self, users: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The 95 % interval for a measurement."""
        low, high = np.quantile(self.rate(users), INTERVAL, axis=0)
        return np.asarray(low), np.asarray(high)

    def of(self, figure: Callable[[Fitted], float]) -> Interval:
        """A figure of the fit, with its interval."""
        draws = np.array([figure(sibling) for sibling in self.siblings])
        return interval(figure(self.fitted), draws)


def scatter_of(sweep: Sweep, fitted: Fitted) -> FloatArray:
    """Relative errors of single measurements: around their level's mean, or around the fit.

    Deviations from a mean of n are too small by sqrt(1 - 1/n); they are corrected.
    """
    errors = []
    for level in sweep.levels:
        rates = np.array([p.rate for p in sweep.points if p.users == level])
        if len(rates) >= REPEATS_MIN:
            spread = rates / rates.mean() - 1
            errors.append(spread / np.sqrt(1 - 1 / len(rates)))
    if errors:
        return np.concatenate(errors)
    residual = sweep.rates / fitted.predict(sweep.users) - 1
    spare = max(1, len(residual) - fitted.fitted)
    return np.asarray(residual * np.sqrt(len(residual) / spare))


def _redrawn(sweep: Sweep, fitted: Fitted, rng: np.random.Generator) -> Sweep:
    points: list[Point] = []
    residual = sweep.rates / fitted.predict(sweep.users) - 1
    off = {
        name: sweep.demands(name) / demand_of(sweep, name).at(sweep.users)
        for name in sweep.servers
        if sweep.has_demand(name)
    }
    for level in sweep.levels:
        here = [p for p in sweep.points if p.users == level]
        if len(here) >= REPEATS_MIN:
            points += [here[i] for i in rng.integers(len(here), size=len(here))]
        else:
            expected = float(fitted.predict(np.array([float(level)]))[0])
            for p, error in zip(here, rng.choice(residual, size=len(here)), strict=True):
                rate = max(expected * (1 + error), 1e-9)
                other = rng.integers(len(sweep.points))
                demand_s = {name: float(p.demand_s[name] * r[other]) for name, r in off.items()}
                response_s = p.response_s * p.rate / rate
                points.append(replace(p, rate=rate, response_s=response_s, demand_s=demand_s))
    return Sweep(points=points, think_s=sweep.think_s, servers=sweep.servers)


def ensemble(model: Model, sweep: Sweep, *, draws: int, seed: int) -> Ensemble:
    """Fits the model to the sweep and to `draws` resampled ones.

    Raises:
        CannotFitError: the points are too few for the model.
    """
    rng = np.random.default_rng(seed)
    fitted = model.fit(sweep)
    siblings = []
    for _ in range(draws):
        try:
            siblings.append(model.fit(_redrawn(sweep, fitted, rng)))
        except (CannotFitError, ValueError, FloatingPointError):
            continue
    scatter = scatter_of(sweep, fitted)
    return Ensemble(
        fitted=fitted, siblings=tuple(siblings) or (fitted,), scatter=scatter, seed=seed
    )
