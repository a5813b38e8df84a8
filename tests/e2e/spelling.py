# SPDX-License-Identifier: MIT
"""The conformance cases in their second spelling: the same requests over HTTP/2.

tests/conformance/README.md says which cases have no second spelling. The package h2 is the client.
It checks everything that the server sends, and packs the fields with its own encoder.
"""

from __future__ import annotations

import contextlib
import re
from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
)
from h2.exceptions import StreamClosedError
from h2.settings import SettingCodes

from tests.e2e.cases import Case, expand
from tests.e2e.http2 import OF_A_CONNECTION
from tests.e2e.wire import Answer, Connection, parse_answer

# A longer header block ends the connection (RFC 9113 section 10.5.1).
BLOCK_MAX = 30_000
ABSOLUTE = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*://")
LENGTH = re.compile(rb"[0-9]{1,30}")
CHUNK = re.compile(rb"(0*[0-9A-Fa-f]{1,8})(?:;[^\r\n]*)?\r\n")
OF_A_CONNECTION_BYTES = {name.encode() for name in OF_A_CONNECTION}
MASKS = [
    (re.compile(rb"weir[0-9a-f]{16}"), b"boundary"),
    (re.compile(rb"Request [0-9a-f]{16}"), b"Request *"),
]

Fields = list[tuple[bytes, bytes]]


class SpellingError(AssertionError):
    """A case with bytes that HTTP/2 cannot carry, and without a line that says so."""


@dataclass(frozen=True)
class Request:
    """One request. `whole`: its body has an end."""

    fields: Fields
    body: bytes = b""
    whole: bool = True

    @property
    def size(self) -> int:
        return sum(len(name) + len(value) for name, value in self.fields)


@dataclass
class Outcome:
    """The answer to one request, or the error by which its stream was reset."""

    status: int | None = None
    fields: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    pieces: list[bytes] = field(default_factory=list)  # of the body, until it is whole
    reset: int | None = None
    ended: bool = False

    @property
    def refused_as_malformed(self) -> bool:
        """RFC 9113 section 8.1.1"""
        return self.reset == ErrorCodes.PROTOCOL_ERROR and self.status in (None, 400)


def getting(path: str) -> Request:
    """A plain GET."""
    start = [(b":method", b"GET"), (b":scheme", b"http"), (b":path", path.encode())]
    return Request([*start, (b":authority", b"a")])


def _take_head(text: bytes) -> tuple[Fields, bytes, bytes, bytes]:
    """Fields, target and version of the first head, and the bytes behind it."""
    head, end, rest = text.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    if not end or first.count(b" ") < 2:
        raise SpellingError(f"no request: {text[:100]!r}")
    method, _, target = first.partition(b" ")
    target, _, version = target.rpartition(b" ")
    fields = []
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon:
            raise SpellingError(f"no field: {line[:100]!r}")
        fields.append((name.lower(), value.strip(b" \t")))
    scheme = [(b":method", method), (b":scheme", b"http"), (b":path", target)]
    hosts = [value for name, value in fields if name == b"host"]
    if len(hosts) == 1:  # two hosts stay as they are
        scheme.append((b":authority", hosts[0]))
        fields = [(name, value) for name, value in fields if name != b"host"]
    return scheme + fields, target, version, rest


def _take_chunks(rest: bytes) -> tuple[bytes, bool, bytes]:
    """The body without its chunks, whether it ends, and the bytes behind it."""
    pieces: list[bytes] = []
    while found := CHUNK.match(rest):
        size = int(found[1], 16)
        if size == 0:
            if not rest.startswith(b"\r\n", found.end()):
                raise SpellingError("trailers")
            return b"".join(pieces), True, rest[found.end() + 2 :]
        end = found.end() + size
        pieces.append(rest[found.end() : end])
        if rest[end : end + 2] != b"\r\n":
            raise SpellingError("a malformed chunk")
        rest = rest[end + 2 :]
    return b"".join(pieces), False, rest


def requests_of(case: Case) -> list[Request] | None:
    """The requests of a case in HTTP/2. None where a rule says that it has no second spelling."""
    if case.only_http1:
        return None
    rest, requests = expand(case.request), []
    while rest:
        fields, target, version, rest = _take_head(rest)
        if version != b"HTTP/1.1" or ABSOLUTE.match(target):
            return None
        lengths = [value for name, value in fields if name == b"content-length"]
        codings = [value.lower() for name, value in fields if name == b"transfer-encoding"]
        body, whole = b"", True
        if codings == [b"chunked"]:
            body, whole, rest = _take_chunks(rest)
        elif len(lengths) == 1 and LENGTH.fullmatch(lengths[0]):
            size = int(lengths[0])
            body, rest = rest[:size], rest[size:]
            whole = len(body) == size
        elif lengths:  # nobody knows where such a body ends
            body, rest = rest, b""
        kept = [(name, value) for name, value in fields if name not in OF_A_CONNECTION_BYTES]
        requests.append(Request(kept, body, whole))
    return None if any(request.size > BLOCK_MAX for request in requests) else requests


# ---- comparison ----


def masked(body: bytes) -> bytes:
    for pattern, mask in MASKS:
        body = pattern.sub(mask, body)
    return body


def canonical(status: int, fields: list[tuple[str, str]], body: bytes) -> object:
    """The parts of an answer that must be the same in both spellings."""
    kept = {
        name.lower(): masked(value.encode("latin-1"))
        for name, value in fields
        if name.lower() not in ("date", "connection")
    }
    return status, kept, masked(body)


