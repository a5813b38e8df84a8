# SPDX-License-Identifier: MIT
"""`weir load` and a server with a known delay: the response times include what the server took.

A busy machine adds to every response time, so only lower bounds hold everywhere.
`make bench CLAIMS=1` measures the upper bounds, and compares with other
generators.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e import metronome
from tests.e2e.loading import INVALID, step_of, weir_load

MS = 1_000_000


@pytest.mark.parametrize(
    ("mode", "ns", "words"),
    [
        ("delay", 0, ["--users", "1", "--requests", "1000"]),
        ("delay", 1 * MS, ["--users", "10", "--requests", "1000"]),
        ("delay", 20 * MS, ["--users", "10", "--requests", "100"]),
        ("delay", 5 * MS, ["--users", "10", "--think", "exp:5ms", "--requests", "200"]),
        ("delay", 5 * MS, ["--users", "5", "--pace", "20ms", "--requests", "50"]),
        ("delay", 5 * MS, ["--users", "50", "--rate", "500", "--poisson", "--requests", "100"]),
        ("service", MS // 5, ["--users", "10", "--requests", "1000"]),
    ],
)
def test_response_times_include_the_time_of_the_server(
    mode: str, ns: int, words: list[str]
) -> None:
    with metronome.running(mode, ns) as server:
        step = step_of(server.url, *words)
        given = server.end()
    measured = step["response"]
    assert step["answers"] == given["answers"] == int(words[-1])
    assert measured["min_ns"] >= given["min_ns"] >= ns
    assert measured["max_ns"] >= given["max_ns"]
    assert measured["mean_ns"] >= given["mean_ns"]


def test_a_rate_that_cannot_be_kept_gives_one_consistent_count(tmp_path: Path) -> None:
    """One user and answers of 50 ms allow 20 requests a second. The warm-up leaves some overdue."""
    words = ("--users", "1", "--rate", "200", "--warmup", "300ms", "--duration", "1s", "--json")
    with metronome.running("delay", 50 * MS) as server:
        done = weir_load(server.url, *words)
    assert done.returncode == INVALID
    (step,) = json.loads(done.stdout)["steps"]
    due, sent, unsent = 200e-9 * step["measured_ns"], step["requests"], step["unsent"]
    assert sent < due / 2
    assert sent + unsent == pytest.approx(due, abs=3)
    saved = tmp_path / "result.json"
    saved.write_text(done.stdout)
    report = weir_load("merge", str(saved), "--explain").stdout
    assert f"requests due {sent + unsent:23}  {sent} sent, {unsent} not sent\n" in report
    said = " ".join(report.split())
    assert f"{unsent} of {sent + unsent} requests that were due were not sent" in said
    assert "since due The time from when a request was due" in said
