# SPDX-License-Identifier: MIT
"""Documents a, b and c: processes with threads, and an event loop, under ab.

Each document is two functions: the points to measure, and what is made of them.
"""

from collections.abc import Callable, Mapping, Sequence
from statistics import geometric_mean

from weir_lab.analysis.ratio import Ratio, confidence_for, ratio
from weir_lab.experiments import published
from weir_lab.experiments.experiment import Options, Step
from weir_lab.experiments.reproduction import (
    PREFORK,
    Check,
    Rounds,
    Scale,
    by_round,
    checked,
    contradictions,
    counts,
    health,
    is_faster,
    kept,
    mark,
    mean_ms_of,
    middle,
    number_text,
    one_run,
    quotient_text,
    rate_of,
    stays_open,
    survives,
)
from weir_lab.report.cards import CARD, CARD_NARROW, multiples
from weir_lab.report.chart import Chart, Picture
from weir_lab.report.page import Fold, Headline, Section, Table
from weir_lab.rim import machine
from weir_lab.rim.runs import Work, World
from weir_lab.rim.store import Record, Store

# ---- a: prefork, with and without keep-alive ----


def _a_key(keep_alive: bool, users: int) -> str:
    return f"a/{'keep-alive' if keep_alive else 'close'}/{users}/"


def a_steps(here: World, scale: Scale) -> list[Step]:
    """Both ways in turn, so that drift of the machine is the same for both."""
    machine.raise_descriptor_limit(max(published.CONCURRENCY_A) * 2)
    return [
        one_run(
            here,
            scale,
            f"{_a_key(keep_alive, users)}{repeat}",
            "prefork",
            Work(path="/index.html", users=users, keep_alive=keep_alive),
            10_000,
            options=PREFORK,
        )
        for repeat in range(scale.repeats)
        for users in published.CONCURRENCY_A
        for keep_alive in ((False, True) if repeat % 2 == 0 else (True, False))
    ]


def a_section(store: Store, _options: Options) -> Section:
    """Throughput and response time, both tables in one."""
    rows, ours = [], {}
    for keep_alive, theirs in ((False, published.A_CLOSE), (True, published.A_KEEP_ALIVE)):
        base = middle(kept(store, _a_key(keep_alive, 10)), rate_of)
        for row in theirs:
            found = kept(store, _a_key(keep_alive, row.users))
            rate = ours[keep_alive, row.users] = middle(found, rate_of)
            rows.append(
                [
                    row.label,
                    number_text(row.rate),
                    number_text(rate),
                    quotient_text(row.rate, theirs[0].rate),
                    quotient_text(rate, base),
                    number_text(row.mean_ms, 3),
                    number_text(middle(found, mean_ms_of), 3),
                    number_text(sum(r["load"]["failed"] for r in found)),
                ]
            )
    checks, times = _a_checks(store)
    findings = [health(kept(store, "a/"), "prefork 4 x 10 at 10 to 1,000 connections")]
    for users in (10, 1000):
        there = next(r.rate for r in published.A_KEEP_ALIVE if r.users == users)
        close = next(r.rate for r in published.A_CLOSE if r.users == users)
        mine, other = ours[True, users], ours[False, users]
        if mine and other:
            findings.append(
                f"With {users} clients, keep-alive has {mine / other:.2f} times the throughput of "
                f"a connection for each request here, and {there / close:.2f} times in the "
                "document."
            )
    head = ["", "req/s: document", "here", "of that at 10: document", "here"]
    head += ["mean ms: document", "here", "failed here"]
    said = f" Here it has {times.value:.2f} times." if times else ""
    return Section(
        title="a: prefork with 4 processes of 10 threads",
        headline=Headline(
            sentence=f"In the document, keep-alive has {_a_published():.2f} times the throughput "
            f"of a connection for each request.{said}",
            mark=mark(checks),
            pictures=[_shape("a", store, ("close", "keep-alive"))],
        ),
        folds=[
            checked("a", checks),
            Fold(
                title="All figures",
                findings=findings,
                text=[
                    "The document blamed head-of-line blocking, because each of its threads "
                    "belongs to a connection. Here a thread leaves an idle connection."
                ],
                tables=[Table(name="a", title="Throughput and latency", head=head, rows=rows)],
            ),
        ],
    )


def _a_published() -> float:
    """Keep-alive against a connection for each request in the document, over all levels."""
    pairs = zip(published.A_KEEP_ALIVE, published.A_CLOSE, strict=True)
    return geometric_mean([kept_row.rate / close.rate for kept_row, close in pairs])


