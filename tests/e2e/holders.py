# SPDX-License-Identifier: MIT
"""Many clients at once, in one thread: each holds a connection and asks over it again and again."""

from __future__ import annotations

import contextlib
import errno
import resource
import selectors
import socket
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import TracebackType

from tests.e2e.wire import Answer, Connection, parse_answer

# Connections that are being made at the same time: what waits in a full backlog is let in by
# retransmission only, a second later.
AT_ONCE = 500


@contextlib.contextmanager
def descriptors(wanted: int) -> Iterator[bool]:
    """Lets this process have so many, if it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = hard == resource.RLIM_INFINITY or wanted <= hard
    if allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    try:
        yield allowed
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@dataclass
class Client:
    socket: socket.socket
    data: bytes = b""
    answers: list[Answer] = field(default_factory=list)


class Crowd:
    """Connections that are held, all at the same time; a context manager."""

    def __init__(self, address: tuple[str, int], request: bytes) -> None:
        self.address = address
        self.request = request
        self.clients: list[Client] = []
        self.ready = selectors.EpollSelector()

    def __enter__(self) -> Crowd:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for client in self.clients:
            Connection(client.socket).reset()  # thousands in TIME_WAIT would be in others' way
        self.ready.close()

    def _connect(self) -> Client:
        made = socket.socket()
        made.setblocking(False)
        client = Client(made)
        self.clients.append(client)
        status = made.connect_ex(self.address)
        assert status in (0, errno.EINPROGRESS), errno.errorcode[status]
        return client

    def _receive(self, client: Client) -> bool:
        """Whether another answer is whole."""
        got = client.socket.recv(64 * 1024)
        assert got, f"closed after {client.data!r}"
        client.data += got
        if not (parsed := parse_answer(client.data)):
            return False
        answer, client.data = parsed
        client.answers.append(answer)
        return True

    def _turn(self, until: float, *, patient: bool = False) -> Iterator[Client]:
        """Serves what is ready, once; the clients that have got an answer."""
        left = until - time.monotonic()
        events = self.ready.select(left) if left > 0 else []
        assert events or patient, "no progress in time"
        for key, mask in events:
            client: Client = key.data
            if mask & selectors.EVENT_WRITE:
                status = client.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                assert status == 0, errno.errorcode[status]
                assert client.socket.send(self.request) == len(self.request)
                self.ready.modify(client.socket, selectors.EVENT_READ, client)
            elif self._receive(client):
                self.ready.unregister(client.socket)
                yield client

    def ask(self, clients: list[Client], seconds: float) -> None:
        """Each of these asks, and gets its answer."""
        until = time.monotonic() + seconds
        waiting = deque(clients)
        asking = 0
        while waiting or asking:
            while waiting and asking < AT_ONCE:
                client = waiting.popleft()
                self.ready.register(client.socket, selectors.EVENT_WRITE, client)
                asking += 1
            asking -= sum(1 for _ in self._turn(until))

    def grow(self, count: int, seconds: float) -> None:
        """So many more connect, ask, and get an answer."""
        until = time.monotonic() + seconds
        for _ in range(0, count, AT_ONCE):
            left = min(AT_ONCE, count)
            count -= left
            self.ask([self._connect() for _ in range(left)], until - time.monotonic())

    def pass_through(self, count: int, seconds: float) -> list[Answer]:
        """So many come at the same time; each leaves when it has its answer."""
        until = time.monotonic() + seconds
        for client in [self._connect() for _ in range(count)]:
            self.ready.register(client.socket, selectors.EVENT_WRITE, client)
        answers: list[Answer] = []
        while len(answers) < count:
            for client in self._turn(until):
                answers += client.answers
                self.leave(client)
        return answers

    def begin(self) -> Client:
        """One more comes and asks, and does not wait for the answer."""
        client = self._connect()
        self.ready.register(client.socket, selectors.EVENT_WRITE, client)
        return client

    def answered(self, client: Client, seconds: float) -> bool:
        """Whether it gets its answer in this time."""
        until = time.monotonic() + seconds
        while not client.answers and time.monotonic() < until:
            for _ in self._turn(until, patient=True):
                pass
        return bool(client.answers)

    def leave(self, client: Client) -> None:
        client.socket.close()
        self.clients.remove(client)
