# SPDX-License-Identifier: MIT
"""Thousands of connections held at the same time, and more than there may be."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.holders import Crowd, descriptors
from tests.e2e.running import Server

REQUEST = b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n"
SPARE = 500  # descriptors and tasks for everything else

BOUND = 50
BEYOND = 200


def open_descriptors(running: Server) -> int:
    return sum(len(os.listdir(f"/proc/{process.pid}/fd")) for process in running.workers())


def tasks_allowed() -> int:
    """Processes and threads that may yet be made."""
    limits = [int(Path("/proc/sys/kernel/threads-max").read_text())]
    limits.append(int(Path("/proc/sys/kernel/pid_max").read_text()))
    group = Path("/proc/self/cgroup").read_text().rpartition("::")[2].strip()
    for folder in [Path("/sys/fs/cgroup"), Path(f"/sys/fs/cgroup{group}")]:
        file = folder / "pids.max"
        if file.is_file() and (text := file.read_text().strip()) != "max":
            limits.append(int(text))
    used = int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])
    return min(limits) - used


def returns_to(base: int, running: Server) -> bool:
    deadline = time.monotonic() + 20
    while open_descriptors(running) > base:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.parametrize("count", [500, 1000, 9000])
def test_so_many_are_held_and_none_is_reset(server: ServerFactory, count: int) -> None:
    if tasks_allowed() < count + SPARE:
        pytest.skip(f"a process or thread for each of {count} is more than this machine allows")
    with descriptors(count + SPARE) as allowed:
        if not allowed:
            pytest.skip(f"{count} descriptors are more than a process may have here")
        running = server("--connections", str(count), "--idle-timeout", "100s")
        with Crowd(running.address, REQUEST) as crowd:
            crowd.grow(1, 20)
            base = open_descriptors(running)
            crowd.grow(count - 1, 60)
            crowd.ask(crowd.clients, 40)
            assert len(crowd.clients) == count
            assert all(
                [answer.body for answer in client.answers] == [b"hello\n", b"hello\n"]
                for client in crowd.clients
            )
        assert returns_to(base, running), f"{base} descriptors became {open_descriptors(running)}"


def test_who_comes_when_it_is_full_waits_and_is_served(server: ServerFactory) -> None:
    running = server("--connections", str(BOUND))
    with Crowd(running.address, REQUEST) as crowd:
        answers = crowd.pass_through(BEYOND, 20)
        assert [answer.body for answer in answers] == BEYOND * [b"hello\n"]


def test_who_comes_when_it_is_full_of_idle_ones_waits_until_one_leaves(
    server: ServerFactory,
) -> None:
    running = server("--connections", str(BOUND))
    with Crowd(running.address, REQUEST) as holders, Crowd(running.address, REQUEST) as others:
        holders.grow(BOUND * len(running.workers()), 20)  # it is for each worker
        late = others.begin()
        assert not others.answered(late, 0.3), "the bound was not kept"
        holders.leave(holders.clients[0])
        assert others.answered(late, 20)
