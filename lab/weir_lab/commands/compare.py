# SPDX-License-Identifier: MIT
"""Servers side by side on the same work: interleaved rounds, fresh starts, ratios."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from weir_lab.analysis import interleave
from weir_lab.analysis.ratio import Ratio, confidence_for, ratio
from weir_lab.commands.experiment import (
    Options,
    Step,
    environment,
    failures,
    perform,
    store_for,
    world,
)
from weir_lab.report.chart import Chart, Picture
from weir_lab.report.page import Report, Section, Table
from weir_lab.rim import machine, runs
from weir_lab.rim.errors import LabError
from weir_lab.rim.runs import Work, World
from weir_lab.rim.store import Record, Store

START_S = 0.8
AGAIN = "#"  # `epoll#2` is epoll a second time: a server beside itself

# figure -> its title, unit, and what of a record it is; the first decides which server suits best
FIGURES = {
    "cpu": ("CPU per request", "µs"),
    "rate": ("requests per second", ""),
    "p50": ("median response time", "ms"),
    "p99": ("99th percentile", "ms"),
    "memory": ("memory", "MiB"),
}
COMPARED = ("cpu", "rate", "p99")


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is compared on what."""

    servers: tuple[str, ...]  # the first is what the others are compared with
    sizes: tuple[int, ...] = (308,)
    users: tuple[int, ...] = (64,)
    keep_alive: tuple[bool, ...] = (True, False)
    rounds: int = 6
    seconds: float = 1.0
    generator: str = "ab"

    def works(self) -> dict[str, Work]:
        """Every load, by a name."""
        return {
            f"{'keep-alive' if kept else 'close'} {size} B x {users}": Work(
                path=f"/{size}.bin", users=users, keep_alive=kept
            )
            for kept in self.keep_alive
            for size in self.sizes
            for users in self.users
        }

    @property
    def looks(self) -> int:
        """How many ratios the report judges."""
        return len(self.works()) * (len(self.servers) - 1) * len(COMPARED)


def figure(record: Record, name: str) -> float:
    """A figure of a record; 0 where it was not measured."""
    load = record["load"]
    answered = max(1, load["requests"])
    found = {
        "cpu": (load["server_demand_s"] or record["server_cpu_s"] / answered) * 1e6,
        "rate": load["rate"],
        "p50": load["percentiles_s"].get("50", 0.0) * 1e3,
        "p99": load["percentiles_s"].get("99", 0.0) * 1e3,
        "memory": record["memory_kib"] / 1024,
    }
    return float(found[name])


def by_round(store: Store, work: str, server: str, name: str) -> dict[int, float]:
    """A figure of a server under a work, by round."""
    found = {}
    for key, record in store.records.items():
        its_work, number, its_server = key.rsplit("/", 2)
        if its_work == work and its_server == server and "error" not in record:
            found[int(number)] = figure(record, name)
    return found


def steps(here: World, question: Question, seed: int) -> list[Step]:
    """All rounds of one work, then the next work."""
    generate = runs.generator(question.generator, here.weir)
    found = []
    for work_name, work in question.works().items():
        for number, order in enumerate(interleave.rounds(question.servers, question.rounds, seed)):
            for server in order:

                def measure(server: str = server, work: Work = work) -> Record:
                    chosen = runs.product(here, server.partition(AGAIN)[0])
                    load = {"seconds": question.seconds}
                    return runs.run(here, chosen, work, load, generate)

                found.append(
                    Step(
                        key=f"{work_name}/{number}/{server}",
                        seconds=question.seconds + START_S,
                        measure=measure,
                    )
                )
    return found


def ratios(store: Store, question: Question, name: str, seed: int) -> dict[tuple[str, str], Ratio]:
    """(work, server) -> its ratio to the first server."""
    first, *others = question.servers
    confidence = confidence_for(question.looks)
    found = {}
    for work in question.works():
        base = by_round(store, work, first, name)
        for server in others:
            mine = by_round(store, work, server, name)
            if result := ratio(mine, base, confidence=confidence, seed=seed):
                found[work, server] = result
    return found


@dataclass(frozen=True, kw_only=True)
class Suitable:
    """Which server took least CPU over all works, and which are not shown to take more."""

    best: str
    costs: Mapping[str, float]  # server -> geometric mean of its CPU, as a multiple of the best's
    equals: Sequence[str]

    def sentence(self) -> str:
        """The advice."""
        text = f"{self.best} suits this machine best: the least CPU per request over all works"
        if self.equals:
            text += f"; {', '.join(self.equals)} {'is' if len(self.equals) == 1 else 'are'} not "
            text += "shown to take more"
        if len(self.costs) > 1:
            others = [f"{n} {c:.2f}" for n, c in self.costs.items() if n != self.best]
            text += f" (times its CPU: {', '.join(others)})"
        return text + "."


def suitable(store: Store, question: Question, names: Sequence[str], seed: int) -> Suitable | None:
    """The advice among these servers; None where none was measured under every work."""
    works = list(question.works())
    figures = {n: {w: by_round(store, w, n, "cpu") for w in works} for n in names}
    whole = {n: each for n, each in figures.items() if all(each.values())}
    if not whole:
        return None
    cost = {
        n: math.exp(sum(math.log(max(median(f.values()), 1e-9)) for f in each.values()) / len(each))
        for n, each in whole.items()
    }
    best = min(cost, key=lambda n: cost[n])
    confidence = confidence_for(len(works) * max(1, len(whole) - 1))
    equals = []
    for name in whole:
        compared = [
            ratio(whole[name][w], whole[best][w], confidence=confidence, seed=seed) for w in works
        ]
        if name != best and not any(r.low > 1 for r in compared if r):
            equals.append(name)
    ordered = sorted(cost, key=lambda n: cost[n])
    return Suitable(best=best, costs={n: cost[n] / cost[best] for n in ordered}, equals=equals)


