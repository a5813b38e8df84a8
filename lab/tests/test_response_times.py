# SPDX-License-Identifier: MIT
"""Forecasts of response times: against closed forms, and against simulations that know none."""

import numpy as np
import pytest

from made_up import ordered
from population import QUIET, Trial, trials
from synthetic import simulate, simulated
from weir_lab.capacity import findings, queueing
from weir_lab.capacity.findings import P99, RATE, RESPONSE, Findings
from weir_lab.capacity.queueing import FloatArray, Station
from weir_lab.capacity.sweep import SERVER, Point, Sweep

LEVELS = (1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18, 20, 25, 35, 45, 60)
NETWORKS = {
    "a queue, the knee seen": (0.005, [Station(name="cpu", demand_s=0.001)]),
    "a queue, the knee not seen": (0.030, [Station(name="cpu", demand_s=0.001)]),
    "two queues": (
        0.005,
        [Station(name="cpu", demand_s=0.001), Station(name="disk", demand_s=0.0007)],
    ),
    "batches make requests cheaper": (
        0.0,
        [
            Station(name="cpu", demand_s=0.0008, at_length=(0.003, 0.002, 0.0015, 0.001, 0.0008)),
            Station(name="generator", demand_s=0.0005),
        ],
    ),
}


@pytest.fixture(scope="module")
def of_networks() -> dict[str, Findings]:
    """The forecasts for simulated networks, from short runs."""
    return {
        name: findings.find(
            simulated(stations, LEVELS, think_s=think_s, seed=3, seconds=1 + 50 * think_s),
            train_to=20,
        )
        for name, (think_s, stations) in NETWORKS.items()
    }


@pytest.mark.parametrize("quantity", [RATE, RESPONSE, P99])
def test_the_bands_hold_the_runs_of_simulated_networks(
    of_networks: dict[str, Findings], quantity: str
) -> None:
    held = {name: f.scores[quantity].forecast.coverage for name, f in of_networks.items()}
    assert np.mean(list(held.values())) >= 0.9, held
    assert min(held.values()) >= 0.75, held


def test_the_tail_of_a_simulated_network_is_forecast(of_networks: dict[str, Findings]) -> None:
    off = {name: f.scores[P99].forecast.mape for name, f in of_networks.items()}
    assert np.median(list(off.values())) <= 0.15, off
    assert max(off.values()) <= 0.35, off


@pytest.mark.parametrize("name", NETWORKS)
def test_mean_and_throughput_obey_littles_law(of_networks: dict[str, Findings], name: str) -> None:
    """A further user adds to the response time what the user adds to N/X."""
    found = of_networks[name].forecast
    assert found
    users = np.arange(21.0, 200.0)
    cycles = users / found.rates(users)
    times = found.response(users).value
    grown = np.diff(cycles)
    assert np.diff(times)[grown > 0] == pytest.approx(grown[grown > 0], rel=0.2, abs=2e-5)
    assert found.rates(users) * (times + NETWORKS[name][0]) == pytest.approx(users, rel=0.06)


@pytest.mark.parametrize("users", [12, 20, 40, 100])
def test_the_wait_in_a_closed_queue_has_the_tail_of_a_simulation(users: int) -> None:
    service_s, think_s = 0.001, 0.020
    rate, times = simulate(users, 1, service_s, think_s, seed=5, seconds=30)
    mean_s = np.array([float(np.mean(times))])
    factor = queueing.stretch(mean_s, np.array([rate]), think_s)[0]
    assert factor * mean_s[0] == pytest.approx(float(np.quantile(times, 0.99)), rel=0.25)


def test_a_short_wait_is_exponential_and_a_long_one_has_hardly_a_tail() -> None:
    short, long = queueing.stretch(np.array([1e-9, 1.0]), np.array([1000.0, 1000.0]), 0.04)
    assert short == pytest.approx(np.log(100), rel=0.01)
    assert 1 < long < 1.1
    alone = queueing.stretch(np.array([0.1]), np.array([1000.0]), 0.0)[0]  # 100 in the queue
    assert alone == pytest.approx(1 + 2.33 / 10, rel=0.02)


