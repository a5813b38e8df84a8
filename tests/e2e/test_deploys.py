# SPDX-License-Identifier: MIT
"""A new release takes the place of the old one: on every model, in the sandbox.

The files of all releases have the same sizes, and the same time, as builds and images give them.
So only the content tells the releases apart.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.http2 import EndedError, StreamResetError, connect2
from tests.e2e.running import Server
from tests.e2e.test_compression import Get, client, every
from tests.e2e.test_reload import wait_until_only
from tests.e2e.test_roots import switch
from tests.e2e.wire import Answer, WireError, connect
from tests.waiting import wait_until

PAGE, SCRIPT, FILM = "/index.html", "/script.js", "/film.bin"
SIZES = {PAGE: 300, SCRIPT: 900, FILM: 300_000}  # the film is above cache-file-max
ENDS = (EndedError, StreamResetError, WireError, ConnectionResetError, BrokenPipeError)
NEVER = "Fri, 01 Jan 2100 00:00:00 GMT"


def content(name: str, path: str) -> bytes:
    return (name.encode() * SIZES[path])[: SIZES[path]]


def release(top: Path, name: str, second: int = 1) -> Path:
    folder = top / name
    folder.mkdir()
    for path in SIZES:
        file = folder / path[1:]
        file.write_bytes(content(name, path))
        os.utime(file, (second, second))
    os.utime(folder, (second, second))
    return folder


def name_of(answer: Answer) -> str:
    """The name of the release that the whole body is of."""
    assert answer.status == 200
    name = answer.body[:3].decode()
    assert answer.body == (name.encode() * len(answer.body))[: len(answer.body)]
    return name


def tags(get: Get, folder: str = "") -> dict[str, str]:
    """The tag of each file. A file that has just changed has none."""
    found: dict[str, str] = {}

    def all_have_one() -> bool:
        for path in SIZES:
            answer = get(folder + path)
            assert answer.get("Last-Modified") is None
            if tag := answer.get("ETag"):
                found[path] = tag
        return len(found) == len(SIZES)

    wait_until(all_have_one, "every file has a tag")
    return found


def check_validators(get: Get, name: str, old: dict[str, str]) -> None:
    new = tags(get)
    for path in SIZES:
        body = content(name, path)
        assert new[path] != old[path]
        stale = get(path, f"If-None-Match: {old[path]}", f"If-Modified-Since: {NEVER}")
        assert (stale.status, stale.body, stale.get("ETag")) == (200, body, new[path])
        assert get(path, f"If-Modified-Since: {NEVER}").status == 200
        assert get(path, f"If-None-Match: {new[path]}").status == 304
        assert get(path, f"If-Match: {old[path]}").status == 412
        part = ("Range: bytes=-10",)
        assert get(path, *part, f"If-Range: {old[path]}").status == 200
        assert get(path, *part, f"If-Range: {NEVER}").status == 200
        rest = get(path, *part, f"If-Range: {new[path]}")
        assert (rest.status, rest.body) == (206, body[-10:])


@pytest.mark.parametrize("second", [1, 315_532_800])
def test_a_release_with_equal_times_and_sizes_has_other_tags(
    server: ServerFactory, tmp_path: Path, second: int
) -> None:
    link = tmp_path / "current"
    link.symlink_to(release(tmp_path, "one", second))
    running = server("--sandbox", "on", "--h2c", "on", folder=link)
    count = len(running.workers())
    with client("HTTP/1.1", running) as get:
        old = tags(get)
    switch(link, release(tmp_path, "two", second))

    def is_new() -> bool:
        with client("HTTP/1.1", running) as get:
            return name_of(get(PAGE)) == "two"

    wait_until(is_new, "the new release is served")
    wait_until_only(running, count)  # an earlier worker closes each connection
    for protocol in ("HTTP/1.1", "HTTP/2"):
        with client(protocol, running) as get:
            check_validators(get, "two", old)


class Visitor:
    """A client that is never idle. It loads the page and then its script, on a connection that it
    keeps for as long as the server does, and then on another one."""

    def __init__(self, running: Server, protocol: str) -> None:
        self.running, self.protocol = running, protocol
        self.held = contextlib.ExitStack()
        self.connections: list[list[str]] = []  # the releases that each has served
        self.get = self.connect()

    def connect(self) -> Callable[[str], Answer]:
        self.held.close()
        self.connections.append([])
        if self.protocol == "HTTP/2":
            return self.held.enter_context(connect2(self.running.address)).get
        return self.held.enter_context(connect(self.running.address)).get

    def load(self) -> list[str]:
        """The releases of the page and its script. A request on a connection that ends is made
        again on a new one."""
        found: list[str] = []
        while len(found) < 2:
            try:
                answer = self.get([PAGE, SCRIPT][len(found)])
            except ENDS:
                self.get = self.connect()
                continue
            found.append(name_of(answer))
            self.connections[-1].append(found[-1])
            if answer.closes:
                self.get = self.connect()
        return found

    def has_left_for(self, name: str) -> Callable[[], bool]:
        return lambda: self.load() == [name, name]


@contextlib.contextmanager
def visitors(running: Server) -> Iterator[list[Visitor]]:
    made = [Visitor(running, protocol) for protocol in ("HTTP/1.1", "HTTP/2") * 2]
    try:
        yield made
    finally:
        for each in made:
            each.held.close()


def test_busy_connections_leave_the_old_release_and_none_mixes_two(
    server: ServerFactory, tmp_path: Path
) -> None:
    link = tmp_path / "current"
    link.symlink_to(release(tmp_path, "one"))
    running = server("--sandbox", "on", "--h2c", "on", folder=link)
    with visitors(running) as crowd:
        for name, last in (("one", "one"), ("two", "one"), ("six", "two")):
            if name != last:
                switch(link, release(tmp_path, name))
            for each in crowd:
                wait_until(each.has_left_for(name), f"{name} is served")
            # Each has seen the release on a connection to its workers, so no answer is older.
            for _ in range(10):
                assert [each.load() for each in crowd] == [[name] * 2] * len(crowd)
        for each in crowd:
            assert all(len(set(served)) <= 1 for served in each.connections)
            served = [name for connection in each.connections for name in connection]
            assert served == sorted(served, key=["one", "two", "six"].index)


def serves_new(get: Get, path: str) -> Callable[[], bool]:
    return lambda: name_of(get(path)) == "two"


def test_a_switched_link_below_the_root_is_followed_for_every_file(
    server: ServerFactory, tmp_path: Path
) -> None:
    top = tmp_path / "top"
    top.mkdir()
    release(top, "one")
    release(top, "two")
    link = top / "current"
    link.symlink_to("one")
    running = server("--sandbox", "on", "--h2c", "on", folder=top)
    with contextlib.ExitStack() as held:
        kept = [
            held.enter_context(client(protocol, running)) for protocol in ("HTTP/1.1", "HTTP/2") * 2
        ]
        old = [tags(get, "/current") for get in kept]
        switch(link, Path("two"))
        for get, before in zip(kept, old, strict=True):
            for path in SIZES:
                wait_until(serves_new(get, f"/current{path}"), f"the new {path} is served")
            for _ in range(10):
                assert [name_of(get(f"/current{path}")) for path in SIZES] == ["two"] * len(SIZES)
            after = tags(get, "/current")
            assert all(after[path] != before[path] for path in SIZES)


@every
def test_a_large_file_is_read_for_its_tag_in_the_background(
    server: ServerFactory, site: Path
) -> None:
    film = site / "film.bin"
    running = server("--sandbox", "on", "--h2c", "on", "--compress", "off")
    seen: list[str] = []
    for body in (b"1" * 3_000_000, b"2" * 3_000_000):
        film.write_bytes(body)
        os.utime(film, (1, 1))
        for protocol in ("HTTP/1.1", "HTTP/2"):
            with client(protocol, running) as get:
                seen.append(tag_in_time(get, body))
                known = get(FILM, f"If-None-Match: {seen[-1]}")
                assert (known.status, known.get("ETag")) == (304, seen[-1])
                part = get(FILM, "Range: bytes=0-0", f"If-Range: {seen[-1]}")
                assert (part.status, part.body) == (206, body[:1])
    assert [seen[0]] * 2 + [seen[2]] * 2 == seen
    assert seen[0] != seen[2]


def tag_in_time(get: Get, body: bytes) -> str:
    """The tag of the film, once it has this body and a tag."""

    def tag() -> str | None:
        answer = get(FILM)
        assert answer.status == 200
        assert answer.get("Last-Modified") is None
        return answer.get("ETag") if answer.body == body else None

    return wait_until(tag, "the film has a tag") or ""


@pytest.mark.parametrize("model", ["fork"])
def test_without_a_lasting_cache_a_large_file_has_no_tag(server: ServerFactory, site: Path) -> None:
    film = site / "film.bin"
    film.write_bytes(bytes(3_000_000))
    os.utime(film, (1, 1))
    with client("HTTP/1.1", server()) as get:
        for _ in range(3):
            answer = get(FILM)
            assert (answer.status, len(answer.body)) == (200, 3_000_000)
            assert (answer.get("ETag"), answer.get("Last-Modified")) == (None, None)
            assert get(FILM, f"If-Modified-Since: {NEVER}").status == 200
