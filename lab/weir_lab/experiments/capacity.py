# SPDX-License-Identifier: MIT
"""Capacity of a server: a sweep of users, a model chosen on the smaller loads, and its score.

Service demand names the bottleneck. Halving the CPU confirms it: throughput has to fall as the
service demand predicts, to a half where the CPU was saturated.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from urllib.parse import urlsplit

import numpy as np

from weir_lab.analysis import interleave
from weir_lab.capacity import disturbance, records
from weir_lab.capacity.answers import Need
from weir_lab.capacity.sweep import SERVER, why_void
from weir_lab.experiments import pilot, sweeping
from weir_lab.experiments.experiment import (
    Options,
    Step,
    announce,
    environment,
    failures,
    minutes,
    perform,
    store_for,
    world,
)
from weir_lab.report import capacity as reported
from weir_lab.report.page import Report, Section
from weir_lab.rim import machine, quota, runs
from weir_lab.rim.errors import LabError
from weir_lab.rim.generators import FULL, RESUME, Load
from weir_lab.rim.machine import Placement
from weir_lab.rim.runs import Work, World
from weir_lab.rim.store import Store

AB_USERS = (*range(1, 21), *range(25, 61, 5))  # ab measures whole seconds: no pilot chooses
TRAIN_TO = 20  # where levels are given without the last one of the training
SWEEP_LEVELS = 12  # what the pilot chooses, about
TLS_HOW = {
    "": "",
    RESUME: ", over TLS, where later connections resume sessions",
    FULL: ", over TLS, with a full handshake for each connection",
}
HALVED, WHOLE = "halved", "whole"
Perform = Callable[[list[Step]], None]
PAIRS = 3  # at most, of runs with half of the CPU and with all of it
HALVED_OFF = 0.1  # of the throughput: tolerance between prediction and measurement
P99_USUAL_MS = 50.0  # of the users to find the cores for, where no limit is given
LATER = ("train_to", "p99_limit_s", "need")  # questions about results, not about a measurement
IDLE_MAX = 0.6  # utilisation of the CPU; below it, halving takes too little away


@dataclass(frozen=True, kw_only=True)
class Question:
    """The server, the levels and the load of a sweep."""

    server: str
    users: tuple[int, ...] = ()  # empty: the pilot chooses
    train_to: int = 0  # 0: the pilot chooses, or TRAIN_TO
    think_s: float = 0.0
    seconds: float = 2.0
    repeats: int = 3
    keep_alive: bool = True
    generator: str = "load"
    server_options: str = ""
    url: str = ""  # of a server that runs already; empty: the lab starts one
    tls: str = ""  # as Work.tls
    cacert: str = ""  # file of the authorities that the generator trusts; empty: the system's
    insecure: bool = False  # the generator accepts any certificate
    pid: int | None = None
    halve: bool = True
    pilot_s: float = 0.0  # length of the pilot run; 0: none
    adapt: bool = True  # whether the pilot may change the page, the server's core and the levels
    p99_limit_s: float | None = None
    need: Need | None = None  # the users to find the cores for

    @property
    def may_halve(self) -> bool:
        """Whether the bottleneck is confirmed by halving the CPU of the server."""
        return self.halve and not self.url


def need(users: int | None, think_ms: float, p99_ms: float | None) -> Need | None:
    """The users to find the cores for; None without users."""
    if users is None:
        return None
    return Need(users=users, think_s=think_ms / 1e3, p99_s=(p99_ms or P99_USUAL_MS) / 1e3)


def expected_s(question: Question) -> float:
    """The time that the measurement takes, about."""
    probes_s = 0.0 if question.generator == "ab" else 5 * (sweeping.START_S + pilot.PROBE_S)
    each_s = sweeping.START_S + sweeping.least_warmup_s(question.think_s) + question.seconds
    runs_of = (len(question.users) or SWEEP_LEVELS) * question.repeats
    pairs = min(PAIRS, question.repeats) if question.may_halve else 0
    return probes_s + question.pilot_s + (runs_of + 2 * pairs) * each_s


def _work(question: Question, users: int, page_bytes: int) -> Work:
    return Work(
        path=f"/{page_bytes}.bin", users=users, keep_alive=question.keep_alive, tls=question.tls
    )


def _step(
    here: World,
    question: Question,
    users: int,
    key: str,
    *,
    work: pilot.Work,
    warmup_s: float | None = None,
    seconds: float | None = None,
) -> Step:
    """A step at one level, against a fresh server or against the running one."""
    held_s = question.seconds if seconds is None else seconds
    if not question.url:
        return sweeping.step(
            here,
            key,
            question.server,
            _work(question, users, work.page_bytes),
            think_s=question.think_s,
            seconds=held_s,
            generator=question.generator,
            options=question.server_options,
            warmup_s=warmup_s,
            share=work.share,
        )
    generate = runs.generator(question.generator, here.weir)
    least_s = sweeping.least_warmup_s(question.think_s) if warmup_s is None else warmup_s
    load = replace(
        one_request(question),
        users=users,
        requests=None,
        seconds=held_s,
        think_s=question.think_s,
        think="exponential",
        warmup_s=0.0 if question.generator == "ab" else least_s,
    )
    return Step(
        key=key,
        seconds=held_s + load.warmup_s,
        measure=lambda: runs.against(load, here.placement, question.pid, generate),
    )


def one_request(question: Question) -> Load:
    """A single request to the running server."""
    return Load(
        url=question.url,
        users=1,
        requests=1,
        keep_alive=question.keep_alive,
        tls=question.tls,
        cacert=question.cacert,
        insecure=question.insecure,
    )


def set_up(here: World, store: Store, question: Question, do: Perform) -> pilot.Setup:
    """The levels and the work: by the question, or by a pilot."""
    levels = given(question)
    train_to = question.train_to or (trained(levels) if levels else 0)
    if levels and (question.generator == "ab" or not question.adapt):
        return pilot.Setup(users=levels, train_to=train_to)

    def step(work: pilot.Work, users: int) -> Step:
        machine.raise_descriptor_limit(users * 2)
        key = work.key(users)
        return _step(here, question, users, key, work=work, seconds=pilot.PROBE_S)

    measure = pilot.Prober(
        store=store,
        step=step,
        perform=do,
        server_cores=here.placement.server_cores,
        generator_cores=here.placement.generator_cores,
    )
    own = question.adapt and not question.url and not here.placement.is_shared
    means = pilot.Means(
        think_s=question.think_s,
        heavier_pages=own,
        shares=own and quota.is_possible(),
        fewer_levels=question.adapt and not here.placement.is_shared,
        users=levels,
        train_to=train_to,
        most=min(pilot.USERS_MAX, machine.descriptors_possible() // 2),
    )
    return pilot.settle(store, measure, means)


def given(question: Question) -> tuple[int, ...]:
    """The levels that no pilot chooses; empty where the pilot does."""
    return question.users or (AB_USERS if question.generator == "ab" else ())


def trained(users: tuple[int, ...]) -> int:
    """The last level of the training, where only the levels were given."""
    if users[0] <= TRAIN_TO < users[-1]:
        return TRAIN_TO
    return users[len(users) * 2 // 3]


def pilot_steps(here: World, question: Question, setup: pilot.Setup) -> list[Step]:
    """A long run of the highest training load, from a fresh start."""
    if not question.pilot_s or question.generator == "ab":
        return []
    users = max(n for n in setup.users if n <= setup.train_to)
    held_s = question.pilot_s
    work = setup.work
    return [_step(here, question, users, sweeping.PILOT, work=work, warmup_s=0.0, seconds=held_s)]


def steps(
    here: World, question: Question, setup: pilot.Setup, seed: int, warmup_s: float
) -> list[Step]:
    """Steps for every level, in random order, then in reverse, and so on."""
    order = interleave.rounds([str(n) for n in setup.users], question.repeats, seed)
    work = setup.work
    return [
        _step(here, question, int(users), f"{users}/{repeat}", work=work, warmup_s=warmup_s)
        for repeat, turn in enumerate(order)
        for users in turn
    ]


def halving_steps(
    here: World, question: Question, setup: pilot.Setup, warmup_s: float
) -> list[Step]:
    """The highest load again, with half of the server's CPU and with all of it, in turn."""
    users = setup.users[-1]
    half = replace(setup.work, share=setup.share / 2)
    found = []
    for pair in range(min(PAIRS, question.repeats)):
        halved = _step(here, question, users, f"{HALVED}/{pair}", work=half, warmup_s=warmup_s)
        whole = _step(here, question, users, f"{WHOLE}/{pair}", work=setup.work, warmup_s=warmup_s)
        found += [halved, whole] if pair % 2 == 0 else [whole, halved]
    return found


