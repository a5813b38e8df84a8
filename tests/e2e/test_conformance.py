# SPDX-License-Identifier: MIT
"""Runs the conformance cases over TCP and over TLS, against every model; all models must agree.

h11 reads the answers a second time, as an oracle that is not ours.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import re
import selectors
import socket
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

import h11
import pytest

from tests.e2e.cases import CASES as CASES_FOLDER
from tests.e2e.cases import Case, expand, read_cases
from tests.e2e.certificates import Pair, make, trusting
from tests.e2e.folder import make_folder
from tests.e2e.running import Server, played, playing, start
from tests.e2e.tunnel import Tunnel
from tests.e2e.wire import TIMEOUT_S, Answer, Connection, WireError, connect, lint, parse_answer

CASES = [case for case in read_cases() if not case.expire]
# In the split run, a request of at most so many bytes comes byte by byte, a longer one in pieces.
BYTES_ALONE = 150
PIECES = 5
SHORT = 4096
CLOSING = re.compile(rb"\r\nconnection:[^\r]*\bclose\b.*?\r\n\r\n", re.IGNORECASE | re.DOTALL)
SOURCES = itertools.count(1)
# The hosts of the cases that belong to a site. Over TLS the certificate must cover them.
HOSTS = (
    "a list.test spa.test pages.test open.test rules.test staff.test *.wild.test *.y.wild.test "
    "*.one.wild.test".split()
)
FIRST = b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n"
PROBE = b"GET /hello.txt HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n"
MASKS = [
    (re.compile(rb"\r\nDate: [^\r]*"), b"\r\nDate: *"),
    (re.compile(rb"weir[0-9a-f]{16}"), b"boundary"),
    (re.compile(rb"Request [0-9a-f]{16}"), b"Request *"),
]

CONFIGURATION = """\
[server]
listen = 127.0.0.1:0, https://127.0.0.1:0

[site any]
root = {root}
tls-certificate = {pair.certificate}
tls-key = {pair.key}

[site list]
host = list.test
root = {root}
listing = on

[site spa]
host = spa.test
root = {root}
spa = index.html

[site pages]
host = pages.test
root = {root}
error-pages = {errors}
header = X-Frame-Options: DENY
header = Cache-Control: max-age=31536000, immutable

[site open]
host = open.test
root = {root}
hidden = on

[site wild]
host = *.wild.test
root = {root}/d

[site one]
host = one.wild.test
root = {root}/sub

