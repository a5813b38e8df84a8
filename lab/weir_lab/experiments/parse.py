# SPDX-License-Identifier: MIT
"""Levels, times and lists that a user types, as numbers."""

import re

from weir_lab.rim.errors import LabError

UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def levels(text: str) -> tuple[int, ...]:
    """`1,2,5,10..60:10` as numbers in order.

    Raises:
        LabError: the text is something else.
    """
    found: set[int] = set()
    for part in text.split(","):
        ends, _, step = part.partition(":")
        low, dots, high = ends.partition("..")
        try:
            if dots:
                if int(low) > int(high):
                    raise LabError(f"{part!r} has no level: the first number is the larger one")
                found |= set(range(int(low), int(high) + 1, int(step or 1)))
            else:
                found.add(int(low))
        except ValueError as error:
            raise LabError(f"{part!r} is no number of users; try 1..20,25..60:5") from error
    if not found or min(found) < 1:
        raise LabError(f"{text!r}: users are 1 or more")
    return tuple(sorted(found))


def seconds(option: str, text: str) -> float:
    """`500ms` as 0.5.

    Raises:
        LabError: the text is no time.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(us|ms|s|m|h)", text)
    if found is None and text != "0":
        raise LabError(f"{option}: {text!r} is no time; write 500ms, 10s or 2m")
    return float(found[1]) * UNITS_S[found[2]] if found else 0.0


def numbers(text: str) -> tuple[float, ...]:
    """`0.6,0.8,1` as numbers, in order.

    Raises:
        LabError: the text is something else.
    """
    try:
        return tuple(sorted({float(part) for part in text.split(",")})) if text else ()
    except ValueError as error:
        raise LabError(f"{text!r} is no list of numbers; try 0.6,0.8,1") from error
