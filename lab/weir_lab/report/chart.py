# SPDX-License-Identifier: MIT
"""A plot that records what it draws, so that the picture and its CSV cannot differ.

Colours are Okabe and Ito's, which colour-blind people tell apart, and no series differs from
another by colour alone. Ink is written as `currentColor` in the SVG: it is dark on a light page and
on paper, and light in the dark.
"""

import csv
import html
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import matplotlib
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from weir_lab.report import legends
from weir_lab.report.inline import inline
from weir_lab.report.spoken import series_in_words, spoken, valued
from weir_lab.report.ticks import GROUPED, as_percentile, plain

INK = "#010203"  # stands for the text's colour
MUTED = 0.35
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C8C8C", INK)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ("-", "--", "-.", ":", (0, (6, 2, 1, 2)), (0, (1, 1)), (0, (8, 3)), (0, (10, 2, 2, 2)))
SIZE = (7.2, 4.0)
PNG_DPI = 150
ALT_SERIES_MAX = 12
LEGEND_COLUMN = 1.7  # inches
POINTS_AN_INCH = 72
RIGHT = 0.015  # part of the width that is left free
HINTS_MAX = 40  # of a series
NEAR = 0.01  # of the figure: a mark on an axis is still inside
RATIO_FAR = 20.0  # an interval beyond this ratio ends in an arrow

STYLE: Any = {
    "font.size": 10,
    "svg.fonttype": "none",
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": INK,
    "grid.alpha": 0.12,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
}

Numbers = Sequence[float]
Row = tuple[str, str, float, float, float, float]  # kind, series, x, y, low, high


@dataclass(frozen=True)
class Look:
    """The look of a series. The first 56 all differ, and not by colour alone."""

    colour: str
    marker: str
    dash: Any


