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

import numpy as np

from made_up import KINDS, Server
from weir_lab.capacity import findings
from weir_lab.capacity.findings import P99, RATE, RESPONSE
from weir_lab.capacity.score import mape
from weir_lab.capacity.sweep import GENERATOR, SERVER, Point, Sweep

TRAINING = tuple(range(1, 21))
HELD_OUT = tuple(range(25, 61, 5))
REPEATS = 2
FIFTH = 0.2
LINEAR_GOOD = 0.2  # where linear regression is off by less, a fifth of it is not asked for
TIE = 0.01  # of the throughput: two forecasts within this are equally good


@dataclass(frozen=True, kw_only=True)
class Noise:
    """The noise between runs of the same level."""

    run: float  # standard deviation of a run's throughput
    demand: float  # of its CPU per request
    outliers: float  # part of the runs that something disturbed
    lost: tuple[float, float]  # of their throughput


QUIET = Noise(run=0.015, demand=0.02, outliers=0.02, lost=(0.05, 0.2))
BUSY = Noise(run=0.04, demand=0.04, outliers=0.06, lost=(0.1, 0.35))


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
            if rng.random() < noise.outliers:  # a hundredth of the requests is soon disturbed
                tail_s *= float(rng.uniform(1.3, 3.0))
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
