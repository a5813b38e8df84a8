# SPDX-License-Identifier: MIT
"""Model uring: rings can be forbidden, run out of buffers, and receive data too early."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.activation import activation
from tests.e2e.conftest import ServerFactory
from tests.e2e.crowd import Crowd
from tests.e2e.load import Load
from tests.e2e.running import WEIR, Server
from tests.e2e.sockets import tcp_sockets
from tests.e2e.tracing import LIBC
from tests.e2e.wire import Connection, connect, parse_answer
from tests.waiting import LIMIT_S, wait_until

# The same on every architecture.
SETUP, REGISTER = "425", "427"
PIDFD_GETFD = 438
RECEIVE = 27  # the kernel's number of the operation
WITHOUT_CALL = (sys.executable, str(Path(__file__).with_name("without_call.py")))

pytestmark = pytest.mark.parametrize("model", ["uring"])


def model_of(running: Server) -> str:
    found = re.search(r"^model (\w+)", running.messages(), re.MULTILINE)
    assert found, running.messages()
    return found[1]


def kernel() -> tuple[int, ...]:
    return tuple(map(int, os.uname().release.split(".")[:2]))


@pytest.fixture
def rings(server: ServerFactory) -> ServerFactory:
    """Starts servers. Skips the test where no ring may be made."""
    if model_of(server()) != "uring":
        pytest.skip("this machine allows no rings")
    return server


@pytest.mark.parametrize(
    ("number", "error", "told"),
    [
        (SETUP, "EPERM", "io_uring_setup: Operation not permitted"),
        (SETUP, "ENOSYS", "io_uring_setup: Function not implemented"),
        (REGISTER, "EACCES", "io_uring_register: Permission denied"),
    ],
)
def test_percore_serves_where_rings_are_forbidden_and_a_message_says_why(
    server: ServerFactory, number: str, error: str, told: str
) -> None:
    wrapper = (*WITHOUT_CALL, number, error)
    running = server(wrapper=wrapper)
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").body == b"hello\n"
    said = [line for line in running.messages().splitlines() if "uring" in line]
    assert len(said) == 1
    assert said[0].startswith(f"model percore (uring: cannot run here: {told}")
    listed = subprocess.run([*wrapper, WEIR, "models"], capture_output=True, text=True, check=True)
    line = next(line for line in listed.stdout.splitlines() if line.startswith("uring "))
    assert told in line
    assert "percore serves in its place" in line


@pytest.mark.usefixtures("rings")
def test_weir_models_reports_no_substitute_where_rings_are_allowed() -> None:
    listed = subprocess.run([WEIR, "models"], capture_output=True, text=True, check=True)
    assert "in its place" not in listed.stdout


def resident_kib(running: Server) -> int:
    status = "".join(Path(f"/proc/{each.pid}/status").read_text() for each in running.workers())
    return sum(int(kib) for kib in re.findall(r"^RssAnon:\s+(\d+) kB", status, re.MULTILINE))


def test_idle_connections_hold_no_buffers(rings: ServerFactory) -> None:
    count = 2000
    running = rings("--threads", "1")
    with Crowd(running.address, 300) as crowd:
        crowd.ask_in_turn()  # every buffer of the ring has been used
    before = resident_kib(running)
    with Crowd(running.address, count) as crowd:
        crowd.ask_in_turn()
        assert resident_kib(running) - before < count * 0.5


def receiving(running: Server) -> list[int]:
    """For each ring, the number of receives that wait in it."""
    found = []
    for worker in running.workers():
        for fd, link in worker.descriptors().items():
            if link == "anon_inode:[io_uring]":
                told = Path(f"/proc/{worker.pid}/fdinfo/{fd}").read_text()
                if "PollList" not in told:
                    pytest.skip("this kernel does not tell what a ring waits for")
                found.append(len(re.findall(rf"op={RECEIVE},", told)))
    return found


def test_two_rings_share_the_connections(rings: ServerFactory) -> None:
    running = rings("--threads", "2")
    with Crowd(running.address, 64) as crowd:
        crowd.ask_once()

        def shared() -> bool:
            counts = receiving(running)
            return len(counts) == 2 and sum(counts) == 64 and min(counts) > 0

        wait_until(shared, lambda: f"both rings have connections: {receiving(running)}")


def test_more_requests_at_once_than_buffers_are_answered(rings: ServerFactory) -> None:
    running = rings("--threads", "1")
    (worker,) = running.workers()
    with Crowd(running.address, 600) as crowd:
        crowd.ask_once()
        os.kill(worker.pid, signal.SIGSTOP)
        try:
            for member in crowd.members:
                member.socket.send(crowd.request)
        finally:
            os.kill(worker.pid, signal.SIGCONT)
        for member in crowd.members:
            member.socket.setblocking(True)
            member.socket.settimeout(LIMIT_S)
            answer, rest = parse_answer(member.socket.recv(65536)) or (None, b"")
            assert answer
            assert (answer.status, answer.body, rest) == (200, b"hello\n", b"")


def test_the_kernel_starts_no_worker_thread(rings: ServerFactory, site: Path) -> None:
    content = os.urandom(300_000)
    (site / "big.bin").write_bytes(content)
    running = rings()
    with Load(running.address, "/big.bin", content, clients=8, keep=True) as load:
        load.wait_for(200)
        names = [name for worker in running.workers() for name in worker.of_threads("comm")]
        count = load.stop()
    assert (count.wrong, count.cut, count.unanswered) == ([], 0, 0)
    assert not [name for name in names if name.startswith("iou-")]


@pytest.mark.parametrize("size", [100, 20_000, 60_000, 200_000])
def test_requests_before_the_answers_are_read_are_answered(
    rings: ServerFactory, site: Path, size: int
) -> None:
    """The requests do not fit into the buffers. Early data waits, and no answer is lost."""
    content = os.urandom(size)
    (site / "file.bin").write_bytes(content)
    count = max(100, 30_000_000 // (size + 2000))
    request = b"GET /file.bin HTTP/1.1\r\nHost: a\r\nX: %s\r\n\r\n" % (b"x" * 900)
    requests = request * count
    running = rings()
    with connect(running.address) as connection:
        sent = 0
        while sent < len(requests) and select.select([], [connection.socket], [], 0.3)[1]:
            sent += connection.socket.send(requests[sent : sent + 65536])
        sender = threading.Thread(target=connection.send, args=(requests[sent:],))
        sender.start()
        for _ in range(count):
            answer = connection.read()
            assert answer.status == 200
            assert answer.body == content
        sender.join()


def test_bodies_in_memory_stay_until_a_slow_reader_has_them(
    rings: ServerFactory, site: Path
) -> None:
    """Bodies that wait to be sent are evicted from the cache meanwhile."""
    contents = {name: os.urandom(1_500_000) for name in "abcdefgh"}
    for name, content in contents.items():
        (site / name).write_bytes(content)
    running = rings("--threads", "1", "--cache-file-max", "4M", "--cache-size", "5M")
    connection = Connection.to(running.address, receive_buffer=4096)
    got = b""
    try:
        for name in "abab":
            connection.send(f"GET /{name} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        with connect(running.address) as other:
            while len(got) < 4 * 1_500_000:
                for name in "cdefgh":
                    assert other.get(f"/{name}").body == contents[name]
                until = min(len(got) + 300_000, 4 * 1_500_000)
                while len(got) < until:
                    got += connection.socket.recv(65536)
    finally:
        connection.close()
    for name in "aba":
        answer, got = parse_answer(got) or (None, b"")
        assert answer
        assert answer.body == contents[name]


def test_resets_during_sends_leave_no_receive_behind(rings: ServerFactory, site: Path) -> None:
    (site / "big.bin").write_bytes(os.urandom(60_000))
    running = rings("--threads", "1")
    request = b"GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n"
    for number in range(100):
        connection = Connection.to(running.address, receive_buffer=4096)
        connection.send(request * 100)
        if number % 2:
            connection.socket.recv(1000)
        connection.reset()
    wait_until(lambda: sum(receiving(running)) == 0, "no receive waits in a ring")
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").body == b"hello\n"


# On a busy machine a client waits long until it is its turn.
PATIENT = ("--header-timeout", "10m", "--idle-timeout", "10m", "--send-timeout", "10m")
LARGE = b"GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n"


def flood(running: Server, clients: list[Connection]) -> int:
    """The only worker is stopped while the clients send, so all that they send waits at once.
    Returns by how much the memory of the server has grown, in KiB."""
    (worker,) = running.workers()
    before = resident_kib(running)
    os.kill(worker.pid, signal.SIGSTOP)
    try:
        for client in clients:
            client.socket.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while client.socket.send(LARGE * 1000):
                    pass
    finally:
        os.kill(worker.pid, signal.SIGCONT)
    with connect(running.address) as other:
        for _ in range(20):
            assert other.get("/hello.txt").status == 200
    return resident_kib(running) - before


def test_only_the_first_early_input_of_a_connection_is_kept(
    rings: ServerFactory, site: Path
) -> None:
    """The server is stopped while the clients send, so all that they send waits at once."""
    count, size = 20, 15_000_000
    with (site / "big.bin").open("wb") as big:
        big.truncate(size)
    running = rings("--threads", "1", "--workers", "1", *PATIENT)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connect(running.address)) for _ in range(count)]
        for client in clients:
            assert client.get("/hello.txt").status == 200
            client.send(LARGE)
            assert client.socket.recv(12) == b"HTTP/1.1 200"
            client.send(LARGE)  # early
            client.data = b"HTTP/1.1 200"
            assert [len(client.read().body) for _ in range(2)] == [size, size]
            client.send(LARGE)
            assert client.socket.recv(12) == b"HTTP/1.1 200"
        assert flood(running, clients) < count * 16


@pytest.mark.skipif(kernel() < (6, 8), reason="the kernel takes more before it can be stopped")
def test_the_first_early_input_of_a_connection_is_bounded(rings: ServerFactory, site: Path) -> None:
    """The clients have waited for each answer, so the kernel receives from them repeatedly. Then
    the server is stopped while they send much behind a request whose answer they do not read."""
    count = 40
    with (site / "big.bin").open("wb") as big:
        big.truncate(15_000_000)
    running = rings("--threads", "1", "--workers", "1", *PATIENT)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connect(running.address)) for _ in range(count)]
        for client in clients:
            for _ in range(3):
                assert client.get("/hello.txt").status == 200
            client.send(LARGE)
            assert client.socket.recv(12) == b"HTTP/1.1 200"
        assert flood(running, clients) < count * 64


@pytest.mark.parametrize("size", [700, 1023, 1024, 1025, 3000, 5000])
def test_heads_of_any_size_are_answered_on_an_open_connection(
    rings: ServerFactory, size: int
) -> None:
    """The size of the buffers follows that of the input."""
    head = b"GET /hello.txt HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n"
    long = head.replace(b"X: ", b"X: " + b"x" * (size - len(head)))
    running = rings("--threads", "1", "--workers", "1")
    with connect(running.address) as client:
        for turn in range(40):
            client.send(long if turn % 8 < 4 else head)
            assert client.read().body == b"hello\n"


def test_uploads_on_an_open_connection_are_answered(rings: ServerFactory) -> None:
    """The answer is sent while most of the body still arrives."""
    running = rings("--threads", "1", "--workers", "1")
    for _ in range(20):
        with connect(running.address) as client:
            for _ in range(3):
                client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")
                client.send(bytes(1_000_000))
                assert client.read().status == 405


# ---- rings of the dead ----


def listener_of(running: Server) -> socket.socket:
    """The listening socket of the server, which has one thread. Skips where this process may not
    take descriptors of others."""
    (link,) = [each.link for each in tcp_sockets(running.address[1]) if each.listens]
    (fd,) = [fd for fd, its in running.master.descriptors().items() if its == link]
    pidfd = os.pidfd_open(running.master.pid)
    try:
        copy = LIBC.syscall(PIDFD_GETFD, pidfd, fd, 0)
    finally:
        os.close(pidfd)
    if copy < 0:
        pytest.skip(f"pidfd_getfd: {os.strerror(ctypes.get_errno())}")
    return socket.socket(fileno=copy)


def waits_for_events(thread: threading.Thread) -> bool:
    call = Path(f"/proc/self/task/{thread.native_id}/syscall").read_text().split()[0]
    return call in ("232", "281", "22")  # epoll_wait and epoll_pwait of x86-64; that of AArch64


@contextlib.contextmanager
def dead_waiter(listener: socket.socket) -> Iterator[None]:
    """For a connection the kernel wakes one of those that asked for it, in the order of asking. The
    ring of a process is ended some time after the process. Here a thread stands for that ring: it
    is woken, and accepts nothing."""
    end = threading.Event()
    reading, writing = os.pipe()

    def wait() -> None:
        while not end.is_set():
            epoll.poll()

    with select.epoll() as epoll:
        epoll.register(reading, select.EPOLLIN)
        epoll.register(listener, select.EPOLLIN | select.EPOLLEXCLUSIVE)
        thread = threading.Thread(target=wait)
        thread.start()
        try:
            wait_until(lambda: waits_for_events(thread), "the thread waits for connections")
            yield
        finally:
            end.set()
            os.close(writing)
            thread.join()
            os.close(reading)


def visit_twice(running: Server) -> None:
    """The first connection may arrive before the ring asks for connections."""
    for _ in range(2):
        with connect(running.address) as client:
            assert client.get("/hello.txt").body == b"hello\n"


def test_no_client_waits_for_the_ring_of_a_worker_that_was_killed(rings: ServerFactory) -> None:
    running = rings("--workers", "1", "--threads", "1")
    (worker,) = running.workers()
    with listener_of(running) as listener, dead_waiter(listener):
        os.kill(worker.pid, signal.SIGKILL)
        wait_until(lambda: "serves in place of" in running.messages(), running.messages)
        visit_twice(running)


def test_no_client_waits_for_the_ring_of_an_earlier_server(rings: ServerFactory) -> None:
    """A service manager keeps the sockets, and starts a server that has died again."""
    with socket.create_server(("127.0.0.1", 0)) as listener, dead_waiter(listener):
        visit_twice(rings("--workers", "1", "--threads", "1", listen=(), **activation(listener)))
