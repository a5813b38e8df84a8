# SPDX-License-Identifier: MIT
"""Event loops share the connections evenly, and go on doing so when those have aged.

The kernel tells which descriptors each epoll instance watches, so nothing has
to be guessed from times.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.running import Server
from tests.e2e.wire import Connection, WireError

CONNECTIONS = 64
EVEN_S = 20.0  # far more than it takes, for machines that have much else to do
BODY = 100_000  # so that the server has more to do than a client in Python

pytestmark = pytest.mark.parametrize("model", ["percore"])


def ports_by_loop(running: Server) -> list[set[int]]:
    """For each epoll instance of the workers, the ports of the clients that it watches."""
    port = f":{running.address[1]:04X}"
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    clients = {
        f"socket:[{row[9]}]": int(row[2].rpartition(":")[2], 16)
        for row in rows
        if row[1].endswith(port) and row[3] == "01"
    }
    loops = []
    for worker in running.workers():
        folder = Path(f"/proc/{worker.pid}")
        links = worker.descriptors()
        for fd, link in sorted(links.items()):
            if link != "anon_inode:[eventpoll]":
                continue
            told = (folder / f"fdinfo/{fd}").read_text().splitlines()
            watched = [links.get(int(line.split()[1])) for line in told if line.startswith("tfd:")]
            loops.append({clients[link] for link in watched if link in clients})
    return loops


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + EVEN_S
    while not condition():
        assert time.monotonic() < deadline, what


def port_of(connection: Connection) -> int:
    port = connection.socket.getsockname()[1]
    assert isinstance(port, int)
    return port


@contextmanager
def open_connections(running: Server, count: int) -> Iterator[list[Connection]]:
    """So many connections, each of which has had an answer."""
    opened = [Connection.to(running.address) for _ in range(count)]
    try:
        for connection in opened:
            assert connection.get("/hello.txt").status == 200
        yield opened
    finally:
        for connection in opened:
            connection.close()


def add_bodies(site: Path) -> None:
    for letter in "abcdefgh":
        (site / letter).write_text(letter * BODY)


class Driver(threading.Thread):
    """Asks over one connection while it is told to, and compares every answer with its request."""

    def __init__(self, connection: Connection, *, depth: int) -> None:
        super().__init__()
        self.connection = connection
        self.port = port_of(connection)
        self.depth = depth  # requests that are sent together
        self.going = threading.Event()
        self.finish = False
        self.answers = 0
        self.wrong: list[str] = []
        self.ended = False  # by the server

    def run(self) -> None:
        while not self.finish and not self.ended and not self.wrong:
            if self.going.wait(0.05):
                self.ask()

    def ask(self) -> None:
        letters = "".join("abcdefgh"[(self.answers + i) * 5 % 8] for i in range(self.depth))
        try:
            self.connection.send(
                b"".join(f"GET /{each} HTTP/1.1\r\nHost: a\r\n\r\n".encode() for each in letters)
            )
            for each in letters:
                answer = self.connection.read()
                if (answer.status, answer.body) != (200, each.encode() * BODY):
                    self.wrong.append(f"{answer.status}, {answer.body[:1]!r} for {each}")
                self.answers += 1
                self.ended = answer.closes
                if self.ended:
                    return
        except (OSError, WireError) as error:
            self.ended = True
            if self.connection.data:
                self.wrong.append(str(error))


@contextmanager
def driving(
    connections: list[Connection], *, depth: int = 1, whole: bool = True
) -> Iterator[list[Driver]]:
    """A driver for each connection. Every second one sends `depth` requests at a time.

    In the end every answer was right and `whole`, unless the server is to be cut short.
    """
    drivers = [
        Driver(connection, depth=depth if i % 2 else 1) for i, connection in enumerate(connections)
    ]
    for driver in drivers:
        driver.start()
    try:
        yield drivers
    finally:
        for driver in drivers:
            driver.finish = True
        for driver in drivers:
            driver.join()
    assert not whole or [driver.wrong for driver in drivers if driver.wrong] == []


def test_no_loop_holds_more_than_its_share(server: ServerFactory) -> None:
    running = server("--threads", "2")
    with open_connections(running, CONNECTIONS):
        loops = [len(ports) for ports in ports_by_loop(running)]
        assert len(loops) == 2
        assert sum(loops) == CONNECTIONS
        assert max(loops) <= 0.6 * CONNECTIONS


def test_a_loop_whose_connections_have_ended_gets_others(server: ServerFactory) -> None:
    running = server("--threads", "2")
    with open_connections(running, CONNECTIONS) as connections:
        leaving = ports_by_loop(running)[1]
        staying = [each for each in connections if port_of(each) not in leaving]
        for connection in connections:
            if connection not in staying:
                connection.close()

        def even() -> bool:
            for connection in staying:
                assert connection.get("/hello.txt").body == b"hello\n"
            loops = [len(ports) for ports in ports_by_loop(running)]
            return sum(loops) == len(staying) and min(loops) >= 0.4 * len(staying)

        wait_until(even, "the connections stay on one loop")


def test_busy_connections_spread_among_idle_ones(server: ServerFactory, site: Path) -> None:
    add_bodies(site)
    running = server("--threads", "2")
    with open_connections(running, CONNECTIONS) as connections:
        together = ports_by_loop(running)[0]
        busy = [each for each in connections if port_of(each) in together][:8]
        ports = {port_of(each) for each in busy}
        with driving(busy) as drivers:
            for driver in drivers:
                driver.going.set()

            def spread() -> bool:
                loops = ports_by_loop(running)
                return min(len(loop & ports) for loop in loops) >= 3 and ports <= set.union(*loops)

            wait_until(spread, "the busy connections stay on one loop")


def test_the_only_busy_connection_stays_where_it_is(server: ServerFactory, site: Path) -> None:
    add_bodies(site)
    running = server("--threads", "2")
    with open_connections(running, 10) as connections:
        before = ports_by_loop(running)
        with driving(connections[:1]) as (driver,):
            driver.going.set()
            until = time.monotonic() + 1.5
            while time.monotonic() < until:
                driver.join(0.1)
                loops = ports_by_loop(running)
                assert all(driver.port not in loop for loop in loops) or [
                    driver.port in loop for loop in loops
                ] == [driver.port in loop for loop in before]
            assert driver.answers > 0


def crowd(running: Server, drivers: list[Driver], loop: int) -> set[int]:
    """Has those drivers work, and those only, whose connections are on one loop; their ports."""
    ports = ports_by_loop(running)[loop]
    for driver in drivers:
        if driver.port in ports:
            driver.going.set()
        else:
            driver.going.clear()
    return ports & {driver.port for driver in drivers}


@pytest.mark.parametrize("depth", [1, 16])
def test_no_answer_is_lost_when_connections_move(
    server: ServerFactory, site: Path, depth: int
) -> None:
    add_bodies(site)
    running = server("--threads", "2")
    with (
        open_connections(running, 24) as connections,
        driving(connections, depth=depth) as drivers,
    ):
        for turn in range(4):
            crowded = crowd(running, drivers, turn % 2)

            def have_moved(other: int = 1 - turn % 2, crowded: set[int] = crowded) -> bool:
                assert not [driver.wrong for driver in drivers if driver.wrong]
                return len(ports_by_loop(running)[other] & crowded) >= len(crowded) // 4

            wait_until(have_moved, "nothing moves")
        assert not any(driver.ended for driver in drivers)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGQUIT])
def test_it_stops_while_connections_move(
    server: ServerFactory, site: Path, number: signal.Signals
) -> None:
    add_bodies(site)
    for _ in range(3):
        running = server("--threads", "2")
        with (
            open_connections(running, 24) as connections,
            driving(connections, depth=4, whole=number == signal.SIGTERM) as drivers,
        ):
            crowded = crowd(running, drivers, 0)

            def have_moved(running: Server = running, crowded: set[int] = crowded) -> bool:
                return bool(ports_by_loop(running)[1] & crowded)

            wait_until(have_moved, "nothing moves")
            running.signal(number)
            assert running.wait() == 0
