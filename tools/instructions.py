#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts the instructions of weir for each kind of request, and compares them with a record.

callgrind counts, so the result depends neither on the speed of the machine nor on its load. Only
weir's own code is counted. The instructions of libraries depend on their version and on the
processor. Instead the calls from weir to libraries are counted, so that no cost moves there
unseen.

The record is tests/cost/instructions. A figure that has grown by more than 2 % fails. `--record`
writes the figures that differ by more, each with the reason for its change. It keeps all others,
so that small changes add up until somebody looks. Another compiler or version of Valgrind gives
other figures. Then this program only reports.
"""

from __future__ import annotations

import argparse
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
RECORD = TOP / "tests/cost/instructions"
PROGRAM = "tests/count_instructions"
COUNTED = "cost_counted"  # the function of tests/cost/count.c that is counted
TESTS = re.compile(r"(?:^|/)tests/(?:cost|support|unit)/")  # files whose code is not the server's
LIMIT = 1.02
HEAD = """\
# What one request of each kind costs: the instructions of weir's own code, its calls of libraries,
# and why the figures last changed. `make cost WHY="the reason"` writes this file
# (tools/instructions.py). tests/cost/count.c says what each kind is.
"""


@dataclass(frozen=True)
class Cost:
    """Of one request, or of all requests of a work."""

    instructions: float
    calls: float


@dataclass(frozen=True)
class Row:
    """A recorded cost."""

    cost: Cost
    why: str


# ---- counting ----


def count_parts(lines: Iterable[str], program: str) -> list[Cost]:
    """The costs of the program's own code in each part of a file of callgrind."""
    parts: list[Cost] = []
    instructions = calls = 0
    own = ours = after_call = False
    callee = ""
    for line in [*lines, "part: end"]:
        key, equals, value = line.rstrip("\n").partition("=")
        if line.startswith("part:"):
            parts.append(Cost(instructions, calls))
            instructions = calls = 0
        elif after_call:
            after_call = False  # the cost of the called function, with all that it calls
        elif key == "ob" and equals:
            own = value.endswith(program)
        elif key in ("fl", "fi", "fe") and equals:
            ours = not TESTS.search(value)
        elif key == "cob" and equals:
            callee = value
        elif key == "calls" and equals:
            if own and ours and callee and not callee.endswith(program):
                calls += int(value.split()[0])
            after_call, callee = True, ""
        elif own and ours and line[:1].isdigit():
            instructions += int(line.split()[1])
    return parts[1:]


def names_and_requests(output: str) -> list[tuple[str, int]]:
    """What the program printed for each call of the counted function."""
    found = re.findall(r"^counted (\S+) (\d+)$", output, re.MULTILINE)
    return [(name, int(requests)) for name, requests in found]


def count(directory: Path) -> dict[str, Cost]:
    """Runs the program of a build under callgrind. Returns the cost of one request of each kind."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "callgrind")
        words = ["valgrind", "--tool=callgrind", "--quiet", f"--callgrind-out-file={file}"]
        words += ["--combine-dumps=yes", "--compress-strings=no", "--compress-pos=no"]
        words += [f"--{what}={COUNTED}" for what in ("dump-before", "dump-after")]
        done = subprocess.run([*words, str(directory / PROGRAM)], capture_output=True, text=True)
        works = names_and_requests(done.stdout)
        if done.returncode != 0 or not works:
            sys.exit(f"{done.stdout}{done.stderr}{PROGRAM} has failed.")
        with file.open() as lines:
            parts = count_parts(lines, PROGRAM)[1::2]  # every other one is of what came before
    return {
        name: Cost(part.instructions / requests, part.calls / requests)
        for (name, requests), part in zip(works, parts, strict=False)
    }


def environment() -> str:
    """What the figures depend on beside weir: compiler, processor and Valgrind."""

    def first_line(*words: str) -> str:
        return subprocess.run(words, capture_output=True, text=True).stdout.partition("\n")[0]

    compiler = first_line("gcc", "--version")
    if match := re.match(r"\S+ \((\w+).*\) (\d+\.\d+)", compiler):
        compiler = f"gcc {match[2]} of {match[1]}"
    return f"{compiler}, {platform.machine()}, {first_line('valgrind', '--version')}"


# ---- the record ----


def read_record(text: str) -> tuple[str, dict[str, Row]]:
    """The environment of the record, and its rows."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    rows = {}
    for line in lines[1:]:
        name, instructions, calls, why = line.split(None, 3)
        rows[name] = Row(Cost(float(instructions), float(calls)), why)
    return lines[0] if lines else "", rows


def write_record(where: str, rows: Mapping[str, Row]) -> str:
    width = max(map(len, rows), default=0)
    lines = [
        f"{name:<{width}} {row.cost.instructions:9.1f} {row.cost.calls:7.2f}  {row.why}"
        for name, row in rows.items()
    ]
    return "\n".join([HEAD + where, *lines, ""])


def ratios(now: Cost, before: Cost) -> tuple[float, float]:
    """Instructions and calls, divided by those before."""

    def ratio(a: float, b: float) -> float:
        return a / b if b else 1 + a

    return ratio(now.instructions, before.instructions), ratio(now.calls, before.calls)


def updated(
    counted: Mapping[str, Cost], rows: Mapping[str, Row], why: str, *, all_rows: bool
) -> dict[str, Row]:
    """The rows with the costs that differ by more than the limit, or all of them."""

    def differs(name: str) -> bool:
        if all_rows or name not in rows:
            return True
        return any(
            not 1 / LIMIT <= each <= LIMIT for each in ratios(counted[name], rows[name].cost)
        )

    return {name: Row(cost, why) if differs(name) else rows[name] for name, cost in counted.items()}


def compare(counted: Mapping[str, Cost], rows: Mapping[str, Row]) -> Iterator[tuple[str, bool]]:
    """A line for each kind of request, and whether its cost has grown beyond the limit."""
    for name in [*counted, *(rows.keys() - counted.keys())]:
        if name not in counted or name not in rows:
            yield f"{name}: it is counted or recorded, but not both", True
            continue
        now, before = counted[name], rows[name].cost
        most, least = max(ratios(now, before)), min(ratios(now, before))
        note = "grown" if most > LIMIT else "shrunk" if least < 1 / LIMIT else ""
        yield (
            f"{name:<20} {before.instructions:9.1f} -> {now.instructions:9.1f} instructions,"
            f" {before.calls:6.2f} -> {now.calls:6.2f} calls  {note}".rstrip(),
            most > LIMIT,
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("build", type=Path, help="a build directory of gcc, with tests")
    parser.add_argument("--record", metavar="WHY", help="write the figures that have changed")
    options = parser.parse_args()
    where = environment()
    there, rows = read_record(RECORD.read_text() if RECORD.is_file() else "")
    counted = count(options.build)
    if options.record:
        rows = updated(counted, rows, options.record, all_rows=where != there)
        RECORD.write_text(write_record(where, rows))
        there = where
    lines = list(compare(counted, rows))
    print(*(line for line, _ in lines), sep="\n")
    if where != there:
        print(f"Recorded with {there}.", f"Counted with {where}. So no figure fails.", sep="\n")
        return 0
    if any(line.endswith("shrunk") for line, _ in lines):
        print('Some figures are smaller. `make cost WHY="the reason"` records them.')
    if any(bad for _, bad in lines):
        print('A request costs more. If it must, `make cost WHY="the reason"` records it.')
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
