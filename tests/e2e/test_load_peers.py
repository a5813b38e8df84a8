# SPDX-License-Identifier: MIT
"""`weir load` with other web servers: its counts equal the lines of their logs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.loading import errors, step_of
from tests.e2e.peers import CONFIGURATIONS, PeerServer, peer, program_of

Start = Callable[..., PeerServer]


@pytest.fixture(params=CONFIGURATIONS)
def other(request: pytest.FixtureRequest, site: Path, tmp_path: Path) -> Iterator[Start]:
    """Starts a server with the given limits of keep-alive."""
    name: str = request.param
    if not program_of(name):
        pytest.skip(f"{name} is not installed")
    with ExitStack() as stack:
        yield lambda **limits: stack.enter_context(peer(name, site, tmp_path, **limits))


def step_without_errors(*words: str) -> dict[str, Any]:
    step = step_of(*words)
    assert errors(step) == {}
    return step


def lines_about(server: PeerServer, path: str) -> int:
    return sum(f" {path} " in line for line in server.stop())


@pytest.mark.parametrize(
    "words",
    [
        ["--users", "7"],
        ["--users", "3", "--no-keepalive"],
        ["--users", "2", "--pipeline", "4"],
        ["--users", "4", "--threads", "2", "--think", "exp:2ms", "--verify", "hash"],
        ["--users", "30", "--rate", "2000", "--poisson"],
        ["--method", "HEAD"],
    ],
)
def test_answers_equal_the_lines_of_their_logs(other: Start, words: list[str]) -> None:
    server = other()
    step = step_without_errors(f"{server.url}/hello.txt", "--requests", "400", *words)
    assert step["status"] == {"200": 400}
    assert step["body_bytes"] == (0 if "HEAD" in words else 400 * len("hello\n"))
    assert lines_about(server, "/hello.txt") == 400 + step["reopened"]
    if "--no-keepalive" in words:
        assert step["connects"] == 400


def test_a_load_continues_when_they_limit_the_requests_of_a_connection(other: Start) -> None:
    server = other(requests=7)
    step = step_without_errors(f"{server.url}/hello.txt", "--users", "3", "--requests", "300")
    assert step["answers"] == 300
    assert step["connects"] >= 300 // 8
    assert lines_about(server, "/hello.txt") == 300


def test_a_load_continues_when_they_close_idle_connections(other: Start) -> None:
    server = other(keep_s=1)
    words = ["--users", "3", "--think", "2600ms", "--requests", "6"]
    step = step_without_errors(f"{server.url}/hello.txt", *words)
    assert step["answers"] == 6
    assert 3 < step["connects"] <= 6 + step["reopened"]
    assert lines_about(server, "/hello.txt") == 6


def test_their_cpu_time_includes_their_workers(other: Start) -> None:
    server = other()
    pid = str(server.popen.pid)
    step = step_without_errors(
        server.url + "/", "--users", "8", "--requests", "20000", "--server-pid", pid
    )
    assert step["server"]["demand_ns"] > 1000
    assert step["server_user_ns"] + step["server_system_ns"] > 0
