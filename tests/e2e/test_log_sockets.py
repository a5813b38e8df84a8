# SPDX-License-Identifier: MIT
"""Logs that go to the journal or to syslog, received by a socket of the test, on every model."""

from __future__ import annotations

import os
import re
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.load import Load
from tests.e2e.planting import planted
from tests.e2e.refused import refusal
from tests.e2e.running import Process
from tests.e2e.statistics import settled, wait_for
from tests.e2e.test_container import NEW_MOUNTS, needs_mounts
from tests.e2e.test_hostile_worker import SHUTDOWN
from tests.e2e.wire import connect
from tests.waiting import wait_until

SYSLOG = re.compile(
    r"<(\d+)>1 \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z \S+ weir \d+ (access|error) - (.*)"
)


class Receiver:
    """Keeps the datagrams that arrive at a Unix socket, or at a port of UDP."""

    def __init__(self, family: socket.AddressFamily, address: str | tuple[str, int]) -> None:
        self.socket = socket.socket(family, socket.SOCK_DGRAM)
        self.socket.bind(address)
        if isinstance(address, str):
            Path(address).chmod(0o666)
        self.socket.settimeout(0.1)
        self.received: list[str] = []
        self.ended = False
        self.thread = threading.Thread(target=self._read)
        self.thread.start()

    def _read(self) -> None:
        while not self.ended:
            try:
                self.received.append(self.socket.recv(65536).decode())
            except TimeoutError:
                continue

    def end(self) -> None:
        self.ended = True
        self.thread.join()
        self.socket.close()

    def lines(self, log: str) -> list[str]:
        """The texts of one log."""
        entries = [entry for entry in self.received if f"\nWEIR_LOG={log}\n" in entry]
        texts = [entry.split("\n")[0].removeprefix("MESSAGE=") for entry in entries]
        matches = [match for each in self.received if (match := SYSLOG.fullmatch(each))]
        return texts + [match[3] for match in matches if match[2] == log]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short name: that of a socket has 107 bytes at most."""
    with tempfile.TemporaryDirectory(prefix="weir-log-") as made:
        Path(made).chmod(0o755)
        yield Path(made)


def test_every_request_is_an_entry_of_the_journal(server: ServerFactory, folder: Path) -> None:
    path = folder / "journal"
    receiver = Receiver(socket.AF_UNIX, str(path))
    try:
        running = server(
            *("--access-log", f"journal:{path}", "--error-log", f"journal:{path}"),
            *("--sandbox", "on", "--log-format", "json"),
        )
        for _ in range(3):
            with connect(running.address) as connection:
                for name in ("/hello.txt", "/nothing", "/index.html") * 3:
                    connection.get(name)
        assert settled(running)["counters"]["requests"] == 27
        # Before the stop: a server that ends waits for a slow receiver only shortly.
        wait_until(lambda: len(receiver.lines("access")) == 27, "every line has arrived")
        running.stop()
        wait_until(
            lambda: any(line.startswith("stopping: ") for line in receiver.lines("error")),
            "the master's message has arrived",
        )
    finally:
        receiver.end()
    lines = receiver.lines("access")
    assert sum('"status":404' in line for line in lines) == 9
    assert all(line.startswith('{"time":"') and line.endswith('"}') for line in lines)
    assert any("PRIORITY=6\nSYSLOG_IDENTIFIER=weir\n" in entry for entry in receiver.received)


@pytest.mark.parametrize("model", ["percore", "fork", "prefork"])
def test_lines_go_to_syslog_over_udp(server: ServerFactory) -> None:
    receiver = Receiver(socket.AF_INET, ("127.0.0.1", 0))
    port = receiver.socket.getsockname()[1]
    try:
        running = server("--access-log", f"syslog:udp://127.0.0.1:{port}")
        with connect(running.address) as connection:
            connection.get("/hello.txt", "a", "User-Agent: a b")
        running.stop()
        wait_until(lambda: receiver.lines("access"), "the line has arrived")
    finally:
        receiver.end()
    (line,) = receiver.lines("access")
    assert re.fullmatch(
        r"127\.0\.0\.1 - - \[[^]]+\] \"GET /hello.txt HTTP/1.1\" 200 6 \"-\" \"a b\" [0-9a-f]{16}",
        line,
    )
    assert receiver.received[0].startswith("<30>1 ")


@pytest.mark.parametrize("model", ["percore", "fork", "pool"])
def test_a_receiver_that_restarts_is_found_by_a_signal(server: ServerFactory, folder: Path) -> None:
    path = folder / "log"
    first = Receiver(socket.AF_UNIX, str(path))
    try:
        running = server("--access-log", f"syslog:{path}")
        with connect(running.address) as connection:
            connection.get("/hello.txt")
        wait_until(lambda: len(first.lines("access")) == 1, "the line has arrived")
    finally:
        first.end()
    path.unlink()
    second = Receiver(socket.AF_UNIX, str(path))
    try:
        running.signal(signal.SIGUSR1)
        wait_until(
            lambda: "SIGUSR1 opened the logs again: syslog:" in running.messages(), "the signal"
        )

        def arrives() -> bool:
            with connect(running.address) as connection:
                connection.get("/hello.txt")
            return bool(second.lines("access"))

        wait_until(arrives, "lines go to the new socket")
        running.stop()
    finally:
        second.end()


SANDBOXED = ("--sandbox", "on", *(("--user", "nobody") if os.geteuid() == 0 else ()))


def shut_every_socket(worker: Process) -> None:
    """As an attacker does who controls the worker."""
    with planted(worker.pid) as thread:
        for fd, link in worker.descriptors().items():
            if link.startswith("socket:"):
                thread.call(SHUTDOWN, fd, socket.SHUT_WR)


@pytest.mark.parametrize("model", ["epoll"])
def test_a_worker_that_shuts_its_sockets_silences_no_other(
    server: ServerFactory, folder: Path
) -> None:
    receiver = Receiver(socket.AF_UNIX, str(folder / "log"))

    def hears(log: str, act: Callable[[], object], text: str) -> None:
        count = sum(text in line for line in receiver.lines(log))
        act()
        wait_until(
            lambda: sum(text in line for line in receiver.lines(log)) > count,
            f"{text} in the {log} log",
        )

    def visit() -> None:
        with connect(running.address) as connection:
            connection.get("/hello.txt")

    def shut_and_hear() -> None:
        (worker,) = running.workers()
        shut_every_socket(worker)
        hears("error", lambda: running.signal(signal.SIGHUP), "reloaded: ")
        wait_until(lambda: worker not in running.workers(), "it is replaced")
        hears("access", visit, "/hello.txt")

    try:
        logs = (f"--{log}-log=syslog:{folder}/log" for log in ("access", "error"))
        running = server(*logs, *SANDBOXED, "--workers", "1")
        hears("access", visit, "/hello.txt")
        shut_and_hear()
        hears("error", lambda: running.signal(signal.SIGUSR1), "opened the logs again")
        hears("access", visit, "/hello.txt")
        shut_and_hear()  # the sockets of the rotation
        running.stop()
    finally:
        receiver.end()


@needs_mounts
@pytest.mark.parametrize("model", ["epoll"])
@pytest.mark.parametrize("reachable", [True, False])
def test_standard_error_that_is_the_journal_gets_entries(
    server: ServerFactory, folder: Path, reachable: bool
) -> None:
    """systemd connects standard error to a stream of the journal, and says so. An entry of its own
    has a severity. Where the journal's socket cannot be reached, the stream gets the lines."""
    (folder / "systemd/journal").mkdir(parents=True)
    ours, stream = socket.socketpair()
    status = os.fstat(stream.fileno())
    receiver = Receiver(socket.AF_UNIX, str(folder / "systemd/journal/socket"))
    if not reachable:
        (folder / "systemd/journal/socket").unlink()
    begin = f'mount --bind {folder} /run && exec "$0" "$@" 2>&{stream.fileno()}'
    try:
        running = server(
            wrapper=(*NEW_MOUNTS, "bash", "-c", begin),
            environment={"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"},
            descriptors=(stream.fileno(),),
        )
        running.signal(signal.SIGUSR1)
        running.stop()
        if reachable:
            wait_until(lambda: receiver.lines("error"), "an entry")
    finally:
        receiver.end()
        stream.close()
    with ours:
        text = b"".join(iter(lambda: ours.recv(65536), b"")).decode()
    assert ("stopping: " in text) is not reachable
    assert ("SIGUSR1 has no effect: no log is a file" in text) is not reachable
    assert "cannot open" not in text
    assert any("stopping: " in each for each in receiver.lines("error")) is reachable


