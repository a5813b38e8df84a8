# SPDX-License-Identifier: MIT
"""Counting together: what is lost without care, and what care costs.

The source documents counted requests in shared memory under a named semaphore, after they had found
updates lost. The program that counts is bench/sync.c.
"""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from weir_lab.commands.experiment import (
    Options,
    Step,
    environment,
    failures,
    perform,
    store_for,
)
from weir_lab.report.chart import Chart, Picture
from weir_lab.report.page import Report, Section, Table
from weir_lab.rim.errors import LabError
from weir_lab.rim.store import Record, Store

# way -> what it is, and about how long one addition takes, to say how long a run will
WAYS = {
    "none": ("nothing", 5e-9),
    "semaphore": ("named semaphore", 400e-9),
    "mutex": ("process-shared mutex", 150e-9),
    "atomic": ("atomic addition", 20e-9),
    "block": ("a block for each worker", 2e-9),
}
KINDS = ("threads", "processes")
RUN_S = 0.2  # how long a run should take
LIMIT_S = 120.0


@dataclass(frozen=True, kw_only=True)
class Question:
    """How many, and how often."""

    workers: tuple[int, ...]
    repeats: int = 3
    additions: int = 0  # of each worker; 0: as many as suit the way


def default_workers() -> tuple[int, ...]:
    """1, 2, 4 ... up to twice the cores."""
    most = 2 * len(os.sched_getaffinity(0))
    return tuple(n for n in (1, 2, 4, 8, 16, 32, 64) if n <= most)


def _count(program: Path, way: str, kind: str, workers: int, additions: int) -> Record:
    argv = [str(program), way, kind, str(workers), str(additions)]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{' '.join(argv)} did not end within {LIMIT_S:.0f} s") from error
    if done.returncode != 0:
        raise LabError(f"{' '.join(argv)}: {done.stderr.strip()}")
    record: Record = {"command": argv, **json.loads(done.stdout)}
    return record


def steps(program: Path, question: Question) -> list[Step]:
    """Every way, kind and number of workers; the whole round again for each repeat."""
    found = []
    for repeat in range(question.repeats):
        for way, (_, each_s) in WAYS.items():
            additions = question.additions or round(RUN_S / each_s)
            for kind in KINDS:
                for workers in question.workers:
                    share = max(1, additions // workers)

                    def measure(
                        way: str = way, kind: str = kind, workers: int = workers, n: int = share
                    ) -> Record:
                        return _count(program, way, kind, workers, n)

                    found.append(
                        Step(key=f"{way}/{kind}/{workers}/{repeat}", seconds=RUN_S, measure=measure)
                    )
    return found


def _of(store: Store, way: str, kind: str, workers: int) -> list[Record]:
    prefix = f"{way}/{kind}/{workers}/"
    return [r for k, r in store.records.items() if k.startswith(prefix) and "error" not in r]


def each_ns(found: list[Record]) -> float:
    """Nanoseconds for each addition of all workers together, the median."""
    return float(median(r["ns"] / r["expected"] for r in found))


def lost(found: list[Record]) -> float:
    """The part of the updates that is missing, at its worst."""
    return float(max(1 - r["counted"] / r["expected"] for r in found))


def section(store: Store, question: Question) -> Section:
    """What is lost, what it costs."""
    rows = []
    for way, (title, _) in WAYS.items():
        for kind in KINDS:
            for workers in question.workers:
                if found := _of(store, way, kind, workers):
                    rows.append(
                        [
                            title,
                            kind,
                            str(workers),
                            f"{each_ns(found):,.1f}",
                            f"{lost(found):.1%}",
                        ]
                    )
    most = question.workers[-1]
    verdict = []
    for kind in KINDS:
        if found := _of(store, "none", kind, most):
            gone = lost(found)
            verdict.append(
                f"Without care {most} {kind} lose {gone:.0%} of the updates of a shared counter."
                if gone > 0
                else f"Without care {most} {kind} lost no update this time, by luck."
            )
    careful = [
        r
        for w in WAYS
        if w != "none"
        for k in KINDS
        for n in question.workers
        for r in _of(store, w, k, n)
    ]
    if careful:
        broken = sum(r["counted"] != r["expected"] for r in careful)
        verdict.append(
            f"With care none is lost in {len(careful)} runs."
            if not broken
            else f"With care updates are lost in {broken} of {len(careful)} runs: a bug."
        )
    block = _of(store, "block", "processes", most)
    for way in ("semaphore", "mutex", "atomic"):
        if block and (found := _of(store, way, "processes", most)):
            verdict.append(
                f"{most} processes: {WAYS[way][0]} takes {each_ns(found):,.1f} ns for each update, "
                f"{each_ns(found) / each_ns(block):,.0f} times as long as a block for each worker."
            )
    return Section(
        title="Counting together",
        verdict=verdict,
        text=[
            "The documents found fewer requests counted than served, and put a named semaphore "
            "around the counters. weir has a block of counters for each worker, each with one "
            "writer, that readers sum: exact as well, and no worker waits for another."
        ],
        pictures=[_picture(store, question, kind) for kind in KINDS],
        tables=[
            Table(
                name="sync",
                title="Cost of an update, and updates lost",
                head=["kept apart by", "", "workers", "ns per update", "lost"],
                rows=rows,
                note="Time from the first worker's start to the last one's end, divided by the "
                "updates of all; the median of the repeats. Lost: the worst of them.",
            )
        ],
    )


def _picture(store: Store, question: Question, kind: str) -> Picture:
    chart = Chart(
        name=f"sync-{kind}",
        title=f"Cost of an update, {kind}",
        x=kind,
        y="ns per update",
        log_y=True,
    )
    for way, (title, _) in WAYS.items():
        style = chart.style()
        points = [(n, each_ns(f)) for n in question.workers if (f := _of(store, way, kind, n))]
        if points:
            chart.line(title, [n for n, _ in points], [t for _, t in points], style, marked=True)
    chart.axes.set_xticks(list(question.workers))
    return chart.finish("Without care is quick, and wrong.")


def run(options: Options, question: Question) -> Report:
    """Counts and reports.

    Raises:
        LabError: the program is not built.
    """
    program = (options.build / "bench" / "sync").resolve()
    if not program.exists():
        raise LabError(f"{program} is not built; run `make build` first")
    store = store_for(options, {"command": "sync", **question.__dict__}, "bench/sync")
    perform(store, steps(program, question), "sync")
    return Report(
        title="Counting together",
        sections=[section(store, question)],
        environment=environment(store),
        data=store.everything(),
        notes=failures(store),
    )
