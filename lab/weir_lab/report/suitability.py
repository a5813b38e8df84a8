# SPDX-License-Identifier: MIT
"""The server that suits a machine: the least CPU, then the least memory among equals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from weir_lab.analysis.ratio import Ratio, confidence_for, ratio
from weir_lab.report.comparison import Comparison, figure_text, ratio_text
from weir_lab.report.page import Number, Table
from weir_lab.report.spans import Span

MEMORY_CLEARLY = 1.25  # a smaller factor in memory does not decide


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One server over all works."""

    name: str
    cpu_us: float  # geometric mean over the works
    memory_mib: float  # the largest under any work
    p99_ms: float | None  # the largest under any work; None: not measured under every work
    ratio: Ratio | None = None  # its CPU over that of the cheapest server, over all works
    uses_more_cpu: bool = False  # shown to use more CPU under one work at least


@dataclass(frozen=True, kw_only=True)
class Advice:
    """The server that suits, and the other candidates."""

    best: Candidate
    cheapest: Candidate
    others: Sequence[Candidate]  # cheapest first
    works: int
    left_out: Sequence[str]  # not measured under every work

    @property
    def equals(self) -> list[Candidate]:
        """The candidates that are not shown to use more CPU."""
        return [c for c in self.others if not c.uses_more_cpu]


def _over_all(comparison: Comparison, name: str) -> dict[int, float]:
    """CPU by round, as the geometric mean over the works; only rounds that all works have."""
    figures = [comparison.by_round(work, name, "cpu") for work in comparison.works]
    rounds = set.intersection(*(set(f) for f in figures))
    return {n: geometric_mean([max(f[n], 1e-9) for f in figures]) for n in rounds}


def _worst_p99_ms(comparison: Comparison, name: str) -> float | None:
    """The largest 99th percentile. Too few answers have none, and the largest may be theirs."""
    found = [comparison.middle(work, name, "p99") for work in comparison.works]
    measured = [each for each in found if each is not None]
    return max(measured) if len(measured) == len(found) else None


def advise(comparison: Comparison, names: Sequence[str]) -> Advice | None:
    """Chooses the server that suits; None where none was measured under every work."""
    works = comparison.works
    whole = [
        n for n in names if all(comparison.middle(work, n, "cpu") is not None for work in works)
    ]
    if not whole:
        return None

    def middles(name: str, figure: str) -> list[float]:
        return [comparison.middle(work, name, figure) or 0.0 for work in works]

    cost = {n: geometric_mean([max(v, 1e-9) for v in middles(n, "cpu")]) for n in whole}
    ordered = sorted(whole, key=lambda n: cost[n])
    cheapest = ordered[0]
    base = _over_all(comparison, cheapest)
    confidence = confidence_for((len(works) + 1) * max(1, len(whole) - 1))
    candidates = []
    for name in ordered:
        over_all = ratio(
            _over_all(comparison, name), base, confidence=confidence, seed=comparison.seed
        )
        by_work = [
            ratio(
                comparison.by_round(work, name, "cpu"),
                comparison.by_round(work, cheapest, "cpu"),
                confidence=confidence,
                seed=comparison.seed,
            )
            for work in works
        ]
        candidates.append(
            Candidate(
                name=name,
                cpu_us=cost[name],
                memory_mib=max(middles(name, "memory")),
                p99_ms=_worst_p99_ms(comparison, name),
                ratio=over_all if name != cheapest else None,
                uses_more_cpu=name != cheapest
                and any(r.low > 1 for r in [over_all, *by_work] if r is not None),
            )
        )
    equal = [c for c in candidates if not c.uses_more_cpu]
    lightest = min(equal, key=lambda c: c.memory_mib)
    best = candidates[0]
    if 0 < lightest.memory_mib * MEMORY_CLEARLY < best.memory_mib:
        best = lightest
    return Advice(
        best=best,
        cheapest=candidates[0],
        others=[c for c in candidates if c is not best],
        works=len(works),
        left_out=[n for n in names if n not in whole],
    )


