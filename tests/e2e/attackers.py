#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Clients that attack a server: many connections from one address, each in the same manner.

It is a separate program, so that its CPU time is not that of the client beside it:

    python3 tests/e2e/attackers.py MANNER PORT CONNECTIONS AT_ONCE TURNS

Each turn uses one connection, in a fixed order. The first AT_ONCE turns follow each other without
a pause. Then the program prints a line, and takes TURNS turns in a second until a signal ends it. A
connection that is not open yet, or that the server has closed, is made at its turn.

It sends no other flood of requests than `pipelined`: `weir load --source` does.
"""

from __future__ import annotations

import contextlib
import resource
import select
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

SOURCE = "127.0.0.2"
LARGE = "/large.bin"
SMALL = "/small.html"
PIPELINED = 16
SMALL_BUFFER = 1024  # bytes; the kernel raises it to its own least
BATCH_S = 0.005
SPARE_DESCRIPTORS = 100


@dataclass(frozen=True, kw_only=True)
class Manner:
    """What an attacker does with a connection."""

    first: bytes = b""  # is sent on a new connection
    each: bytes = b""  # is sent at each turn
    later: Callable[[int], bytes] | None = None  # the same; the argument counts the turns from 0
    reads: int | None = None  # bytes read at each turn; None: all that has arrived
    small_window: bool = False
    renews: bool = False  # each turn replaces the connection


# ---- frames of HTTP/2 (RFC 9113 section 4), without Huffman coding or shared tables ----

DATA, HEADERS, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 8, 9
END_STREAM, END_HEADERS = 1, 4
INITIAL_WINDOW_SIZE = 4
STREAMS = 100  # opened at each turn
FRAMES = 1000  # without a request, at each turn


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    head = len(payload).to_bytes(3, "big") + bytes([kind, flags])
    return head + stream.to_bytes(4, "big") + payload


def field(name: bytes, value: bytes, form: int = 0) -> bytes:
    """A literal field of at most 126 bytes. Form 0x40 adds it to the server's table."""
    return bytes([form, len(name)]) + name + bytes([len(value)]) + value


def request(path: str, method: bytes = b"GET") -> bytes:
    """The header block of a request."""
    pseudo = {b":method": method, b":scheme": b"http", b":authority": b"a", b":path": path.encode()}
    return b"".join(field(name, value) for name, value in pseudo.items())


def settings(window: int | None = None) -> bytes:
    pairs = b""
    if window is not None:
        pairs = INITIAL_WINDOW_SIZE.to_bytes(2, "big") + window.to_bytes(4, "big")
    return frame(SETTINGS, 0, 0, pairs)


def opened(turn: int, block: bytes, flags: int, follow: Callable[[int], bytes]) -> bytes:
    """The streams of one turn, each with a header block and what `follow` puts behind it."""
    start = 1 + 2 * STREAMS * turn
    streams = range(start, start + 2 * STREAMS, 2)
    return b"".join(frame(HEADERS, flags, stream, block) + follow(stream) for stream in streams)


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
BEGUN = PREFACE + settings()
WHOLE, OPEN = END_HEADERS | END_STREAM, END_HEADERS
CANCEL = (8).to_bytes(4, "big")
POST = request("/", b"POST")
UPLOAD = frame(HEADERS, OPEN, 1, POST)
BOMB = field(b"x", b"v" * 100, 0x40)  # each further byte 0xbe repeats it

