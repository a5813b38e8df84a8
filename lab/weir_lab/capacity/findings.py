# SPDX-License-Identifier: MIT
"""The findings of a sweep: forecast, held-out points, scores, answers and a grade of trust.

This is the one structure that reports read. `find` computes it from the points of a sweep and takes
seconds. Nothing is drawn and no sentence for a page is written here, except reasons.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from weir_lab.capacity import answers
from weir_lab.capacity.answers import Capacity, Need, Purchase
from weir_lab.capacity.curves import CannotFitError, constant, linear
from weir_lab.capacity.forecast import Band, Forecast, forecast
from weir_lab.capacity.queueing import FloatArray
from weir_lab.capacity.score import Score, Scored, coverage, mape
from weir_lab.capacity.sweep import (
    Point,
    Sweep,
    medians,
    why_void,
    without_middle,
    without_void,
)
from weir_lab.capacity.trust import Evidence, Trust, judge

RATE, RESPONSE, P99 = "throughput", "mean response time", "99th percentile"
LEVELS_MIN = 3
STEPS = 80  # of the curves
BEYOND = 1.05  # the curves end slightly beyond the last level


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What a sweep shows."""

    sweep: Sweep  # every point
    training: Sweep  # the valid points that the models have seen
    held_out: Sweep  # the valid points that they have not
    void: Sequence[tuple[Point, str]]  # with the reason
    forecast: Forecast | None
    refusal: str  # one sentence; empty when there is a forecast
    curves: Mapping[str, Band]  # by RATE, RESPONSE, P99; at `users` below; seconds, per second
    scores: Mapping[str, Scored]  # the same keys; empty without held-out points
    capacity: Capacity
    purchase: Purchase | None  # what to buy for the users asked about
    trust: Trust

    @property
    def users(self) -> FloatArray:
        """The numbers of users that the curves have values for."""
        return self.curves[RATE].users if self.curves else np.array([])


def find(
    sweep: Sweep,
    *,
    train_to: int,
    p99_limit_s: float | None = None,
    need: Need | None = None,
    doubt: str = "",
    missing: int = 0,
) -> Findings:
    """Forecasts from the levels up to `train_to`, and scores the forecast on the others.

    `doubt` is a sentence against the measurement as a whole, or empty. `missing` points are not
    measured yet.
    """
    valid = without_void(sweep)
    training, held_out = valid.up_to(train_to), valid.above(train_to)
    void = [(p, why) for p in sweep.points if (why := why_void(sweep, p))]
    found, refusal = None, why_not(training)
    if not refusal:
        try:
            found = forecast(training)
        except CannotFitError as error:
            refusal = f"There is no forecast: {error}."
    curves = _curves(found, sweep) if found else {}
    scores = _scores(found, held_out) if found and held_out.points else {}
    return Findings(
        sweep=sweep,
        training=training,
        held_out=held_out,
        void=void,
        forecast=found,
        refusal=refusal,
        curves=curves,
        scores=scores,
        capacity=answers.capacity(found, p99_limit_s),
        purchase=answers.purchase(found, need) if found and need else None,
        trust=judge(
            found,
            Evidence(
                sweep=sweep,
                held_out=held_out,
                void=void,
                scored=scores.get(RATE),
                refusal=refusal,
                doubt=doubt,
                missing=missing,
                not_tested=[
                    *(why for point, why in void if point.users > train_to),
                    *(run.why for run in held_out.unanswered),
                ],
            ),
        ),
    )


def why_not(training: Sweep) -> str:
    """The reason why nothing can be said beyond the points, in one sentence; empty when it can."""
    if len(training.levels) < LEVELS_MIN:
        count = len(training.levels)
        found = "1 valid level of load is" if count == 1 else f"{count} valid levels of load are"
        return f"{found} too few; a forecast needs {LEVELS_MIN}."
    return ""


def _quantities(found: Forecast, users: FloatArray) -> dict[str, Band]:
    bands = {RATE: found.rate(users), RESPONSE: found.response(users)}
    tails = found.p99(users)
    return bands if tails is None else {**bands, P99: tails}


def _curves(found: Forecast, sweep: Sweep) -> dict[str, Band]:
    last = max(2.0, sweep.levels[-1] * BEYOND)
    users = np.unique(np.round(np.linspace(1, last, STEPS)))
    return _quantities(found, users)


def _of(sweep: Sweep, quantity: str) -> FloatArray:
    known = {RATE: sweep.rates, RESPONSE: sweep.responses, P99: sweep.tails}
    return known[quantity]


def _scores(found: Forecast, held_out: Sweep) -> dict[str, Scored]:
    unclear = without_middle(held_out)
    clear = replace(held_out, points=[p for p in held_out.points if p.users not in unclear])
    if not clear.points:
        return {}
    scores = {}
    at_levels = _quantities(found, np.array(clear.levels, dtype=np.float64))
    for quantity, band in _quantities(found, held_out.users).items():
        runs = _of(held_out, quantity)
        if not np.all(np.isfinite(runs)):
            continue
        levels, middle = medians(clear, _of(clear, quantity))
        seen = found.training.with_rates(_of(found.training, quantity))
        level = at_levels[quantity]
        scores[quantity] = Scored(
            forecast=Score(
                mape=mape(level.value, middle),
                coverage=coverage(band.low, band.high, runs),
                width=float(np.mean((level.high - level.low) / level.value)),
            ),
            linear=mape(linear(seen).predict(levels), middle),
            constant=mape(constant(seen).predict(levels), middle),
        )
    return scores
