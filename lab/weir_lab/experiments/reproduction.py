# SPDX-License-Identifier: MIT
"""Common parts of the repeated documents: their scale, one run, plain figures, checks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import geometric_mean, median

from weir_lab.analysis.ratio import ROUNDS_MIN, Ratio, confidence_for, ratio
from weir_lab.experiments.experiment import Options, Step
from weir_lab.experiments.published import Row
from weir_lab.report.page import Fold, Grade, Headline, Mark, Number, Section, Table
from weir_lab.rim import runs
from weir_lab.rim.runs import Work, World
from weir_lab.rim.store import Record, Store

START_S = 0.6  # expected time of a start, the checks and a stop
SECONDS_MIN = 2.0  # of a step of document e
WORDS = {True: "works", False: "does not work", None: "open"}
CHECKS = "-checks"  # ends the name of a document's table of points
PREFORK = "--workers 4 --threads 10"


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The scale of a repetition: all that the documents did, or a part."""

    requests: float  # part of the documents' numbers of requests
    repeats: int
    every: int  # of the concurrency levels of document d
    seconds: float  # of a step of document e
    pilot_s: float  # of the run that decides how long its steps warm up; 0: none
    single_repeats: int = 3  # of documents b and e, which need no interval
    curve: bool = True  # whether document d is measured at more than one level

    def part(self, part: float) -> "Scale":
        """The same levels and repeats, with this part of the requests and of the time."""
        seconds = max(SECONDS_MIN, self.seconds * part)
        return replace(self, requests=self.requests * part, seconds=seconds)

    def of(self, requests: int, users: int) -> int:
        """This part of the requests, for this many users."""
        return max(users * 2, round(requests * self.requests))


FULL = Scale(requests=1.0, repeats=3, every=1, seconds=10, pilot_s=24)
QUICK = Scale(requests=0.1, repeats=3, every=2, seconds=2, pilot_s=0)
TOUR = Scale(requests=0.2, repeats=4, every=5, seconds=1, pilot_s=0, single_repeats=1, curve=False)
TINY = Scale(requests=0.02, repeats=1, every=5, seconds=1, pilot_s=0, single_repeats=1)


Perform = Callable[[Sequence[Step]], None]  # measures the unfinished steps


@dataclass(frozen=True, kw_only=True)
class Document:
    """A source document."""

    letter: str
    title: str
    measure: Callable[[World, Scale, Store, Perform], None]
    section: Callable[[Store, Options], Section]
    expected_s: Callable[[World, Scale], float]  # about
    needs: str = "ab"


def planned(
    *,
    letter: str,
    title: str,
    steps: Callable[[World, Scale], list[Step]],
    section: Callable[[Store, Options], Section],
) -> Document:
    """A document whose steps do not depend on earlier results."""
    return Document(
        measure=lambda here, scale, _store, do: do(steps(here, scale)),
        expected_s=lambda here, scale: sum(step.seconds for step in steps(here, scale)),
        letter=letter,
        title=title,
        section=section,
    )


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
    generator: str = "ab",
) -> Step:
    generate = runs.generator(generator, here.weir)
    amount = scale.of(requests, work.users)

    def measure() -> Record:
        server = runs.weir(here, model, options)
        return runs.run(here, server, work, {"requests": amount}, generate)

    return Step(key=key, seconds=START_S + amount / rate, measure=measure)


def kept(store: Store, prefix: str) -> list[Record]:
    """The finished records whose key begins with the prefix."""
    return [r for k, r in store.records.items() if k.startswith(prefix) and "error" not in r]


def every(store: Store, prefix: str) -> list[Record]:
    """The same, with those of failed runs."""
    return [r for k, r in store.records.items() if k.startswith(prefix)]


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
    holds: bool | None  # whether it works here; None: open, the measurements do not show it
    seen: str

    @property
    def word(self) -> str:
        """Its outcome for the table."""
        return WORDS[self.holds]


def by_round(store: Store, prefix: str) -> dict[int, float]:
    """The throughput in each round of the runs whose key is the prefix and a number."""
    return {
        int(key.removeprefix(prefix)): rate_of(record)
        for key, record in store.records.items()
        if key.startswith(prefix) and "error" not in record and key.removeprefix(prefix).isdigit()
    }


Rounds = Mapping[int, float]


def over_all(parts: Sequence[Rounds]) -> dict[int, float]:
    """The geometric mean of several series in each round that all of them have."""
    if not parts:
        return {}
    rounds = set.intersection(*(set(part) for part in parts))
    return {n: geometric_mean([part[n] for part in parts]) for n in sorted(rounds)}


