# SPDX-License-Identifier: MIT
"""What the repeated documents have in common: how much is done, one run, plain figures of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from weir_lab.commands.experiment import Options, Step
from weir_lab.commands.published import Row
from weir_lab.report.page import Section
from weir_lab.rim import runs
from weir_lab.rim.runs import Work, World
from weir_lab.rim.store import Record, Store

START_S = 0.6  # a start, the checks and a stop
PREFORK = "--workers 4 --threads 10"


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How much is done: all that the documents did, or less."""

    requests: float  # part of the documents' numbers of requests
    repeats: int
    every: int  # of the concurrency levels of document d
    seconds: float  # of a step of document e

    def of(self, requests: int, users: int) -> int:
        """So many requests, for so many users."""
        return max(users * 2, round(requests * self.requests))


FULL = Scale(requests=1.0, repeats=3, every=1, seconds=10)
QUICK = Scale(requests=0.1, repeats=3, every=2, seconds=2)
TINY = Scale(requests=0.02, repeats=1, every=5, seconds=1)


@dataclass(frozen=True, kw_only=True)
class Document:
    """A source document."""

    letter: str
    title: str
    steps: Callable[[World, Scale], list[Step]]
    section: Callable[[Store, Options], Section]
    needs: str = "ab"


def one_run(
    here: World,
    scale: Scale,
    key: str,
    model: str,
    work: Work,
    requests: int,
    *,
    options: str = "",
    rate: float = 5000,
) -> Step:
    generate = runs.generator("ab", here.weir)
    amount = scale.of(requests, work.users)

    def measure() -> Record:
        server = runs.weir(here, model, options)
        return runs.run(here, server, work, {"requests": amount}, generate)

    return Step(key=key, seconds=START_S + amount / rate, measure=measure)


def kept(store: Store, prefix: str) -> list[Record]:
    """The finished records whose key begins so."""
    return [r for k, r in store.records.items() if k.startswith(prefix) and "error" not in r]


def middle(records: Sequence[Record], figure: Callable[[Record], float]) -> float | None:
    return median(map(figure, records)) if records else None


def rate_of(record: Record) -> float:
    return float(record["load"]["rate"])


def mean_ms_of(record: Record) -> float:
    return float(record["load"]["mean_s"]) * 1e3


def shown(value: float | None, digits: int = 0) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def times(value: float | None, base: float | None) -> str:
    return "-" if value is None or not base else f"{value / base:.2f}"


def troubles(records: Sequence[Record]) -> tuple[int, int, int | None]:
    """Requests answered, those that failed, and how far apart the server's count is, if known."""
    answered = sum(r["load"]["requests"] for r in records)
    failed = sum(r["load"]["failed"] for r in records)
    known = [r for r in records if r["counted"] is not None]
    apart = sum(abs(r["counted"] - r["load"]["requests"]) for r in known) if known else None
    return answered, failed, apart


def health(records: Sequence[Record], what: str) -> str:
    """What the documents reported as broken, shown to work or not."""
    answered, failed, apart = troubles(records)
    if not answered:
        return f"{what}: nothing was measured."
    counts = (
        "the server counted every one of them"
        if apart == 0
        else f"the server's count is {apart} apart"
    )
    if apart is None:
        return f"{what}: {answered:,} requests answered, {failed:,} failed."
    return f"{what}: {answered:,} requests answered, {failed:,} failed, and {counts}."


def contradictions(rows: Sequence[Row]) -> list[str]:
    found = [row.contradiction for row in rows if row.contradiction]
    return [f"By Little's law (N = X R) the document contradicts itself: {f}." for f in found]
