# SPDX-License-Identifier: MIT
"""A file that changes on disk is noticed within a second, and never served as a mixture."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.wire import Answer, Connection, WireError, connect

# The others share the cache as percore does.
pytestmark = pytest.mark.parametrize("model", ["fork", "prefork", "percore"], scope="session")

NOTICED_S = 1.0
POLL_S = 0.005

# Below and above what is kept in memory (--cache-file-max).
SIZES = [100, 100_000, 2_000_000]


def version(number: int, size: int) -> bytes:
    """Content that tells its version in every 16 bytes."""
    return (b"version %07d\n" % number * (size // 16 + 1))[:size]


def write_in_place(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def replace(path: Path, content: bytes) -> None:
    beside = path.with_name(path.name + ".new")
    beside.write_bytes(content)
    beside.rename(path)


def ask(address: tuple[str, int], path: str) -> Answer:
    with connect(address) as connection:
        return connection.get(path)


def having(content: bytes) -> Callable[[Answer], bool]:
    return lambda answer: answer.body == content


def asked_until(
    address: tuple[str, int], path: str, good: Callable[[Answer], bool], *fields: str
) -> float:
    """Asks again and again until the answer is good; how long that took, in seconds.

    An answer that was begun from the old file may be cut short.
    """
    began = time.monotonic()
    while True:
        with connect(address) as connection, contextlib.suppress(WireError, ConnectionResetError):
            while (asked := time.monotonic()) - began < 10 * NOTICED_S:
                if good(connection.get(path, "a", *fields)):
                    return asked - began
                time.sleep(POLL_S)
        assert time.monotonic() - began < 10 * NOTICED_S, "it is not noticed"


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("write", [write_in_place, replace])
def test_a_changed_file_is_noticed(
    server: ServerFactory, site: Path, size: int, write: Callable[[Path, bytes], None]
) -> None:
    path = site / "changing.bin"
    path.write_bytes(version(0, size))
    address = server().address
    tags: set[str] = set()

    def tagged(answer: Answer) -> bool:
        if answer.body == content and (tag := answer.get("ETag")):
            tags.add(tag)
            return True
        return False

    versions = [version(1, size + 1), version(2, size + 1), version(3, size // 2)]
    for content in versions:
        write(path, content)
        assert asked_until(address, "/changing.bin", having(content)) <= NOTICED_S
        # A file that has only just changed may go out without a tag. And where worker processes
        # have a cache each, another one may answer now, which notices a little later.
        assert asked_until(address, "/changing.bin", tagged) <= NOTICED_S
    assert len(tags) == len(versions)


@pytest.mark.parametrize("size", SIZES)
def test_a_truncated_file_is_noticed(server: ServerFactory, site: Path, size: int) -> None:
    path = site / "changing.bin"
    path.write_bytes(version(0, size))
    address = server().address
    ask(address, "/changing.bin")
    os.truncate(path, size // 2)
    content = version(0, size // 2)
    assert asked_until(address, "/changing.bin", having(content)) <= NOTICED_S


@pytest.mark.parametrize("size", SIZES)
def test_a_deleted_file_is_noticed_and_so_is_its_return(
    server: ServerFactory, site: Path, size: int
) -> None:
    path = site / "changing.bin"
    path.write_bytes(version(0, size))
    address = server().address
    ask(address, "/changing.bin")
    path.unlink()
    assert asked_until(address, "/changing.bin", lambda a: a.status == 404) <= NOTICED_S
    path.write_bytes(version(1, size))
    assert asked_until(address, "/changing.bin", lambda a: a.status == 200) <= NOTICED_S


def test_a_new_index_file_is_noticed(server: ServerFactory, site: Path) -> None:
    (site / "sub").mkdir()
    address = server("--listing", "off").address
    assert ask(address, "/sub/").status in (403, 404)
    (site / "sub/index.html").write_text("new\n")
    assert asked_until(address, "/sub/", having(b"new\n")) <= NOTICED_S
    (site / "sub/index.html").unlink()
    assert asked_until(address, "/sub/", lambda a: a.status in (403, 404)) <= NOTICED_S


def test_a_new_stored_coding_is_noticed(server: ServerFactory, site: Path) -> None:
    address = server().address
    assert ask(address, "/hello.txt").body == b"hello\n"
    (site / "hello.txt.gz").write_bytes(b"not really coded")

    def coded(answer: Answer) -> bool:
        return answer.get("Content-Encoding") == "gzip"

    assert asked_until(address, "/hello.txt", coded, "Accept-Encoding: gzip") <= NOTICED_S


class Fetcher(threading.Thread):
    """Fetches one path over and over; keeps which bodies came under which tag."""

    def __init__(self, address: tuple[str, int], path: str) -> None:
        super().__init__()
        self.address = address
        self.path = path
        self.finish = threading.Event()
        self.bodies: dict[str, set[str]] = defaultdict(set)
        self.contents: dict[str, bytes] = {}
        self.cut = 0
        self.wrong: list[str] = []

    def run(self) -> None:
        while not self.finish.is_set() and not self.wrong:
            try:
                self.fetch()
            except (WireError, ConnectionResetError):
                self.cut += 1  # a body cut short, by closing

    def fetch(self) -> None:
        with connect(self.address) as connection:
            while not self.finish.is_set():
                answer = connection.get(self.path)
                if answer.status == 404:
                    continue
                if answer.status != 200:
                    self.wrong.append(f"status {answer.status}")
                    return
                digest = hashlib.sha256(answer.body).hexdigest()
                self.contents[digest] = answer.body
                if tag := answer.get("ETag"):
                    self.bodies[tag].add(digest)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("write", [write_in_place, replace])
def test_no_tag_ever_stands_for_two_bodies(
    server: ServerFactory, site: Path, size: int, write: Callable[[Path, bytes], None]
) -> None:
    path = site / "changing.bin"
    path.write_bytes(version(0, size))
    running = server()
    fetchers = [Fetcher(running.address, "/changing.bin") for _ in range(4)]
    for fetcher in fetchers:
        fetcher.start()
    until = time.monotonic() + 1
    number = 0
    while time.monotonic() < until:
        number += 1
        write(path, version(number, size + number % 3 * 16))
    for fetcher in fetchers:
        fetcher.finish.set()
    for fetcher in fetchers:
        fetcher.join()
    bodies: dict[str, set[str]] = defaultdict(set)
    for fetcher in fetchers:
        assert fetcher.wrong == []
        for tag, digests in fetcher.bodies.items():
            bodies[tag] |= digests
    assert any(fetcher.contents for fetcher in fetchers), "nothing came through"
    # A file that has only just changed may go out without a tag.
    assert [tag for tag, digests in bodies.items() if len(digests) > 1] == []
    if write is replace:
        whole = {body for fetcher in fetchers for body in fetcher.contents.values()}
        mixed = [body for body in whole if body != version(int(body[8:15]), len(body))]
        assert mixed == []


def test_a_file_that_grows_all_the_time_is_sent_whole(server: ServerFactory, site: Path) -> None:
    path = site / "growing.log"
    path.write_bytes(version(0, 200_000))
    address = server().address
    finish = threading.Event()

    def grow() -> None:
        with path.open("ab", buffering=0) as log:
            while not finish.is_set():
                log.write(b"one more line\n")

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        with connect(address) as connection:
            sizes = [len(connection.get("/growing.log").body) for _ in range(100)]
    finally:
        finish.set()
        writer.join()
    assert sizes == sorted(sizes)
    assert sizes[-1] > sizes[0] >= 200_000


def slow_connection(address: tuple[str, int]) -> Connection:
    """One with a receive buffer that holds little."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.settimeout(20)
    made.connect(address)
    return Connection(made)


