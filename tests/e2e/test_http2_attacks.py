# SPDX-License-Identifier: MIT
"""Each known attack by HTTP/2 meets a limit, and a client beside it is served.

RFC 9113 section 10.5 names most of them; the others have a number among the CVEs. Every attack is
one connection. The server must end it with the right error or bound what it costs.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.http2 import (
    PREFACE,
    Client,
    Code,
    EndedError,
    Kind,
    Setting,
    StreamResetError,
    connect2,
    continuation,
    data,
    frame,
    headers,
    literal,
    ping,
    priority,
    priority_update,
    request,
    reset,
    settings,
    window_update,
)
from tests.e2e.running import WEIR, Server
from tests.e2e.statistics import Numbers, settled, wait_for
from tests.e2e.wire import Connection, connect

GROWTH_MAX_KIB = 16 * 1024
SANITIZED = b"__asan_init" in WEIR.read_bytes() or b"__tsan_init" in WEIR.read_bytes()
BIG = 2_000_000
MANY = 10_000
GET = request()
POST = request(b"/", method=b"POST")
H2C = ("--h2c", "on")
FLOOD = Code.ENHANCE_YOUR_CALM


def streams(count: int) -> range:
    return range(1, 2 * count, 2)


@dataclass(frozen=True)
class Attack:
    """The client's frames, and the error that ends the connection. None: it continues."""

    sent: Callable[[], bytes]
    ends: Code | None = FLOOD
    cause: str = "control"  # which counter counts it
    settings: tuple[tuple[int, int], ...] = ()


def hpack_bomb() -> bytes:
    """Few bytes that refer to one large field of the table, again and again (CVE-2016-1544)."""
    first = GET + literal(b"x", b"v" * 3900, indexed=True)
    again = GET + b"\xbe" * 16_000
    return headers(1, first) + b"".join(headers(stream, again) for stream in range(3, 100, 2))


def cookie_bomb() -> bytes:
    """Many pieces of Cookie, of one byte each, on streams that cannot be answered."""
    first = GET + literal(b"cookie", b"a", indexed=True)
    again = GET + b"\xbe" * 16_000
    return headers(1, first) + b"".join(headers(stream, again) for stream in range(3, 100, 2))


UPLOAD = headers(1, POST, end=False)
BIG_GET = headers(1, request(b"/big.bin"))
NO_WINDOW = ((Setting.INITIAL_WINDOW_SIZE, 0),)

ATTACKS = {
    "rapid reset (CVE-2023-44487)": Attack(
        lambda: b"".join(headers(s, GET) + reset(s) for s in streams(MANY)), cause="resets"
    ),
    "rapid reset of large answers": Attack(
        lambda: b"".join(headers(s, request(b"/big.bin")) + reset(s) for s in streams(MANY)),
        cause="resets",
    ),
    "resets by the server (CVE-2025-8671)": Attack(
        lambda: b"".join(headers(s, POST, end=False) + window_update(s, 0) for s in streams(MANY)),
        cause="resets",
    ),
    "malformed requests": Attack(
        lambda: b"".join(headers(s, literal(b"X", b"y")) for s in streams(MANY)), cause="resets"
    ),
    "streams that are opened and left": Attack(
        lambda: b"".join(headers(s, POST, end=False) for s in streams(MANY)), cause="resets"
    ),
    "CONTINUATION without end (CVE-2024-27316)": Attack(
        lambda: headers(1, GET, last=False) + continuation(1, b"", last=False) * MANY,
        cause="continuations",
    ),
    "large CONTINUATION frames": Attack(
        lambda: headers(1, GET, last=False) + continuation(1, bytes(16_000), last=False) * 100,
        cause="block_length",
    ),
    "HPACK bomb": Attack(hpack_bomb, None),
    "cookie bomb with closed windows (CVE-2026-49975)": Attack(
        cookie_bomb, None, settings=NO_WINDOW
    ),
    "SETTINGS (CVE-2019-9515)": Attack(lambda: settings() * MANY),
    "SETTINGS with many settings": Attack(
        lambda: settings(*[(0x99, 1)] * 2000), cause="settings_count"
    ),
    "acknowledged SETTINGS that change windows": Attack(
        lambda: BIG_GET + settings((Setting.INITIAL_WINDOW_SIZE, 1)) * MANY
    ),
    "PING (CVE-2019-9512)": Attack(lambda: ping() * MANY),
    "PRIORITY (CVE-2019-9513)": Attack(lambda: priority(1, 3) * MANY),
    "PRIORITY_UPDATE": Attack(lambda: priority_update(1, b"u=1") * MANY),
    "empty DATA (CVE-2019-9518)": Attack(lambda: UPLOAD + data(1) * MANY),
    "DATA of one byte": Attack(lambda: UPLOAD + data(1, b"x") * MANY),
    "DATA that is padding": Attack(lambda: UPLOAD + data(1, b"", pad=9) * MANY),
    "empty HEADERS": Attack(
        lambda: b"".join(headers(s, b"") for s in streams(MANY)), cause="resets"
    ),
    "WINDOW_UPDATE": Attack(lambda: window_update(0, 1) * MANY),
    "WINDOW_UPDATE of a stream": Attack(lambda: BIG_GET + window_update(1, 1) * MANY),
    "windows of one byte (CVE-2019-9511)": Attack(
        lambda: BIG_GET + window_update(1, 1) * MANY, settings=NO_WINDOW
    ),
    "a window that overflows": Attack(
        lambda: window_update(0, 2**31 - 1), Code.FLOW_CONTROL_ERROR, cause="window_overflow"
    ),
    "unknown frames": Attack(lambda: frame(0x99, 0, b"x") * MANY),
    "frames on closed streams": Attack(
        lambda: headers(1, GET) + reset(1) + window_update(1, 1) * MANY
    ),
    "GOAWAY": Attack(lambda: BIG_GET + frame(Kind.GOAWAY, 0, bytes(8)) * MANY, settings=NO_WINDOW),
}


