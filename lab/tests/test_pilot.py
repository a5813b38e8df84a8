# SPDX-License-Identifier: MIT
"""The pilot, against made-up servers whose CPU per request falls as users grow."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from weir_lab.experiments import pilot
from weir_lab.experiments.experiment import Step
from weir_lab.experiments.pilot import Means, Probe, Setup, Work
from weir_lab.rim.errors import LabError
from weir_lab.rim.store import open_store


@dataclass(kw_only=True)
class Network:
    """A closed loop: a server and a generator with a core each, and a fixed delay."""

    server_s: float  # CPU per request once it is busy
    generator_s: float
    think_s: float = 0.0
    delay_s: float = 60e-6
    byte_s: float = 0.0  # CPU of the server for each byte of a page
    asked: list[tuple[Work, int]] = field(default_factory=list)

    def __call__(self, work: Work, users: int) -> Probe:
        self.asked.append((work, users))
        waking_s = 30e-6 / users  # a busy CPU wakes seldom
        server_s = self.server_s + waking_s + self.byte_s * (work.page_bytes - pilot.PAGE)
        generator_s = self.generator_s + waking_s
        cycle_s = self.think_s + self.delay_s + server_s + generator_s
        rate = min(users / cycle_s, work.share / server_s, 1 / generator_s)
        return Probe(
            users=users,
            rate=rate,
            server=rate * server_s / work.share,
            generator=rate * generator_s,
        )


def most(network: Network) -> int:
    return max(users for _, users in network.asked)


@pytest.mark.parametrize("think_s", [0.0, 0.001, 0.04])
@pytest.mark.parametrize("server_s", [5e-6, 15e-6, 60e-6, 400e-6])
def test_the_levels_lie_on_both_sides_of_the_knee(think_s: float, server_s: float) -> None:
    network = Network(server_s=server_s, generator_s=3e-6, think_s=think_s)
    setup = pilot.decide(network, Means(think_s=think_s))
    knee = (think_s + 60e-6 + server_s + 3e-6) / server_s
    training = [n for n in setup.users if n <= setup.train_to]
    assert len(training) >= 5
    assert min(setup.users) < max(knee, 4)
    assert max(training) >= 1.1 * knee
    assert min(2.5 * knee, pilot.USERS_MAX) <= max(setup.users) <= 8 * max(knee, 4)
    assert (setup.page_bytes, setup.share) == (pilot.PAGE, 1.0)
    assert len(network.asked) <= pilot.PROBES_MAX


def test_a_heavier_page_makes_the_server_the_limit() -> None:
    network = Network(server_s=5e-6, generator_s=6e-6, byte_s=1e-10)
    setup = pilot.decide(network, Means(think_s=0))
    assert setup.page_bytes == pilot.HEAVY_PAGES[0]
    assert setup.share == 1
    assert setup.generator <= pilot.GENERATOR_MAX
    assert "times the CPU time of the server. So the page has 64 KiB" in setup.did


def test_a_part_of_a_core_makes_the_server_the_limit_where_pages_do_not() -> None:
    network = Network(server_s=14e-6, generator_s=21e-6)
    setup = pilot.decide(network, Means(think_s=0))
    assert setup.page_bytes == pilot.PAGE
    assert 0.4 <= setup.share <= 0.6
    assert setup.generator <= pilot.GENERATOR_MAX
    assert "of its core by a control group" in setup.did


@pytest.mark.parametrize("think_s", [0.0, 0.04])
def test_without_control_groups_the_levels_end_where_the_generator_is_free(think_s: float) -> None:
    network = Network(server_s=14e-6, generator_s=21e-6, think_s=think_s)
    setup = pilot.decide(network, Means(think_s=think_s, shares=False))
    assert (setup.page_bytes, setup.share) == (pilot.PAGE, 1.0)
    for users in setup.users:
        assert users <= 4 or network(Work(), users).generator <= pilot.GENERATOR_MAX + 0.02
    assert setup.users[0] <= setup.train_to < setup.users[-1]
    assert "levels end at" in setup.did


def test_a_control_group_that_fails_leads_to_fewer_levels() -> None:
    network = Network(server_s=14e-6, generator_s=21e-6, think_s=0.04)

    def measure(work: Work, users: int) -> Probe:
        if work.share < 1:
            raise LabError("no control group for CPU can be made here")
        return network(work, users)

    setup = pilot.decide(measure, Means(think_s=0.04))
    assert setup.share == 1
    assert "levels end at" in setup.did


def test_levels_of_the_user_stay_and_limit_the_pilot() -> None:
    network = Network(server_s=15e-6, generator_s=3e-6, think_s=0.04)
    users = (10, 20, 40, 80, 160)
    setup = pilot.decide(network, Means(think_s=0.04, users=users, train_to=40))
    assert (setup.users, setup.train_to) == (users, 40)
    assert most(network) == 160


def test_levels_of_the_user_beyond_the_generator_are_left_out() -> None:
    network = Network(server_s=14e-6, generator_s=21e-6, think_s=0.001)
    users = (1, 5, 10, 20, 30, 40, 60, 80, 100)
    means = Means(think_s=0.001, users=users, train_to=60, heavier_pages=False, shares=False)
    setup = pilot.decide(network, means)
    assert setup.users == (1, 5, 10, 20, 30, 40)
    assert network(Work(), setup.users[-1]).generator <= pilot.GENERATOR_MAX + 0.02
    assert setup.train_to < setup.users[-1]


@pytest.mark.parametrize("think_s", [0.0, 0.005])
def test_without_the_cpu_of_the_server_the_rates_show_the_knee(think_s: float) -> None:
    network = Network(server_s=50e-6, generator_s=3e-6, think_s=think_s)

    def measure(work: Work, users: int) -> Probe:
        found = network(work, users)
        return Probe(users=users, rate=found.rate, server=0.0, generator=found.generator)

    setup = pilot.decide(measure, Means(think_s=think_s, heavier_pages=False, shares=False))
    knee = (think_s + 113e-6) / 50e-6
    assert min(setup.users) < max(knee, 4)
    assert setup.train_to >= 1.1 * knee
    assert max(setup.users) <= 8 * max(knee, 4)


def test_a_limit_that_is_not_the_cpu_is_seen_in_the_rates() -> None:
    """A disc, a lock, or other programs: the server is not busy, and carries no more."""
    most_rate, think_s = 2000.0, 0.01

    def measure(_work: Work, users: int) -> Probe:
        rate = min(users / (think_s + 0.001), most_rate)
        return Probe(users=users, rate=rate, server=rate * 50e-6, generator=rate * 10e-6)

    setup = pilot.decide(measure, Means(think_s=think_s))
    knee = most_rate * (think_s + 0.001)
    assert min(setup.users) < knee
    assert 1.1 * knee <= setup.train_to <= 3 * knee
    assert not setup.changed


def test_no_more_users_than_descriptors() -> None:
    network = Network(server_s=5e-6, generator_s=2e-6, think_s=1.0)
    setup = pilot.decide(network, Means(think_s=1.0, most=900))
    assert most(network) <= 900
    assert max(setup.users) <= 900


def test_an_interrupted_pilot_continues_and_its_decision_stays(tmp_path: Path) -> None:
    network = Network(server_s=14e-6, generator_s=21e-6, think_s=0.04)
    done: list[str] = []
    stops_after = 2

    def prober() -> tuple[Callable[[Work, int], Probe], Setup | None]:
        store = open_store(tmp_path, {"command": "capacity"}, {"kernel": "Linux"}, fresh=False)

        def perform(steps: list[Step]) -> None:
            for step in steps:
                if len(done) == stops_after:
                    raise KeyboardInterrupt
                done.append(step.key)
                store.add(step.key, step.measure())

        def step(work: Work, users: int) -> Step:
            def measure() -> dict[str, object]:
                found = network(work, users)
                cost_s = found.server * work.share / found.rate
                load = {
                    "requests": 1000,
                    "rate": found.rate,
                    "server_demand_s": cost_s,
                    "generator_cpu_s": found.generator / found.rate * 1000,
                }
                return {"users": users, "load": load}

            return Step(key=work.key(users), seconds=1, measure=measure)

        measure = pilot.Prober(
            store=store, step=step, perform=perform, server_cores=1, generator_cores=1
        )
        means = Means(think_s=0.04)
        return measure, pilot.settle(store, measure, means)

    with pytest.raises(KeyboardInterrupt):
        prober()
    first = list(done)
    stops_after = 1000
    setup = prober()[1]
    assert done[: len(first)] == first
    assert len(set(done)) == len(done)  # no probe twice
    assert setup == pilot.decide(network, Means(think_s=0.04))
    before = len(done)
    assert prober()[1] == setup
    assert len(done) == before  # the decision is in the head
