# SPDX-License-Identifier: MIT
"""The hosts of a Dask cluster: which ones are used, their clocks, and a run on all of them.

A call to a host bypasses Dask's queue of tasks (`Client.run`): it runs exactly once, immediately,
on that Dask worker. Each call has a thread of its own, so a host that does not answer delays no
other host.
"""

import asyncio
import contextlib
import itertools
import os
import queue
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from weir_lab.analysis.clocks import ClockError, Exchange, Offset, offset
from weir_lab.rim import on_host
from weir_lab.rim.errors import LabError

RESOURCE = "LOADGEN"  # marks Dask workers that generate load; without marks, all do
PINGS_LEAST, PINGS_MOST = 4, 20
CLOCK_GOOD_NS = 500_000  # an offset this precise needs no further exchange
ANSWER_S = 10.0  # limit of a call that should take milliseconds
STOP_S = 5.0
LOOK_S = 0.1

Answer = TypeVar("Answer")
Client = Any  # of Dask, which is typed in parts
Result = Any  # the result of a function on a host


class CannotContinueError(Exception):
    """No further step can be measured; the message is for the user."""


@dataclass(frozen=True, kw_only=True)
class Wish:
    """The hosts that the user wants."""

    weir: str = "weir"  # on the hosts
    hosts: int | None = None  # exactly this many; None: all that are connected
    per_host: int = 1
    server_host: str = ""  # its Dask worker reads the server's CPU and generates no load
    wait_s: float = 10.0


@dataclass(frozen=True, kw_only=True)
class Place:
    """A worker as the scheduler knows it."""

    address: str
    host: str
    label: str  # unique


@dataclass(frozen=True, kw_only=True)
class Host:
    """A Dask worker that has been examined."""

    place: Place
    facts: Mapping[str, Any]  # on_host.examine's

    @property
    def label(self) -> str:
        """Its name for the user."""
        return self.place.label


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The Dask workers that generate load, the one beside the server, and notes."""

    places: Sequence[Place]
    server: Place | None
    notes: Sequence[str]


def _label(address: str, worker: Mapping[str, Any]) -> str:
    name = worker.get("name", address)
    if isinstance(name, int):
        return f"worker {name}"
    return str(worker["host"]) if "://" in str(name) else str(name)


def choose(workers: Mapping[str, Mapping[str, Any]], wish: Wish) -> Chosen:
    """Chooses among the scheduler's workers: one for each host, unless more are wanted."""
    notes = []
    known = [
        Place(address=a, host=str(w["host"]), label=_label(a, w))
        for a, w in sorted(workers.items())
    ]
    server = next((p for p in known if wish.server_host in (p.label, p.host)), None)
    marked = {a for a, w in workers.items() if RESOURCE in (w.get("resources") or {})}
    able = [
        p
        for p in known
        if p.host != (server.host if server else None) and (not marked or p.address in marked)
    ]
    able.sort(key=lambda p: (p.host, p.label, p.address))
    places: list[Place] = []
    for host, group in itertools.groupby(able, key=lambda p: p.host):
        here = list(group)
        if len(here) > wish.per_host:
            used = "one of them" if wish.per_host == 1 else f"{wish.per_host} of them"
            notes.append(f"{host} has {len(here)} workers; {used} is used (--workers-per-host)")
        places += here[: wish.per_host]
    seen: dict[str, int] = {}
    unique = []
    for place in places:
        count = seen[place.label] = seen.get(place.label, 0) + 1
        label = place.label if count == 1 else f"{place.label} #{count}"
        unique.append(Place(address=place.address, host=place.host, label=label))
    return Chosen(places=unique, server=server, notes=notes)


def unlike(label: str, theirs: Mapping[str, str], ours: Mapping[str, str]) -> str:
    """The reason why Dask cannot talk to that host; empty when it can."""

    def what(of: Mapping[str, str]) -> str:
        return f"Python {of['python']} and Dask {of['dask']}"

    if theirs == ours:
        return ""
    return f"{label} has {what(theirs)}, here are {what(ours)}; Dask needs the same everywhere"


