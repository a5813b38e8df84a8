# SPDX-License-Identifier: MIT
"""Forecasts from sweeps that something is wrong with: they exist, and are no nonsense."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from made_up import KINDS
from population import BUSY, HELD_OUT, TRAINING, measured
from weir_lab.capacity import findings
from weir_lab.capacity.answers import Need
from weir_lab.capacity.findings import P99, RATE, RESPONSE
from weir_lab.capacity.sweep import Point, Sweep

TRAINED_TO = {"thinking, knee seen": 20, "flat from the first user": 10}  # by kind of server
Change = Callable[[Point, np.random.Generator], Point | None]


def disturbed(point: Point, rng: np.random.Generator) -> Point:
    """One run of eight loses nearly everything, and one has a hundred times the tail."""
    lost = float(rng.choice([0.05, 1, 1, 1, 1, 1, 1, 1]))
    longer = float(rng.choice([100, 1, 1, 1, 1, 1, 1, 1]))
    tail_s = (point.p99_s or 0.0) * longer
    return replace(point, rate=point.rate * lost, response_s=point.response_s / lost, p99_s=tail_s)


def declining(point: Point, _rng: np.random.Generator) -> Point:
    """Throughput falls to a tenth."""
    slower = 1 + (point.users / 15) ** 2
    more_s = point.users / point.rate * (slower - 1)
    return replace(
        point,
        rate=point.rate / slower,
        response_s=point.response_s + more_s,
        p99_s=(point.p99_s or 0.0) + more_s,
    )


CHANGES: dict[str, Change] = {
    "one run of each level": lambda p, _: p if p.repeat == 0 else None,
    "levels are missing": lambda p, _: p if p.users % 3 else None,
    "a third of the points is void": lambda p, rng: replace(
        p, failed=p.answered if rng.random() < 0.33 else 0
    ),
    "disturbed runs": disturbed,
    "no CPU is known": lambda p, _: replace(p, demand_s={}),
    "throughput declines": declining,
    "percentiles of whole milliseconds": lambda p, _: replace(
        p, p99_s=max(1e-3, round(p.p99_s or 0.0, 3))
    ),
    "percentiles of whole milliseconds, and of none": lambda p, _: replace(
        p, p99_s=round(p.p99_s or 0.0, 3)
    ),
    "a tail that grows without an end": lambda p, _: replace(p, p99_s=p.response_s * p.users**2),
    "three levels": lambda p, _: p if p.users in (1, 8, 20) or p.users > 20 else None,
    "all levels equal": lambda p, _: replace(
        p, rate=1000.0, response_s=p.users / 1000, p99_s=p.users / 500
    ),
}


def changed(name: str, server: str) -> Sweep:
    """The measured points of a made-up server with a fault."""
    rng = np.random.default_rng([1, *name.encode()])
    whole = measured(KINDS[server](rng), TRAINING + HELD_OUT, BUSY, rng)
    points = [q for p in whole.points if (q := CHANGES[name](p, rng)) is not None]
    think_s = 0.0 if name == "all levels equal" else whole.think_s
    return replace(whole, points=points, think_s=think_s)


@pytest.mark.parametrize("server", TRAINED_TO)
@pytest.mark.parametrize("name", CHANGES)
def test_an_odd_sweep_has_a_forecast_that_is_no_nonsense(name: str, server: str) -> None:
    need = Need(users=2000, think_s=1.0, p99_s=0.05)
    swept = changed(name, server)
    found = findings.find(swept, train_to=TRAINED_TO[server], p99_limit_s=0.01, need=need)
    if len(found.training.levels) < findings.LEVELS_MIN:
        assert found.refusal
        return
    assert found.forecast
    last = found.forecast.last
    users = np.round(np.geomspace(last + 1, 30 * last, 8))
    bands = {RATE: found.forecast.rate(users), RESPONSE: found.forecast.response(users)}
    tails = found.forecast.p99(users)
    if tails is not None:
        bands[P99] = tails
        least = float(np.min(found.training.tails / found.training.responses))
        assert np.all(tails.value >= min(1.0, least) * 0.8 * bands[RESPONSE].value)
    for band in bands.values():
        for edge in (band.low, band.value, band.high):
            assert np.all(np.isfinite(edge))
            assert np.all(edge > 0)
        assert np.all((band.low <= band.value) & (band.value <= band.high))
    assert np.all(bands[RATE].value <= found.forecast.limit * 1.001)
    assert np.all(bands[RATE].value * found.training.think_s <= users)
