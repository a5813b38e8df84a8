# SPDX-License-Identifier: MIT
"""Many clients in one thread. Each holds a connection and sends requests over it."""

from __future__ import annotations

import contextlib
import errno
import resource
import selectors
import socket
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import TracebackType

from tests.e2e.wire import Answer, Connection, parse_answer
from tests.waiting import LIMIT_S

# Connections that are opened at the same time. The kernel drops a SYN that finds the backlog full,
# and sends it again only a second later.
AT_ONCE = 500


@contextlib.contextmanager
def descriptors(wanted: int) -> Iterator[bool]:
    """Raises this process's limit of open files; yields whether that is allowed."""
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
    """Connections that are all open at the same time. A context manager."""

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
            Connection(client.socket).reset()  # thousands in TIME_WAIT would use up ports
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
        """Receives; returns whether an answer is complete."""
        got = client.socket.recv(64 * 1024)
        assert got, f"closed after {client.data!r}"
        client.data += got
        if not (parsed := parse_answer(client.data)):
            return False
        answer, client.data = parsed
        client.answers.append(answer)
        return True

    def _turn(self) -> Iterator[Client]:
        """Handles the sockets that are ready, once; yields the clients that have their answer."""
        events = self.ready.select(LIMIT_S)
        assert events, f"no progress in {LIMIT_S} s"
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

    def ask(self, clients: list[Client]) -> None:
        """Each of these sends a request and receives its answer."""
        waiting = deque(clients)
        asking = 0
        while waiting or asking:
            while waiting and asking < AT_ONCE:
                client = waiting.popleft()
                self.ready.register(client.socket, selectors.EVENT_WRITE, client)
                asking += 1
            asking -= sum(1 for _ in self._turn())

    def grow(self, count: int) -> None:
        """This many more clients connect, send a request and receive the answer."""
        for _ in range(0, count, AT_ONCE):
            left = min(AT_ONCE, count)
            count -= left
            self.ask([self._connect() for _ in range(left)])

    def pass_through(self, count: int) -> list[Answer]:
        """This many clients connect at the same time; each leaves when it has its answer."""
        for client in [self._connect() for _ in range(count)]:
            self.ready.register(client.socket, selectors.EVENT_WRITE, client)
        answers: list[Answer] = []
        while len(answers) < count:
            for client in self._turn():
                answers += client.answers
                self.leave(client)
        return answers

    def leave(self, client: Client) -> None:
        client.socket.close()
        self.clients.remove(client)
