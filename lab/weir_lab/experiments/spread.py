# SPDX-License-Identifier: MIT
"""Load from several machines: each host of a Dask cluster runs its part of `weir load`.

Each step is a run of its own on all hosts, so a failure costs only that step.
"""

import contextlib
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weir_lab.analysis import interleave
from weir_lab.experiments import parse, sweeping
from weir_lab.experiments.experiment import (
    Options,
    Step,
    announce,
    environment,
    failures,
    perform,
    store_for,
)
from weir_lab.experiments.shared_step import INVALID, MISSED, Command, Question
from weir_lab.report import capacity as reported
from weir_lab.report import spreads
from weir_lab.report.page import Report, Section
from weir_lab.rim import cluster
from weir_lab.rim.errors import LabError
from weir_lab.rim.fleet import CannotContinueError, Fleet, Host
from weir_lab.rim.machine import Placement
from weir_lab.rim.store import Record, Store

SCHEDULER = re.compile(r"(tcp|tls|wss?|ucx)://")
# Options of `weir load` that the lab sets itself.
OURS = {"--json", "--csv", "--hgrm", "--ndjson", "--start-at", "--shard", "--quiet", "-q"}


@dataclass(frozen=True, kw_only=True)
class Elsewhere(Placement):
    """Cores of other machines."""

    server: int | None = None
    generator: int | None = None
    server_cpus: int = 1
    generator_cpus: int = 1

    @property
    def server_cores(self) -> int:
        """The cores of the server's process."""
        return self.server_cpus

    @property
    def generator_cores(self) -> int:
        """The threads of all generators together."""
        return self.generator_cpus

    def sentence(self) -> str:
        """For the report."""
        return "generators on the hosts of Dask workers"


def split(words: Sequence[str], *, local: int) -> tuple[str, tuple[str, ...]]:
    """Splits the words: the scheduler's address, and the words for weir load.

    Raises:
        LabError: a part is missing, or an option is one that the lab sets itself.
    """
    scheduler, rest = "", list(words)
    if rest and SCHEDULER.match(rest[0]):
        scheduler = rest.pop(0)
    if bool(scheduler) == bool(local):
        raise LabError(
            "give the scheduler's address, tcp://HOST:8786, before the URLs, or use --local N for "
            "N Dask workers on this machine"
        )
    for word in rest:
        if word.partition("=")[0] in OURS:
            raise LabError(f"{word.partition('=')[0]} cannot be used here; the lab sets it")
    return scheduler, tuple(rest)


def _version(weir: Path) -> str:
    done = subprocess.run([weir, "--version"], capture_output=True, text=True, check=False)
    return (done.stdout.splitlines() or [""])[0]


