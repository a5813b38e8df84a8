# SPDX-License-Identifier: MIT
"""The requests for many files are drawn by a seed, and answers that fill a cache are checked."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from bench import many
from bench.http1 import request_bytes
from bench.process import BenchError
from bench.scenarios import Many, Scenario

SITE = Many(folder="site", files=250, size=10, asked=250)


def test_requests_are_the_same_each_time() -> None:
    assert many.draw(SITE, 1000) == many.draw(SITE, 1000)


def test_all_files_are_asked_for_alike() -> None:
    counts = Counter(many.draw(SITE, 25_000))
    assert len(counts) == SITE.files
    assert max(counts.values()) < 4 * min(counts.values())


def test_zipf_asks_for_the_second_file_half_as_often_as_for_the_first() -> None:
    site = Many(folder="site", files=250, size=10, asked=250, zipf=1.0)
    (_, first), (_, second), *_ = Counter(many.draw(site, 100_000)).most_common()
    assert 0.4 < second / first < 0.6


def test_the_files_that_are_asked_for_are_spread_over_the_site() -> None:
    site = Many(folder="site", files=250, size=10, asked=25)
    assert many.asked_for(site) == list(range(0, 250, 10))
    assert set(many.draw(site, 1000)) <= set(range(0, 250, 10))


@pytest.mark.parametrize("links", [False, True])
def test_each_requested_path_is_a_file(tmp_path: Path, *, links: bool) -> None:
    site = Many(folder="site", files=250, size=10, asked=250, links=links)
    scenario = Scenario(name="all", what="", many=site)
    prepared = many.prepare(scenario, tmp_path, tmp_path)
    assert prepared.listed is not None
    paths = prepared.listed.read_text().split()
    assert len(paths) == many.DRAWS
    assert all((tmp_path / path[1:]).stat().st_size == 10 for path in set(paths))
    assert len(list((tmp_path / "site").iterdir())) == 3
    inodes = {path.stat().st_ino for path in (tmp_path / "site").glob("*/*")}
    assert len(inodes) == (1 if links else 250)


def test_a_round_begins_with_other_requests_than_the_warm_up() -> None:
    scenario = Scenario(name="all", what="", many=SITE)
    assert (scenario.start, many.measured(scenario).start) == (0, many.DRAWS // 2)


@contextmanager
def server(answer: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """Sends the answer for each request. The list gets all that it receives."""
    received: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))
    end = request_bytes("/")[-4:]

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, suppress(OSError):  # the client may close first
                tail = b""
                while data := connection.recv(1 << 16):
                    received.append(data)
                    tail += data
                    connection.sendall(answer * tail.count(end))
                    tail = tail[tail.rfind(end) + len(end) :] if end in tail else tail

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1], received
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
        listener.close()


def test_filling_requests_each_file_once() -> None:
    with server(b"A" * 100) as (port, received):
        assert many.fill(port, many.filled(SITE), 100) == 250
    lines = [line for line in b"".join(received).split(b"\r\n") if line.startswith(b"GET ")]
    assert lines == [f"GET {many.path_of(SITE, n)} HTTP/1.1".encode() for n in range(250)]


def test_an_answer_of_another_size_is_an_error() -> None:
    with server(b"A" * 101) as (port, _), pytest.raises(BenchError, match="not one of a file"):
        many.fill(port, many.filled(SITE), 100)
