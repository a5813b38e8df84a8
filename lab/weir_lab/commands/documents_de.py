# SPDX-License-Identifier: MIT
"""Documents d and e: how throughput grows with connections and users, and where it ends."""

from collections.abc import Sequence

from weir_lab.commands import published, sweeping
from weir_lab.commands.experiment import Options, Step
from weir_lab.commands.reproduction import (
    Scale,
    contradictions,
    health,
    kept,
    mean_ms_of,
    middle,
    one_run,
    rate_of,
    shown,
)
from weir_lab.report.chart import Chart, Picture
from weir_lab.report.page import Section, Table
from weir_lab.rim import machine, runs
from weir_lab.rim.errors import LabError
from weir_lab.rim.runs import Work, World
from weir_lab.rim.store import Store

# ---- d: processes against threads, and what comes after 20 ----


def _d_levels(scale: Scale) -> list[int]:
    training = [n for n in published.D_TRAINING if n == 1 or n % scale.every == 0]
    return training + [n for n in published.D_HELD_OUT if (n // 5) % min(scale.every, 3) == 0]


def d_steps(here: World, scale: Scale) -> list[Step]:
    """Every level for both servers and both sizes; who comes first alternates."""
    return [
        one_run(
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
        found = kept(store, f"d/{model}/{size}/20/")
        rows.append(
            [
                theirs.label,
                shown(theirs.rate),
                shown(middle(found, rate_of)),
                shown(theirs.mean_ms, 3),
                shown(middle(found, mean_ms_of), 3),
            ]
        )
    verdict = [health(kept(store, "d/"), "fork and thread at 1 to 60 connections")]
    pictures: list[Picture] = []
    tables: list[Table] = []
    for size in published.D_SIZES:
        pictures.append(_d_picture(store, size))
        fork, thread = (kept(store, f"d/{model}/{size}/20/") for model in ("fork", "thread"))
        mine = middle(thread, rate_of), middle(fork, rate_of)
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
                kept(store, f"d/{model}/{size}/"),
                options.placement,
                train_to=published.D_TRAINING[-1],
                seed=options.seed,
            )
            verdict += [f"{model}, {size}: {finding}" for finding in studied.verdict]
            pictures += studied.pictures[-1:]
            tables += studied.tables
    verdict += contradictions(list(published.D.values()))
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
        for record in kept(store, f"d/{model}/{size}/"):
            by_users.setdefault(record["users"], []).append(rate_of(record))
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
    found = kept(store, "e/")
    sizes = sorted({r["users"] for r in found})
    train_to = sizes[len(sizes) * 2 // 3] if sizes else 0
    studied = sweeping.study("e", found, options.placement, train_to=train_to, seed=options.seed)
    cycle_s = published.E_RESPONSE_S + published.E_THINK_S
    return Section(
        title="e: a pool of threads, users who think for 40 ms",
        verdict=[
            health(found, "pool"),
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
