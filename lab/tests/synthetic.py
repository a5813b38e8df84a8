# SPDX-License-Identifier: MIT
"""Sweeps with a known truth, and a simulation that knows no formula."""

import random
from collections.abc import Callable, Generator, Iterable, Sequence

import numpy as np
import simpy

from weir_lab.capacity import queueing
from weir_lab.capacity.queueing import FloatArray, Station
from weir_lab.capacity.sweep import SERVER, Point, Sweep

TRAINING = tuple(range(1, 21))
HELD_OUT = tuple(range(25, 61, 5))

Truth = Callable[[FloatArray], FloatArray]


def repair(servers: int, service_s: float, think_s: float) -> Truth:
    """The throughput of M/M/m//N."""
    return lambda users: queueing.repair_rate(users, servers, service_s, think_s)


def sweep(
    truth: Truth,
    levels: Iterable[int],
    *,
    think_s: float,
    servers: int,
    seed: int,
    service_s: float | None = None,
    repeats: int = 3,
    noise: float = 0.03,
) -> Sweep:
    """Points of the truth with noise; `service_s` is measured with the same noise where given."""
    rng = np.random.default_rng(seed)
    points = []
    for users in levels:
        for repeat in range(repeats):
            rate = float(truth(np.array([float(users)]))[0]) * (1 + noise * rng.standard_normal())
            demand_s = {}
            if service_s is not None:
                demand_s = {SERVER: service_s * (1 + noise * rng.standard_normal())}
            points.append(
                Point(
                    users=users,
                    rate=rate,
                    response_s=users / rate - think_s,
                    repeat=repeat,
                    answered=int(rate),
                    demand_s=demand_s,
                )
            )
    return Sweep(points=points, think_s=think_s, servers={SERVER: servers})


class _Queue:
    """A station, first come, first served. Its speed depends on the customers present."""

    def __init__(self, world: simpy.Environment, station: Station, rng: random.Random) -> None:
        self.world, self.station, self.rng = world, station, rng
        self.waiting: list[simpy.Event] = []
        self.present = 0
        self.changed = world.event()
        world.process(self.serve())

    def join(self) -> simpy.Event:
        """An event for the end of this customer's service."""
        done = self.world.event()
        self.waiting.append(done)
        self.present += 1
        self.wake()
        return done

    def wake(self) -> None:
        """Every arrival draws the next departure again, which memoryless service allows."""
        self.changed.succeed()
        self.changed = self.world.event()

    def serve(self) -> Generator[simpy.Event, None, None]:
        """Departures, one by one."""
        while True:
            if not self.present:
                yield self.changed
                continue
            gap_s = float(self.station.gaps_s(self.present)[-1])
            departure = self.world.timeout(self.rng.expovariate(1 / gap_s))
            yield departure | self.changed
            if departure.processed:
                self.present -= 1
                self.waiting.pop(0).succeed()


def network(
    users: int, stations: Sequence[Station], think_s: float, *, seed: int, seconds: float
) -> tuple[float, list[float]]:
    """Users who think and then visit every station, event by event.

    The result is the throughput, and every response time.
    """
    rng = random.Random(seed)
    world = simpy.Environment()
    queues = [_Queue(world, station, rng) for station in stations]
    warm_s = seconds / 10
    times: list[float] = []

    def user() -> Generator[simpy.Event, None, None]:
        while True:
            if think_s > 0:
                yield world.timeout(rng.expovariate(1 / think_s))
            begun_s = world.now
            for queue in queues:
                yield queue.join()
            if world.now > warm_s:
                times.append(world.now - begun_s)

    for _ in range(users):
        world.process(user())
    world.run(until=seconds)
    return len(times) / (seconds - warm_s), times


def simulated(
    stations: Sequence[Station],
    levels: Iterable[int],
    *,
    think_s: float,
    seed: int,
    seconds: float,
) -> Sweep:
    """Two short runs of each level of a simulated network, as a sweep.

    The first station is the server, whose service demand is known. The others are not known.
    """
    points = []
    for users in levels:
        for repeat in range(2):
            drawn = (seed * 1000 + users) * 2 + repeat
            rate, times = network(users, stations, think_s, seed=drawn, seconds=seconds)
            points.append(
                Point(
                    users=users,
                    rate=rate,
                    response_s=float(np.mean(times)),
                    repeat=repeat,
                    p99_s=float(np.quantile(times, 0.99)),
                    answered=len(times),
                    demand_s={SERVER: stations[0].demand_s},
                )
            )
    return Sweep(points=points, think_s=think_s, servers={SERVER: stations[0].servers})


def simulate(
    users: int, servers: int, service_s: float, think_s: float, *, seed: int, seconds: float
) -> tuple[float, list[float]]:
    """Users who think and queue, event by event: the throughput, and every response time."""
    rng = random.Random(seed)
    world = simpy.Environment()
    server = simpy.Resource(world, capacity=servers)
    warm_s = seconds / 10
    times: list[float] = []

    def user() -> Generator[simpy.Event, None, None]:
        while True:
            yield world.timeout(rng.expovariate(1 / think_s))
            asked = world.now
            with server.request() as turn:
                yield turn
                yield world.timeout(rng.expovariate(1 / service_s))
            if world.now > warm_s:
                times.append(world.now - asked)

    for _ in range(users):
        world.process(user())
    world.run(until=seconds)
    return len(times) / (seconds - warm_s), times
