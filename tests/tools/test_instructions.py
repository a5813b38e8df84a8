# SPDX-License-Identifier: MIT
"""Instructions are counted in weir's own code, and compared with the record."""

from __future__ import annotations

from pathlib import Path

import instructions
import pytest
import run_tests
from instructions import Cost, Row
from tally import ONE_SKIPPED

PROGRAM = "tests/count_instructions"
CALLGRIND = f"""\
# callgrind format
version: 1
part: 1
desc: Trigger: --dump-after=cost_counted
positions: line
events: Ir

ob=/top/build-gcc/{PROGRAM}
fl=/top/build-gcc/../src/session/session.c
fn=session_feed
10 100
12 5
fi=/usr/include/x86_64-linux-gnu/bits/string_fortified.h
29 7
fe=/top/build-gcc/../src/session/session.c
13 1
cob=/usr/lib/libc.so.6
cfi=???
cfn=memcpy
calls=3 0
13 999
cfi=/top/build-gcc/../src/http/request.c
cfn=http_request_parse
calls=2 0
14 888
15 20

fl=/top/build-gcc/../tests/cost/count.c
fn=serve_turn
20 4000
cob=/usr/lib/libc.so.6
cfn=memset
calls=9 0
20 500

ob=/usr/lib/libc.so.6
fl=???
fn=memcpy
0 5000

totals: 9000
part: 2
desc: Trigger: --dump-after=cost_counted

ob=/top/build-gcc/{PROGRAM}
fl=/top/build-gcc/../src/session/session.c
fn=session_feed
10 50
part: 3
desc: Trigger: Program termination
"""


def test_counts_own_instructions_and_calls_of_libraries_in_each_part() -> None:
    parts = instructions.count_parts(CALLGRIND.splitlines(), PROGRAM)
    assert parts == [Cost(133, 3), Cost(50, 0), Cost(0, 0)]


def test_reads_the_names_between_the_lines_of_the_test_runner() -> None:
    output = "[ RUN      ] hit\ncounted hit 256\n[       OK ] hit\ncounted miss-16 4096\n"
    assert instructions.names_and_requests(output) == [("hit", 256), ("miss-16", 4096)]


def test_a_record_is_read_as_it_was_written() -> None:
    rows = {
        "hit": Row(Cost(900.5, 4.25), "the first count"),
        "miss": Row(Cost(4000.0, 20.0), "one call less, see decision 7"),
    }
    text = instructions.write_record("gcc 12.2 of Debian, x86_64", rows)
    assert instructions.read_record(text) == ("gcc 12.2 of Debian, x86_64", rows)
    assert instructions.read_record("") == ("", {})


def test_growth_beyond_the_limit_fails_and_less_does_not() -> None:
    rows = {name: Row(Cost(1000, 10), "") for name in ("same", "more", "less", "calls", "gone")}
    counted = {
        "same": Cost(1019, 10),
        "more": Cost(1021, 10),
        "less": Cost(900, 10),
        "calls": Cost(1000, 10.5),
        "new": Cost(1, 1),
    }
    compared = dict(zip([*counted, "gone"], instructions.compare(counted, rows), strict=True))
    assert [name for name, (_, bad) in compared.items() if bad] == ["more", "calls", "new", "gone"]
    assert compared["less"][0].endswith("shrunk")
    assert compared["more"][0].endswith("grown")


def test_a_record_keeps_what_has_hardly_changed() -> None:
    rows = {name: Row(Cost(1000, 10), "before") for name in ("same", "more", "less", "gone")}
    counted = {"same": Cost(1019, 10), "more": Cost(1100, 10), "less": Cost(900, 10)}
    counted["new"] = Cost(1, 1)
    assert instructions.updated(counted, rows, "now", all_rows=False) == {
        "same": Row(Cost(1000, 10), "before"),
        "more": Row(Cost(1100, 10), "now"),
        "less": Row(Cost(900, 10), "now"),
        "new": Row(Cost(1, 1), "now"),
    }
    assert set(instructions.updated(counted, rows, "now", all_rows=True).values()) == {
        Row(cost, "now") for cost in counted.values()
    }


@pytest.mark.parametrize(
    ("where", "now", "status"), [("here", 1010, 0), ("here", 1030, 1), ("elsewhere", 1030, 0)]
)
def test_growth_fails_only_where_the_record_was_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, where: str, now: float, status: int
) -> None:
    record = tmp_path / "record"
    text = instructions.write_record("here", {"hit": Row(Cost(1000, 10), "first")})
    record.write_text(text)
    monkeypatch.setattr(instructions, "RECORD", record)
    monkeypatch.setattr(instructions, "environment", lambda: where)
    monkeypatch.setattr(instructions, "count", lambda _: {"hit": Cost(now, 10)})
    monkeypatch.setattr("sys.argv", ["instructions.py", "build"])
    assert instructions.main() == status
    assert record.read_text() == text
    monkeypatch.setattr("sys.argv", ["instructions.py", "build", "--record", "a reason"])
    assert instructions.main() == 0
    assert instructions.main() == 0


def test_the_step_is_skipped_where_valgrind_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert run_tests.instructions() == ONE_SKIPPED
