# SPDX-License-Identifier: MIT
"""Sharing between threads or processes: counters that lose updates, caches that make them wait.

The source documents first lost updates of counters in shared memory, then used a named semaphore.
They kept files in a cache in least-recently-used order below a lock. The programs that measure this
are bench/sync.c and bench/cache.c, the latter with the cache of src/site/.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from weir_lab.analysis import caching, interleave
from weir_lab.analysis.caching import CONTESTANTS, Plan
from weir_lab.experiments.experiment import (
    Options,
    Step,
    environment,
    failures,
    perform,
    store_for,
)
from weir_lab.report import caches, counters
from weir_lab.report.page import Report, Section
from weir_lab.rim.errors import LabError
from weir_lab.rim.programs import answer, built
from weir_lab.rim.store import Record, Store

PARTS = ("counters", "caches")
WORKERS_MAX = 64  # the limit of both programs

# way -> approximate time of one addition, to choose the length of a run
ADDITION_S = {
    "none": 0.7e-9,
    "semaphore": 400e-9,
    "mutex": 150e-9,
    "atomic": 20e-9,
    "block": 0.7e-9,
}
SIMULATION_S = 1.5e-6  # for each request, all policies together


@dataclass(frozen=True, kw_only=True)
class Counters:
    """The plan of the experiment on counters."""

    workers: tuple[int, ...]
    repeats: int = 6
    additions: int = 0  # of each run; 0: as many as take about `run_s`
    run_s: float = 0.2


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is measured."""

    counters: Counters
    caches: Plan
    parts: tuple[str, ...] = PARTS


def default_workers(times: int = 4) -> tuple[int, ...]:
    """1, 2, 4 ... up to this many times the cores."""
    most = times * len(os.sched_getaffinity(0))
    return tuple(n for n in (1, 2, 4, 8, 16, 32, 64) if n <= most)


def question(
    *,
    workers: tuple[int, ...] = (),
    quick: bool = False,
    parts: tuple[str, ...] = PARTS,
    repeats: int | None = None,
    additions: int = 0,
    objects: int | None = None,
    requests: int | None = None,
    exponents: tuple[float, ...] = (),
    sizes: tuple[float, ...] = (),
    seed: int = 1,
) -> Question:
    """The question, with defaults for precise figures or, if `quick`, for a first impression."""
    workers = workers or default_workers(2 if quick else 4)
    counted = Counters(
        workers=workers,
        additions=additions,
        repeats=3 if quick else 6,
        run_s=0.02 if quick else 0.2,
    )
    plan = Plan(workers=workers, cores=len(os.sched_getaffinity(0)), seed=seed)
    if quick:
        plan = replace(
            plan,
            objects=2_000,
            requests=40_000,
            exponents=(0.8, 1.2),
            sizes=(1, 10, 50),
            timed_sizes=(10, 100),
            repeats=3,
            passes=1,
        )
    if repeats is not None:
        counted, plan = replace(counted, repeats=repeats), replace(plan, repeats=repeats)
    return Question(
        parts=parts,
        counters=counted,
        caches=replace(
            plan,
            objects=objects or plan.objects,
            requests=requests or plan.requests,
            exponents=exponents or plan.exponents,
            sizes=sizes or plan.sizes,
            timed_sizes=sizes or plan.timed_sizes,
        ),
    )


# ---- counters ----


def _order(subjects: Sequence[str], repeats: int, seed: int) -> list[list[str]]:
    return interleave.rounds(subjects, repeats, seed)


