# SPDX-License-Identifier: MIT
"""`weir load` and a server with a known delay: the response times include what the server took.

A busy machine adds to every response time, so only lower bounds hold everywhere.
`make bench CLAIMS=1` measures the upper bounds, and compares with other
generators.
"""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.e2e import metronome
from tests.e2e.loading import INVALID, result_of, step_of, weir_load
from tests.e2e.misbehaving import Peer, misbehaving, ok
from tests.e2e.running import WEIR
from tests.waiting import LIMIT_S

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


def test_a_backlog_of_the_warm_up_is_a_doubt() -> None:
    """No answer comes in the warm-up. The requests that were due in it are sent later."""
    begun: list[float] = []

    def stalls_first(peer: Peer) -> None:
        while True:
            peer.request()
            begun.append(time.monotonic())
            peer.wait(max(0.0, begun[0] + 0.7 - begun[-1]))
            peer.send(ok())

    words = ("--users", "2", "--rate", "200", "--warmup", "500ms", "--duration", "2s")
    with misbehaving(stalls_first) as server:
        step = step_of(server.url, *words)
    assert step["requests"] + step["unsent"] > 202e-9 * step["measured_ns"] + 1
    assert "backlog" in {doubt["name"] for doubt in step["doubts"]}


def test_requests_of_the_warm_up_are_no_part_of_the_result() -> None:
    """With --requests those of the measured time count. The first answers come late in it."""

    def behave(peer: Peer) -> None:
        while True:
            peer.request()
            peer.wait(0.002 if peer.requests > 1 else 0.8)
            peer.send(ok())

    words = ("--users", "4", "--requests", "400", "--warmup", "300ms")
    with misbehaving(behave) as server:
        step = step_of(server.url, *words)
    assert step["requests"] == step["answers"] == 400
    assert step["received_bytes"] == 400 * len(ok())
    assert "little" not in {doubt["name"] for doubt in step["doubts"]}


def test_no_request_is_due_after_the_last_one() -> None:
    """The first answer of each connection takes as long as 400 requests at this rate."""

    def behave(peer: Peer) -> None:
        while True:
            peer.request()
            peer.wait(0 if peer.requests > 1 else 0.8)
            peer.send(ok())

    words = ("--users", "60", "--rate", "500,500", "--requests", "40", "--threads", "2")
    with misbehaving(behave) as server:
        steps = result_of(server.url, *words)["steps"]
    assert [(step["requests"], step["unsent"]) for step in steps] == [(40, 0), (40, 0)]
    assert all(step["lag"]["count"] <= 42 for step in steps)  # each thread may try one more


def test_an_interrupted_run_has_at_most_the_given_requests() -> None:
    """One user waits for its answer, and 100 requests a second are due meanwhile."""

    def silent(peer: Peer) -> None:
        peer.request()
        peer.wait(0.5)
        load.send_signal(signal.SIGINT)
        peer.wait_for_close()

    with misbehaving(silent) as server:
        words = ("--users", "1", "--rate", "100", "--requests", "5", "--json")
        load = subprocess.Popen(
            [WEIR, "load", server.url, *words], stdout=subprocess.PIPE, text=True
        )
        out, _ = load.communicate(timeout=LIMIT_S)
    (step,) = json.loads(out)["steps"]
    assert step["requests"] == 1
    assert 0 < step["unsent"] <= 4
