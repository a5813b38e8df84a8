# SPDX-License-Identifier: MIT
"""A worker that was taken over overwrites all the memory that it shares with other processes. The
master and every reader of the statistics go on.

The test writes through /proc/PID/mem, in the mappings that the worker itself can write.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import signal
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.planting import planted
from tests.e2e.running import Process, Server
from tests.e2e.statistics import read, segment, weir_stats
from tests.e2e.wire import connect
from tests.waiting import wait_until

PAGE = re.compile(r"^statistics: http://127\.0\.0\.1:(\d+)/$", re.MULTILINE)

PAGE_ON = ("--stats-listen", "127.0.0.1:0")

# Each model shares something else: the workers of `fork` have children, and those of `prefork` have
# tallies of connections.
MODELS = pytest.mark.parametrize("model", ["percore", "fork", "prefork"])


@dataclass
class Mapping:
    start: int
    size: int
    file: str


def shared_and_writable(worker: Process) -> list[Mapping]:
    found = []
    for line in Path(f"/proc/{worker.pid}/maps").read_text().splitlines():
        span, rights, _, _, _, *name = line.split(maxsplit=5)
        if rights.startswith("rw") and rights.endswith("s"):
            start, end = (int(each, 16) for each in span.split("-"))
            found.append(Mapping(start, end - start, " ".join(name)))
    return found


def own_offsets(size: int) -> bytes:
    return struct.pack(f"<{size // 4}I", *(at // 64 * 64 for at in range(0, size // 4 * 4, 4)))


VALUES: list[Callable[[int], bytes]] = [
    lambda size: b"\xff" * size,
    own_offsets,
    lambda size: struct.pack("<Q", 1 << 27) * (size // 8),
    bytes,
]


def overwrite(worker: Process, value: Callable[[int], bytes]) -> int:
    """Writes the value over all memory that the worker shares and can write; returns the bytes."""
    written = 0
    with contextlib.suppress(FileNotFoundError, ProcessLookupError, OSError):
        memory = os.open(f"/proc/{worker.pid}/mem", os.O_RDWR)
        with os.fdopen(memory, "r+b", buffering=0) as file:
            for mapping in shared_and_writable(worker):
                size = mapping.size
                if mapping.file.startswith("/dev/shm/"):
                    size = min(size, Path(mapping.file).stat().st_size)
                written += os.pwrite(file.fileno(), value(size), mapping.start)
    return written


def heartbeat(running: Server) -> float:
    """The time of the master's last heartbeat, at which it reads all arenas."""
    numbers = read(running.master.pid)
    return float(numbers["read_monotonic_seconds"] - numbers["master_seen_seconds_ago"])


def visit(running: Server) -> bool:
    with contextlib.suppress(OSError, AssertionError), connect(running.address) as connection:
        return connection.get("/hello.txt").status == 200
    return False


def go_through(running: Server, page: tuple[str, int]) -> None:
    """The master lives through a heartbeat, a reload and the deaths of its workers, and all readers
    end. The hostile worker itself may crash or hang."""
    master = running.master
    beat = heartbeat(running)
    wait_until(lambda: heartbeat(running) > beat + 0.1, "another heartbeat")
    for form in ("--json", "--prometheus", "--explain"):
        assert weir_stats(form, str(master.pid)).returncode == 0
    with connect(page) as connection:
        answer = connection.get("/stats.json", "localhost")
        assert json.loads(answer.body)["pid"] == master.pid
    for worker in running.workers():
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker.pid, signal.SIGKILL)
    wait_until(lambda: visit(running), "a worker serves")
    reloads = running.messages().count(" reloaded: ")
    running.signal(signal.SIGHUP)
    wait_until(lambda: running.messages().count(" reloaded: ") > reloads, running.messages)
    assert running.popen.poll() is None
    assert running.master == master


def start_server(server: ServerFactory, folder: Path) -> tuple[Server, tuple[str, int]]:
    user = ("--user", "nobody") if os.geteuid() == 0 else ()
    running = server(*PAGE_ON, "--workers", "2", *user, folder=folder)
    (port,) = PAGE.findall(running.messages())
    return running, ("127.0.0.1", int(port))


