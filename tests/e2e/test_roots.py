# SPDX-License-Identifier: MIT
"""A site folder that is replaced, as a deployment does it: seen by every model, in the sandbox."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.running import RUNTIME, WEIR, Server
from tests.e2e.statistics import wait_for
from tests.e2e.wire import connect
from tests.waiting import wait_until


def release(top: Path, name: str) -> Path:
    folder = top / name
    folder.mkdir()
    (folder / "page.txt").write_text(f"{name}\n")
    return folder


def switch(link: Path, target: Path) -> None:
    """Renames a new link over the old one, so that the name always has a folder."""
    fresh = link.with_name("fresh")
    fresh.symlink_to(target)
    fresh.rename(link)


class Reader:
    """Requests the page on one connection after the other, and counts the answers."""

    def __init__(self, running: Server) -> None:
        self.running = running
        self.answers = 0

    def read(self) -> bytes:
        with connect(self.running.address) as client:
            answer = client.get("/page.txt")
        self.answers += 1
        return answer.body if answer.status == 200 else b""

    def reads(self, expected: bytes) -> Callable[[], bool]:
        return lambda: self.read() == expected


def counted(running: Server) -> int:
    command = [str(WEIR), "stats", "--json", str(running.popen.pid)]
    read = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(json.loads(read.stdout)["counters"]["requests"])


def test_a_switched_link_is_followed_and_no_request_is_lost(
    server: ServerFactory, tmp_path: Path
) -> None:
    link = tmp_path / "current"
    link.symlink_to(release(tmp_path, "one"))
    running = server("--sandbox", "on", folder=link)
    count = len(running.workers())
    reader = Reader(running)
    assert reader.read() == b"one\n"
    for name in ("two", "three"):
        switch(link, release(tmp_path, name))
        wait_until(reader.reads(f"{name}\n".encode()), f"release {name} is served")
    wait_until(lambda: len(running.workers()) == count, "the earlier generations have ended")
    before = running.workers()
    switch(link, tmp_path / "three")
    assert reader.read() == b"three\n"
    assert running.workers() == before, "the same folder under another link changes nothing"
    wait_until(lambda: counted(running) == reader.answers, "every answer is counted")


def test_a_root_that_is_deleted_and_made_again_is_served(
    server: ServerFactory, tmp_path: Path
) -> None:
    root = release(tmp_path, "root")
    reader = Reader(server("--sandbox", "on", folder=root))
    assert reader.read() == b"root\n"
    shutil.rmtree(root)
    wait_until(reader.reads(b""), "the page is gone")
    release(tmp_path, "root")
    wait_until(reader.reads(b"root\n"), "the page is back")


@pytest.mark.parametrize("model", ["percore", "fork"])
def test_a_root_that_is_gone_is_a_verdict_and_one_line(
    server: ServerFactory, tmp_path: Path
) -> None:
    root, aside = release(tmp_path, "root"), tmp_path / "aside"
    running = server(folder=root)

    def wait_until_gone(count: int) -> list[str]:
        numbers = wait_for(running, lambda now: now["gauges"]["folders_gone"] == count)
        return [verdict["rule"] for verdict in numbers["verdicts"]]

    assert "folder-gone" not in wait_until_gone(0)
    for _ in range(2):
        root.rename(aside)
        assert "folder-gone" in wait_until_gone(1)
        assert Reader(running).read() == b"root\n", "a renamed folder is not served"
        aside.rename(root)
        assert "folder-gone" not in wait_until_gone(0)
    assert Reader(running).read() == b"root\n"
    shutil.rmtree(root)
    wait_until_gone(1)
    wait_until(Reader(running).reads(b""), "404 for the deleted file")
    release(tmp_path, "root")
    wait_until_gone(0)
    messages = running.messages()
    assert messages.count(f"the folder {root} is gone") == 3
    assert messages.count(f"the folder {root} is back") == 2
    assert messages.count("the replaced folder is served") == 1


@pytest.mark.parametrize("model", ["percore"])
def test_a_folder_of_error_pages_is_followed(
    server: ServerFactory, site: Path, tmp_path: Path
) -> None:
    def pages(name: str) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "404.html").write_text(name)
        return folder

    link = tmp_path / "errors"
    link.symlink_to(pages("old"))
    running = server("--sandbox", "on", "--error-pages", str(link), folder=site)

    def body() -> bytes:
        with connect(running.address) as client:
            return client.get("/missing").body

    assert body() == b"old"
    switch(link, pages("new"))
    wait_until(lambda: body() == b"new", "the new page is served")


@pytest.mark.parametrize("model", ["percore"])
def test_a_reload_after_the_switch_works(server: ServerFactory, tmp_path: Path) -> None:
    """Both generations have the same configuration, which is freed with the last."""
    link = tmp_path / "current"
    link.symlink_to(release(tmp_path, "one"))
    running = server("--sandbox", "on", folder=link)
    reader = Reader(running)
    switch(link, release(tmp_path, "two"))
    wait_until(reader.reads(b"two\n"), "release two is served")
    done = subprocess.run(
        [str(WEIR), "reload", str(running.popen.pid)],
        env={"RUNTIME_DIRECTORY": str(RUNTIME)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert reader.read() == b"two\n"
