# SPDX-License-Identifier: MIT
"""A disk that answers late, or not at all, delays only the clients that ask for its files.

The disk is a file system of ours (bench/slowdisk.py), which holds what the test
holds. No test waits for a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.slowdisk import SlowDisk, SlowDiskError
from tests.e2e.conftest import ServerFactory
from tests.e2e.running import Server
from tests.e2e.wire import connect

COLD = b"a small file\n"
MODELS = ["fork", "thread", "pool", "prefork", "epoll", "percore", "uring"]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SlowDisk]:
    source, mountpoint = tmp_path / "source", tmp_path / "disk"
    source.mkdir()
    mountpoint.mkdir()
    for number in range(4):
        (source / f"cold-{number}.txt").write_bytes(COLD)
    try:
        mounted = SlowDisk.mount(source, mountpoint)
    except SlowDiskError as reason:
        pytest.skip(str(reason))
    yield mounted
    mounted.end()


@pytest.fixture
def on_disk(disk: SlowDisk, site: Path, server: ServerFactory, tmp_path: Path) -> Server:
    """A server with two sites: `slow` on the slow disk, and every other name on a fast one."""
    settings = tmp_path / "weir.conf"
    settings.write_text(
        f"[site fast]\nroot = {site}\n\n[site slow]\nroot = {disk.root}\nhost = slow\n"
    )
    return server("-c", str(settings), folder=None, wrapper=disk.inside)


@pytest.mark.parametrize("model", MODELS)
def test_other_clients_are_served_while_the_disk_hangs(disk: SlowDisk, on_disk: Server) -> None:
    disk.hold()
    with connect(on_disk.address) as waiting, connect(on_disk.address) as other:
        waiting.send(b"GET /cold-0.txt HTTP/1.1\r\nHost: slow\r\n\r\n")
        disk.wait_held("LOOKUP", "cold-0.txt")
        for _ in range(3):
            assert other.get("/hello.txt").body == b"hello\n"
        disk.release()
        assert waiting.read().body == COLD