def test_a_receiver_that_does_not_read_delays_no_request(
    server: ServerFactory, folder: Path, model: str
) -> None:
    path = folder / "journal"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as deaf:
        deaf.bind(str(path))
        path.chmod(0o666)
        running = server("--access-log", f"journal:{path}")
        with Load(running.address, "/hello.txt", b"hello\n", clients=4, keep=True) as load:
            load.wait_for(3000)
            count = load.stop()
        assert count.wrong == []
        assert count.unanswered == count.parted == count.cut == count.refused == 0
        if model == "epoll":  # other models have more buffers than these lines fill
            wait_for(running, lambda now: now["counters"]["log_lines_dropped"] > 0)
        running.stop()


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("access-log", "syslog:udp://host"),
        ("error-log", "syslog:log"),
        ("access-log", "journal:udp://127.0.0.1"),
    ],
)
def test_a_wrong_address_is_an_error_of_check(site: Path, setting: str, value: str) -> None:
    said = refusal(site, server=f"{setting} = {value}")
    assert f"weir.conf:2: error: {setting}: `{value}` names no socket; write journal" in said


@pytest.mark.parametrize("model", ["epoll"])
def test_a_start_without_a_receiver_says_so(server: ServerFactory, folder: Path) -> None:
    with pytest.raises(AssertionError, match=r"access log journal:.*/none: nothing"):
        server("--access-log", f"journal:{folder}/none")
