# SPDX-License-Identifier: MIT
"""Pictures and tables of a sweep of users and of the fitted models."""

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np

from weir_lab.capacity.answers import Interval
from weir_lab.capacity.curves import CannotFitError, asymptotic
from weir_lab.capacity.findings import P99, RATE, RESPONSE, Findings
from weir_lab.capacity.queueing import FloatArray
from weir_lab.capacity.sweep import Point, Sweep, why_void
from weir_lab.report import distribution
from weir_lab.report.chart import Chart, Picture
from weir_lab.report.page import Table

CURVE_STEPS = 60
LEFT = 0.95  # inches: the y axis of both pictures on the first screen
WIDE, NARROW = (8.6, 3.3), (4.6, 3.4)  # inches, of the pictures on the first screen
NEAR = 0.05  # of the x axis: two marks within it have their names on different sides
SPECTRA = 5  # levels whose percentiles are drawn


def plain(value: float) -> str:
    """A number to three digits, without an exponent where it is large."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


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


def throughput(name: str, found: Findings) -> Picture:
    """X against users: measurements, the forecast with its band, N*."""
    chart = Chart(
        name=f"{name}-throughput",
        title="Throughput",
        x="users",
        y="requests/s",
        size=WIDE,
        left=LEFT,
    )
    sweep = found.sweep
    last = _last_training(found)
    _measured(chart, "measured, for training", sweep.up_to(last), 0)
    _measured(chart, "measured, held out", sweep.above(last), 0, hollow=True)
    chart.void([p.users for p, _ in found.void], [p.rate for p, _ in found.void])
    if RATE in found.curves:
        band = found.curves[RATE]
        chart.band("95 % band", list(band.users), list(band.low), list(band.high), 1)
        chart.line("forecast", list(band.users), list(band.value), 1)
    mark_places(chart, last, found)
    chart.axes.set_ylim(0, max(p.rate for p in sweep.points) * 1.3)
    return chart.finish("", narrow=NARROW)


def _last_training(found: Findings) -> int:
    """The last level that the models were fitted to; the last level where none was."""
    return (found.training.levels or found.sweep.levels)[-1]


def _is_low(found: Findings, users: int) -> bool:
    """Whether throughput at this level is in the lower half of the picture."""
    rates = [point.rate for point in found.sweep.points]
    here = [point.rate for point in found.sweep.points if point.users == users]
    return bool(here) and max(here) < max(rates) / 2


def mark_places(chart: Chart, last: int, found: Findings, *, named: bool = True) -> None:
    """N* and the end of training; an N* beyond the levels would make the picture empty."""
    end = float(curve_users(found.sweep)[-1])
    knee = found.capacity.saturation_users
    at = knee.value if knee else math.inf
    is_near = abs(at - last) < NEAR * end  # the names would overlap
    after = is_near and at < last
    low = _is_low(found, last)
    chart.mark("trained up to here", last, named=named, after=after, high=low)
    if knee and knee.value <= end:
        chart.mark("N*", knee.value, named=named, after=is_near and at >= last)
    elif knee and named and np.isfinite(knee.value):
        chart.aside(f"N* is at {knee.value:,.0f} users \N{RIGHTWARDS ARROW}")
    chart.axes.set_xlim(right=end)


def response(name: str, found: Findings) -> Picture:
    """R against users: mean and 99th percentile, the forecast, the objective."""
    chart = Chart(
        name=f"{name}-response",
        title="Response time",
        x="users",
        y="response time, ms",
        size=(WIDE[0], WIDE[1] * 0.8),
        left=LEFT,
    )
    sweep, answers = found.sweep, found.capacity
    valid, void = _split(sweep)
    last = _last_training(found)
    for hollow, what in ((False, ""), (True, ", held out")):
        part = [p for p in valid if (p.users > last) == hollow]
        means = [(p.users, p.response_s * 1e3) for p in part]
        tails = [(p.users, p.p99_s * 1e3) for p in part if p.p99_s]
        for name_of, marks, style in (("mean", means, 0), ("99th percentile", tails, 2)):
            if marks:
                xs, ys = zip(*marks, strict=True)
                label = f"{name_of}{what}"
                chart.points(label, xs, ys, style, hollow=hollow, listed=not hollow)
    chart.void([p.users for p in void], [p.response_s * 1e3 for p in void])
    for quantity, what, style in ((RESPONSE, "the mean", 1), (P99, "the 99th percentile", 3)):
        if quantity in found.curves:
            band = found.curves[quantity]
            chart.line(f"forecast of {what}", list(band.users), list(band.value * 1e3), style)
    mark_places(chart, last, found, named=False)
    if answers.p99_limit_s is not None:
        limit_ms = answers.p99_limit_s * 1e3
        chart.level(f"objective: p99 within {plain(limit_ms)} ms", limit_ms)
    return chart.finish("", narrow=(NARROW[0], NARROW[1] * 1.1))


def latency_throughput(name: str, sweep: Sweep) -> Picture:
    """The load curve: response time against throughput."""
    chart = Chart(
        name=f"{name}-load",
        title="Response time against throughput",
        x="requests/s",
        y="response time, ms",
    )
    valid, _ = _split(sweep)
    levels = sorted({p.users for p in valid})
    by_level = {n: [p for p in valid if p.users == n] for n in levels}
    rates = [median(p.rate for p in by_level[n]) for n in levels]
    times = [median(p.response_s for p in by_level[n]) * 1e3 for n in levels]
    chart.line("mean", rates, times, 0, marked=True)
    tails = [
        (rate, median(p.p99_s or math.nan for p in by_level[n]) * 1e3)
        for n, rate in zip(levels, rates, strict=True)
        if all(p.p99_s for p in by_level[n])
    ]
    if tails:
        chart.line("99th percentile", [r for r, _ in tails], [t for _, t in tails], 1, marked=True)
    return chart.finish(
        "One mark for each number of users, fewest on the left: the median of its runs."
    )


def _loads_by_level(records: Sequence[Mapping[str, Any]]) -> dict[int, list[Mapping[str, Any]]]:
    by_level: dict[int, list[Mapping[str, Any]]] = {}
    for record in records:
        if "load" in record:
            by_level.setdefault(record["users"], []).append(record["load"])
    return dict(sorted(by_level.items()))


def percentiles(name: str, records: Sequence[Mapping[str, Any]]) -> list[Picture]:
    """Every percentile of some levels, if known."""
    by_level = _loads_by_level(records)
    levels = list(by_level)
    places = {round(part * (len(levels) - 1) / (SPECTRA - 1)) for part in range(SPECTRA)}
    shown = [levels[place] for place in sorted(places)] if levels else []
    blobs = {
        f"{level:,} user{'s' if level > 1 else ''}": [
            load.get("histogram", "") for load in by_level[level]
        ]
        for level in shown
    }
    found = distribution.percentiles(f"{name}-percentiles", "Response times, all of them", blobs)
    return [found] if found else []


def seconds(name: str, records: Sequence[Mapping[str, Any]]) -> list[Picture]:
    """The highest load second by second, if known."""
    by_level = _loads_by_level(records)
    if not by_level:
        return []
    level, most = list(by_level.items())[-1]
    found = distribution.timeline(
        f"{name}-seconds",
        f"{level:,} users, second by second",
        {f"run {n}": load.get("series", []) for n, load in enumerate(most, 1)},
        max(load.get("warmup_s", 0.0) for load in most),
    )
    return [found] if found else []


def utilisation(name: str, sweep: Sweep) -> Picture:
    """The utilisation of each resource."""
    chart = Chart(
        name=f"{name}-cpu", title="CPU", x="users", y="utilisation, % of the cores allowed"
    )
    for resource in sweep.servers:
        found = [p for p in sweep.points if p.demand_s.get(resource)]
        busy = [100 * sweep.utilisation(p, resource) for p in found]
        if found:
            chart.points(resource, [p.users for p in found], busy, chart.style())
    chart.axes.set_ylim(0, 110)
    return chart.finish("The resource that reaches 100 % first is the bottleneck.")


def prediction(name: str, found: Findings) -> Picture:
    """The curve of each model that the forecast is combined from."""
    chart = Chart(name=f"{name}-prediction", title="Every model", x="users", y="requests/s")
    last = _last_training(found)
    _measured(chart, "measured, for training", found.sweep.up_to(last), 0)
    _measured(chart, "measured, held out", found.sweep.above(last), 0, hollow=True)
    users = curve_users(found.sweep)
    style = 1
    for part in found.forecast.parts if found.forecast else []:
        if part.fitted and part.weight:
            label = f"{part.name} ({part.weight:.0%})"
            chart.line(label, list(users), list(part.fitted.predict(users)), style)
            style = style % 7 + 1
    try:
        bound = asymptotic(found.training)
        chart.bound("asymptotes", list(users), list(bound.predict(users)))
    except CannotFitError:
        pass
    chart.mark("trained up to here", last, high=_is_low(found, last))
    chart.axes.set_ylim(0, max(p.rate for p in found.sweep.points) * 1.6)
    return chart.finish(
        "Models were fitted to the filled marks only. In brackets: the weight in the forecast."
    )


def interval_text(interval: Interval | None, unit: str = "") -> str:
    """An interval as text."""
    if interval is None:
        return "-"
    if not math.isfinite(interval.value):
        return "none"
    digits = 0 if abs(interval.value) >= 100 or is_whole(interval) else 1
    text = f"{interval.value:,.{digits}f}{unit}"
    if math.isfinite(interval.low) and math.isfinite(interval.high):
        text += f" ({interval.low:,.{digits}f} to {interval.high:,.{digits}f})"
    elif math.isfinite(interval.low) and interval.low < interval.value:
        text += f" ({interval.low:,.{digits}f} or more)"
    return text


def is_whole(interval: Interval) -> bool:
    """Whether these are counts of users, and no values of a model."""
    ends = (interval.value, interval.low, interval.high)
    return all(float(n).is_integer() for n in ends if math.isfinite(n))


def scores(name: str, found: Findings) -> Table:
    """The forecast and the baselines on held-out points, for each quantity."""
    rows = []
    for quantity, each in found.scores.items():
        mine = each.forecast
        rows.append(
            [
                quantity,
                f"{mine.mape:.1%}",
                f"{each.linear:.1%}",
                f"{each.constant:.1%}",
                f"{mine.coverage:.0%}",
                f"{mine.width / 2:.0%}",
            ]
        )
    head = ["forecast of", "off by", "linear", "as the last step", "in 95 % band", "half a band"]
    return Table(
        name=f"{name}-scores",
        title="Errors on held-out loads",
        head=head,
        rows=rows,
        note="Mean errors relative to the median of each level's runs. The models have not seen "
        "these loads. The band is of a single run, and its share is counted over all runs.",
    )


def models(name: str, found: Findings) -> Table:
    """The models that the forecast is combined from, and why the others are not."""
    rows = []
    for part in found.forecast.parts if found.forecast else []:
        loss = f"{part.loss:.1%}" if math.isfinite(part.loss) else "-"
        rows.append([part.name, f"{part.weight:.0%}", loss, part.why_not])
    return Table(
        name=f"{name}-models",
        title="Models that the forecast is combined from",
        head=["model", "weight", "off on later training levels", "why not"],
        rows=rows,
        note="Each model was fitted to the first training levels and predicted the later ones. The "
        "less it was off there, the more weight it has.",
    )


def levels(name: str, sweep: Sweep, *, connects: bool = False) -> Table:
    """The medians of each level over its valid runs, or over all where none is valid.

    Where the generator `connects` for each request, the mean has that time and the percentile not.
    """
    rows = []
    for level in sorted({*sweep.levels, *(run.users for run in sweep.unanswered)}):
        every = [p for p in sweep.points if p.users == level]
        without = [run.why for run in sweep.unanswered if run.users == level]
        if not every:
            figures = ["-"] * (4 + len(sweep.servers))
            rows.append([str(level), str(len(without)), *figures, "; ".join(sorted(set(without)))])
            continue
        here = [p for p in every if not why_void(sweep, p)] or every
        rate = np.array([p.rate for p in here])
        deviation = f"{rate.std(ddof=1):,.0f}" if len(rate) > 1 else "-"
        tails = [p.p99_s for p in here if p.p99_s]
        row = [
            str(level),
            str(len(every) + len(without)),
            f"{np.median(rate):,.0f}",
            deviation,
            f"{median(p.response_s for p in here) * 1e3:.3f}",
            f"{median(tails) * 1e3:.3f}" if tails else "-",
        ]
        for resource in sweep.servers:
            busy = [sweep.utilisation(p, resource) for p in here if p.demand_s.get(resource)]
            row.append(f"{median(busy):.0%}" if busy else "-")
        reasons = sorted({*without, *(why for p in every if (why := why_void(sweep, p)))})
        rows.append([*row, "; ".join(reasons)])
    times = ["mean ms", "p99 ms"]
    if connects:
        times = ["mean ms, with connecting", "p99 ms, without connecting"]
    head = ["users", "runs", "requests/s", "sd", *times, *sweep.servers, "void"]
    return Table(
        name=f"{name}-levels",
        title="Every level",
        head=head,
        rows=rows,
        note="Medians of the valid runs; sd is their standard deviation.",
    )
