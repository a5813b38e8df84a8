# SPDX-License-Identifier: MIT
"""Running out of descriptors: no spinning, no dying, and back to work when there are some."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.running import Server
from tests.e2e.wire import Connection, connect

LIMIT = 64
MEASURE_S = 1.0

needs_prlimit = pytest.mark.skipif(not shutil.which("prlimit"), reason="prlimit is not installed")


def cpu_s(running: Server) -> float:
    return sum(process.cpu_s() for process in [running.master, *running.workers()])


@needs_prlimit
def test_without_descriptors_it_waits_and_recovers(server: ServerFactory) -> None:
    running = server(wrapper=("prlimit", f"--nofile={LIMIT}:{LIMIT}"))
    workers = running.workers()
    crowd = [Connection.to(running.address) for _ in range(4 * LIMIT)]
    try:
        before_s = cpu_s(running)
        time.sleep(MEASURE_S)  # what is measured is what it does in this time: nothing
        assert cpu_s(running) - before_s < 0.05 * MEASURE_S
    finally:
        for connection in crowd:
            connection.close()
    deadline = time.monotonic() + 5
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").body == b"hello\n"
        assert time.monotonic() < deadline
    assert running.workers() == workers, "a worker died of it"


@needs_prlimit
def test_without_descriptors_the_connections_it_has_are_served(server: ServerFactory) -> None:
    running = server(wrapper=("prlimit", f"--nofile={LIMIT}:{LIMIT}"))
    with connect(running.address) as first:
        assert first.get("/hello.txt").status == 200
        crowd = [Connection.to(running.address) for _ in range(4 * LIMIT)]
        try:
            for _ in range(20):
                assert first.get("/hello.txt").status == 200
        finally:
            for connection in crowd:
                connection.close()


def test_no_descriptor_is_left_open(server: ServerFactory, site: Path) -> None:
    (site / "big.bin").write_bytes(bytes(1_000_000))
    running = server("--cache-size", "0")

    def visit() -> None:
        with connect(running.address) as connection:
            for path in ["/", "/hello.txt", "/big.bin", "/nothing", "/../x"]:
                connection.get(path)

    def descriptors() -> int:
        return sum(len(os.listdir(f"/proc/{worker.pid}/fd")) for worker in running.workers())

    visit()
    deadline = time.monotonic() + 5
    before = descriptors()
    for _ in range(50):
        visit()
    while descriptors() > before:
        assert time.monotonic() < deadline, f"{before} descriptors have become {descriptors()}"