@MODELS
def test_the_master_outlives_a_hostile_worker(server: ServerFactory, public_folder: Path) -> None:
    running, page = start_server(server, public_folder)
    for value in VALUES:
        wait_until(lambda: visit(running), "a worker serves")
        assert sum(overwrite(worker, value) for worker in running.workers()) > 0
        go_through(running, page)
    reloads = len(VALUES)
    numbers = read(running.master.pid)
    assert numbers["running"] is True
    assert numbers["counters"]["reloads"] >= reloads  # the master's own counts are unharmed
    rules = {verdict["rule"] for verdict in numbers["verdicts"]}
    assert "statistics-damaged" in rules
    assert "a worker has damaged its statistics" in running.messages()
    left = segment(running.master.pid)
    running.stop()
    assert not left.exists()


@MODELS
def test_a_worker_can_write_only_memory_of_its_own(
    server: ServerFactory, public_folder: Path
) -> None:
    running, _ = start_server(server, public_folder)
    head = str(segment(running.master.pid) / "head")
    owners: dict[str, int] = {}
    for worker in running.workers():
        mappings = shared_and_writable(worker)
        files = [each.file for each in mappings if each.file.startswith("/dev/shm/")]
        assert len(files) == 1
        assert files[0] != head
        assert owners.setdefault(files[0], worker.pid) == worker.pid
        held = [fd for fd, link in worker.descriptors().items() if link.startswith("/dev/shm/")]
        for fd in held:
            assert worker.descriptors()[fd] == files[0]
    assert len(owners) == 2


SHUTDOWN, FCNTL = 48, 72


def test_what_a_worker_does_to_its_sockets_ends_with_it(
    server: ServerFactory, public_folder: Path
) -> None:
    """The sockets are those of all workers, of earlier ones and of later ones. Without a filter of
    system calls, each model can do this."""
    user = ("--user", "nobody") if os.geteuid() == 0 else ()
    running = server("--workers", "1", "--sandbox", "off", *user, folder=public_folder)
    assert visit(running)
    (worker,) = running.workers()
    sockets = [fd for fd, link in worker.descriptors().items() if link.startswith("socket:")]
    assert sockets
    with planted(worker.pid) as thread:
        for fd in sockets:
            thread.call(FCNTL, fd, fcntl.F_SETFL, os.O_RDWR)
            thread.call(SHUTDOWN, fd, socket.SHUT_RDWR)
    os.kill(worker.pid, signal.SIGKILL)
    wait_until(lambda: worker not in running.workers(), "the worker is replaced")
    wait_until(lambda: visit(running), "the successor serves")
    assert visit(running)


@pytest.mark.parametrize("model", ["percore"])
def test_the_page_reads_workers_that_a_reload_adds(
    server: ServerFactory, public_folder: Path, tmp_path: Path
) -> None:
    conf = tmp_path / "weir.conf"

    def write(workers: int) -> None:
        user = "user = nobody\n" if os.geteuid() == 0 else ""
        conf.write_text(
            f"[server]\n{user}workers = {workers}\nlisten = 127.0.0.1:0\n"
            f"[site all]\nroot = {public_folder}\n"
        )

    write(1)
    running = server(*PAGE_ON, "-c", str(conf), folder=None, listen=())
    (port,) = PAGE.findall(running.messages())
    requests = 0

    def page_counts() -> int:
        with connect(("127.0.0.1", int(port))) as connection:
            numbers = json.loads(connection.get("/stats.json", "localhost").body)
        return int(numbers["counters"]["requests"])

    def page_has(count: int) -> Callable[[], bool]:
        return lambda: page_counts() == count

    def reload(workers: int) -> None:
        write(workers)
        running.signal(signal.SIGHUP)
        wait_until(lambda: len(running.workers()) == workers, running.messages)

    for workers in (1, 4, 6):
        reload(workers)
        for _ in range(4 * workers):
            assert visit(running)
        requests += 4 * workers
        wait_until(page_has(requests), page_counts)
        assert read(running.master.pid)["counters"]["requests"] == requests