def table(store: Store, question: Question) -> Table:
    """Medians of the rounds, and half the distance between the quartiles."""
    rows = []
    for work in question.works():
        for server in question.servers:
            row = [work, server]
            for name in FIGURES:
                values = sorted(by_round(store, work, server, name).values())
                row.append(f"{median(values):,.{_digits(median(values))}f}" if values else "-")
            answered = [
                r for k, r in store.records.items() if k.startswith(f"{work}/") and "load" in r
            ]
            failed = sum(
                r["load"]["failed"] for r in answered if r["server"] == server.partition(AGAIN)[0]
            )
            rows.append([*row, f"{failed}"])
    titles = [f"{title}{f', {unit}' if unit else ''}" for title, unit in FIGURES.values()]
    return Table(
        name="compare",
        title="Medians of the rounds",
        head=["work", "server", *titles, "failed"],
        rows=rows,
        note="Memory is the proportional set size of all processes at the end of the load.",
    )


def _digits(value: float) -> int:
    return 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3


def picture(found: Mapping[tuple[str, str], Ratio], name: str, first: str) -> Picture:
    """Every ratio with its interval."""
    title = FIGURES[name][0]
    chart = Chart(
        name=f"ratio-{name}",
        title=f"{title[0].upper()}{title[1:]}, as a multiple of {first}'s",
        x=f"times {first}",
        y="",
        log_x=True,
        size=(7.2, 0.9 + 0.34 * max(1, len(found))),
    )
    drawable = {k: r for k, r in found.items() if math.isfinite(r.high) and r.low > 0}
    chart.intervals(
        [f"{server}, {work}" for work, server in drawable],
        [r.value for r in drawable.values()],
        [r.low for r in drawable.values()],
        [r.high for r in drawable.values()],
        1.0,
    )
    return chart.finish(
        "Squares: a difference is shown. Circles: none is. Intervals hold together, all of them, "
        "with 95 % confidence.",
        legend=False,
        from_zero=False,
    )


def findings(found: Mapping[tuple[str, str], Ratio], name: str, first: str) -> list[str]:
    """A sentence for each difference, and one for all that show none."""
    title = FIGURES[name][0]
    sentences = []
    none: dict[str, list[str]] = {}
    for (work, server), result in found.items():
        if result.is_shown or len(found) == 1:
            sentences.append(result.sentence(server, first, f"{work}, {title}"))
        else:
            none.setdefault(work, []).append(server)
    if none:
        whom = "; ".join(f"{', '.join(servers)} ({work})" for work, servers in none.items())
        sentences.append(f"{title}: no difference from {first} shown for {whom}.")
    return sentences


def section(store: Store, question: Question, models: Sequence[str], seed: int) -> Section:
    """The findings, which model suits, the ratios, the figures."""
    verdict = []
    weirs = [s for s in question.servers if s.partition(AGAIN)[0] in models]
    advice = suitable(store, question, weirs, seed) if len(weirs) > 1 else None
    if advice:
        verdict.append(advice.sentence())
    pictures, rows = [], []
    for name in COMPARED:
        found = ratios(store, question, name, seed)
        if found:
            pictures.append(picture(found, name, question.servers[0]))
        verdict += findings(found, name, question.servers[0])
        for (work, server), result in found.items():
            bounds = [f"{bound:.2f}" for bound in (result.low, result.high)]
            said = "shown" if result.is_shown else "not shown"
            rows.append([FIGURES[name][0], work, server, f"{result.value:.2f}", *bounds, said])
    head = ["figure", "work", "server", f"times {question.servers[0]}", "low", "high", "difference"]
    judged = Table(name="ratios", title="Ratios", head=head, rows=rows)
    return Section(
        title="Servers compared",
        verdict=verdict,
        text=[
            f"{question.rounds} rounds of {question.seconds:g} s for each work, every server "
            "started afresh in each, in the order A B C, C B A. A ratio is that of the rounds' "
            f"geometric means; its interval has a confidence of "
            f"{confidence_for(question.looks):.2%}, so that all "
            f"{question.looks} together have 95 %."
        ],
        pictures=pictures,
        tables=[judged, table(store, question)],
    )


def files(question: Question) -> dict[str, bytes]:
    """A file of each size, of bytes that do not compress."""
    return {f"{size}.bin": random.Random(size).randbytes(size) for size in question.sizes}


def measured(options: Options, question: Question) -> tuple[Store, list[str]]:
    """Does all rounds, or what is left of them; the models of this weir beside."""
    if len(question.servers) < 2:
        raise LabError("two servers are the least that can be compared; epoll epoll#2 is one twice")
    if len(set(question.servers)) < len(question.servers):
        raise LabError("to compare a server with itself, name it again as epoll#2")
    if question.generator == "ab":
        machine.need("ab")
    machine.raise_descriptor_limit(max(question.users) * 2)
    plan = {"command": "compare", **question.__dict__, "placement": options.placement.sentence()}
    with world(options, files(question)) as here:
        for server in question.servers:
            runs.product(here, server.partition(AGAIN)[0])  # what is missing is said now
        store = store_for(options, plan, question.generator)
        perform(store, steps(here, question, options.seed), "compare")
        return store, runs.models(here.weir)


def run(options: Options, question: Question) -> Report:
    """Compares and reports.

    Raises:
        LabError: a server is missing, or the question makes no sense.
    """
    store, models = measured(options, question)
    return Report(
        title=f"{', '.join(question.servers)} compared",
        sections=[section(store, question, models, options.seed)],
        environment=environment(store),
        data=store.everything(),
        notes=failures(store),
    )
