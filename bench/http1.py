# SPDX-License-Identifier: MIT
"""A client that reports the length of the head and the bytes of the body.

Used to check that every server answers the same before it is measured, and to hold idle
connections. It knows Content-Length, chunks without extensions or trailers, and bodies that the end
of the connection ends.
"""

import functools
import socket
import ssl
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from bench.process import BenchError

TIMEOUT_S = 10.0
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One response; `head_bytes` includes the empty line."""

    status: int
    head_bytes: int
    fields: dict[str, str]
    body: bytes


def request_bytes(path: str, headers: Sequence[tuple[str, str]] = ()) -> bytes:
    """A GET request like wrk's."""
    lines = [f"GET {path} HTTP/1.1", "Host: 127.0.0.1", *(f"{k}: {v}" for k, v in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _read_chunks(connection: socket.socket, data: bytearray) -> bytes:
    """Reads a chunked body, whose front is `data`.

    Raises:
        BenchError: the peer closed.
    """
    body = bytearray()
    while True:
        line, found, rest = data.partition(b"\r\n")
        size = int(line, 16) if found else 0
        if not found or len(rest) < size + 2:
            piece = connection.recv(1 << 20)
            if not piece:
                raise BenchError("the connection ended inside a chunked body")
            data += piece
            continue
        if size == 0:
            return bytes(body)
        body += rest[:size]
        data = rest[size + 2 :]


def read_answer(connection: socket.socket) -> Answer:
    """Reads one response.

    Raises:
        BenchError: the peer closed or sent something else.
    """
    data = bytearray()
    while (end := data.find(b"\r\n\r\n")) < 0:
        piece = connection.recv(1 << 20)
        if not piece:
            raise BenchError(f"the connection ended inside a response head: {bytes(data)!r}")
        data += piece
    first, *rest = data[:end].decode("latin-1").split("\r\n")
    fields = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in rest)}
    status = int(first.split()[1])
    body = data[end + 4 :]
    if fields.get("transfer-encoding") == "chunked":
        whole = _read_chunks(connection, body)
        return Answer(status=status, head_bytes=end + 4, fields=fields, body=whole)
    length = 0 if status == 304 else int(fields.get("content-length", "-1"))
    while length < 0 or len(body) < length:
        piece = connection.recv(1 << 20)
        if not piece:
            if length < 0:
                break
            raise BenchError(f"the body ended after {len(body)} of {length} bytes")
        body += piece
    return Answer(status=status, head_bytes=end + 4, fields=fields, body=bytes(body))


@functools.cache
def client_context(*protocols: str) -> ssl.SSLContext:
    """TLS 1.3 without verification: the certificate was made for this run. `protocols` are offered
    with ALPN."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    if protocols:
        context.set_alpn_protocols(protocols)
    return context


def connect(port: int, *, tls: bool = False) -> socket.socket:
    """Connects to the port on loopback. With `tls`, also makes the handshake."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
    return client_context().wrap_socket(connection) if tls else connection


def fetch(
    port: int,
    path: str,
    headers: Sequence[tuple[str, str]] = (),
    repeat: int = 1,
    *,
    tls: bool = False,
) -> Answer:
    """Gets the path `repeat` times over one connection; returns the last answer."""
    with connect(port, tls=tls) as connection:
        for _ in range(repeat):
            connection.sendall(request_bytes(path, headers))
            answer = read_answer(connection)
    return answer


def wait_for_port(port: int, deadline_s: float = 10.0) -> None:
    """Waits until something accepts connections there.

    Raises:
        BenchError: not within the deadline.
    """
    end = time.monotonic() + deadline_s
    while True:
        try:
            connect(port).close()
            return
        except OSError as error:
            if time.monotonic() > end:
                raise BenchError(f"nothing accepts on port {port}: {error}") from error
            time.sleep(0.005)


class Closable(Protocol):
    def close(self) -> None:
        """Closes the connection."""


C = TypeVar("C", bound=Closable)


def hold(count: int, connect_one: Callable[[], C], status_of: Callable[[C], int]) -> list[C]:
    """Opens `count` connections, makes a request on each, and keeps them open.

    Raises:
        BenchError: not all of them got an answer. They are closed.
    """
    held: list[C] = []
    try:
        for _ in range(count):
            held.append(connect_one())
            if status_of(held[-1]) != 200:
                raise BenchError("not every idle connection got its answer")
    except (OSError, BenchError) as error:
        for connection in held:
            connection.close()
        raise BenchError(f"connection {len(held)} of {count}: {error}") from error
    return held


def hold_connections(port: int, path: str, count: int, *, tls: bool = False) -> list[socket.socket]:
    """Holds connections that have got the path once.

    They are closed with a reset, so that thousands of them leave no TIME_WAIT behind.
    """
    request = request_bytes(path)

    def status_of(connection: socket.socket) -> int:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        connection.sendall(request)
        return read_answer(connection).status

    return hold(count, lambda: connect(port, tls=tls), status_of)


def free_port() -> int:
    """A port that is free now, for servers that cannot pick one and report it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
