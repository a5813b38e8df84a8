# SPDX-License-Identifier: MIT
"""The messages to a service manager, and the sockets that it passes to the server."""

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
from tests.e2e.sockets import link_of, unix_sockets
from tests.e2e.wire import connect
from tests.waiting import LIMIT_S, wait_until


@dataclass
class Manager:
    """The socket that receives the messages."""

    socket: socket.socket
    address: str

    def receive(self) -> dict[str, str]:
        """The next message."""
        text = self.socket.recv(4096).decode()
        return dict(line.split("=", 1) for line in text.splitlines())

    def receive_with(self, name: str) -> dict[str, str]:
        """The next message with this variable."""
        while name not in (message := self.receive()):
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
            listening.settimeout(LIMIT_S)
            yield Manager(listening, address)


def test_the_manager_is_notified_of_start_reload_and_stop(
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
    assert manager.receive()["READY"] == "1"
    before = time.monotonic_ns() // 1000
    running.signal(signal.SIGHUP)
    reloading = manager.receive()
    assert reloading["RELOADING"] == "1"
    assert before <= int(reloading["MONOTONIC_USEC"]) <= time.monotonic_ns() // 1000
    ready = manager.receive()
    assert ready["READY"] == "1"
    assert ready["STATUS"].startswith("model ")
    config.write_text("[server]\nbogus = 1\n")
    running.signal(signal.SIGHUP)
    assert "RELOADING" in manager.receive()
    assert "READY" in manager.receive()
    running.signal(signal.SIGTERM)
    assert manager.receive()["STOPPING"] == "1"
    assert running.wait() == 0
    manager.nothing_more()


def test_workers_do_not_hold_the_socket_of_the_manager(
    server: ServerFactory, manager: Manager
) -> None:
    running = server(environment={"NOTIFY_SOCKET": manager.address})
    inode = os.fstat(manager.socket.fileno()).st_ino
    assert "READY" in manager.receive()
    ours = set(running.master.descriptors().values()) - {link_of(inode)}
    assert ours & datagrams()
    for worker in running.workers():
        shared = ours & set(worker.descriptors().values())
        assert not shared & datagrams()


def datagrams() -> set[str]:
    return {each.link for each in unix_sockets() if each.is_datagram}


def test_the_watchdog_receives_heartbeats(server: ServerFactory, manager: Manager) -> None:
    server(environment={"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": str(200_000)})
    manager.receive_with("READY")
    for _ in range(5):
        assert manager.receive() == {"WATCHDOG": "1"}


def test_the_watchdog_of_another_process_receives_no_heartbeats(
    server: ServerFactory, manager: Manager
) -> None:
    running = server(
        environment={
            "NOTIFY_SOCKET": manager.address,
            "WATCHDOG_USEC": "1000",
            "WATCHDOG_PID": "1",
        }
    )
    assert "READY" in manager.receive()
    running.signal(signal.SIGHUP)
    assert "RELOADING" in manager.receive()
    assert "READY" in manager.receive()
    running.signal(signal.SIGTERM)
    assert "STOPPING" in manager.receive()
    assert running.wait() == 0


def test_the_manager_is_notified_of_the_new_master(server: ServerFactory, manager: Manager) -> None:
    running = server(environment={"NOTIFY_SOCKET": manager.address})
    assert "READY" in manager.receive()
    running.signal(signal.SIGUSR2)
    main = int(manager.receive_with("MAINPID")["MAINPID"])
    assert running.wait() == 0
    new = Process.of(main)
    assert new
    os.kill(main, signal.SIGTERM)
    assert manager.receive_with("STOPPING")
    wait_until(lambda: not new.alive, "the new master has ended")


def test_the_server_serves_although_the_manager_cannot_be_notified(server: ServerFactory) -> None:
    running = server(environment={"NOTIFY_SOCKET": "vsock:2:1234"})
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").status == 200
    assert "the service manager gets no messages" in running.messages()


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


def test_passed_sockets_replace_the_default_listeners(
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


def test_a_passed_socket_is_used_for_its_address(server: ServerFactory) -> None:
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
        [warning] = [line for line in running.messages().splitlines() if "handed over" in line]
        assert "warning" in warning
        assert url_of(unwanted) in warning
        running.signal(signal.SIGHUP)
        wait_until(lambda: "reloaded" in running.messages(), running.messages)
        with connect((host, port)) as connection:
            assert connection.get("/hello.txt").status == 200


def test_several_passed_sockets_with_one_address_are_all_served(server: ServerFactory) -> None:
    with listening(share=True) as first:
        port = first.getsockname()[1]
        with listening(share=True, port=port) as second, listening(share=True, port=port) as third:
            running = server(listen=(), **activation(first, second, third))
            assert running.urls == [url_of(first)]
            for _ in range(30):
                with connect(first.getsockname()) as connection:
                    assert connection.get("/hello.txt").status == 200


def test_a_connection_from_before_the_start_is_answered(server: ServerFactory) -> None:
    with listening() as listener:
        with connect(listener.getsockname()) as early:
            early.send(b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n")
            server(listen=(), **activation(listener))
            assert early.read().body == b"hello\n"


def test_the_file_of_a_passed_unix_socket_stays(server: ServerFactory) -> None:
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


def test_sockets_for_another_process_are_ignored(server: ServerFactory) -> None:
    with listening() as listener:
        running = server(
            environment={"LISTEN_PID": "1", "LISTEN_FDS": "1"},
            descriptors=(listener.fileno(),),
        )
        assert url_of(listener) not in running.urls


@pytest.mark.parametrize("kind", ["datagram", "unbound"])
def test_a_passed_socket_that_does_not_listen_is_an_error(site: Path, kind: str) -> None:
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
            timeout=LIMIT_S,
            check=False,
        )
    assert done.returncode == 1
    assert "cannot serve descriptor 3 of LISTEN_FDS" in done.stderr
    assert "ListenStream=" in done.stderr
