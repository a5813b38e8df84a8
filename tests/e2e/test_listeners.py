# SPDX-License-Identifier: MIT
"""Listeners, and the choice of a site by host."""

from __future__ import annotations

import os
import socket
import stat
import tempfile
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.running import Server
from tests.e2e.wire import connect


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="there is no ::1 here")


def test_each_listener_is_printed_and_serves(server: ServerFactory) -> None:
    running = server(listen=("127.0.0.1:0", "127.0.0.1:0"))
    assert len(running.urls) == 2
    assert len(set(running.urls)) == 2
    for url in running.urls:
        host, _, port = url.removeprefix("http://").rstrip("/").rpartition(":")
        with connect((host, int(port))) as connection:
            assert connection.get("/hello.txt").body == b"hello\n"


@needs_ipv6
def test_a_listener_can_have_an_ipv6_address(server: ServerFactory) -> None:
    running = server(listen=("[::1]:0",))
    assert running.url.startswith("http://[::1]:")
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").body == b"hello\n"


def test_a_listener_can_be_a_unix_socket(server: ServerFactory, tmp_path: Path) -> None:
    path = tmp_path / "weir.sock"
    running = server(listen=(f"unix:{path}",))
    assert running.urls == [f"unix:{path}"]
    for _ in range(3):
        with connect(str(path)) as connection:
            assert connection.get("/hello.txt").body == b"hello\n"
    running.stop()
    assert not path.exists()


@pytest.mark.parametrize("model", ["epoll", "prefork"])
@pytest.mark.parametrize("mask", [0o027, 0o007, 0])
def test_the_umask_decides_who_may_connect_to_a_unix_socket(
    server: ServerFactory, tmp_path: Path, mask: int
) -> None:
    path = tmp_path / "weir.sock"
    before = os.umask(mask)
    try:
        server(listen=(f"unix:{path}",))
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o777 & ~mask


def test_a_stale_unix_socket_is_replaced(server: ServerFactory, tmp_path: Path) -> None:
    path = tmp_path / "weir.sock"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    server(listen=(f"unix:{path}",))
    with connect(str(path)) as connection:
        assert connection.get("/hello.txt").body == b"hello\n"


@pytest.mark.parametrize("model", ["epoll"])
def test_a_server_that_stops_leaves_the_sockets_of_another_one(server: ServerFactory) -> None:
    """The operator removed the files, and a second server made them again."""
    with tempfile.TemporaryDirectory(prefix="weir-listen-") as name:
        sockets = [Path(name, "serve"), Path(name, "control")]

        def serve() -> Server:
            return server("--control", str(sockets[1]), listen=(f"unix:{sockets[0]}",))

        first = serve()
        for path in sockets:
            path.unlink()
        second = serve()
        first.stop()
        assert all(path.is_socket() for path in sockets)
        with connect(str(sockets[0])) as connection:
            assert connection.get("/hello.txt").status == 200
        second.stop()
        assert not any(path.exists() for path in sockets)


@pytest.mark.parametrize("model", ["epoll"])
def test_a_socket_needs_its_folder(server: ServerFactory, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"make the folder of the socket") as failure:
        server(listen=(f"unix:{tmp_path}/nowhere/weir.sock",))
    assert "congestion" not in str(failure.value)


@pytest.mark.parametrize("model", ["epoll"])
def test_a_file_at_the_path_of_a_socket_is_kept(server: ServerFactory, tmp_path: Path) -> None:
    path = tmp_path / "thesis.txt"
    path.write_text("years of work\n")
    running = server("--control", str(path))
    assert f"cannot open the control socket {path}: the path names a file" in running.messages()
    running.stop()
    with pytest.raises(AssertionError, match=r"no socket; remove the file, or choose another"):
        server(listen=(f"unix:{path}",))
    assert path.read_text() == "years of work\n"


def test_the_host_decides_the_site(server: ServerFactory, tmp_path: Path) -> None:
    for name in ["one", "two", "rest"]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "name.txt").write_text(name)
    configuration = tmp_path / "weir.conf"
    configuration.write_text(
        "[server]\n"
        "listen = 127.0.0.1:0\n"
        f"[site one]\nhost = one.test\nroot = {tmp_path}/one\nheader = X-Site: first\n"
        f"[site two]\nhost = *.two.test\nroot = {tmp_path}/two\n"
        f"[site rest]\nroot = {tmp_path}/rest\n"
    )
    running = server("-c", str(configuration), folder=None, listen=())
    with connect(running.address) as connection:
        first = connection.get("/name.txt", "one.test")
        assert (first.body, first.get("X-Site")) == (b"one", "first")
        assert connection.get("/name.txt", "ONE.test:8080").body == b"one"
        assert connection.get("/name.txt", "a.two.test").body == b"two"
        assert connection.get("/name.txt", "a.b.two.test").body == b"two"
        other = connection.get("/name.txt", "three.test")
        assert (other.body, other.get("X-Site")) == (b"rest", None)


def test_a_host_without_a_site_gets_421(server: ServerFactory, tmp_path: Path) -> None:
    configuration = tmp_path / "weir.conf"
    configuration.write_text(
        f"[server]\nlisten = 127.0.0.1:0\n[site one]\nhost = one.test\nroot = {tmp_path}\n"
    )
    running = server("-c", str(configuration), folder=None, listen=())
    with connect(running.address) as connection:
        assert connection.get("/nothing-here", "one.test").status == 404
        assert connection.get("/nothing-here", "two.test").status == 421
