# SPDX-License-Identifier: MIT
"""Pictures of cards: a document's figures beside those measured here."""

import math
from collections.abc import Mapping

from weir_lab.report.chart import Chart, Picture

CARD, CARD_NARROW = (7.6, 2.6), (4.6, 2.9)  # inches
ROW = 0.26  # inches for each row of a list


def multiples(
    name: str, title: str, x: str, found: Mapping[str, tuple[float, float, float]]
) -> Picture:
    """Multiples with their intervals, one in each row, beside a line at 1."""
    height = 1.0 + ROW * len(found)
    chart = Chart(name=name, title=title, x=x, y="", log_x=True, size=(CARD[0], height))
    spans = {
        label: (value, low if low > 0 else value, high if math.isfinite(high) else value)
        for label, (value, low, high) in found.items()
    }
    if spans:
        values, lows, highs = zip(*spans.values(), strict=True)
        chart.intervals(list(spans), values, lows, highs, 1.0)
    return chart.finish(
        "To the right of 1 is faster. Intervals hold together with 95 %; the document gives none.",
        legend=False,
        from_zero=False,
        narrow=(CARD_NARROW[0], height),
    )
