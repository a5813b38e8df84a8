# SPDX-License-Identifier: MIT
"""The kinds of made-up servers, each with random parameters and a known truth."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from weir_lab.capacity import curves, queueing
from weir_lab.capacity.queueing import FloatArray, Station
from weir_lab.capacity.sweep import GENERATOR, SERVER

Curve = Callable[[FloatArray], FloatArray]
Maker = Callable[[np.random.Generator], "Server"]


@dataclass(frozen=True, kw_only=True)
class Server:
    """A true server: throughput and CPU per request against users."""

    rate: Curve
    demand_s: Curve | None  # of the server; None: not measured
    think_s: float = 0.0
    cores: int = 1
    generator_s: Curve | None = None
    gap_s: float = 0.0  # of a cycle: the generator's lateness
    tail: Curve | None = None  # 99th percentile / mean
    crowd: int = 1  # times as many users at each level


def _queue(
    rng: np.random.Generator, *, knee: tuple[float, float], known: bool, cores: int = 1
) -> Server:
    service_s = float(rng.uniform(5e-5, 1e-3))
    think_s = service_s * (float(rng.uniform(*knee)) / cores - 1)
    station = Station(name=SERVER, demand_s=service_s, servers=cores)
    return Server(
        rate=lambda n: queueing.repair_rate(n, cores, service_s, think_s),
        demand_s=(lambda n: np.full(len(n), service_s)) if known else None,
        think_s=think_s,
        cores=cores,
        tail=lambda n: _tails(n, station, think_s),
    )


def _tails(users: FloatArray, station: Station, think_s: float, more_s: float = 0.0) -> FloatArray:
    """99th percentile / mean of a queue, where both are longer by `more_s` below saturation."""
    found = []
    for count in users.astype(int):
        rate = queueing.network_rate(np.array([count]), [station], think_s)[0]
        mean_s = count / rate - think_s
        tail_s = queueing.response_quantile(0.99, count, station, think_s)
        found.append((tail_s + more_s) / mean_s)
    return np.array(found)


def crowding(rng: np.random.Generator) -> "Server":
    """Thousands of users who think for 40 ms and arrive in groups; the knee is not seen.

    The response time is a small part of the cycle, and some requests wait for something rare.
    """
    group = int(rng.choice([1, 2, 5, 10]))
    knee = float(rng.uniform(1500, 4000))
    think_s = 0.040
    service_s = think_s / knee
    station = Station(name=SERVER, demand_s=service_s * group)
    rare_s = float(rng.uniform(0.0, 0.010))

    def groups(users: FloatArray) -> FloatArray:
        return np.maximum(1.0, users / group)

    return Server(
        rate=lambda n: group * queueing.repair_rate(groups(n), 1, service_s * group, think_s),
        demand_s=lambda n: np.full(len(n), service_s),
        think_s=think_s,
        tail=lambda n: _tails(groups(n), station, think_s, rare_s),
        crowd=100,
    )


def connecting(rng: np.random.Generator) -> Server:
    """A process or thread for each connection, no think time: two stations, shared wake-ups.

    CPU per request changes with users towards a limit, and a little further with each user more.
    """
    limit_s = float(rng.uniform(4e-5, 5e-4))
    shared = float(rng.uniform(-0.2, 0.3))
    each = float(rng.uniform(-2e-4, 1.5e-3))
    generator_s = limit_s * float(rng.uniform(0.2, 0.8))
    delay_s = limit_s * float(rng.uniform(0.1, 1.5))

    def demand_s(users: FloatArray) -> FloatArray:
        return np.asarray(limit_s * (1 + shared / users) * (1 + each * users))

    def rate(users: FloatArray) -> FloatArray:
        return _network(users, demand_s(users), np.full(len(users), generator_s), delay_s)

    return Server(rate=rate, demand_s=demand_s, generator_s=lambda n: np.full(len(n), generator_s))


def sharing(rng: np.random.Generator) -> Server:
    """Generator and server share cores: throughput rises again, slowly, with batching."""
    limit_s = float(rng.uniform(4e-5, 3e-4))
    batch = float(rng.uniform(0.1, 0.6))
    grown = float(rng.uniform(3, 12))

    def demand_s(users: FloatArray) -> FloatArray:
        return np.asarray(limit_s * (1 + batch * np.exp(-users / grown)))

    return Server(rate=lambda n: np.minimum(n / 1.6, 1) / demand_s(n), demand_s=demand_s)


def contending(rng: np.random.Generator) -> Server:
    """A lock whose cost grows with contention: throughput falls, the CPU gives no reason."""
    gamma = float(rng.uniform(500, 20_000))
    alpha = float(rng.uniform(0.01, 0.15))
    peak = float(rng.uniform(8, 40))
    beta = (1 - alpha) / peak**2
    most = float(curves.usl_rate(np.array([peak]), gamma, alpha, beta)[0])
    return Server(
        rate=lambda n: curves.usl_rate(n, gamma, alpha, beta),
        demand_s=lambda n: np.full(len(n), 0.3 / most),
    )


def waiting(rng: np.random.Generator) -> Server:
    """A few threads that wait for a disc: the CPU is idle while the server is full."""
    threads = int(rng.integers(3, 13))
    service_s = float(rng.uniform(5e-4, 5e-3))
    return Server(
        rate=lambda n: queueing.repair_rate(n, threads, service_s, 0.3 * service_s),
        demand_s=lambda n: np.full(len(n), 0.05 * service_s),
    )


def _network(
    users: FloatArray, server_s: FloatArray, generator_s: FloatArray, delay_s: float
) -> FloatArray:
    found = []
    for n, server, generator in zip(users, server_s, generator_s, strict=True):
        stations = [
            Station(name=SERVER, demand_s=float(server)),
            Station(name=GENERATOR, demand_s=float(generator)),
        ]
        found.append(queueing.network_rate(np.array([n]), stations, delay_s)[0])
    return np.array(found)


def _falling(rng: np.random.Generator, limit_s: float, drift: float) -> Curve:
    """CPU per request that falls steeply while the CPU sleeps, and then drifts a little.

    A busy CPU wakes up for fewer requests, and takes more of them at once. Later, caches and
    queues make each request a little cheaper or dearer, up to some number of users.
    """
    extra = float(rng.uniform(1, 6))
    power = float(rng.uniform(1.0, 2.5))
    turn = float(rng.uniform(4, 30))
    until = float(rng.uniform(30, 200))

    def demand_s(users: FloatArray) -> FloatArray:
        late = np.log(np.clip(users, turn, until) / turn)
        return np.asarray(limit_s * (1 + extra * users**-power) * np.exp(drift * late))

    return demand_s


def waking(rng: np.random.Generator) -> Server:
    """No think time: wake-ups vanish within a few users, then the server's CPU is full."""
    limit_s = float(rng.uniform(4e-6, 4e-5))
    demand_s = _falling(rng, limit_s, float(rng.normal(0, 0.05)))
    generator_s = _falling(rng, limit_s * float(rng.uniform(0.4, 0.9)), 0.0)
    delay_s = limit_s * float(rng.uniform(1, 8))
    growth = float(rng.normal(0, 0.1))
    return Server(
        rate=lambda n: _network(n, demand_s(n), generator_s(n), delay_s),
        demand_s=demand_s,
        generator_s=generator_s,
        tail=lambda n: 1.9 * n**growth,
    )


