# SPDX-License-Identifier: MIT
"""HTTP/2 at the level of frames: a client that sends exactly what a test says, and reads strictly.

A library refuses to send what breaks the protocol, so the frames are made here. The package hpack
decodes the header blocks of the server. The client checks what RFC 9113 demands of a server: the
states of streams, the windows, and the form of every field.
"""

from __future__ import annotations

import contextlib
import select
import ssl
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from hpack import Decoder

from tests.e2e.wire import TIMEOUT_S, Answer, Connection, lint

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
WINDOW = 65_535
WINDOW_MAX = 2**31 - 1
FRAME_MAX = 16_384
END_STREAM, ACK, END_HEADERS, PADDED, PRIORITY_FLAG = 0x1, 0x1, 0x4, 0x8, 0x20
# RFC 9113 section 8.2.2
OF_A_CONNECTION = {
    "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"
}  # fmt: skip

Fields = Iterable[tuple[bytes, bytes]]


class Kind(IntEnum):
    DATA = 0
    HEADERS = 1
    PRIORITY = 2
    RST_STREAM = 3
    SETTINGS = 4
    PUSH_PROMISE = 5
    PING = 6
    GOAWAY = 7
    WINDOW_UPDATE = 8
    CONTINUATION = 9
    PRIORITY_UPDATE = 16


class Code(IntEnum):
    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    SETTINGS_TIMEOUT = 4
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    CONNECT_ERROR = 10
    ENHANCE_YOUR_CALM = 11
    INADEQUATE_SECURITY = 12
    HTTP_1_1_REQUIRED = 13


class Setting(IntEnum):
    HEADER_TABLE_SIZE = 1
    ENABLE_PUSH = 2
    MAX_CONCURRENT_STREAMS = 3
    INITIAL_WINDOW_SIZE = 4
    MAX_FRAME_SIZE = 5
    MAX_HEADER_LIST_SIZE = 6
    ENABLE_CONNECT_PROTOCOL = 8
    NO_RFC7540_PRIORITIES = 9


class Frame(NamedTuple):
    kind: int
    flags: int
    stream: int
    payload: bytes


# ---- what a client sends ----


def frame(
    kind: int, stream: int = 0, payload: bytes = b"", flags: int = 0, *, length: int | None = None
) -> bytes:
    """A frame. `length` announces another length than that of the payload."""
    announced = len(payload) if length is None else length
    return announced.to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def padded(payload: bytes, padding: int | None) -> bytes:
    return payload if padding is None else bytes([padding]) + payload + bytes(padding)


def data(stream: int, payload: bytes = b"", *, end: bool = False, pad: int | None = None) -> bytes:
    flags = (END_STREAM if end else 0) | (PADDED if pad is not None else 0)
    return frame(Kind.DATA, stream, padded(payload, pad), flags)


def headers(
    stream: int, block: bytes, *, end: bool = True, last: bool = True, pad: int | None = None
) -> bytes:
    """A HEADERS frame. `end`: no body follows. `last`: no CONTINUATION follows."""
    flags = (END_STREAM if end else 0) | (END_HEADERS if last else 0)
    flags |= PADDED if pad is not None else 0
    return frame(Kind.HEADERS, stream, padded(block, pad), flags)


def continuation(stream: int, block: bytes, *, last: bool = True) -> bytes:
    return frame(Kind.CONTINUATION, stream, block, END_HEADERS if last else 0)


def settings(*pairs: tuple[int, int]) -> bytes:
    payload = b"".join(name.to_bytes(2, "big") + value.to_bytes(4, "big") for name, value in pairs)
    return frame(Kind.SETTINGS, 0, payload)


def settings_ack() -> bytes:
    return frame(Kind.SETTINGS, 0, b"", ACK)


def ping(payload: bytes = bytes(8), *, ack: bool = False) -> bytes:
    return frame(Kind.PING, 0, payload, ACK if ack else 0)


def window_update(stream: int, increment: int) -> bytes:
    return frame(Kind.WINDOW_UPDATE, stream, increment.to_bytes(4, "big"))


def reset(stream: int, code: int = Code.CANCEL) -> bytes:
    return frame(Kind.RST_STREAM, stream, code.to_bytes(4, "big"))