def same(first: Answer, second: Outcome) -> bool:
    """Whether both spellings of a request were answered alike."""
    if second.refused_as_malformed:
        return first.status == 400
    if second.status is None or not second.ended:
        return False
    if first.status == second.status == 400:
        return b"400" in second.body or not first.body
    return canonical(first.status, first.fields, first.body) == canonical(
        second.status, second.fields, second.body
    )


def answers_of(data: bytes, case: Case) -> list[Answer]:
    """The answers of HTTP/1.1 in what a connection received."""
    answers = []
    for lines in case.answers:
        parsed = parse_answer(data, bodiless="body none" in lines)
        if not parsed:
            break
        answers.append(parsed[0])
        data = parsed[1]
    return answers


# ---- the client ----


class Library:
    """One connection of the package h2."""

    def __init__(
        self, connection: Connection, *, window: int = 2**20, splits: Random | None = None
    ) -> None:
        self.connection = connection
        self.splits = splits
        self.h2 = H2Connection(
            H2Configuration(
                client_side=True,
                header_encoding=None,
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
            )
        )
        self.h2.local_settings = type(self.h2.local_settings)(
            client=True,
            initial_values={
                SettingCodes.INITIAL_WINDOW_SIZE: window,
                SettingCodes.ENABLE_PUSH: 0,
                SettingCodes.MAX_HEADER_LIST_SIZE: 65_536,
            },
        )
        self.h2.initiate_connection()
        self.h2.increment_flow_control_window(2**24)
        self.outcomes: dict[int, Outcome] = {}
        self.unsent: dict[int, bytes] = {}
        self.whole: dict[int, bool] = {}
        self.unended: set[int] = set()  # streams on which END_STREAM was not sent
        self.open: set[int] = set()
        self.most_open = 0
        self.ended: int | None = None

    def _flush(self) -> None:
        out = self.h2.data_to_send()
        pieces = [out]
        if self.splits and len(out) > 1:
            ends = {self.splits.randrange(1, len(out)) for _ in range(8)}
            ends |= set(range(1, min(40, len(out))))
            cuts = [0, *sorted(ends), len(out)]
            pieces = [out[a:b] for a, b in pairwise(cuts)]
        for piece in pieces:
            self.connection.send(piece)

    def _start(self, request: Request) -> int:
        stream = self.h2.get_next_available_stream_id()
        end = request.whole and not request.body
        self.h2.send_headers(stream, request.fields, end_stream=end)
        self.outcomes[stream] = Outcome()
        self.open.add(stream)
        self.most_open = max(self.most_open, len(self.open))
        if not end:
            self.unended.add(stream)
            self.unsent[stream], self.whole[stream] = request.body, request.whole
        return stream

    def _send_bodies(self) -> None:
        for stream in list(self.unsent):
            body = self.unsent[stream]
            try:
                room = self.h2.local_flow_control_window(stream)
                while body and room > 0:
                    piece = body[: min(room, self.h2.max_outbound_frame_size)]
                    body = body[len(piece) :]
                    end = not body and self.whole[stream]
                    self.h2.send_data(stream, piece, end_stream=end)
                    self.unended -= {stream} if end else set()
                    room = self.h2.local_flow_control_window(stream)
            except StreamClosedError:
                body = b""
            self.unsent[stream] = body
            if not body:
                del self.unsent[stream]

    def _receive(self) -> None:
        got = self.connection.socket.recv(256 * 1024)
        if not got:
            raise AssertionError(f"closed while {sorted(self.open)} are open ({self.ended})")
        for event in self.h2.receive_data(got):
            match event:
                case ResponseReceived():
                    outcome = self.outcomes[event.stream_id]
                    heads = [
                        (bytes(name).decode(), bytes(value).decode("latin-1"))
                        for name, value in event.headers
                    ]
                    outcome.status, outcome.fields = int(heads[0][1]), heads[1:]
                case DataReceived():
                    self.outcomes[event.stream_id].pieces.append(event.data)
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                case StreamEnded():
                    outcome = self.outcomes[event.stream_id]
                    outcome.ended, outcome.body = True, b"".join(outcome.pieces)
                    self._forget(event.stream_id)
                    self._abandon(event.stream_id)
                case StreamReset():
                    self.outcomes[event.stream_id].reset = int(event.error_code or 0)
                    self._forget(event.stream_id)
                case ConnectionTerminated():
                    self.ended = int(event.error_code or 0)

    def _forget(self, stream: int) -> None:
        self.open.discard(stream)
        self.unsent.pop(stream, None)

    def _abandon(self, stream: int) -> None:
        """Ends a stream whose answer came before the end of its request, as real clients do."""
        if stream in self.unended:
            with contextlib.suppress(StreamClosedError):  # the server has reset it, too
                self.h2.reset_stream(stream, ErrorCodes.CANCEL)
            self.unended.remove(stream)

    def play(self, requests: list[Request], at_once: int = 100) -> list[Outcome]:
        """Sends all requests, as many at the same time as the server permits."""
        waiting, streams = deque(requests), []
        while waiting or self.open:
            most = min(at_once, self.h2.remote_settings.max_concurrent_streams)
            while waiting and len(self.open) < most:
                streams.append(self._start(waiting.popleft()))
            self._send_bodies()
            self._flush()
            if self.open:
                self._receive()
        self._flush()
        return [self.outcomes[stream] for stream in streams]
