# SPDX-License-Identifier: MIT
"""Simulated servers with the noise of real ones, which judge the forecast.

One server shows only whether a rule suits that server. This file draws servers of several kinds
with random parameters, measures them with noise and outliers, and makes a forecast. It counts how
often the forecast meets its goals. docs/decisions/024 has the rule. The constants of the
rule were settled on the seeds below 1000, and are reported on others.

`python lab/tests/population.py 60 1000` prints the table for 60 servers of each kind, from seed
1000 on.
"""

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from weir_lab.capacity import curves, findings, queueing
from weir_lab.capacity.findings import P99, RATE, RESPONSE
from weir_lab.capacity.queueing import FloatArray, Station
from weir_lab.capacity.score import mape
from weir_lab.capacity.sweep import GENERATOR, SERVER, Point, Sweep

TRAINING = tuple(range(1, 21))
HELD_OUT = tuple(range(25, 61, 5))
REPEATS = 2
FIFTH = 0.2
LINEAR_GOOD = 0.2  # where linear regression is off by less, a fifth of it is not asked for
TIE = 0.01  # of the throughput: two forecasts within this are equally good

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


@dataclass(frozen=True, kw_only=True)
class Noise:
    """The noise between runs of the same level."""

    run: float  # standard deviation of a run's throughput
    demand: float  # of its CPU per request
    outliers: float  # part of the runs that something disturbed
    lost: tuple[float, float]  # of their throughput


QUIET = Noise(run=0.015, demand=0.02, outliers=0.02, lost=(0.05, 0.2))
BUSY = Noise(run=0.04, demand=0.04, outliers=0.06, lost=(0.1, 0.35))


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
    "a lock": contending,
    "waits for a disc": waiting,
}


def measured(
    server: Server, levels: tuple[int, ...], noise: Noise, rng: np.random.Generator
) -> Sweep:
    """Two runs of each level, with noise. Thinking users have less of it: their pace is given."""
    points = []
    users = np.array(levels, dtype=np.float64)
    nothing = np.zeros(len(users))
    demands = server.demand_s(users) if server.demand_s else nothing
    generator = server.generator_s(users) if server.generator_s else nothing
    tails = server.tail(users) if server.tail else nothing
    for place, (level, rate) in enumerate(zip(levels, server.rate(users), strict=True)):
        for repeat in range(REPEATS):
            off = noise.run * float(rng.standard_normal())
            cost = 1 + noise.demand * float(rng.standard_normal())
            if rng.random() < noise.outliers:
                lost = float(rng.uniform(*noise.lost))
                off, cost = off - lost, cost * (1 + lost / 3)
            cycle_s = level / rate
            response_s = cycle_s - server.think_s - server.gap_s
            drawn_s = server.think_s * float(rng.standard_normal()) / np.sqrt(rate)
            response_s = response_s / (1 + off)
            seen = level / (response_s + server.think_s + drawn_s + server.gap_s)
            used = {SERVER: demands[place] * cost} if server.demand_s else {}
            if server.generator_s:
                used[GENERATOR] = generator[place] * cost
            tail_s = response_s * tails[place] * np.exp(0.06 * float(rng.standard_normal()))
            points.append(
                Point(
                    users=level,
                    rate=seen,
                    response_s=response_s,
                    repeat=repeat,
                    p99_s=float(tail_s) or None,
                    answered=int(seen),
                    demand_s=used,
                )
            )
    return Sweep(
        points=points, think_s=server.think_s, servers={SERVER: server.cores, GENERATOR: 1}
    )


@dataclass(frozen=True, kw_only=True)
class Trial:
    """The result for one server. Errors are against measurements with noise, as for a real one."""

    refused: bool
    error: float = float("nan")
    linear: float = float("nan")
    constant: float = float("nan")
    truth: float = float("nan")  # the error against the truth, which only a made-up server has
    covered: float = float("nan")
    response: float = float("nan")
    response_covered: float = float("nan")
    p99: float = float("nan")
    p99_covered: float = float("nan")

    @property
    def beats_linear(self) -> bool:
        """By a factor of five, where linear regression is not good enough."""
        return self.linear <= LINEAR_GOOD or self.error <= FIFTH * self.linear

    @property
    def is_no_worse_than_constant(self) -> bool:
        """Within a tie."""
        return self.error <= self.constant + TIE


