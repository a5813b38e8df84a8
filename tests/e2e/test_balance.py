# SPDX-License-Identifier: MIT
"""Event loops share the connections evenly.

The kernel tells which descriptors each epoll instance watches, so nothing has
to be guessed from times.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.running import Server
from tests.e2e.wire import Connection

CONNECTIONS = 64


def connections_by_loop(running: Server) -> list[int]:
    """For each epoll instance of the workers, how many client connections it watches."""
    port = f":{running.address[1]:04X}"
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    inodes = {f"socket:[{row[9]}]" for row in rows if row[1].endswith(port) and row[3] == "01"}
    loops = []
    for worker in running.workers():
        folder = Path(f"/proc/{worker.pid}")
        links = {int(fd): os.readlink(folder / "fd" / fd) for fd in os.listdir(folder / "fd")}
        for fd, link in links.items():
            if link != "anon_inode:[eventpoll]":
                continue
            told = (folder / f"fdinfo/{fd}").read_text().splitlines()
            watched = [int(line.split()[1]) for line in told if line.startswith("tfd:")]
            loops.append(sum(links.get(each) in inodes for each in watched))
    return loops


@pytest.mark.parametrize("model", ["percore"])
def test_no_loop_holds_more_than_its_share(server: ServerFactory) -> None:
    running = server("--threads", "2")
    connections = [Connection.to(running.address) for _ in range(CONNECTIONS)]
    try:
        for connection in connections:
            assert connection.get("/hello.txt").status == 200
        loops = connections_by_loop(running)
        assert len(loops) == 2
        assert sum(loops) == CONNECTIONS
        assert max(loops) <= 0.6 * CONNECTIONS
    finally:
        for connection in connections:
            connection.close()
