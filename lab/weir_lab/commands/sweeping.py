# SPDX-License-Identifier: MIT
"""Sweeps of users: which levels, one level, and what the models make of all of them."""

from collections.abc import Sequence

from weir_lab.capacity import answers, choice, records
from weir_lab.capacity.sweep import SERVER
from weir_lab.commands.experiment import Step
from weir_lab.report import sweeps
from weir_lab.report.page import Section
from weir_lab.rim import runs
from weir_lab.rim.errors import LabError
from weir_lab.rim.machine import Placement
from weir_lab.rim.runs import Work, World
from weir_lab.rim.store import Record

START_S = 0.8
WARMUP_S = 0.3
PROBE_USERS = 20
SPREAD = (0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0, 1.15, 1.35, 1.6)  # parts of N*
USERS_MAX = 20_000
DRAWS = 100


def step(
    here: World,
    key: str,
    server: str,
    work: Work,
    *,
    think_s: float,
    seconds: float,
    generator: str = "load",
    options: str = "",
) -> Step:
    """A level held for so many seconds against a fresh server."""
    generate = runs.generator(generator, here.weir)
    load: dict[str, object] = {"seconds": seconds}
    if generator == "load":
        load |= {"think_s": think_s, "think": "exponential", "warmup_s": WARMUP_S + think_s}

    def measure() -> Record:
        chosen = runs.weir(here, server, options) if options else runs.product(here, server)
        return runs.run(here, chosen, work, load, generate)

    return Step(key=key, seconds=START_S + seconds, measure=measure)


def levels_past_the_knee(
    here: World, server: str, think_s: float, path: str, *, options: str = ""
) -> list[int]:
    """Numbers of users around N*, which a low load's CPU per request places: N* = (R + Z) / D.

    Rounded to two digits, so that a second look places them the same.
    """
    work = Work(path=path, users=PROBE_USERS)
    record = step(
        here, "probe", server, work, think_s=think_s, seconds=1.0, options=options
    ).measure()
    found = records.point(record, 0)
    demand_s = found.demand_s[SERVER] / here.placement.server_cores
    if demand_s <= 0:
        raise LabError("the server used no CPU that could be measured under a low load")
    knee = (found.response_s + think_s) / demand_s
    return sorted({rounded(min(USERS_MAX, part * knee)) for part in SPREAD})


def rounded(value: float) -> int:
    """To two significant digits, at least 1."""
    return max(1, int(float(f"{value:.1e}")))


def study(
    name: str,
    found: Sequence[Record],
    placement: Placement,
    *,
    train_to: int,
    seed: int,
    p99_limit_s: float | None = None,
) -> Section:
    """Chooses a model by the levels up to `train_to`, scores it on the rest, draws all of it."""
    swept = records.sweep(
        found,
        server_cores=placement.server_cores,
        generator_cores=placement.generator_cores,
    )
    if not swept.points:
        return Section(title=name, verdict=["Nothing was measured."])
    chosen = choice.choose(swept.up_to(train_to), draws=DRAWS, seed=seed)
    held_out = choice.without_void(swept.above(train_to))
    limit_s = p99_limit_s
    tails = [p.p99_s for p in chosen.training.points if p.p99_s]
    if tails and limit_s is None:
        limit_s = rounded(min(tails) * 1e6 * 5) / 1e6
    carried = answers.capacity(chosen, limit_s)
    pictures = []
    if chosen.training.points:
        pictures = [
            sweeps.throughput(name, swept, chosen, carried),
            sweeps.response(name, swept, chosen),
            sweeps.latency_throughput(name, swept),
            *sweeps.spectra(name, found),
            sweeps.utilisation(name, swept),
            sweeps.prediction(name, swept, chosen),
        ]
    return Section(
        title=name,
        verdict=sweeps.findings(chosen, carried, swept, held_out),
        pictures=pictures,
        tables=[sweeps.scores(name, chosen, held_out), sweeps.levels(name, swept)],
    )