def test_a_file_truncated_while_it_is_sent_is_never_completed_with_something_else(
    server: ServerFactory, site: Path
) -> None:
    # More than the kernel takes at once: what it has already taken is out of anybody's hands.
    content = version(0, 20_000_000)
    path = site / "big.bin"
    path.write_bytes(content)
    running = server()
    connection = slow_connection(running.address)
    try:
        connection.send(b"GET /big.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        got = [connection.socket.recv(4096)]
        os.truncate(path, 10_000)
        while more := connection.socket.recv(65536):
            got.append(more)
    finally:
        connection.close()
    body = b"".join(got).partition(b"\r\n\r\n")[2]
    assert len(body) < len(content)
    assert ask(running.address, "/hello.txt").status == 200


def test_a_file_replaced_while_it_is_sent_stays_the_old_one(
    server: ServerFactory, site: Path
) -> None:
    path = site / "big.bin"
    content = version(0, 5_000_000)
    path.write_bytes(content)
    running = server()
    connection = slow_connection(running.address)
    try:
        connection.send(b"GET /big.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        got = [connection.socket.recv(4096)]
        replace(path, version(1, 5_000_000))
        while more := connection.socket.recv(65536):
            got.append(more)
    finally:
        connection.close()
    assert b"".join(got).partition(b"\r\n\r\n")[2] == content