def look(style: int) -> Look:
    """The look with this number."""
    turn = style // len(COLOURS)
    return Look(
        colour=COLOURS[style % len(COLOURS)],
        marker=MARKERS[(style + turn) % len(MARKERS)],
        dash=DASHES[(style + turn) % len(DASHES)],
    )


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A finished figure in every format."""

    name: str  # of the files
    title: str
    caption: str
    svg: str
    png: bytes
    csv: str
    alt: str = ""  # a description for readers who cannot see it
    narrow: str = ""  # the SVG for a narrow screen, where the wide one cannot be read
    x: str = ""  # labels of the axes
    y: str = ""
    rows: Sequence[Row] = ()  # all that is drawn


@dataclass(kw_only=True)
class Chart:
    """One plot under construction."""

    name: str
    title: str
    x: str  # labels of the axes, with units
    y: str
    log_x: bool = False
    log_y: bool = False
    size: tuple[float, float] = SIZE
    left: float = 0.0  # place of the y axis in inches; 0: as the labels need it
    rows: list[Row] = field(default_factory=list)
    hints: list[tuple[float, float, str]] = field(default_factory=list)  # x, y, text on hover
    canvas: Canvas = field(init=False)
    axes: Axes = field(init=False)
    _styled: int = 0
    _left: float = 0.0  # the start of the x axis
    _below: float = 0.0  # part of the height that is left to the legend
    _is_list: bool = False  # whether the y axis is names
    _is_percentile: bool = False  # whether the x axis is 1/(1-p)

    def __post_init__(self) -> None:
        with matplotlib.rc_context(STYLE):
            self.canvas = Canvas(figsize=self.size)
            self.axes = self.canvas.add_subplot()
            self.axes.xaxis.set_major_formatter(GROUPED)
            self.axes.yaxis.set_major_formatter(GROUPED)
        self.axes.set_xlabel(self.x)
        self.axes.set_ylabel(self.y)
        if self.log_x:
            self.axes.set_xscale("log")
            plain(self.axes.xaxis)
        if self.log_y:
            self.axes.set_yscale("log")
            plain(self.axes.yaxis)

    def _note(self, kind: str, label: str, xs: Numbers, ys: Numbers) -> None:
        self.rows += [(kind, label, x, y, math.nan, math.nan) for x, y in zip(xs, ys, strict=True)]
        every = max(1, -(-len(xs) // HINTS_MAX))
        for x, y in list(zip(xs, ys, strict=True))[::every]:
            self._hint(x, y, f"{label}: {self._at(x)}, {valued(y, self.y)}")

    def _at(self, x: float) -> str:
        """A place on the x axis in words."""
        if self._is_percentile:
            return as_percentile(x, 0)
        return valued(x, self.x)

    def _hint(self, x: float, y: float, text: str) -> None:
        if math.isfinite(x) and math.isfinite(y):
            self.hints.append((x, y, text))

    def style(self) -> int:
        """The next series' number, for colour, marker and dashes alike."""
        self._styled += 1
        return self._styled - 1

    def points(
        self,
        label: str,
        xs: Numbers,
        ys: Numbers,
        style: int,
        *,
        hollow: bool = False,
        listed: bool = True,
    ) -> None:
        """Single measurements; the legend leaves out those that are not listed."""
        colour = look(style).colour
        self.axes.plot(
            xs,
            ys,
            linestyle="none",
            marker=look(style).marker,
            markersize=5,
            markerfacecolor="none" if hollow else colour,
            markeredgecolor=colour,
            alpha=0.8,
            label=label if listed else None,
        )
        self._note("points", label, xs, ys)

    def void(self, xs: Numbers, ys: Numbers) -> None:
        """Void measurements."""
        if len(xs):
            self.axes.plot(
                xs, ys, linestyle="none", marker="x", color=INK, alpha=MUTED + 0.2, label="void"
            )
            self._note("void", "void", xs, ys)

    def line(
        self, label: str, xs: Numbers, ys: Numbers, style: int, *, marked: bool = False
    ) -> None:
        """A curve."""
        self.axes.plot(
            xs,
            ys,
            color=look(style).colour,
            linestyle=look(style).dash,
            marker=look(style).marker if marked else None,
            markersize=4,
            linewidth=1.8,
            label=label,
        )
        self._note("line", label, xs, ys)

    def bars(self, label: str, xs: Numbers, ys: Numbers, errors: Numbers, style: int) -> None:
        """Means with a spread around them."""
        self.axes.errorbar(
            xs,
            ys,
            yerr=errors,
            color=look(style).colour,
            linestyle=look(style).dash,
            marker=look(style).marker,
            markersize=4,
            capsize=2,
            linewidth=1.5,
            label=label,
        )
        for x, y, error in zip(xs, ys, errors, strict=True):
            self.rows.append(("mean", label, x, y, y - error, y + error))
            text = f"{label}: {self._at(x)}, {valued(y, self.y)} ± {spoken(error)}"
            self._hint(x, y, text)

    def band(self, label: str, xs: Numbers, lows: Numbers, highs: Numbers, style: int) -> None:
        """The range in which measurements are expected."""
        self.axes.fill_between(
            xs, lows, highs, color=look(style).colour, alpha=0.18, linewidth=0, label=label
        )
        for x, low, high in zip(xs, lows, highs, strict=True):
            self.rows.append(("band", label, x, math.nan, low, high))
        every = max(1, len(xs) // (HINTS_MAX // 3))
        for x, low, high in list(zip(xs, lows, highs, strict=True))[::every]:
            text = f"{label}: {self._at(x)}, {spoken(low)} to {valued(high, self.y)}"
            self._hint(x, high, text)
            self._hint(x, low, text)

    def bound(self, label: str, xs: Numbers, ys: Numbers) -> None:
        """A bound."""
        self.axes.plot(
            xs, ys, color=INK, alpha=0.55, linewidth=1, linestyle=(0, (4, 3)), label=label
        )
        self._note("bound", label, xs, ys)

    def mark(
        self, label: str, x: float, *, named: bool = True, after: bool = False, high: bool = False
    ) -> None:
        """Marks a place on the x axis. Its name is before or after it, at the bottom or high."""
        if not math.isfinite(x):
            return
        self.axes.axvline(x, color=INK, alpha=MUTED, linewidth=1, linestyle=":")
        self.rows.append(("mark", label, x, math.nan, math.nan, math.nan))
        if not named:
            return
        self.axes.annotate(
            label,
            (x, 0.98 if high else 0.02),
            xycoords=("data", "axes fraction"),
            rotation=90,
            ha="left" if after else "right",
            va="top" if high else "bottom",
            color=INK,
            fontsize=9,
        )

    def aside(self, text: str) -> None:
        """A note at the right end of the picture."""
        self.axes.annotate(
            text,
            (0.995, 0.03),
            xycoords="axes fraction",
            ha="right",
            va="bottom",
            color=INK,
            fontsize=9,
        )

    def level(self, label: str, y: float) -> None:
        """Marks a place on the y axis."""
        self.axes.axhline(y, color=INK, alpha=0.55, linewidth=1, linestyle=(0, (1, 2)))
        self.axes.annotate(
            label,
            (0.01, y),
            xycoords=("axes fraction", "data"),
            xytext=(0, 2),
            textcoords="offset points",
            ha="left",
            va="bottom",
            color=INK,
            fontsize=9,
        )
        self.rows.append(("level", label, math.nan, y, math.nan, math.nan))

    def intervals(
        self, labels: Sequence[str], values: Numbers, lows: Numbers, highs: Numbers, at: float
    ) -> None:
        """One row for each label with its value and interval, beside a line at `at`."""
        places = list(range(len(labels)))[::-1]
        self.at(at)
        least = min(at / RATIO_FAR, *(value / 1.2 for value in values), at)
        most = max(at * RATIO_FAR, *(value * 1.2 for value in values), at)
        for place, label, value, low, high in zip(places, labels, values, lows, highs, strict=True):
            shown = low > at or high < at
            colour = COLOURS[1] if shown else COLOURS[0]
            marker = MARKERS[1] if shown else MARKERS[0]
            left, right = max(low, least), min(high, most)
            self.axes.plot([left, right], [place, place], color=colour, linewidth=1.8)
            for end, is_cut, arrow in ((left, left > low, "<"), (right, right < high, ">")):
                if is_cut:
                    self.axes.plot([end], [place], marker=arrow, color=colour, markersize=5)
            self.axes.plot(
                [value], [place], marker=marker, color=colour, linestyle="none", markersize=6
            )
            self.rows.append(("interval", label, value, math.nan, low, high))
            self._hint(value, place, self._span(label, value, low, high))
        self.axes.set_yticks(places, labels)
        self.axes.set_ylim(-0.6, len(labels) - 0.4)
        self.axes.grid(visible=False, axis="y")
        self._is_list = True
        if lows:
            self.around(at, max(least, min(lows)), min(most, max(highs)))

    def _span(self, label: str, value: float, low: float, high: float) -> str:
        """A value with its interval in words."""
        return f"{label}: {valued(value, self.x)}" + (
            f" ({spoken(low)} to {spoken(high)})" if high > low else ""
        )

    def around(self, at: float, low: float, high: float) -> None:
        """Makes the x axis show these values, wide enough for a tick."""
        self.axes.set_xlim(min(0.8 * at, low) * 0.95, max(1.25 * at, high) * 1.05)

    def whiskers(
        self,
        label: str,
        places: Numbers,
        values: Numbers,
        lows: Numbers,
        highs: Numbers,
        style: int,
        names: Sequence[str],
    ) -> None:
        """One series of values with their intervals, each at its place on the y axis."""
        colour = look(style).colour
        self.axes.hlines(places, lows, highs, color=colour, linewidth=1.8)
        self.axes.plot(
            values,
            places,
            linestyle="none",
            marker=look(style).marker,
            markersize=6,
            color=colour,
            label=label,
        )
        for name, place, value, low, high in zip(names, places, values, lows, highs, strict=True):
            self.rows.append(("interval", f"{label}, {name}", value, math.nan, low, high))
            self._hint(value, place, self._span(f"{label}, {name}", value, low, high))

    def at(self, x: float) -> None:
        """A vertical line for comparison."""
        self.axes.axvline(x, color=INK, alpha=MUTED, linewidth=1)

    def rows_named(self, names: Sequence[str]) -> None:
        """Makes the y axis a list, first on top; `whiskers` counts its places from 0."""
        self._is_list = True
        self.axes.set_yticks(range(len(names)), names)
        self.axes.set_ylim(len(names) - 0.4, -0.6)
        self.axes.grid(visible=False, axis="y")

    def percentile_axis(self) -> None:
        """x is 1/(1-p) on a logarithmic axis, as HdrHistogram's plots have it."""
        self._is_percentile = True
        self.axes.set_xscale("log")
        self.axes.xaxis.set_major_locator(ticker.LogLocator(base=10))
        self.axes.xaxis.set_major_formatter(ticker.FuncFormatter(as_percentile))
        self.axes.xaxis.set_minor_locator(ticker.NullLocator())

    def shade(self, label: str, left: float, right: float) -> None:
        """Shades a part of the x axis that does not count."""
        self.axes.axvspan(
            left, right, facecolor=INK, alpha=0.08, linewidth=0, hatch="//", edgecolor=INK
        )
        self.rows.append(("shade", label, left, math.nan, left, right))
        self._left = min(self._left, left)
        self.axes.annotate(
            label,
            ((left + right) / 2, 0.98),
            xycoords=("data", "axes fraction"),
            rotation=90,
            ha="center",
            va="top",
            color=INK,
            fontsize=9,
        )

    def finish(
        self,
        caption: str,
        *,
        legend: bool = True,
        from_zero: bool = True,
        narrow: tuple[float, float] | None = None,
    ) -> Picture:
        """The finished figure in all formats; `narrow` is the size for a narrow screen."""
        if from_zero and not self.log_y and not self._is_list:
            self.axes.set_ylim(bottom=0)
        if from_zero and not self.log_x:
            self.axes.set_xlim(left=self._left)
        handles, _ = self.axes.get_legend_handles_labels()
        if legend and handles:
            columns = max(1, min(len(handles), int(self.size[0] / LEGEND_COLUMN)))
            self._below = legends.add(self.canvas, columns, INK)
        png = io.BytesIO()
        self._align()
        wide = self._svg(self.name)
        with matplotlib.rc_context(STYLE):
            self.canvas.savefig(png, format="png", dpi=PNG_DPI, facecolor="white")
        tall = ""
        if narrow:
            self.canvas.set_size_inches(narrow)
            for old in list(self.canvas.legends):
                old.remove()
            if legend and handles:
                self._below = legends.add(self.canvas, min(2, len(handles)), INK)
            self._align()
            tall = self._svg(f"{self.name}-narrow")
        return Picture(
            name=self.name,
            title=self.title,
            caption=caption,
            svg=wide,
            png=png.getvalue(),
            csv=self._csv(),
            alt=self._alt(),
            narrow=tall,
            x=self.x,
            y=self.y,
            rows=tuple(self.rows),
        )

    def _align(self) -> None:
        """Puts the y axis at `left`, so that pictures one above the other share their x axis."""
        if not self.left:
            return
        legends.lay_out(self.canvas, self._below)
        self.axes.set_in_layout(True)  # set_position takes it out, and then no legend has space
        self.canvas.draw_without_rendering()
        self.canvas.set_layout_engine("none")
        place = self.axes.get_position()
        left = self.left / self.canvas.get_size_inches()[0]
        self.axes.set_position((left, place.y0, 1 - RIGHT - left, place.height))

    def _svg(self, name: str) -> str:
        """The figure as SVG for a page, with a hint at each value."""
        svg = io.StringIO()
        with matplotlib.rc_context({**STYLE, "svg.hashsalt": name}):
            self.canvas.savefig(svg, format="svg", transparent=True, metadata={"Date": None})
        return inline(svg.getvalue(), name, INK).replace("</svg>", f"{self._hints()}</svg>")

    def _hints(self) -> str:
        """An invisible circle with a title for each value; a browser shows the title on hover."""
        if not self.hints:
            return ""
        places = self.axes.transData.transform([(x, y) for x, y, _ in self.hints])
        parts = self.canvas.transFigure.inverted().transform(places)
        width, height = self.canvas.get_size_inches() * POINTS_AN_INCH
        inside = self.axes.get_position()
        found = []
        for (across, up), (_, _, text) in zip(parts, self.hints, strict=True):
            if not inside.x0 - NEAR <= across <= inside.x1 + NEAR:
                continue
            if not inside.y0 - NEAR <= up <= inside.y1 + NEAR:
                continue
            found.append(
                f'<circle cx="{across * width:.1f}" cy="{(1 - up) * height:.1f}" r="5">'
                f"<title>{html.escape(text, quote=False)}</title></circle>"
            )
        return f'<g class="hints" opacity="0">{"".join(found)}</g>'

    def _alt(self) -> str:
        """The picture in words: its axes, and the ends of each series."""
        by_series: dict[tuple[str, str], list[tuple[float, float, float, float]]] = {}
        for kind, label, *numbers in self.rows:
            x, y, low, high = numbers
            by_series.setdefault((kind, label), []).append((x, y, low, high))
        parts = [series_in_words(kind, label, found) for (kind, label), found in by_series.items()]
        axes = f"{self.y} against {self.x}" if self.y else self.x
        more = len(parts) - ALT_SERIES_MAX
        text = "; ".join(parts[:ALT_SERIES_MAX]) + (f"; and {more} more" if more > 0 else "")
        return f"{self.title}: {axes}. {text}."

    def _csv(self) -> str:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(("kind", "series", self.x, self.y, "low", "high"))
        for kind, label, *numbers in self.rows:
            writer.writerow((kind, label, *("" if math.isnan(n) else f"{n:.9g}" for n in numbers)))
        return out.getvalue()