def thousands(rare_s: float) -> Sweep:
    """Users who think for 40 ms; some requests of each level wait for something rare."""
    service_s, think_s = 20e-6, 0.040
    station = Station(name=SERVER, demand_s=service_s)
    levels = [*range(200, 1801, 200), 2000, 2300, 2700, 3200]
    rates = queueing.repair_rate(np.array(levels, dtype=float), 1, service_s, think_s)
    points = [
        Point(
            users=users,
            rate=float(rate),
            response_s=users / float(rate) - think_s,
            p99_s=rare_s + queueing.response_quantile(0.99, users, station, think_s),
            answered=int(rate),
            demand_s={SERVER: service_s},
        )
        for users, rate in zip(levels, rates, strict=True)
    ]
    return Sweep(points=points, think_s=think_s, servers={SERVER: 1})


@pytest.mark.parametrize("rare_s", [0.0, 0.002, 0.020])
def test_the_tail_of_thousands_of_users_is_forecast_through_the_knee(rare_s: float) -> None:
    found = findings.find(thousands(rare_s), train_to=1800)
    assert found.scores[P99].forecast.mape <= 0.20
    assert found.scores[P99].forecast.coverage == 1.0
    curve = found.curves[P99].value[found.curves[P99].users > 1800]
    assert np.all(np.diff(curve) > 0)  # more users never wait for less


def tailed(ratio: FloatArray, levels: list[int]) -> Sweep:
    """A full server of 1,000 requests per second with this ratio of 99th percentile and mean."""
    points = [
        Point(
            users=users,
            rate=1000.0,
            response_s=users / 1000,
            repeat=repeat,
            p99_s=users / 1000 * float(each) * (1 + 0.02 * repeat),
            answered=1000,
            demand_s={SERVER: 0.001},
        )
        for users, each in zip(levels, ratio, strict=True)
        for repeat in range(2)
    ]
    return Sweep(points=points, think_s=0.0, servers={SERVER: 1})


def test_a_tail_that_turned_within_the_training_levels_may_turn_again() -> None:
    levels = [*range(1, 21), 25, 35, 45, 60]
    logs = np.log(np.array(levels, dtype=float))
    steady = tailed(2.5 * np.exp(-0.1 * logs), levels)
    turned = np.where(logs < np.log(9), logs, 2 * np.log(9) - logs)  # up to 9 users, then down
    turning = tailed(1.5 * np.exp(0.5 * turned), levels)
    bands = [findings.find(s, train_to=20).forecast for s in (steady, turning)]
    widths = []
    for each in bands:
        assert each
        band = each.p99(np.array([60.0]))
        assert band
        widths.append(float(np.log(band.high / band.low)[0]))
    assert widths[1] > 1.3 * widths[0]
    ratios = turning.tails[::2] / turning.responses[::2]
    flat = tailed(np.concatenate([ratios[:20], np.full(4, ratios[19])]), levels)  # turns again
    assert findings.find(flat, train_to=20).scores[P99].forecast.coverage == 1.0


def test_the_kernels_order_has_a_tail_between_that_of_a_queue_and_of_chance() -> None:
    """A full server that takes a part of the requests at random, event by event."""
    users, rng = 400, np.random.default_rng(1)
    for part in (0.3, 0.8, 0.95):
        waiting, begun, times = list(range(users)), np.zeros(users), []
        for now in range(1, 60_000):
            place = int(rng.integers(users)) if rng.random() < part else 0
            who = waiting.pop(place)
            times.append(now - begun[who])
            begun[who] = now
            waiting.append(who)
        seen = np.array(times[20_000:])
        expected = ordered(np.array([float(users)]), np.array([part]), 0.0)[0]
        assert np.quantile(seen, 0.99) / seen.mean() == pytest.approx(expected, rel=0.1)


def test_on_made_up_servers_the_bands_of_response_times_hold() -> None:
    kinds = (
        "thinking, knee seen",
        "thinking, knee not seen",
        "thousands who think",
        "the kernel's order",
        "rare retries",
    )
    found: list[Trial] = [t for kind in kinds for t in trials(kind, QUIET, 2, first=5000)]
    for name in ("response_covered", "p99_covered"):
        assert 0.9 <= np.mean([getattr(t, name) for t in found]) <= 1.0, name
    assert np.median([t.p99 for t in found]) <= 0.20
    assert np.median([t.response for t in found]) <= 0.15
