# SPDX-License-Identifier: MIT
"""A disk that answers late, or not at all, delays only the clients that ask for its files.

The disk is a file system of ours (bench/slowdisk.py), which holds what the test
holds. No test waits for a time.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.slowdisk import SlowDisk, SlowDiskError
from tests.e2e.certificates import Pair, secure, trusting
from tests.e2e.conftest import ServerFactory
from tests.e2e.http2 import Client, connect2
from tests.e2e.running import Server
from tests.e2e.statistics import weir_stats
from tests.e2e.test_reload import reload
from tests.e2e.test_upgrade import upgrade, wait_for_end
from tests.e2e.wire import Connection, connect

COLD = b"a small file\n"
MIB = 1 << 20
LARGE = b"".join(number.to_bytes(4, "big") for number in range(5 * MIB // 4)) + b"the end"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SlowDisk]:
    source, mountpoint = tmp_path / "source", tmp_path / "disk"
    source.mkdir()
    mountpoint.mkdir()
    for number in range(4):
        (source / f"cold-{number}.txt").write_bytes(COLD)
        (source / f"large-{number}.bin").write_bytes(LARGE)
    try:
        mounted = SlowDisk.mount(source, mountpoint)
    except SlowDiskError as reason:
        pytest.skip(str(reason))
    yield mounted
    mounted.end()


@pytest.fixture
def on_disk(
    disk: SlowDisk, site: Path, server: ServerFactory, tmp_path: Path, pair: Pair
) -> Server:
    """A server with two sites: `localhost` on the slow disk, every other name on a fast one. It
    speaks plain HTTP at its first address, and TLS at the second one."""
    settings = tmp_path / "weir.conf"
    settings.write_text(
        "[server]\nh2c = on\ndrain-timeout = 2s\nkill-timeout = 10s\n"
        f"[site fast]\nroot = {site}\n{pair.settings()}\n"
        f"[site slow]\nroot = {disk.root}\nhost = localhost\n{pair.settings()}"
    )
    listen = ("127.0.0.1:0", "https://127.0.0.1:0")
    return server("-c", str(settings), folder=None, wrapper=disk.inside, listen=listen)


# ---- a client of each protocol ----

Get = Callable[[str, str], bytes]


class Asker:
    """A connection of any protocol, on which a request is sent, and its body is read later."""

    def __init__(self, send: Callable[[str], None], read: Callable[[], bytes]) -> None:
        self.send, self.read = send, read


@contextlib.contextmanager
def plain(running: Server, _: Pair) -> Iterator[Asker]:
    with connect(running.address) as to:
        yield Asker(lambda path: to.send(head(path)), lambda: to.read().body)


@contextlib.contextmanager
def over_tls(running: Server, pair: Pair) -> Iterator[Asker]:
    with secure(tls_address(running), trusting(pair)) as to:
        yield Asker(lambda path: to.send(head(path)), lambda: to.read().body)


@contextlib.contextmanager
def over_http2(running: Server, _: Pair) -> Iterator[Asker]:
    with connect2(running.address) as client:
        yield streams_of(client)


@contextlib.contextmanager
def over_http2_and_tls(running: Server, pair: Pair) -> Iterator[Asker]:
    context = trusting(pair)
    context.set_alpn_protocols(["h2"])
    with secure(tls_address(running), context) as to:
        yield streams_of(Client(to))


def head(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def tls_address(running: Server) -> tuple[str, int]:
    (url,) = [each for each in running.urls if each.startswith("https:")]
    return "127.0.0.1", int(url.rstrip("/").rpartition(":")[2])


def streams_of(client: Client) -> Asker:
    sent: list[int] = []
    return Asker(
        lambda path: sent.append(client.ask(path, authority=b"localhost")),
        lambda: client.answer(sent.pop(0)).body,
    )


PROTOCOLS = {
    "http1": plain,
    "tls": over_tls,
    "http2": over_http2,
    "http2-tls": over_http2_and_tls,
}
every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS)


# ---- a file that is not known ----


@every_protocol
def test_other_clients_are_served_while_the_disk_hangs(
    protocol: str, disk: SlowDisk, on_disk: Server, pair: Pair
) -> None:
    disk.hold()
    with PROTOCOLS[protocol](on_disk, pair) as waiting, connect(on_disk.address) as other:
        waiting.send("/cold-0.txt")
        disk.wait_held("LOOKUP", "cold-0.txt")
        for _ in range(3):
            assert other.get("/hello.txt").body == b"hello\n"
        disk.release()
        assert waiting.read() == COLD


# ---- the pages of a large file ----


@every_protocol
def test_other_clients_are_served_while_pages_of_a_large_file_are_read(
    protocol: str, disk: SlowDisk, on_disk: Server, pair: Pair
) -> None:
    with connect(on_disk.address) as first:
        first.send(b"HEAD /large-0.bin HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert first.read(bodiless=True).status == 200
    disk.hold()
    with PROTOCOLS[protocol](on_disk, pair) as waiting, connect(on_disk.address) as other:
        waiting.send("/large-0.bin")
        disk.wait_held("READ", "large-0.bin")
        for _ in range(3):
            assert other.get("/hello.txt").body == b"hello\n"
        disk.release()
        assert waiting.read() == LARGE


# ---- the operator's work ----


@contextlib.contextmanager
def hanging(disk: SlowDisk, running: Server) -> Iterator[Connection]:
    """A connection whose answer waits for a page that the disk does not return."""
    with connect(running.address) as first:
        first.send(b"HEAD /large-1.bin HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert first.read(bodiless=True).status == 200
    disk.hold()
    with connect(running.address) as waiting:
        waiting.send(head("/large-1.bin"))
        disk.wait_held("READ", "large-1.bin")
        yield waiting


def test_a_stop_ends_while_the_disk_hangs(disk: SlowDisk, on_disk: Server) -> None:
    with hanging(disk, on_disk):
        on_disk.stop()
    disk.release()


def test_statistics_are_read_while_the_disk_hangs(disk: SlowDisk, on_disk: Server) -> None:
    with hanging(disk, on_disk) as waiting:
        assert weir_stats("--json", str(on_disk.popen.pid)).returncode == 0
        disk.release()
        assert waiting.read().body == LARGE


def test_a_client_that_stops_sending_gets_its_file(disk: SlowDisk, on_disk: Server) -> None:
    disk.hold()
    with connect(on_disk.address) as one, connect2(on_disk.address) as two:
        one.send(head("/cold-0.txt"))
        stream = two.ask("/cold-1.txt", authority=b"localhost")
        for name in ("cold-0.txt", "cold-1.txt"):
            disk.wait_held("LOOKUP", name)
        two.acknowledge = two.refund = False
        one.end_sending()
        two.connection.end_sending()
        disk.release()
        assert one.read().body == COLD
        assert two.answer(stream).body == COLD


def test_a_reload_serves_while_the_disk_hangs(disk: SlowDisk, on_disk: Server) -> None:
    with hanging(disk, on_disk):
        good, text = reload(on_disk)
        assert good, text
        with connect(on_disk.address) as other:
            assert other.get("/hello.txt").body == b"hello\n"
        disk.release()


def test_an_upgrade_serves_while_the_disk_hangs(disk: SlowDisk, on_disk: Server) -> None:
    with hanging(disk, on_disk):
        master = upgrade(on_disk)
        try:
            with connect(on_disk.address) as other:
                assert other.get("/hello.txt").body == b"hello\n"
        finally:
            seen = [master, *master.descendants()]
            os.kill(master.pid, signal.SIGTERM)
            wait_for_end(seen)


def test_a_client_may_leave_while_the_disk_hangs(disk: SlowDisk, on_disk: Server) -> None:
    with hanging(disk, on_disk):
        pass
    disk.release()
    with connect(on_disk.address) as other:
        other.send(head("/large-1.bin"))
        assert other.read().body == LARGE
