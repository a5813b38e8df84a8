# SPDX-License-Identifier: MIT
"""Counts of gcov are added up by file and by room."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import line_coverage
from steps import TOP


def gcov(file: str, *counts: int) -> str:
    lines = [{"line_number": at, "count": count} for at, count in enumerate(counts, 1)]
    return json.dumps({"files": [{"file": file, "lines": lines}]})


def test_counts_of_several_objects_are_added(tmp_path: Path) -> None:
    counts: line_coverage.Counts = defaultdict(dict)
    directory = TOP / "build-coverage"
    line_coverage.add_gcov(counts, gcov("../src/base/buf.h", 1, 0), directory)
    line_coverage.add_gcov(counts, gcov("../src/base/buf.h", 2, 3), directory)
    line_coverage.add_gcov(counts, gcov("/usr/include/stdio.h", 1), directory)
    line_coverage.add_gcov(counts, gcov(str(tmp_path / "a.c"), 1), directory)
    assert counts == {"base/buf.h": {1: 3, 2: 3}}


def test_lines_that_no_test_runs_are_ranges() -> None:
    assert line_coverage.ranges([9, 7, 8, 12]) == "7-9 12"
    assert line_coverage.ranges([]) == ""


def test_the_table_has_rooms_and_low_files() -> None:
    counts = {"base/a.c": {1: 1, 2: 1}, "http/b.c": {1: 1, 4: 0, 5: 0}}
    assert line_coverage.report(counts) == [
        "room         lines     run   share",
        "base             2       2  100.0%",
        "http             3       1   33.3%",
        "all              5       3   60.0%",
        "",
        "Files below 80%, and the lines that no test runs:",
        "src/http/b.c 33%: 4-5",
    ]