def _check_slos(weir: Path, slos: Sequence[str]) -> None:
    """Rejects a wrong objective before anything is measured."""
    words = [w for slo in slos for w in ("--slo", slo)]
    argv = [str(weir), "load", "merge", *words, "/dev/null"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if slos and done.returncode == 2:
        raise LabError(done.stderr.strip().splitlines()[-1])


def _cluster(question: Question) -> AbstractContextManager[Any]:
    if question.local:
        return cluster.local(question.local)
    return cluster.connected(question.scheduler, question.tls, question.wish.wait_s)


def run(options: Options, question: Question) -> tuple[Report, int]:
    """Measures the unfinished steps from all hosts; returns the report and the exit status.

    Raises:
        LabError: the question makes no sense, or the hosts cannot be used.
    """
    if question.users and question.steps:
        raise LabError("--users and --steps both set the users; use one of them")
    if question.rates and question.steps:
        raise LabError("--steps and --rate both set the steps; use one of them")
    if question.rates and question.train_to is not None:
        raise LabError("--train-to needs steps of users, not --rate")
    if question.requests and question.duration:
        raise LabError("--requests and --duration both set the end of a step; use one of them")
    if question.wish.server_host and question.server_pid is None:
        raise LabError("--server-host needs --server-pid, the process whose CPU is measured")
    parse.seconds("--skew-limit", question.skew_limit)
    weir = options.build / "weir"
    if not weir.exists():
        raise LabError(f"{weir} does not exist; run `make build`, or install weir")
    _check_slos(weir, question.slos)
    total = len(question.levels) * question.repeats
    store = store_for(options, question.plan(), "load")
    notes: list[str] = []
    with _with_kept_steps(store, total), _cluster(question) as client:
        fleet = Fleet(client, question.wish, _version(weir))
        hosts = fleet.hosts()
        notes = fleet.notes
        for note in (*notes, *_shared(hosts)):
            announce(note)
        command = Command(question=question, weir=weir, folder=options.out, fleet=fleet)
        perform(store, list(_steps(command, options.seed)), f"load from {len(hosts)} hosts")
        notes = [*fleet.notes, *_shared(hosts)]
    return report(
        store,
        is_open=question.is_open,
        train_to=question.train_to,
        notes=notes,
    )


@contextlib.contextmanager
def _with_kept_steps(store: Store, total: int) -> Iterator[None]:
    """Adds to an error how many steps are kept."""
    try:
        yield
    except CannotContinueError as error:
        text = str(error)
        if done := sum(store.has(key) for key in store.records):
            text += f"; {done} of {total} steps are in {store.path}; the same command continues"
        raise LabError(text) from error


def _steps(command: Command, seed: int) -> Iterator[Step]:
    """All steps in the given order; repeats are in rounds, as in a sweep."""
    asked = command.question
    rounds: Sequence[Sequence[str]] = [asked.levels]
    if asked.repeats > 1:
        rounds = interleave.rounds(asked.levels, asked.repeats, seed)
    for repeat, order in enumerate(rounds):
        for level in order:
            yield command.step(level, repeat)


def _shared(hosts: Sequence[Host]) -> list[str]:
    """Warnings about hosts that share one machine and its CPU."""
    by_boot: dict[str, list[Host]] = {}
    for host in hosts:
        by_boot.setdefault(host.facts["boot"], []).append(host)
    return [
        f"{', '.join(h.label for h in found)} are one machine and share its "
        f"{max(h.facts['cpus'] for h in found)} CPUs"
        for found in by_boot.values()
        if len(found) > 1
    ]


def report(
    store: Store, *, is_open: bool, train_to: int | None, notes: Sequence[str] = ()
) -> tuple[Report, int]:
    """The report, and the exit status that `weir load` would have."""
    found = [r for r in store.records.values() if "error" not in r]
    sections = [spreads.section(found, "requests/s asked" if is_open else "users")]
    closed = [r for r in found if r["loop"] == "closed"]
    if train_to is not None and closed:
        failed = [r for r in store.records.values() if "error" in r]
        sections.append(_study(closed, failed, train_to))
    facts = environment(store)
    for host in (h for r in found for h in r["hosts"]):
        facts[f"host {host['host']}"] = (
            f"{host['hostname']}, {host['cpus']} CPUs, Linux {host['kernel']}, {host['weir']}"
        )
    status = 0
    if any(r["slos_met"] is False for r in found):
        status = MISSED
    if failures(store) or not found or any(spreads.why_void(r) for r in found):
        status = INVALID
    page = Report(
        title="Load from several machines",
        sections=sections,
        environment=facts,
        data=store.everything(),
        notes=[*notes, *failures(store)],
    )
    return page, status


def _study(found: Sequence[Record], failed: Sequence[Record], train_to: int) -> Section:
    """The prediction from the sweep, as `capacity` makes it."""
    place = Elsewhere(
        server_cpus=max(1, *(r["server_cpus"] for r in found)),
        generator_cpus=max(r["threads"] for r in found),
    )
    studied = sweeping.study(
        "capacity", [*found, *failed], place, server="the server", train_to=train_to
    )
    return reported.section(studied, title="Prediction", tables=[sweeping.precision(studied)])
