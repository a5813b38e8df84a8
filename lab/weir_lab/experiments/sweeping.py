# SPDX-License-Identifier: MIT
"""Sweeps of users: the levels, the step for one level, and the models fitted to all of them.

A pilot run precedes a sweep. It holds the highest training load from a fresh start. Its answers in
each second decide how long every point warms up, or that there is no steady state to measure.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from weir_lab.analysis import steady
from weir_lab.capacity import findings, records
from weir_lab.capacity.answers import Need
from weir_lab.capacity.sweep import SERVER, without_void
from weir_lab.experiments.experiment import Step
from weir_lab.report.capacity import Studied
from weir_lab.report.page import Table
from weir_lab.rim import quota, runs
from weir_lab.rim.errors import LabError
from weir_lab.rim.generators import Load, Outcome
from weir_lab.rim.machine import Placement
from weir_lab.rim.runs import Generate, Work, World
from weir_lab.rim.store import Record, Store

START_S = 0.8
WARMUP_S = 0.3
PILOT = "pilot"
PROBE_USERS = 20
PROBES = 3
SPREAD = (0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0, 1.15, 1.35, 1.6)  # parts of N*
USERS_MAX = 20_000
LOAD_NUMBERS = ("requests", "failed", "rate", "mean_s", "server_demand_s", "generator_cpu_s")


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
    warmup_s: float | None = None,
    think: str = "exponential",
    share: float = 1.0,
) -> Step:
    """A step at one level for this many seconds, against a fresh server.

    `share` is the part of its cores that the server may use.
    """
    generate = with_share(runs.generator(generator, here.weir), here, share)
    load: dict[str, object] = {"seconds": seconds}
    if generator == "load":
        warm_s = least_warmup_s(think_s) if warmup_s is None else warmup_s
        load |= {"think_s": think_s, "think": think, "warmup_s": warm_s}

    def measure() -> Record:
        chosen = runs.weir(here, server, options) if options else runs.product(here, server)
        return {**runs.run(here, chosen, work, load, generate), "server_share": share}

    warm_s = float(load.get("warmup_s", 0.0))  # type: ignore[arg-type]
    return Step(key=key, seconds=START_S + warm_s + seconds, measure=measure)


def with_share(generate: Generate, here: World, share: float) -> Generate:
    """The generator, with the server limited to a part of its cores during the load."""
    if share >= 1:
        return generate
    cores = here.placement.server_cores * share

    def limited(load: Load, core: int | None, pid: int | None) -> Outcome:
        assert pid is not None
        with quota.limited(pid, cores, quota.short_period_us(cores)):
            return generate(load, core, pid)

    return limited


def least_warmup_s(think_s: float) -> float:
    """The shortest warm-up: connecting, and the first think time of every user."""
    return WARMUP_S + think_s


@dataclass(frozen=True, kw_only=True)
class Settled:
    """The warm-up of each point, with the reason."""

    warmup_s: float
    why: str
    doubt: str = ""  # a sentence where there is no steady state


def settled(store: Store, think_s: float, key: str = PILOT) -> Settled:
    """The warm-up by the pilot run in the store; without one, the shortest warm-up."""
    least_s = least_warmup_s(think_s)
    pilot = store.records.get(key, {"error": ""})
    series = [] if "error" in pilot else records.by_second(pilot)
    if len(series) < steady.SAMPLES_MIN:
        return Settled(warmup_s=least_s, why=f"Each point warmed up for {least_s:.2g} s.")
    cut = steady.beginning(series)
    where = f"{len(series)} s at {pilot['users']:,} users from a fresh start"
    if cut is None:
        return Settled(
            warmup_s=least_s,
            why=f"Each point warmed up for {least_s:.2g} s, which is not enough.",
            doubt=f"In {where} the throughput drifted to the end: there is no steady state.",
        )
    rest = steady.batch_means(series[cut:])
    known = f"then {rest.value:,.0f} answers a second"
    if np.isfinite(rest.low):
        known += f" ({rest.low:,.0f} to {rest.high:,.0f} by batch means)"
    began = f"took {cut} s to settle" if cut else "were steady from the first second"
    return Settled(
        warmup_s=max(least_s, float(cut)),
        why=f"{where} {began} (MSER), {known}; each point warmed up for "
        f"{max(least_s, float(cut)):.2g} s.",
    )


def knee_of(here: World, record: Record, think_s: float) -> int:
    """N* = (R0 + Z) / D by a run's D; R0 is taken as D, without the time in queues."""
    found = records.point(record, 0)
    demand_s = found.demand_s[SERVER] / here.placement.server_cores
    if demand_s <= 0:
        raise LabError("the server's CPU under a low load is too small to measure")
    return rounded(min(USERS_MAX, 1 + think_s / demand_s))


