# SPDX-License-Identifier: MIT
"""The record of fuzzing adds up over runs, and new inputs are kept when they reach further."""

from __future__ import annotations

import hashlib
from pathlib import Path

import fuzzing
import pytest
from fuzzing import Run, Total

OUTPUT = """\
INFO: seed corpus: files: 4 min: 1b max: 29b total: 87b rss: 30Mb
#5\tINITED cov: 12 ft: 13 corp: 4/87b exec/s: 0 rss: 31Mb
#1024\tNEW    cov: 1012 ft: 1013 corp: 5/90b lim: 29 exec/s: 512 rss: 33Mb L: 3/29 MS: 1 EraseBytes-
#36154\tDONE   cov: 1035 ft: 1543 corp: 211/4391b lim: 51 exec/s: 18077 rss: 58Mb
Done 36154 runs in 2 second(s)
stat::number_of_executed_units: 36154
stat::average_exec_per_sec:     18077
"""
PAGE = f"# Fuzzing\n\nText.\n\n{fuzzing.MARK}\n{fuzzing.END}\n\nMore text.\n"
# A target without an instrumented program: it runs 50 executions, and its merge keeps each input
# whose first byte no earlier input has.
PROGRAM = """\
#!/usr/bin/env python3
import pathlib, sys
folders = [pathlib.Path(each) for each in sys.argv[1:] if not each.startswith("-")]
if "-set_cover_merge=1" in sys.argv:
    known = {path.read_bytes()[:1] for path in folders[0].iterdir()}
    for path in sorted(folders[1].iterdir()):
        if path.read_bytes()[:1] not in known:
            known.add(path.read_bytes()[:1])
            (folders[0] / path.name).write_bytes(path.read_bytes())
else:
    print("#50\\tDONE   cov: 7 ft: 9 corp: 1/1b")
    print("stat::number_of_executed_units: 50")
"""


def test_the_last_lines_of_a_run_say_what_it_executed() -> None:
    run = fuzzing.understand(OUTPUT, 0, 2.4, "2026-01-02")
    assert run == Run(0, 36154, 1035, 2.4, "2026-01-02")


def test_a_run_that_was_killed_counts_no_executions() -> None:
    run = fuzzing.understand("INFO: Seed: 1\n", -9, 2.4, "2026-01-02")
    assert (run.executions, run.edges) == (0, 0)


def test_a_total_adds_executions_and_time_and_has_the_last_coverage() -> None:
    total = Total(1000, 10, 500, "2026-01-01").plus(Run(0, 500, 510, 2.6, "2026-01-02"))
    assert total == Total(1500, 13, 510, "2026-01-02")


@pytest.mark.parametrize(
    ("executions", "cpu_s", "met"),
    [
        (fuzzing.GOAL_EXECUTIONS, 1, True),
        (1, fuzzing.GOAL_CPU_S, True),
        (fuzzing.GOAL_EXECUTIONS - 1, fuzzing.GOAL_CPU_S - 1, False),
    ],
)
def test_the_goal_is_met_by_executions_or_by_time(executions: int, cpu_s: int, met: bool) -> None:
    assert Total(executions, cpu_s).met == met


def test_the_record_is_read_as_it_was_written_and_the_text_around_it_stays() -> None:
    totals = {
        "date": Total(20_000_000, 90, 1035, "2026-01-02"),
        "tls_records": Total(12, 3, 7, "2026-01-03"),
    }
    written = fuzzing.write_record(PAGE, totals, {"date": 4})
    assert fuzzing.read_record(written) == totals
    assert "| `date` | 20,000,000 | 90 s | met | 1,035 | 4 | 2026-01-02 |" in written
    assert written.startswith("# Fuzzing\n\nText.\n")
    assert written.endswith(f"{fuzzing.END}\n\nMore text.\n")
    assert fuzzing.write_record(written, totals, {"date": 4}) == written


def test_a_page_without_a_place_for_the_table_is_refused() -> None:
    with pytest.raises(ValueError, match="no place"):
        fuzzing.write_record("# Fuzzing\n", {}, {})


def test_the_record_of_the_project_can_be_read() -> None:
    assert fuzzing.write_record(fuzzing.RECORD.read_text(), {}, {})


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(fuzzing, "TOP", tmp_path)
    monkeypatch.setattr(fuzzing, "RECORD", tmp_path / "record.md")
    (tmp_path / "record.md").write_text(PAGE)
    program = tmp_path / "build-fuzz/fuzz/word_fuzz"
    program.parent.mkdir(parents=True)
    program.write_text(PROGRAM)
    program.chmod(0o755)
    return program


def test_a_recorded_run_adds_up_and_keeps_only_inputs_that_reach_further(target: Path) -> None:
    saved, found = fuzzing.saved_folder("word"), fuzzing.found_folder(target)
    saved.mkdir(parents=True)
    (saved / "plain").write_bytes(b"a")
    for content in (b"a longer", b"b", b"b longer"):
        (found / hashlib.sha1(content, usedforsecurity=False).hexdigest()).write_bytes(content)
    for _ in range(2):
        run = fuzzing.fuzz_and_record(target, 1)
        assert run is not None
        assert run.status == 0
    total = fuzzing.read_record(fuzzing.RECORD.read_text())["word"]
    assert (total.executions, total.edges) == (100, 7)
    kept = sorted(path.read_bytes()[:1] for path in saved.iterdir())
    assert kept == [b"a", b"b"]
    assert "| 2 |" in fuzzing.RECORD.read_text()


def test_a_target_that_has_met_the_goal_is_not_run(target: Path) -> None:
    target.write_text("#!/bin/sh\nexit 1\n")
    met = {"word": Total(fuzzing.GOAL_EXECUTIONS, 1, 1, "2026-01-02")}
    fuzzing.RECORD.write_text(fuzzing.write_record(PAGE, met, {}))
    assert fuzzing.fuzz_and_record(target, 1) is None
    assert fuzzing.read_record(fuzzing.RECORD.read_text()) == met


def test_a_run_that_found_a_fault_is_not_recorded(target: Path) -> None:
    target.write_text("#!/bin/sh\necho stat::number_of_executed_units: 50\nexit 77\n")
    run = fuzzing.fuzz_and_record(target, 1)
    assert run is not None
    assert (run.status, run.executions) == (77, 50)
    assert fuzzing.RECORD.read_text() == PAGE
