# SPDX-License-Identifier: MIT
"""What ran is counted as it was reported."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import run_tests
import steps
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
    groups = run_tests.chosen_steps(["corpus", "check"], stages)
    titles = [title for lanes in groups for lane in lanes for title, _ in lane]
    assert titles[0] == "saved fuzz inputs"
    assert titles.count("saved fuzz inputs") == 1


def test_every_step_runs_once_whatever_runs_beside_it() -> None:
    stages = run_tests.every_stage(1)
    groups = run_tests.chosen_steps(list(stages), stages)
    titles = [title for lanes in groups for lane in lanes for title, _ in lane]
    assert len(titles) == len(set(titles))
    assert set(titles) == {title for stage in stages.values() for title, _ in stage}


def test_what_runs_side_by_side_is_there() -> None:
    titles = {title for stage in run_tests.every_stage(1).values() for title, _ in stage}
    named = [title for group in run_tests.SIDE_BY_SIDE for lane in group for title in lane]
    assert set(named) <= titles
    assert len(named) == len(set(named))


def test_what_waits_together_is_told_one_after_the_other(
    capsys: pytest.CaptureFixture[str],
) -> None:
    inside = threading.Barrier(2, timeout=10)

    def step() -> Tally:
        inside.wait()
        steps.say("within")
        return Tally(1)

    def last() -> Tally:
        return Tally(0, 1)

    done = steps.together([[("first", step)], [("second", step), ("third", last)]])
    assert [each.title for each in done] == ["first", "second", "third"]
    assert [each.tally for each in done] == [Tally(1), Tally(1), Tally(0, 1)]
    lines = [line.partition(" (")[0] for line in capsys.readouterr().out.splitlines()]
    first, second = (
        [f"== {name}", "within", f"-- {name}: 1 passed, 0 failed"] for name in ("first", "second")
    )
    assert lines == [*first, *second, "== third", "-- third: 0 passed, 1 failed"]


def test_what_only_computes_stands_back() -> None:
    found = {}

    def step(name: str) -> Callable[[], Tally]:
        def note() -> Tally:
            found[name] = run_tests.command(
                sys.executable, "-c", "import os, sys; sys.exit(os.nice(0))"
            )()
            return Tally(1)

        return note

    ours = os.nice(0)
    steps.together(
        [[("a test", step("a test"))], [("clang-tidy", step("clang-tidy"))]], ("clang-tidy",)
    )
    assert found["a test"] == (tally.ONE_PASSED if ours == 0 else tally.ONE_FAILED)
    assert found["clang-tidy"] == tally.ONE_FAILED
    assert os.nice(0) == ours


def test_a_step_is_charged_with_what_its_commands_used() -> None:
    busy = "import time\nwhile time.process_time() < 0.3: pass"
    many = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
    idle = run_tests.command(sys.executable, "-c", "")
    used = run_tests.command(sys.executable, "-c", many, busy)
    first, second = steps.together([[("idle", idle)], [("busy", used)]])
    assert first.cpu_s < second.cpu_s
    assert second.cpu_s >= 0.3


def test_work_on_all_processors_keeps_its_order_and_its_step() -> None:
    def step() -> Tally:
        words = [sys.executable, "-c", "import time\nwhile time.process_time() < 0.1: pass"]
        run_all = steps.on_all_processors(lambda _: steps.run(words), range(4))
        assert list(run_all) == [0] * 4
        assert list(steps.on_all_processors(str, range(9))) == list("012345678")
        return Tally(1)

    assert steps.counted("work", step).cpu_s >= 0.4


def test_the_table_has_a_line_for_each_step() -> None:
    done = steps.Done("end to end", Tally(3), 300.04, 250.0)
    assert steps.table([done]) == [
        "step        clock s    CPU s",
        "end to end    300.0    250.0",
    ]