def goaway(last_stream: int = 0, code: int = Code.NO_ERROR, text: bytes = b"") -> bytes:
    return frame(Kind.GOAWAY, 0, last_stream.to_bytes(4, "big") + code.to_bytes(4, "big") + text)


def priority(stream: int, depends_on: int = 0, weight: int = 15) -> bytes:
    return frame(Kind.PRIORITY, stream, depends_on.to_bytes(4, "big") + bytes([weight]))


def priority_update(stream: int, value: bytes) -> bytes:
    """RFC 9218 section 7.1"""
    return frame(Kind.PRIORITY_UPDATE, 0, stream.to_bytes(4, "big") + value)


# ---- header blocks (RFC 7541), written without a table, so that any bytes can be a field ----


def integer(value: int, prefix_bits: int, pattern: int = 0) -> bytes:
    """RFC 7541 section 5.1"""
    most = (1 << prefix_bits) - 1
    if value < most:
        return bytes([pattern | value])
    out = [pattern | most]
    value -= most
    while value >= 128:
        out.append(value % 128 | 128)
        value //= 128
    return bytes([*out, value])


def text(value: bytes) -> bytes:
    return integer(len(value), 7) + value


def literal(name: bytes, value: bytes, *, indexed: bool = False) -> bytes:
    """A literal field with its name. `indexed` adds it to the dynamic table."""
    return (b"\x40" if indexed else b"\x00") + text(name) + text(value)


def block(fields: Fields) -> bytes:
    return b"".join(literal(name, value) for name, value in fields)


def request(
    path: bytes = b"/hello.txt",
    *fields: tuple[bytes, bytes],
    method: bytes = b"GET",
    authority: bytes = b"a",
    scheme: bytes = b"http",
) -> bytes:
    """The header block of a request."""
    start = [
        (b":method", method),
        (b":scheme", scheme),
        (b":authority", authority),
        (b":path", path),
    ]
    return block([*start, *fields])


def framed(stream: int, whole: bytes, *, end: bool = True) -> bytes:
    """HEADERS, and as many CONTINUATION frames as the block needs."""
    pieces = [whole[at : at + FRAME_MAX] for at in range(0, len(whole), FRAME_MAX)] or [b""]
    out = headers(stream, pieces[0], end=end, last=len(pieces) == 1)
    for number, piece in enumerate(pieces[1:], 2):
        out += continuation(stream, piece, last=number == len(pieces))
    return out


# ---- what the server sends ----


class Http2Error(AssertionError):
    """The server broke RFC 9113."""


class StreamResetError(Exception):
    """The server has reset a stream whose answer is awaited."""

    def __init__(self, code: int) -> None:
        super().__init__(Code(code).name)
        self.code = code


class EndedError(Exception):
    """The connection has ended before the answer."""

    def __init__(self, code: int | None) -> None:
        super().__init__("without GOAWAY" if code is None else Code(code).name)
        self.code = code


@dataclass
class Stream:
    """One answer, as far as it has arrived."""

    window: int
    head_only: bool = False
    status: int | None = None
    fields: list[tuple[str, str]] = field(default_factory=list)
    body: bytearray = field(default_factory=bytearray)
    ended: bool = False
    reset: int | None = None
    interim: list[tuple[int, list[tuple[str, str]]]] = field(default_factory=list)


def read_frames(received: bytes) -> Iterator[Frame]:
    """The frames of a record of received bytes. The last one may be cut."""
    at = 0
    while len(received) - at >= 9:
        length = int.from_bytes(received[at : at + 3], "big")
        if len(received) - at < 9 + length:
            return
        stream = int.from_bytes(received[at + 5 : at + 9], "big") & WINDOW_MAX
        yield Frame(received[at + 3], received[at + 4], stream, received[at + 9 : at + 9 + length])
        at += 9 + length


