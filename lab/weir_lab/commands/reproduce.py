# SPDX-License-Identifier: MIT
"""The source documents' experiments: done again with the tool they used, beside what they printed.

Each document is two functions: the points to measure, and what is made of them. Rates are of other
machines and are not compared; what is compared are shapes and ratios within a document.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from weir_lab.commands import published, sweeping
from weir_lab.commands.experiment import (
    Options,
    Step,
    environment,
    failures,
    perform,
    store_for,
    world,
)
from weir_lab.commands.published import Row
from weir_lab.report.chart import Chart, Picture
from weir_lab.report.page import Report, Section, Table
from weir_lab.rim import machine, runs
from weir_lab.rim.errors import LabError
from weir_lab.rim.runs import Work, World
from weir_lab.rim.store import Record, Store

FILES = {
    **published.C_FILES,
    **{f"{name}.bin": size for name, size in published.D_SIZES.items()},
}
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


def _step(
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


def _of(store: Store, prefix: str) -> list[Record]:
    """The finished records whose key begins so."""
    return [r for k, r in store.records.items() if k.startswith(prefix) and "error" not in r]


def _middle(records: Sequence[Record], figure: Callable[[Record], float]) -> float | None:
    return median(map(figure, records)) if records else None


def _rate(record: Record) -> float:
    return float(record["load"]["rate"])


def _mean_ms(record: Record) -> float:
    return float(record["load"]["mean_s"]) * 1e3


def _shown(value: float | None, digits: int = 0) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def _ratio(value: float | None, base: float | None) -> str:
    return "-" if value is None or not base else f"{value / base:.2f}"


def _troubles(records: Sequence[Record]) -> tuple[int, int, int]:
    """Requests answered, those that failed, and those that the server counted otherwise."""
    answered = sum(r["load"]["requests"] for r in records)
    failed = sum(r["load"]["failed"] for r in records)
    known = [r for r in records if r["counted"] is not None]
    apart = sum(abs(r["counted"] - r["load"]["requests"]) for r in known)
    return answered, failed, apart


def _health(records: Sequence[Record], what: str) -> str:
    """What the documents reported as broken, shown to work or not."""
    answered, failed, apart = _troubles(records)
    if not answered:
        return f"{what}: nothing was measured."
    counts = (
        "the server counted every one of them"
        if apart == 0
        else f"the server's count is {apart} apart"
    )
    return f"{what}: {answered:,} requests answered, {failed:,} failed, and {counts}."


def _little(rows: Sequence[Row]) -> list[str]:
    found = [row.contradiction for row in rows if row.contradiction]
    return [f"By Little's law (N = X R) the document contradicts itself: {f}." for f in found]


# ---- a: prefork, with and without keep-alive ----


def _a_key(keep_alive: bool, users: int) -> str:
    return f"a/{'keep-alive' if keep_alive else 'close'}/{users}/"


def a_steps(here: World, scale: Scale) -> list[Step]:
    """The two ways alternate, so that the machine's mood is the same for both."""
    machine.raise_descriptor_limit(max(published.CONCURRENCY_A) * 2)
    return [
        _step(
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
        base = _middle(_of(store, _a_key(keep_alive, 10)), _rate)
        for row in theirs:
            found = _of(store, _a_key(keep_alive, row.users))
            rate = ours[keep_alive, row.users] = _middle(found, _rate)
            rows.append(
                [
                    row.label,
                    _shown(row.rate),
                    _shown(rate),
                    _ratio(row.rate, theirs[0].rate),
                    _ratio(rate, base),
                    _shown(row.mean_ms, 3),
                    _shown(_middle(found, _mean_ms), 3),
                    _shown(sum(r["load"]["failed"] for r in found)),
                ]
            )
    kept = _of(store, "a/")
    verdict = [_health(kept, "prefork 4 x 10 at 10 to 1,000 connections")]
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
            if (rate := _middle(_of(store, _a_key(way == "keep-alive", row.users)), _rate))
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
        _step(
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
                _shown(theirs.seconds, 3),
                _shown(theirs.rate),
                _shown(theirs.mean_ms, 3),
                *theirs.total,
            ]
        )
        found = _of(store, f"b/{theirs.users}/")
        spread = [_middle(found, _connection_ms(name)) for name in names]
        rows.append(
            [
                str(theirs.users),
                "here",
                _shown(_middle(found, lambda r: float(r["load"]["seconds"])), 3),
                _shown(_middle(found, _rate)),
                _shown(_middle(found, _mean_ms), 3),
                *(_shown(value, 1) for value in spread),
            ]
        )
    kept = _of(store, "b/")
    worst = max((r["load"]["total_ms"]["max"] for r in kept), default=None)
    verdict = [_health(kept, "prefork at 10 to 450 connections")]
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
        _step(
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
        kept = _of(store, f"c/{theirs.label}/keep-alive/")
        closed = _of(store, f"c/{theirs.label}/close/")
        rows.append(
            [
                theirs.label,
                str(published.C_FILES[theirs.label]),
                _shown(theirs.rate),
                _shown(_middle(kept, _rate)),
                _shown(theirs.mean_ms, 3),
                _shown(_middle(kept, _mean_ms), 3),
                _shown(_middle(closed, _rate)),
                _ratio(_middle(kept, _rate), _middle(closed, _rate)),
            ]
        )
    verdict = [_health(_of(store, "c/"), "epoll at 100 connections")]
    kept_rate = _middle(_of(store, "c/index.html/keep-alive/"), _rate)
    closed_rate = _middle(_of(store, "c/index.html/close/"), _rate)
    if kept_rate and closed_rate:
        there = published.C_KEEP_ALIVE_RATE / published.C_CLOSE_RATE
        verdict.append(
            f"Keep-alive gives {kept_rate / closed_rate:.1f} times the throughput here, "
            f"{there:.1f} times in the document."
        )
    verdict += _little(published.C)
    head = ["file", "bytes", "req/s: document", "here", "mean ms: document", "here"]
    head += ["close, here", "keep-alive / close"]
    return Section(
        title="c: an event loop, three small files",
        verdict=verdict,
        tables=[Table(name="c", title="100 connections", head=head, rows=rows)],
    )


# ---- d: processes against threads, and what comes after 20 ----


def _d_levels(scale: Scale) -> list[int]:
    training = [n for n in published.D_TRAINING if n == 1 or n % scale.every == 0]
    return training + [n for n in published.D_HELD_OUT if (n // 5) % min(scale.every, 3) == 0]


def d_steps(here: World, scale: Scale) -> list[Step]:
    """Every level for both servers and both sizes; who comes first alternates."""
    return [
        _step(
            here,
            scale,
            f"d/{model}/{size}/{users}/{repeat}",
            model,
            Work(path=f"/{size}.bin", users=users, keep_alive=False),
            published.D_REQUESTS,
            rate=2500 if model == "fork" else 8000,
        )
        for repeat in range(max(2, scale.repeats))
        for size in published.D_SIZES
        for users in _d_levels(scale)
        for model in (("fork", "thread") if repeat % 2 == 0 else ("thread", "fork"))
    ]


def d_section(store: Store, options: Options) -> Section:
    """The table, standard deviations, and predictions beside what was then measured."""
    rows = []
    for (model, size), theirs in published.D.items():
        found = _of(store, f"d/{model}/{size}/20/")
        rows.append(
            [
                theirs.label,
                _shown(theirs.rate),
                _shown(_middle(found, _rate)),
                _shown(theirs.mean_ms, 3),
                _shown(_middle(found, _mean_ms), 3),
            ]
        )
    verdict = [_health(_of(store, "d/"), "fork and thread at 1 to 60 connections")]
    pictures: list[Picture] = []
    tables: list[Table] = []
    for size in published.D_SIZES:
        pictures.append(_d_picture(store, size))
        fork, thread = (_of(store, f"d/{model}/{size}/20/") for model in ("fork", "thread"))
        mine = _middle(thread, _rate), _middle(fork, _rate)
        there = published.D["thread", size].rate / published.D["fork", size].rate
        if mine[0] and mine[1]:
            verdict.append(
                f"thread against fork, {published.D_SIZES[size]:,} bytes, 20 connections: "
                f"{mine[0] / mine[1]:.1f} times the throughput here, {there:.1f} in the document."
            )
    for model in ("fork", "thread"):
        for size in published.D_SIZES:
            studied = sweeping.study(
                f"d-{model}-{size}",
                _of(store, f"d/{model}/{size}/"),
                options.placement,
                train_to=published.D_TRAINING[-1],
                seed=options.seed,
            )
            verdict += [f"{model}, {size}: {finding}" for finding in studied.verdict]
            pictures += studied.pictures[-1:]
            tables += studied.tables
    verdict += _little(list(published.D.values()))
    head = ["", "req/s: document", "here", "mean ms: document", "here"]
    first = Table(
        name="d",
        title="Processes and threads",
        head=head,
        rows=rows,
        note="Here with 20 connections, as the document's own figures say it had.",
    )
    return Section(
        title="d: a process or a thread for each connection, and predictions",
        verdict=verdict,
        text=[
            "The document fitted a straight line to 1 to 20 connections and drew it to 60. Here 25 "
            "to 60 were measured as well, by which the line and the other models are judged."
        ],
        pictures=pictures,
        tables=[first, *tables],
    )


def _d_picture(store: Store, size: str) -> Picture:
    chart = Chart(
        name=f"d-{size}",
        title=f"Throughput of fork and thread, {published.D_SIZES[size]:,} bytes",
        x="connections",
        y="requests/s",
    )
    for model in ("fork", "thread"):
        by_users: dict[int, list[float]] = {}
        for record in _of(store, f"d/{model}/{size}/"):
            by_users.setdefault(record["users"], []).append(_rate(record))
        users = sorted(by_users)
        means = [sum(by_users[n]) / len(by_users[n]) for n in users]
        deviations = [_deviation(by_users[n]) for n in users]
        if users:
            chart.bars(model, users, means, deviations, chart.style())
    return chart.finish("Means of the repeats; bars are their standard deviation.")


def _deviation(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    spare = max(1, len(values) - 1)
    return float((sum((v - mean) ** 2 for v in values) / spare) ** 0.5)


# ---- e: users who think ----


def e_steps(here: World, scale: Scale) -> list[Step]:
    """Users swept past saturation, whose place is worked out from one low load first."""
    if not runs.has_load(here.weir):
        raise LabError("document e has users who think: this weir has no `load` yet")
    levels = sweeping.levels_past_the_knee(
        here, "pool", published.E_THINK_S, "/index.html", options="--threads 10"
    )
    machine.raise_descriptor_limit(max(levels) * 2)
    return [
        sweeping.step(
            here,
            f"e/{users}/{repeat}",
            "pool",
            Work(path="/index.html", users=users),
            think_s=published.E_THINK_S,
            seconds=scale.seconds,
            options="--threads 10",
        )
        for repeat in range(scale.repeats)
        for users in (levels if repeat % 2 == 0 else levels[::-1])
    ]


def e_section(store: Store, options: Options) -> Section:
    """Both curves, the knee, the bottleneck."""
    found = _of(store, "e/")
    sizes = sorted({r["users"] for r in found})
    train_to = sizes[len(sizes) * 2 // 3] if sizes else 0
    studied = sweeping.study("e", found, options.placement, train_to=train_to, seed=options.seed)
    cycle_s = published.E_RESPONSE_S + published.E_THINK_S
    return Section(
        title="e: a pool of threads, users who think for 40 ms",
        verdict=[
            _health(found, "pool"),
            *studied.verdict,
            f"The document: saturation at about {published.E_USERS:,} users with "
            f"{published.E_RATE:,.0f} requests per second of "
            f"{published.E_RESPONSE_S * 1e3:.2f} ms; Little's law makes that "
            f"{published.E_RATE * cycle_s:,.0f} users: it agrees with itself.",
        ],
        text=["The server had one core, the generator another, as in the document."],
        pictures=studied.pictures,
        tables=studied.tables,
    )


DOCUMENTS = (
    Document(letter="a", title="prefork", steps=a_steps, section=a_section),
    Document(letter="b", title="100,000 requests", steps=b_steps, section=b_section),
    Document(letter="c", title="event loop", steps=c_steps, section=c_section),
    Document(letter="d", title="fork and thread", steps=d_steps, section=d_section),
    Document(letter="e", title="users who think", steps=e_steps, section=e_section, needs="load"),
)


def files() -> dict[str, bytes]:
    """The files served: bytes that do not compress, the same in every run."""
    return {name: random.Random(name).randbytes(size) for name, size in FILES.items()}


def run(options: Options, letters: Sequence[str], scale: Scale) -> Report:
    """Does the documents of these letters, and reports.

    Raises:
        LabError: something that they need is missing.
    """
    chosen = [d for d in DOCUMENTS if d.letter in letters]
    if unknown := set(letters) - {d.letter for d in DOCUMENTS}:
        raise LabError(f"no document {', '.join(sorted(unknown))}; there are a, b, c, d and e")
    if any(d.needs == "ab" for d in chosen):
        machine.need("ab")
    plan: dict[str, Any] = {
        "command": "reproduce",
        "documents": sorted(letters),
        "scale": scale.__dict__,
        "placement": options.placement.sentence(),
    }
    store = store_for(options, plan, "ab")
    skipped = []
    with world(options, files()) as here:
        for document in chosen:
            try:
                steps = document.steps(here, scale)
            except LabError as error:
                if len(chosen) == 1:
                    raise
                skipped.append(f"{document.letter} was left out: {error}")
                continue
            perform(store, steps, document.title)
    sections = [d.section(store, options) for d in chosen if any(_of(store, f"{d.letter}/"))]
    return Report(
        title="The source documents' experiments, repeated",
        sections=sections,
        environment=environment(store),
        data=store.everything(),
        notes=[
            "Rates of different machines are not compared; shapes and ratios are.",
            *skipped,
            *failures(store),
        ],
    )
