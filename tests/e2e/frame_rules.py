# SPDX-License-Identifier: MIT
"""The rules of RFC 9113, 7541 and 9218 for a server: frames, and what must follow them.

Each rule is one connection of its own, on every model (test_http2.py). tools/conformance_map.py
reads the sections and the titles.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.e2e.http2 import (
    PADDED,
    PREFACE,
    PRIORITY_FLAG,
    WINDOW,
    Code,
    Kind,
    Setting,
    block,
    continuation,
    data,
    frame,
    framed,
    goaway,
    headers,
    integer,
    literal,
    ping,
    priority,
    priority_update,
    request,
    reset,
    settings,
    text,
    window_update,
)

MALFORMED = (400,)


@dataclass(frozen=True)
class Ends:
    """The connection ends with GOAWAY and one of these errors."""

    codes: tuple[Code, ...]


@dataclass(frozen=True)
class Resets:
    """The stream is reset with one of these errors, or is answered with one of these statuses."""

    stream: int
    codes: tuple[Code, ...]
    statuses: tuple[int, ...] = ()


@dataclass(frozen=True)
class Serves:
    """The stream is answered."""

    stream: int = 1
    status: int = 200


@dataclass(frozen=True)
class Finishes:
    """The stream is answered, and then the connection ends without an error."""

    stream: int = 1


@dataclass(frozen=True)
class Continues:
    """The connection serves another request."""


@dataclass(frozen=True)
class Rule:
    rfc: str
    section: str
    title: str
    sent: bytes
    expected: Ends | Resets | Serves | Finishes | Continues
    start: bytes | None = None  # instead of the preface and SETTINGS


def ends(*codes: Code) -> Ends:
    return Ends(codes)


PROTOCOL = ends(Code.PROTOCOL_ERROR)
SIZE = ends(Code.FRAME_SIZE_ERROR)
COMPRESSION = ends(Code.COMPRESSION_ERROR)
BAD_REQUEST = Resets(1, (Code.PROTOCOL_ERROR,), MALFORMED)
GET = request()
GET_1 = headers(1, GET)
POST = request(b"/", method=b"POST")
UPLOAD = headers(1, POST, end=False)  # its body is still to come


def with_field(name: bytes, value: bytes) -> bytes:
    return framed(1, request(b"/hello.txt", (name, value)))


def pseudo(*fields: tuple[bytes, bytes]) -> bytes:
    return headers(1, block(fields))


METHOD, SCHEME = (b":method", b"GET"), (b":scheme", b"http")
AUTHORITY, PATH = (b":authority", b"a"), (b":path", b"/hello.txt")
# :method GET, :scheme http and :path / from the static table (RFC 7541 appendix A).
INDEXED = b"\x82\x86\x84" + literal(b":authority", b"a")


def _connection_rules() -> list[Rule]:
    return [
        Rule(
            "9113",
            "3.4",
            "refuses another preface",
            b"",
            PROTOCOL,
            PREFACE[:-4] + b"XX\r\n" + settings(),
        ),
        Rule(
            "9113", "3.4", "requires SETTINGS behind the preface", b"", PROTOCOL, PREFACE + ping()
        ),
        Rule(
            "9113",
            "3.4",
            "accepts SETTINGS with the preface, and requests behind them",
            GET_1,
            Serves(),
        ),
        Rule("9113", "3.4", "serves a request before SETTINGS are acknowledged", GET_1, Serves()),
        Rule(
            "9113",
            "4.1",
            "ignores a frame of an unknown type",
            frame(0x42, 0, b"x" * 9) + GET_1,
            Serves(),
        ),
        Rule(
            "9113",
            "4.1",
            "ignores a frame of an unknown type on any stream",
            frame(0x42, 77, b"x") + GET_1,
            Serves(),
        ),
        Rule(
            "9113",
            "4.1",
            "ignores flags without a meaning",
            frame(Kind.PING, 0, bytes(8), 0xFE) + GET_1,
            Serves(),
        ),
        Rule(
            "9113",
            "4.1",
            "ignores the reserved bit of a stream",
            frame(Kind.HEADERS, 1 | 2**31, GET, 0x5),
            Serves(),
        ),
        Rule(
            "9113",
            "4.2",
            "refuses a DATA frame above the largest size",
            UPLOAD + data(1, bytes(16_385)),
            SIZE,
        ),
        Rule(
            "9113",
            "4.2",
            "refuses a HEADERS frame above the largest size",
            frame(Kind.HEADERS, 1, bytes(16_385), 0x5),
            SIZE,
        ),
        Rule(
            "9113",
            "4.2",
            "refuses an unknown frame above the largest size",
            frame(0x42, 0, bytes(16_385)),
            SIZE,
        ),
        Rule(
            "9113",
            "4.2",
            "reads a DATA frame of the largest size",
            UPLOAD + data(1, bytes(16_384), end=True),
            Serves(1, 405),
        ),
        Rule(
            "9113",
            "4.3",
            "refuses a frame inside a header block",
            headers(1, GET[:9], last=False) + ping(),
            PROTOCOL,
        ),
        Rule(
            "9113",
            "4.3",
            "refuses another stream's HEADERS inside a header block",
            headers(1, GET[:9], last=False) + headers(3, GET),
            PROTOCOL,
        ),
        Rule(
            "9113",
            "4.3",
            "reads a block in pieces of one byte",
            headers(1, GET[:1], last=False)
            + b"".join(continuation(1, GET[at : at + 1], last=False) for at in range(1, 5))
            + continuation(1, GET[5:]),
            Serves(),
        ),
        Rule(
            "9113",
            "5.4.1",
            "ends the connection after an error, and names the error",
            data(0, b"x"),
            PROTOCOL,
        ),
        Rule(
            "9113",
            "5.5",
            "refuses an unknown frame inside a header block",
            headers(1, GET[:9], last=False) + frame(0x42, 1, b"x"),
            PROTOCOL,
        ),
    ]


def _stream_rules() -> list[Rule]:
    gone = GET_1 + reset(1)
    return [
        Rule("9113", "5.1", "refuses DATA on an idle stream", data(1, b"x"), PROTOCOL),
        Rule("9113", "5.1", "refuses RST_STREAM on an idle stream", reset(1), PROTOCOL),
        Rule(
            "9113", "5.1", "refuses WINDOW_UPDATE on an idle stream", window_update(1, 5), PROTOCOL
        ),
        Rule(
            "9113",
            "5.1",
            "refuses DATA behind the end of a stream",
            UPLOAD + data(1, b"x", end=True) + data(1, b"x"),
            ends(Code.STREAM_CLOSED),
        ),
        Rule(
            "9113",
            "5.1",
            "refuses HEADERS behind the end of a stream",
            GET_1 + GET_1,
            ends(Code.STREAM_CLOSED, Code.PROTOCOL_ERROR),
        ),
        Rule(
            "9113",
            "5.1",
            "refuses HEADERS behind a reset of the client",
            gone + GET_1,
            ends(Code.STREAM_CLOSED, Code.PROTOCOL_ERROR),
        ),
        Rule(
            "9113",
            "5.1",
            "accepts WINDOW_UPDATE on a stream that was reset",
            gone + window_update(1, 5),
            Continues(),
        ),
        Rule("9113", "5.1", "accepts a second RST_STREAM", gone + reset(1), Continues()),
        Rule("9113", "5.1", "accepts PRIORITY on an idle stream", priority(7, 1), Continues()),
        Rule(
            "9113", "5.1", "accepts PRIORITY on a closed stream", gone + priority(1, 3), Continues()
        ),
        Rule("9113", "5.1.1", "refuses an even stream of a client", headers(2, GET), PROTOCOL),
        Rule(
            "9113",
            "5.1.1",
            "refuses a stream below the last one",
            headers(5, GET) + headers(3, GET),
            ends(Code.PROTOCOL_ERROR, Code.STREAM_CLOSED),
        ),
        Rule(
            "9113",
            "5.1.1",
            "reads streams that skip numbers",
            headers(5, GET) + headers(2**31 - 3, GET),
            Serves(2**31 - 3),
        ),
        Rule("9113", "6.1", "refuses DATA on stream 0", data(0, b"x"), PROTOCOL),
        Rule(
            "9113",
            "6.1",
            "refuses padding that is longer than DATA",
            UPLOAD + frame(Kind.DATA, 1, b"\x05hell", PADDED),
            PROTOCOL,
        ),
        Rule(
            "9113",
            "6.1",
            "refuses DATA whose padding has no length",
            UPLOAD + frame(Kind.DATA, 1, b"", PADDED),
            ends(Code.PROTOCOL_ERROR, Code.FRAME_SIZE_ERROR),
        ),
        Rule(
            "9113",
            "6.1",
            "reads padded DATA",
            UPLOAD + data(1, b"hello", end=True, pad=200),
            Serves(1, 405),
        ),
        Rule(
            "9113",
            "6.1",
            "reads DATA that is all padding",
            UPLOAD + data(1, b"", end=True, pad=255),
            Serves(1, 405),
        ),
        Rule("9113", "6.2", "refuses HEADERS on stream 0", headers(0, GET), PROTOCOL),
        Rule(
            "9113",
            "6.2",
            "refuses padding that is longer than HEADERS",
            frame(Kind.HEADERS, 1, b"\xff" + GET, 0x5 | PADDED),
            PROTOCOL,
        ),
        Rule("9113", "6.2", "reads padded HEADERS", headers(1, GET, pad=99), Serves()),
        Rule(
            "9113",
            "6.2",
            "reads HEADERS with a priority",
            frame(Kind.HEADERS, 1, b"\0\0\0\x03\xff" + GET, 0x5 | PRIORITY_FLAG),
            Serves(),
        ),
        Rule(
            "9113",
            "6.2",
            "refuses HEADERS too short for their priority",
            frame(Kind.HEADERS, 1, b"\0\0\0", 0x5 | PRIORITY_FLAG),
            ends(Code.FRAME_SIZE_ERROR, Code.PROTOCOL_ERROR),
        ),
        Rule("9113", "6.3", "refuses PRIORITY on stream 0", priority(0, 1), PROTOCOL),
        Rule(
            "9113",
            "6.3",
            "refuses PRIORITY of another length",
            frame(Kind.PRIORITY, 1, bytes(4)),
            ends(Code.FRAME_SIZE_ERROR, Code.PROTOCOL_ERROR),
        ),
        Rule("9113", "6.4", "refuses RST_STREAM on stream 0", reset(0), PROTOCOL),
        Rule(
            "9113",
            "6.4",
            "refuses RST_STREAM of another length",
            UPLOAD + frame(Kind.RST_STREAM, 1, bytes(3)),
            SIZE,
        ),
        Rule(
            "9113",
            "6.6",
            "refuses PUSH_PROMISE of a client",
            UPLOAD + frame(Kind.PUSH_PROMISE, 1, b"\0\0\0\x02" + GET, 0x4),
            PROTOCOL,
        ),
        Rule(
            "9113", "6.10", "refuses CONTINUATION without HEADERS", continuation(1, GET), PROTOCOL
        ),
        Rule(
            "9113",
            "6.10",
            "refuses CONTINUATION on stream 0",
            headers(1, GET[:9], last=False) + continuation(0, GET[9:]),
            PROTOCOL,
        ),
        Rule(
            "9113",
            "6.10",
            "refuses CONTINUATION on another stream",
            headers(1, GET[:9], last=False) + continuation(3, GET[9:]),
            PROTOCOL,
        ),
        Rule(
            "9113",
            "6.10",
            "refuses CONTINUATION behind the end of a block",
            GET_1 + continuation(1, b"\x82"),
            PROTOCOL,
        ),
        Rule(
            "9113",
            "6.10",
            "reads a block whose first frames are empty",
            headers(1, b"", last=False) + continuation(1, b"", last=False) + continuation(1, GET),
            Serves(),
        ),
    ]


def _control_rules() -> list[Rule]:
    window = Setting.INITIAL_WINDOW_SIZE
    return [
        Rule("9113", "6.5", "refuses SETTINGS on a stream", frame(Kind.SETTINGS, 1, b""), PROTOCOL),
        Rule(
            "9113",
            "6.5",
            "refuses SETTINGS of a length that is no multiple of 6",
            frame(Kind.SETTINGS, 0, bytes(5)),
            SIZE,
        ),
        Rule(
            "9113",
            "6.5",
            "refuses an acknowledgement of SETTINGS with a payload",
            frame(Kind.SETTINGS, 0, bytes(6), 0x1),
            SIZE,
        ),
        Rule(
            "9113",
            "6.5.2",
            "refuses ENABLE_PUSH above 1",
            settings((Setting.ENABLE_PUSH, 2)),
            PROTOCOL,
        ),
        Rule(
            "9113",
            "6.5.2",
            "refuses an initial window above the largest",
            settings((window, 2**31)),
            ends(Code.FLOW_CONTROL_ERROR),
        ),
        Rule(
            "9113",
            "6.5.2",
            "refuses a largest frame below 16,384 bytes",
            settings((Setting.MAX_FRAME_SIZE, 16_383)),
            PROTOCOL,
        ),
        Rule(
            "9113",
            "6.5.2",
            "refuses a largest frame above 16,777,215 bytes",
            settings((Setting.MAX_FRAME_SIZE, 2**24)),
            PROTOCOL,
        ),
        Rule("9113", "6.5.2", "ignores unknown settings", settings((0xFEDC, 7)) + GET_1, Serves()),
        Rule(
            "9113",
            "6.5.2",
            "accepts every setting at its bounds",
            settings(
                (Setting.HEADER_TABLE_SIZE, 0),
                (Setting.HEADER_TABLE_SIZE, 2**32 - 1),
                (Setting.ENABLE_PUSH, 0),
                (Setting.MAX_CONCURRENT_STREAMS, 0),
                (window, 2**31 - 1),
                (Setting.MAX_FRAME_SIZE, 2**24 - 1),
                (Setting.MAX_HEADER_LIST_SIZE, 0),
            )
            + GET_1,
            Serves(),
        ),
        Rule(
            "9113",
            "6.5.3",
            "applies the last of equal settings",
            settings((window, 0), (window, 100)) + GET_1,
            Serves(),
        ),
        Rule("9113", "6.7", "refuses PING on a stream", frame(Kind.PING, 1, bytes(8)), PROTOCOL),
        Rule("9113", "6.7", "refuses PING of another length", frame(Kind.PING, 0, bytes(7)), SIZE),
        Rule(
            "9113",
            "6.7",
            "does not answer the acknowledgement of a PING",
            ping(b"unasked!", ack=True) + GET_1,
            Serves(),
        ),
        Rule(
            "9113", "6.8", "refuses GOAWAY on a stream", frame(Kind.GOAWAY, 1, bytes(8)), PROTOCOL
        ),
        Rule(
            "9113",
            "6.8",
            "refuses a GOAWAY that is too short",
            frame(Kind.GOAWAY, 0, bytes(7)),
            SIZE,
        ),
        Rule(
            "9113",
            "6.8",
            "answers open streams after a GOAWAY of the client",
            GET_1 + goaway(0, text=b"tired"),
            Finishes(),
        ),
        Rule(
            "9113",
            "6.9",
            "refuses a WINDOW_UPDATE of 0 on the connection",
            window_update(0, 0),
            PROTOCOL,
        ),
        Rule(
            "9113",
            "6.9",
            "refuses a WINDOW_UPDATE of 0 on a stream",
            UPLOAD + window_update(1, 0),
            Resets(1, (Code.PROTOCOL_ERROR,)),
        ),
        Rule(
            "9113",
            "6.9",
            "refuses a WINDOW_UPDATE of another length",
            frame(Kind.WINDOW_UPDATE, 0, bytes(3)),
            SIZE,
        ),
        Rule(
            "9113",
            "6.9",
            "ignores the reserved bit of a WINDOW_UPDATE",
            window_update(0, 2**31 | 5) + GET_1,
            Serves(),
        ),
        Rule(
            "9113",
            "6.9.1",
            "refuses a window of the connection above the largest",
            window_update(0, 2**31 - 1),
            ends(Code.FLOW_CONTROL_ERROR),
        ),
        Rule(
            "9113",
            "6.9.1",
            "refuses a window of a stream above the largest",
            UPLOAD + window_update(1, 2**31 - 1),
            Resets(1, (Code.FLOW_CONTROL_ERROR,)),
        ),
        Rule(
            "9113",
            "6.9.1",
            "accepts the largest windows",
            window_update(0, 2**31 - 1 - WINDOW)
            + UPLOAD
            + window_update(1, 2**31 - 1 - WINDOW)
            + data(1, b"", end=True),
            Serves(1, 405),
        ),
        Rule(
            "9113",
            "6.9.2",
            "refuses SETTINGS that raise a window above the largest",
            UPLOAD + window_update(1, 2**31 - 1 - WINDOW) + settings((window, WINDOW + 1)),
            ends(Code.FLOW_CONTROL_ERROR),
        ),
    ]


def bad(section: str, title: str, name: bytes, value: bytes) -> Rule:
    """A request with a field that makes it malformed."""
    return Rule("9113", section, title, with_field(name, value), BAD_REQUEST)


def bad_start(section: str, title: str, *fields: tuple[bytes, bytes]) -> Rule:
    """A request whose pseudo fields make it malformed."""
    return Rule("9113", section, title, pseudo(*fields), BAD_REQUEST)


def _field_rules() -> list[Rule]:
    return [
        bad("8.2", "refuses a name in upper case", b"X-Upper", b"y"),
        bad("8.2.1", "refuses a space in a name", b"x y", b"z"),
        bad("8.2.1", "refuses NUL in a name", b"x\0", b"y"),
        bad("8.2.1", "refuses a byte above ASCII in a name", b"x\xff", b"y"),
        bad("8.2.1", "refuses DEL in a name", b"x\x7f", b"y"),
        bad("8.2.1", "refuses a colon in a name", b"x:y", b"z"),
        bad("8.2.1", "refuses an empty name", b"", b"y"),
        bad("8.2.1", "refuses NUL in a value", b"x", b"a\0b"),
        bad("8.2.1", "refuses CR in a value", b"x", b"a\rb"),
        bad("8.2.1", "refuses LF in a value", b"x", b"a\nb"),
        bad("8.2.1", "refuses LF and a field in a value", b"x", b"a\r\nhost: b"),
        bad("8.2.1", "refuses a space before a value", b"x", b" y"),
        bad("8.2.1", "refuses a tab behind a value", b"x", b"y\t"),
        bad("8.2.1", "refuses a value that is a space", b"x", b" "),
        bad("8.2.2", "refuses Connection", b"connection", b"close"),
        bad("8.2.2", "refuses Keep-Alive", b"keep-alive", b"timeout=5"),
        bad("8.2.2", "refuses Proxy-Connection", b"proxy-connection", b"close"),
        bad("8.2.2", "refuses Transfer-Encoding", b"transfer-encoding", b"chunked"),
        bad(
            "8.2.2",
            "refuses Transfer-Encoding of another coding",
            b"transfer-encoding",
            b"identity",
        ),
        bad("8.2.2", "refuses Upgrade", b"upgrade", b"websocket"),
        bad("8.2.2", "refuses TE with another value than trailers", b"te", b"gzip"),
        bad("8.2.2", "refuses TE with trailers and more", b"te", b"trailers, gzip"),
        bad("8.3", "refuses a pseudo field behind a regular field", b":path", b"/"),
        bad("8.3", "refuses an unknown pseudo field", b":weather", b"rain"),
        bad("8.3", "refuses the pseudo field of a response", b":status", b"200"),
        bad("8.3.1", "refuses another host in Host than in :authority", b"host", b"b"),
        bad_start(
            "8.3",
            "refuses a pseudo field behind a regular field, also the first one",
            METHOD,
            SCHEME,
            AUTHORITY,
            (b"x", b"y"),
            PATH,
        ),
        bad_start(
            "8.3",
            "refuses a pseudo field with a value that has a NUL",
            METHOD,
            SCHEME,
            AUTHORITY,
            (b":path", b"/\0"),
        ),
        bad_start("8.3.1", "refuses a request without :method", SCHEME, AUTHORITY, PATH),
        bad_start("8.3.1", "refuses a request without :scheme", METHOD, AUTHORITY, PATH),
        bad_start("8.3.1", "refuses a request without :path", METHOD, SCHEME, AUTHORITY),
        bad_start("8.3.1", "refuses a request without fields"),
        bad_start("8.3.1", "refuses two :method", METHOD, METHOD, SCHEME, AUTHORITY, PATH),
        bad_start("8.3.1", "refuses two :scheme", METHOD, SCHEME, SCHEME, AUTHORITY, PATH),
        bad_start("8.3.1", "refuses two :path", METHOD, SCHEME, AUTHORITY, PATH, PATH),
        bad_start("8.3.1", "refuses two :authority", METHOD, SCHEME, AUTHORITY, AUTHORITY, PATH),
        bad_start("8.3.1", "refuses an empty :path", METHOD, SCHEME, AUTHORITY, (b":path", b"")),
        bad_start(
            "8.3.1", "refuses a :path without a slash", METHOD, SCHEME, AUTHORITY, (b":path", b"x")
        ),
        bad_start(
            "8.3.1", "refuses the asterisk with GET", METHOD, SCHEME, AUTHORITY, (b":path", b"*")
        ),
        bad_start(
            "8.3.1",
            "refuses user information in :authority",
            METHOD,
            SCHEME,
            (b":authority", b"u:p@a"),
            PATH,
        ),
        bad_start(
            "8.3.1", "refuses a request with neither :authority nor Host", METHOD, SCHEME, PATH
        ),
        bad_start("8.3.1", "refuses an empty :method", (b":method", b""), SCHEME, AUTHORITY, PATH),
        bad_start(
            "8.5",
            "refuses CONNECT with :scheme and :path",
            (b":method", b"CONNECT"),
            SCHEME,
            AUTHORITY,
            PATH,
        ),
        bad_start("8.5", "refuses CONNECT without :authority", (b":method", b"CONNECT")),
        Rule("9113", "8.2.2", "accepts TE with trailers", with_field(b"te", b"trailers"), Serves()),
        Rule(
            "9113",
            "8.2.3",
            "joins the pieces of Cookie",
            framed(1, request(b"/hello.txt", *[(b"cookie", b"a=b")] * 90)),
            Serves(),
        ),
        Rule(
            "9113",
            "8.3.1",
            "accepts Host that equals :authority",
            with_field(b"host", b"a"),
            Serves(),
        ),
        Rule(
            "9113",
            "8.3.1",
            "accepts Host without :authority",
            pseudo(METHOD, SCHEME, PATH, (b"host", b"a")),
            Serves(),
        ),
        Rule(
            "9113",
            "8.3.1",
            "accepts the asterisk with OPTIONS",
            pseudo((b":method", b"OPTIONS"), SCHEME, AUTHORITY, (b":path", b"*")),
            Serves(1, 204),
        ),
        Rule(
            "9113",
            "8.3.1",
            "accepts pseudo fields in any order",
            pseudo(PATH, AUTHORITY, SCHEME, METHOD),
            Serves(),
        ),
        Rule(
            "9113",
            "8.5",
            "does not act as a proxy",
            pseudo((b":method", b"CONNECT"), (b":authority", b"a:443")),
            Resets(1, (Code.PROTOCOL_ERROR, Code.CONNECT_ERROR), (400, 405, 501)),
        ),
    ]


def _message_rules() -> list[Rule]:
    sized = request(b"/", (b"content-length", b"5"), method=b"POST")
    sized_get = request(b"/hello.txt", (b"content-length", b"5"))
    trailers = block([(b"x-sum", b"1")])
    upper = block([(b"X-Sum", b"1")])
    mismatch = Resets(1, (Code.PROTOCOL_ERROR,), (400, 405))
    return [
        Rule(
            "9113",
            "8.1",
            "reads a request with trailers",
            UPLOAD + data(1, b"hello") + headers(1, trailers),
            Serves(1, 405),
        ),
        Rule(
            "9113",
            "8.1",
            "reads trailers without a body",
            UPLOAD + headers(1, trailers),
            Serves(1, 405),
        ),
        Rule(
            "9113",
            "8.1",
            "refuses trailers that do not end the stream",
            UPLOAD + data(1, b"hello") + headers(1, trailers, end=False),
            mismatch,
        ),
        Rule(
            "9113",
            "8.1",
            "refuses a pseudo field in trailers",
            UPLOAD + headers(1, block([METHOD])),
            mismatch,
        ),
        Rule("9113", "8.2", "refuses upper case in trailers", UPLOAD + headers(1, upper), mismatch),
        Rule(
            "9113",
            "8.2.2",
            "refuses Connection in trailers",
            UPLOAD + headers(1, block([(b"connection", b"close")])),
            mismatch,
        ),
        Rule(
            "9113",
            "8.1.1",
            "refuses less DATA than Content-Length",
            headers(1, sized, end=False) + data(1, b"hell", end=True),
            mismatch,
        ),
        Rule(
            "9113",
            "8.1.1",
            "refuses more DATA than Content-Length",
            headers(1, sized, end=False) + data(1, b"hello!", end=True),
            mismatch,
        ),
        Rule(
            "9113", "8.1.1", "refuses Content-Length without DATA", headers(1, sized), BAD_REQUEST
        ),
        Rule(
            "9113",
            "8.1.1",
            "refuses Content-Length of GET without DATA",
            headers(1, sized_get),
            BAD_REQUEST,
        ),
        Rule(
            "9113",
            "8.1.1",
            "reads DATA in several frames with Content-Length",
            headers(1, sized, end=False) + data(1, b"he") + data(1, b"llo") + data(1, end=True),
            Serves(1, 405),
        ),
        Rule(
            "9113",
            "8.1",
            "answers GET with a body",
            headers(1, sized_get, end=False) + data(1, b"hello", end=True),
            Serves(),
        ),
        Rule("7541", "2.3.3", "refuses index 0", headers(1, INDEXED + b"\x80"), COMPRESSION),
        Rule(
            "7541",
            "2.3.3",
            "refuses an index behind the tables",
            headers(1, INDEXED + b"\xbe"),
            COMPRESSION,
        ),
        Rule(
            "7541",
            "2.3.3",
            "refuses the name of an index behind the tables",
            headers(1, INDEXED + b"\x7f\x00\x01y"),
            COMPRESSION,
        ),
        Rule(
            "7541",
            "4.2",
            "refuses a table above the announced size",
            headers(1, integer(2**20, 5, 0x20) + INDEXED),
            COMPRESSION,
        ),
        Rule(
            "7541",
            "4.2",
            "refuses a size update behind a field",
            headers(1, INDEXED + b"\x20"),
            COMPRESSION,
        ),
        Rule(
            "7541",
            "4.2",
            "reads size updates before the fields",
            headers(1, b"\x20" + integer(4096, 5, 0x20) + INDEXED),
            Serves(),
        ),
        Rule(
            "7541",
            "5.1",
            "refuses an integer without end",
            headers(1, INDEXED + b"\xff" + b"\xff" * 12 + b"\x01"),
            COMPRESSION,
        ),
        Rule(
            "7541",
            "5.1",
            "refuses an integer that the block cuts",
            headers(1, INDEXED + b"\xff\x80"),
            COMPRESSION,
        ),
        Rule(
            "7541",
            "5.2",
            "refuses a literal that the block cuts",
            headers(1, INDEXED + b"\x00\x05ab"),
            COMPRESSION,
        ),
        Rule(
            "7541",
            "5.2",
            "refuses Huffman padding of more than 7 bits",
            headers(1, INDEXED + b"\x00\x01x\x82\x1f\xff"),
            COMPRESSION,
        ),
        Rule(
            "7541",
            "5.2",
            "refuses Huffman padding of zeros",
            headers(1, INDEXED + b"\x00\x01x\x81\x18"),
            COMPRESSION,
        ),
        Rule(
            "7541",
            "5.2",
            "refuses the end symbol in a Huffman code",
            headers(1, INDEXED + b"\x00\x01x\x84\xff\xff\xff\xff"),
            COMPRESSION,
        ),
        Rule(
            "7541",
            "5.2",
            "reads a Huffman code",
            headers(1, INDEXED + b"\x00\x01x\x81\x1f"),
            Serves(),
        ),
        Rule(
            "7541",
            "6.2.1",
            "reads fields of the dynamic table",
            headers(1, b"\x82\x86\x84" + literal(b":authority", b"a", indexed=True))
            + headers(3, b"\x82\x86\x84\xbe"),
            Serves(3),
        ),
        Rule(
            "7541",
            "6.2.3",
            "reads fields that are never indexed",
            headers(1, INDEXED + b"\x10" + text(b"x") + text(b"y")),
            Serves(),
        ),
        Rule(
            "9113",
            "4.3",
            "decodes the block of a stream that it refuses",
            headers(
                1,
                b"\x82\x86\x84" + literal(b"X", b"y") + literal(b":authority", b"a", indexed=True),
            )
            + headers(3, b"\x82\x86\x84\xbe"),
            Serves(3),
        ),
        Rule(
            "9218",
            "7.1",
            "refuses PRIORITY_UPDATE on a stream",
            frame(Kind.PRIORITY_UPDATE, 1, b"\0\0\0\x01u=3"),
            PROTOCOL,
        ),
        Rule(
            "9218",
            "7.1",
            "refuses PRIORITY_UPDATE of stream 0",
            priority_update(0, b"u=3"),
            PROTOCOL,
        ),
        Rule(
            "9218",
            "7.1",
            "refuses a PRIORITY_UPDATE that is too short",
            frame(Kind.PRIORITY_UPDATE, 0, b"\0\0"),
            ends(Code.FRAME_SIZE_ERROR, Code.PROTOCOL_ERROR),
        ),
        Rule(
            "9218",
            "7.1",
            "accepts PRIORITY_UPDATE of an idle stream",
            priority_update(1, b"u=0, i") + GET_1,
            Serves(),
        ),
        Rule(
            "9218",
            "4",
            "ignores a malformed priority",
            priority_update(1, b"u=99, ;;;") + with_field(b"priority", b"\xff u=x"),
            Serves(),
        ),
    ]


RULES = [
    *_connection_rules(),
    *_stream_rules(),
    *_control_rules(),
    *_field_rules(),
    *_message_rules(),
]
