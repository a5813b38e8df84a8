# SPDX-License-Identifier: MIT
"""How much a server carries: a sweep of users, a model chosen on the smaller loads, and its score.

The bottleneck is named by service demand, and confirmed by halving it: throughput has to halve.
"""

import random
from dataclasses import dataclass
from statistics import median

from bench.process import BenchError
from weir_lab.analysis import interleave
from weir_lab.capacity import records
from weir_lab.capacity.sweep import why_void
from weir_lab.commands import sweeping
from weir_lab.commands.experiment import (
    Options,
    Step,
    environment,
    failures,
    perform,
    store_for,
    world,
)
from weir_lab.report.page import Report, Section
from weir_lab.rim import machine, quota, runs
from weir_lab.rim.errors import LabError
from weir_lab.rim.generators import Load, Outcome
from weir_lab.rim.machine import Placement
from weir_lab.rim.runs import Work, World
from weir_lab.rim.store import Record, Store

SIZE = 308
HALVED = "halved"
HALF = (0.4, 0.6)  # of the throughput: what counts as a half


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is swept."""

    server: str
    users: tuple[int, ...]
    train_to: int
    think_s: float = 0.0
    seconds: float = 2.0
    repeats: int = 3
    keep_alive: bool = True
    generator: str = "load"
    server_options: str = ""
    url: str = ""  # of a server that runs already
    pid: int | None = None
    halve: bool = True
    p99_limit_s: float | None = None


def levels(text: str) -> tuple[int, ...]:
    """`1,2,5,10..60:10` as numbers.

    Raises:
        LabError: it is something else.
    """
    found: set[int] = set()
    for part in text.split(","):
        ends, _, step = part.partition(":")
        low, dots, high = ends.partition("..")
        try:
            if dots:
                found |= set(range(int(low), int(high) + 1, int(step or 1)))
            else:
                found.add(int(low))
        except ValueError as error:
            raise LabError(f"{part!r} is no number of users; try 1..20,25..60:5") from error
    if not found or min(found) < 1:
        raise LabError(f"{text!r}: users are 1 or more")
    return tuple(sorted(found))


def _work(question: Question, users: int) -> Work:
    return Work(path=f"/{SIZE}.bin", users=users, keep_alive=question.keep_alive)


def _running_step(here: World, question: Question, users: int, key: str) -> Step:
    """A level against a server that runs already and is left running."""
    generate = runs.generator(question.generator, here.weir)

    def measure() -> Record:
        load = Load(
            url=question.url,
            users=users,
            keep_alive=question.keep_alive,
            seconds=question.seconds,
            think_s=question.think_s,
            think="exponential",
            warmup_s=0.0 if question.generator == "ab" else sweeping.WARMUP_S,
        )
        return runs.against(load, here.placement, question.pid, generate)

    return Step(key=key, seconds=question.seconds + 0.2, measure=measure)


def steps(here: World, question: Question, seed: int) -> list[Step]:
    """Every level once in an order drawn by lot, then in its reverse, and so on."""
    order = interleave.rounds([str(n) for n in question.users], question.repeats, seed)
    found = []
    for repeat, users in ((r, int(n)) for r, each in enumerate(order) for n in each):
        key = f"{users}/{repeat}"
        if question.url:
            found.append(_running_step(here, question, users, key))
            continue
        found.append(
            sweeping.step(
                here,
                key,
                question.server,
                _work(question, users),
                think_s=question.think_s,
                seconds=question.seconds,
                generator=question.generator,
                options=question.server_options,
            )
        )
    return found


def halving_steps(here: World, question: Question) -> list[Step]:
    """The highest load once more, with half of the server's CPU."""
    users = question.users[-1]
    generate = runs.generator(question.generator, here.weir)

    def measure() -> Record:
        def half(load: Load, core: int | None, pid: int | None) -> Outcome:
            assert pid is not None
            with quota.limited(pid, here.placement.server_cores / 2):
                return generate(load, core, pid)

        chosen = runs.product(here, question.server)
        load: dict[str, object] = {"seconds": question.seconds}
        if question.generator == "load":
            load |= {"think_s": question.think_s, "think": "exponential"}
            load |= {"warmup_s": sweeping.WARMUP_S + question.think_s}
        return runs.run(here, chosen, _work(question, users), load, half)

    return [
        Step(key=f"{HALVED}/{n}", seconds=question.seconds + sweeping.START_S, measure=measure)
        for n in range(min(2, question.repeats))
    ]


