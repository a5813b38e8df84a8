# SPDX-License-Identifier: MIT
"""`weir load` and a server with a known delay: the response times include what the server took.

A busy machine adds to every response time, so only lower bounds hold everywhere.
`make bench CLAIMS=1` measures the upper bounds, and compares with other
generators.
"""

from __future__ import annotations

import pytest

from tests.e2e import metronome
from tests.e2e.loading import step_of

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