"""
CONFIGURATION += (CASES_FOLDER.parent / "rules.conf").read_text()


Servers = dict[str, Server]


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    """The root of the fixture, which an unprivileged server can read."""
    with tempfile.TemporaryDirectory(prefix="weir-e2e-") as name:
        top = Path(name)
        top.chmod(0o755)
        yield make_folder(top)
        (top / "site/noperm.d").chmod(0o755)


@pytest.fixture(scope="session")
def pair(folder: Path) -> Pair:
    return make(folder.parent, "all", *HOSTS)


@pytest.fixture(scope="session")
def context(pair: Pair) -> ssl.SSLContext:
    return trusting(pair)


@contextlib.contextmanager
def one_of_each_model(folder: Path, pair: Pair, name: str, *words: str) -> Iterator[Servers]:
    """One server of each model, for all cases, with these options. `name` is for its files."""
    top = folder.parent
    configuration = top / f"{name}.conf"
    configuration.write_text(CONFIGURATION.format(root=folder, errors=top / "errors", pair=pair))
    if os.geteuid() == 0:
        words += ("--user", "nobody")
    running: dict[str, Server] = {}
    try:
        for model in played():
            options = ["-c", str(configuration), "--model", model, *words]
            running[model] = start(options, top / f"stderr-{name}-{model}")
        yield running
    finally:
        for server in running.values():
            server.stop()


@pytest.fixture(scope="session")
def sites(folder: Path, pair: Pair) -> Iterator[dict[str, Server]]:
    with one_of_each_model(folder, pair, "weir") as running:
        yield running


@contextlib.contextmanager
def connect_alone(address: tuple[str, int]) -> Iterator[Connection]:
    """A connection from an address of its own: wrong passwords are counted for each address."""
    number = next(SOURCES)
    source = f"127.{1 + number // 62500 % 250}.{number // 250 % 250}.{1 + number % 250}"
    made = socket.create_connection(address, TIMEOUT_S, source_address=(source, 0))
    connection = Connection(made)
    try:
        yield connection
    finally:
        connection.close()


def etag_of(server: Server, path: str) -> str:
    with connect(server.address) as connection:
        connection.send(f"HEAD /{path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        tag = connection.read(bodiless=True).get("ETag")
    assert tag
    return tag


def take_answers(
    expected: list[tuple[str, ...]], data: bytearray, at: int = 0
) -> tuple[list[Answer], int]:
    """The complete answers from `at` on, at most as many as expected, and where they end."""
    answers = []
    for lines in expected:
        bodiless = "body none" in lines
        # Most answers are short. A copy of all that follows, for each of thousands, takes minutes.
        near = parse_answer(bytes(data[at : at + SHORT]), bodiless=bodiless)
        parsed = near or parse_answer(bytes(data[at:]), bodiless=bodiless)
        if not parsed:
            break
        answers.append(parsed[0])
        at += len(parsed[0].raw)
    return answers, at


def split(request: bytes) -> list[int]:
    """The ends of the pieces. A short request is split into bytes, a long one at random places,
    which are the same in every run.

    Bytes behind a head with `Connection: close` stay in one piece with its end. If they arrived
    later, a reset could destroy the answer (RFC 9112 section 9.6).
    """
    if len(request) <= BYTES_ALONE:
        ends = list(range(1, len(request)))
    else:
        ends = sorted(Random(request).sample(range(1, len(request)), PIECES - 1))
    if closing := CLOSING.search(request):
        ends = [end for end in ends if end < closing.end()]
    return [*ends, len(request)]


def converse(
    connection: Connection,
    case: Case,
    *,
    until_closed: bool,
    in_pieces: bool = False,
    tunnel: Tunnel | None = None,
) -> bytes:
    """Sends and reads at the same time until all answers have come or the server closes."""
    request = expand(case.request)
    if tunnel:
        # The end of a head cannot be seen in records, and what follows it stays with it.
        in_pieces = in_pieces and not CLOSING.search(request)
        request = tunnel.seal(request)
    unsent = memoryview(request)
    ends = split(request) if in_pieces else [len(request)]
    if in_pieces:
        connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    data = bytearray()
    missing, at = case.answers, 0
    connection.socket.setblocking(False)
    with selectors.DefaultSelector() as ready:
        ready.register(connection.socket, selectors.EVENT_READ | selectors.EVENT_WRITE)
        while True:
            events = ready.select(TIMEOUT_S)
            assert events, f"silence after {bytes(data[-200:])!r}"
            if events[0][1] & selectors.EVENT_READ:
                got = connection.socket.recv(256 * 1024)
                data += tunnel.open(got) if tunnel else got
                if not got:
                    break
            if events[0][1] & selectors.EVENT_WRITE:
                # The server may stop reading.
                with contextlib.suppress(BlockingIOError, BrokenPipeError):
                    piece = ends[0] - (len(request) - len(unsent))
                    unsent = unsent[connection.socket.send(unsent[:piece]) :]
                    if len(ends) > 1 and len(request) - len(unsent) == ends[0]:
                        ends.pop(0)
                if not unsent:
                    ready.modify(connection.socket, selectors.EVENT_READ)
                    if case.half_close:
                        connection.send(tunnel.seal_end() if tunnel else b"")
                        connection.end_sending()
            if not until_closed and not unsent:
                answers, at = take_answers(missing, data, at)
                missing = missing[len(answers) :]
                if not missing:
                    break
    connection.socket.settimeout(TIMEOUT_S)
    return bytes(data)


def play(server: Server, case: Case, *, in_pieces: bool) -> bytes:
    """Plays the case and checks the state of the connection at the end."""
    until_closed = case.end in ("closed", "cut")
    with connect_alone(server.address) as connection:
        data = converse(connection, case, until_closed=until_closed, in_pieces=in_pieces)
        if case.end == "open":
            connection.send(PROBE)
            probed, rest = parse_answer(connection.read_to_end()) or (None, b"")
            assert probed, "no answer to another request"
            assert (probed.status, probed.body, rest) == (200, b"hello\n", b"")
        elif case.end == "waiting":
            connection.end_sending()
            assert connection.read_to_end() == b""
    return data


def play_over_tls(server: Server, case: Case, context: ssl.SSLContext, *, in_pieces: bool) -> bytes:
    """The same over TLS. The case follows an answer, because OpenSSL is used only until then."""
    https = urlsplit(server.urls[1])
    assert https.hostname
    assert https.port
    with connect_alone((https.hostname, https.port)) as connection:
        tunnel = Tunnel(connection, context, "a")
        connection.send(tunnel.seal(FIRST))
        first = b""
        while not parse_answer(first):
            first += tunnel.open(connection.socket.recv(64 * 1024))
        until_closed = case.end in ("closed", "cut")
        data = converse(
            connection, case, until_closed=until_closed, in_pieces=in_pieces, tunnel=tunnel
        )
        if case.end == "open":
            connection.send(tunnel.seal(PROBE))
            probed = parse_answer(tunnel.open(connection.read_to_end()))
            assert probed, "no answer to another request"
            assert (probed[0].status, probed[0].body, probed[1]) == (200, b"hello\n", b"")
        elif case.end == "waiting":
            connection.send(tunnel.seal_end())
            connection.end_sending()
            assert tunnel.open(connection.read_to_end()) == b""
        assert tunnel.ended, "a close without close_notify"
    return data


def parts_of(body: bytes, boundary: str) -> list[tuple[str, bytes]]:
    """The parts of multipart/byteranges: Content-Range and data of each."""
    mark = f"--{boundary}".encode()
    pieces = (b"\r\n" + body.removeprefix(b"\r\n")).split(b"\r\n" + mark)
    assert pieces[0] == b""
    assert pieces[-1] == b"--\r\n"
    parts = []
    for piece in pieces[1:-1]:
        head, _, data = piece.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        assert fields["Content-Type"]
        parts.append((fields["Content-Range"], data))
    return parts


def check_parts(answer: Answer, content: bytes, ranges: list[str]) -> None:
    boundary = (answer.get("Content-Type") or "").partition("boundary=")[2]
    expected = []
    for text in ranges:
        first, last = map(int, text.split("-"))
        expected.append((f"bytes {text}/{len(content)}", content[first : last + 1]))
    assert parts_of(answer.body, boundary) == expected


def check_body(answer: Answer, rule: str, folder: Path) -> None:
    kind, _, text = rule.partition(" ")
    match kind:
        case "is":
            assert answer.body == expand(text)
        case "has":
            assert expand(text) in answer.body
        case "lacks":
            assert expand(text) not in answer.body
        case "file":
            name, _, part = text.partition(" ")
            content = (folder / name).read_bytes()
            if part:
                first, last = map(int, part.split("-"))
                content = content[first : last + 1]
            assert answer.body == content
        case "parts":
            name, *ranges = text.split()
            check_parts(answer, (folder / name).read_bytes(), ranges)
        case "length":
            assert len(answer.body) == int(text)
        case "empty":
            assert answer.get("Content-Length") == "0"
        case "page":
            assert answer.get("Content-Type") == "text/html; charset=utf-8"
            assert str(answer.status).encode() in answer.body
        case "none":
            assert answer.body == b""
        case _:
            raise WireError(f"`body {rule}` means nothing")


def check_answer(answer: Answer, lines: tuple[str, ...], folder: Path) -> None:
    lint(answer)
    for line in lines:
        if line.startswith("status "):
            assert str(answer.status) in line.removeprefix("status ").split(" or ")
        elif line.startswith("body "):
            check_body(answer, line.removeprefix("body "), folder)
        elif line.startswith("no "):
            assert answer.get(line.removeprefix("no ")) is None
        else:
            name, _, value = line.partition(": ")
            assert answer.get(name) is not None, f"no {name}"
            if value != "*":
                assert answer.get(name) == expand(value).decode("latin-1")


def check_with_h11(answer: Answer, *, bodiless: bool) -> None:
    """h11 must read the same status and the same body."""
    client = h11.Connection(h11.CLIENT)
    method = "HEAD" if bodiless and answer.status not in (204, 304) else "GET"
    client.send(h11.Request(method=method, target="/", headers=[("Host", "a")]))
    client.send(h11.EndOfMessage())
    client.receive_data(answer.raw)
    response = client.next_event()
    assert isinstance(response, h11.Response)
    assert response.status_code == answer.status
    body = b""
    while isinstance(event := client.next_event(), h11.Data):
        body += event.data
    assert isinstance(event, h11.EndOfMessage)
    assert body == answer.body
    assert client.trailing_data[0] == b""


def check_answers(case: Case, data: bytes, folder: Path) -> None:
    """Checks that the bytes are exactly the answers that the case expects."""
    answers, end = take_answers(case.answers, bytearray(data))
    assert end == len(data), f"not an expected answer: {data[end:][:500]!r}"
    assert len(answers) == len(case.answers), f"too few answers: {data[:500]!r}"
    for answer, lines in zip(answers, case.answers, strict=True):
        check_answer(answer, lines, folder)
        check_with_h11(answer, bodiless="body none" in lines)
    announced = [answer.closes for answer in answers]
    assert not any(announced[:-1])
    if answers and not case.half_close:
        assert announced[-1] == (case.end == "closed")


def masked(data: bytes) -> bytes:
    for pattern, mask in MASKS:
        data = pattern.sub(mask, data)
    return data


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_every_model_answers_as_the_case_expects(
    case: Case, sites: dict[str, Server], folder: Path, context: ssl.SSLContext
) -> None:
    """The first answer is examined. Every later one must be the same bytes, so it is right too."""
    first = b""
    for number, model in enumerate(playing(case.id, list(sites))):
        server = sites[model]
        filled = case.filled(functools.partial(etag_of, server))
        for in_pieces in (False, True):
            data = play(server, filled, in_pieces=in_pieces)
            if not first:
                check_answers(filled, data, folder)
                first = masked(data)
            assert masked(data) == first, f"{model} answers differently, {in_pieces=}"
        data = play_over_tls(server, filled, context, in_pieces=number % 2 == 1)
        assert masked(data) == first, f"{model} answers differently over TLS"
