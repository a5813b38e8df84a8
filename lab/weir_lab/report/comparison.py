# SPDX-License-Identifier: MIT
"""Servers beside each other: what of each run is judged, and the words and tables of it.

A run whose requests failed counts for nothing. One in which the generator was the limit tells
what a request costs the server, but not how fast it is: of rates and response times it is a bound.
One that the generator itself doubts tells nothing of those.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from weir_lab.analysis.ratio import Ratio, confidence_for, ratio
from weir_lab.capacity.records import server_s
from weir_lab.capacity.sweep import GENERATOR_BUSY_MAX
from weir_lab.report.page import Table

Record = Mapping[str, Any]

GENERATOR_BUSY_ITSELF = 0.8  # above it, weir load doubts its own result
GENERATOR = "the generator was the limit"
DOUBT = "weir load doubts its figures"
NOWHERE = "no round has it of both servers"


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure of a run."""

    title: str
    unit: str
    is_less_better: bool = True
    is_bounded: bool = False  # the generator can limit it

    @property
    def label(self) -> str:
        """The title with the unit."""
        return f"{self.title}, {self.unit}" if self.unit else self.title


FIGURES = {
    "cpu": Figure(title="CPU per request", unit="µs"),
    "rate": Figure(title="requests per second", unit="", is_less_better=False, is_bounded=True),
    "p50": Figure(title="median response time", unit="ms", is_bounded=True),
    "p90": Figure(title="90th percentile", unit="ms", is_bounded=True),
    "p99": Figure(title="99th percentile", unit="ms", is_bounded=True),
    "p99.9": Figure(title="99.9th percentile", unit="ms", is_bounded=True),
    "idle": Figure(title="memory, idle", unit="MiB"),
    "memory": Figure(title="memory under load", unit="MiB"),
    "server": Figure(title="server's CPU busy", unit="%"),
    "generator": Figure(title="generator's CPU busy", unit="%"),
}
COMPARED = ("cpu", "rate", "p99", "memory")


