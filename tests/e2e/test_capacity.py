# SPDX-License-Identifier: MIT
"""At its start a server prints how many connections it can hold: it holds as many, and no more."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.running import WEIR, start
from tests.e2e.statistics import wait_for
from tests.e2e.wire import Connection

ROOM = re.compile(r"^at most (\d+) connections?( in each of \d+ workers)?, limited by (.*)$", re.M)


UNFINISHED = b"GET /hello.txt HTTP/1.1\r\n"  # a request under way: it makes no space for another


def capacity(text: str) -> tuple[int, str]:
    (found,) = ROOM.findall(text)
    return int(found[0]), found[2]


def test_a_server_holds_as_many_connections_as_it_prints(server: ServerFactory) -> None:
    running = server("--connections", "6", "--workers", "1")
    room, limit = capacity(running.messages())
    assert room == 6
    assert limit.startswith("the setting connections")
    waiting = [Connection.to(running.address) for _ in range(room + 3)]
    for connection in waiting:
        connection.send(UNFINISHED)
    numbers = wait_for(running, lambda now: now["gauges"]["connections_active"] >= room)
    assert numbers["gauges"]["connections_open"] == room
    for connection in waiting:
        connection.close()


@pytest.mark.parametrize("model", ["epoll"])
@pytest.mark.parametrize("files", [200, 1000])
def test_the_limit_of_open_files_is_printed_as_the_reason(
    server: ServerFactory, files: int
) -> None:
    running = server(wrapper=("sh", "-c", f'ulimit -n {files} && exec "$@"', "sh"))
    room, limit = capacity(running.messages())
    assert limit.startswith(f"open files (ulimit -n {files})")
    assert files * 2 // 5 <= room < files
    waiting = [Connection.to(running.address) for _ in range(room + 3)]
    for connection in waiting:
        connection.send(UNFINISHED)
    numbers = wait_for(running, lambda now: now["gauges"]["connections_active"] >= room)
    assert numbers["gauges"]["connections_open"] == room
    rules = {verdict["rule"] for verdict in numbers["verdicts"]}
    assert rules <= {"files-near-limit", "keep-alive-unused"}
    for connection in waiting:
        connection.close()


def test_quiet_prints_no_capacity(site: Path, tmp_path: Path) -> None:
    running = start(
        [str(site), "--listen", "127.0.0.1:0", "--quiet", "--control", "off"], tmp_path / "stderr"
    )
    try:
        assert "at most" not in running.messages()
    finally:
        running.stop()


def explained(*arguments: str) -> str:
    done = subprocess.run(
        [WEIR, "check", "--explain", *arguments], capture_output=True, text=True, check=True
    )
    return next(line for line in done.stdout.splitlines() if line.startswith("model "))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--model", "epoll", "--connections", "7"], "at most 7 connections, limited by the"),
        (["--model", "prefork", "--workers", "3"], "in each of 3 workers"),
        (["--model", "prefork", "--workers", "3"], "10 answered at once, 16384 may wait"),
        (["--model", "pool", "--pool-policy", "sticky", "--pool-queue", "9"], "at most 19 conn"),
        (["--model", "epoll", "--cache-size", "0"], "no cache"),
        (["--model", "epoll", "--cache-size", "96K"], "cache 96K"),
        (["--model", "epoll", "--cache-size", "auto"], "(auto: a share of the "),
        (["--model", "fork"], "for each connection"),
    ],
)
def test_weir_check_prints_the_capacity_too(
    site: Path, arguments: list[str], expected: str
) -> None:
    assert expected in explained(str(site), *arguments)
