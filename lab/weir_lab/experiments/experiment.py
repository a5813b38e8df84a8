# SPDX-License-Identifier: MIT
"""Runs the steps of an experiment, and shows the remaining time.

Finished points are kept. Ctrl-C, a server that dies or a generator that fails costs only the point
that is being measured. Points that lost much CPU are measured again at the end (again.py).
"""

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from weir_lab.experiments import again
from weir_lab.report import recorded
from weir_lab.report.page import Report
from weir_lab.rim import files, machine
from weir_lab.rim.errors import GoneError, LabError, words
from weir_lab.rim.machine import Placement
from weir_lab.rim.runs import World
from weir_lab.rim.store import Record, Store, open_store

FAILURES_MAX = 3  # in a row; then the experiment ends

# Square brackets in a path or an address are no markup.
console = Console(stderr=True, markup=False, highlight=False)
out = Console(markup=False, highlight=False)

# Ctrl-C sets this and raises. An exception inside a destructor would be lost.
stop_asked = threading.Event()


@dataclass(frozen=True, kw_only=True)
class Step:
    """One point to be measured."""

    key: str
    seconds: float  # its expected duration
    measure: Callable[[], Record]


class InterruptedExperimentError(LabError):
    """Ctrl-C; the message says how many points are kept."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options that all experiments share."""

    build: Path
    out: Path
    fresh: bool = False
    seed: int = 1
    placement: Placement


@contextmanager
def world(options: Options, files: dict[str, bytes]) -> Iterator[World]:
    """A folder with the files to serve, removed at the end of the block."""
    if not (options.build / "weir").exists():
        raise LabError(
            f"{options.build / 'weir'} does not exist; run `make build`, or install weir"
        )
    options.out.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=options.out.resolve()))
    folder.chmod(0o755)
    root = folder / "root"
    root.mkdir()
    try:
        for name, content in files.items():
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_bytes(content)
        yield World(
            build=options.build.resolve(),
            root=root,
            work=folder / "work",
            placement=options.placement,
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def store_for(options: Options, plan: dict[str, Any], generator: str) -> Store:
    """The store for the results of the plan, with earlier results of the same plan."""
    options.out.mkdir(parents=True, exist_ok=True)
    facts = machine.facts(options.out, (options.build / "weir").resolve(), generator)
    facts["placement"] = options.placement.sentence()
    return open_store(options.out, {**plan, "seed": options.seed}, facts, fresh=options.fresh)


def announce(text: str) -> None:
    """Says something on standard error: in a pipe as one line, and nothing if the text is empty."""
    if text:
        console.print(text, soft_wrap=not console.is_terminal)


def minutes(seconds: float) -> str:
    """A time in the largest fitting unit."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


class TimeLeftColumn(ProgressColumn):
    """The time that is left: as slow as the steps so far, and then this many seconds more."""

    def __init__(self, then_s: float) -> None:
        super().__init__()
        self.then_s = then_s

    def render(self, task: Task) -> Text:
        """The text for the present progress."""
        slower = (task.elapsed or 0.0) / task.completed if task.completed else 1.0
        left_s = (task.remaining or 0.0) + self.then_s
        whole = round(max(1.0, slower) * left_s)
        return Text(f"{whole // 60}:{whole % 60:02}")


def perform(store: Store, steps: Sequence[Step], what: str, *, then_s: float = 0.0) -> None:
    """Measures the unfinished steps, and then the disturbed ones again.

    `then_s`: the time of what follows, for the display.

    Raises:
        InterruptedExperimentError: Ctrl-C.
        LabError: several points failed in a row, or a running server is gone. Finished points
            are kept in any case.
    """
    left = [step for step in steps if not store.has(step.key)]
    if len(left) < len(steps):
        announce(f"{what}: {len(steps) - len(left)} of {len(steps)} points are measured already")
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeLeftColumn(then_s),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        _measure(store, left, steps, what, progress)
        while repeated := _disturbed(store, steps, what):
            _measure(store, repeated, steps, f"{what}, again:", progress)


def _disturbed(store: Store, steps: Sequence[Step], what: str) -> list[Step]:
    """The steps to measure again, with a line that says so."""
    by_key = {step.key: step for step in steps}
    keys, why = again.disturbed(store, list(by_key))
    if keys:
        runs = "1 run is" if len(keys) == 1 else f"{len(keys)} runs are"
        announce(f"{what}: {runs} measured again, because {why}.")
    return [
        replace(by_key[key], measure=partial(again.measure, store, key, by_key[key].measure))
        for key in keys
    ]


def _measure(
    store: Store, left: Sequence[Step], steps: Sequence[Step], what: str, progress: Progress
) -> None:
    failed = 0
    task = progress.add_task(what, total=sum(step.seconds for step in left))
    for number, step in enumerate(left):
        progress.update(task, description=f"{what} {step.key}")
        try:
            if stop_asked.is_set():
                raise KeyboardInterrupt
            store.add(step.key, step.measure())
            failed = 0
        except KeyboardInterrupt:
            raise InterruptedExperimentError(f"interrupted: {_kept(store, steps)}") from None
        except again.FAILURES as error:
            if not store.has(step.key):  # else this was a further try of a finished point
                store.add(step.key, {"error": words(error)})
            failed += 1
            if isinstance(error, GoneError) or (failed == FAILURES_MAX and number + 1 < len(left)):
                raise LabError(f"{words(error)}; {_kept(store, steps)}") from error
            announce(f"{step.key}: {words(error)}")
        progress.advance(task, step.seconds)


def _kept(store: Store, steps: Sequence[Step]) -> str:
    done = sum(store.has(step.key) for step in steps)
    return (
        f"{done} of {len(steps)} points are in {store.path}; the same command continues from there"
    )


def record(report: Report, page: Path, command: str, *, but: tuple[str, ...] = ()) -> None:
    """Writes findings and tables between the marks of a page in docs/.

    Tables whose names end with one of `but` are left out.

    Raises:
        LabError: the page cannot be read or replaced, or its marks are missing.
    """
    names = {t.name for s in report.sections for t in s.tables if not t.name.endswith(but)}
    try:
        before = page.read_bytes().decode()
    except OSError as error:
        raise LabError(f"{page}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise LabError(f"{page} is not UTF-8") from error
    after = recorded.put(before, command, recorded.as_part(report, names))
    if after is None:
        mark = recorded.BEGIN.format(command=command)
        raise LabError(f"{page} has no line {mark!r}; add the line, and the end mark below it")
    files.replace({page: after})


def environment(store: Store) -> dict[str, object]:
    """The facts of the machine, as shown in a report."""
    shown: dict[str, object] = {}
    for name, value in store.head["machine"].items():
        if isinstance(value, dict):
            value = ", ".join(f"{k} {v}" for k, v in value.items())
        elif isinstance(value, list):
            value = ", ".join(map(str, value))
        shown[name.replace("_", " ")] = value
    return shown


def failures(store: Store) -> list[str]:
    """A sentence for each point that could not be measured."""
    return [
        f"{key} could not be measured: {record['error']}"
        for key, record in store.records.items()
        if "error" in record
    ]
