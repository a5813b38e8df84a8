# SPDX-License-Identifier: MIT
"""SIGUSR2 replaces the binary: no connection is refused, and a binary that does not serve changes
nothing."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import certificates
from tests.e2e.activation import activation
from tests.e2e.conftest import ServerFactory
from tests.e2e.load import Load
from tests.e2e.running import WEIR, Process, Server, start
from tests.e2e.sockets import unix_sockets
from tests.e2e.statistics import segment, wait_for
from tests.e2e.test_stopping import BIG, begin_download
from tests.e2e.wire import connect
from tests.waiting import LIMIT_S, wait_until


@pytest.fixture
def binary(tmp_path: Path) -> Path:
    """A copy of the server that a test can replace."""
    copy = tmp_path / "weir"
    shutil.copy2(WEIR, copy)
    return copy


@pytest.fixture
def successors() -> Iterator[list[Process]]:
    """A list for new masters, which are no children of this process. Each is ended at the end."""
    found: list[Process] = []
    yield found
    for master in found:
        seen = [master, *master.descendants()]
        if master.alive:
            os.kill(master.pid, signal.SIGTERM)
        wait_for_end(seen)


def wait_for_end(processes: list[Process]) -> None:
    wait_until(lambda: not any(process.alive for process in processes), f"the end of {processes}")


def replace(binary: Path, content: bytes | None = None) -> None:
    """Replaces the file in one step, as a package manager does."""
    new = binary.with_suffix(".new")
    shutil.copy2(WEIR, new)
    if content is not None:
        new.write_bytes(content)
    new.rename(binary)


def said(running: Server, text: str, times: int = 1) -> None:
    wait_until(
        lambda: running.messages().count(text) >= times, lambda: f"`{text}` in {running.messages()}"
    )


def started(running: Server, times: int) -> Process:
    """The new master of the n-th upgrade."""
    said(running, "SIGUSR2: started ", times)
    pid = re.findall(r"SIGUSR2: started \S+ as process (\d+)", running.messages())[times - 1]
    found = Process.of(int(pid))
    assert found, running.messages()
    return found


def upgrade(running: Server, times: int = 1) -> Process:
    """Upgrades and waits until the old master has ended; returns the new master."""
    running.signal(signal.SIGUSR2)
    new = started(running, times)
    assert running.wait() == 0, running.messages()
    assert new.alive
    return new


@pytest.mark.parametrize("keep", [True, False])
def test_no_connection_is_refused(
    server: ServerFactory, binary: Path, successors: list[Process], keep: bool
) -> None:
    running = server(weir=binary)
    with Load(running.address, "/hello.txt", b"hello\n", clients=4, keep=keep) as load:
        load.wait_for(50)
        replace(binary)
        successors.append(upgrade(running))
        load.wait_for(50)
        count = load.stop()
    assert (count.refused, count.cut, count.wrong) == (0, 0, [])
    assert count.unanswered == 0
    assert os.readlink(f"/proc/{successors[0].pid}/exe") == str(binary)


def test_a_link_in_the_path_of_the_binary_is_followed_anew(
    server: ServerFactory, binary: Path, tmp_path: Path, successors: list[Process]
) -> None:
    """Each version has a folder of its own, and a link names the one in use."""
    for version in ("1", "2"):
        (tmp_path / version).mkdir()
        shutil.copy2(binary, tmp_path / version / "weir")
    current = tmp_path / "current"
    current.symlink_to("1")
    running = server(weir=current / "weir")
    assert os.readlink(f"/proc/{running.popen.pid}/exe") == str(tmp_path / "1/weir")
    new = tmp_path / "new"
    new.symlink_to("2")
    new.rename(current)
    successors.append(upgrade(running))
    assert os.readlink(f"/proc/{successors[0].pid}/exe") == str(tmp_path / "2/weir")


def test_a_server_can_be_upgraded_several_times(
    server: ServerFactory, binary: Path, successors: list[Process]
) -> None:
    running = server("--listen", "127.0.0.1:0", weir=binary)
    master = upgrade(running)
    successors.append(master)
    open_before = len(os.listdir(f"/proc/{master.pid}/fd"))
    for times in (2, 3, 4):
        old = master
        os.kill(old.pid, signal.SIGUSR2)
        master = started(running, times)
        successors.append(master)
        wait_for_end([old])
    for url in running.urls:
        host, _, port = url.removeprefix("http://").rstrip("/").rpartition(":")
        with connect((host, int(port))) as connection:
            assert connection.get("/hello.txt").status == 200
    wait_until(
        lambda: len(os.listdir(f"/proc/{master.pid}/fd")) <= open_before,
        "the descriptors of the old master are closed",
    )


@pytest.mark.parametrize(
    "content",
    [
        b"#!/bin/sh\nexit 3\n",
        b"#!/bin/sh\nexec >&- 3>&-; exit 0\n",
        b"not a program",
        b"",
    ],
    ids=["fails", "silent", "garbage", "empty"],
)
def test_a_binary_that_does_not_serve_changes_nothing(
    server: ServerFactory, binary: Path, content: bytes
) -> None:
    running = server(weir=binary)
    with Load(running.address, "/hello.txt", b"hello\n", clients=2, keep=True) as load:
        load.wait_for(20)
        replace(binary, content)
        for times in (1, 2):
            running.signal(signal.SIGUSR2)
            said(running, "the old one continues to serve", times)
        load.wait_for(20)
        count = load.stop()
    assert (count.refused, count.unanswered, count.cut, count.wrong) == (0, 0, 0, [])
    running.stop()


def test_an_invalid_configuration_prevents_the_upgrade(
    server: ServerFactory, site: Path, tmp_path: Path, binary: Path, successors: list[Process]
) -> None:
    config = tmp_path / "weir.conf"
    good = f"[server]\nlisten = 127.0.0.1:0\n[site main]\nroot = {site}\n"
    config.write_text(good)
    running = server("-c", str(config), folder=None, listen=(), weir=binary)
    config.write_text(good + "bogus = 1\n")
    running.signal(signal.SIGUSR2)
    said(running, "the old one continues to serve")
    assert "unknown setting `bogus`" in running.messages()
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").status == 200
    config.write_text(good)
    successors.append(upgrade(running, 2))
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").status == 200


@pytest.mark.parametrize("model", ["epoll"])
@pytest.mark.parametrize("listeners", [1, 2, 3, 4])
def test_a_file_that_is_missing_is_named_in_the_error_log(
    server: ServerFactory, binary: Path, tmp_path: Path, listeners: int
) -> None:
    """Whichever descriptors the successor would get, its message reaches the log, and nothing
    else."""
    log = tmp_path / "error.log"
    listen = ("127.0.0.1:0",) * listeners
    running = server("--error-log", str(log), listen=listen, weir=binary)
    binary.unlink()
    running.signal(signal.SIGUSR2)
    ended = "the old one continues to serve", "finishes its connections"
    wait_until(lambda: any(text in log.read_text() for text in ended), log.read_text)
    assert ended[0] in log.read_text()
    assert f"cannot start {binary}: No such file" in log.read_text()
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").status == 200
    running.stop()


@pytest.mark.parametrize("model", ["epoll"])
def test_a_failed_upgrade_leaves_the_socket_files(server: ServerFactory, site: Path) -> None:
    """The successor fails after it has taken the sockets over: an address of it is in use."""
    with (
        tempfile.TemporaryDirectory(prefix="weir-upgrade-") as folder,
        socket.create_server(("127.0.0.1", 0)) as taken,
    ):
        path, control, config = (Path(folder, name) for name in ("serve", "control", "weir.conf"))
        good = f"[server]\nlisten = unix:{path}\nlisten = 127.0.0.1:0\ncontrol = {control}\n"
        main = f"[site main]\nroot = {site}\n"
        config.write_text(good + main)
        running = server("-c", str(config), folder=None, listen=())
        config.write_text(f"{good}listen = 127.0.0.1:{taken.getsockname()[1]}\n{main}")
        running.signal(signal.SIGUSR2)
        said(running, "the old one continues to serve")
        with connect(str(path)) as connection:
            assert connection.get("/hello.txt").status == 200
        config.write_text(good + main)
        command = [str(WEIR), "reload", "--control", str(control)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        assert f"process {running.popen.pid} serves" in done.stdout + done.stderr
        running.stop()
        assert not path.exists()
        assert not control.exists()


def congestion_of(port: int) -> str:
    """The congestion control of the listener, and so of the connections that it accepts."""
    command = ["ss", "-Hltin", f"sport = :{port}"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    if len(lines) < 2:
        pytest.skip("the kernel does not say it (inet_diag)")
    return lines[1].split()[0]


@pytest.mark.skipif(not shutil.which("ss"), reason="ss (iproute2) is not installed")
@pytest.mark.parametrize("model", ["epoll"])
def test_only_a_successor_that_serves_changes_the_congestion_control(
    server: ServerFactory, site: Path, tmp_path: Path, successors: list[Process]
) -> None:
    offered = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    others = [name for name in offered if name != "reno"]
    if not others:
        pytest.skip("the kernel has one congestion control only")
    config = tmp_path / "weir.conf"
    text = f"[server]\nlisten = 127.0.0.1:0\ncongestion = reno\n[site main]\nroot = {site}\n"
    config.write_text(text)
    running = server("-c", str(config), folder=None, listen=())
    port = running.address[1]
    assert congestion_of(port) == "reno"
    text = text.replace("reno", others[0])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        also = f"listen = 127.0.0.1:{taken.getsockname()[1]}\n[site main]"
        config.write_text(text.replace("[site main]", also))
        running.signal(signal.SIGUSR2)
        said(running, "the old one continues to serve")
    assert congestion_of(port) == "reno"
    config.write_text(text)
    successors.append(upgrade(running, 2))
    assert congestion_of(port) == others[0]


def test_a_second_upgrade_is_ignored_and_a_stop_ends_both_servers(
    server: ServerFactory, binary: Path
) -> None:
    running = server(weir=binary)
    replace(binary, b"#!/bin/sh\nexec sleep 600\n")
    running.signal(signal.SIGUSR2)
    said(running, "SIGUSR2: started ")
    running.signal(signal.SIGUSR2)
    said(running, "is starting already")
    running.workers()  # the end of the test then checks the process that sleeps, too
    running.stop()


def test_an_upgrade_that_is_requested_during_a_reload_follows_it(
    server: ServerFactory, binary: Path, successors: list[Process]
) -> None:
    running = server(weir=binary)
    running.signal(signal.SIGSTOP)  # so that it finds both requests at once
    running.signal(signal.SIGHUP)
    running.signal(signal.SIGUSR2)
    running.signal(signal.SIGCONT)
    successors.append(started(running, 1))
    assert running.wait() == 0, running.messages()
    assert "reloaded: " in running.messages().partition("SIGUSR2: started ")[0]


@pytest.mark.parametrize("end", [f'exec {WEIR} "$@"', "exit 1"], ids=["serves", "fails"])
def test_a_reload_that_is_requested_during_an_upgrade_follows_it(
    server: ServerFactory, binary: Path, tmp_path: Path, successors: list[Process], end: str
) -> None:
    """A successor may have read the configuration before it changed."""
    go = tmp_path / "go"
    running = server(weir=binary)
    replace(binary, f"#!/bin/sh\nwhile [ ! -e {go} ]; do sleep 0.05; done\n{end}\n".encode())
    running.signal(signal.SIGUSR2)
    new = started(running, 1)
    running.signal(signal.SIGHUP)
    running.signal(signal.SIGUSR1)  # which is handled later
    said(running, "SIGUSR1 ")
    assert "reloaded: " not in running.messages()
    go.touch()
    reloads = new.pid if end.startswith("exec") else running.popen.pid
    if reloads == new.pid:
        successors.append(new)
    said(running, f"info [{reloads}] reloaded: ")


def listeners(path: Path) -> list[str]:
    """The sockets that listen at the path, as Process.sockets() names them."""
    return [each.link for each in unix_sockets() if each.path == str(path) and each.listens]


def test_unix_sockets_and_a_named_control_socket_are_handed_over(
    server: ServerFactory, binary: Path, successors: list[Process]
) -> None:
    with tempfile.TemporaryDirectory(prefix="weir-upgrade-") as folder:
        path, control = Path(folder, "serve"), Path(folder, "control")
        running = server(
            "--control", str(control), listen=("127.0.0.1:0", f"unix:{path}"), weir=binary
        )
        new = upgrade(running)
        successors.append(new)
        (inode,) = listeners(control)
        assert inode in new.sockets()
        assert not any(inode in child.sockets() for child in new.descendants())
        with connect(str(path)) as connection:
            assert connection.get("/hello.txt").status == 200
        stop = [str(binary), "stop", "--control", str(control)]
        done = subprocess.run(stop, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        assert done.stdout == f"weir: process {new.pid} has stopped\n", done.stderr
        assert not path.exists()
        assert not control.exists()


@pytest.mark.parametrize("model", ["epoll"])
def test_files_that_the_new_configuration_does_not_name_are_removed(
    server: ServerFactory, binary: Path, site: Path, successors: list[Process]
) -> None:
    with tempfile.TemporaryDirectory(prefix="weir-upgrade-") as name:
        folder = Path(name)
        conf = folder / "weir.conf"

        def write(number: int) -> list[Path]:
            made = [folder / f"{kind}-{number}" for kind in ("pid", "control", "serve")]
            conf.write_text(
                f"[server]\npid-file = {made[0]}\ncontrol = {made[1]}\n"
                f"listen = 127.0.0.1:0\nlisten = unix:{made[2]}\n[site a]\nroot = {site}\n"
            )
            return made

        old = write(1)
        running = server("-c", str(conf), folder=None, listen=(), weir=binary)
        assert all(path.exists() for path in old)
        new = write(2)
        successors.append(upgrade(running))
        assert all(path.exists() for path in new)
        assert [path for path in old if path.exists()] == []


def test_tls_sessions_are_resumed_by_the_new_master(
    server: ServerFactory, binary: Path, tmp_path: Path, successors: list[Process]
) -> None:
    pair = certificates.make(tmp_path, "cert", "localhost")
    running = server(*pair.flags(), listen=("https://127.0.0.1:0",), weir=binary)
    client = certificates.Client(pair, running.address)
    assert not client.resumes()
    successors.append(upgrade(running))
    assert client.resumes()


def test_the_pid_file_names_the_new_master(
    server: ServerFactory, site: Path, tmp_path: Path, binary: Path, successors: list[Process]
) -> None:
    pid_file = tmp_path / "weir.pid"
    running = server("--pid-file", str(pid_file), weir=binary)
    assert int(pid_file.read_text()) == running.popen.pid
    replace(binary, f"#!/bin/sh\necho $$ > {pid_file}\nexit 1\n".encode())  # it fails late
    running.signal(signal.SIGUSR2)
    said(running, "the old one continues to serve")
    own = f"{running.popen.pid}\n"
    wait_until(lambda: pid_file.read_text() == own, "the old master names itself again")
    replace(binary)
    new = upgrade(running, 2)
    successors.append(new)
    assert int(pid_file.read_text()) == new.pid
    wait_until(lambda: f"-> {new.pid} " in locks(pid_file), "the new master locks the pid file")
    other = subprocess.run(
        [WEIR, "serve", site, "--listen", "0", "--pid-file", pid_file, "--control", "off"],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert other.returncode == 1
    assert f"belongs to process {new.pid}" in other.stderr
    os.kill(new.pid, signal.SIGTERM)
    wait_for_end([new])
    assert not pid_file.exists()


@pytest.fixture
def full_pipe(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A named pipe, and a descriptor that reads and fills it."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    end = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, 4096)
    yield path, end
    os.close(end)


def test_a_successor_that_dies_just_before_it_serves_changes_nothing(
    site: Path, tmp_path: Path, full_pipe: tuple[Path, int]
) -> None:
    """It has the statistics and the pid file already, and prints its addresses into a full pipe."""
    pipe, end = full_pipe
    pid_file, log = tmp_path / "weir.pid", tmp_path / "error.log"
    listen = ("--listen", "127.0.0.1:0", "--pid-file", str(pid_file), "--error-log", str(log))
    running = start([str(site), *listen], pipe)
    try:
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(end, b"\0")
        running.signal(signal.SIGUSR2)
        found = wait_until(
            lambda: re.search(r"started \S+ as process (\d+)", log.read_text()), log.read_text
        )
        assert found
        new = int(found[1])
        wait_until(segment(new).exists, log.read_text)
        assert int(pid_file.read_text()) == new
        os.kill(new, signal.SIGKILL)
        old = running.popen.pid
        wait_until(segment(old).exists, log.read_text)
        assert not segment(new).exists()
        wait_until(lambda: int(pid_file.read_text()) == old, "the old master names itself again")
        with connect(running.address) as connection:
            assert connection.get("/hello.txt").status == 200
        numbers = wait_for(running, lambda numbers: bool(numbers["counters"]["requests"]))
        assert (numbers["pid"], numbers["state"]) == (old, "serving")
    finally:
        running.stop()
    assert not segment(running.popen.pid).exists()
    assert not pid_file.exists()


def locks(path: Path) -> str:
    """The processes that have locked the file, each as `-> PID `."""
    inode = path.stat().st_ino
    lines = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    return "".join(f"-> {line[4]} " for line in lines if line[5].endswith(f":{inode}"))


def test_passed_sockets_are_handed_over_and_their_files_stay(
    server: ServerFactory, binary: Path, successors: list[Process]
) -> None:
    with tempfile.TemporaryDirectory(prefix="weir-upgrade-") as folder:
        path = Path(folder, "serve")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen()
            running = server(
                listen=(f"unix:{path}",),
                weir=binary,
                **activation(listener),
            )
            new = upgrade(running)
            successors.append(new)
            with connect(str(path)) as connection:
                assert connection.get("/hello.txt").status == 200
            os.kill(new.pid, signal.SIGTERM)
            wait_for_end([new])
            assert path.exists()


def test_the_first_stop_of_both_masters_cuts_no_download(
    server: ServerFactory, binary: Path, site: Path, successors: list[Process]
) -> None:
    running = server("--drain-timeout", "10m", weir=binary)
    download = begin_download(running, site)
    try:
        running.signal(signal.SIGUSR2)
        new = started(running, 1)
        successors.append(new)
        said(running, " serves; this one finishes its connections")
        for pid in (running.popen.pid, new.pid):  # as a service manager does
            os.kill(pid, signal.SIGTERM)
        said(running, "stopping: ", 3)  # for the successor, and one for each signal
        assert len(download.read_to_end()) > BIG
    finally:
        download.close()
    assert running.wait() == 0
    wait_for_end([new])
