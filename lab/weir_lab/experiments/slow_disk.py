# SPDX-License-Identifier: MIT
"""Models beside a slow disk: how much do the clients of another site notice, and what do the
clients of the disk get?

A run mounts a disk that answers late, starts a server with a site on it and another one in memory,
and loads the fast site, alone and then beside clients of the disk (bench/slowsite.py).
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from bench import servers, slowsite
from bench.process import BenchError
from weir_lab.analysis import interleave
from weir_lab.experiments.experiment import (
    Options,
    Step,
    environment,
    failures,
    perform,
    store_for,
    world,
)
from weir_lab.report import slow_disk as reported
from weir_lab.report.page import (
    Fold,
    Grade,
    Headline,
    Mark,
    Report,
    Section,
)
from weir_lab.report.slow_disk import Beside
from weir_lab.rim import runs
from weir_lab.rim.errors import LabError
from weir_lab.rim.runs import World
from weir_lab.rim.store import Record, Store

OVERHEAD_S = 1.5  # of a run: the mount, the start, and the last answers of the disk
ROUNDS_GOOD = 3


@dataclass(frozen=True, kw_only=True)
class Question:
    """The models, and the disk."""

    servers: tuple[str, ...]  # models of weir
    slow_disk_ms: int
    slow_clients: tuple[int, ...] = (4, 32)
    users: int = 8  # of the fast site
    rounds: int = 6
    seconds: float = 1.0  # of each load: alone, and beside the disk

    def key(self, slow_clients: int, number: int, model: str) -> str:
        """The key of a record."""
        return f"{slow_clients} slow clients/{number}/{model}"


def _finite(figures: Mapping[str, float]) -> dict[str, float | None]:
    """JSON has no infinity."""
    return {name: value if math.isfinite(value) else None for name, value in figures.items()}


def _steps(here: World, question: Question, seed: int) -> list[Step]:
    found = []
    for slow_clients in question.slow_clients:
        order = interleave.rounds(question.servers, question.rounds, seed)
        for number, model in ((n, m) for n, each in enumerate(order) for m in each):
            setting = slowsite.Setting(
                weir=here.weir,
                delay_s=question.slow_disk_ms / 1000,
                slow_clients=slow_clients,
                clients=question.users,
                seconds=question.seconds,
                server_cpu=here.placement.server,
                generator_cpu=here.placement.generator,
            )

            def measure(setting: slowsite.Setting = setting, model: str = model) -> Record:
                parts = asdict(slowsite.measure(setting, model))
                return {"server": model, **{name: _finite(each) for name, each in parts.items()}}

            found.append(
                Step(
                    key=question.key(slow_clients, number, model),
                    seconds=2 * question.seconds + OVERHEAD_S,
                    measure=measure,
                )
            )
    return found


def _check(here: World, question: Question) -> None:
    """Refuses what cannot be measured, before anything is.

    Raises:
        LabError: an unknown model, or no slow disk can be mounted here.
    """
    known = runs.models(here.weir)
    for name in question.servers:
        if name in servers.PEERS or name.startswith("apache-"):
            raise LabError(f"--slow-disk compares models of weir; leave out {name}")
        if name not in known:
            raise LabError(f"weir has no model {name}; there are {', '.join(known)}")
    try:
        with slowsite.mounted(files=1):
            pass
    except BenchError as error:
        raise LabError(str(error)) from error


def measured(options: Options, question: Question) -> Store:
    """Measures the unfinished runs."""
    with world(options, {}) as here:
        _check(here, question)
        plan = {**asdict(question), "placement": options.placement.sentence()}
        store = store_for(options, {"command": "compare", **plan}, "load")
        perform(store, _steps(here, question, options.seed), "compare")
        return store


def found_in(store: Store, question: Question) -> list[Beside]:
    """The runs by model and number of slow clients, without those that failed."""
    found = []
    for slow_clients in question.slow_clients:
        for model in question.servers:
            keys = {n: question.key(slow_clients, n, model) for n in range(question.rounds)}
            good = {n: store.records[key] for n, key in keys.items() if store.has(key)}
            if good:
                found.append(Beside(model=model, slow_clients=slow_clients, runs=good))
    return found


def _mark(store: Store, question: Question) -> Mark:
    if failed := failures(store):
        return Mark(grade=Grade.YELLOW, word="Use it with care", reason=failed[0])
    if question.rounds < ROUNDS_GOOD:
        why = f"{ROUNDS_GOOD} rounds are needed to see how much they differ."
        return Mark(grade=Grade.YELLOW, word="Use it with care", reason=why)
    why = f"{question.rounds} rounds, each with a fresh server and a fresh disk, in turn."
    return Mark(grade=Grade.GREEN, word="Reliable", reason=why)


def section(store: Store, question: Question) -> Section:
    """The other clients first, then the clients of the disk."""
    found = found_in(store, question)
    title = "Models beside a slow disk"
    if not found:
        return Section(title=title, headline=Headline(sentence="Nothing could be measured."))
    others = reported.other_clients(found, question.slow_disk_ms)
    first, *rest = reported.pictures(found)
    return Section(
        title=title,
        headline=Headline(sentence=others[0], mark=_mark(store, question), pictures=[first]),
        folds=[
            Fold(title="What do the other clients notice?", findings=others[1:], pictures=rest[:1]),
            Fold(
                title="What do the clients of the disk get?",
                findings=reported.slow_clients(found),
                pictures=rest[1:],
            ),
            Fold(title="All figures", tables=[reported.table(found)]),
            Fold(
                title="How was it measured?",
                text=[
                    "A file system in user space answers each request of the kernel for a name or "
                    f"a page after {question.slow_disk_ms} ms; answers do not wait for each other. "
                    "A client of the disk requests one file after the other on a new connection, "
                    f"and each file once. {question.users} other clients request a file of another "
                    "site, which is in memory, with a pause of 1 ms on average: for "
                    f"{question.seconds:g} s alone, and for {question.seconds:g} s beside the "
                    "clients of the disk."
                ],
            ),
        ],
    )


def report(store: Store, question: Question) -> Report:
    """The report of the results; nothing is measured."""
    return Report(
        title=f"{', '.join(question.servers)} beside a disk of {question.slow_disk_ms} ms",
        sections=[section(store, question)],
        environment=environment(store),
        data=store.everything(),
        notes=failures(store),
    )


def run(options: Options, question: Question) -> Report:
    """Measures and reports.

    Raises:
        LabError: a model is unknown, or no slow disk can be mounted here.
    """
    return report(measured(options, question), question)
