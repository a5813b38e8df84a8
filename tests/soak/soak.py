#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Serves a crowd of good and bad clients for a long time, while everything happens to the server.

    python -m tests.soak.soak [--seconds T] [--models A,B] [--seed N] [--clients N]

Each model gets the same share of the time, in three parts:

    steady    clients come and go, files are replaced; memory and descriptors must stay flat
    changes   also reloads (half of them broken), binary upgrades, log rotation, a full log disk,
              and a cut limit of descriptors
    deaths    also killed workers

At the end of each part the counts of the clients, the lines of the access log and the counters of
the server must agree. After a killed worker they agree within what the worker had under way.
Answers that a timeout may have cut, because the machine gave the client no CPU, are counted apart.
The status is 0 when all of it held.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.disk import full
from tests.e2e.running import models
from tests.soak.clients import MARKED, TEMPERS, Crowd
from tests.soak.site import Site
from tests.soak.subject import Memory, Subject, adopt_orphans
from tests.waiting import LIMIT_S

SIZES = (200, 1000, 5000)
ROUND_S = 20  # of clients that come and go; then memory is measured, without clients
# The last samples of memory may exceed the first by this share, or by this much.
GROWTH_SHARE = 0.05
GROWTH_KIB = 3 * 1024
GIVEN_BACK_S = 5  # longer than `thread` keeps the stacks of clients that have left, 2 to 4 s
DESCRIPTORS_MORE = 8
WEEK_S = 7 * 24 * 3600
# Until memory is flat. A leak grows in each round; a cache that a slow machine fills late does not.
ROUNDS_MORE = 6


@dataclass
class Judgement:
    """What has happened to one model, and what was wrong."""

    model: str
    requests: int = 0
    connections: int = 0
    events: dict[str, int] = field(default_factory=dict)
    memory_kib: list[int] = field(default_factory=list)  # without the statistics
    statistics_kib: list[int] = field(default_factory=list)
    steady_requests: list[int] = field(default_factory=list)  # so far, at the samples of memory
    hidden_leak_bytes: float = math.inf  # of each request; a larger leak is growth
    descriptors: list[int] = field(default_factory=list)
    dropped: int = 0
    late: int = 0
    wrong: list[str] = field(default_factory=list)

    def check(self, holds: bool, what: str) -> None:
        if not holds:
            self.wrong.append(what)


def memory_growth(judgement: Judgement, rounds: int) -> str:
    """How memory grew in the last `rounds`, without the first round of all: the last third of
    the samples against the first third. Empty when it is flat."""
    first, last = ends_of(judgement.memory_kib, rounds)
    if last - first <= allowed_growth(first):
        return ""
    return f"memory grew from {first:.0f} to {last:.0f} KiB"


