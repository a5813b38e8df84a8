# SPDX-License-Identifier: MIT
"""The runner counts what the tests report, and runs steps side by side."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import clang_warnings
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
def test_counts_the_tests_of_a_program(
    result: str, stdout: str, stderr: str, expected: Tally
) -> None:
    record = {"name": "unit / base", "result": result, "stdout": stdout, "stderr": stderr}
    counted = tally.count_program(record)
    assert counted == expected
    assert counted.failures == ((f"unit / base: {result}",) if expected.failed else ())


def test_counts_a_report_of_pytest(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuites><testsuite tests="10" failures="2" errors="1" skipped="3"/></testsuites>'
    )
    assert tally.count_report(report) == Tally(4, 3, 3)


def test_names_each_failure_of_a_report(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuites><testsuite tests="3" failures="1" errors="1" skipped="0">'
        '<testcase classname="tests.e2e.test_a" name="test_b[pool]">'
        '<failure message="AssertionError: 1 == 2&#10;more"/></testcase>'
        '<testcase classname="tests.e2e.test_a" name="test_c"/>'
        '<testcase classname="tests.e2e.test_a" name="test_d"><error/></testcase>'
        "</testsuite></testsuites>"
    )
    assert tally.count_report(report).failures == (
        "tests.e2e.test_a::test_b[pool]: AssertionError: 1 == 2",
        "tests.e2e.test_a::test_d: ",
    )


def test_each_stage_is_in_one_lane_at_most_and_each_title_in_one_stage() -> None:
    stages = run_tests.every_stage(run_tests.fuzz(1))
    laned = [stage for lanes in run_tests.LANES.values() for lane in lanes for stage in lane]
    assert len(laned) == len(set(laned))
    # `make fuzz` runs for as long as its caller wants.
    assert set(laned) == set(stages) - {"fuzz"}
    titles = [title for steps_of in stages.values() for title, _ in steps_of]
    assert len(titles) == len(set(titles))


def test_a_stage_by_itself_is_one_lane() -> None:
    stages = run_tests.every_stage(run_tests.fuzz(1))
    assert run_tests.lanes_of("asan", stages) == [stages["asan"]]


def test_lanes_run_side_by_side_and_each_step_has_two_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(steps, "CONTINUOUS", False)
    monkeypatch.setattr(steps, "OUTPUTS", tmp_path)
    monkeypatch.setattr(steps, "read_usual", lambda: {"first": 20})
    inside = threading.Barrier(2, timeout=60)

    def step() -> Tally:
        inside.wait()
        steps.say("output of a step that passes")
        return Tally(1)

    def last() -> Tally:
        steps.say("output of a step that fails")
        return Tally(0, 1)

    done = steps.together([[("first", step)], [("second", step), ("third", last)]])
    assert [each.title for each in done] == ["first", "second", "third"]
    assert [each.tally for each in done] == [Tally(1), Tally(1), Tally(0, 1)]
    text = capsys.readouterr().out
    assert "step that passes" not in text
    lines = [line.partition(" (")[0] for line in text.splitlines()]
    assert sorted(lines[:2]) == ["first ... usually 20 s", "second ..."]
    assert "first: 1 passed, 0 failed" in lines
    assert lines.index("second: 1 passed, 0 failed") < lines.index("third ...")
    third = lines.index("output of a step that fails")
    assert lines[third + 1] == "third: 0 passed, 1 failed"


def test_usual_times_are_remembered_and_others_stay(tmp_path: Path) -> None:
    file = tmp_path / "usual"
    file.write_text("# head\n7 one step\n9 another\n")
    steps.write_usual([steps.Done("one step", Tally(1), 12.4, 3.0)], file)
    assert file.read_text() == "# head\n12 one step\n9 another\n"
    assert steps.read_usual(file) == {"one step": 12, "another": 9}


def test_clang_only_parses_what_gcc_compiles() -> None:
    command = "ccache gcc -I../src -Werror -MD -MQ a.o -MF a.o.d -o a.o -c ../src/base/buf.c"
    kept = "-I../src -Werror ../src/base/buf.c".split()
    expected = ["clang", *kept, *clang_warnings.OFF, "-fsyntax-only"]
    assert clang_warnings.parsing(command) == expected
    assert clang_warnings.parsing(command.removeprefix("ccache ")) == expected


def test_a_lane_that_only_computes_has_the_lowest_priority() -> None:
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
        [[("a test", step("a test"))], [("clang-tidy", step("clang-tidy"))]],
        frozenset(["clang-tidy"]),
    )
    assert found["a test"] == (tally.ONE_PASSED if ours == 0 else tally.ONE_FAILED)
    assert found["clang-tidy"] == tally.ONE_FAILED
    assert os.nice(0) == ours


def test_a_step_is_charged_with_the_time_of_its_commands() -> None:
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


def test_a_limit_ends_what_runs_and_begins_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = steps.Limit()
    monkeypatch.setattr(steps, "limit", limit)
    script = "import sys, time; print('begun', flush=True); time.sleep(3600)"
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout

    def waits() -> Tally:
        assert process.stdout
        process.stdout.readline()
        limit.start(0)
        return steps.outcome(steps.finish(process))

    with process.stdout:
        first, second = steps.together([[("waits", waits), ("follows", lambda: Tally(1))]])
    assert first.tally == Tally(0, 2)
    assert first.tally.failures == ("did not end in time",)
    assert second.tally.failures == ("did not begin in time",)


def test_the_table_has_a_line_for_each_step() -> None:
    done = steps.Done("end to end", Tally(3), 300.04, 250.0)
    assert steps.table([done]) == [
        "step        clock s    CPU s",
        "end to end    300.0    250.0",
    ]
