# SPDX-License-Identifier: MIT
"""A client at the level of bytes: it sends exactly what a test says and parses answers strictly."""

from __future__ import annotations

import contextlib
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from tests.waiting import LIMIT_S

TIMEOUT_S = LIMIT_S
STATUS_LINE = re.compile(rb"HTTP/1\.1 ([1-5][0-9]{2}) [ -~]+")
FIELD_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+): ([!-~\x80-\xff](?:[ -~\t\x80-\xff]*))?")


class WireError(AssertionError):
    """Bytes that are no well-formed answer."""


@dataclass(frozen=True)
class Answer:
    """One response, framed by its own fields. `raw` is all of its bytes."""

    status: int
    fields: list[tuple[str, str]]
    body: bytes = b""
    raw: bytes = b""

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.fields if key.lower() == name.lower()]

    def get(self, name: str) -> str | None:
        """The value of a field that must not occur twice."""
        values = self.all(name)
        assert len(values) <= 1, f"{name} came {len(values)} times"
        return values[0] if values else None

    @property
    def closes(self) -> bool:
        return self.get("Connection") == "close"


def parse_head(head: bytes) -> tuple[int, list[tuple[str, str]]]:
    """Reads a head (without its empty line) strictly."""
    lines = head.split(b"\r\n")
    if not (status := STATUS_LINE.fullmatch(lines[0])):
        raise WireError(f"no status line: {lines[0]!r}")
    fields = []
    for line in lines[1:]:
        if not (found := FIELD_LINE.fullmatch(line)):
            raise WireError(f"a malformed field line: {line!r}")
        fields.append((found[1].decode(), (found[2] or b"").decode("latin-1")))
    return int(status[1]), fields


def body_length(status: int, fields: list[tuple[str, str]], *, bodiless: bool) -> int:
    lengths = [value for key, value in fields if key.lower() == "content-length"]
    if status == 204 and lengths:
        raise WireError("204 with a Content-Length")
    if len(lengths) > 1:
        raise WireError(f"{status} with {len(lengths)} Content-Lengths")
    if bodiless or status in (204, 304):
        return 0
    if not lengths:
        raise WireError(f"{status} without a Content-Length")
    return int(lengths[0])


def parse_answer(data: bytes, *, bodiless: bool = False) -> tuple[Answer, bytes] | None:
    """The answer at the front of `data`, and the bytes behind it. None while it is incomplete."""
    head, end, rest = data.partition(b"\r\n\r\n")
    if not end:
        return None
    status, fields = parse_head(head)
    length = body_length(status, fields, bodiless=bodiless)
    if len(rest) < length:
        return None
    raw = data[: len(head) + 4 + length]
    return Answer(status, fields, rest[:length], raw), rest[length:]


def lint(answer: Answer) -> None:
    """Checks what holds for every answer, whatever the request was."""
    names = [name.lower() for name, _ in answer.fields]
    assert len(names) == len(set(names)), f"a field twice: {names}"
    assert parsedate_to_datetime(answer.get("Date") or "").tzinfo
    assert "transfer-encoding" not in names
    assert answer.status != 405 or "allow" in names
    assert answer.status != 416 or "content-range" in names
    assert answer.status != 301 or "location" in names
    kind = answer.get("Content-Type") or ""
    assert not answer.body or kind
    if answer.status == 206:
        assert ("content-range" in names) != kind.startswith("multipart/byteranges")


def family_of(address: tuple[str, int]) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address[0] else socket.AF_INET


@dataclass
class Connection:
    """One blocking connection. Every send and receive has the same time limit."""

    socket: socket.socket
    data: bytes = b""

    @classmethod
    def to(
        cls,
        address: tuple[str, int] | str,
        timeout_s: float = TIMEOUT_S,
        *,
        receive_buffer: int | None = None,
    ) -> Connection:
        """Connects. A small receive buffer, in bytes, makes a client that reads slowly."""
        made = socket.socket(socket.AF_UNIX if isinstance(address, str) else family_of(address))
        if receive_buffer:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        made.settimeout(timeout_s)
        try:
            made.connect(address)
        except OSError:
            made.close()
            raise
        return cls(made)

    def send(self, data: bytes) -> None:
        unsent = memoryview(data)
        while unsent:  # sendall would apply the time limit to all bytes together
            unsent = unsent[self.socket.send(unsent) :]

    def get(self, path: str = "/", host: str = "a", *fields: str) -> Answer:
        """Requests a path and reads the answer."""
        lines = [f"GET {path} HTTP/1.1", f"Host: {host}", *fields, "", ""]
        self.send("\r\n".join(lines).encode("latin-1"))
        return self.read()

    def _receive(self) -> bytes:
        if not (got := self.socket.recv(256 * 1024)):
            raise WireError(f"closed in the middle of an answer: {self.data[:200]!r}")
        return got

    def read(self, *, bodiless: bool = False) -> Answer:
        """Reads one answer. Bytes that arrive behind it stay in `data`."""
        while b"\r\n\r\n" not in self.data:
            self.data += self._receive()
        head, _, body = self.data.partition(b"\r\n\r\n")
        missing = body_length(*parse_head(head), bodiless=bodiless) - len(body)
        pieces = [self.data]
        while missing > 0:
            self.data = self._receive()
            pieces.append(self.data)
            missing -= len(self.data)
        parsed = parse_answer(b"".join(pieces), bodiless=bodiless)
        assert parsed
        answer, self.data = parsed
        return answer

    def read_to_end(self) -> bytes:
        """Reads until the server closes its side."""
        pieces = [self.data]
        while got := self.socket.recv(256 * 1024):
            pieces.append(got)
        self.data = b""
        return b"".join(pieces)

    def end_sending(self) -> None:
        self.socket.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """Closes with a reset instead of a FIN."""
        linger = b"\x01\0\0\0\0\0\0\0"
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.socket.close()

    def close(self) -> None:
        self.socket.close()


@contextlib.contextmanager
def connect(address: tuple[str, int] | str, timeout_s: float = TIMEOUT_S) -> Iterator[Connection]:
    connection = Connection.to(address, timeout_s)
    try:
        yield connection
    finally:
        connection.close()
