# SPDX-License-Identifier: MIT
"""Numbers and series of a picture in words, for hints and descriptions."""

from collections.abc import Sequence


def spoken(value: float) -> str:
    """A number in a sentence: 12,000 or 0.0341."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def valued(value: float, label: str) -> str:
    """A number with the unit of its axis: `12,000 requests/s`; the unit ends the label."""
    unit = label.rpartition(", ")[2]
    return f"{spoken(value)} {unit}".rstrip()


def series_in_words(
    kind: str, label: str, rows: Sequence[tuple[float, float, float, float]]
) -> str:
    first = [spoken(number) for number in rows[0]]
    last = [spoken(number) for number in rows[-1]]
    match kind:
        case "level":
            return f"{label} at {first[1]}"
        case "mark":
            return f"{label} at {first[0]}"
        case "interval":
            return f"{label} {first[0]} ({first[2]} to {first[3]})"
        case "shade":
            return f"{label} from {first[2]} to {first[3]}"
        case "band":
            return f"{label} at {last[0]}: {last[2]} to {last[3]}"
        case _ if len(rows) == 1:
            return f"{label} {first[1]} at {first[0]}"
        case _:
            return f"{label} {first[1]} at {first[0]}, {last[1]} at {last[0]}"
