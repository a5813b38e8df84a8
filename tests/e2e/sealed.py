# SPDX-License-Identifier: MIT
"""Servers that speak TLS, and break its rules where a test says so."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Callable, Iterator

from tests.e2e.misbehaving import HEAD_END, GoneError, Misbehaving, Peer, misbehaving

Sealing = Callable[["Sealed"], None]


class Sealed:
    """The server's side of one TLS connection. It gives its records to the test, which sends them
    whole, in part, or not at all."""

    def __init__(self, peer: Peer, context: ssl.SSLContext) -> None:
        self.peer = peer
        self._in = ssl.MemoryBIO()
        self._out = ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._in, self._out, server_side=True)
        self._data = b""

    def _run(self, call: Callable[[], bytes | None]) -> bytes:
        """Calls until no more input is needed."""
        while True:
            try:
                return call() or b""
            except ssl.SSLWantReadError:
                self.peer.send(self._out.read())
                self.receive()
            except ssl.SSLError:  # the client has ended it, with or without an alert
                with contextlib.suppress(GoneError):
                    self.peer.send(self._out.read())
                raise GoneError from None

    def receive(self) -> None:
        """Waits for bytes of the client."""
        self._in.write(self.peer.receive())

    def handshake(self) -> None:
        self._run(self.tls.do_handshake)
        with contextlib.suppress(GoneError):  # the client may want no tickets, and have gone
            self.peer.send(self._out.read())

    def request(self, body_len: int = 0) -> bytes:
        """Waits for a request; returns its head and its body."""
        while HEAD_END not in self._data:
            self._more()
        end = self._data.index(HEAD_END) + len(HEAD_END) + body_len
        while len(self._data) < end:
            self._more()
        whole, self._data = self._data[:end], self._data[end:]
        self.peer.requests += 1
        return whole

    def _more(self) -> None:
        got = self._run(lambda: self.tls.read(65536))
        if not got:
            raise GoneError
        self._data += got

    def rest(self) -> bytes:
        """Waits until the client ends what it sends with close_notify; returns what came before."""
        rest = self._data
        while got := self._run(self._read_to_end):
            rest += got
        return rest

    def _read_to_end(self) -> bytes:
        try:
            return self.tls.read(65536)
        except ssl.SSLZeroReturnError:
            return b""

    def seal(self, data: bytes) -> bytes:
        """The records that carry `data`."""
        self.tls.write(data)
        return self._out.read()

    def send(self, data: bytes) -> None:
        self.peer.send(self.seal(data))

    def close_notify(self) -> bytes:
        """The record that ends what the server sends."""
        with contextlib.suppress(ssl.SSLError):
            self.tls.unwrap()
        return self._out.read()

    def end(self) -> None:
        """Ends the connection as a server should."""
        self.peer.send(self.close_notify())
        raise GoneError


@contextlib.contextmanager
def sealed(context: ssl.SSLContext, behaviour: Sealing) -> Iterator[Misbehaving]:
    """A server whose connections behave so once their handshake is complete.

    The first connection is the one by which `weir load` verifies the certificate.
    """

    def serve(peer: Peer) -> None:
        connection = Sealed(peer, context)
        connection.handshake()
        behaviour(connection)

    with misbehaving(serve) as server:
        yield server


def url_of(server: Misbehaving, host: str = "localhost") -> str:
    return f"https://{host}:{server.listener.getsockname()[1]}/"
