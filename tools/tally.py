# SPDX-License-Identifier: MIT
"""Counts the tests that ran, from Meson's log and from pytest's report."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Tally:
    """How many tests of a step passed, failed and were skipped.

    `failures` has a line for each failure that has a name. Tallies are compared without it.
    """

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: tuple[str, ...] = field(default=(), compare=False)

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.passed + other.passed,
            self.failed + other.failed,
            self.skipped + other.skipped,
            self.failures + other.failures,
        )


ONE_PASSED = Tally(passed=1)
ONE_FAILED = Tally(failed=1)
ONE_SKIPPED = Tally(skipped=1)


CMOCKA_PASSED = re.compile(r"^\[  PASSED  \] (\d+) test\(s\)", re.MULTILINE)
CMOCKA_FAILED = re.compile(r"^\[  FAILED  \] (\d+) test\(s\)", re.MULTILINE)
CMOCKA_SKIPPED = re.compile(r"^\[  SKIPPED \] (\d+) test\(s\)", re.MULTILINE)
SUMMARY = re.compile(r"(\d+) passed(?:, (\d+) failed)?(?:, (\d+) skipped)?")


def count_program(record: dict[str, str]) -> Tally:
    """Counts the tests inside one test program, from one record of Meson's log."""
    output = (record.get("stdout") or "") + "\n" + (record.get("stderr") or "")
    if record["result"] == "SKIP":
        return ONE_SKIPPED

    def total(pattern: re.Pattern[str]) -> int:
        return sum(int(count) for count in pattern.findall(output))

    counted = Tally(total(CMOCKA_PASSED), total(CMOCKA_FAILED), total(CMOCKA_SKIPPED))
    if counted == Tally() and (last := list(SUMMARY.finditer(output))):
        passed, failed, skipped = (int(group or 0) for group in last[-1].groups())
        counted = Tally(passed, failed, skipped)
    if record["result"] == "OK":
        return counted if counted.passed + counted.failed > 0 else ONE_PASSED + counted
    named = Tally(failures=(f"{record['name']}: {record['result']}",))
    # A program that died or reached its time limit may not have counted a failure.
    return named + (counted if counted.failed > 0 else counted + ONE_FAILED)


MESSAGE_LENGTH = 160


def failure_lines(suite: ElementTree.Element) -> Iterator[str]:
    """A line for each test of a pytest suite that failed: its file, its name, and why."""
    for case in suite.iter("testcase"):
        for result in (*case.iter("failure"), *case.iter("error")):
            why = (result.get("message") or "").strip().partition("\n")[0]
            yield f"{case.get('classname')}::{case.get('name')}: {why[:MESSAGE_LENGTH]}"


def count_report(path: Path) -> Tally:
    """Counts what a pytest run did, from its JUnit report."""
    tally = Tally()
    for suite in ElementTree.parse(path).getroot().iter("testsuite"):
        failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        skipped = int(suite.get("skipped", 0))
        passed = int(suite.get("tests", 0)) - failed - skipped
        tally += Tally(passed, failed, skipped, tuple(failure_lines(suite)))
    return tally