@dataclass(frozen=True, kw_only=True)
class Run:
    """One fresh start of one server under one work."""

    work: str
    server: str
    round: int
    record: Record

    @property
    def is_void(self) -> bool:
        """Whether the run does not count."""
        return bool(self.record["load"]["failed"]) or not self.record["load"]["requests"]

    def figure(self, name: str) -> float:
        """A figure; 0 where it was not measured."""
        load = self.record["load"]
        cpu_s = server_s(self.record)
        match name:
            case "cpu":
                found = cpu_s * 1e6
            case "rate":
                found = load["rate"]
            case "idle":
                found = (self.record.get("memory_idle_kib") or 0) / 1024
            case "memory":
                found = (self.record.get("memory_load_kib") or self.record["memory_kib"]) / 1024
            case "server":
                found = 100 * cpu_s * load["rate"]
            case "generator":
                found = 100 * load["generator_cpu_s"] / max(load["seconds"], 1e-9)
            case _:
                found = load["percentiles_s"].get(name.removeprefix("p"), 0.0) * 1e3
        return float(found)

    @property
    def limit(self) -> str:
        """The reason why rate and response times are not the server's; empty: they are."""
        load = self.record["load"]
        most = GENERATOR_BUSY_ITSELF if load["judged"] else GENERATOR_BUSY_MAX
        if self.figure("generator") > 100 * most:
            return GENERATOR
        return DOUBT if load["doubts"] else ""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A ratio, and how it is judged."""

    ratio: Ratio
    why_not: str = ""  # the reason why it is not judged
    at_least: bool = False  # the generator limited the better server: the ratio is a bound

    @property
    def is_shown(self) -> bool:
        """Whether it shows a difference."""
        return self.ratio.is_shown and not self.why_not


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """All runs of servers that are compared with the first one."""

    servers: Sequence[str]
    works: Sequence[str]
    runs: Sequence[Run]
    seed: int = 1

    @property
    def first(self) -> str:
        """The server that the others are compared with."""
        return self.servers[0]

    @property
    def looks(self) -> int:
        """The number of ratios that are judged together."""
        return len(self.works) * (len(self.servers) - 1) * len(COMPARED)

    @property
    def confidence(self) -> float:
        """The confidence of each ratio, so that all hold together with 95 %."""
        return confidence_for(self.looks)

    def of(self, work: str, server: str, *, void: bool = False) -> list[Run]:
        """The runs of a server under a work: the valid ones, or the void ones."""
        return [r for r in self.runs if r.work == work and r.server == server and r.is_void == void]

    def by_round(self, work: str, server: str, name: str) -> dict[int, float]:
        """A figure in each round."""
        return {r.round: r.figure(name) for r in self.of(work, server)}

    def middle(self, work: str, server: str, name: str) -> float | None:
        """The median of a figure; None without valid runs.

        A run with few answers has no high percentiles. The runs that have one are no sample of all.
        """
        every = self.by_round(work, server, name).values()
        found = [v for v in every if v > 0]
        if not found or (name.startswith("p") and len(found) < len(every)):
            return None
        return median(found)

    def limit(self, work: str, server: str) -> str:
        """The reason that limited most of its runs; empty where the server was the limit."""
        found = [r.limit for r in self.of(work, server)]
        often = Counter(limit for limit in found if limit)
        if sum(often.values()) * 2 <= len(found):
            return ""
        return often.most_common(1)[0][0]

    def judged(self, name: str) -> dict[tuple[str, str], Judged]:
        """(work, server) -> its ratio to the first."""
        found = {}
        for work in self.works:
            base = self.by_round(work, self.first, name)
            for server in self.servers[1:]:
                mine = self.by_round(work, server, name)
                result = ratio(mine, base, confidence=self.confidence, seed=self.seed)
                if result:
                    found[work, server] = self._judge(work, server, FIGURES[name], result)
        return found

    def _judge(self, work: str, server: str, figure: Figure, result: Ratio) -> Judged:
        if not figure.is_bounded:
            return Judged(ratio=result)
        limits = {name: self.limit(work, name) for name in (server, self.first)}
        if doubtful := [name for name, limit in limits.items() if limit == DOUBT]:
            return Judged(ratio=result, why_not=f"{DOUBT} of {_both(doubtful)}")
        bound = [name for name, limit in limits.items() if limit == GENERATOR]
        if not bound:
            return Judged(ratio=result)
        ours_is_better = (result.value < 1) == figure.is_less_better
        if len(bound) == 1 and result.is_shown and ours_is_better == (bound[0] == server):
            return Judged(ratio=result, at_least=True)
        return Judged(ratio=result, why_not=f"{GENERATOR} of {_both(bound)}")


def _both(names: Sequence[str]) -> str:
    return "both" if len(names) == 2 else names[0]


def digits(value: float) -> int:
    """The number of decimals for a figure of this size."""
    return 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3


def figure_text(value: float | None) -> str:
    """A figure as text for tables."""
    return "-" if value is None else f"{value:,.{digits(value)}f}"


def ratio_text(value: float) -> str:
    """A ratio as text; beyond a thousand its digits have no meaning."""
    return f"{value:.2f}" if value < 1000 else "> 1,000"


def capital(text: str) -> str:
    """The title with a capital first letter; the rest is unchanged."""
    return text[0].upper() + text[1:]


def ratio_table(comparison: Comparison) -> Table:
    """Every ratio, and whether it shows a difference."""
    rows = []
    for name in COMPARED:
        for (work, server), each in comparison.judged(name).items():
            found = each.ratio
            said = "shown" if found.is_shown else "not shown"
            if each.at_least:
                said = "shown, and more: the generator was the limit"
            said = f"not judged: {each.why_not}" if each.why_not else said
            bounds = [ratio_text(bound) for bound in (found.low, found.high)]
            rows.append([FIGURES[name].title, work, server, ratio_text(found.value), *bounds, said])
    head = ["figure", "work", "server", f"times {comparison.first}", "low", "high", "difference"]
    return Table(name="ratios", title="Ratios", head=head, rows=rows)


def _table(comparison: Comparison, name: str, title: str, names: Sequence[str], note: str) -> Table:
    rows = []
    for work in comparison.works:
        for server in comparison.servers:
            row = [figure_text(comparison.middle(work, server, each)) for each in names]
            rows.append([work, server, *row])
    titles = [
        f"{FIGURES[n].title}{f', {FIGURES[n].unit}' if FIGURES[n].unit else ''}" for n in names
    ]
    return Table(name=name, title=title, head=["work", "server", *titles], rows=rows, note=note)


def figure_table(comparison: Comparison) -> Table:
    """The CPU and the response times of requests."""
    return _table(
        comparison,
        "compare",
        "Medians of the rounds",
        ("cpu", "rate", "p50", "p90", "p99", "p99.9"),
        "The load is a closed loop: a user sends a request after the answer before. Response times "
        "are from sending a request to the last byte of its answer. The time to connect is not "
        "included, except by `ab`.",
    )


def memory_table(comparison: Comparison) -> Table:
    """The memory, the CPU, and what was the limit."""
    table = _table(
        comparison,
        "resources",
        "Memory and CPU",
        ("idle", "memory", "server", "generator"),
        "Memory is the proportional set size of all processes, after the start and during "
        "the load. "
        "Peers are configured for thousands of connections, and some allocate memory for them at "
        "the start. CPU is a share of one core. Void runs had failed requests and do not count. "
        "Where the generator was the limit, or doubts its result, rates and response times are not "
        "the server's.",
    )
    rows = [
        [*row, str(len(comparison.of(row[0], row[1], void=True))), _limit(comparison, row)]
        for row in table.rows
    ]
    return Table(
        name=table.name,
        title=table.title,
        head=[*table.head, "void runs", "limit"],
        rows=rows,
        note=table.note,
    )


def _limit(comparison: Comparison, row: Sequence[str]) -> str:
    if not comparison.of(row[0], row[1]):
        return "-"
    return {GENERATOR: "generator", DOUBT: "doubted"}.get(comparison.limit(row[0], row[1]), "")


def findings(comparison: Comparison, name: str) -> list[str]:
    """A sentence for each work: differences shown, not shown, and not judged."""
    title, first = capital(FIGURES[name].title), comparison.first
    found = comparison.judged(name)
    sentences: list[str] = []
    if not found:
        return [f"{title}: not judged, because {NOWHERE}."]
    whole = len(found) == len(comparison.works) * (len(comparison.servers) - 1)
    if len(found) > 1 and whole and not any(e.why_not or e.is_shown for e in found.values()):
        return [f"{title}: no difference from {first} is shown for any server under any work."]
    for work in comparison.works:
        here = {server: each for (its, server), each in found.items() if its == work}
        parts = []
        if shown := {s: e for s, e in here.items() if e.is_shown}:
            listed = ", ".join(_times(server, each) for server, each in shown.items())
            parts.append(f"{listed} that of {first}")
        for each in here.values():
            if each.why_not or each.ratio.is_shown:
                continue
            alike = [s for s, e in here.items() if not e.why_not and not e.ratio.is_shown]
            parts.append(f"no difference shown between {first} and {', '.join(alike)}")
            if len(alike) == 1:
                parts[-1] += f" ({_bounds(each.ratio)})"
            break
        for why in dict.fromkeys(e.why_not for e in here.values() if e.why_not):
            whom = ", ".join(s for s, e in here.items() if e.why_not == why)
            parts.append(f"not judged for {whom}, as {why}")
        if few := [s for s in comparison.servers[1:] if s not in here]:
            parts.append(f"not judged for {', '.join(few)}, as {NOWHERE}")
        if parts:
            sentences.append(f"{title}, {work}: {'; '.join(parts)}.")
    return sentences


def _times(server: str, each: Judged) -> str:
    found = each.ratio
    far = ""
    if each.at_least:
        far = "at least " if found.value > 1 else "at most "
    value, low, high = (ratio_text(n) for n in (found.value, found.low, found.high))
    return f"{server} {far}{value} times ({low} to {high})"


def _bounds(found: Ratio) -> str:
    if math.isinf(found.high):
        return f"{found.value:.2f} times; too few rounds for an interval"
    return f"{ratio_text(found.value)} times, {ratio_text(found.low)} to {ratio_text(found.high)}"
