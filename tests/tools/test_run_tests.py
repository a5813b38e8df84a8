# SPDX-License-Identifier: MIT
"""What ran is counted as it was reported."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import run_tests
import tally
from tally import Tally

CMOCKA = """\
[==========] Running 3 test(s).
[ RUN      ] rejects_a_space_before_the_colon
[       OK ] rejects_a_space_before_the_colon
[==========] 3 test(s) run.
[  PASSED  ] 2 test(s).
"""
CMOCKA_FAILURE = (
    "[  FAILED  ] 1 test(s), listed below:\n[  FAILED  ] accepts_tabs\n\n 1 FAILED TEST(S)\n"
)


@pytest.mark.parametrize(
    ("result", "stdout", "stderr", "expected"),
    [
        ("OK", CMOCKA, "", Tally(2)),
        ("OK", CMOCKA + CMOCKA, "", Tally(4)),
        ("FAIL", CMOCKA, CMOCKA_FAILURE, Tally(2, 1)),
        ("FAIL", CMOCKA, "", Tally(2, 1)),
        ("TIMEOUT", "", "", Tally(0, 1)),
        ("OK", "", "", Tally(1)),
        ("SKIP", "", "", Tally(0, 0, 1)),
        ("OK", "round 1: 3 passed, 0 failed\n120 passed, 0 failed\n", "", Tally(120)),
        ("FAIL", "119 passed, 1 failed\n", "", Tally(119, 1)),
        ("OK", "0 passed, 0 failed, 4 skipped\n", "", Tally(1, 0, 4)),
    ],
)
def test_counts_what_a_program_says(result: str, stdout: str, stderr: str, expected: Tally) -> None:
    record = {"result": result, "stdout": stdout, "stderr": stderr}
    assert tally.count_program(record) == expected


def test_counts_a_report_of_pytest(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuites><testsuite tests="10" failures="2" errors="1" skipped="3"/></testsuites>'
    )
    assert tally.count_report(report) == Tally(4, 3, 3)


def test_steps_that_two_stages_share_run_once() -> None:
    stages = run_tests.every_stage(1)
    titles = [t for steps in run_tests.chosen_steps(["corpus", "check"], stages) for t, _ in steps]
    assert titles[0] == "saved fuzz inputs"
    assert titles.count("saved fuzz inputs") == 1


def test_what_waits_together_is_told_one_after_the_other(
    capsys: pytest.CaptureFixture[str],
) -> None:
    inside = threading.Barrier(2, timeout=10)

    def step() -> Tally:
        inside.wait()
        run_tests.say("within")
        return Tally(1)

    assert run_tests.together([("first", step), ("second", step)]) == [Tally(1), Tally(1)]
    lines = [line.partition(" (")[0] for line in capsys.readouterr().out.splitlines()]
    first, second = (
        [f"== {name}", "within", f"-- {name}: 1 passed, 0 failed"] for name in ("first", "second")
    )
    assert lines == first + second
