# SPDX-License-Identifier: MIT
"""Pictures that compare servers."""

import math
from statistics import geometric_mean

from weir_lab.analysis.ratio import ratio
from weir_lab.report import distribution
from weir_lab.report.chart import Chart, Picture
from weir_lab.report.comparison import FIGURES, GENERATOR_BUSY_ITSELF, Comparison, capital


def ratio_picture(comparison: Comparison, name: str) -> Picture | None:
    """Every judged ratio, with its interval."""
    found = {
        key: each.ratio
        for key, each in comparison.judged(name).items()
        if not each.why_not and math.isfinite(each.ratio.high) and each.ratio.low > 0
    }
    if not found:
        return None
    first, title = comparison.first, capital(FIGURES[name].title)
    chart = Chart(
        name=f"ratio-{name}",
        title=f"{title}, as a multiple of {first}'s",
        x=f"times {first}",
        y="",
        log_x=True,
        size=(7.2, 0.9 + 0.24 * len(found)),
    )
    chart.intervals(
        [f"{server}, {work}" for work, server in found],
        [r.value for r in found.values()],
        [r.low for r in found.values()],
        [r.high for r in found.values()],
        1.0,
    )
    better = "left" if FIGURES[name].is_less_better else "right"
    return chart.finish(
        f"Further to the {better} is better. A square shows a difference, a circle does not. "
        "All intervals of the report hold together with 95 % confidence.",
        legend=False,
        from_zero=False,
    )


def figure_picture(comparison: Comparison, name: str) -> Picture | None:
    """The figure itself: a mark with its interval for each server and work."""
    figure = FIGURES[name]
    if not any(comparison.middle(w, s, name) for w in comparison.works for s in comparison.servers):
        return None
    works = len(comparison.works)
    chart = Chart(
        name=f"figure-{name}",
        title=capital(figure.title),
        x=figure.label,
        y="",
        size=(7.2, 1.1 + (0.15 * works + 0.14) * len(comparison.servers)),
    )
    most = highest = 0.0
    for number, work in enumerate(comparison.works):
        rows = []
        for place, server in enumerate(comparison.servers):
            found = [v for v in comparison.by_round(work, server, name).values() if v > 0]
            if not found:
                continue
            whole = ratio(dict(enumerate(found)), dict.fromkeys(range(len(found)), 1.0))
            if whole and math.isfinite(whole.high):
                row = (whole.value, whole.low, whole.high)
            else:
                row = (geometric_mean(found), min(found), max(found))
            shift = (number - (works - 1) / 2) * 0.7 / works
            rows.append((place + shift, *row, server))
        if rows:
            places, values, lows, highs, names = zip(*rows, strict=True)
            chart.whiskers(work, places, values, lows, highs, number, names)
            most = max(most, *values)
            highest = max(highest, *highs)
    chart.rows_named(comparison.servers)
    chart.axes.set_xlim(
        right=1.05 * min(highest, 2 * most)
    )  # one wide interval does not compress the rest
    better = "Less" if figure.is_less_better else "More"
    bounded = " Where the generator was the limit it is a bound: see the CPU's table."
    return chart.finish(
        f"{better} is better. Geometric means of the rounds, each with its own 95 % interval; "
        f"to compare two servers, use their ratio.{bounded if figure.is_bounded else ''}"
    )


def percentile_pictures(comparison: Comparison) -> list[Picture]:
    """Every percentile of each server, one picture for each work."""
    found = []
    for number, work in enumerate(comparison.works):
        blobs = {
            server: [r.record["load"].get("histogram", "") for r in comparison.of(work, server)]
            for server in comparison.servers
        }
        picture = distribution.percentiles(
            f"percentiles-{number + 1}", f"Response times, {work}", blobs
        )
        if picture:
            found.append(picture)
    return found


def load_pictures(comparison: Comparison) -> list[Picture]:
    """Response time against throughput, for works that differ in their connections only."""
    kinds: dict[tuple[bool, str, int], dict[int, str]] = {}
    for work in comparison.works:
        runs = [r for r in comparison.runs if r.work == work]
        if runs:
            record = runs[0].record
            kind = (record["keep_alive"], record["path"], record.get("streams", 0))
            kinds.setdefault(kind, {})[record["users"]] = work
    found = []
    for number, ((kept, path, streams), works) in enumerate(kinds.items()):
        if len(works) < 2:
            continue
        how = "keep-alive" if kept else "a connection for each request"
        how = f"HTTP/2, {streams} at once" if streams else how
        chart = Chart(
            name=f"load-{number + 1}",
            title=f"Response time against throughput, {path.strip('/')}, {how}",
            x="requests/s",
            y="99th percentile, ms",
            log_y=True,
        )
        for server in comparison.servers:
            style = chart.style()
            points = [
                (rate, tail)
                for users in sorted(works)
                if (rate := comparison.middle(works[users], server, "rate"))
                and (tail := comparison.middle(works[users], server, "p99"))
            ]
            if points:
                rates, tails = zip(*points, strict=True)
                chart.line(server, rates, tails, style, marked=True)
        users = ", ".join(f"{n:,}" for n in sorted(works))
        found.append(
            chart.finish(
                f"A mark for each number of connections: {users}. Further to the right and lower "
                "is better."
            )
        )
    return found


def session_picture(comparison: Comparison) -> Picture | None:
    """The CPU per request in each round, by time of day: shows drift of the machine."""
    began = [r.record["began_unix_s"] for r in comparison.runs]
    if not began:
        return None
    chart = Chart(
        name="session",
        title="Round by round",
        x="minutes since the first round",
        y="CPU per request / its median",
        log_y=True,
    )
    for server in comparison.servers:
        style = chart.style()
        marks = [
            ((run.record["began_unix_s"] - min(began)) / 60, run.figure("cpu") / middle)
            for work in comparison.works
            if (middle := comparison.middle(work, server, "cpu"))
            for run in comparison.of(work, server)
            if run.figure("cpu") > 0
        ]
        if marks:
            minutes, times = zip(*marks, strict=True)
            chart.points(server, minutes, times, style)
    return chart.finish(
        "Each mark is one run against a freshly started server, beside the median of the same "
        "server and work. A level row means a steady machine. A change of all servers at "
        "once comes "
        "from the machine, and ratios within a round exclude it."
    )


def busy_picture(comparison: Comparison) -> Picture | None:
    """The utilisation of server and generator."""
    chart = Chart(
        name="busy",
        title="CPU of server and generator",
        x="% of one core",
        y="",
        size=(7.2, 1.3 + 0.22 * len(comparison.servers) * len(comparison.works)),
    )
    names = [(w, s) for w in comparison.works for s in comparison.servers]
    for style, (name, label) in enumerate({"server": "server", "generator": "generator"}.items()):
        rows = [
            (place, value, f"{server}, {work}")
            for place, (work, server) in enumerate(names)
            if (value := comparison.middle(work, server, name))
        ]
        if not rows:
            return None
        places, values, labels = zip(*rows, strict=True)
        chart.whiskers(label, places, values, values, values, style, labels)
    chart.rows_named([f"{server}, {work}" for work, server in names])
    chart.mark("generator's limit", 100 * GENERATOR_BUSY_ITSELF)
    return chart.finish(
        "Medians of the rounds. Where the generator is above its limit, it sets the rate and not "
        "the server."
    )