def generating(rng: np.random.Generator) -> Server:
    """A connection for each request: the generator's CPU is full before the server's."""
    limit_s = float(rng.uniform(8e-6, 6e-5))
    drift = float(rng.normal(0, 0.03))
    demand_s = _falling(rng, limit_s * float(rng.uniform(0.4, 0.85)), drift)
    generator_s = _falling(rng, limit_s, drift)
    delay_s = limit_s * float(rng.uniform(0.3, 3))
    return Server(
        rate=lambda n: _network(n, demand_s(n), generator_s(n), delay_s),
        demand_s=demand_s,
        generator_s=generator_s,
        gap_s=delay_s * 0.3,
        tail=lambda n: 1.8 * n**-0.2,
    )


def flat(rng: np.random.Generator) -> Server:
    """Throughput is flat from the first user on, with a drift: server and generator in turns."""
    rate = float(rng.uniform(500, 20_000))
    drift = float(rng.normal(0, 0.04))
    return Server(
        rate=lambda n: rate * n**drift,
        demand_s=lambda n: 0.9 / (rate * n**drift),
        tail=lambda n: np.full(len(n), 1.5),
    )


def sleeping(rng: np.random.Generator, *, known: bool = True) -> Server:
    """Users think, and the CPU sleeps: CPU and response time fall as users grow."""
    think_s = float(np.exp(rng.uniform(np.log(1e-3), np.log(40e-3))))
    first_s = think_s * float(rng.uniform(0.002, 0.05))
    power = float(rng.uniform(0.2, 0.7))
    part = float(rng.uniform(0.1, 0.4))
    gap_s = think_s * float(rng.uniform(0, 0.05))
    quick = float(rng.uniform(0.05, 0.25))

    def response_s(users: FloatArray) -> FloatArray:
        return np.asarray(first_s * users ** -float(quick))

    def rate(users: FloatArray) -> FloatArray:
        return np.asarray(users / (think_s + gap_s + response_s(users)))

    return Server(
        rate=rate,
        demand_s=(lambda n: part * first_s * n**-power) if known else None,
        think_s=think_s,
        generator_s=lambda n: 2 * part * first_s * n**-power,
        gap_s=gap_s,
        tail=lambda n: np.full(len(n), 2.0),
    )


def batching(rng: np.random.Generator) -> Server:
    """Users think, and the knee lies near the end of training, while the demand still falls."""
    limit_s = float(rng.uniform(2e-5, 3e-4))
    demand_s = _falling(rng, limit_s, -float(rng.uniform(0.05, 0.3)))
    knee = float(rng.uniform(12, 40))
    think_s = float(demand_s(np.array([knee]))[0]) * knee
    return Server(
        rate=lambda n: queueing.repair_rate(n, 1, demand_s(n), think_s),
        demand_s=demand_s,
        think_s=think_s,
        tail=lambda n: np.full(len(n), 2.5),
    )


