# SPDX-License-Identifier: MIT
"""Event loops share the connections, also when some become busy and others end.

The kernel shows which descriptors each epoll instance watches, so no test has
to draw conclusions from durations.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.running import Server
from tests.e2e.sockets import tcp_sockets
from tests.e2e.wire import Connection, WireError
from tests.waiting import wait_until

CONNECTIONS = 64
BODY = 100_000  # bytes: the server has more to do than a client in Python
OBSERVED = 2_000  # answers, which take longer than several balancing periods

pytestmark = pytest.mark.parametrize("model", ["percore"])


def ports_by_loop(running: Server) -> list[set[int]]:
    """For each epoll instance of the workers, the ports of its clients."""
    clients = {
        each.link: each.peer_port for each in tcp_sockets(running.address[1]) if each.is_established
    }
    loops = []
    for worker in running.workers():
        folder = Path(f"/proc/{worker.pid}")
        links = worker.descriptors()
        for fd, link in sorted(links.items()):
            if link != "anon_inode:[eventpoll]":
                continue
            lines = (folder / f"fdinfo/{fd}").read_text().splitlines()
            watched = [links.get(int(line.split()[1])) for line in lines if line.startswith("tfd:")]
            loops.append({clients[link] for link in watched if link in clients})
    return loops


def port_of(connection: Connection) -> int:
    port = connection.socket.getsockname()[1]
    assert isinstance(port, int)
    return port


@contextmanager
def open_connections(running: Server, count: int) -> Iterator[list[Connection]]:
    """This many connections, each of which has received an answer."""
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
    """Sends requests over one connection while `going` is set, and checks every answer."""

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
    """A driver for each connection. Every second driver sends `depth` requests at a time.

    At the end every answer must have been right. With `whole` unset the server may cut answers.
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


def test_two_loops_share_the_connections(server: ServerFactory) -> None:
    running = server("--threads", "2")
    with open_connections(running, CONNECTIONS):

        def shared() -> bool:
            loops = [len(ports) for ports in ports_by_loop(running)]
            return len(loops) == 2 and sum(loops) == CONNECTIONS and min(loops) > 0

        wait_until(shared, lambda: f"both loops have connections: {ports_by_loop(running)}")


def test_a_loop_whose_connections_have_ended_receives_others(server: ServerFactory) -> None:
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

        wait_until(even, "the connections are shared again")


def test_busy_connections_do_not_stay_together_on_one_loop(
    server: ServerFactory, site: Path
) -> None:
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

            wait_until(spread, "the busy connections are spread over both loops")


def test_the_only_busy_connection_stays_on_its_loop(server: ServerFactory, site: Path) -> None:
    add_bodies(site)
    running = server("--threads", "2")
    with open_connections(running, 10) as connections:
        before = ports_by_loop(running)
        with driving(connections[:1]) as (driver,):
            driver.going.set()

            def observed() -> bool:
                loops = ports_by_loop(running)
                assert all(driver.port not in loop for loop in loops) or [
                    driver.port in loop for loop in loops
                ] == [driver.port in loop for loop in before]
                return driver.answers >= OBSERVED

            wait_until(observed, lambda: f"{OBSERVED} answers, now {driver.answers}")


def crowd(running: Server, drivers: list[Driver], loop: int) -> set[int]:
    """Lets exactly those drivers work whose connections are on this loop; returns their ports."""
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

            wait_until(have_moved, "connections move to the other loop")
        assert not any(driver.ended for driver in drivers)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGQUIT])
def test_the_server_stops_while_connections_move(
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

            wait_until(have_moved, "connections move to the other loop")
            running.signal(number)
            assert running.wait() == 0
