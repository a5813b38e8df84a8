# SPDX-License-Identifier: MIT
"""Models beside a slow disk: what the other clients notice, and who waits for the disk.

A closed loop hides users that never get an answer: they add no response time. So the rate of the
other clients is judged beside their percentile.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from weir_lab.analysis.ratio import Ratio, ratio
from weir_lab.report.chart import Chart, Picture
from weir_lab.report.comparison import figure_text, ratio_text
from weir_lab.report.page import Table

Record = Mapping[str, Any]

GROWTH_MAX = 2.0  # of the 99th percentile of the other clients
RATE_LEAST = 0.9  # of the rate of the other clients
ALIKE_MAX = 1.2  # models whose rates differ by less are called alike


@dataclass(frozen=True, kw_only=True)
class Beside:
    """The runs of one model beside one number of slow clients. Each has at least one run."""

    model: str
    slow_clients: int
    runs: Mapping[int, Record]  # by round

    def _by_round(self, part: str, figure: str) -> dict[int, float]:
        found = {number: record[part][figure] for number, record in self.runs.items()}
        return {number: float(value) for number, value in found.items() if value}

    def values(self, part: str, figure: str) -> list[float]:
        """The figure of each round that has one."""
        return list(self._by_round(part, figure).values())

    def middle(self, part: str, figure: str) -> float | None:
        """The median of the rounds; None where a round has no such figure."""
        found = self.values(part, figure)
        return median(found) if len(found) == len(self.runs) else None

    def ratio(self, figure: str) -> Ratio | None:
        """The figure of the other clients beside the disk, as a multiple of that alone."""
        if self.middle("beside", figure) is None:
            return None
        return ratio(self._by_round("beside", figure), self._by_round("alone", figure))

    @property
    def is_calm(self) -> bool:
        """Whether the other clients notice little of the slow disk."""
        growth, kept = self.ratio("p99_s"), self.ratio("per_s")
        if growth is None or kept is None:
            return False
        return growth.value <= GROWTH_MAX and kept.value >= RATE_LEAST


def listed(names: Sequence[str]) -> str:
    """Names as a part of a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def clients_of(number: int) -> str:
    """So many clients of the slow disk."""
    return f"{number} client{'' if number == 1 else 's'}"


def other_clients(found: Sequence[Beside], delay_ms: int) -> list[str]:
    """A sentence on the other clients for each number of slow clients."""
    said = []
    for number in dict.fromkeys(each.slow_clients for each in found):
        here = [each for each in found if each.slow_clients == number]
        calm = [each.model for each in here if each.is_calm]
        rest = [f"{each.model} ({_noticed(each)})" for each in here if not each.is_calm]
        text = f"Beside {clients_of(number)} of a disk that answers after {delay_ms} ms, "
        bounds = f"at most {GROWTH_MAX:g} times the 99th percentile, and at least "
        bounds += f"{100 * RATE_LEAST:.0f} % of the rate"
        if not rest:
            text += f"the other clients are served as before on {listed(calm)}: {bounds}."
        elif not calm:
            text += f"the other clients notice the disk on every model: {listed(rest)}."
        else:
            text += (
                f"the other clients are served as before on {listed(calm)}: {bounds}. "
                f"They notice the disk on {listed(rest)}."
            )
        said.append(text)
    return said


def _noticed(each: Beside) -> str:
    growth, kept = each.ratio("p99_s"), each.ratio("per_s")
    if growth is None or kept is None:
        return "without an answer in some round"
    return f"99th percentile {ratio_text(growth.value)} times, rate {100 * kept.value:.0f} %"


def slow_clients(found: Sequence[Beside]) -> list[str]:
    """A sentence on the clients of the disk for each number of them."""
    said = []
    for number in dict.fromkeys(each.slow_clients for each in found):
        rates = {
            each.model: rate
            for each in found
            if each.slow_clients == number and (rate := each.middle("slow", "per_s"))
        }
        if len(rates) < 2:
            continue
        most, least = max(rates, key=rates.__getitem__), min(rates, key=rates.__getitem__)
        text = f"Of {clients_of(number)} of the disk, {most} answers the most: "
        text += f"{figure_text(rates[most])} files per second. {least} answers the least: "
        text += f"{figure_text(rates[least])}."
        if rates[most] < ALIKE_MAX * rates[least]:
            text = f"{clients_of(number)} of the disk get about {figure_text(rates[most])} files "
            text += "per second on every model."
        said.append(text)
    return said


