# SPDX-License-Identifier: MIT
"""Queueing networks against closed forms and against a simulation."""

from math import comb, factorial

import numpy as np
import pytest

from synthetic import network, simulate
from weir_lab.capacity import queueing
from weir_lab.capacity.queueing import Station

USERS = np.arange(1.0, 61.0)


def machine_repair(users: int, servers: int, service_s: float, think_s: float) -> float:
    """The closed form of textbooks: sums of binomials, no recursion, no logarithms."""
    ratio = service_s / think_s

    def weight(n: int) -> float:
        if n <= servers:
            return float(comb(users, n) * ratio**n)
        ways = comb(users, n) * factorial(n) / factorial(servers)
        return float(ways * ratio**n / servers ** (n - servers))

    weights = [weight(n) for n in range(users + 1)]
    busy = sum(min(n, servers) * w for n, w in enumerate(weights))
    return busy / sum(weights) / service_s


@pytest.mark.parametrize("servers", [1, 2, 4])
def test_the_repair_model_is_its_closed_form(servers: int) -> None:
    found = queueing.repair_rate(USERS, servers, 0.001, 0.005)
    closed = [machine_repair(int(n), servers, 0.001, 0.005) for n in USERS]
    assert found == pytest.approx(closed, rel=1e-9)


@pytest.mark.parametrize("servers", [1, 2, 4, 8])
def test_a_network_of_one_station_is_the_repair_model(servers: int) -> None:
    station = Station(name="cpu", demand_s=0.001, servers=servers)
    found = queueing.network_rate(USERS, [station], 0.005)
    assert found == pytest.approx(queueing.repair_rate(USERS, servers, 0.001, 0.005), rel=1e-6)


def test_a_network_of_balanced_stations_is_its_closed_form() -> None:
    stations = [Station(name=name, demand_s=0.002) for name in "abc"]
    found = queueing.network_rate(USERS, stations, 0.0)
    assert found == pytest.approx(USERS / (0.002 * (USERS + 2)), rel=1e-9)


def test_without_think_time_as_many_users_as_cores_saturate_a_server() -> None:
    found = queueing.repair_rate(np.array([1.0, 2.0, 3.0, 50.0]), 2, 0.001, 0.0)
    assert found == pytest.approx([1000, 2000, 2000, 2000])


@pytest.mark.parametrize(("users", "servers"), [(5, 1), (12, 2), (30, 2)])
def test_a_simulation_agrees(users: int, servers: int) -> None:
    station = Station(name="cpu", demand_s=0.001, servers=servers)
    rate, times = simulate(users, servers, 0.001, 0.005, seed=7, seconds=20)
    expected = queueing.repair_rate(np.array([float(users)]), servers, 0.001, 0.005)[0]
    assert rate == pytest.approx(expected, rel=0.03)
    for part in (0.5, 0.9, 0.99):
        quantile = queueing.response_quantile(part, users, station, 0.005)
        assert quantile == pytest.approx(float(np.quantile(times, part)), rel=0.08)


NETWORKS = {
    "two queues": [Station(name="cpu", demand_s=0.001), Station(name="disk", demand_s=0.0007)],
    "two cores and a queue": [
        Station(name="cpu", demand_s=0.0015, servers=2),
        Station(name="disk", demand_s=0.0006),
    ],
    "batches make requests cheaper": [
        Station(name="cpu", demand_s=0.0008, at_length=(0.003, 0.002, 0.0015, 0.001, 0.0008)),
        Station(name="generator", demand_s=0.0005),
    ],
    "users disturb each other, on two cores": [
        Station(name="cpu", demand_s=0.002, servers=2, at_length=(0.001, 0.001, 0.0015, 0.002)),
    ],
}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("users", [1, 4, 15])
def test_a_simulation_of_a_network_agrees(name: str, users: int) -> None:
    stations = NETWORKS[name]
    rate, _ = network(users, stations, 0.004, seed=users, seconds=20)
    expected = queueing.network_rate(np.array([float(users)]), stations, 0.004)[0]
    assert rate == pytest.approx(expected, rel=0.04)


def test_thousands_of_users_and_long_think_times_do_not_overflow() -> None:
    stations = [Station(name="cpu", demand_s=2e-5, servers=4), Station(name="disk", demand_s=4e-6)]
    users = np.array([10.0, 1000.0, 15_000.0, 60_000.0])
    found = queueing.network_rate(users, stations, 0.1)
    assert found[:3] == pytest.approx(users[:3] / 0.1, rel=0.001)
    assert found[3] == pytest.approx(1 / 5e-6, rel=0.001)


@pytest.mark.parametrize("servers", [1, 2])
def test_bounds_hold(servers: int) -> None:
    stations = [
        Station(name="cpu", demand_s=0.001, servers=servers),
        Station(name="disk", demand_s=0.0003),
    ]
    exact = queueing.network_rate(USERS, stations, 0.005)
    most = queueing.asymptotic_rate(USERS, stations, 0.005)
    assert np.all(exact <= most * (1 + 1e-9))


def test_the_asymptotes_meet_at_saturation() -> None:
    stations = [Station(name="cpu", demand_s=0.001, servers=2)]
    knee = queueing.saturation_users(stations, 0.005)
    assert knee == pytest.approx(12)
    rate = queueing.asymptotic_rate(np.array([knee - 1, knee, knee + 1]), stations, 0.005)
    assert rate[0] < rate[1]
    assert rate[1] == pytest.approx(rate[2])


def test_the_bottleneck_is_the_largest_share_not_the_largest_demand() -> None:
    cpu = Station(name="cpu", demand_s=0.003, servers=4)
    disk = Station(name="disk", demand_s=0.001)
    assert queueing.bottleneck([cpu, disk]) is disk
