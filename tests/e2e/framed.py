# SPDX-License-Identifier: MIT
"""Servers that speak HTTP/2 in clear text, frame by frame, and break its rules where a test says
so."""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Callable, Iterator

from tests.e2e.http2 import END_HEADERS, END_STREAM, PREFACE, Frame, Kind, data, headers, settings
from tests.e2e.misbehaving import Misbehaving, Peer, misbehaving

Framing = Callable[["Framed"], None]


def head(length: int | None) -> bytes:
    """A header block: status 200, and the length."""
    if length is None:
        return b"\x88"
    digits = str(length).encode()
    return b"\x88\x0f\x0d" + bytes([len(digits)]) + digits


def ok(stream: int, body: bytes = b"hello", length: int | None = -1) -> bytes:
    """A whole answer. `length` -1: that of the body; None: no Content-Length."""
    block = head(len(body) if length == -1 else length)
    return headers(stream, block, end=False) + data(stream, body, end=True)


class Framed:
    """The server's side of one connection."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self._data = b""
        self.frames: list[Frame] = []  # that arrived, but for those of requests
        self.bodies: dict[int, int] = {}  # bytes of each request's body

    def _take(self, count: int) -> bytes:
        while len(self._data) < count:
            self._data += self.peer.receive()
        taken, self._data = self._data[:count], self._data[count:]
        return taken

    def preface(self) -> None:
        assert self._take(len(PREFACE)) == PREFACE

    def frame(self) -> Frame:
        """Waits for a frame."""
        start = self._take(9)
        payload = self._take(int.from_bytes(start[:3], "big"))
        return Frame(start[3], start[4], int.from_bytes(start[5:], "big"), payload)

    def ready(self) -> bool:
        """Whether bytes have arrived that are not read yet."""
        return bool(self._data or select.select([self.peer.connection], [], [], 0)[0])

    def until(self, kind: int) -> Frame:
        """Waits for a frame of this type."""
        while (got := self.frame()).kind != kind:
            self.frames.append(got)
        return got

    def opened(self) -> int:
        """Waits for the head of a request; returns its stream."""
        got = self.until(Kind.HEADERS)
        assert got.flags & END_HEADERS
        self.peer.requests += 1
        return got.stream

    def request(self) -> int:
        """Waits for a whole request; returns its stream."""
        while True:
            got = self.frame()
            self.bodies.setdefault(got.stream, 0)
            if got.kind == Kind.DATA:
                self.bodies[got.stream] += len(got.payload)
            elif got.kind != Kind.HEADERS:
                self.frames.append(got)
                continue
            if got.flags & END_STREAM:
                self.peer.requests += 1
                return got.stream

    def send(self, data: bytes) -> None:
        self.peer.send(data)

    def end(self) -> None:
        """Closes the connection. A close with unread bytes would be a reset."""
        with contextlib.suppress(OSError):
            self.peer.connection.shutdown(socket.SHUT_WR)
        self.peer.wait_for_close()


@contextlib.contextmanager
def framed(behaviour: Framing, values: dict[int, int] | None = None) -> Iterator[Misbehaving]:
    """A server whose connections begin with SETTINGS, and then behave so.

    The first connection is the one by which `weir load` finds out whether it speaks HTTP/2.
    """

    def serve(peer: Peer) -> None:
        connection = Framed(peer)
        connection.preface()
        connection.send(settings(*(values or {}).items()))
        behaviour(connection)

    with misbehaving(serve) as server:
        yield server
