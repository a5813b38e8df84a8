# SPDX-License-Identifier: MIT
"""Pictures and tables of a sweep of users and of the fitted models."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weir_lab.capacity import queueing
from weir_lab.capacity.answers import Capacity, bottleneck_sentence, limits
from weir_lab.capacity.bootstrap import Interval
from weir_lab.capacity.choice import Choice, score_all
from weir_lab.capacity.curves import BOUND, CONSTANT, LINEAR, CannotFitError, asymptotic
from weir_lab.capacity.queueing import FloatArray, Station
from weir_lab.capacity.score import Score, skill
from weir_lab.capacity.sweep import SERVER, Point, Sweep, why_void
from weir_lab.report import distribution
from weir_lab.report.chart import Chart, Picture
from weir_lab.report.page import Table

CURVE_STEPS = 60
SPECTRA = 5  # levels whose percentiles are drawn


def curve_users(sweep: Sweep) -> FloatArray:
    """Whole numbers of users, from one to slightly beyond the last level."""
    last = sweep.levels[-1] * 1.05
    return np.unique(np.round(np.linspace(1, max(2, last), CURVE_STEPS)))


def _split(sweep: Sweep) -> tuple[list[Point], list[Point]]:
    valid = [p for p in sweep.points if not why_void(sweep, p)]
    return valid, [p for p in sweep.points if why_void(sweep, p)]


def _measured(chart: Chart, label: str, sweep: Sweep, style: int, *, hollow: bool = False) -> None:
    valid, _ = _split(sweep)
    if valid:
        chart.points(label, [p.users for p in valid], [p.rate for p in valid], style, hollow=hollow)


def throughput(name: str, sweep: Sweep, choice: Choice, answers: Capacity) -> Picture:
    """X against users: measurements, the chosen model with its band, asymptotes, N*."""
    chart = Chart(name=f"{name}-throughput", title="Throughput", x="users", y="requests/s")
    training = sweep.up_to(choice.training.levels[-1]) if choice.training.points else sweep
    users = curve_users(sweep)
    _measured(chart, "measured, training", training, 0)
    _measured(chart, "measured, held out", sweep.above(training.levels[-1]), 0, hollow=True)
    _, void = _split(sweep)
    chart.void([p.users for p in void], [p.rate for p in void])
    if choice.chosen and choice.chosen.ensemble:
        found = choice.chosen.ensemble
        low, high = found.band(users)
        chart.band("95 % band", list(users), list(low), list(high), 1)
        chart.line(choice.chosen.model.name, list(users), list(found.fitted.predict(users)), 1)
    try:
        bound = asymptotic(choice.training)
        chart.bound("asymptotes", list(users), list(bound.predict(users)))
    except CannotFitError:
        pass
    if answers.saturation_users:
        chart.mark("N*", answers.saturation_users.value)
    highest = max(p.rate for p in sweep.points)
    chart.axes.set_ylim(0, highest * 1.3)
    return chart.finish(
        "Each mark is one run against a freshly started server. Filled marks were used for the "
        "fit, hollow marks were not."
    )


def response(name: str, sweep: Sweep, choice: Choice) -> Picture:
    """R against users: mean and 99th percentile, with the asymptotes."""
    chart = Chart(name=f"{name}-response", title="Response time", x="users", y="ms")
    valid, void = _split(sweep)
    chart.points("mean", [p.users for p in valid], [p.response_s * 1e3 for p in valid], 0)
    tails = [(p.users, p.p99_s * 1e3) for p in valid if p.p99_s]
    if tails:
        chart.points("99th percentile", [n for n, _ in tails], [t for _, t in tails], 1)
    chart.void([p.users for p in void], [p.response_s * 1e3 for p in void])
    users = curve_users(sweep)
    if choice.chosen and choice.chosen.ensemble:
        fitted = choice.chosen.ensemble.fitted
        predicted = users / fitted.predict(users) - sweep.think_s
        chart.line(f"mean, {choice.chosen.model.name}", list(users), list(predicted * 1e3), 2)
    found = limits(choice.training)
    if found:
        stations = [Station(name=SERVER, demand_s=found[0].demand_s, servers=found[0].servers)]
        least = queueing.asymptotic_response(users, stations, sweep.think_s)
        chart.bound("asymptotes", list(users), list(least * 1e3))
    return chart.finish(
        "Beyond the knee each further user makes all users wait: the mean grows along N·D/m-Z."
    )


def latency_throughput(name: str, sweep: Sweep) -> Picture:
    """The load curve: response time against throughput."""
    chart = Chart(
        name=f"{name}-load", title="Response time against throughput", x="requests/s", y="ms"
    )
    valid, _ = _split(sweep)
    levels = sorted({p.users for p in valid})
    mean = {n: [p for p in valid if p.users == n] for n in levels}
    rates = [float(np.mean([p.rate for p in mean[n]])) for n in levels]
    times = [float(np.mean([p.response_s for p in mean[n]])) * 1e3 for n in levels]
    chart.line("mean", rates, times, 0, marked=True)
    tails = [
        (rate, float(np.mean([p.p99_s or math.nan for p in mean[n]])) * 1e3)
        for n, rate in zip(levels, rates, strict=True)
        if all(p.p99_s for p in mean[n])
    ]
    if tails:
        chart.line("99th percentile", [r for r, _ in tails], [t for _, t in tails], 1, marked=True)
    return chart.finish("One mark for each number of users, fewest on the left.")


def spectra(name: str, records: Sequence[Mapping[str, Any]]) -> list[Picture]:
    """Every percentile of some levels, and the highest load second by second, if known."""
    by_level: dict[int, list[Mapping[str, Any]]] = {}
    for record in records:
        if "load" in record:
            by_level.setdefault(record["users"], []).append(record["load"])
    levels = sorted(by_level)
    places = {round(part * (len(levels) - 1) / (SPECTRA - 1)) for part in range(SPECTRA)}
    shown = [levels[place] for place in sorted(places)] if levels else []
    blobs = {
        f"{level:,} user{'s' if level > 1 else ''}": [
            load.get("histogram", "") for load in by_level[level]
        ]
        for level in shown
    }
    found = [distribution.percentiles(f"{name}-percentiles", "Response times, all of them", blobs)]
    if levels:
        most = by_level[levels[-1]]
        found.append(
            distribution.timeline(
                f"{name}-seconds",
                f"{levels[-1]:,} users, second by second",
                {f"run {n}": load.get("series", []) for n, load in enumerate(most, 1)},
                max(load.get("warmup_s", 0.0) for load in most),
            )
        )
    return [picture for picture in found if picture]


def utilisation(name: str, sweep: Sweep) -> Picture:
    """The utilisation of each resource."""
    chart = Chart(name=f"{name}-cpu", title="CPU", x="users", y="% of the cores allowed")
    for resource in sweep.servers:
        found = [p for p in sweep.points if p.demand_s.get(resource)]
        busy = [100 * sweep.utilisation(p, resource) for p in found]
        if found:
            chart.points(resource, [p.users for p in found], busy, chart.style())
    chart.axes.set_ylim(0, 110)
    return chart.finish("The resource that reaches 100 % first is the bottleneck.")


def prediction(name: str, sweep: Sweep, choice: Choice) -> Picture:
    """The prediction of each model for loads that it has not seen."""
    chart = Chart(name=f"{name}-prediction", title="Predictions", x="users", y="requests/s")
    users = curve_users(sweep)
    last = choice.training.levels[-1]
    _measured(chart, "measured, training", choice.training, 0)
    _measured(chart, "measured, held out", sweep.above(last), 0, hollow=True)
    shown = [c for c in choice.candidates if c.ensemble and c.model.kind != BOUND]
    style = 1
    for candidate in shown:
        assert candidate.ensemble
        if candidate is choice.chosen:
            low, high = candidate.ensemble.band(users)
            chart.band("95 % band of the chosen", list(users), list(low), list(high), style)
        predicted = candidate.ensemble.fitted.predict(users)
        chosen = " (chosen)" if candidate is choice.chosen else ""
        chart.line(f"{candidate.model.name}{chosen}", list(users), list(predicted), style)
        style = style % 7 + 1
    chart.mark("last training point", last)
    chart.axes.set_ylim(0, max(p.rate for p in sweep.points) * 1.6)
    return chart.finish(
        "Models were fitted to the filled marks only. Curves that leave the frame are wrong."
    )


def interval_text(interval: Interval | None, unit: str = "") -> str:
    """An interval as text."""
    if interval is None:
        return "-"
    if not math.isfinite(interval.value):
        return "none"
    digits = 0 if abs(interval.value) >= 100 else 1
    text = f"{interval.value:,.{digits}f}{unit}"
    if math.isfinite(interval.low) and math.isfinite(interval.high):
        text += f" ({interval.low:,.{digits}f} to {interval.high:,.{digits}f})"
    return text


def scores(name: str, choice: Choice, held_out: Sweep) -> Table:
    """Every candidate: fitted on training points, scored on the held-out ones."""
    found: Mapping[str, Score] = score_all(choice, held_out)
    rows = []
    for candidate in choice.candidates:
        mark = "chosen" if candidate is choice.chosen else candidate.model.kind
        each = found.get(candidate.model.name)
        aicc = f"{candidate.aicc:.1f}" if math.isfinite(candidate.aicc) else "-"
        if each is None:
            rows.append([candidate.model.name, mark, aicc, *["-"] * 5, candidate.why_not])
            continue
        against = found.get(LINEAR), found.get(CONSTANT)
        skills = [f"{skill(each.crps, o.crps):.2f}" if o else "-" for o in against]
        rows.append(
            [
                candidate.model.name,
                mark,
                aicc,
                f"{each.mape:.1%}",
                f"{each.crps:,.1f}",
                f"{each.coverage:.0%}",
                *skills,
                "",
            ]
        )
    head = ["model", "", "AICc", "MAPE", "CRPS", "in 95 % band", "skill: linear", "constant", ""]
    return Table(
        name=f"{name}-scores",
        title="Models, and their errors on held-out loads",
        head=head,
        rows=rows,
        note="AICc of the training points decides. The scores are of other loads. "
        "Skill is 1 - CRPS/CRPS(baseline): 1 is perfect, 0 no better than the baseline.",
    )


def levels(name: str, sweep: Sweep) -> Table:
    """The means of each level."""
    rows = []
    for level in sweep.levels:
        here = [p for p in sweep.points if p.users == level]
        rate = np.array([p.rate for p in here])
        deviation = f"{rate.std(ddof=1):,.0f}" if len(rate) > 1 else "-"
        tails = [p.p99_s for p in here if p.p99_s]
        row = [
            str(level),
            str(len(here)),
            f"{rate.mean():,.0f}",
            deviation,
            f"{np.mean([p.response_s for p in here]) * 1e3:.3f}",
            f"{np.mean(tails) * 1e3:.3f}" if tails else "-",
        ]
        for resource in sweep.servers:
            busy = [sweep.utilisation(p, resource) for p in here if p.demand_s.get(resource)]
            row.append(f"{np.mean(busy):.0%}" if busy else "-")
        reasons = sorted({why for p in here if (why := why_void(sweep, p))})
        rows.append([*row, "; ".join(reasons)])
    head = ["users", "runs", "requests/s", "sd", "mean ms", "p99 ms", *sweep.servers, "void"]
    return Table(name=f"{name}-levels", title="Every level", head=head, rows=rows)


def findings(choice: Choice, answers: Capacity, sweep: Sweep, held_out: Sweep) -> list[str]:
    """The verdict in sentences."""
    found = []
    if choice.refusal:
        found.append(f"No prediction beyond what was measured. {choice.refusal}")
    elif choice.chosen:
        unit = " users"
        knee = answers.saturation_users
        where = "Saturates gradually, without a knee"
        if knee and math.isfinite(knee.value):
            where = f"Saturates at N* = {interval_text(knee, unit)}"
        found.append(
            f"{where}; at most "
            f"{interval_text(answers.most_rate)} requests per second ({choice.chosen.model.name}, "
            f"trained on up to {choice.training.levels[-1]} users)."
        )
        if answers.p99_limit_s is not None:
            found.append(
                f"99 % of requests are answered within {answers.p99_limit_s * 1e3:g} ms for up to "
                f"{interval_text(answers.users_within_p99, unit)}."
            )
    found.append(bottleneck_sentence(choice.training if choice.training.points else sweep))
    if choice.chosen and held_out.points and not choice.refusal:
        scored = score_all(choice, held_out)
        mine = scored[choice.chosen.model.name]
        loads = f"{held_out.levels[0]} to {held_out.levels[-1]} users"
        found.append(
            f"On {loads}, which it had not seen, {choice.chosen.model.name} was off by "
            f"{mine.mape:.1%}; linear regression by {scored[LINEAR].mape:.1%}, "
            f'"as the last step" by {scored[CONSTANT].mape:.1%}.'
        )
    _, void = _split(sweep)
    if void:
        found.append(
            f"{len(void)} of {len(sweep.points)} points are void; the table gives the reasons."
        )
    return found