class Client:
    """One HTTP/2 connection.

    The preface and a SETTINGS frame are sent at once, unless `start` says what is sent instead.
    With `refund`, the client keeps both windows open. SETTINGS and PING are acknowledged.
    """

    def __init__(
        self,
        connection: Connection,
        *pairs: tuple[int, int],
        start: bytes | None = None,
        refund: bool = True,
        acknowledge: bool = True,
    ) -> None:
        self.connection = connection
        self.refund, self.acknowledge = refund, acknowledge
        self.streams: dict[int, Stream] = {}
        self.order: list[Frame] = []  # every frame of the server
        self.settings: dict[int, int] = {}
        self.goaway: tuple[int, int] | None = None  # last stream, error
        self.pongs: list[bytes] = []
        self.window = WINDOW  # of the connection
        self.stream_window = WINDOW  # of a new stream
        self.closed = False
        self._hpack = Decoder(max_header_list_size=2**20)
        self._received = bytearray()
        self._block: tuple[int, int, bytes] | None = None  # stream, flags, fragments
        self._unacknowledged: list[dict[int, int]] = []
        self._next = 1
        if start is None:
            start = PREFACE + settings(*pairs)
        self.send(start)

    # ---- sending ----

    def send(self, *pieces: bytes, step: int = 2**24) -> None:
        """Sends whole frames, at most `step` bytes at a time. Receives meanwhile, because a server
        may stop reading until then."""
        whole = b"".join(pieces)
        self.note(whole.removeprefix(PREFACE))
        self.write(whole, step)

    def write(self, whole: bytes, step: int = 2**24) -> None:
        """Sends bytes that `note` has got, or that are no frames."""
        try:
            for at in range(0, len(whole), step):
                self._pump(whole[at : at + step])
        except (BrokenPipeError, ConnectionResetError):
            self.closed = True

    def _pump(self, whole: bytes) -> None:
        unsent = memoryview(whole)
        made = self.connection.socket
        if isinstance(made, ssl.SSLSocket):
            self.connection.send(whole)
            return
        while unsent:
            readable, writable, _ = select.select([made], [made], [], TIMEOUT_S)
            assert readable or writable, "the server neither reads nor sends"
            if readable:
                got = made.recv(256 * 1024)
                self._received += got
                if not got:
                    self.closed = True
                    return
            if writable:
                made.setblocking(False)
                try:
                    with contextlib.suppress(BlockingIOError):
                        unsent = unsent[made.send(unsent[: 256 * 1024]) :]
                finally:
                    made.settimeout(TIMEOUT_S)

    def note(self, sent: bytes) -> None:
        """Keeps account of the streams that these frames open, and of the windows."""
        for each in read_frames(sent):
            if each.kind == Kind.SETTINGS and not each.flags & ACK and len(each.payload) % 6 == 0:
                pairs = {
                    int.from_bytes(each.payload[at : at + 2], "big"): int.from_bytes(
                        each.payload[at + 2 : at + 6], "big"
                    )
                    for at in range(0, len(each.payload), 6)
                }
                self._unacknowledged.append(pairs)
                if pairs.get(Setting.INITIAL_WINDOW_SIZE, 0) > self.stream_window:
                    self._set_window(pairs[Setting.INITIAL_WINDOW_SIZE])
            elif each.kind == Kind.WINDOW_UPDATE and len(each.payload) == 4:
                increment = int.from_bytes(each.payload, "big")
                if each.stream == 0:
                    self.window += increment
                elif each.stream in self.streams:
                    self.streams[each.stream].window += increment
            elif each.kind == Kind.HEADERS and each.stream not in self.streams:
                self.streams[each.stream] = Stream(self.stream_window)
                self._next = max(self._next, each.stream + 2)

    def _set_window(self, size: int) -> None:
        for stream in self.streams.values():
            stream.window += size - self.stream_window
        self.stream_window = size

    def ask(
        self,
        path: str | bytes = "/hello.txt",
        *fields: tuple[bytes, bytes],
        method: str = "GET",
        body: bytes | None = None,
        end: bool = True,
        authority: bytes = b"a",
    ) -> int:
        """Sends a request; returns its stream. A body that exceeds the window is not sent here."""
        stream = self._next
        name = path.encode() if isinstance(path, str) else path
        whole = request(name, *fields, method=method.encode(), authority=authority)
        more = b"" if body is None else data(stream, body, end=end)
        self.send(framed(stream, whole, end=end and body is None) + more)
        self.streams[stream].head_only = method == "HEAD"
        return stream

    # ---- receiving ----

    def receive(self) -> Frame | None:
        """The next frame of the server, after its effects. None: the server has closed."""
        while (got := self._take()) is None:
            if self.closed:
                return None
            try:
                more = self.connection.socket.recv(256 * 1024)
            except ConnectionResetError:
                more = b""
            if not more:
                self.closed = True
            self._received += more
        self.order.append(got)
        self._apply(got)
        return got

    def _take(self) -> Frame | None:
        if len(self._received) < 9:
            return None
        length = int.from_bytes(self._received[:3], "big")
        if length > FRAME_MAX:
            raise Http2Error(f"a frame of {length} bytes: {bytes(self._received[:60])!r}")
        if len(self._received) < 9 + length:
            return None
        got = next(read_frames(bytes(self._received[: 9 + length])))
        del self._received[: 9 + length]
        return got

    def _apply(self, got: Frame) -> None:
        if len(self.order) == 1 and (got.kind != Kind.SETTINGS or got.flags & ACK):
            raise Http2Error(f"the first frame is no SETTINGS: {got}")  # RFC 9113 section 3.4
        if self._block and (got.kind != Kind.CONTINUATION or got.stream != self._block[0]):
            raise Http2Error(f"{got} within a header block")
        match got.kind:
            case Kind.DATA:
                self._apply_data(got)
            case Kind.HEADERS:
                payload = self._unpadded(got)
                self._block = (got.stream, got.flags, payload)
                self._end_block(got.flags)
            case Kind.CONTINUATION:
                if not self._block:
                    raise Http2Error("a CONTINUATION without HEADERS")
                self._block = (*self._block[:2], self._block[2] + got.payload)
                self._end_block(got.flags)
            case Kind.RST_STREAM:
                stream = self._open(got)
                stream.reset = int.from_bytes(got.payload, "big")
            case Kind.SETTINGS:
                self._apply_settings(got)
            case Kind.PING:
                if got.flags & ACK:
                    self.pongs.append(got.payload)
                elif self.acknowledge:
                    self.send(ping(got.payload, ack=True))
            case Kind.GOAWAY:
                last, code = got.payload[:4], got.payload[4:8]
                self.goaway = (int.from_bytes(last, "big"), int.from_bytes(code, "big"))
            case Kind.WINDOW_UPDATE:
                if int.from_bytes(got.payload, "big") == 0:
                    raise Http2Error("a WINDOW_UPDATE of 0")
            case _:
                raise Http2Error(f"no server may send {got}")

    def _open(self, got: Frame) -> Stream:
        if got.stream not in self.streams:
            raise Http2Error(f"{got} on a stream that was never opened")
        return self.streams[got.stream]

    def _unpadded(self, got: Frame) -> bytes:
        if got.flags & (PADDED | PRIORITY_FLAG):
            raise Http2Error(f"weir sends neither padding nor priorities: {got}")
        return got.payload

    def _apply_data(self, got: Frame) -> None:
        stream, length = self._open(got), len(got.payload)
        if stream.status is None or stream.ended or stream.reset is not None:
            raise Http2Error(f"DATA on stream {got.stream} before its head or after its end")
        self.window -= length
        stream.window -= length
        if length and (self.window < 0 or stream.window < 0):
            raise Http2Error(f"more DATA than the windows permit: {self.window}, {stream.window}")
        stream.body += self._unpadded(got)
        stream.ended = bool(got.flags & END_STREAM)
        if self.refund and length:
            more = b"" if stream.ended else window_update(got.stream, length)
            self.send(window_update(0, length) + more)

    def _end_block(self, flags: int) -> None:
        if not flags & END_HEADERS or not self._block:
            return
        number, first_flags, whole = self._block
        self._block = None
        fields = [
            (bytes(name).decode("ascii"), bytes(value).decode("latin-1"))
            for name, value in self._hpack.decode(whole, raw=True)
        ]
        if number not in self.streams:
            raise Http2Error(f"HEADERS on stream {number}, which was never opened")
        stream = self.streams[number]
        if stream.status is not None or stream.ended or stream.reset is not None:
            raise Http2Error(f"a second head on stream {number}")
        check_fields(fields)
        if fields[0][1].startswith("1"):  # RFC 9113 section 8.1: it does not end the stream
            assert not first_flags & END_STREAM
            stream.interim.append((int(fields[0][1]), fields[1:]))
            return
        stream.status = int(fields[0][1])
        stream.fields = fields[1:]
        stream.ended = bool(first_flags & END_STREAM)

    def _apply_settings(self, got: Frame) -> None:
        if got.flags & ACK:
            if not self._unacknowledged:
                raise Http2Error("an acknowledgement of no SETTINGS")
            pairs = self._unacknowledged.pop(0)
            if Setting.INITIAL_WINDOW_SIZE in pairs:
                self._set_window(pairs[Setting.INITIAL_WINDOW_SIZE])
            return
        for at in range(0, len(got.payload), 6):
            name = int.from_bytes(got.payload[at : at + 2], "big")
            self.settings[name] = int.from_bytes(got.payload[at + 2 : at + 6], "big")
        if self.settings.get(Setting.ENABLE_PUSH, 0) != 0:
            raise Http2Error("a server that sets ENABLE_PUSH")
        if self.acknowledge:
            self.send(settings_ack())

    # ---- waiting ----

    def answer(self, stream: int) -> Answer:
        """Waits for the whole answer. StreamResetError, EndedError: there is none."""
        mine = self.streams[stream]
        while not mine.ended:
            if mine.reset is not None:
                raise StreamResetError(mine.reset)
            if self.receive() is None:
                raise EndedError(self.goaway[1] if self.goaway else None)
        assert mine.status is not None
        answer = Answer(mine.status, mine.fields, bytes(mine.body))
        lint(answer)
        length = answer.get("content-length")
        if mine.status in (204, 304) or mine.head_only:
            assert not mine.body
        else:
            assert length == str(len(mine.body)), f"{length}, and {len(mine.body)} bytes of DATA"
        return answer

    def get(self, path: str = "/hello.txt", *fields: tuple[bytes, bytes]) -> Answer:
        return self.answer(self.ask(path, *fields))

    @property
    def cut(self) -> bool:
        """Whether the server has closed, and had not said that it would."""
        return self.closed and (self.goaway is None or self.goaway[1] != Code.NO_ERROR)

    def settle(self) -> None:
        """Waits until the server has read everything that was sent so far."""
        mark = len(self.pongs).to_bytes(8, "big")
        self.send(ping(mark))
        while mark not in self.pongs:
            if self.receive() is None:
                raise EndedError(self.goaway[1] if self.goaway else None)

    def end(self) -> int | None:
        """Reads until the server closes; returns the error of its GOAWAY, or None without one."""
        while self.receive() is not None:
            pass
        return self.goaway[1] if self.goaway else None