def ordered(users: FloatArray, at_random: FloatArray, varies: float) -> FloatArray:
    """99th percentile / mean of a full server that takes a part of the requests at random.

    It takes the others in their order. Of N waiting requests, one is at the place x N of the queue.
    Until its turn, x falls by 1 - q for those taken in order and by q x for those taken at random,
    and the request itself is taken at random at the rate q. So the longest wait is -ln(1-q)/q times
    the mean, which is 1 for q = 0. Where q is nearly 1 the wait is exponential. The service times
    vary as well, which matters less with more users.
    """
    longest = -np.log1p(-at_random) / at_random
    ordered = np.minimum(longest, np.log(100))
    return np.asarray(1 + np.hypot(ordered - 1, 2.33 * varies / np.sqrt(users)))


def scheduling(rng: np.random.Generator) -> Server:
    """A thread for each connection: the kernel picks the next one, and not in their order.

    How far it departs from the order changes with the number of threads, up or down. Around the
    knee the tail is longer still.
    """
    server = waking(rng)
    middle = float(rng.uniform(-0.5, 4.0))
    drift = float(rng.normal(0, 0.8))
    varies = float(rng.uniform(0.3, 1.2))
    bump, place = float(rng.uniform(0, 0.5)), float(rng.uniform(3, 10))

    def ratio(users: FloatArray) -> FloatArray:
        at_random = 1 / (1 + np.exp(-(middle + drift * np.log(users / 20))))
        near = np.exp(-(np.log(users / place) ** 2) / 0.3)
        return ordered(users, at_random, varies) * (1 + bump * near)

    return replace(server, tail=ratio)


def retrying(rng: np.random.Generator) -> Server:
    """A connection for each request: fewer than 1 in 100 wait for a retry, and then for long.

    From some number of users on they lengthen the mean, and not the 99th percentile.
    """
    server = generating(rng)
    begin, most = float(rng.uniform(5, 40)), float(rng.uniform(0, 0.4))
    varies = float(rng.uniform(0.3, 1.2))
    at_random = float(rng.uniform(0.05, 0.8))

    def ratio(users: FloatArray) -> FloatArray:
        rare = most * (1 - np.exp(-np.maximum(0.0, users - begin) / 30))
        return ordered(users, np.full(len(users), at_random), varies) * (1 - rare)

    return replace(server, tail=ratio)


def gathering(rng: np.random.Generator) -> Server:
    """Users think, and each wake-up takes more requests: CPU per request falls far beyond training.

    So the utilisation grows slowly, and the response time falls until the queue is felt.
    """
    think_s = float(np.exp(rng.uniform(np.log(1e-3), np.log(10e-3))))
    busy = float(rng.uniform(0.1, 0.7))  # of the generator at 20 users
    power, until = float(rng.uniform(0.4, 0.9)), float(rng.uniform(25, 200))
    part = float(rng.uniform(0.3, 1.0))
    first_s = think_s * float(rng.uniform(0.02, 0.10))
    quick = float(rng.uniform(0.0, 0.25))

    def generator_s(users: FloatArray) -> FloatArray:
        fallen = (np.minimum(users, until) / 20) ** -power
        return np.asarray(busy * think_s / 20 * fallen)

    def rate(users: FloatArray) -> FloatArray:
        found = []
        for n, each_s in zip(users, generator_s(users), strict=True):
            stations = [
                Station(name=GENERATOR, demand_s=float(each_s)),
                Station(name=SERVER, demand_s=float(each_s) * part),
            ]
            own_s = float(each_s) * (1 + part)  # is a part of the response time without a queue
            more_s = max(0.0, first_s * float(n) ** -quick - own_s)
            found.append(queueing.network_rate(np.array([n]), stations, think_s + more_s)[0])
        return np.array(found)

    return Server(
        rate=rate,
        demand_s=lambda n: part * generator_s(n),
        generator_s=generator_s,
        think_s=think_s,
        tail=lambda n: np.full(len(n), 2.2),
    )


KINDS: dict[str, Maker] = {
    "process or thread for each": connecting,
    "wake-ups shared": sharing,
    "wake-ups vanish": waking,
    "generator-limited": generating,
    "flat from the first user": flat,
    "thinking, knee seen": partial(_queue, knee=(4, 14), known=True),
    "thinking, 2 cores": partial(_queue, knee=(4, 14), known=True, cores=2),
    "thinking, CPU not known": partial(_queue, knee=(4, 14), known=False),
    "thinking, knee not seen": partial(_queue, knee=(28, 70), known=True),
    "thinking, CPU sleeps": sleeping,
    "thinking, demand falls": batching,
    "thousands who think": crowding,
    "neither knee nor CPU": partial(_queue, knee=(40, 90), known=False),
    "the kernel's order": scheduling,
    "rare retries": retrying,
    "thinking, batches grow": gathering,
    "a lock": contending,
    "waits for a disc": waiting,
}