def _packages(versions: Mapping[str, Any]) -> dict[str, str]:
    packages = versions["packages"]
    python = ".".join(str(packages["python"]).split(".")[:2])
    return {"python": python, "dask": str(packages["distributed"])}


def as_done(
    tasks: Mapping[str, Callable[[], Answer]], within_s: float | None
) -> Iterator[tuple[str, Answer | BaseException]]:
    """Runs each task in a thread of its own, and yields what it returned or raised as it ends.

    The iteration ends with the last task, or when the time is up. Threads that still run continue.
    """
    done: queue.SimpleQueue[tuple[str, Answer | BaseException]] = queue.SimpleQueue()

    def run(name: str, task: Callable[[], Answer]) -> None:
        try:
            done.put((name, task()))
        except BaseException as error:
            done.put((name, error))

    for name, task in tasks.items():
        threading.Thread(target=run, args=(name, task), daemon=True).start()
    end = None if within_s is None else time.monotonic() + within_s
    left = len(tasks)
    while left > 0 and (end is None or time.monotonic() < end):
        try:
            answer = done.get(timeout=LOOK_S)  # a short wait, so that Ctrl-C is handled
        except queue.Empty:
            continue
        left -= 1
        yield answer


def at_once(tasks: Mapping[str, Callable[[], Answer]], within_s: float | None) -> dict[str, Answer]:
    """The result of each task.

    The first exception of a task is raised without waiting for the other tasks.

    Raises:
        LabError: the time was up.
    """
    answers: dict[str, Answer] = {}
    for name, answer in as_done(tasks, within_s):
        if isinstance(answer, BaseException):
            raise answer
        answers[name] = answer
    if missing := [n for n in tasks if n not in answers]:
        raise LabError(f"{', '.join(missing)} did not answer within {within_s:.0f} s")
    return answers


