# SPDX-License-Identifier: MIT
"""The answer in a terminal, with a small plot; into a pipe, the same as plain lines."""

import math
from collections.abc import Callable, Iterator, Sequence

from rich.console import Console

from weir_lab.report.chart import Picture, Row
from weir_lab.report.page import Headline, Report, headline_text
from weir_lab.report.spoken import spoken

COLUMNS, LINES = 60, 13
LABEL = 12  # columns for the numbers of the y axis
STYLES = {"green": "green", "yellow": "yellow", "red": "red"}
# The later a kind is in this list, the later it is drawn, over the others.
SIGNS = {"band": "░", "mark": "┊", "line": "·", "void": "x", "hollow": "○", "points": "●"}
PLAIN = {"░": ".", "┊": "|", "·": "-", "○": "o", "●": "*"}
LEGEND = "● measured   ○ measured, held out   · forecast   ░ 95 % band   ┊ N*, end of training"


def _kind(row: Row) -> str:
    return "hollow" if row[0] == "points" and "held out" in row[1] else row[0]


class Plot:
    """The rows of a picture on a grid of characters."""

    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        self.rows = [row for row in picture.rows if _kind(row) in SIGNS]
        measured = [row for row in self.rows if row[0] in ("points", "void")]
        self.most_x = max((row[2] for row in measured), default=0.0) * 1.05
        highest = max((row[3] for row in measured), default=0.0)
        lines = [row[3] for row in self.rows if row[0] == "line" and row[2] <= self.most_x]
        self.most_y = min(max([highest, *lines]) * 1.1, highest * 1.5)
        self.is_empty = not (self.most_x > 0 and self.most_y > 0)

    def _column(self, x: float) -> int:
        return round(x / self.most_x * (COLUMNS - 1))

    def _line(self, y: float) -> int:
        return LINES - 1 - round(y / self.most_y * (LINES - 1))

    def _cells(self, row: Row) -> Iterator[tuple[int, int]]:
        """The cells that a row covers."""
        kind, _, x, y, low, high = row
        if not 0 <= x <= self.most_x:
            return
        lines: Sequence[int] = ()
        if kind == "mark":
            lines = range(LINES)
        elif kind == "band" and math.isfinite(low) and math.isfinite(high):
            lines = range(self._line(min(high, self.most_y)), self._line(max(low, 0)) + 1)
        elif math.isfinite(y) and 0 <= y <= self.most_y:
            lines = (self._line(y),)
        for line in lines:
            yield line, self._column(x)

    def text(self) -> list[str]:
        """The plot as lines, with the numbers of its axes."""
        grid = [[" "] * COLUMNS for _ in range(LINES)]
        for kind, sign in SIGNS.items():
            for row in (r for r in self.rows if _kind(r) == kind):
                for line, column in self._cells(row):
                    grid[line][column] = sign
        labels = {0: self.most_y, LINES // 2: self.most_y / 2, LINES - 1: 0.0}
        found = [f"{self.picture.y:>{LABEL}}"]
        for line, cells in enumerate(grid):
            label = spoken(_round(labels[line])) if line in labels else ""
            found.append(f"{label:>{LABEL}} │{''.join(cells)}".rstrip())
        found.append(f"{'':>{LABEL}} └{'─' * COLUMNS}")
        ends = f"0{f'{spoken(_round(self.most_x))} {self.picture.x}':>{COLUMNS - 1}}"
        found.append(f"{'':>{LABEL}}  {ends}")
        return found


def _round(value: float) -> float:
    """To two digits: the ends of an axis are no measurements."""
    return float(f"{value:.2g}")


def plot_of(headline: Headline) -> list[str]:
    """The plot of the first picture, where it has measured points."""
    if not headline.pictures:
        return []
    plot = Plot(headline.pictures[0])
    return [] if plot.is_empty else [*plot.text(), f"{'':>{LABEL}}  {LEGEND}"]


def show(report: Report, console: Console) -> None:
    """Prints the answer; only a terminal gets the plot, bold letters and colours."""

    def put(text: str, style: str = "") -> None:
        console.print(
            text, style=style, markup=False, highlight=False, soft_wrap=not console.is_terminal
        )

    own = [report.headline] if report.headline else []
    several = bool(own) or len(report.sections) > 1
    for headline in own:
        _put_headline(headline, put, console)
    for section in report.sections:
        if several:
            put(section.title, "bold")
        _put_headline(section.headline, put, console, plot=not several)
    if not console.is_terminal:
        for note in report.notes:
            put(note)


def _put_headline(
    headline: Headline, put: Callable[..., None], console: Console, *, plot: bool = True
) -> None:
    sentence, *others = headline_text(headline)
    put(sentence, "bold")
    for line in others:
        is_mark = headline.mark and line.startswith(headline.mark.sign)
        put(f"  {line}", STYLES[headline.mark.grade] if headline.mark and is_mark else "")
    if plot and console.is_terminal and console.width > COLUMNS + LABEL + 2:
        for line in plot_of(headline):
            put(_ascii(line) if console.options.ascii_only else line, "dim")


def _ascii(text: str) -> str:
    for sign, plain in {**PLAIN, "│": "|", "└": "+", "─": "-"}.items():
        text = text.replace(sign, plain)
    return text
