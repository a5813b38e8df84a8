#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the tests of `make test` on a build that counts lines, and prints how much of src/ they run.

gcc counts the lines and gcov reads the counts. A process that is killed, or that ends by _exit as
the children of the model `fork` do, loses its counts. So the true figure is a little higher.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from builds import build
from run_tests import SIDE_BY_SIDE, meson_tests, pytest
from steps import TOP, BuildError, together

LOW = 0.8  # files below this share are listed, with the lines that no test runs

# For each file, how often each line ran.
Counts = dict[str, dict[int, int]]


def add_gcov(counts: Counts, text: str, directory: Path) -> None:
    """Adds what gcov says of one object: lines of JSON, one for each data file."""
    for document in map(json.loads, text.splitlines()):
        for file in document["files"]:
            path = (directory / file["file"]).resolve()
            if not path.is_relative_to(TOP / "src"):
                continue
            lines = counts[str(path.relative_to(TOP / "src"))]
            for line in file["lines"]:
                number = line["line_number"]
                lines[number] = lines.get(number, 0) + line["count"]


def read_counts(directory: Path) -> Counts:
    """The counts of every object that has a test that ran, and of those that no test ran."""
    counts: Counts = defaultdict(dict)
    for notes in sorted(directory.glob("**/*.gcno")):
        words = ["gcov", "--json-format", "--stdout", str(notes)]
        done = subprocess.run(words, cwd=directory, capture_output=True, text=True)
        add_gcov(counts, done.stdout, directory)
    return counts


def share(files: Iterable[dict[int, int]]) -> tuple[int, int]:
    """Lines that ran, and all lines that could."""
    every = [count for lines in files for count in lines.values()]
    return sum(count > 0 for count in every), len(every)


def ranges(numbers: list[int]) -> str:
    """7, 8, 9 and 12 as `7-9 12`."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in found)


def report(counts: Counts) -> list[str]:
    """The table by room, then the files below LOW."""
    rooms: dict[str, list[dict[int, int]]] = defaultdict(list)
    for path, lines in counts.items():
        rooms[path.partition("/")[0]].append(lines)
    rows = [(room, *share(files)) for room, files in sorted(rooms.items())]
    rows.append(("all", *share(counts.values())))
    told = [f"{'room':<10} {'lines':>7} {'run':>7} {'share':>7}"]
    told += [f"{name:<10} {all_:7} {ran:7} {ran / all_:7.1%}" for name, ran, all_ in rows if all_]
    told += ["", f"Files below {LOW:.0%}, and the lines that no test runs:"]
    for path, lines in sorted(counts.items()):
        ran, all_ = share([lines])
        if all_ and ran < LOW * all_:
            missed = ranges([number for number, count in lines.items() if count == 0])
            told.append(f"src/{path} {ran / all_:.0%}: {missed}")
    return told


def main() -> int:
    try:
        directory = build("coverage")
    except BuildError as failure:
        print(failure)
        return 1
    for old in directory.glob("**/*.gcda"):
        old.unlink()
    suites = ("unit", "conformance", "property", "fuzz")
    steps = [(f"{suite} with counts", meson_tests("coverage", suite)) for suite in suites]
    e2e = pytest("tests/e2e", server="coverage", processes=SIDE_BY_SIDE)
    done = together([[*steps, ("end to end with counts", e2e)]])
    print("", *report(read_counts(directory)), sep="\n")
    # Which lines run is the result here. Whether the tests pass is that of `make test`.
    return 0 if any(each.tally.passed for each in done) else 1


if __name__ == "__main__":
    sys.exit(main())
