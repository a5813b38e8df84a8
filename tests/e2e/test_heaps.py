# SPDX-License-Identifier: MIT
"""The threads of a worker share a few heaps, so that memory that one freed serves the others."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.running import Process
from tests.e2e.wire import connect

FILES = 64
HEAP_BYTES = 64 << 20  # of address space; glibc aligns each heap but the first to it

pytestmark = pytest.mark.skipif(shutil.which("taskset") is None, reason="there is no taskset")


def further_heaps(worker: Process) -> int:
    """The heaps of glibc beside the first: a part in use, and a part without access behind it."""
    mappings = []
    for line in Path(f"/proc/{worker.pid}/maps").read_text().splitlines():
        span, rights = line.split()[:2]
        start, end = (int(each, 16) for each in span.split("-"))
        mappings.append((start, end, rights))
    return sum(
        rights == "rw-p"
        and following == "---p"
        and start % HEAP_BYTES == 0
        and end == begins
        and ends == start + HEAP_BYTES
        for (start, end, rights), (begins, ends, following) in itertools.pairwise(mappings)
    )


@pytest.mark.parametrize("model", ["pool", "prefork"], scope="session")
def test_the_threads_of_a_worker_with_one_cpu_share_one_heap(
    server: ServerFactory, tmp_path: Path
) -> None:
    folder = tmp_path / "files"
    folder.mkdir(mode=0o755)
    for number in range(FILES):
        (folder / f"{number}.txt").write_text(f"{number}\n" * 1000)
    one_cpu = ("taskset", "-c", str(min(os.sched_getaffinity(0))))
    running = server("--threads", "8", folder=folder, wrapper=one_cpu)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connect(running.address)) for _ in range(FILES)]
        for number, client in enumerate(clients):
            client.send(f"GET /{number}.txt HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        for number, client in enumerate(clients):
            assert client.read().body == f"{number}\n".encode() * 1000
        workers = running.workers()
        assert workers
        assert [further_heaps(worker) for worker in workers] == [0] * len(workers)
