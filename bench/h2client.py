# SPDX-License-Identifier: MIT
"""A client of HTTP/2 (RFC 9113, RFC 7541): one request at a time, and idle connections.

The standard library has none. This one sends a fixed header block, and reads of an answer its
status, the length of its header block, and its body. It resets nothing and has no push.
"""

import socket
import ssl
from dataclasses import dataclass, field

from bench.http1 import RESET_ON_CLOSE, TIMEOUT_S, Answer, client_context, hold
from bench.process import BenchError

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FRAME_HEAD_BYTES = 9
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM = ACK = 0x1
END_HEADERS = 0x4
PADDED, PRIORITY = 0x8, 0x20
INITIAL_WINDOW_SIZE, WINDOW_MAX, WINDOW_BEGIN = 4, (1 << 31) - 1, (1 << 16) - 1
# Fields of the static table (RFC 7541, appendix A).
GET, SCHEME_HTTP, SCHEME_HTTPS, PATH_NAME, AUTHORITY_NAME = 2, 6, 7, 4, 1
STATUSES = {8: 200, 9: 204, 10: 206, 11: 304, 12: 400, 13: 404, 14: 500}


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """One frame."""
    return len(payload).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + payload


def request_block(path: str, scheme: int) -> bytes:
    """The header block of a GET request. Its strings are literals without Huffman coding."""

    def literal(name: int, value: str) -> bytes:
        return bytes([name, len(value)]) + value.encode()

    fields = literal(AUTHORITY_NAME, "127.0.0.1") + literal(PATH_NAME, path)
    return bytes([0x80 | GET, 0x80 | scheme]) + fields


def status_of(block: bytes) -> int:
    """The status, which is the first field of a response. 0: it is none of the common ones."""
    at = 0
    while at < len(block) and block[at] & 0xE0 == 0x20:  # a new size of the dynamic table
        at += 1
    return STATUSES.get(block[at] & 0x7F, 0) if at < len(block) and block[at] & 0x80 else 0


@dataclass(kw_only=True)
class Connection:
    """A connection that speaks HTTP/2."""

    socket: socket.socket
    stream: int = -1  # of the last request
    data: bytearray = field(default_factory=bytearray)  # received, and not yet read

    def _receive(self, size: int) -> bytes:
        while len(self.data) < size:
            piece = self.socket.recv(1 << 20)
            if not piece:
                raise BenchError("the connection ended inside a frame")
            self.data += piece
        taken = bytes(self.data[:size])
        del self.data[:size]
        return taken

    def _next_frame(self) -> tuple[int, int, int, bytes]:
        head = self._receive(FRAME_HEAD_BYTES)
        payload = self._receive(int.from_bytes(head[:3]))
        kind, flags, stream = head[3], head[4], int.from_bytes(head[5:])
        if kind == SETTINGS and not flags & ACK:
            self.socket.sendall(frame(SETTINGS, ACK, 0))
        if kind == PING and not flags & ACK:
            self.socket.sendall(frame(PING, ACK, 0, payload))
        if kind in (RST_STREAM, GOAWAY):
            name = "RST_STREAM" if kind == RST_STREAM else "GOAWAY"
            raise BenchError(f"the server answers with {name}, error {payload[-4:].hex()}")
        return kind, flags, stream, payload

    def fetch(self, path: str) -> Answer:
        """Gets the path. `fields` of the answer stay empty.

        Raises:
            BenchError: the server resets the stream, ends the connection, or breaks the protocol.
        """
        self.stream += 2
        is_tls = isinstance(self.socket, ssl.SSLSocket)
        block = request_block(path, SCHEME_HTTPS if is_tls else SCHEME_HTTP)
        self.socket.sendall(frame(HEADERS, END_STREAM | END_HEADERS, self.stream, block))
        head, body, ended, received = b"", bytearray(), False, 0
        while not ended:
            kind, flags, stream, payload = self._next_frame()
            if stream != self.stream:
                continue
            if kind in (DATA, HEADERS) and flags & PADDED:
                raise BenchError("the server pads its frames, and this client reads no padding")
            if kind == HEADERS:
                if not flags & END_HEADERS or flags & PRIORITY:
                    raise BenchError("the head of the answer is not one plain frame")
                head = payload
            if kind == DATA:
                body += payload
                received += len(payload)
            ended = kind in (DATA, HEADERS) and bool(flags & END_STREAM)
        if received:
            self.socket.sendall(frame(WINDOW_UPDATE, 0, 0, received.to_bytes(4)))
        return Answer(status=status_of(head), head_bytes=len(head), fields={}, body=bytes(body))

    def close(self) -> None:
        """Closes it with a reset, so that thousands of them leave no TIME_WAIT behind."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        self.socket.close()


def _handshake(plain: socket.socket) -> socket.socket:
    try:
        tls = client_context("h2").wrap_socket(plain)
    except OSError as error:
        plain.close()
        raise BenchError(f"no handshake for HTTP/2: {error}") from error
    if tls.selected_alpn_protocol() != "h2":
        tls.close()
        raise BenchError("the server does not choose HTTP/2 (ALPN h2)")
    return tls


def connect(port: int, *, tls: bool = True) -> Connection:
    """Connects to the port on loopback, with windows that no answer fills.

    Without `tls`, the server must know HTTP/2 by its preface.

    Raises:
        BenchError: the server does not choose HTTP/2.
    """
    plain = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
    connection = Connection(socket=_handshake(plain) if tls else plain)
    settings = INITIAL_WINDOW_SIZE.to_bytes(2) + WINDOW_MAX.to_bytes(4)
    grown = (WINDOW_MAX - WINDOW_BEGIN).to_bytes(4)
    connection.socket.sendall(
        PREFACE + frame(SETTINGS, 0, 0, settings) + frame(WINDOW_UPDATE, 0, 0, grown)
    )
    return connection


def fetch(port: int, path: str, repeat: int = 1, *, tls: bool = True) -> Answer:
    """Gets the path `repeat` times over one connection; returns the last answer."""
    connection = connect(port, tls=tls)
    try:
        for _ in range(repeat):
            answer = connection.fetch(path)
    finally:
        connection.close()
    return answer


def hold_connections(port: int, path: str, count: int) -> list[Connection]:
    """Holds connections that have got the path once."""
    return hold(count, lambda: connect(port), lambda connection: connection.fetch(path).status)