def memory_kib(running: Server) -> int:
    """The resident memory of all workers. A worker of `fork` ends with its connection."""
    total = 0
    for worker in running.workers():
        try:
            status = Path(f"/proc/{worker.pid}/status").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        found = re.search(r"^RssAnon:\s+(\d+) kB", status, re.MULTILINE)
        total += int(found[1]) if found else 0
    return total


def check(running: Server, attack: Attack, honest: Client) -> None:
    def ask() -> None:
        assert honest.get().body == b"hello\n"

    with connect2(running.address, *attack.settings, refund=False) as client:
        sent = attack.sent()
        client.note(sent)
        client.write(sent[: len(sent) // 2])
        ask()
        client.write(sent[len(sent) // 2 :])
        if attack.ends is None:
            client.settle()
            assert not client.goaway, client.goaway
        else:
            code = client.end()
            assert code == attack.ends, f"GOAWAY is {code}"
    ask()


def test_every_attack_ends_and_others_are_served(server: ServerFactory, site: Path) -> None:
    (site / "big.bin").write_bytes(bytes(BIG))
    running = server(*H2C)
    wrong = []
    memory = 0
    with connect2(running.address) as honest:
        for name, attack in ATTACKS.items():
            try:
                check(running, attack, honest)
            except (AssertionError, EndedError, StreamResetError) as error:
                wrong.append(f"{name}: {type(error).__name__}: {error}")
            memory = memory or memory_kib(running)
        grown = memory_kib(running) - memory
    assert not wrong, f"{len(wrong)} of {len(ATTACKS)}:\n" + "\n".join(wrong)
    assert SANITIZED or grown < GROWTH_MAX_KIB, f"the workers grew by {grown} KiB"
    now = settled(running)
    causes = Counter(attack.cause for attack in ATTACKS.values() if attack.ends is not None)
    assert {cause: now["http2_ended_by_cause"][cause] for cause in causes} == causes
    numbers = now["counters"]
    assert numbers["http2_streams_opened"] == numbers["http2_streams_closed"]
    assert numbers["http2_connections_begun"] == numbers["http2_connections_ended"]


def closed_by_server(connection: Connection) -> bool:
    with contextlib.suppress(ConnectionResetError):
        connection.read_to_end()
    return True


def test_clients_that_wait_meet_deadlines(server: ServerFactory, site: Path) -> None:
    """Each client leaves the server waiting. Its connection ends."""
    (site / "big.bin").write_bytes(bytes(BIG))
    limits = ["--header-timeout", "300ms", "--body-timeout", "300ms", "--send-timeout", "300ms"]
    running = server(*H2C, *limits, "--idle-timeout", "300ms")
    block = headers(1, GET[:9], last=False)
    starts = (PREFACE[:10], PREFACE, PREFACE + b"\0\0", PREFACE + settings() + block)
    with contextlib.ExitStack() as held:
        silent = [held.enter_context(connect(running.address)) for _ in starts]
        for connection, start in zip(silent, starts, strict=True):
            connection.send(start)
        uploading = held.enter_context(connect2(running.address))
        stream = uploading.ask("/", method="POST", end=False)
        uploading.send(data(stream, b"x"))
        closed = [
            held.enter_context(connect2(running.address, *pairs, refund=False))
            for pairs in ((), NO_WINDOW)
        ]
        for client in closed:
            client.ask("/big.bin")
        for connection in silent:
            assert closed_by_server(connection)
        assert uploading.answer(stream).status in (405, 408)
        for client in closed:
            assert client.end() == FLOOD, "a client with closed windows"
    with connect2(running.address) as honest:
        assert honest.get().body == b"hello\n"


def only_one_is_left(now: Numbers) -> bool:
    """All 21 connections have begun, and only the honest one has not ended."""
    begun: int = now["counters"]["http2_connections_begun"]
    left: int = now["gauges"]["http2_connections_open"]
    return begun == 21 and left == 1


def all_were_ended(now: Numbers) -> bool:
    """By the server, or by the kernel on its behalf (TCP_USER_TIMEOUT)."""
    counters = now["counters"]
    ended: int = counters["timeouts_send"] + counters["connections_reset"]
    return ended >= 20


@pytest.mark.parametrize("model", ["percore", "pool", "uring", "thread"])
def test_a_client_that_reads_nothing_costs_little_memory(server: ServerFactory, site: Path) -> None:
    """The answers to many frames wait, and the server stops reading (CVE-2019-9517)."""
    (site / "big.bin").write_bytes(bytes(BIG))
    running = server(*H2C, "--send-timeout", "1s")
    with connect2(running.address) as honest:
        honest.get()
        before = memory_kib(running)
        held = []
        for _ in range(20):
            connection = Connection.to(running.address, receive_buffer=1024)
            held.append(connection)
            connection.socket.setblocking(False)
            start = PREFACE + settings((Setting.INITIAL_WINDOW_SIZE, 2**31 - 1))
            start += window_update(0, 2**30)
            gets = (headers(s, request(b"/big.bin")) for s in streams(100))
            connection.socket.send(start + b"".join(gets) + ping() * 100)
        assert honest.get().body == b"hello\n"
        wait_for(running, only_one_is_left)
        assert SANITIZED or memory_kib(running) - before < GROWTH_MAX_KIB
        for connection in held:
            connection.close()
    wait_for(running, all_were_ended)
