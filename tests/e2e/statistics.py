# SPDX-License-Identifier: MIT
"""A server's statistics as `weir stats` prints them, and clients that count what they receive."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.running import WEIR, Server
from tests.e2e.wire import Connection, parse_answer
from tests.waiting import LIMIT_S, wait_until

SHARED = Path("/dev/shm")

Numbers = dict[str, Any]


def weir_stats(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [WEIR, "stats", *arguments], capture_output=True, text=True, check=False, timeout=LIMIT_S
    )


def read(pid: int) -> Numbers:
    done = weir_stats("--json", str(pid))
    assert done.returncode == 0, done.stderr
    numbers: Numbers = json.loads(done.stdout)
    return numbers


def segment(pid: int) -> Path:
    return SHARED / f"weir-{os.geteuid()}-{pid}"


def wait_for(running: Server, condition: Callable[[Numbers], bool]) -> Numbers:
    """Reads the statistics until they satisfy the condition; returns them."""
    numbers: Numbers = {}

    def satisfied() -> bool:
        nonlocal numbers
        numbers = read(running.master.pid)
        return condition(numbers)

    wait_until(satisfied, lambda: json.dumps(numbers, indent=1))
    return numbers


def settled(running: Server) -> Numbers:
    """The statistics once every connection has ended."""
    return wait_for(running, lambda numbers: numbers["gauges"]["connections_open"] == 0)


def log_lines(path: Path, count: int) -> list[tuple[int, int]]:
    """Status and body bytes of each line of the access log, once it has at least `count` lines."""
    wait_until(lambda: len(path.read_text().splitlines()) >= count, f"{count} lines in {path}")
    found = []
    for line in path.read_text().splitlines():
        status, size = line.split('" ', 1)[1].split(" ", 2)[:2]
        found.append((int(status), 0 if size == "-" else int(size)))
    return found


@dataclass
class Seen:
    """The counts of clients."""

    connections: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    bodies: int = 0
    received: int = 0
    sent: int = 0

    @property
    def answers(self) -> int:
        return self.statuses.total()

    def add(self, other: Seen) -> None:
        self.connections += other.connections
        self.statuses += other.statuses
        self.bodies += other.bodies
        self.received += other.received
        self.sent += other.sent


def ask(path: str, *fields: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: a", *fields, "", ""]).encode()


class Talk:
    """One connection. It adds what it sends and receives to a count."""

    def __init__(self, address: tuple[str, int], seen: Seen) -> None:
        self.connection = Connection.to(address)
        self.seen = seen
        seen.connections += 1

    def exchange(self, requests: bytes, answers: int) -> None:
        """Sends the requests in one piece and reads this many answers."""
        self.connection.send(requests)
        self.seen.sent += len(requests)
        data = b""
        while answers > 0:
            if not (found := parse_answer(data)):
                got = self.connection.socket.recv(65536)
                assert got, f"closed with {answers} answers to go"
                self.seen.received += len(got)
                data += got
                continue
            answer, data = found
            self.seen.statuses[answer.status] += 1
            self.seen.bodies += len(answer.body)
            answers -= 1
        assert not data

    def close(self) -> None:
        self.connection.close()

    def reset(self) -> None:
        """Closes with a reset, so that the server cannot send the rest of an answer."""
        made = self.connection.socket
        made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        made.close()


def in_threads(count: int, work: Callable[[Seen], None]) -> Seen:
    """Runs several clients at the same time and adds up their counts."""
    each = [Seen() for _ in range(count)]
    failures: list[BaseException] = []

    def run(seen: Seen) -> None:
        try:
            work(seen)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(seen,)) for seen in each]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    total = Seen()
    for seen in each:
        total.add(seen)
    return total
