# SPDX-License-Identifier: MIT
"""Servers that break the rules of HTTP, each on a free port of this machine."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

HEAD_END = b"\r\n\r\n"

Behaviour = Callable[["Peer"], None]


class GoneError(Exception):
    """The client has closed the connection, or the test is over."""


class Peer:
    """One connection, as its behaviour sees it."""

    def __init__(self, connection: socket.socket, number: int, over: threading.Event) -> None:
        self.connection = connection
        self.number = number  # of the connection, from 0
        self.over = over
        self.requests = 0
        self._data = b""

    def receive(self) -> bytes:
        """Waits for bytes of the client."""
        try:
            got = self.connection.recv(65536)
        except OSError:
            raise GoneError from None
        if not got:
            raise GoneError
        return got

    def request(self) -> bytes:
        """Waits for a request without a body; returns its head."""
        while HEAD_END not in self._data:
            self._data += self.receive()
        head, _, self._data = self._data.partition(HEAD_END)
        self.requests += 1
        return head

    def send(self, data: bytes) -> None:
        try:
            self.connection.sendall(data)
        except OSError:
            raise GoneError from None

    def reset(self) -> None:
        """Closes with a reset."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        raise GoneError

    def wait(self, seconds: float) -> None:
        """Waits this long, or until the test is over."""
        if self.over.wait(seconds):
            raise GoneError

    def wait_for_close(self) -> None:
        """Reads until the client closes."""
        with contextlib.suppress(OSError):
            while self.connection.recv(65536):
                pass
        raise GoneError


def ok(body: bytes = b"hello", *fields: str) -> bytes:
    """A well-formed answer."""
    lines = ["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *fields, "", ""]
    return "\r\n".join(lines).encode() + body


class Misbehaving:
    """A server with one behaviour for each connection, a thread each."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.over = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.peers: list[Peer] = []
        self.threads: list[threading.Thread] = []
        self.acceptor = threading.Thread(target=self._accept)
        self.acceptor.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}/"

    @property
    def requests(self) -> int:
        return sum(peer.requests for peer in self.peers)

    def _accept(self) -> None:
        while not self.over.is_set():
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            peer = Peer(connection, len(self.peers), self.over)
            self.peers.append(peer)
            self.threads.append(threading.Thread(target=self._serve, args=(peer,)))
            self.threads[-1].start()

    def _serve(self, peer: Peer) -> None:
        with peer.connection, contextlib.suppress(GoneError):
            self.behaviour(peer)

    def stop(self) -> None:
        self.over.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.acceptor.join()
        for peer in self.peers:
            with contextlib.suppress(OSError):
                peer.connection.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join()


@contextlib.contextmanager
def misbehaving(behaviour: Behaviour) -> Iterator[Misbehaving]:
    server = Misbehaving(behaviour)
    try:
        yield server
    finally:
        server.stop()