def check_fields(fields: list[tuple[str, str]]) -> None:
    """The rules of RFC 9113 section 8.2 and 8.3.2 for the head of an answer."""
    names = [name for name, _ in fields]
    if names[:1] != [":status"] or any(name.startswith(":") for name in names[1:]):
        raise Http2Error(f":status must come first, and no other pseudo field: {names}")
    if any(name != name.lower() for name in names):
        raise Http2Error(f"a field name in upper case: {names}")
    if OF_A_CONNECTION & set(names):
        raise Http2Error(f"a field of a connection: {names}")
    for name, value in fields:
        if value != value.strip(" \t") or any(byte in value for byte in "\r\n\0"):
            raise Http2Error(f"the value of {name}: {value!r}")


@contextlib.contextmanager
def connect2(
    address: tuple[str, int],
    *pairs: tuple[int, int],
    start: bytes | None = None,
    refund: bool = True,
    acknowledge: bool = True,
    receive_buffer: int | None = None,
) -> Iterator[Client]:
    """A connection with prior knowledge of HTTP/2 (RFC 9113 section 3.3)."""
    connection = Connection.to(address, receive_buffer=receive_buffer)
    try:
        yield Client(connection, *pairs, start=start, refund=refund, acknowledge=acknowledge)
    finally:
        connection.close()
