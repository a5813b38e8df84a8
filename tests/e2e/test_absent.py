# SPDX-License-Identifier: MIT
"""Many clients request a path that is absent. The first request after it appears finds it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.wire import connect

# The other models prove the absence for each request (tests/e2e/test_freshness.py).
pytestmark = pytest.mark.parametrize("model", ["epoll", "percore", "uring"], scope="session")

RACES = 60


class Flood:
    """Clients that request one path, which changes."""

    def __init__(self, address: tuple[str, int], clients: int) -> None:
        self.address = address
        self.path = "/race.txt"
        self.wrong: list[int] = []
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self.ask_on) for _ in range(clients)]

    def ask_on(self) -> None:
        with connect(self.address) as connection:
            while not self.stop.is_set():
                status = connection.get(self.path).status
                if status not in (200, 404):
                    self.wrong.append(status)

    def __enter__(self) -> Flood:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *reason: object) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join()


@pytest.mark.parametrize("pipelined", [False, True])
def test_a_file_that_appears_in_a_flood_of_requests_is_found(
    server: ServerFactory, site: Path, pipelined: bool
) -> None:
    running = server("--threads", "1", "--workers", "1")
    with Flood(running.address, 12) as flood, connect(running.address) as connection:
        for number in range(RACES):
            name = f"race{number}.txt"
            flood.path = f"/{name}"
            request = f"GET /{name} HTTP/1.1\r\nHost: a\r\n\r\n".encode()
            for _ in range(3):
                assert connection.get(f"/{name}").status == 404
            if pipelined:
                connection.send(request)  # its answer may be 404
            (site / f"{name}.new").write_bytes(b"here")
            (site / f"{name}.new").rename(site / name)
            connection.send(request)
            if pipelined:
                assert connection.read().status in (200, 404)
            assert connection.read().body == b"here"
    assert flood.wrong == []