def _a_checks(store: Store) -> tuple[list[Check], Ratio | None]:
    pairs = {
        f"{n:,} clients": (by_round(store, _a_key(True, n)), by_round(store, _a_key(False, n)))
        for n in published.CONCURRENCY_A
    }
    faster, times = is_faster(
        pairs,
        "keep-alive slower than a connection for each request, at all five levels",
        "with keep-alive the throughput is",
    )
    crowded = [_a_key(keep_alive, n) for n in (500, 1000) for keep_alive in (False, True)]
    return [
        counts(kept(store, "a/"), "fewer requests counted than served: updates of counters lost"),
        stays_open(kept(store, "a/keep-alive/"), "keep-alive: clients wait behind idle ones"),
        faster,
        survives(store, crowded, "less stable from 500 clients on"),
    ], times


def _shape(name: str, store: Store, ways: Sequence[str]) -> Picture:
    chart = Chart(
        name=f"{name}-shape",
        title="Throughput, as a part of that with 10 clients",
        x="connections",
        y="relative throughput",
        log_x=True,
        size=CARD,
    )
    for way in ways:
        theirs = published.A_KEEP_ALIVE if way == "keep-alive" else published.A_CLOSE
        users = [float(row.users) for row in theirs]
        chart.line(
            f"document, {way}", users, [r.rate / theirs[0].rate for r in theirs], chart.style()
        )
        mine = {
            row.users: rate
            for row in theirs
            if (rate := middle(kept(store, _a_key(way == "keep-alive", row.users)), rate_of))
        }
        if 10 in mine:
            ours = [rate / mine[10] for rate in mine.values()]
            chart.line(f"here, {way}", list(mine), ours, chart.style(), marked=True)
    return chart.finish("Shapes may be compared; the machines may not.", narrow=CARD_NARROW)


# ---- b: 100,000 requests ----


def b_steps(here: World, scale: Scale) -> list[Step]:
    """The document's four levels in order and in reverse; then its reported problems."""
    machine.raise_descriptor_limit(max(published.B_RESETS) * 2)
    levels = [row.users for row in published.B]
    tried = [(n, False) for n in published.B_RESETS] + [(published.B_KEEP_ALIVE, True)]
    found = []
    for repeat in range(scale.single_repeats):
        turn = levels if repeat % 2 == 0 else levels[::-1]
        for users, keep_alive in [(n, False) for n in turn] + tried:
            work = Work(path="/index.html", users=users, keep_alive=keep_alive)
            found.append(
                one_run(
                    here,
                    scale,
                    f"{_b_key(users, keep_alive=keep_alive)}{repeat}",
                    "prefork",
                    work,
                    published.B_REQUESTS,
                    options=PREFORK,
                    rate=8000,
                )
            )
    return found


def _b_key(users: int, *, keep_alive: bool = False) -> str:
    return f"b/{'keep-alive/' if keep_alive else ''}{users}/"


def _connection_ms(name: str) -> Callable[[Record], float]:
    return lambda record: float(record["load"]["total_ms"][name])


def b_section(store: Store, _options: Options) -> Section:
    """Total time, rate, and the spread of connection times."""
    rows = []
    names = ("min", "mean", "sd", "median", "max")
    for theirs in published.B:
        rows.append(
            [
                str(theirs.users),
                "document",
                number_text(theirs.seconds, 3),
                number_text(theirs.rate),
                number_text(theirs.mean_ms, 3),
                *theirs.total,
            ]
        )
        found = kept(store, _b_key(theirs.users))
        spread = [middle(found, _connection_ms(name)) for name in names]
        rows.append(
            [
                str(theirs.users),
                "here",
                number_text(middle(found, lambda r: float(r["load"]["seconds"])), 3),
                number_text(middle(found, rate_of)),
                number_text(middle(found, mean_ms_of), 3),
                *(number_text(value, 1) for value in spread),
            ]
        )
    found_all = kept(store, "b/")
    same = [r for row in published.B for r in kept(store, _b_key(row.users))]
    worst = max((r["load"]["total_ms"]["max"] for r in same), default=None)
    checks = [
        counts(found_all, "a problem with counting requests, and so with counting statuses"),
        stays_open(kept(store, "b/keep-alive/"), "keep-alive is not supported"),
        survives(
            store,
            [_b_key(n) for n in published.B_RESETS],
            "connection reset by peer with 500 or more clients",
        ),
    ]
    findings = [health(found_all, "prefork at 10 to 1,000 connections")]
    if worst is not None:
        findings.append(
            f"The longest connection took {worst:,.0f} ms here; 4,377 ms in the document, where "
            "the kernel dropped connections that were not accepted in time."
        )
    best = {row.users: middle(kept(store, _b_key(row.users)), rate_of) for row in published.B}
    if all(best.values()):
        there = max(published.B, key=lambda row: row.rate)
        lost = published.B[-1].rate / there.rate
        top = max(best.values(), key=lambda rate: rate or 0.0) or 1.0
        findings.append(
            f"450 clients get {(best[450] or 0.0) / top:.0%} of the best throughput here, "
            f"{lost:.0%} in the document (its best was with {there.users})."
        )
    head = ["clients", "", "seconds", "req/s", "ms per request", *(f"{n} ms" for n in names)]
    said = f" Here it took {worst:,.0f} ms." if worst is not None else ""
    return Section(
        title="b: 100,000 requests",
        headline=Headline(
            sentence="The document's longest connection took 4,377 ms, and connections were reset "
            f"from 500 clients on.{said}",
            mark=mark(checks),
            pictures=[_longest(store)],
        ),
        folds=[
            checked("b", checks),
            Fold(
                title="All figures",
                findings=findings,
                tables=[
                    Table(name="b", title="Time, rate, connection times", head=head, rows=rows)
                ],
            ),
        ],
    )


