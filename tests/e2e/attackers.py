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
    reads: int | None = None  # bytes read at each turn; None: all that has arrived
    small_window: bool = False
    renews: bool = False  # each turn replaces the connection


MANNERS = {
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
        self.socket: socket.socket | None = None

    def connect(self) -> None:
        made = socket.socket()
        self.socket = made
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
            if self.manner.each:
                connection.send(self.manner.each)
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