def sentences(advice: Advice, words: Mapping[str, str], where: str) -> list[str]:
    """Sentences: the server that suits, and why."""
    best = advice.best
    over = "" if advice.works == 1 else f", the mean over {advice.works} works"
    why = f"the least of the {len(advice.others) + 1} models measured"
    if best is not advice.cheapest:
        why = (
            f"not shown to use more CPU than {advice.cheapest.name}, and the least memory "
            "of those servers"
        )
    found = [
        f"{best.name} suits this machine best ({where}). It uses {figure_text(best.cpu_us)} µs of "
        f"CPU per request{over}, {why}. It uses {figure_text(best.memory_mib)} MiB of memory "
        "under load." + _in_words(best.name, words)
    ]
    if advice.equals:
        found.append(f"No difference in CPU is shown to {_listed(advice.equals)}.")
    if costlier := [c for c in advice.others if c.uses_more_cpu]:
        found.append(f"Shown to use more CPU under at least one work: {_listed(costlier)}.")
    if advice.left_out:
        found.append(f"Not judged, because a work has no valid run: {', '.join(advice.left_out)}.")
    return found


def _listed(candidates: Sequence[Candidate]) -> str:
    return ", ".join(
        f"{each.name} ({figure_text(each.cpu_us)} µs, {figure_text(each.memory_mib)} MiB)"
        for each in candidates
    )


def _in_words(name: str, words: Mapping[str, str]) -> str:
    return f" It is good for {words[name].rstrip('.')}." if name in words else ""


def ranking_sentence(advice: Advice) -> str:
    """What the ranked table shows, in a sentence or two."""
    cheapest = advice.cheapest
    others = sorted((c for c in [advice.best, *advice.others] if c is not cheapest), key=_cost)
    if not others:
        return f"{cheapest.name} uses {figure_text(cheapest.cpu_us)} µs of CPU per request."
    equal = [c.name for c in others if not c.uses_more_cpu]
    dear = [c for c in others if c.uses_more_cpu]
    if not dear:
        names = ", ".join([cheapest.name, *equal[:-1]])
        return f"No difference in CPU per request is shown between {names} and {equal[-1]}."
    said = f"{cheapest.name} uses the least CPU per request: {figure_text(cheapest.cpu_us)} µs" + (
        f", without a shown difference to {' and '.join(equal)}. " if equal else ". "
    )
    times = ", ".join(
        f"{c.name} {c.ratio.value if c.ratio else c.cpu_us / cheapest.cpu_us:.2f} times as much"
        for c in dear
    )
    return f"{said}More is shown for the rest: {times}."


def _cost(candidate: Candidate) -> float:
    return candidate.cpu_us


def numbers(cheapest: Candidate) -> list[Number]:
    """The numbers of the first screen: those of the cheapest server."""
    few = "too few answers under at least one work"
    return [
        Number(
            name=f"{figure}, {cheapest.name}",
            value=figure_text(value),
            unit=unit if value is not None else "",
            note="" if value is not None else few,
        )
        for figure, value, unit in (
            ("CPU per request", cheapest.cpu_us, "µs"),
            ("Memory under load", cheapest.memory_mib, "MiB"),
            ("99th percentile, worst work", cheapest.p99_ms, "ms"),
        )
    ]


def table(advice: Advice, words: Mapping[str, str]) -> Table:
    """All servers, the cheapest first, with drawn intervals; what each model is good for."""
    rows, spans = [], []
    for each in sorted([advice.best, *advice.others], key=_cost):
        times, span = "1", Span(low=1.0, value=1.0, high=1.0)
        if each.ratio:
            times = f"{each.ratio.value:.2f} ({ratio_text(each.ratio.low)} to "
            times += f"{ratio_text(each.ratio.high)})"
            span = Span(
                low=each.ratio.low,
                value=each.ratio.value,
                high=each.ratio.high,
                shown=each.uses_more_cpu,
            )
        said = "more CPU" if each.uses_more_cpu else "equal"
        if each is advice.cheapest:
            said = "least CPU"
        if each is advice.best is not advice.cheapest:
            said = "equal, less memory"
        rows.append(
            [
                each.name,
                times,
                figure_text(each.cpu_us),
                figure_text(each.memory_mib),
                figure_text(each.p99_ms),
                said,
                words.get(each.name, ""),
            ]
        )
        spans.append(span)
    has_words = any(row[-1] for row in rows)
    head = ["server", "times (95 %)", "CPU, µs", "memory, MiB", "p99, ms", "CPU", "is good for"]
    return Table(
        name="ranking",
        title="CPU per request, the least first",
        head=head if has_words else head[:-1],
        rows=rows if has_words else [row[:-1] for row in rows],
        spans=spans,
        scale=f"times {advice.cheapest.name}'s CPU",
        at=1.0,
        note="A square shows a difference, a circle does not. CPU is the geometric mean over all "
        "works. All intervals hold together with 95 %. Memory and p99 are those of the work where "
        "they are largest.",
    )