def _longest(store: Store) -> Picture:
    """The longest connection of each level, there and here."""
    chart = Chart(
        name="b-longest",
        title="The longest connection",
        x="clients",
        y="total time, ms",
        log_y=True,
        size=CARD,
    )
    users = [float(row.users) for row in published.B]
    chart.line("document", users, [float(row.total[4]) for row in published.B], chart.style())
    mine = {
        row.users: found
        for row in published.B
        if (found := middle(kept(store, _b_key(row.users)), _connection_ms("max")))
    }
    if mine:
        chart.line("here", list(mine), list(mine.values()), chart.style(), marked=True)
    return chart.finish("Medians of the runs here. Less is better.", narrow=CARD_NARROW)


# ---- c: an event loop, three small files ----


def c_steps(here: World, scale: Scale) -> list[Step]:
    """Each file with and without keep-alive, in turn."""
    return [
        one_run(
            here,
            scale,
            f"c/{name}/{'keep-alive' if keep_alive else 'close'}/{repeat}",
            "epoll",
            Work(path=f"/{name}", users=published.C_USERS, keep_alive=keep_alive),
            published.C_REQUESTS,
            rate=20000,
        )
        for repeat in range(scale.repeats)
        for name in published.C_FILES
        for keep_alive in ((True, False) if repeat % 2 == 0 else (False, True))
    ]


def c_section(store: Store, _options: Options) -> Section:
    """The table, and the gain by keep-alive."""
    rows = []
    for theirs in published.C:
        found_all = kept(store, f"c/{theirs.label}/keep-alive/")
        closed = kept(store, f"c/{theirs.label}/close/")
        rows.append(
            [
                theirs.label,
                str(published.C_FILES[theirs.label]),
                number_text(theirs.rate),
                number_text(middle(found_all, rate_of)),
                number_text(theirs.mean_ms, 3),
                number_text(middle(found_all, mean_ms_of), 3),
                number_text(middle(closed, rate_of)),
                quotient_text(middle(found_all, rate_of), middle(closed, rate_of)),
            ]
        )
    opened = [r for name in published.C_FILES for r in kept(store, f"c/{name}/keep-alive/")]
    pairs = {
        name: (by_round(store, f"c/{name}/keep-alive/"), by_round(store, f"c/{name}/close/"))
        for name in published.C_FILES
    }
    faster, times = is_faster(
        pairs,
        "keep-alive is faster than a connection for each request",
        "with keep-alive the throughput is",
    )
    checks = [
        stays_open(
            opened, "keep-alive is what made it complex: several requests in one connection"
        ),
        faster,
    ]
    there = published.C_KEEP_ALIVE_RATE / published.C_CLOSE_RATE
    said = f" Here it gives {times.value:.1f} times." if times else ""
    head = ["file", "bytes", "req/s: document", "here", "mean ms: document", "here"]
    head += ["close, here", "keep-alive / close"]
    return Section(
        title="c: an event loop, three small files",
        headline=Headline(
            sentence=f"The document's keep-alive gives {there:.1f} times the throughput of a "
            f"connection for each request.{said}",
            mark=mark(checks),
            pictures=[_gains("c-gain", pairs, {"index.html": there})],
        ),
        folds=[
            checked("c", checks),
            Fold(
                title="All figures",
                findings=[
                    health(kept(store, "c/"), "epoll at 100 connections"),
                    *contradictions(published.C),
                ],
                tables=[Table(name="c", title="100 connections", head=head, rows=rows)],
            ),
        ],
    )


def _gains(
    name: str, pairs: Mapping[str, tuple[Rounds, Rounds]], theirs: Mapping[str, float]
) -> Picture:
    """The gain by keep-alive, there and here, with intervals."""
    found = {f"document, {label}": (value, value, value) for label, value in theirs.items()}
    for label, (ours, base) in pairs.items():
        if times := ratio(ours, base, confidence=confidence_for(len(pairs))):
            found[f"here, {label}"] = (times.value, times.low, times.high)
    return multiples(
        name, "Throughput with keep-alive", "times that of a connection for each request", found
    )
