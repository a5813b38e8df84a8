# SPDX-License-Identifier: MIT
"""Whole distributions of response times: every percentile, and second by second.

Histograms are added, which loses nothing; percentiles are never averaged. They are read with the
package hdrhistogram, which Debian does not have. Without it, reports have no such picture.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from weir_lab.report.chart import Chart, Picture

if TYPE_CHECKING:
    from hdrh.histogram import HdrHistogram

READS_HISTOGRAMS = importlib.util.find_spec("hdrh") is not None
STEPS_A_DECADE = 24
SECONDS_MIN = 3
BEYOND_MIN = 10  # answers beyond the last percentile that is shown


def merged(blobs: Iterable[str]) -> HdrHistogram | None:
    """One merged histogram of those that exist.

    None if there is none, if one of them is damaged, or without hdrhistogram.
    """
    if not READS_HISTOGRAMS:
        return None
    from hdrh.histogram import HdrHistogram

    whole = None
    for blob in blobs:
        if not blob:
            continue
        try:
            part = HdrHistogram.decode(blob)
        except Exception:
            return None
        if whole is None:
            whole = part
        else:
            whole.add(part)
    return whole


def spectrum(histogram: HdrHistogram) -> list[tuple[float, float]]:
    """(1/(1-p), milliseconds), up to the last percentile with enough answers."""
    count = histogram.get_total_count()
    decades = math.log10(max(1.0, count / BEYOND_MIN))
    steps = int(decades * STEPS_A_DECADE)
    places = [10 ** (step / STEPS_A_DECADE) for step in range(steps + 1)]
    percents = [100 * (1 - 1 / place) for place in places]
    values = histogram.get_percentile_to_value_dict(percents)
    return [(x, values[p] / 1e6) for x, p in zip(places, percents, strict=True)]


def percentiles(name: str, title: str, blobs: Mapping[str, Iterable[str]]) -> Picture | None:
    """A line for each series over 1/(1-p), so that each nine has the same width."""
    found = {label: whole for label, each in blobs.items() if (whole := merged(each))}
    found = {label: whole for label, whole in found.items() if whole.get_total_count()}
    if not found:
        return None
    chart = Chart(name=name, title=title, x="percentile", y="response time, ms", log_y=True)
    chart.percentile_axis()
    for label, whole in found.items():
        line = spectrum(whole)
        chart.line(label, [x for x, _ in line], [y for _, y in line], chart.style())
    least = min(whole.get_total_count() for whole in found.values())
    return chart.finish(
        "All runs of a series together. The x axis is 1/(1-p), so every nine has the same width. "
        f"A line ends where {BEYOND_MIN} answers are left beyond it "
        f"(of {least:,} or more).",
        from_zero=False,
    )


def timeline(
    name: str, title: str, runs: Mapping[str, Sequence[Mapping[str, Any]]], warmup_s: float
) -> Picture | None:
    """Throughput second by second of single runs; None where they have too few seconds to show."""
    if max((len(series) for series in runs.values()), default=0) < SECONDS_MIN:
        return None
    chart = Chart(name=name, title=title, x="time, s", y="requests/s")
    for label, series in runs.items():
        style = chart.style()
        xs, ys, at_s = [], [], 0.0
        for second in series:
            xs.append(at_s + second["seconds"] / 2)
            ys.append(second["rate"])
            at_s += second["seconds"]
        if xs:
            chart.line(label, xs, ys, style, marked=True)
    if warmup_s > 0:
        chart.shade("warm-up", -warmup_s, 0)
    return chart.finish(
        "Each mark is the mean of a second; the last can be shorter. A level line is steady."
        + (" The shaded warm-up is not measured." if warmup_s > 0 else ""),
    )