def is_faster(
    pairs: Mapping[str, tuple[Rounds, Rounds]], reported: str, what: str
) -> tuple[Check, Ratio | None]:
    """Whether the first of each pair is faster than the second: shown, the opposite shown, or open.

    All levels together decide. A single level counts only where its own interval, widened for the
    number of levels, lies wholly on the wrong side.
    """
    confidence = confidence_for(len(pairs) + 1)
    whole = ratio(
        over_all([ours for ours, _ in pairs.values()]),
        over_all([theirs for _, theirs in pairs.values()]),
        confidence=confidence,
    )
    if whole is None:
        return Check(reported=reported, holds=None, seen="not measured"), None
    if whole.rounds < ROUNDS_MIN:
        rounds = "1 round is" if whole.rounds == 1 else f"{whole.rounds} rounds are"
        seen = f"{what} {whole.value:.2f} times; {rounds} too few to show it"
        return Check(reported=reported, holds=None, seen=seen), whole
    seen = f"{what} {whole.value:.2f} times ({whole.low:.2f} to {whole.high:.2f})"
    levels = {
        name: ratio(ours, theirs, confidence=confidence) for name, (ours, theirs) in pairs.items()
    }
    slower = [name for name, found in levels.items() if found and found.high < 1]
    if whole.high < 1 or slower:
        return Check(reported=reported, holds=False, seen=_with_levels(seen, slower)), whole
    if whole.low > 1:
        return Check(reported=reported, holds=True, seen=seen), whole
    seen += f"; {whole.rounds} rounds do not show a difference, more are needed"
    return Check(reported=reported, holds=None, seen=seen), whole


def _with_levels(seen: str, slower: Sequence[str]) -> str:
    return f"{seen}; slower at {', '.join(slower)}" if slower else seen


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


def mark(checks: Sequence[Check]) -> Mark:
    """Whether a document's problems occur here: works, does not work, or open."""
    works = [c for c in checks if c.holds is True]
    broken = [c for c in checks if c.holds is False]
    undecided = [c for c in checks if c.holds is None]
    count = f"{len(works)} of {len(checks)} points work here"
    if broken:
        why = f"{count}. This one does not: {broken[0].reported} ({broken[0].seen})."
        return Mark(grade=Grade.RED, word="Does not work", reason=why)
    if undecided or not checks:
        why = f"{count}."
        if undecided:
            why += f" Open: {undecided[0].reported} ({undecided[0].seen})."
        return Mark(grade=Grade.YELLOW, word="Open", reason=why)
    said = (
        "The only point works here." if len(works) == 1 else f"All {len(works)} points work here."
    )
    return Mark(grade=Grade.GREEN, word="Works", reason=said)


def checked(name: str, checks: Sequence[Check]) -> Fold:
    """The problems that a document reported, each with what was seen here."""
    outcomes = [c.word for c in checks]
    parts = [f"{n} {word}" for word in WORDS.values() if (n := outcomes.count(word))]
    table = Table(
        name=f"{name}{CHECKS}",
        title="What the document reported, and what was seen here",
        head=["the document", "here", "seen"],
        rows=[[c.reported, c.word, c.seen] for c in checks],
    )
    return Fold(
        title="Point by point",
        findings=[f"Of {len(checks)}: {', '.join(parts)}."],
        tables=[table],
    )


def outcomes(documents: Sequence[Section]) -> Headline:
    """The outcome of several documents: a sentence, the worst mark, and the number of points."""
    grades = [d.headline.mark.grade for d in documents if d.headline.mark]
    works, broken = grades.count(Grade.GREEN), grades.count(Grade.RED)
    undecided = len(grades) - works - broken
    said = f"{works} of {len(grades)} source documents work here in every point."
    reasons = [d.headline.mark for d in documents if d.headline.mark]
    worst = mark([])
    if broken:
        said += f" {broken} {'does' if broken == 1 else 'do'} not work in some point."
        worst = next(m for m in reasons if m.grade is Grade.RED)
    elif undecided:
        said += f" {undecided} {'is' if undecided == 1 else 'are'} open in some point."
        worst = next(m for m in reasons if m.grade is Grade.YELLOW)
    elif reasons:
        worst = Mark(grade=Grade.GREEN, word="Works", reason="Every point was shown to work.")
    points = [
        row[1]
        for document in documents
        for table in document.tables
        if table.name.endswith(CHECKS)
        for row in table.rows
    ]
    return Headline(
        sentence=said,
        mark=worst,
        numbers=[
            Number(name=word.capitalize(), value=str(points.count(word)), unit="points")
            for word in WORDS.values()
        ],
    )


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