def trial(kind: str, noise: Noise, seed: int) -> Trial:
    """Draws a server, measures it, makes a forecast, and scores it."""
    rng = np.random.default_rng([seed, *kind.encode()])
    server = KINDS[kind](rng)
    levels = tuple(server.crowd * n for n in TRAINING + HELD_OUT)
    swept = measured(server, levels, noise, rng)
    found = findings.find(swept, train_to=server.crowd * TRAINING[-1])
    if not found.forecast:
        return Trial(refused=True)
    users = server.crowd * np.array(HELD_OUT, dtype=np.float64)
    rate = found.scores[RATE]
    times, tails = found.scores[RESPONSE].forecast, found.scores.get(P99)
    return Trial(
        refused=False,
        error=rate.forecast.mape,
        linear=rate.linear,
        constant=rate.constant,
        truth=mape(found.forecast.rates(users), server.rate(users)),
        covered=rate.forecast.coverage,
        response=times.mape,
        response_covered=times.coverage,
        p99=tails.forecast.mape if tails else float("nan"),
        p99_covered=tails.forecast.coverage if tails else float("nan"),
    )


def trials(kind: str, noise: Noise, count: int, first: int = 0) -> list[Trial]:
    """Trials with this many servers of a kind, from the first seed on."""
    return [trial(kind, noise, seed) for seed in range(first, first + count)]


def _line(kind: str, found: Sequence[Trial]) -> str:
    kept = [t for t in found if not t.refused]

    def share(of: Callable[[Trial], float]) -> str:
        return f"{float(np.nanmean([of(t) for t in kept])):.0%}"

    def middle(of: Callable[[Trial], float]) -> str:
        values = [of(t) for t in kept if np.isfinite(of(t))]
        return f"{float(np.median(values)):.1%}" if values else "-"

    cells = (
        kind,
        f"{1 - len(kept) / len(found):.0%}",
        middle(lambda t: t.truth),
        middle(lambda t: t.error),
        f"{float(np.quantile([t.error for t in kept], 0.95)):.1%}",
        middle(lambda t: t.constant),
        middle(lambda t: t.linear),
        share(lambda t: t.beats_linear),
        share(lambda t: t.is_no_worse_than_constant),
        share(lambda t: t.covered),
        middle(lambda t: t.response),
        share(lambda t: t.response_covered),
        middle(lambda t: t.p99),
        share(lambda t: t.p99_covered) if np.isfinite(kept[0].p99) else "-",
    )
    return "| " + " | ".join(cells) + " |"


HEAD = (
    "server",
    "refused",
    "off the truth",
    "off by",
    "19 of 20 below",
    "constant",
    "linear",
    "a fifth of linear",
    "no worse than constant",
    "in 95 % band",
    "mean time off by",
    "in band",
    "p99 off by",
    "in band",
)


def _job(job: tuple[str, Noise, int, int]) -> list[Trial]:
    return trials(*job)


def main() -> None:
    """Prints the table: COUNT [FIRST SEED]."""
    count, first = (*(int(word) for word in sys.argv[1:]), 0)[:2]
    for name, noise in (("quiet", QUIET), ("busy", BUSY)):
        print(f"\n{name}\n")
        print("| " + " | ".join(HEAD) + " |")
        print("|---" * len(HEAD) + "|", flush=True)
        jobs = [(kind, noise, count, first) for kind in KINDS]
        everything: list[Trial] = []
        with ProcessPoolExecutor(2) as pool:
            for kind, found in zip(KINDS, pool.map(_job, jobs), strict=True):
                everything += found
                print(_line(kind, found), flush=True)
        print(_line("all", everything), flush=True)


if __name__ == "__main__":
    main()