def ends_of(samples: Sequence[int], rounds: int) -> tuple[float, float]:
    """The medians of the first and of the last third of the samples that are compared."""
    compared = samples[1:][1 - rounds :]
    third = max(1, len(compared) // 3)
    return statistics.median(compared[:third]), statistics.median(compared[-third:])


def allowed_growth(first_kib: float) -> float:
    """The growth in KiB that still counts as flat."""
    return max(GROWTH_SHARE * first_kib, GROWTH_KIB)


def hidden_leak_bytes(judgement: Judgement, rounds: int) -> float:
    """The largest leak of each request that the judgement about memory does not see."""
    first_kib, _ = ends_of(judgement.memory_kib, rounds)
    began, ended = ends_of(judgement.steady_requests, rounds)
    return allowed_growth(first_kib) * 1024 / (ended - began) if ended > began else math.inf


class Soak:
    """One model's share of the time."""

    def __init__(self, subject: Subject, site: Site, chance: random.Random, most: int) -> None:
        self.subject = subject
        self.site = site
        self.chance = chance
        self.sizes = [min(size, most) for size in SIZES]
        self.crowd = Crowd(subject.server.address, site, chance)
        self.judgement = Judgement(subject.model)
        self.kills = 0

    async def off_loop(self, work: Callable[[], object]) -> None:
        """Does something that blocks, while the clients go on."""
        await asyncio.get_running_loop().run_in_executor(None, work)

    # ---- events ----

    async def replace(self) -> None:
        for path in self.chance.sample(list(self.site.sizes), 5):
            self.site.replace(path)

    async def reload(self) -> None:
        await self.off_loop(self.subject.reload)

    async def break_reload(self) -> None:
        await self.off_loop(lambda: self.subject.reload(broken=True))

    async def upgrade(self) -> None:
        await self.off_loop(self.subject.upgrade)

    async def rotate(self) -> None:
        await self.off_loop(self.subject.rotate)

    async def fill_disk(self) -> None:
        if self.subject.disk:
            with full(self.subject.logs):
                await asyncio.sleep(2)

    async def cut_descriptors(self) -> None:
        with self.subject.few_descriptors(self.chance.random()):
            await asyncio.sleep(2)

    async def kill(self) -> None:
        self.kills += 1
        self.subject.kill_worker(self.chance.random())

    # ---- parts ----

    async def part(self, seconds: float, events: Sequence[Callable[[], Awaitable[None]]]) -> None:
        """Keeps crowds of every size for some time, then lets all clients go, and compares."""
        each_s = seconds / len(self.sizes)
        for size in self.sizes:
            self.crowd.resize(size)
            until = time.monotonic() + each_s
            await self.replace()
            while (left := until - time.monotonic()) > 0:
                await asyncio.sleep(min(left, self.chance.uniform(0.2, 2)))
                event = self.chance.choice(events)
                name = event.__name__
                self.judgement.events[name] = self.judgement.events.get(name, 0) + 1
                await event()
        await self.crowd.end()
        await self.settle()
        await self.rotate()
        self.compare()

    async def settle(self) -> None:
        """Waits until the server has no connection, and no process for one. On a busy machine such
        a process can take seconds to end, and its memory would count."""
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            numbers = self.subject.numbers()
            rest = len(self.subject.processes()) <= self.subject.usual_processes
            if numbers["gauges"]["connections_open"] == 0 and rest:
                break
            await asyncio.sleep(0.2)
        else:
            self.judgement.wrong.append(
                "connections or processes are left although all clients are gone"
            )
        memory = await self.memory_at_rest()
        self.judgement.memory_kib.append(memory.own_kib)
        self.judgement.statistics_kib.append(memory.statistics_kib)
        self.judgement.descriptors.append(self.subject.descriptors())

    async def memory_at_rest(self) -> Memory:
        """The memory when it no longer falls: the server gives that of a crowd back, by and by."""
        memory = self.subject.memory()
        while True:
            await asyncio.sleep(GIVEN_BACK_S)
            before, memory = memory, self.subject.memory()
            if memory.own_kib > 0.99 * before.own_kib:
                return memory

    def compare(self) -> None:
        """Clients = log = counters."""
        judgement, counters = self.judgement, self.subject.numbers()["counters"]
        lines, dropped = self.subject.lines, counters["log_lines_dropped"]
        requests = counters["requests"]
        judgement.requests, judgement.dropped = requests, dropped
        judgement.connections = counters["connections_accepted"]
        counts = self.crowd.counts
        judgement.late = sum(count.late for count in counts.values())
        received = sum(count.total for count in counts.values())
        unknown = sum(count.unknown for count in counts.values())
        # A full disk takes a part of a line. The line counts as dropped, and the server ends it.
        logged = lines.whole + dropped
        if self.kills == 0:
            judgement.check(
                logged == requests, f"{logged} lines with the dropped ones, {requests} requests"
            )
            judgement.check(
                received <= requests <= received + unknown,
                f"{requests} requests; clients received {received} answers, {unknown} in doubt",
            )
            for temper in MARKED:
                total, marked = counts[temper].total, lines.marked[temper]
                judgement.check(
                    marked <= total + counts[temper].unknown and total <= marked + dropped,
                    f"{temper}: {total} answers, {marked} lines, {dropped} dropped",
                )
                judgement.check(
                    counts[temper].cut == 0, f"{temper}: {counts[temper].cut} answers cut"
                )
        else:
            # A killed worker loses the lines of its buffer. It may have sent what it had not
            # counted: at most one turn of its loop, an answer for each of its connections.
            slack = self.kills * max(self.sizes)
            judgement.check(
                logged <= requests, f"{logged} lines with the dropped ones, {requests} requests"
            )
            judgement.check(
                received - slack <= requests <= received + unknown + slack,
                f"{requests} requests; clients received {received} answers, {unknown} in doubt",
            )
        for temper, count in counts.items():
            judgement.wrong += [f"{temper}: {each}" for each in count.wrong[:3]]
            count.wrong.clear()
        judgement.check(len(lines.broken) <= dropped, f"broken lines: {lines.broken[:3]}")
        judgement.wrong += self.crowd.failures[:3]
        self.crowd.failures.clear()

    def compare_descriptors(self, descriptors: list[int]) -> None:
        first, last = min(descriptors), descriptors[-1]
        self.judgement.check(
            last <= first + DESCRIPTORS_MORE, f"open descriptors grew from {first} to {last}"
        )

    async def run(self, seconds: float, say: Callable[[str], None]) -> None:
        steady = [self.replace]
        changes = [
            *(self.replace, self.reload, self.break_reload, self.upgrade, self.rotate),
            *(self.fill_disk, self.cut_descriptors),
        ]
        rounds = max(4, round(seconds / 3 / ROUND_S))
        for done in range(rounds + ROUNDS_MORE):
            if done >= rounds and not memory_growth(self.judgement, rounds):
                break
            await self.part(seconds / 3 / rounds, steady)
            self.judgement.steady_requests.append(self.judgement.requests)
            say("steady")
        self.judgement.wrong += filter(None, [memory_growth(self.judgement, rounds)])
        self.judgement.hidden_leak_bytes = hidden_leak_bytes(self.judgement, rounds)
        self.compare_descriptors(self.judgement.descriptors)
        await self.part(seconds / 3, changes)
        say("changes")
        await self.part(seconds / 3, [*changes, self.kill, self.kill, self.kill])
        say("deaths")


def soak(model: str, seconds: float, seed: int, most: int) -> Judgement:
    chance = random.Random(f"{seed} {model}")
    with tempfile.TemporaryDirectory(prefix="weir-soak-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        site = Site(folder / "site")
        subject = Subject(model, site.root, folder)
        work = Soak(subject, site, chance, most)
        began = time.monotonic()
        said: list[str] = []

        def say(part: str) -> None:
            judgement = work.judgement
            for each in judgement.wrong[len(said) :]:
                print(f"{model}: WRONG: {each}")
            said[:] = judgement.wrong
            print(
                f"{model}: {part}, {time.monotonic() - began:.0f} of {seconds:.0f} s,"
                f" {judgement.requests} requests, {len(judgement.wrong)} wrong",
                flush=True,
            )

        try:
            asyncio.run(work.run(seconds, say))
        finally:
            left = subject.stop()
        work.judgement.wrong += left
        return work.judgement


def report(judgement: Judgement) -> None:
    events = ", ".join(f"{count} {name}" for name, count in sorted(judgement.events.items()))
    print(
        f"{judgement.model}: {judgement.requests} requests,"
        f" {judgement.connections} connections; {events};"
        f" {judgement.dropped} lines dropped while the disk was full;"
        f" {judgement.late} old answers cut"
    )
    print(f"    memory, KiB: {judgement.memory_kib}")
    print(f"    memory of the statistics, KiB: {judgement.statistics_kib}")
    print(f"    a leak above {judgement.hidden_leak_bytes:.0f} bytes for each request would show")
    print(f"    descriptors: {judgement.descriptors}")
    for each in judgement.wrong:
        print(f"    WRONG: {each}")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description="Serve a crowd while everything happens.")
    parser.add_argument("--seconds", type=float, default=3600, help="for all models together")
    parser.add_argument("--models", default=",".join(models()), help="separated by commas")
    parser.add_argument("--seed", type=int, default=1, help="decides what happens when")
    parser.add_argument("--clients", type=int, default=max(SIZES), help="at most, at a time")
    options = parser.parse_args()
    adopt_orphans()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    most = min(options.clients, (hard - 500) // 2)
    names = options.models.split(",")
    print(f"{len(names)} models, {options.seconds:.0f} s, seed {options.seed}, {most} clients")
    print(f"tempers: {', '.join(TEMPERS)}", flush=True)
    judgements = []
    for name in names:
        judgements.append(soak(name, options.seconds / len(names), options.seed, most))
        report(judgements[-1])
    requests = sum(judgement.requests for judgement in judgements)
    print(f"{requests} requests are a week of {requests / WEEK_S:.1f} requests per second")
    failed = sum(bool(judgement.wrong) for judgement in judgements)
    print(f"{len(judgements) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
