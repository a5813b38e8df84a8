# SPDX-License-Identifier: MIT
"""A server that runs out of descriptors survives, and accepts again when some are free."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.wire import Connection, connect
from tests.waiting import wait_until

LIMIT = 64

needs_prlimit = pytest.mark.skipif(not shutil.which("prlimit"), reason="prlimit is not installed")


@pytest.mark.parametrize("model", ["epoll", "fork"])
def test_no_connection_gets_the_number_of_standard_error(server: ServerFactory) -> None:
    """The program that started the server may have closed its standard descriptors."""
    running = server(wrapper=("sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"))
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").body == b"hello\n"
        for process in (running.master, *running.master.descendants()):
            held = process.descriptors()
            if process.alive:
                assert [held[number] for number in range(3)] == ["/dev/null"] * 3


@pytest.mark.parametrize("model", ["epoll", "prefork"])
@pytest.mark.parametrize("number", [1, 2])
def test_no_file_gets_the_number_of_a_standard_descriptor_that_reports_readiness(
    server: ServerFactory, number: int
) -> None:
    """The number of `--ready-fd` is closed when the server serves."""
    to_number = (
        "for given; do :; done; "  # the last word
        f'eval "exec \\"\\$@\\" --ready-fd {number} {number}>&$given $given>&-"'
    )
    running = server("--quiet", wrapper=("bash", "-c", to_number, "bash"))
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").body == b"hello\n"
    for process in (running.master, *running.workers()):
        assert process.descriptors()[number] == "/dev/null"


@needs_prlimit
def test_the_kernels_table_of_files_has_its_size_before_the_first_client(
    server: ServerFactory,
) -> None:
    # In a process with threads the kernel stops a thread for milliseconds when the table grows.
    running = server(wrapper=("prlimit", "--nofile=1024:5000"))
    workers = running.workers()
    assert workers
    for worker in workers:
        status = Path(f"/proc/{worker.pid}/status").read_text()
        (size,) = [line.split()[1] for line in status.splitlines() if line.startswith("FDSize")]
        assert int(size) >= 5000


@needs_prlimit
def test_a_server_without_free_descriptors_recovers(server: ServerFactory) -> None:
    running = server(wrapper=("prlimit", f"--nofile={LIMIT}:{LIMIT}"))
    workers = running.workers()
    crowd = [Connection.to(running.address) for _ in range(4 * LIMIT)]
    for connection in crowd:
        connection.close()
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").body == b"hello\n"
    assert running.workers() == workers, "a worker has died"


@needs_prlimit
def test_open_connections_are_served_while_no_descriptor_is_free(server: ServerFactory) -> None:
    running = server(wrapper=("prlimit", f"--nofile={LIMIT}:{LIMIT}"))
    with connect(running.address) as first:
        assert first.get("/hello.txt").status == 200
        crowd = [Connection.to(running.address) for _ in range(4 * LIMIT)]
        try:
            for _ in range(20):
                assert first.get("/hello.txt").status == 200
        finally:
            for connection in crowd:
                connection.close()


@needs_prlimit
def test_slow_readers_of_large_files_leave_descriptors_for_others(
    server: ServerFactory, site: Path
) -> None:
    """Each of them keeps a file open that the cache has given up. Those for which no descriptor is
    left get 503."""
    readers = 123
    for number in range(readers):
        with (site / f"{number}.bin").open("wb") as large:
            large.truncate(20_000_000)
    running = server("--workers", "1", wrapper=("prlimit", "--nofile=256:256"))
    with contextlib.ExitStack() as stack:
        for number in range(readers):
            reader = stack.enter_context(
                contextlib.closing(Connection.to(running.address, receive_buffer=1024))
            )
            reader.send(f"GET /{number}.bin HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            assert reader.socket.recv(12) in (b"HTTP/1.1 200", b"HTTP/1.1 503")
        for _ in range(20):
            with connect(running.address) as other:
                assert other.get("/hello.txt").body == b"hello\n"
    assert "cannot accept" not in running.messages()


@needs_prlimit
@pytest.mark.parametrize("model", ["epoll", "thread", "uring"])
@pytest.mark.parametrize("rules", [False, True])
def test_a_route_is_not_absent_while_its_page_cannot_be_opened(
    server: ServerFactory, site: Path, *, rules: bool
) -> None:
    """A cache may keep a 404. The page is so large that each answer with it has it open."""
    (site / "app.html").write_bytes(bytes(100_000))
    (site / "_redirects").write_text("/* /app.html 200\n")
    for number in range(30):
        with (site / f"{number}.bin").open("wb") as large:
            large.truncate(20_000_000)
    running = server(
        *(("--site-rules=on",) if rules else ("--spa=app.html",)),
        wrapper=("prlimit", f"--nofile={LIMIT}:{LIMIT}"),
    )
    with contextlib.ExitStack() as stack:
        other = stack.enter_context(connect(running.address))
        begun = b"HTTP/1.1 200"
        for number in range(30):
            reader = stack.enter_context(
                contextlib.closing(Connection.to(running.address, receive_buffer=1024))
            )
            reader.send(f"GET /{number}.bin HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            begun = reader.socket.recv(12)
            if begun != b"HTTP/1.1 200":
                break
        assert begun == b"HTTP/1.1 503", "no descriptor is left for the last reader"
        answer = other.get("/some/route")
        assert answer.status == 503
        assert answer.get("Retry-After")


def test_no_descriptor_is_left_open(server: ServerFactory, site: Path) -> None:
    (site / "big.bin").write_bytes(bytes(1_000_000))
    running = server("--cache-size", "0")

    def visit() -> None:
        with connect(running.address) as connection:
            for path in ["/", "/hello.txt", "/big.bin", "/nothing", "/../x"]:
                connection.get(path)

    def descriptors() -> int:
        return sum(len(os.listdir(f"/proc/{worker.pid}/fd")) for worker in running.workers())

    with contextlib.ExitStack() as stack:  # each worker has one of them, so each has started
        for _ in range(10):
            assert stack.enter_context(connect(running.address)).get("/").status == 200
    visit()
    before = descriptors()
    for _ in range(50):
        visit()
    wait_until(
        lambda: descriptors() <= before, lambda: f"{before} descriptors, now {descriptors()}"
    )