def confirmation(store: Store, question: Question, placement: Placement) -> str:
    """What halving the CPU did."""
    here = {
        is_half: [
            r
            for k, r in store.records.items()
            if "error" not in r
            and k.startswith(f"{HALVED}/") == is_half
            and r["users"] == question.users[-1]
        ]
        for is_half in (True, False)
    }
    if not here[True] or not here[False]:
        return ""
    whole = records.sweep(
        here[False],
        server_cores=placement.server_cores,
        generator_cores=placement.generator_cores,
    )
    if any(why_void(whole, p) for p in whole.points):
        return "Halving the CPU says nothing here: the highest load is void."
    rates = {is_half: [r["load"]["rate"] for r in found] for is_half, found in here.items()}
    part = median(rates[True]) / median(rates[False])
    text = f"With half of its CPU the server has {part:.0%} of its throughput"
    if HALF[0] <= part <= HALF[1]:
        return f"{text}: the CPU is confirmed as what limits it."
    if part < HALF[0]:
        return f"{text}, less than a half: what waits for the CPU waits for more than its share."
    return f"{text}: the CPU was not what limited it."


def run(options: Options, question: Question) -> Report:
    """Sweeps, fits, chooses, scores, reports.

    Raises:
        LabError: the server or the generator is missing, or the question makes no sense.
    """
    if question.users[0] > question.train_to:
        raise LabError(f"there is no level up to {question.train_to} to train on")
    if question.url and question.pid is None:
        raise LabError("--url needs --pid, whose CPU is measured")
    machine.raise_descriptor_limit(question.users[-1] * 2)
    files = {f"{SIZE}.bin": random.Random(SIZE).randbytes(SIZE)}
    plan = {
        "command": "capacity",
        **{k: v for k, v in question.__dict__.items() if k not in ("train_to", "p99_limit_s")},
        "placement": options.placement.sentence(),
    }
    with world(options, files) as here:
        if not question.url:
            runs.product(here, question.server)
        todo = steps(here, question, options.seed)
        store = store_for(options, plan, question.generator)
        perform(store, todo, f"capacity of {question.server}")
        if question.halve and not question.url:
            try:
                perform(store, halving_steps(here, question), "half of the CPU")
            except BenchError as error:
                raise LabError(str(error)) from error
    return Report(
        title=f"How much {question.server} carries",
        sections=[section(store, options, question)],
        environment=environment(store),
        data=store.everything(),
        notes=failures(store),
    )


def section(store: Store, options: Options, question: Question) -> Section:
    """The findings of the sweep."""
    found = [
        r for k, r in store.records.items() if "error" not in r and not k.startswith(f"{HALVED}/")
    ]
    studied = sweeping.study(
        "capacity",
        found,
        options.placement,
        train_to=question.train_to,
        seed=options.seed,
        p99_limit_s=question.p99_limit_s,
    )
    confirmed = confirmation(store, question, options.placement)
    how = "ab, without thinking" if question.generator == "ab" else "weir load"
    return Section(
        title=f"Capacity of {question.server}",
        verdict=[*studied.verdict, *([confirmed] if confirmed else [])],
        text=[
            f"A closed loop: every user asks, waits for the whole answer, thinks for "
            f"{question.think_s * 1e3:g} ms on average, and asks again. Generator: {how}; "
            f"{options.placement.sentence()}. Models saw up to {question.train_to} users."
        ],
        pictures=studied.pictures,
        tables=studied.tables,
    )
