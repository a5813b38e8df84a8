# SPDX-License-Identifier: MIT
"""Beyond the training levels a service demand follows its trend, and the band knows its error."""

import numpy as np
import pytest

from made_up import KINDS
from population import HELD_OUT, QUIET, TRAINING, measured
from weir_lab.capacity import findings, mechanisms, queueing
from weir_lab.capacity.findings import RATE, Findings
from weir_lab.capacity.queueing import FloatArray, Station
from weir_lab.capacity.sweep import SERVER, Point, Sweep
from weir_lab.capacity.trend import drift

LEVELS = [*range(1, 21), 25, 35, 45, 60]
BEFORE_THE_KNEE = (
    "thinking, demand falls",
    "thinking, batches grow",
    "thinking, knee not seen",
    "thinking, CPU sleeps",
    "thousands who think",
)


def of_made_up(kind: str, seed: int) -> Findings:
    """What a sweep of a made-up server shows."""
    rng = np.random.default_rng([seed, *kind.encode()])
    server = KINDS[kind](rng)
    levels = tuple(server.crowd * n for n in TRAINING + HELD_OUT)
    swept = measured(server, levels, QUIET, rng)
    return findings.find(swept, train_to=server.crowd * TRAINING[-1])


def thinking(demand_s: FloatArray, think_s: float = 0.01) -> Sweep:
    """Users of one queue who think, with this demand at each level; two equal runs."""
    points = []
    for users, each_s in zip(LEVELS, demand_s.tolist(), strict=True):
        rate = float(queueing.repair_rate(np.array([users]), 1, each_s, think_s)[0])
        response_s = users / rate - think_s
        points += [
            Point(
                users=users,
                rate=rate,
                response_s=response_s,
                repeat=repeat,
                p99_s=3 * response_s,
                answered=int(rate),
                demand_s={SERVER: each_s},
            )
            for repeat in range(2)
        ]
    return Sweep(points=points, think_s=think_s, servers={SERVER: 1})


def half_width(found: Findings, users: float) -> float:
    """Of the band of throughput, relative."""
    assert found.forecast
    band = found.forecast.rate(np.array([users]))
    return float(np.log(band.high / band.low)[0] / 2)


@pytest.mark.parametrize("kind", BEFORE_THE_KNEE)
@pytest.mark.parametrize("seed", [5000, 5001])
def test_no_forecast_exceeds_the_highest_throughput(kind: str, seed: int) -> None:
    seen = of_made_up(kind, seed)
    assert seen.forecast
    assert seen.capacity.most_rate
    users = np.round(seen.forecast.last * np.geomspace(1, 30, 12))
    assert seen.forecast.rates(users).max() <= seen.capacity.most_rate.high


def test_the_interval_of_the_highest_throughput_holds_it_though_the_demand_falls() -> None:
    held = []
    for kind in ("thinking, demand falls", "thinking, batches grow"):
        for seed in range(5000, 5006):
            server = KINDS[kind](np.random.default_rng([seed, *kind.encode()]))
            far = np.array([1e5])
            demands = [of(far)[0] for of in (server.demand_s, server.generator_s) if of]
            most = of_made_up(kind, seed).capacity.most_rate
            assert most
            held.append(most.low <= 1 / max(demands) <= most.high)
    assert np.mean(held) >= 0.8


def test_the_band_is_wider_where_the_trend_of_a_demand_has_turned() -> None:
    logs = np.log(np.array(LEVELS, dtype=float))
    steady = np.full(len(LEVELS), 3e-4)
    turned = 3e-4 * np.exp(0.5 * np.maximum(0.0, np.log(14) - logs))  # falls up to 14 users
    widths = [half_width(findings.find(thinking(d), train_to=20), 60) for d in (steady, turned)]
    assert widths[1] > 1.3 * widths[0]


def test_throughput_of_users_who_mostly_think_can_hardly_drift() -> None:
    """A server that is nearly idle at every level: response times are a hundredth of a cycle."""
    idle = findings.find(thinking(np.full(len(LEVELS), 3e-5)), train_to=20)
    full = findings.find(thinking(np.full(len(LEVELS), 3e-3)), train_to=20)
    assert half_width(idle, 60) < 0.4 * half_width(full, 60)
    assert idle.scores[RATE].forecast.coverage == 1.0


@pytest.mark.parametrize(("think_s", "users", "follows"), [(1.0, 10, 0.0), (0.001, 60, 1.0)])
def test_throughput_follows_a_demand_as_far_as_the_queue_does(
    think_s: float, users: int, follows: float
) -> None:
    known = [mechanisms.demand(thinking(np.full(len(LEVELS), 1e-4)), SERVER)]
    assert not known[0].is_saturated
    found = mechanisms.follows(known, np.array([float(users)]), think_s)[0]
    assert found[0] == pytest.approx(follows, abs=0.02)


def test_in_a_closed_network_throughput_follows_a_demand_by_the_customers_it_holds() -> None:
    """The elasticity is what a further user adds to the queue: a known result."""
    known = [mechanisms.demand(thinking(np.full(len(LEVELS), 2e-4)), SERVER)]
    one = [Station(name=SERVER, demand_s=2e-4)]
    users = np.arange(1.0, 61.0, 7)
    rates, fewer = (queueing.network_rate(n, one, 0.01) for n in (users, np.maximum(1, users - 1)))
    present = users - rates * 0.01
    before = np.where(users > 1, np.maximum(1, users - 1) - fewer * 0.01, 0.0)
    found = mechanisms.follows(known, users, 0.01)[0]
    assert found == pytest.approx(present - before, abs=0.01)


def test_a_slope_may_be_off_as_usual_and_as_it_was_seen_to_be() -> None:
    assert drift(0.03, []) == pytest.approx(0.03)
    assert drift(0.03, [0.0, 0.0, 0.0]) == pytest.approx(0.03 / np.sqrt(2))
    assert drift(0.03, [0.3, 0.3, 0.3]) > 0.2
