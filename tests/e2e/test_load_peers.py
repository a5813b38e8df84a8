# SPDX-License-Identifier: MIT
"""`weir load` against other people's servers, which behave as they do: what it counts is what
they have logged."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.peers import CONFIGURATIONS, PeerServer, peer, program_of
from tests.e2e.running import WEIR

LIMIT_S = 60.0
INVALID = 4

Start = Callable[..., PeerServer]


@pytest.fixture(params=CONFIGURATIONS)
def other(request: pytest.FixtureRequest, site: Path, tmp_path: Path) -> Iterator[Start]:
    """Starts a server, with the limits of keep-alive that are named."""
    name: str = request.param
    if not program_of(name):
        pytest.skip(f"{name} is not installed")
    with ExitStack() as stack:
        yield lambda **limits: stack.enter_context(peer(name, site, tmp_path, **limits))


def step_of(*words: str) -> dict[str, Any]:
    done = subprocess.run(
        [WEIR, "load", *words, "--json"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode in (0, INVALID), done.stderr
    (step,) = json.loads(done.stdout)["steps"]
    assert isinstance(step, dict)
    assert sum(step["errors"].values()) == 0
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
def test_counts_what_they_have_logged(other: Start, words: list[str]) -> None:
    server = other()
    step = step_of(f"{server.url}/hello.txt", "--requests", "400", *words)
    assert step["status"] == {"200": 400}
    assert step["body_bytes"] == (0 if "HEAD" in words else 400 * len("hello\n"))
    assert lines_about(server, "/hello.txt") == 400 + step["reopened"]
    if "--no-keepalive" in words:
        assert step["connects"] == 400


def test_goes_on_where_they_keep_a_connection_for_so_many_requests(other: Start) -> None:
    server = other(requests=7)
    step = step_of(f"{server.url}/hello.txt", "--users", "3", "--requests", "300")
    assert step["answers"] == 300
    assert step["connects"] >= 300 // 8
    assert lines_about(server, "/hello.txt") == 300


def test_goes_on_where_they_close_while_it_thinks(other: Start) -> None:
    server = other(keep_s=1)
    words = ["--users", "3", "--think", "2600ms", "--requests", "6"]
    step = step_of(f"{server.url}/hello.txt", *words)
    assert (step["answers"], step["connects"]) == (6, 6)
    assert lines_about(server, "/hello.txt") == 6


def test_their_cpu_is_told_with_that_of_their_workers(other: Start) -> None:
    server = other()
    pid = str(server.popen.pid)
    step = step_of(server.url + "/", "--users", "8", "--requests", "20000", "--server-pid", pid)
    assert step["server"]["demand_ns"] > 1000
    assert step["server_user_ns"] + step["server_system_ns"] > 0
