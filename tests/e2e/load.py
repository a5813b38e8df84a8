# SPDX-License-Identifier: MIT
"""Clients that send requests while something happens to the server, and count the outcomes."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from types import TracebackType

from tests.e2e.wire import Connection, WireError
from tests.waiting import LIMIT_S, wait_until


@dataclass
class Count:
    """The counts of one client."""

    answers: int = 0
    refused: int = 0  # no connection at all
    unanswered: int = 0  # a connection, its first request, and not a byte in return
    parted: int = 0  # closed after an answer, and the next request was on its way: it is sent again
    cut: int = 0  # an answer that was begun and not finished
    wrong: list[str] = field(default_factory=list)

    @property
    def failed(self) -> int:
        """Requests that failed although the client followed the rules."""
        return self.refused + self.unanswered + self.cut + len(self.wrong)

    def add(self, other: Count) -> None:
        self.answers += other.answers
        self.refused += other.refused
        self.unanswered += other.unanswered
        self.parted += other.parted
        self.cut += other.cut
        self.wrong += other.wrong


class Client(threading.Thread):
    """Requests one path until `finish` is set, and pauses for `rest_s` after each answer.

    It gives up a request that has no answer after `patience_s`.
    """

    def __init__(
        self,
        address: tuple[str, int],
        path: str,
        body: bytes,
        *,
        keep: bool,
        rest_s: float,
        patience_s: float,
    ) -> None:
        super().__init__()
        self.address = address
        self.path = path
        self.body = body
        self.keep = keep
        self.rest_s = rest_s
        self.patience_s = patience_s
        self.finish = threading.Event()
        self.count = Count()

    def run(self) -> None:
        while not self.finish.is_set():
            try:
                connection = Connection.to(self.address, self.patience_s)
            except (ConnectionRefusedError, ConnectionResetError):
                self.count.refused += 1
                continue
            try:
                self.use(connection)
            finally:
                connection.close()

    def use(self, connection: Connection) -> None:
        """Sends requests over one connection until it is closed.

        When the server closes it between two answers, a client sends the request again on another
        connection (RFC 9112 section 9.3.1). This counts as `parted` and is no failure.
        """
        before = self.count.answers
        option = "keep-alive" if self.keep else "close"
        request = f"GET {self.path} HTTP/1.1\r\nHost: a\r\nConnection: {option}\r\n\r\n".encode()
        while not self.finish.is_set():
            try:
                connection.send(request)
                answer = connection.read()
            except (OSError, WireError):
                if connection.data:
                    self.count.cut += 1
                elif self.count.answers > before:
                    self.count.parted += 1
                else:
                    self.count.unanswered += 1
                return
            self.count.answers += 1
            if (answer.status, answer.body) != (200, self.body):
                self.count.wrong.append(f"{answer.status}, {len(answer.body)} bytes")
            if answer.closes:
                return
            if self.rest_s > 0:
                self.finish.wait(self.rest_s)


class Load:
    """Several clients that send requests. A context manager.

    Clients that pause leave the processors to other tests.
    """

    def __init__(
        self,
        address: tuple[str, int],
        path: str,
        body: bytes,
        *,
        clients: int,
        keep: bool,
        rest_s: float = 0,
        patience_s: float = LIMIT_S,
    ) -> None:
        self.clients = [
            Client(address, path, body, keep=keep, rest_s=rest_s, patience_s=patience_s)
            for _ in range(clients)
        ]

    def __enter__(self) -> Load:
        for client in self.clients:
            client.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> Count:
        """Waits until every client has finished its request; returns the sum of the counts."""
        for client in self.clients:
            client.finish.set()
        for client in self.clients:
            client.join()
        return self.count()

    def count(self) -> Count:
        total = Count()
        for client in self.clients:
            total.add(client.count)
        return total

    def wait_for(self, answers: int) -> None:
        """Waits for this many more answers."""
        enough = self.count().answers + answers

        def answered() -> bool:
            assert any(client.is_alive() for client in self.clients)
            return self.count().answers >= enough

        wait_until(answered, lambda: f"{enough} answers: {self.count()}")
