# SPDX-License-Identifier: MIT
"""Documents a, b and c: processes with threads, and an event loop, under ab.

Each document is two functions: the points to measure, and what is made of them.
"""

from collections.abc import Callable, Sequence

from weir_lab.commands import published
from weir_lab.commands.experiment import Options, Step
from weir_lab.commands.reproduction import (
    PREFORK,
    Scale,
    contradictions,
    health,
    kept,
    mean_ms_of,
    middle,
    one_run,
    rate_of,
    shown,
    times,
)
from weir_lab.report.chart import Chart, Picture
from weir_lab.report.page import Section, Table
from weir_lab.rim import machine
from weir_lab.rim.runs import Work, World
from weir_lab.rim.store import Record, Store

# ---- a: prefork, with and without keep-alive ----


def _a_key(keep_alive: bool, users: int) -> str:
    return f"a/{'keep-alive' if keep_alive else 'close'}/{users}/"


def a_steps(here: World, scale: Scale) -> list[Step]:
    """The two ways alternate, so that the machine's mood is the same for both."""
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
    """Throughput and latency, both tables in one."""
    rows, ours = [], {}
    for keep_alive, theirs in ((False, published.A_CLOSE), (True, published.A_KEEP_ALIVE)):
        base = middle(kept(store, _a_key(keep_alive, 10)), rate_of)
        for row in theirs:
            found = kept(store, _a_key(keep_alive, row.users))
            rate = ours[keep_alive, row.users] = middle(found, rate_of)
            rows.append(
                [
                    row.label,
                    shown(row.rate),
                    shown(rate),
                    times(row.rate, theirs[0].rate),
                    times(rate, base),
                    shown(row.mean_ms, 3),
                    shown(middle(found, mean_ms_of), 3),
                    shown(sum(r["load"]["failed"] for r in found)),
                ]
            )
    found_all = kept(store, "a/")
    verdict = [health(found_all, "prefork 4 x 10 at 10 to 1,000 connections")]
    for users in (10, 1000):
        there = next(r.rate for r in published.A_KEEP_ALIVE if r.users == users)
        close = next(r.rate for r in published.A_CLOSE if r.users == users)
        mine, other = ours[True, users], ours[False, users]
        if mine and other:
            verdict.append(
                f"Keep-alive against a connection for each request, {users} clients: "
                f"{mine / other:.2f} times the throughput here, "
                f"{there / close:.2f} in the document."
            )
    head = ["", "req/s: document", "here", "of that at 10: document", "here"]
    head += ["mean ms: document", "here", "failed here"]
    return Section(
        title="a: prefork with 4 processes of 10 threads",
        verdict=verdict,
        text=[
            "The document found keep-alive slower and blamed head-of-line blocking: a thread there "
            "belongs to its connection. Here a thread leaves an idle connection."
        ],
        pictures=[_shape("a", store, ("close", "keep-alive"))],
        tables=[Table(name="a", title="Throughput and latency", head=head, rows=rows)],
    )


def _shape(name: str, store: Store, ways: Sequence[str]) -> Picture:
    chart = Chart(
        name=f"{name}-shape",
        title="Throughput, as a part of that with 10 clients",
        x="connections",
        y="throughput / throughput at 10",
        log_x=True,
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
    return chart.finish("Shapes may be compared; the machines may not.")


# ---- b: 100,000 requests ----


def b_steps(here: World, scale: Scale) -> list[Step]:
    """Four levels, once each as in the document, or as often as the scale says."""
    machine.raise_descriptor_limit(1000)
    return [
        one_run(
            here,
            scale,
            f"b/{row.users}/{repeat}",
            "prefork",
            Work(path="/index.html", users=row.users, keep_alive=False),
            published.B_REQUESTS,
            options=PREFORK,
            rate=8000,
        )
        for repeat in range(scale.repeats)
        for row in published.B
    ]


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
                shown(theirs.seconds, 3),
                shown(theirs.rate),
                shown(theirs.mean_ms, 3),
                *theirs.total,
            ]
        )
        found = kept(store, f"b/{theirs.users}/")
        spread = [middle(found, _connection_ms(name)) for name in names]
        rows.append(
            [
                str(theirs.users),
                "here",
                shown(middle(found, lambda r: float(r["load"]["seconds"])), 3),
                shown(middle(found, rate_of)),
                shown(middle(found, mean_ms_of), 3),
                *(shown(value, 1) for value in spread),
            ]
        )
    found_all = kept(store, "b/")
    worst = max((r["load"]["total_ms"]["max"] for r in found_all), default=None)
    verdict = [health(found_all, "prefork at 10 to 450 connections")]
    if worst is not None:
        verdict.append(
            f"The longest connection took {worst:,.0f} ms here; 4,377 ms in the document, where "
            "the kernel dropped connections that nobody accepted in time."
        )
    head = ["clients", "", "seconds", "req/s", "ms per request", *(f"{n} ms" for n in names)]
    return Section(
        title="b: 100,000 requests",
        verdict=verdict,
        tables=[Table(name="b", title="Time, rate, connection times", head=head, rows=rows)],
    )


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
    """The table, and what keep-alive is worth."""
    rows = []
    for theirs in published.C:
        found_all = kept(store, f"c/{theirs.label}/keep-alive/")
        closed = kept(store, f"c/{theirs.label}/close/")
        rows.append(
            [
                theirs.label,
                str(published.C_FILES[theirs.label]),
                shown(theirs.rate),
                shown(middle(found_all, rate_of)),
                shown(theirs.mean_ms, 3),
                shown(middle(found_all, mean_ms_of), 3),
                shown(middle(closed, rate_of)),
                times(middle(found_all, rate_of), middle(closed, rate_of)),
            ]
        )
    verdict = [health(kept(store, "c/"), "epoll at 100 connections")]
    kept_rate = middle(kept(store, "c/index.html/keep-alive/"), rate_of)
    closed_rate = middle(kept(store, "c/index.html/close/"), rate_of)
    if kept_rate and closed_rate:
        there = published.C_KEEP_ALIVE_RATE / published.C_CLOSE_RATE
        verdict.append(
            f"Keep-alive gives {kept_rate / closed_rate:.1f} times the throughput here, "
            f"{there:.1f} times in the document."
        )
    verdict += contradictions(published.C)
    head = ["file", "bytes", "req/s: document", "here", "mean ms: document", "here"]
    head += ["close, here", "keep-alive / close"]
    return Section(
        title="c: an event loop, three small files",
        verdict=verdict,
        tables=[Table(name="c", title="100 connections", head=head, rows=rows)],
    )