def table(found: Sequence[Beside]) -> Table:
    """All medians."""

    def ms(value: float | None) -> str:
        return figure_text(None if value is None else 1000 * value)

    def times(value: Ratio | None) -> str:
        return "-" if value is None else ratio_text(value.value)

    return Table(
        name="slow-disk",
        title="Other clients, and clients of the disk",
        head=[
            "model",
            "slow clients",
            "p99 alone, ms",
            "p99 beside, ms",
            "times",
            "rate, times",
            "files of the disk per second",
            "wait for a file, ms",
            "refused",
        ],
        rows=[
            [
                each.model,
                str(each.slow_clients),
                ms(each.middle("alone", "p99_s")),
                ms(each.middle("beside", "p99_s")),
                times(each.ratio("p99_s")),
                times(each.ratio("per_s")),
                figure_text(each.middle("slow", "per_s")),
                ms(each.middle("slow", "median_s")),
                str(sum(record["slow"]["refused"] for record in each.runs.values())),
            ]
            for each in found
        ],
        note="Medians of the rounds. `times` is the geometric mean of the ratios within rounds. A "
        "dash: no answer in some round.",
    )


def _chart(found: Sequence[Beside], name: str, title: str, x: str, series: int) -> Chart:
    models = list(dict.fromkeys(each.model for each in found))
    height = 1.1 + (0.15 * series + 0.14) * len(models)
    chart = Chart(name=name, title=title, x=x, y="", log_x=True, size=(7.2, height))
    chart.rows_named(models)
    return chart


def _draw(
    chart: Chart,
    found: Sequence[Beside],
    label: str,
    what: tuple[str, str, float],
    place: tuple[int, int],
) -> None:
    """One series: the median of each model, with the range of its rounds."""
    part, figure, unit = what
    number, series = place
    models = list(dict.fromkeys(each.model for each in found))
    rows = []
    for each in found:
        if values := [unit * value for value in each.values(part, figure)]:
            shift = (number - (series - 1) / 2) * 0.7 / series
            at = models.index(each.model) + shift
            rows.append((at, median(values), min(values), max(values), each.model))
    if rows:
        places, middles, lows, highs, names = zip(*rows, strict=True)
        chart.whiskers(label, places, middles, lows, highs, number, names)


def _together(found: Sequence[Beside]) -> list[Beside]:
    """All runs of each model: alone, they do not differ."""
    models = list(dict.fromkeys(each.model for each in found))
    every = {
        model: [run for each in found if each.model == model for run in each.runs.values()]
        for model in models
    }
    return [
        Beside(model=model, slow_clients=0, runs=dict(enumerate(runs)))
        for model, runs in every.items()
    ]


def pictures(found: Sequence[Beside]) -> list[Picture]:
    """The 99th percentile and the rate of the other clients, and the files of the disk."""
    numbers = list(dict.fromkeys(each.slow_clients for each in found))
    groups = [[each for each in found if each.slow_clients == number] for number in numbers]
    drawn = []
    for name, title, x, figure, unit in (
        ("slow-disk-p99", "99th percentile of the other clients", "ms", "p99_s", 1000.0),
        ("slow-disk-rate", "Answers to the other clients", "requests per second", "per_s", 1.0),
    ):
        series = len(numbers) + 1
        chart = _chart(found, name, title, x, series)
        _draw(chart, _together(found), "alone", ("alone", figure, unit), (0, series))
        for at, (number, group) in enumerate(zip(numbers, groups, strict=True), 1):
            label = f"beside {clients_of(number)} of the disk"
            _draw(chart, group, label, ("beside", figure, unit), (at, series))
        drawn.append(chart.finish("Medians; a line spans all rounds.", from_zero=False))
    title = "Answers to the clients of the disk"
    chart = _chart(found, "slow-disk-files", title, "files per second", len(numbers))
    for at, (number, group) in enumerate(zip(numbers, groups, strict=True)):
        _draw(chart, group, clients_of(number), ("slow", "per_s", 1.0), (at, len(numbers)))
    drawn.append(chart.finish("More is better. A line spans all rounds.", from_zero=False))
    return drawn