def counter_steps(program: Path, question: Counters, seed: int) -> list[Step]:
    """Steps for every way, kind and number of workers, in rounds."""
    found = []
    for repeat, ways in enumerate(_order(list(ADDITION_S), question.repeats, seed)):
        for kind in counters.KINDS:
            for workers in question.workers:
                for way in ways:
                    additions = question.additions or round(question.run_s / ADDITION_S[way])
                    share = max(1, additions // workers)

                    def measure(
                        way: str = way, kind: str = kind, workers: int = workers, n: int = share
                    ) -> Record:
                        return answer(program, way, kind, workers, n)

                    found.append(
                        Step(
                            key=counters.key(way, kind, workers, repeat),
                            seconds=question.run_s,
                            measure=measure,
                        )
                    )
    return found


# ---- caches ----


@dataclass(frozen=True, kw_only=True)
class Bench:
    """The program, and the folder for the traces that it replays."""

    program: Path
    folder: Path
    plan: Plan

    def _trace(self, name: str) -> Path:
        path = self.folder / name
        if not path.exists():
            self.plan.trace(name).tofile(path)
        return path

    def run(
        self, contestant: str, name: str, percent: float, *, workers: int = 1, passes: int = 1
    ) -> Record:
        """One run."""
        capacity = self.plan.capacity(percent)
        trace = self._trace(name)
        return answer(self.program, contestant, trace, self.plan.warm, capacity, workers, passes)

    def play(self, name: str, percent: float) -> Record:
        """The simulated hits of all policies, and the counted hits of weir's own caches."""
        weir = {policy: self.run(policy, name, percent) for policy in caching.OURS}
        return {**caching.play(self.plan, name, percent), "weir": weir}


@contextmanager
def bench(options: Options, program: Path, plan: Plan) -> Iterator[Bench]:
    """A folder for the traces, removed at the end of the block."""
    options.out.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=options.out.resolve()))
    try:
        yield Bench(program=program, folder=folder, plan=plan)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def cache_steps(bench: Bench) -> list[Step]:
    """Steps for hits, then steps for times, in rounds over all contestants."""
    plan = bench.plan
    found = []
    for name in plan.names:
        for percent in plan.sizes:

            def play(name: str = name, percent: float = percent) -> Record:
                return bench.play(name, percent)

            seconds = plan.requests * SIMULATION_S
            found.append(Step(key=caching.hits_key(name, percent), seconds=seconds, measure=play))
    orders = _order(list(CONTESTANTS), plan.repeats, plan.seed)
    for repeat, contestants in enumerate(orders):
        for name in plan.names:
            for percent in plan.timed_sizes:
                for workers in plan.workers:
                    found += [_timed(bench, c, name, percent, workers, repeat) for c in contestants]
    return found


def _timed(
    bench: Bench, contestant: str, name: str, percent: float, workers: int, repeat: int
) -> Step:
    plan = bench.plan
    operations = plan.warm + plan.measured * plan.passes
    return Step(
        key=caching.time_key(name, percent, contestant, workers, repeat),
        seconds=0.01 + operations * CONTESTANTS[contestant][1],
        measure=lambda: bench.run(contestant, name, percent, workers=workers, passes=plan.passes),
    )


# ---- both ----


def expected_s(question: Question) -> float:
    """The time of all steps, about."""
    nowhere = Path()
    steps = counter_steps(nowhere, question.counters, seed=1)
    steps += cache_steps(Bench(program=nowhere, folder=nowhere, plan=question.caches))
    return sum(step.seconds for step in steps)


def _check(question: Question) -> None:
    if unknown := [part for part in question.parts if part not in PARTS]:
        raise LabError(f"there is no part {unknown[0]}: {' or '.join(PARTS)}")
    for workers in (question.counters.workers, question.caches.workers):
        if not workers or min(workers) < 1 or max(workers) > WORKERS_MAX:
            raise LabError(f"workers are 1 to {WORKERS_MAX}")
    if "caches" in question.parts and (wrong := caching.why_not(question.caches)):
        raise LabError(wrong)


def run(options: Options, question: Question) -> Report:
    """Measures and reports.

    Raises:
        LabError: a program is not built, or the question makes no sense.
    """
    _check(question)
    counting, replaying = built(options.build, "sync"), built(options.build, "cache")
    parts = [part for part in PARTS if part in question.parts]
    plan: dict[str, Any] = {"command": "sync", "parts": parts}
    plan |= {part: asdict(getattr(question, part)) for part in parts}
    store = store_for(options, plan, "bench/sync, bench/cache")
    with bench(options, replaying, question.caches) as replayer:
        steps = []
        if "counters" in parts:
            steps += counter_steps(counting, question.counters, options.seed)
        if "caches" in parts:
            steps += cache_steps(replayer)
        perform(store, steps, "sync")
    return report(store, question, options.seed)


def question_of(plan: Mapping[str, Any]) -> Question:
    """The question of existing results, from their plan."""

    def part(name: str, default: dict[str, Any]) -> dict[str, Any]:
        kept = plan.get(name, default)
        return {k: tuple(v) if isinstance(v, list) else v for k, v in kept.items()}

    return Question(
        parts=tuple(plan["parts"]),
        counters=Counters(**part("counters", {"workers": ()})),
        caches=Plan(**part("caches", {"workers": (), "cores": 1})),
    )


def report(store: Store, question: Question, seed: int) -> Report:
    """The report of the results."""
    sections: list[Section] = []
    if "counters" in question.parts:
        sections.append(counters.section(store.records, question.counters.workers, seed))
    if "caches" in question.parts:
        sections.append(caches.hit_section(store.records, question.caches))
        sections.append(caches.time_section(store.records, question.caches))
    return Report(
        title="What threads share",
        sections=sections,
        environment=environment(store),
        data=store.everything(),
        notes=failures(store),
    )
