# SPDX-License-Identifier: MIT
"""What a service manager gets to hear, and the sockets that it passes in."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.activation import activation
from tests.e2e.conftest import ServerFactory
from tests.e2e.running import WEIR, Process
from tests.e2e.wire import connect

HEARD_S = 20.0


@dataclass
class Manager:
    """The socket that messages go to, and those that came and were not asked for yet."""

    socket: socket.socket
    address: str

    def hear(self) -> dict[str, str]:
        """The next message."""
        text = self.socket.recv(4096).decode()
        return dict(line.split("=", 1) for line in text.splitlines())

    def hear_of(self, name: str) -> dict[str, str]:
        """The next message that says so."""
        while name not in (message := self.hear()):
            continue
        return message

    def nothing_more(self) -> None:
        self.socket.setblocking(False)
        with pytest.raises(BlockingIOError):
            self.socket.recv(4096)


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest) -> Iterator[Manager]:
    with tempfile.TemporaryDirectory(prefix="weir-manager-") as folder:
        address = f"{folder}/notify"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
            if request.param == "abstract":
                listening.bind("\0" + address)
                address = "@" + address
            else:
                listening.bind(address)
            listening.settimeout(HEARD_S)
            yield Manager(listening, address)


def test_it_hears_of_start_reload_and_stop(
    server: ServerFactory, site: Path, tmp_path: Path, manager: Manager
) -> None:
    config = tmp_path / "weir.conf"
    config.write_text(f"[server]\nlisten = 127.0.0.1:0\n[site main]\nroot = {site}\n")
    running = server(
        "-c",
        str(config),
        folder=None,
        listen=(),
        environment={"NOTIFY_SOCKET": manager.address},
    )
    assert manager.hear()["READY"] == "1"
    before = time.monotonic_ns() // 1000
    running.signal(signal.SIGHUP)
    reloading = manager.hear()
    assert reloading["RELOADING"] == "1"
    assert before <= int(reloading["MONOTONIC_USEC"]) <= time.monotonic_ns() // 1000
    ready = manager.hear()
    assert ready["READY"] == "1"
    assert ready["STATUS"].startswith("model ")
    config.write_text("[server]\nbogus = 1\n")
    running.signal(signal.SIGHUP)
    assert "RELOADING" in manager.hear()
    assert "READY" in manager.hear()
    running.signal(signal.SIGTERM)
    assert manager.hear()["STOPPING"] == "1"
    assert running.wait() == 0
    manager.nothing_more()


def test_workers_do_not_know_the_manager(server: ServerFactory, manager: Manager) -> None:
    running = server(environment={"NOTIFY_SOCKET": manager.address})
    inode = os.fstat(manager.socket.fileno()).st_ino
    assert "READY" in manager.hear()
    ours = set(running.master.descriptors().values()) - {f"socket:[{inode}]"}
    assert any(is_datagram(name) for name in ours)
    for worker in running.workers():
        shared = ours & set(worker.descriptors().values())
        assert not any(is_datagram(name) for name in shared)


def is_datagram(name: str) -> bool:
    inode = name.removeprefix("socket:[").rstrip("]")
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[6] == inode:
            return fields[4] == "0002"
    return False


def test_the_watchdog_is_fed(server: ServerFactory, manager: Manager) -> None:
    server(environment={"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": str(200_000)})
    manager.hear_of("READY")
    for _ in range(5):
        assert manager.hear() == {"WATCHDOG": "1"}


def test_another_process_s_watchdog_is_not(server: ServerFactory, manager: Manager) -> None:
    running = server(
        environment={
            "NOTIFY_SOCKET": manager.address,
            "WATCHDOG_USEC": "1000",
            "WATCHDOG_PID": "1",
        }
    )
    assert "READY" in manager.hear()
    running.signal(signal.SIGHUP)
    assert "RELOADING" in manager.hear()
    assert "READY" in manager.hear()
    running.signal(signal.SIGTERM)
    assert "STOPPING" in manager.hear()
    assert running.wait() == 0


def test_it_hears_who_takes_over(server: ServerFactory, manager: Manager) -> None:
    running = server(environment={"NOTIFY_SOCKET": manager.address})
    assert "READY" in manager.hear()
    running.signal(signal.SIGUSR2)
    main = int(manager.hear_of("MAINPID")["MAINPID"])
    assert running.wait() == 0
    new = Process.of(main)
    assert new
    os.kill(main, signal.SIGTERM)
    assert manager.hear_of("STOPPING")
    deadline = time.monotonic() + HEARD_S
    while new.alive:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_manager_that_cannot_be_told_is_no_reason_not_to_serve(server: ServerFactory) -> None:
    running = server(environment={"NOTIFY_SOCKET": "vsock:2:1234"})
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").status == 200
    assert "the service manager cannot be told" in running.messages()


# ---- sockets that are passed in ----


def listening(*, share: bool = False, port: int = 0, host: str = "127.0.0.1") -> socket.socket:
    made = socket.socket()
    if share:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    made.bind((host, port))
    made.listen(64)
    return made


def url_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()
    return f"http://{host}:{port}/"


def test_what_is_passed_in_is_served_where_nothing_else_is_asked_for(
    server: ServerFactory,
) -> None:
    with listening() as one, listening() as other:
        running = server(listen=(), **activation(one, other))
        assert set(running.urls) == {url_of(one), url_of(other)}
        for listener in (one, other):
            for _ in range(5):
                with connect(listener.getsockname()) as connection:
                    assert connection.get("/hello.txt").status == 200
            assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
            assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT) > 0
            assert os.get_blocking(listener.fileno()) is False


def test_a_socket_takes_the_place_of_the_address_that_it_has(server: ServerFactory) -> None:
    with listening() as one, listening() as unwanted:
        host, port = one.getsockname()
        running = server(
            listen=("127.0.0.1:0", f"{host}:{port}"), **activation(one, unwanted, names="a:b")
        )
        assert len(running.urls) == 2
        assert url_of(one) in running.urls
        for _ in range(5):
            with connect((host, port)) as connection:
                assert connection.get("/hello.txt").status == 200
        with connect(running.address) as connection:
            assert connection.get("/hello.txt").status == 200
        [warning] = [line for line in running.messages().splitlines() if "passed in" in line]
        assert "warning" in warning
        assert url_of(unwanted) in warning
        running.signal(signal.SIGHUP)
        while "reloaded" not in running.messages():
            assert running.popen.poll() is None
        with connect((host, port)) as connection:
            assert connection.get("/hello.txt").status == 200


def test_several_sockets_of_one_address_are_all_served(server: ServerFactory) -> None:
    with listening(share=True) as first:
        port = first.getsockname()[1]
        with listening(share=True, port=port) as second, listening(share=True, port=port) as third:
            running = server(listen=(), **activation(first, second, third))
            assert running.urls == [url_of(first)]
            for _ in range(30):
                with connect(first.getsockname()) as connection:
                    assert connection.get("/hello.txt").status == 200


def test_what_waited_before_the_start_is_answered(server: ServerFactory) -> None:
    with listening() as listener:
        with connect(listener.getsockname()) as early:
            early.send(b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n")
            server(listen=(), **activation(listener))
            assert early.read().body == b"hello\n"


def test_a_unix_socket_that_was_passed_in_stays_when_it_stops(server: ServerFactory) -> None:
    with tempfile.TemporaryDirectory(prefix="weir-manager-") as folder:
        path = Path(folder, "serve")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen()
            running = server(listen=(f"unix:{path}",), **activation(listener))
            with connect(str(path)) as connection:
                assert connection.get("/hello.txt").status == 200
            running.stop()
            assert path.exists()


def test_the_variables_are_for_the_process_that_they_name(server: ServerFactory) -> None:
    with listening() as listener:
        running = server(
            environment={"LISTEN_PID": "1", "LISTEN_FDS": "1"},
            descriptors=(listener.fileno(),),
        )
        assert url_of(listener) not in running.urls


@pytest.mark.parametrize("kind", ["datagram", "unbound"])
def test_what_is_no_listener_is_an_error(site: Path, kind: str) -> None:
    with socket.socket(
        type=socket.SOCK_DGRAM if kind == "datagram" else socket.SOCK_STREAM
    ) as wrong:
        start = activation(wrong)
        done = subprocess.run(
            [*start["wrapper"], str(WEIR), "serve", str(site), "--control", "off"],
            env={**os.environ, **start["environment"]},
            pass_fds=start["descriptors"],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    assert done.returncode == 1
    assert "descriptor 3 of LISTEN_FDS cannot be served" in done.stderr
    assert "ListenStream=" in done.stderr
