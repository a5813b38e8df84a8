# SPDX-License-Identifier: MIT
"""Intervals that are drawn inside the rows of a table, all on the same logarithmic scale."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from weir_lab.report.spoken import spoken
from weir_lab.report.ticks import PlainLog

WIDTH, HEIGHT = 240, 22
MARGIN = 14
FAR = 20.0  # beyond this factor from the middle an interval ends in an arrow
TICKS = 5


@dataclass(frozen=True, kw_only=True)
class Span:
    """A value with its interval."""

    low: float
    value: float
    high: float
    shown: bool = False  # a difference is shown: a square, otherwise a circle

    def text(self) -> str:
        """The value with its interval in words."""
        if not self.low < self.high:
            return spoken(self.value)
        if math.isinf(self.high):
            return f"{spoken(self.value)}, without an interval"
        return f"{spoken(self.value)}, {spoken(self.low)} to {spoken(self.high)}"


class Spans:
    """The scale of a table's intervals, and their drawings."""

    def __init__(self, spans: Sequence[Span | None], at: float = 0.0) -> None:
        found = [s for s in spans if s and s.value > 0]
        values = [s.value for s in found] or [1.0]
        self.at = at
        self.low = min([*(max(s.low, s.value / FAR) for s in found), *values, at or values[0]])
        self.high = max([*(min(s.high, s.value * FAR) for s in found), *values, at])
        if self.high < self.low * 1.2:
            self.low, self.high = self.low / 1.1, self.high * 1.1

    def place(self, value: float) -> float:
        """The place of a value on the scale, in pixels."""
        part = math.log(value / self.low) / math.log(self.high / self.low)
        return MARGIN + part * (WIDTH - 2 * MARGIN)

    def _svg(self, body: str, label: str = "") -> Markup:
        role = f'role="img" aria-label="{label}"' if label else 'aria-hidden="true"'
        return Markup(
            f'<svg class="span" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
            f'height="{HEIGHT}" {role}>{body}</svg>'
        )

    def _line(self) -> str:
        if not self.at:
            return ""
        x = self.place(self.at)
        return f'<path d="M{x:.1f} 0V{HEIGHT}" class="at"/>'

    def axis(self) -> Markup:
        """The scale, for the head of the column."""
        ticks = PlainLog().tick_values(self.low, self.high)
        ticks = ticks[:: -(-len(ticks) // TICKS)]
        body = "".join(
            f'<text x="{self.place(t):.1f}" y="15" text-anchor="middle">{t:,.4g}</text>'
            for t in ticks
        )
        return self._svg(body)

    def draw(self, span: Span | None) -> Markup:
        """One row."""
        if span is None or span.value <= 0:
            return self._svg(self._line())
        middle = HEIGHT / 2
        low, high = max(span.low, self.low), min(span.high, self.high)
        left, right, x = self.place(low), self.place(high), self.place(span.value)
        body = f'{self._line()}<path d="M{left:.1f} {middle}H{right:.1f}" class="whisker"/>'
        if span.low < low:
            body += f'<path d="M{left:.1f} {middle}l6-4v8z"/>'
        if span.high > high:
            body += f'<path d="M{right:.1f} {middle}l-6-4v8z"/>'
        if span.shown:
            body += f'<rect x="{x - 5:.1f}" y="{middle - 5}" width="10" height="10"/>'
        else:
            body += f'<circle cx="{x:.1f}" cy="{middle}" r="5" class="hollow"/>'
        return self._svg(f"<title>{span.text()}</title>{body}", span.text())
