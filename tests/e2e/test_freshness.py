# SPDX-License-Identifier: MIT
"""A change of a file on disk is noticed, and no answer is a mixture of two versions.

`make bench CLAIMS=1` measures how soon a change is noticed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.wire import Answer, Connection, WireError, connect
from tests.waiting import wait_until

# The other models share the cache in the same way as percore.
pytestmark = pytest.mark.parametrize("model", ["fork", "prefork", "percore"], scope="session")

# Bytes: below and above the size that the cache keeps in memory (--cache-file-max).
SIZES = [100, 100_000, 2_000_000]

VERSIONS = 30
ANSWERS = 20  # to each client
RACES = 40


def version(number: int, size: int) -> bytes:
    """Content that names its version in every 16 bytes."""
    return (b"version %07d\n" % number * (size // 16 + 1))[:size]


def write_in_place(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def replace(path: Path, content: bytes) -> None:
    beside = path.with_name(path.name + ".new")
    beside.write_bytes(content)
    beside.rename(path)


def ask(address: tuple[str, int], path: str, *fields: str) -> Answer:
    with connect(address) as connection:
        return connection.get(path, "a", *fields)


def having(content: bytes) -> Callable[[Answer], bool]:
    return lambda answer: answer.body == content


def having_size(size: int) -> Callable[[Answer], bool]:
    return lambda answer: len(answer.body) == size


def wait_for_answer(
    address: tuple[str, int], path: str, good: Callable[[Answer], bool], *fields: str
) -> None:
    """Requests the path until the answer is good.

    An answer that began with the old file may be cut short.
    """

    def answered() -> bool:
        with contextlib.suppress(WireError, ConnectionResetError):
            return good(ask(address, path, *fields))
        return False

    wait_until(answered, f"the change of {path} is noticed")


def make_files(site: Path) -> dict[str, int]:
    """Makes a file of each size; returns the sizes by name."""
    sizes = {f"{size}.bin": size for size in SIZES}
    for name, size in sizes.items():
        (site / name).write_bytes(version(0, size))
    return sizes


@pytest.mark.parametrize("write", [write_in_place, replace])
def test_a_changed_file_is_noticed(
    server: ServerFactory, site: Path, write: Callable[[Path, bytes], None]
) -> None:
    sizes = make_files(site)
    address = server().address
    tags: dict[str, set[str]] = {name: set() for name in sizes}

    def has_a_tag(name: str, content: bytes) -> Callable[[Answer], bool]:
        def good(answer: Answer) -> bool:
            if answer.body == content and (tag := answer.get("ETag")):
                tags[name].add(tag)
                return True
            return False

        return good

    for number in (1, 2, 3):
        contents = {
            name: version(number, size // 2 if number == 3 else size + 1)
            for name, size in sizes.items()
        }
        for name, content in contents.items():
            write(site / name, content)
        for name, content in contents.items():
            wait_for_answer(address, f"/{name}", having(content))
        # The answer has no tag while the file has only just changed. And where worker processes
        # have a cache each, another worker may notice the change later.
        for name, content in contents.items():
            wait_for_answer(address, f"/{name}", has_a_tag(name, content))
    assert [len(seen) for seen in tags.values()] == [3] * len(tags)


def test_a_truncated_file_is_noticed(server: ServerFactory, site: Path) -> None:
    sizes = make_files(site)
    address = server().address
    for name in sizes:
        ask(address, f"/{name}")
    for name, size in sizes.items():
        os.truncate(site / name, size // 2)
    for name, size in sizes.items():
        wait_for_answer(address, f"/{name}", having(version(0, size // 2)))


def test_a_deleted_file_is_noticed_and_so_is_its_return(server: ServerFactory, site: Path) -> None:
    sizes = make_files(site)
    address = server().address
    for name in sizes:
        ask(address, f"/{name}")
    for name in sizes:
        (site / name).unlink()
    for name in sizes:
        wait_for_answer(address, f"/{name}", lambda answer: answer.status == 404)
    for name, size in sizes.items():
        (site / name).write_bytes(version(1, size))
    for name in sizes:
        wait_for_answer(address, f"/{name}", lambda answer: answer.status == 200)


def test_a_created_file_is_never_answered_404(server: ServerFactory, site: Path) -> None:
    address = server().address
    current = ["/race.txt"]
    stop = threading.Event()

    def ask_on() -> None:
        with connect(address) as connection:
            while not stop.is_set():
                connection.get(current[0], "a")

    with contextlib.ExitStack() as stack:
        connection = stack.enter_context(connect(address))
        for _ in range(2):
            asking = threading.Thread(target=ask_on)
            asking.start()
            stack.callback(asking.join)
        stack.callback(stop.set)
        for number in range(RACES):
            current[0] = f"/race{number}.txt"
            for _ in range(3):
                assert connection.get(current[0], "a").status == 404
            replace(site / current[0][1:], b"here")
            answer = connection.get(current[0], "a")
            assert (answer.status, answer.body) == (200, b"here")


def test_a_new_index_file_is_noticed(server: ServerFactory, site: Path) -> None:
    (site / "sub").mkdir()
    address = server("--listing", "off").address
    assert ask(address, "/sub/").status in (403, 404)
    (site / "sub/index.html").write_text("new\n")
    wait_for_answer(address, "/sub/", having(b"new\n"))
    (site / "sub/index.html").unlink()
    wait_for_answer(address, "/sub/", lambda answer: answer.status in (403, 404))


def test_a_new_stored_coding_is_noticed(server: ServerFactory, site: Path) -> None:
    address = server().address
    assert ask(address, "/hello.txt").body == b"hello\n"
    (site / "hello.txt.gz").write_bytes(b"not really coded")

    def coded(answer: Answer) -> bool:
        return answer.get("Content-Encoding") == "gzip"

    wait_for_answer(address, "/hello.txt", coded, "Accept-Encoding: gzip")


class Fetcher(threading.Thread):
    """Requests one path over and over, and records which bodies came with which tag."""

    def __init__(self, address: tuple[str, int], path: str) -> None:
        super().__init__()
        self.address = address
        self.path = path
        self.finish = threading.Event()
        self.bodies: dict[str, set[str]] = defaultdict(set)
        self.contents: dict[str, bytes] = {}
        self.answers = 0
        self.wrong: list[str] = []

    def run(self) -> None:
        while not self.finish.is_set() and not self.wrong:
            with contextlib.suppress(WireError, ConnectionResetError):  # a body that is cut short
                self.fetch()

    def fetch(self) -> None:
        with connect(self.address) as connection:
            while not self.finish.is_set():
                answer = connection.get(self.path)
                self.answers += 1
                if answer.status == 404:
                    continue
                if answer.status != 200:
                    self.wrong.append(f"status {answer.status}")
                    return
                digest = hashlib.sha256(answer.body).hexdigest()
                self.contents[digest] = answer.body
                if tag := answer.get("ETag"):
                    self.bodies[tag].add(digest)


def make_versions(
    site: Path, write: Callable[[Path, bytes], None], fetchers: list[Fetcher]
) -> dict[str, bytes]:
    """Changes every file while the fetchers read them; returns the last versions."""
    last: dict[str, bytes] = {}
    number = 0

    def enough() -> bool:
        nonlocal number
        number += 1
        for size in SIZES:
            last[f"{size}.bin"] = version(number, size + number % 3 * 16)
            write(site / f"{size}.bin", last[f"{size}.bin"])
        return number >= VERSIONS and all(each.answers >= ANSWERS for each in fetchers)

    wait_until(enough, lambda: f"answers: {[each.answers for each in fetchers]}")
    return last


@pytest.mark.parametrize("write", [write_in_place, replace])
def test_one_tag_never_names_two_bodies(
    server: ServerFactory, site: Path, write: Callable[[Path, bytes], None]
) -> None:
    sizes = make_files(site)
    running = server()
    fetchers = [Fetcher(running.address, f"/{name}") for name in sizes for _ in range(2)]
    for fetcher in fetchers:
        fetcher.start()
    try:
        last = make_versions(site, write, fetchers)
        for name, content in last.items():
            wait_for_answer(running.address, f"/{name}", having(content))
        # The answer has no tag while the file has only just changed.
        wait_until(lambda: all(fetcher.bodies for fetcher in fetchers), "every client has a tag")
    finally:
        for fetcher in fetchers:
            fetcher.finish.set()
        for fetcher in fetchers:
            fetcher.join()
    bodies: dict[tuple[str, str], set[str]] = defaultdict(set)
    for fetcher in fetchers:
        assert fetcher.wrong == []
        for tag, digests in fetcher.bodies.items():
            bodies[fetcher.path, tag] |= digests
    assert [tag for tag, digests in bodies.items() if len(digests) > 1] == []
    if write is replace:
        whole = {body for fetcher in fetchers for body in fetcher.contents.values()}
        mixed = [body for body in whole if body != version(int(body[8:15]), len(body))]
        assert mixed == []


def test_a_file_that_grows_during_a_download_is_sent_as_announced(
    server: ServerFactory, site: Path
) -> None:
    path = site / "growing.log"
    # Larger than the kernel's buffers, so that the server checks the file after it has grown.
    path.write_bytes(version(0, 20_000_000))
    address = server().address
    with path.open("ab", buffering=0) as log:
        for _ in range(3):
            size = path.stat().st_size
            connection = Connection.to(address, receive_buffer=4096)
            try:
                connection.send(
                    b"GET /growing.log HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
                )
                connection.data = connection.socket.recv(4096)
                log.write(b"one more line\n" * 100)
                answer = connection.read()
            finally:
                connection.close()
            assert len(answer.body) in (size, size - 1400)  # the cache may be half a second old
            wait_for_answer(address, "/growing.log", having_size(size + 1400))


def test_a_file_truncated_during_a_download_is_not_filled_up(
    server: ServerFactory, site: Path
) -> None:
    # Larger than the kernel's buffers: bytes that are in them are sent in any case.
    content = version(0, 20_000_000)
    path = site / "big.bin"
    path.write_bytes(content)
    running = server()
    connection = Connection.to(running.address, receive_buffer=4096)
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


def test_a_download_continues_with_the_old_file_after_a_replacement(
    server: ServerFactory, site: Path
) -> None:
    path = site / "big.bin"
    content = version(0, 5_000_000)
    path.write_bytes(content)
    running = server()
    connection = Connection.to(running.address, receive_buffer=4096)
    try:
        connection.send(b"GET /big.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        got = [connection.socket.recv(4096)]
        replace(path, version(1, 5_000_000))
        while more := connection.socket.recv(65536):
            got.append(more)
    finally:
        connection.close()
    assert b"".join(got).partition(b"\r\n\r\n")[2] == content
