# SPDX-License-Identifier: MIT
"""Simulated servers with the noise of real ones, which judge the rule of choice.

One server shows only whether a rule suits that server. This file draws servers of several kinds
with random parameters, measures them with noise and outliers, and applies the rule. It counts how
often the chosen model has at most a fifth of linear regression's error, and how often the model is
no worse than "as the last step". It also counts refusals. The rule is not fitted to any of them.

`python lab/tests/population.py 200` prints the table for 200 servers of each kind.
"""

import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from weir_lab.capacity import choice, curves, queueing
from weir_lab.capacity.queueing import FloatArray, Station
from weir_lab.capacity.score import mape
from weir_lab.capacity.sweep import GENERATOR, SERVER, Point, Sweep

TRAINING = tuple(range(1, 21))
HELD_OUT = tuple(range(25, 61, 5))
FIFTH = 0.2
TIE = 0.01  # of the throughput: two models within this are equally good

Curve = Callable[[FloatArray], FloatArray]
Maker = Callable[[np.random.Generator], "Server"]


@dataclass(frozen=True, kw_only=True)
class Server:
    """A true server: throughput and CPU per request against users."""

    rate: Curve
    demand_s: Curve | None  # of the server; None: not measured
    think_s: float = 0.0
    cores: int = 1
    generator_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Noise:
    """The noise between runs of the same level."""

    run: float  # standard deviation of a run's throughput
    demand: float  # of its CPU per request
    outliers: float  # part of the runs that something disturbed
    lost: tuple[float, float]  # of their throughput


QUIET = Noise(run=0.02, demand=0.02, outliers=0.02, lost=(0.05, 0.2))
BUSY = Noise(run=0.05, demand=0.04, outliers=0.08, lost=(0.1, 0.4))


