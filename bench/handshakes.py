# SPDX-License-Identifier: MIT
"""Watches real handshakes of TLS 1.3 between a load generator and a server.

A relay copies the bytes of each connection and reads the ServerHello, which is not encrypted. It
names the version, the cipher suite, the group of the key exchange, and whether a session is
resumed (RFC 8446, section 4.1.3). So the answer needs no help of the client or the server.
"""

import selectors
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench import process
from bench.certificate import GROUP, PROTOCOL, SUITE
from bench.process import BenchError
from bench.scenarios import FULL, RESUMED, Scenario

HANDSHAKE_RECORD = 22
RECORD_HEADER_BYTES = 5
SERVER_HELLO = 2
SUPPORTED_VERSIONS, KEY_SHARE, PRE_SHARED_KEY = 43, 51, 41
VERSIONS = {0x0303: "TLSv1.2", 0x0304: PROTOCOL}
SUITE_NAMES = {0x1301: SUITE, 0x1302: "TLS_AES_256_GCM_SHA384", 0x1303: "TLS_CHACHA20_POLY1305"}
GROUP_NAMES = {0x001D: GROUP, 0x0017: "P-256", 0x0018: "P-384"}
RETRY = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")

RESUMED_SHARE = 0.95  # of the handshakes that can be resumed


@dataclass(frozen=True, kw_only=True)
class Hello:
    """The choices of a server."""

    version: str
    suite: str
    group: str
    is_resumed: bool


@dataclass(frozen=True, kw_only=True)
class Handshakes:
    """The handshakes of a load. All have the protocol, suite and group that are measured."""

    count: int
    resumed: int
    resumable: int  # without the first one of each of the generator's connections

    @property
    def are_resumed(self) -> bool:
        """Whether nearly all of those that could resume a session do so."""
        return self.resumed >= RESUMED_SHARE * self.resumable


def _name(names: Mapping[int, str], value: int) -> str:
    return names.get(value, f"0x{value:04x}")


def _extensions(data: bytes) -> dict[int, bytes]:
    """The extensions of a ServerHello, by their type."""
    found, at = {}, 0
    while at + 4 <= len(data):
        kind, size = (int.from_bytes(data[at + i : at + i + 2]) for i in (0, 2))
        found[kind] = data[at + 4 : at + 4 + size]
        at += 4 + size
    return found


def server_hello(data: bytes) -> Hello | None:
    """Reads the first record of a server. None: it is not complete yet.

    Raises:
        BenchError: it is something else, or requests another ClientHello.
    """
    if len(data) < RECORD_HEADER_BYTES:
        return None
    end = RECORD_HEADER_BYTES + int.from_bytes(data[3:5])
    if data[0] != HANDSHAKE_RECORD:
        raise BenchError(f"the server answers a ClientHello with {data[:16].hex()}")
    if len(data) < end:
        return None
    body = data[RECORD_HEADER_BYTES + 4 : end]
    if data[RECORD_HEADER_BYTES] != SERVER_HELLO or len(body) < 35:
        raise BenchError(f"the server begins with no ServerHello: {data[:16].hex()}")
    if body[2:34] == RETRY:
        raise BenchError("the server requests another key share")
    at = 35 + body[34]  # behind the session id
    suite = int.from_bytes(body[at : at + 2])
    extensions = _extensions(body[at + 5 :])
    version = extensions.get(SUPPORTED_VERSIONS, body[:2])
    return Hello(
        version=_name(VERSIONS, int.from_bytes(version)),
        suite=_name(SUITE_NAMES, suite),
        group=_name(GROUP_NAMES, int.from_bytes(extensions.get(KEY_SHARE, b"")[:2])),
        is_resumed=PRE_SHARED_KEY in extensions,
    )


class _Relay:
    """One connection of the client, and the connection to the server that belongs to it."""

    def __init__(self, client: socket.socket, port: int) -> None:
        self.client = client
        self.server = socket.create_connection(("127.0.0.1", port))
        self.reading = {self.client, self.server}
        self.has_request = False  # wrk also connects once without sending anything
        self.begin = b""  # of the server's bytes
        self.hello: Hello | None = None
        for each in self.reading:
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def copy(self, source: socket.socket) -> set[socket.socket]:
        """Copies what has come from the source. Returns the sockets that are at their end."""
        target = self.server if source is self.client else self.client
        try:
            data = source.recv(1 << 16)
            if source is self.client:
                self.has_request |= bool(data)
            elif self.has_request and self.hello is None and data:
                self.begin += data
                self.hello = server_hello(self.begin)
            if data:
                target.sendall(data)
                return set()
            target.shutdown(socket.SHUT_WR)
        except OSError:  # one of the two connections is gone
            return set(self.reading)
        return {source}

    def close(self) -> None:
        """Closes both connections."""
        self.client.close()
        self.server.close()


def _serve(listener: socket.socket, port: int, goes_on: Callable[[], bool]) -> list[_Relay]:
    """Relays every connection to the listener until `goes_on` is false."""
    relays: list[_Relay] = []
    with selectors.DefaultSelector() as selector:
        selector.register(listener, selectors.EVENT_READ)

        def step(source: socket.socket, relay: _Relay | None) -> None:
            if relay is None:
                relay = _Relay(listener.accept()[0], port)
                relays.append(relay)
                for each in relay.reading:
                    selector.register(each, selectors.EVENT_READ, relay)
            elif source in relay.reading:
                ended = relay.copy(source)
                for each in ended:
                    selector.unregister(each)
                relay.reading -= ended
                if not relay.reading:
                    relay.close()

        try:
            while goes_on():
                for key, _ in selector.select(0.05):
                    assert isinstance(key.fileobj, socket.socket)
                    step(key.fileobj, key.data)
        finally:
            for relay in relays:
                relay.close()
    return relays


def observe(
    port: int,
    command: Callable[[int], list[str]],
    *,
    env: Mapping[str, str] | None,
    cpu: int,
    log: Path,
    within_s: float,
) -> list[Hello]:
    """Runs a load generator through the relay. `command` makes its arguments for a port.

    Raises:
        BenchError: the generator does not end, or a handshake is not one of TLS.
    """
    log.unlink(missing_ok=True)
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        argv = command(listener.getsockname()[1])
        client = process.start(argv, cpu=cpu, log=log, env=env)
        end = time.monotonic() + within_s

        def goes_on() -> bool:
            if time.monotonic() > end:
                raise BenchError(f"{argv[0]} did not end within {within_s:.0f} s")
            return client.poll() is None

        try:
            relays = _serve(listener, port, goes_on)
        finally:
            process.stop(client)
    return [relay.hello for relay in relays if relay.hello]


def check(seen: list[Hello], scenario: Scenario) -> Handshakes:
    """Checks the handshakes of the scenario, and counts them.

    Raises:
        BenchError: it is not.
    """
    expected = (PROTOCOL, SUITE, GROUP)
    for hello in seen:
        if (hello.version, hello.suite, hello.group) != expected:
            raise BenchError(f"not {' '.join(expected)} but {hello}")
    if not seen:
        raise BenchError("no handshake was seen")
    resumed = sum(hello.is_resumed for hello in seen)
    if scenario.handshake == FULL and resumed:
        raise BenchError(f"{resumed} of {len(seen)} handshakes resume a session")
    if scenario.handshake == RESUMED and not resumed:
        raise BenchError(f"none of {len(seen)} handshakes resumes a session")
    return Handshakes(
        count=len(seen), resumed=resumed, resumable=max(0, len(seen) - scenario.connections)
    )