FRAMED = {
    "rapid-reset": Manner(
        first=BEGUN,
        later=lambda turn: opened(
            turn, request(LARGE), WHOLE, lambda stream: frame(RST_STREAM, 0, stream, CANCEL)
        ),
    ),
    "made-you-reset": Manner(
        first=BEGUN,
        later=lambda turn: opened(
            turn, POST, OPEN, lambda stream: frame(WINDOW_UPDATE, 0, stream, bytes(4))
        ),
    ),
    "continuation": Manner(
        first=BEGUN,
        each=frame(HEADERS, 0, 1, request("/")) + frame(CONTINUATION, 0, 1, bytes(100)) * 100,
    ),
    "hpack-bomb": Manner(
        first=BEGUN + frame(HEADERS, WHOLE, 1, request("/") + BOMB),
        later=lambda turn: frame(HEADERS, WHOLE, 3 + 2 * turn, request("/") + b"\xbe" * 16_000),
    ),
    "ping": Manner(first=BEGUN, each=frame(PING, 0, 0, bytes(8)) * FRAMES),
    "settings": Manner(first=BEGUN, each=settings() * FRAMES),
    "empty-data": Manner(first=BEGUN + UPLOAD, each=frame(DATA, 0, 1) * FRAMES),
    "tiny-windows": Manner(
        first=PREFACE
        + settings(0)
        + b"".join(frame(HEADERS, WHOLE, s, request(LARGE)) for s in range(1, 2 * STREAMS, 2)),
        each=frame(WINDOW_UPDATE, 0, 1, (1).to_bytes(4, "big")),
    ),
}

MANNERS = {
    **FRAMED,
    "silent": Manner(renews=True),
    "idle": Manner(first=f"GET {SMALL} HTTP/1.1\r\nHost: a\r\n\r\n".encode(), renews=True),
    "pipelined": Manner(each=f"GET {SMALL} HTTP/1.1\r\nHost: a\r\n\r\n".encode() * PIPELINED),
    "slow-head": Manner(first=b"GET / HTTP/1.1\r\nHost: a\r\nX: ", each=b"x"),
    "slow-body": Manner(
        first=b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        each=b"1\r\nx\r\n",
    ),
    "slow-read": Manner(
        first=f"GET {LARGE} HTTP/1.1\r\nHost: a\r\n\r\n".encode(), reads=500, small_window=True
    ),
    "zero-window": Manner(
        first=f"GET {LARGE} HTTP/1.1\r\nHost: a\r\n\r\n".encode(), reads=0, small_window=True
    ),
}


class Attacker:
    """One connection. No call waits for the server."""

    def __init__(self, manner: Manner, port: int) -> None:
        self.manner = manner
        self.port = port
        self.turns = 0  # of this connection
        self.socket: socket.socket | None = None

    def connect(self) -> None:
        made = socket.socket()
        self.socket = made
        self.turns = 0
        made.setblocking(False)
        made.setsockopt(socket.IPPROTO_IP, socket.IP_BIND_ADDRESS_NO_PORT, 1)
        if self.manner.small_window:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
        made.bind((SOURCE, 0))
        made.connect_ex(("127.0.0.1", self.port))
        # On loopback the handshake is over, unless the server's backlog is full.
        with contextlib.suppress(OSError):
            made.send(self.manner.first)

    def close(self) -> None:
        if self.socket:
            self.socket.close()
            self.socket = None

    def turn(self) -> None:
        """Uses the connection once, or replaces it."""
        if self.manner.renews:
            self.close()
        if self.socket and not self.use(self.socket):
            self.close()
        if not self.socket:
            self.connect()

    def use(self, connection: socket.socket) -> bool:
        """Returns whether the connection is still open."""
        poll = select.poll()
        poll.register(connection, 0)
        if any(events & select.POLLERR for _, events in poll.poll(0)):
            return False  # the server has reset it
        try:
            if sent := self.manner.later(self.turns) if self.manner.later else self.manner.each:
                connection.send(sent)
            self.turns += 1
            if self.manner.reads != 0:
                return connection.recv(self.manner.reads or 65536) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True


def attack(manner: Manner, port: int, connections: int, at_once: int, turns_per_s: float) -> None:
    """Takes turns until the process ends."""
    needed = connections + SPARE_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    attackers = [Attacker(manner, port) for _ in range(connections)]
    for taken in range(at_once):
        attackers[taken % connections].turn()
    print("ready", flush=True)
    started, taken = time.monotonic(), at_once
    while True:
        time.sleep(BATCH_S)
        due = at_once + int((time.monotonic() - started) * turns_per_s)
        while taken < due:
            attackers[taken % connections].turn()
            taken += 1


if __name__ == "__main__":
    name, port, connections, at_once, turns_per_s = sys.argv[1:]
    attack(MANNERS[name], int(port), int(connections), int(at_once), float(turns_per_s))
