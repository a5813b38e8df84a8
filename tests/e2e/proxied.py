# SPDX-License-Identifier: MIT
"""Connections that begin with a PROXY header, and what the access log says of their clients."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.running import Server
from tests.e2e.wire import Connection
from tests.waiting import LIMIT_S, wait_until

EVERYWHERE = "0.0.0.0:0"
PROXY = "127.0.0.2"
ELSEWHERE = "127.0.0.3"
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
UNKNOWN = b"PROXY UNKNOWN\r\n"
LOCAL = SIGNATURE + b"\x20\0\0\0"


def line(client: str) -> bytes:
    """A header of version 1."""
    version = ipaddress.ip_address(client).version
    server = {4: "198.51.100.1", 6: "2001:db8::ff"}[version]
    return f"PROXY TCP{version} {client} {server} 12345 443\r\n".encode()


def header(client: str, values: bytes = b"") -> bytes:
    """A header of version 2. `values` are the TLVs behind the addresses."""
    address = ipaddress.ip_address(client)
    family = {4: 0x11, 6: 0x21}[address.version]
    block = 2 * address.packed + struct.pack("!HH", 12345, 443) + values
    return SIGNATURE + struct.pack("!BBH", 0x21, family, len(block)) + block


@contextlib.contextmanager
def connect_from(running: Server, source: str, start: bytes = b"") -> Iterator[Connection]:
    """A connection of the client 127.x.y.z that begins with these bytes."""
    address = ("127.0.0.1", running.address[1])
    made = socket.create_connection(address, timeout=LIMIT_S, source_address=(source, 0))
    connection = Connection(made)
    try:
        connection.send(start)
        yield connection
    finally:
        connection.close()


def logged(log: Path, count: int) -> list[dict[str, str]]:
    """The lines of a log in JSON, once there are `count` of them, in the order of their request
    lines. Several threads that serve a connection write their lines in any order."""
    wait_until(lambda: len(log.read_text().splitlines()) >= count, f"{count} lines in {log}")
    lines = [json.loads(text) for text in log.read_text().splitlines()]
    return sorted(lines, key=lambda each: str(each["request"]))


def peers(log: Path, count: int) -> list[str]:
    """The client addresses in a log in JSON, once there are `count` of them."""
    return [each["peer"] for each in logged(log, count)]