def _queue(
    rng: np.random.Generator, *, knee: tuple[float, float], known: bool, cores: int = 1
) -> Server:
    service_s = float(rng.uniform(5e-5, 1e-3))
    think_s = service_s * (float(rng.uniform(*knee)) / cores - 1)
    return Server(
        rate=lambda n: queueing.repair_rate(n, cores, service_s, think_s),
        demand_s=(lambda n: np.full(len(n), service_s)) if known else None,
        think_s=think_s,
        cores=cores,
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
        found = []
        for count, server_s in zip(users, demand_s(users), strict=True):
            stations = [
                Station(name=SERVER, demand_s=float(server_s)),
                Station(name=GENERATOR, demand_s=generator_s),
            ]
            found.append(queueing.mva_rate(np.array([count]), stations, delay_s)[0])
        return np.array(found)

    return Server(rate=rate, demand_s=demand_s, generator_s=generator_s)


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
    return Server(
        rate=lambda n: curves.usl_rate(n, gamma, alpha, beta),
        demand_s=lambda n: np.full(len(n), 0.3 / gamma),
    )


def waiting(rng: np.random.Generator) -> Server:
    """A few threads that wait for a disc: the CPU is idle while the server is full."""
    threads = int(rng.integers(3, 13))
    service_s = float(rng.uniform(5e-4, 5e-3))
    return Server(
        rate=lambda n: queueing.repair_rate(n, threads, service_s, 0.3 * service_s),
        demand_s=lambda n: np.full(len(n), 0.05 * service_s),
    )


KINDS: dict[str, Maker] = {
    "process or thread for each": connecting,
    "wake-ups shared": sharing,
    "thinking, knee seen": partial(_queue, knee=(4, 14), known=True),
    "thinking, 2 cores": partial(_queue, knee=(4, 14), known=True, cores=2),
    "thinking, CPU not known": partial(_queue, knee=(4, 14), known=False),
    "thinking, knee not seen": partial(_queue, knee=(28, 70), known=True),
    "neither knee nor CPU": partial(_queue, knee=(40, 90), known=False),
    "a lock": contending,
    "waits for a disc": waiting,
}


def measured(
    server: Server, levels: tuple[int, ...], noise: Noise, rng: np.random.Generator
) -> Sweep:
    """Three runs of each level, with noise."""
    points = []
    users = np.array(levels, dtype=np.float64)
    demands = server.demand_s(users) if server.demand_s else np.zeros(len(users))
    for level, rate, demand_s in zip(levels, server.rate(users), demands, strict=True):
        for repeat in range(3):
            off = 1 + noise.run * float(rng.standard_normal())
            cost = 1 + noise.demand * float(rng.standard_normal())
            if rng.random() < noise.outliers:
                lost = float(rng.uniform(*noise.lost))
                off, cost = off * (1 - lost), cost * (1 + lost / 3)
            seen = rate * off
            used = {SERVER: demand_s * cost} if server.demand_s else {}
            if server.generator_s:
                used[GENERATOR] = server.generator_s * cost
            points.append(
                Point(
                    users=level,
                    rate=seen,
                    response_s=level / seen - server.think_s,
                    repeat=repeat,
                    demand_s=used,
                )
            )
    return Sweep(
        points=points, think_s=server.think_s, servers={SERVER: server.cores, GENERATOR: 1}
    )


@dataclass(frozen=True, kw_only=True)
class Trial:
    """The result for one server.

    Errors are against the truth, which is known for a simulated server. `seen` is the error against
    measurements, which cannot be below their noise.
    """

    refused: bool
    model: str = ""
    chosen: float = float("nan")
    linear: float = float("nan")
    constant: float = float("nan")
    seen: float = float("nan")
    covered: float = float("nan")

    @property
    def beats_linear(self) -> bool:
        """By a factor of five."""
        return self.chosen <= FIFTH * self.linear

    @property
    def is_no_worse_than_constant(self) -> bool:
        """Within a tie."""
        return self.chosen <= self.constant + TIE


def trial(kind: str, noise: Noise, seed: int, draws: int = 0) -> Trial:
    """Draws a server, measures it, applies the rule, and scores the prediction."""
    rng = np.random.default_rng([seed, *kind.encode()])
    server = KINDS[kind](rng)
    found = choice.choose(measured(server, TRAINING, noise, rng), draws=draws, seed=seed)
    if found.refusal or not found.chosen or not found.chosen.ensemble:
        return Trial(refused=True)
    users = np.array(HELD_OUT, dtype=np.float64)
    truth = server.rate(users)

    def error(name: str) -> float:
        candidate = found.of(name).ensemble
        return mape(candidate.fitted.predict(users), truth) if candidate else float("nan")

    model = found.chosen.model.name
    seen = choice.score_all(found, measured(server, HELD_OUT, noise, rng))[model]
    return Trial(
        refused=False,
        model=model,
        chosen=error(model),
        linear=error("linear"),
        constant=error("constant"),
        seen=seen.mape,
        covered=seen.coverage,
    )


def trials(kind: str, noise: Noise, count: int, draws: int = 0, first: int = 0) -> list[Trial]:
    """Trials with this many servers of a kind, from the first seed on."""
    return [trial(kind, noise, seed, draws) for seed in range(first, first + count)]


def _line(job: tuple[str, Noise, int, int, int]) -> str:
    kind, noise, count, draws, first = job
    found = trials(kind, noise, count, draws, first)
    kept = [t for t in found if not t.refused]
    if not kept:
        return f"| {kind} | 100% |" + " |" * 9
    names = sorted({t.model for t in kept}, key=lambda n: -sum(t.model == n for t in kept))

    def share(of: Callable[[Trial], bool]) -> str:
        return f"{sum(map(of, kept)) / len(kept):.0%}"

    def middle(of: Callable[[Trial], float]) -> str:
        return f"{float(np.median([of(t) for t in kept])):.1%}"

    cells = (
        kind,
        f"{1 - len(kept) / len(found):.0%}",
        middle(lambda t: t.chosen),
        f"{float(np.quantile([t.chosen for t in kept], 0.95)):.1%}",
        middle(lambda t: t.seen),
        middle(lambda t: t.constant),
        middle(lambda t: t.linear),
        share(lambda t: t.beats_linear),
        share(lambda t: t.is_no_worse_than_constant),
        f"{float(np.mean([t.covered for t in kept])):.0%}" if draws else "",
        ", ".join(f"{n} {sum(t.model == n for t in kept)}" for n in names[:3]),
    )
    return "| " + " | ".join(cells) + " |"


HEAD = (
    "server",
    "refused",
    "off by",
    "19 of 20 below",
    "with noise",
    "constant off by",
    "linear off by",
    "at most a fifth of linear",
    "no worse than constant",
    "in 95 % band",
    "chosen",
)


def main() -> None:
    """Prints the table: COUNT [DRAWS [FIRST SEED]]."""
    count, draws, first = (*(int(word) for word in sys.argv[1:]), 0, 0)[:3]
    for name, noise in (("quiet", QUIET), ("busy", BUSY)):
        print(f"\n{name}\n")
        print("| " + " | ".join(HEAD) + " |")
        print("|---" * len(HEAD) + "|", flush=True)
        jobs = [(kind, noise, count, draws, first) for kind in KINDS]
        with ProcessPoolExecutor(2) as pool:
            for line in pool.map(_line, jobs):
                print(line, flush=True)


if __name__ == "__main__":
    main()
