# SPDX-License-Identifier: MIT
"""Many keep-alive clients in one thread. Each sends its next request when it has its answer."""

from __future__ import annotations

import resource
import selectors
import socket
import time
from dataclasses import dataclass, field
from types import TracebackType

from tests.e2e.wire import Answer, parse_answer
from tests.waiting import LIMIT_S


@dataclass
class Member:
    """One client and its answers."""

    socket: socket.socket
    data: bytes = b""
    answers: int = 0
    last: Answer | None = None
    closed: bool = False


@dataclass
class Crowd:
    """Clients of one server. A context manager."""

    address: tuple[str, int]
    size: int
    path: str = "/hello.txt"
    members: list[Member] = field(default_factory=list)
    early: list[Answer] = field(default_factory=list)  # answers that came while waiting for closes

    def __enter__(self) -> Crowd:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < self.size + 200:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(self.size + 200, hard), hard))
        self.request = f"GET {self.path} HTTP/1.1\r\nHost: a\r\n\r\n".encode()
        self.selector = selectors.DefaultSelector()
        for _ in range(self.size):
            member = Member(socket.create_connection(self.address, timeout=LIMIT_S))
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

    def _receive(self, member: Member) -> bool:
        """Receives; returns whether an answer is complete."""
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
        return [key.data for key, _ in self.selector.select(5) if self._receive(key.data)]

    def ask_until(self, total: int) -> None:
        """All clients send requests until they have this many answers together."""
        until = time.monotonic() + LIMIT_S
        answers = 0
        for member in self.members:
            member.socket.send(self.request)
        while answers < total:
            assert time.monotonic() < until, f"{answers} answers in {LIMIT_S} s"
            for member in self._answered():
                answers += 1
                member.socket.send(self.request)

    def ask_once(self) -> list[Answer]:
        """Each connected client sends one request, all at the same time; returns the answers."""
        return self._ask([member for member in self.members if not member.closed])

    def ask_once_until(self, count: int) -> list[Answer]:
        """Each client sends one request; returns the first `count` answers."""
        for member in self.members:
            member.socket.send(self.request)
        return self.read_answers(count)

    def ask_in_turn(self) -> list[Answer]:
        """Each client sends one request, one after the other; returns the answers."""
        return [answer for member in self.members for answer in self._ask([member])]

    def _ask(self, asking: list[Member]) -> list[Answer]:
        for member in asking:
            member.socket.send(self.request)
        return self.read_answers(len(asking))

    def read_answers(self, count: int) -> list[Answer]:
        """Waits for this many answers to requests that are sent."""
        until = time.monotonic() + LIMIT_S
        answers, self.early = self.early, []
        while len(answers) < count:
            assert time.monotonic() < until, f"{len(answers)} of {count} answers"
            answers += [member.last for member in self._answered() if member.last]
        return answers

    def wait_for_closed(self, count: int) -> None:
        """Waits until the server has closed this many of the connections."""
        until = time.monotonic() + LIMIT_S
        while sum(member.closed for member in self.members) < count:
            assert time.monotonic() < until, "connections stay open"
            self.early += [member.last for member in self._answered() if member.last]
