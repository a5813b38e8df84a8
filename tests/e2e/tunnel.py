# SPDX-License-Identifier: MIT
"""The client's side of TLS over a connection that the test itself sends and receives on. So a test
can split records anywhere, and read while it sends."""

from __future__ import annotations

import contextlib
import ssl

from tests.e2e.wire import Connection


class Tunnel:
    """TLS between memory and a connection. The handshake is complete after the constructor."""

    def __init__(self, connection: Connection, context: ssl.SSLContext, host: str) -> None:
        self._received, self._to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._received, self._to_send, server_hostname=host)
        self.ended = False  # the server has sent close_notify
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                connection.send(self._to_send.read())
                self._received.write(connection.socket.recv(64 * 1024))
            else:
                connection.send(self._to_send.read())
                return

    def seal(self, plain: bytes) -> bytes:
        """The records of these bytes."""
        unsent = memoryview(plain)
        while unsent:
            unsent = unsent[self._tls.write(unsent) :]
        return self._to_send.read()

    def seal_end(self) -> bytes:
        """The record that ends the client's data."""
        with contextlib.suppress(ssl.SSLWantReadError):  # the server has not ended its data yet
            self._tls.unwrap()
        return self._to_send.read()

    def open(self, records: bytes) -> bytes:
        """The bytes in these records, and in those that came in part before."""
        self._received.write(records)
        pieces = []
        with contextlib.suppress(ssl.SSLZeroReturnError):
            try:
                while piece := self._tls.read(64 * 1024):
                    pieces.append(piece)
            except ssl.SSLWantReadError:
                return b"".join(pieces)
        self.ended = True
        return b"".join(pieces)
