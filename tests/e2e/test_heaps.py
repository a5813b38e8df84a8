# SPDX-License-Identifier: MIT
"""The memory of threads: they share a few heaps, so that memory that one freed serves the others,
and the stacks of a crowd that has left are given back."""

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
from tests.waiting import wait_until

FILES = 64
CROWD = 100
GUARD_BYTES = 4096  # below each stack
STACKS_BYTES = (124 << 10, 1020 << 10)  # with a sanitizer they are larger
HEAP_BYTES = 64 << 20  # of address space; glibc aligns each heap but the first to it


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


@pytest.mark.skipif(shutil.which("taskset") is None, reason="there is no taskset")
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


def stacks(worker: Process) -> list[int]:
    """The resident bytes of each stack of the model `thread`: a guard is below it."""
    found = []
    before = after_guard = False
    for line in Path(f"/proc/{worker.pid}/smaps").read_text().splitlines():
        key, *values = line.split()
        if not key.endswith(":"):
            start, end = (int(each, 16) for each in key.split("-"))
            after_guard = before and values[0] == "rw-p" and end - start in STACKS_BYTES
            before = values[0] == "---p" and end - start == GUARD_BYTES
        elif key == "Rss:" and after_guard:
            found.append(int(values[0]) << 10)
    return found


@pytest.mark.parametrize("model", ["thread"])
def test_the_stacks_of_a_crowd_that_has_left_are_given_back(server: ServerFactory) -> None:
    running = server()
    (worker,) = running.workers()
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connect(running.address)) for _ in range(CROWD)]
        for client in clients:
            assert client.get("/hello.txt").body == b"hello\n"
        crowded = stacks(worker)
        assert len(crowded) == CROWD
    # The place of the connection above the stack is left.
    wait_until(lambda: sum(stacks(worker)) < 0.75 * sum(crowded), lambda: str(stacks(worker)))
    with connect(running.address) as again:
        assert again.get("/hello.txt").body == b"hello\n"