def confirmation(store: Store, question: Question, placement: Placement) -> str:
    """The effect of halving the CPU, compared with the prediction of the service demand."""
    if not question.halve:
        return ""
    if question.url:
        return (
            "The bottleneck was not confirmed by halving its CPU: the lab did not start the server."
        )
    tried = {k: r for k, r in store.records.items() if k.split("/")[0] in (HALVED, WHOLE)}
    if failed := [r["error"] for r in tried.values() if "error" in r]:
        return f"The bottleneck could not be confirmed by halving it: {failed[0]}."
    pairs = [
        (tried[f"{HALVED}/{n}"], tried[f"{WHOLE}/{n}"])
        for n in range(PAIRS)
        if {f"{HALVED}/{n}", f"{WHOLE}/{n}"} <= tried.keys()
    ]
    if not pairs:
        return ""
    calm = disturbance.usual(r for r in store.records.values() if "error" not in r)
    pairs = [pair for pair in pairs if not any(disturbance.reason(r, calm) for r in pair)]
    whole = records.sweep(
        [r for _, r in pairs],
        server_cores=placement.server_cores,
        generator_cores=placement.generator_cores,
        calm=calm,
    )
    if not whole.points:
        return "Halving the CPU shows nothing here: every pair of runs was disturbed."
    if any(why_void(whole, p) for p in whole.points):
        return "Halving the CPU shows nothing here: the highest load is void."
    used = fmean(whole.utilisation(p, SERVER) for p in whole.points)
    parts = [half["load"]["rate"] / all_of_it["load"]["rate"] for half, all_of_it in pairs]
    part = float(np.median(parts))
    scatter = f"{min(parts):.0%} to {max(parts):.0%} in {len(parts)} pairs"
    scatter = "1 pair" if len(parts) == 1 else scatter
    text = f"With half of its CPU the server has {part:.0%} of its throughput ({scatter})"
    if used < IDLE_MAX:
        return f"{text}. The CPU, busy for {used:.0%}, is not the limit at this load."
    expected = min(1.0, 0.5 / used)
    said = f"The service demand predicts {expected:.0%}"
    if abs(part - expected) <= HALVED_OFF:
        return f"{text}. {said}: the CPU is confirmed as the limit."
    if part < expected:
        return f"{text}. {said}: requests that wait for the CPU lose more than its share."
    return f"{text}. {said}: the CPU alone is not the limit."


