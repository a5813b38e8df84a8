# SPDX-License-Identifier: MIT
"""Many keep-alive clients at once, in one thread: each asks again as soon as it has its answer."""

from __future__ import annotations

import resource
import selectors
import socket
import time
from dataclasses import dataclass, field
from types import TracebackType

from tests.e2e.wire import Answer, parse_answer

DEADLINE_S = 60.0


@dataclass
class Member:
    """One client, and what it has heard."""

    socket: socket.socket
    data: bytes = b""
    answers: int = 0
    last: Answer | None = None
    closed: bool = False


def fairness(counts: list[int]) -> float:
    """Jain's index: 1 when all have the same, 1/n when one has everything."""
    return sum(counts) ** 2 / (len(counts) * sum(count * count for count in counts))


@dataclass
class Crowd:
    """Clients of one server; a context manager."""

    address: tuple[str, int]
    size: int
    path: str = "/hello.txt"
    members: list[Member] = field(default_factory=list)

    def __enter__(self) -> Crowd:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < self.size + 200:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(self.size + 200, hard), hard))
        self.request = f"GET {self.path} HTTP/1.1\r\nHost: a\r\n\r\n".encode()
        self.selector = selectors.DefaultSelector()
        for _ in range(self.size):
            member = Member(socket.create_connection(self.address, timeout=20))
            member.socket.setblocking(False)
            self.members.append(member)
            self.selector.register(member.socket, selectors.EVENT_READ, member)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for member in self.members:
            member.socket.close()
        self.selector.close()

    def _hear(self, member: Member) -> bool:
        """Takes what has come; whether that was an answer, whole."""
        got = member.socket.recv(65536)
        if not got:
            assert not member.data, "an answer was cut short"
            member.closed = True
            self.selector.unregister(member.socket)
            return False
        member.data += got
        if not (parsed := parse_answer(member.data)):
            return False
        member.last, member.data = parsed
        member.answers += 1
        return True

    def _answered(self) -> list[Member]:
        return [key.data for key, _ in self.selector.select(5) if self._hear(key.data)]

    def ask_until(self, total: int) -> None:
        """Everybody asks over and over, until there were so many answers together."""
        until = time.monotonic() + DEADLINE_S
        answers = 0
        for member in self.members:
            member.socket.send(self.request)
        while answers < total:
            assert time.monotonic() < until, f"{answers} answers in {DEADLINE_S} s"
            for member in self._answered():
                answers += 1
                member.socket.send(self.request)

    def ask_once(self) -> list[Answer]:
        """Everybody who is still connected asks once, at the same time; what they hear."""
        return self._ask([member for member in self.members if not member.closed])

    def ask_in_turn(self) -> list[Answer]:
        """One after the other; what they hear."""
        return [answer for member in self.members for answer in self._ask([member])]

    def _ask(self, asking: list[Member]) -> list[Answer]:
        until = time.monotonic() + DEADLINE_S
        for member in asking:
            member.socket.send(self.request)
        heard: list[Answer] = []
        while len(heard) < len(asking):
            assert time.monotonic() < until, f"{len(heard)} answers for {len(asking)} requests"
            heard += [member.last for member in self._answered() if member.last]
        return heard

    def wait_for_closed(self, count: int) -> None:
        """Goes on until the server has closed so many of the connections."""
        until = time.monotonic() + DEADLINE_S
        while sum(member.closed for member in self.members) < count:
            assert time.monotonic() < until, "connections stay open"
            assert not self._answered(), "an answer that nobody asked for"
