# SPDX-License-Identifier: MIT
"""Common parts of the repeated documents: their scale, one run, plain figures, checks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from weir_lab.experiments.experiment import Options, Step
from weir_lab.experiments.published import Row
from weir_lab.report.page import Section, Table
from weir_lab.rim import runs
from weir_lab.rim.runs import Work, World
from weir_lab.rim.store import Record, Store

START_S = 0.6  # expected time of a start, the checks and a stop
SECONDS_MIN = 2.0  # of a step of document e
PREFORK = "--workers 4 --threads 10"


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The scale of a repetition: all that the documents did, or a part."""

    requests: float  # part of the documents' numbers of requests
    repeats: int
    every: int  # of the concurrency levels of document d
    seconds: float  # of a step of document e
    pilot_s: float  # of the run that decides how long its steps warm up; 0: none

    def part(self, part: float) -> "Scale":
        """The same levels and repeats, with this part of the requests and of the time."""
        seconds = max(SECONDS_MIN, self.seconds * part)
        return replace(self, requests=self.requests * part, seconds=seconds)

    def of(self, requests: int, users: int) -> int:
        """This part of the requests, for this many users."""
        return max(users * 2, round(requests * self.requests))


FULL = Scale(requests=1.0, repeats=3, every=1, seconds=10, pilot_s=24)
QUICK = Scale(requests=0.1, repeats=3, every=2, seconds=2, pilot_s=0)
TINY = Scale(requests=0.02, repeats=1, every=5, seconds=1, pilot_s=0)


Perform = Callable[[Sequence[Step]], None]  # measures the unfinished steps


@dataclass(frozen=True, kw_only=True)
class Document:
    """A source document."""

    letter: str
    title: str
    measure: Callable[[World, Scale, Store, Perform], None]
    section: Callable[[Store, Options], Section]
    needs: str = "ab"


def all_at_once(
    steps: Callable[[World, Scale], list[Step]],
) -> Callable[[World, Scale, Store, Perform], None]:
    """The measurement of a document whose steps do not depend on earlier results."""
    return lambda here, scale, _store, do: do(steps(here, scale))


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
    """The finished records whose key begins with the prefix."""
    return [r for k, r in store.records.items() if k.startswith(prefix) and "error" not in r]


def middle(records: Sequence[Record], figure: Callable[[Record], float]) -> float | None:
    return median(map(figure, records)) if records else None


def rate_of(record: Record) -> float:
    return float(record["load"]["rate"])


def mean_ms_of(record: Record) -> float:
    return float(record["load"]["mean_s"]) * 1e3


def number_text(value: float | None, digits: int = 0) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def quotient_text(value: float | None, base: float | None) -> str:
    return "-" if value is None or not base else f"{value / base:.2f}"


def failed_at(store: Store, prefix: str) -> list[str]:
    """The errors of the runs whose key begins with the prefix."""
    return [
        str(r["error"]) for k, r in store.records.items() if k.startswith(prefix) and "error" in r
    ]


@dataclass(frozen=True, kw_only=True)
class Check:
    """A problem that a document reported, and the result of the same experiment here."""

    reported: str
    holds: bool | None  # whether it works here; None: not measured
    seen: str

    @property
    def word(self) -> str:
        """Its verdict for the table."""
        return {True: "works", False: "BROKEN", None: "not checked"}[self.holds]


def counts(records: Sequence[Record], reported: str) -> Check:
    """Whether the server counted exactly the answered requests, all with status 200."""
    answered = sum(r["load"]["requests"] for r in records)
    known = [r for r in records if r["counted"] is not None]
    if not known or len(known) < len(records):
        seen = f"{len(known)} of {len(records)} runs have a count of the server's"
        return Check(reported=reported, holds=None, seen=seen)
    counted = sum(r["counted"] for r in records)
    found = sum(r["counted_200"] for r in records)
    right = [r for r in records if r["counted"] == r["counted_200"] == r["load"]["requests"]]
    return Check(
        reported=reported,
        holds=len(right) == len(records),
        seen=f"{answered:,} answers; the server counted {counted:,} requests and {found:,} of "
        f"status 200; equal in {len(right)} of {len(records)} runs",
    )


def stays_open(records: Sequence[Record], reported: str) -> Check:
    """Whether every answer kept its connection, by the generator's count."""
    answered = sum(r["load"]["requests"] for r in records)
    kept_alive = sum(r["load"]["kept_alive"] for r in records)
    return Check(
        reported=reported,
        holds=kept_alive == answered if answered else None,
        seen=f"{kept_alive:,} of {answered:,} answers kept their connection",
    )


def survives(store: Store, prefixes: Sequence[str], reported: str) -> Check:
    """Whether no connection was reset and no request failed; ab ends at the first reset."""
    records = [r for prefix in prefixes for r in kept(store, prefix)]
    ended = [why for prefix in prefixes for why in failed_at(store, prefix)]
    answered = sum(r["load"]["requests"] for r in records)
    failed = sum(r["load"]["failed"] for r in records)
    if not records and not ended:
        return Check(reported=reported, holds=None, seen="nothing was measured")
    at = " and ".join(f"{n:,}" for n in sorted({r["users"] for r in records}))
    seen = f"at {at} connections {answered:,} answers, {failed:,} failed" if records else ""
    if ended:
        seen = "; ".join([*([seen] if seen else []), f"{len(ended)} runs ended early: {ended[0]}"])
    return Check(reported=reported, holds=not failed and not ended, seen=seen)


def checked(name: str, checks: Sequence[Check]) -> tuple[str, Table]:
    """The sentence for the verdict, and the table of the checks."""
    works = sum(c.holds is True for c in checks)
    broken = [c.reported for c in checks if c.holds is False]
    text = f"What the document reported as broken or hard: {works} of {len(checks)} work here"
    text += f"; BROKEN: {'; '.join(broken)}." if broken else "."
    table = Table(
        name=f"{name}-checks",
        title="What the document reported as broken or hard",
        head=["the document", "here", "seen"],
        rows=[[c.reported, c.word, c.seen] for c in checks],
    )
    return text, table


def health(records: Sequence[Record], what: str) -> str:
    """A sentence: whether all requests were answered, and counted."""
    answered = sum(r["load"]["requests"] for r in records)
    failed = sum(r["load"]["failed"] for r in records)
    if not answered:
        return f"{what}: nothing was measured."
    known = [r for r in records if r["counted"] is not None]
    if not known:
        return f"{what}: {answered:,} requests answered, {failed:,} failed."
    apart = sum(abs(r["counted"] - r["load"]["requests"]) for r in known)
    count = "the server counted every one of them"
    if apart:
        count = f"the server's count is {apart} apart"
    return f"{what}: {answered:,} requests answered, {failed:,} failed, and {count}."


def contradictions(rows: Sequence[Row]) -> list[str]:
    found = [row.contradiction for row in rows if row.contradiction]
    return [f"By Little's law (N = X R) the document contradicts itself: {f}." for f in found]