def check(question: Question) -> None:
    """Rejects what can be known to be wrong before anything is measured.

    Raises:
        LabError: the question makes no sense.
    """
    if question.users and question.train_to and question.users[0] > question.train_to:
        raise LabError(f"no level of --users is at most --train-to {question.train_to}")
    if question.pid is not None and not question.url:
        raise LabError("--pid needs --url, the URL of that server")
    if question.think_s and question.generator == "ab":
        raise LabError("ab has no think time; use --generator load")
    try:
        scheme = urlsplit(question.url).scheme
    except ValueError as error:  # of an IPv6 address
        raise LabError(f"{question.url!r} is no URL: {error}") from error
    if question.url and scheme not in ("http", "https"):
        raise LabError(f"{question.url!r} is no URL that begins with http:// or https://")
    if question.tls and scheme == "http":
        raise LabError("--tls needs a --url that begins with https://")
    if (question.cacert or question.insecure) and scheme != "https":
        raise LabError("--cacert and --insecure need a --url that begins with https://")
    if scheme == "https" and question.generator == "ab" and not question.insecure:
        raise LabError("ab verifies no certificate; use --insecure, or --generator load")
    if question.url and not runs.is_reachable(question.url):
        raise LabError(f"{question.url} does not answer")
    if question.pid is not None and not Path(f"/proc/{question.pid}").exists():
        raise LabError(f"there is no process {question.pid}")


