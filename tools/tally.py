# SPDX-License-Identifier: MIT
"""Counts the tests that ran, from Meson's log and from pytest's report."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Tally:
    """How many tests of a step passed, failed and were skipped."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.passed + other.passed,
            self.failed + other.failed,
            self.skipped + other.skipped,
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
    # A program that died or reached its time limit may not have counted a failure.
    return counted if counted.failed > 0 else counted + ONE_FAILED


def count_report(path: Path) -> Tally:
    """Counts what a pytest run did, from its JUnit report."""
    tally = Tally()
    for suite in ElementTree.parse(path).getroot().iter("testsuite"):
        failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        skipped = int(suite.get("skipped", 0))
        tally += Tally(int(suite.get("tests", 0)) - failed - skipped, failed, skipped)
    return tally