class Fleet:
    """The hosts of one scheduler."""

    def __init__(self, client: Client, wish: Wish, version: str) -> None:
        """Borrows a connected Dask client; all hosts need this version of weir."""
        self.notes: list[str] = []
        self.server: Host | None = None
        self._client = client
        self._wish = wish
        self._version = version
        self._known: dict[str, Host] = {}  # by address
        self._team: list[str] = []  # labels of the hosts of the first step
        self._gone: set[str] = set()
        self._runs = itertools.count()

    # ---- the hosts that are connected ----

    def hosts(self) -> list[Host]:
        """The hosts that generate load: those of the first call, without hosts lost since.

        The call waits for a host that has just been lost. A host that returns is used again.

        Raises:
            CannotContinueError: too few hosts are left, or a host cannot be used.
            LabError: a host was lost while it was examined.
        """
        end = time.monotonic() + self._wish.wait_s
        while True:
            chosen = choose(self._workers(), self._wish)
            there = self._answering(chosen.places)
            if self._enough(there) and (chosen.server or not self._wish.server_host):
                break
            if time.monotonic() > end:
                self._accept(chosen, there)
                break
            time.sleep(LOOK_S)
        for note in chosen.notes:
            self._note(note)
        if not self._team:
            self._team = [p.label for p in there][: self._wish.hosts]
        team = [p for p in there if p.label in self._team]
        self._gone = set(self._team) - {p.label for p in team}
        self.server = self._examined([chosen.server])[0] if chosen.server else None
        hosts = self._examined(team)
        for host in hosts:
            self._check(host)
        return hosts

    def _answering(self, places: Sequence[Place]) -> list[Place]:
        """The places that answer; the scheduler's list may be outdated."""
        tasks = {p.label: partial(self._run, p, time.time_ns) for p in places}
        answers = dict(as_done(tasks, ANSWER_S))
        return [p for p in places if isinstance(answers.get(p.label), int)]

    def _enough(self, there: Sequence[Place]) -> bool:
        """Whether all expected hosts are connected."""
        labels = {p.label for p in there}
        if not self._team:
            return len(labels) >= (self._wish.hosts or 1)
        return labels >= set(self._team) - self._gone

    def _accept(self, chosen: Chosen, there: Sequence[Place]) -> None:
        """Continues with the hosts that are connected, or raises."""
        if self._wish.server_host and chosen.server is None:
            raise CannotContinueError(f"there is no Dask worker called {self._wish.server_host}")
        team = [p.label for p in there if not self._team or p.label in self._team]
        if not team:
            raise CannotContinueError(
                "the scheduler has no workers that could generate load; on each host, start "
                "`dask worker tcp://SCHEDULER:8786`"
            )
        if self._wish.hosts:
            raise CannotContinueError(
                f"there are {len(team)} of the {self._wish.hosts} hosts wanted"
            )
        lost = [label for label in self._team if label not in team]
        self._note(f"{', '.join(lost)} was lost; later steps use {', '.join(team)}")

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def _workers(self) -> dict[str, dict[str, Any]]:
        def ask() -> dict[str, dict[str, Any]]:
            found: dict[str, dict[str, Any]] = self._client.scheduler_info()["workers"]
            return found

        try:
            return at_once({"the scheduler": ask}, ANSWER_S)["the scheduler"]
        except Exception as error:  # Dask raises many kinds when the connection is lost
            raise CannotContinueError("the connection to the scheduler is lost") from error

    def _examined(self, places: Sequence[Place]) -> list[Host]:
        new = [p for p in places if p.address not in self._known]
        if new:
            self._check_packages(new)

        def look(place: Place) -> Host:
            facts = self._run(place, on_host.examine, self._wish.weir)
            return Host(place=place, facts=facts)

        tasks = {p.label: partial(look, p) for p in new}
        for host in at_once(tasks, ANSWER_S + on_host.EXAMINE_S).values():
            self._known[host.place.address] = host
        return [self._known[p.address] for p in places]

    def _check(self, host: Host) -> None:
        if host.facts["why"]:
            raise CannotContinueError(
                f"{host.label} {host.facts['why']}; install weir there, or give its path on the "
                "hosts with --weir"
            )
        if host.facts["version"] != self._version:
            raise CannotContinueError(
                f"{host.label} has {host.facts['version']} ({host.facts['weir']}), here is "
                f"{self._version}; results of different versions are not merged"
            )

    def _check_packages(self, places: Sequence[Place]) -> None:
        try:
            answers = at_once({"the workers": self._client.get_versions}, ANSWER_S)["the workers"]
        except Exception as error:
            raise LabError(f"the Dask workers did not report their versions: {error}") from error
        ours = _packages(answers["client"])
        for place in places:
            theirs = answers["workers"].get(place.address)
            why = unlike(place.label, _packages(theirs), ours) if theirs else ""
            if why:
                raise CannotContinueError(why)

    # ---- one host ----

    def _run(self, place: Place, function: Callable[..., Any], *args: object) -> Result:
        try:
            found = self._client.run(function, *args, workers=[place.address], on_error="return")
            answer = found[place.address]
        except Exception as error:
            raise LabError(f"{place.label} is lost: {words(error)}") from error
        if isinstance(answer, OSError):
            raise LabError(f"{place.label} is lost: {words(answer)}") from answer
        if isinstance(answer, BaseException):
            raise LabError(f"{place.label}: {type(answer).__name__}: {answer}") from answer
        return answer

    def offset(self, host: Host) -> Offset:
        """How far the host's clock is ahead of ours.

        Raises:
            LabError: the host is lost, or a clock was set meanwhile.
        """
        exchanges: list[Exchange] = []
        while True:
            asked_ns = time.time_ns()
            there_ns = self._run(host.place, time.time_ns)
            exchanges.append(
                Exchange(asked_ns=asked_ns, there_ns=there_ns, answered_ns=time.time_ns())
            )
            try:
                found = offset(exchanges)
            except ClockError as error:
                raise LabError(f"{host.label}: {error}") from error
            good = len(exchanges) >= PINGS_LEAST and found.error_ns <= CLOCK_GOOD_NS
            if good or len(exchanges) >= PINGS_MOST:
                return found

    def offsets(self, hosts: Iterable[Host]) -> dict[str, Offset]:
        """The offset of each host, one after the other: together they would delay each other."""
        found: dict[str, Offset] = {}
        for host in hosts:
            found |= at_once({host.label: partial(self.offset, host)}, ANSWER_S)
        return found

    def used(self, pid: int, at_ns: int) -> dict[str, Any]:
        """The CPU and memory of the server at a time of its host's clock (on_host.used).

        Without --server-host the server's host is this machine.

        Raises:
            LabError: the server's host is lost.
            CannotContinueError: there is no such process.
        """
        if self.server is None:
            answers = asyncio.run(on_host.used(pid, at_ns))
        else:
            answers = self._run(self.server.place, on_host.used, pid, at_ns)
        if "why" in answers:
            where = self.server.label if self.server else "this machine"
            raise CannotContinueError(f"{where} {answers['why']}")
        return answers

    # ---- all hosts ----

    def generate(
        self,
        commands: Mapping[str, Sequence[str]],
        hosts: Sequence[Host],
        within_s: float | None,
        besides: Mapping[str, Callable[[], Any]],
    ) -> dict[str, Any]:
        """Runs each host's command until all have ended; label -> its output.

        The tasks in `besides` run at the same time, and their results are in the answer, too. When
        one task fails, or on Ctrl-C, the commands on all hosts are ended.

        Raises:
            LabError: a host was lost, or its generator failed.
            CannotContinueError: the command line is wrong.
        """
        run = f"{os.getpid()}-{time.time_ns()}-{next(self._runs)}"

        def one(host: Host) -> str:
            answers = self._run(
                host.place, on_host.generate, run, list(commands[host.label]), within_s
            )
            return self._printed(host, answers)

        tasks: dict[str, Callable[[], Any]] = {h.label: partial(one, h) for h in hosts}
        limit_s = None if within_s is None else within_s + ANSWER_S
        try:
            return at_once({**tasks, **besides}, limit_s)
        except BaseException:
            self._stop(run, hosts)
            raise

    def _printed(self, host: Host, answers: Mapping[str, Any]) -> str:
        if "refused" in answers:
            raise LabError(f"{host.label} {answers['refused']}")
        status = answers["status"]
        # 3: an objective was missed. 4: the result is in doubt. In both cases it is printed.
        if status in (0, 3, 4):
            return str(answers["out"])
        said = (
            str(answers["err"]).strip() or str(answers["out"]).strip() or "nothing"
        ).splitlines()[-1]
        if status == 2:
            raise CannotContinueError(said)
        ended = f"was killed by signal {-status}" if status < 0 else f"ended with {status}"
        raise LabError(f"{host.label}: weir load {ended} and said: {said}")

    def _stop(self, run: str, hosts: Sequence[Host]) -> None:
        """Ends a run on all hosts that are still connected."""
        with contextlib.suppress(CannotContinueError, LabError):
            there = self._workers()
            left = [h for h in hosts if h.place.address in there]
            tasks = {h.label: partial(self._stop_on, h, run) for h in left}
            at_once(tasks, STOP_S)

    def _stop_on(self, host: Host, run: str) -> None:
        with contextlib.suppress(LabError):  # the other hosts are stopped in any case
            self._run(host.place, on_host.stop, run)


def words(error: BaseException) -> str:
    """An exception of Dask in one line."""
    text = re.sub(r"^in <.*?>: ", "", str(error).strip()).splitlines()
    return text[0] if text else type(error).__name__
