# SPDX-License-Identifier: MIT
"""Ticks of axes, with numbers that people can read."""

import math

from matplotlib import ticker
from matplotlib.axis import Axis

TICKS_MAX = 8


class PlainLog(ticker.Locator):
    """Readable ticks of a logarithmic axis: 0.5, 1, 2, 5, 10; or 1, 100, 10,000."""

    def __call__(self) -> list[float]:
        """The ticks within the view."""
        assert self.axis is not None
        low, high = self.axis.get_view_interval()
        return self.tick_values(low, high)

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """At least two ticks, and few enough to be readable."""
        low, high = sorted((max(vmin, 1e-12), max(vmax, 1e-12)))
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for parts, each in (((1, 2, 5), 1), ((1, 3), 1), ((1,), 1), ((1,), 2), ((1,), 4)):
            places = [part * 10.0**p for p in powers if p % each == 0 for part in parts]
            found = [place for place in places if low <= place <= high]
            if len(found) <= TICKS_MAX:
                break
        if len(found) < 2:
            step = ticker.MaxNLocator(5, steps=[1, 2, 2.5, 5, 10])
            found = [place for place in step.tick_values(low, high) if low <= place <= high]
        return found


GROUPED = ticker.FuncFormatter(lambda value, _: f"{value:,.10g}")


def plain(axis: Axis) -> None:
    """Readable numbers on a logarithmic axis."""
    axis.set_major_locator(PlainLog())
    axis.set_major_formatter(GROUPED)
    axis.set_minor_locator(ticker.NullLocator())


def as_percentile(value: float, _position: int) -> str:
    """`1000` as `99.9 %`; exact for any number of nines."""
    return f"{100 * (1 - 1 / value):.10g} %" if value >= 1 else ""