def run(options: Options, question: Question) -> Report:
    """Sweeps, fits, chooses, scores, reports.

    Raises:
        LabError: the server or the generator is missing, or the question makes no sense.
    """
    check(question)
    pages = (pilot.PAGE, *pilot.HEAVY_PAGES)
    files = {f"{size}.bin": random.Random(size).randbytes(size) for size in pages}
    plan = {
        "command": "capacity",
        **{k: v for k, v in question.__dict__.items() if k not in LATER},
        "placement": options.placement.sentence(),
    }
    what = f"capacity of {question.server}"
    with world(options, files) as here:
        if not question.url:
            runs.product(here, question.server)
        generate = runs.generator(question.generator, here.weir)
        if urlsplit(question.url).scheme == "https":
            generate(one_request(question), None, None)  # a wrong certificate shows at once
        store = store_for(options, plan, question.generator)
        announce(f"{what} takes about {minutes(expected_s(question))}.")
        setup = set_up(here, store, question, partial(perform, store, what=f"{what}: pilot"))
        announce(setup.did)
        machine.raise_descriptor_limit(setup.users[-1] * 2)
        perform(store, pilot_steps(here, question, setup), what)
        warmup_s = sweeping.settled(store, question.think_s).warmup_s
        halved = halving_steps(here, question, setup, warmup_s) if question.may_halve else []
        perform(
            store,
            steps(here, question, setup, options.seed, warmup_s),
            what,
            then_s=sum(step.seconds for step in halved),
        )
        perform(store, halved, "half of the CPU")
        question = replace(question, users=setup.users, train_to=setup.train_to)
    return Report(
        title=f"How much {question.server} carries",
        sections=[section(store, options, question)],
        environment=environment(store),
        data=store.everything(),
        notes=failures(store),
    )


def section(store: Store, options: Options, question: Question) -> Section:
    """The answer of the sweep, and what it rests on.

    Raises:
        LabError: a record is damaged.
    """
    sweeping.check(store.records.values())
    found = [r for k, r in store.records.items() if k[0].isdigit()]
    settled = sweeping.settled(store, question.think_s)
    studied = sweeping.study(
        "capacity",
        found,
        options.placement,
        server=question.server,
        train_to=question.train_to,
        p99_limit_s=question.p99_limit_s,
        need=question.need,
        doubt=settled.doubt,
        missing=max(0, len(question.users) * question.repeats - len(found)),
    )
    confirmed = confirmation(store, question, options.placement)
    how = "ab, without think time" if question.generator == "ab" else "weir load"
    return reported.section(
        studied,
        title=f"Capacity of {question.server}",
        limit=[*pilot.changes(store), *([confirmed] if confirmed else [])],
        method=[
            f"The load is a closed loop. Every user sends a request, waits for the whole answer, "
            f"thinks for {question.think_s * 1e3:g} ms on average, and repeats. The generator is "
            f"{how}{TLS_HOW[question.tls]}: {options.placement.sentence()}. Training went up to "
            f"{question.train_to} users.",
            *([settled.why] if question.generator == "load" else []),
            *pilot.said(store),
        ],
        tables=[sweeping.precision(studied)],
    )
