# SPDX-License-Identifier: MIT
"""Servers beside each other: what of each run is judged, and the pictures and tables of it.

A run whose requests failed counts for nothing. One in which the generator was the limit tells
what a request costs the server, but not how fast it is: of rates and response times it is a bound.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean, median
from typing import Any

from weir_lab.analysis.ratio import Ratio, confidence_for, ratio
from weir_lab.capacity.sweep import GENERATOR_BUSY_MAX
from weir_lab.report import distribution
from weir_lab.report.chart import Chart, Picture
from weir_lab.report.page import Table

Record = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure of a run."""

    title: str
    unit: str
    is_less_better: bool = True
    is_bounded: bool = False  # by the generator, where that is the slower one

    @property
    def label(self) -> str:
        """With its unit."""
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
        """Whether it says nothing at all."""
        return bool(self.record["load"]["failed"]) or not self.record["load"]["requests"]

    def figure(self, name: str) -> float:
        """A figure; 0 where it was not measured."""
        load = self.record["load"]
        answered = max(1, load["requests"])
        cpu_s = load["server_demand_s"] or self.record["server_cpu_s"] / answered
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
    def is_generator_bound(self) -> bool:
        """Whether the generator was the slower one."""
        busy = self.figure("generator") > 100 * GENERATOR_BUSY_MAX
        return busy or bool(self.record["load"]["doubts"])


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A ratio, and what may be said of it."""

    ratio: Ratio
    why_not: str = ""  # it is not judged
    at_least: bool = False  # the better one was held up by the generator: it is better still

    @property
    def is_shown(self) -> bool:
        """Whether it shows a difference."""
        return self.ratio.is_shown and not self.why_not


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """All runs of servers beside the first of them."""

    servers: Sequence[str]
    works: Sequence[str]
    runs: Sequence[Run]
    seed: int = 1

    @property
    def first(self) -> str:
        """The one that the others are compared with."""
        return self.servers[0]

    @property
    def looks(self) -> int:
        """How many ratios are judged together."""
        return len(self.works) * (len(self.servers) - 1) * len(COMPARED)

    @property
    def confidence(self) -> float:
        """Of each of them, so that all hold with 95 %."""
        return confidence_for(self.looks)

    def of(self, work: str, server: str, *, void: bool = False) -> list[Run]:
        """The runs of a server under a work: those that count, or those that do not."""
        return [r for r in self.runs if r.work == work and r.server == server and r.is_void == void]

    def by_round(self, work: str, server: str, name: str) -> dict[int, float]:
        """A figure in each round."""
        return {r.round: r.figure(name) for r in self.of(work, server)}

    def middle(self, work: str, server: str, name: str) -> float | None:
        """Its median; None where there is none."""
        found = [v for v in self.by_round(work, server, name).values() if v > 0]
        return median(found) if found else None

    def is_generator_bound(self, work: str, server: str) -> bool:
        """Whether most runs were."""
        found = [r.is_generator_bound for r in self.of(work, server)]
        return sum(found) * 2 > len(found)

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
        ours = self.is_generator_bound(work, server)
        theirs = self.is_generator_bound(work, self.first)
        if not ours and not theirs:
            return Judged(ratio=result)
        if ours and theirs:
            return Judged(ratio=result, why_not="the generator was the limit of both")
        ours_is_better = (result.value < 1) == figure.is_less_better
        if result.is_shown and ours_is_better == ours:
            return Judged(ratio=result, at_least=True)
        slower = server if ours else self.first
        return Judged(ratio=result, why_not=f"the generator was the limit of {slower}")


def digits(value: float) -> int:
    """How many decimals a figure of this size is told with."""
    return 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3


def told(value: float | None) -> str:
    """A figure as tables have it."""
    return "-" if value is None else f"{value:,.{digits(value)}f}"


def times(value: float) -> str:
    """A ratio; beyond a thousand its digits say nothing."""
    return f"{value:.2f}" if value < 1000 else "> 1,000"


def capital(text: str) -> str:
    """A title begins with a capital, and the rest of it stays as it is."""
    return text[0].upper() + text[1:]


def ratio_picture(comparison: Comparison, name: str) -> Picture | None:
    """Every ratio that is judged, with its interval."""
    found = {
        key: each.ratio
        for key, each in comparison.judged(name).items()
        if not each.why_not and math.isfinite(each.ratio.high) and each.ratio.low > 0
    }
    if not found:
        return None
    first, title = comparison.first, capital(FIGURES[name].title)
    chart = Chart(
        name=f"ratio-{name}",
        title=f"{title}, as a multiple of {first}'s",
        x=f"times {first}",
        y="",
        log_x=True,
        size=(7.2, 0.9 + 0.24 * len(found)),
    )
    chart.intervals(
        [f"{server}, {work}" for work, server in found],
        [r.value for r in found.values()],
        [r.low for r in found.values()],
        [r.high for r in found.values()],
        1.0,
    )
    better = "left" if FIGURES[name].is_less_better else "right"
    return chart.finish(
        f"Further to the {better} is better. Squares: a difference is shown. Circles: none is. "
        "All intervals of the report hold together with 95 % confidence.",
        legend=False,
        from_zero=False,
    )


def figure_picture(comparison: Comparison, name: str) -> Picture | None:
    """The figure itself: every server, each work a mark with its interval."""
    figure = FIGURES[name]
    if not any(comparison.middle(w, s, name) for w in comparison.works for s in comparison.servers):
        return None
    works = len(comparison.works)
    chart = Chart(
        name=f"figure-{name}",
        title=capital(figure.title),
        x=figure.label,
        y="",
        size=(7.2, 1.1 + (0.15 * works + 0.14) * len(comparison.servers)),
    )
    for number, work in enumerate(comparison.works):
        rows = []
        for place, server in enumerate(comparison.servers):
            found = [v for v in comparison.by_round(work, server, name).values() if v > 0]
            if not found:
                continue
            whole = ratio(dict(enumerate(found)), dict.fromkeys(range(len(found)), 1.0))
            if whole and math.isfinite(whole.high):
                row = (whole.value, whole.low, whole.high)
            else:
                row = (geometric_mean(found), min(found), max(found))
            shift = (number - (works - 1) / 2) * 0.7 / works
            rows.append((place + shift, *row, server))
        if rows:
            places, values, lows, highs, names = zip(*rows, strict=True)
            chart.whiskers(work, places, values, lows, highs, number, names)
    chart.rows_named(comparison.servers)
    better = "Less" if figure.is_less_better else "More"
    bounded = " Where the generator was the limit it is a bound: see the CPU's table."
    return chart.finish(
        f"{better} is better. Geometric means of the rounds, each with its own 95 % interval; "
        f"to compare two servers look at their ratio.{bounded if figure.is_bounded else ''}"
    )


def percentile_pictures(comparison: Comparison) -> list[Picture]:
    """Every percentile of each server, one picture for each work."""
    found = []
    for number, work in enumerate(comparison.works):
        blobs = {
            server: [r.record["load"].get("histogram", "") for r in comparison.of(work, server)]
            for server in comparison.servers
        }
        picture = distribution.percentiles(
            f"percentiles-{number + 1}", f"Response times, {work}", blobs
        )
        if picture:
            found.append(picture)
    return found


def load_pictures(comparison: Comparison) -> list[Picture]:
    """Response time against throughput, where works differ by nothing but their connections."""
    kinds: dict[tuple[bool, str], dict[int, str]] = {}
    for work in comparison.works:
        runs = [r for r in comparison.runs if r.work == work]
        if runs:
            record = runs[0].record
            kinds.setdefault((record["keep_alive"], record["path"]), {})[record["users"]] = work
    found = []
    for number, ((kept, path), works) in enumerate(kinds.items()):
        if len(works) < 2:
            continue
        how = "keep-alive" if kept else "a connection for each request"
        chart = Chart(
            name=f"load-{number + 1}",
            title=f"Response time against throughput, {path.strip('/')}, {how}",
            x="requests/s",
            y="99th percentile, ms",
            log_y=True,
        )
        for server in comparison.servers:
            style = chart.style()
            points = [
                (rate, tail)
                for users in sorted(works)
                if (rate := comparison.middle(works[users], server, "rate"))
                and (tail := comparison.middle(works[users], server, "p99"))
            ]
            if points:
                rates, tails = zip(*points, strict=True)
                chart.line(server, rates, tails, style, marked=True)
        users = ", ".join(f"{n:,}" for n in sorted(works))
        found.append(
            chart.finish(
                f"A mark for each number of connections: {users}. Further to the right and lower "
                "is better."
            )
        )
    return found


def session_picture(comparison: Comparison) -> Picture | None:
    """What a request cost in each round, by the clock: whether the machine had moods."""
    began = [r.record["began_unix_s"] for r in comparison.runs]
    if not began:
        return None
    chart = Chart(
        name="session",
        title="Round by round",
        x="minutes since the first round",
        y="CPU per request, times the median of its kind",
        log_y=True,
    )
    for server in comparison.servers:
        style = chart.style()
        marks = [
            ((run.record["began_unix_s"] - min(began)) / 60, run.figure("cpu") / middle)
            for work in comparison.works
            if (middle := comparison.middle(work, server, "cpu"))
            for run in comparison.of(work, server)
            if run.figure("cpu") > 0
        ]
        if marks:
            minutes, times = zip(*marks, strict=True)
            chart.points(server, minutes, times, style)
    return chart.finish(
        "Each mark is one run against a freshly started server, beside the median of the same "
        "server and work. A level row: the machine was steady. What moves all servers at once is "
        "the machine, and ratios within a round leave it out."
    )


def busy_picture(comparison: Comparison) -> Picture | None:
    """How busy server and generator were."""
    chart = Chart(
        name="busy",
        title="CPU of server and generator",
        x="% of one core",
        y="",
        size=(7.2, 1.3 + 0.22 * len(comparison.servers) * len(comparison.works)),
    )
    names = [(w, s) for w in comparison.works for s in comparison.servers]
    for style, (name, label) in enumerate({"server": "server", "generator": "generator"}.items()):
        rows = [
            (place, value, f"{server}, {work}")
            for place, (work, server) in enumerate(names)
            if (value := comparison.middle(work, server, name))
        ]
        if not rows:
            return None
        places, values, labels = zip(*rows, strict=True)
        chart.whiskers(label, places, values, values, values, style, labels)
    chart.rows_named([f"{server}, {work}" for work, server in names])
    chart.mark("generator's limit", 100 * GENERATOR_BUSY_MAX)
    return chart.finish(
        "Medians of the rounds. Where the generator reaches its limit and the server does not "
        "reach 100 %, rates are the generator's."
    )


def ratio_table(comparison: Comparison) -> Table:
    """Every ratio with what it shows."""
    rows = []
    for name in COMPARED:
        for (work, server), each in comparison.judged(name).items():
            found = each.ratio
            said = "shown" if found.is_shown else "not shown"
            if each.at_least:
                said = "shown, and more: the generator was the limit"
            said = f"not judged: {each.why_not}" if each.why_not else said
            bounds = [times(bound) for bound in (found.low, found.high)]
            rows.append([FIGURES[name].title, work, server, times(found.value), *bounds, said])
    head = ["figure", "work", "server", f"times {comparison.first}", "low", "high", "difference"]
    return Table(name="ratios", title="Ratios", head=head, rows=rows)


def _table(comparison: Comparison, name: str, title: str, names: Sequence[str], note: str) -> Table:
    rows = []
    for work in comparison.works:
        for server in comparison.servers:
            row = [told(comparison.middle(work, server, each)) for each in names]
            rows.append([work, server, *row])
    titles = [
        f"{FIGURES[n].title}{f', {FIGURES[n].unit}' if FIGURES[n].unit else ''}" for n in names
    ]
    return Table(name=name, title=title, head=["work", "server", *titles], rows=rows, note=note)


def figure_table(comparison: Comparison) -> Table:
    """What a request costs and how long it takes."""
    return _table(
        comparison,
        "compare",
        "Medians of the rounds",
        ("cpu", "rate", "p50", "p90", "p99", "p99.9"),
        "Percentiles are of a closed loop: from sending a request to the last byte of its answer, "
        "with every user waiting for the one before. With a connection for each request, making "
        "it comes before that (`ab` counts it in).",
    )


def memory_table(comparison: Comparison) -> Table:
    """What it weighs, and who was the limit."""
    table = _table(
        comparison,
        "resources",
        "Memory and CPU",
        ("idle", "memory", "server", "generator"),
        "Memory is the proportional set size of all processes: freshly started, and amid the load. "
        "CPU is a share of one core. Void runs had requests that failed; they count for nothing "
        "else here.",
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
    return "generator" if comparison.is_generator_bound(row[0], row[1]) else ""


def findings(comparison: Comparison, name: str) -> list[str]:
    """A sentence for each work: who differs by how much, who is not shown to, who is not judged."""
    title, first = capital(FIGURES[name].title), comparison.first
    found = comparison.judged(name)
    sentences: list[str] = []
    if len(found) > 1 and not any(e.why_not or e.ratio.is_shown for e in found.values()):
        return [f"{title}: no difference from {first} shown for any, under any work."]
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
        if parts:
            sentences.append(f"{title}, {work}: {'; '.join(parts)}.")
    return sentences


def _times(server: str, each: Judged) -> str:
    found = each.ratio
    far = ""
    if each.at_least:
        far = "at least " if found.value > 1 else "at most "
    return f"{server} {far}{times(found.value)} times ({times(found.low)} to {times(found.high)})"


def _bounds(found: Ratio) -> str:
    if math.isinf(found.high):
        return f"{found.value:.2f} times; too few rounds for an interval"
    return f"{times(found.value)} times, {times(found.low)} to {times(found.high)}"