def levels_past(knee: int) -> list[int]:
    """Numbers of users around N*, to two digits."""
    return sorted({rounded(min(USERS_MAX, part * knee)) for part in SPREAD})


def rounded(value: float) -> int:
    """To two significant digits, at least 1."""
    return max(1, int(float(f"{value:.1e}")))


def check(found: Iterable[Record]) -> None:
    """Rejects damaged records of runs, before anything is computed from them.

    Raises:
        LabError: a record has not the numbers that a sweep is made from; the message names it.
    """
    for record in found:
        if "error" in record:
            continue
        load = record.get("load")
        if not isinstance(load, dict):
            raise LabError(f"the record {record.get('key')!r} is damaged: it has no load")
        numbers = {name: record.get(name) for name in ("users", "think_s", "server_cpu_s")}
        numbers |= {f"load.{name}": load.get(name) for name in LOAD_NUMBERS}
        for name, value in numbers.items():
            if not isinstance(value, (int, float)) or not np.isfinite(value):
                raise LabError(
                    f"the record {record.get('key')!r} is damaged: {name} is {value!r}, which is "
                    "no number"
                )


def study(
    name: str,
    found: Sequence[Record],
    placement: Placement,
    *,
    server: str,
    train_to: int,
    p99_limit_s: float | None = None,
    need: Need | None = None,
    doubt: str = "",
    missing: int = 0,
) -> Studied:
    """Forecasts from the levels up to `train_to`, and keeps the rest to score the forecast on.

    `found` has the records of failed runs, too.

    Raises:
        LabError: a record is damaged.
    """
    check(found)
    swept = records.sweep(
        found,
        server_cores=placement.server_cores,
        generator_cores=placement.generator_cores,
        one_core=placement.is_one_core,
    )
    tails = [p.p99_s for p in without_void(swept).points if p.p99_s and p.users <= train_to]
    if tails and p99_limit_s is None:
        p99_limit_s = rounded(min(tails) * 1e6 * 5) / 1e6
    return Studied(
        name=name,
        server=server,
        found=findings.find(
            swept,
            train_to=train_to,
            p99_limit_s=p99_limit_s,
            need=need,
            doubt=doubt,
            missing=missing,
        ),
        records=found,
    )


def precision(studied: Studied) -> Table:
    """The precision of each level's throughput: between fresh starts, and within a run."""
    valid = {(p.users, p.repeat) for p in studied.valid}
    by_level: dict[int, list[Record]] = {}
    for record, repeat in records.numbered(studied.records):
        here = by_level.setdefault(record["users"], [])
        if (record["users"], repeat) in valid:
            here.append(dict(record))
    rows = [_precision_row(users, by_level[users]) for users in sorted(by_level)]
    head = ["users", "valid runs", "mean requests/s"]
    return Table(
        name=f"{studied.name}-precision",
        title="Precision of each level",
        head=[*head, "± between runs", "± within a run", "seconds correlated"],
        rows=rows,
        note="Half-widths of 95 % intervals of the mean: between fresh starts by Student's t, "
        "within runs of 10 s and more by batch means. Where starts differ by more than a run "
        "varies, more repeats help and longer runs do not. Seconds correlated: the interval within "
        "a run is too narrow. Void runs do not count.",
    )


def _precision_row(users: int, here: Sequence[Record]) -> list[str]:
    if not here:
        return [str(users), "0", *["-"] * 4]
    rates = np.array([r["load"]["rate"] for r in here])
    half = "-"
    if len(rates) > 1:
        half = f"{stats.t.ppf(0.975, len(rates) - 1) * stats.sem(rates) / rates.mean():.1%}"
    whole = [series for r in here if (series := records.by_second(r))]
    within = [m for series in whole if np.isfinite((m := steady.batch_means(series)).low)]
    row = [str(users), str(len(here)), f"{rates.mean():,.0f}", half]
    if not within:
        return [*row, "-", "-"]
    width = float(np.median([(m.high - m.low) / 2 / m.value for m in within]))
    return [*row, f"{width:.1%}", "yes" if any(m.correlated for m in within) else "no"]
