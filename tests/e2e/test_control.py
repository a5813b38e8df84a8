# SPDX-License-Identifier: MIT
"""`weir reload` and `weir stop` find the server, send it a request and wait for the outcome."""

from __future__ import annotations

import os
import re
import signal
import socket
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.running import WEIR, Server
from tests.e2e.test_stopping import begin_download, wait_until_stopping
from tests.e2e.wire import connect
from tests.waiting import LIMIT_S, wait_until


@dataclass
class Place:
    """A folder of control sockets for one test."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        return {"RUNTIME_DIRECTORY": str(self.folder)}

    def weir(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs weir, which must end by itself."""
        return subprocess.run(
            [WEIR, *arguments],
            env={"PATH": os.defpath, **self.environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )

    def socket_of(self, running: Server) -> Path:
        return self.folder / f"{running.popen.pid}.sock"


@pytest.fixture
def place() -> Iterator[Place]:
    with tempfile.TemporaryDirectory(prefix="weir-control-") as folder:
        yield Place(Path(folder))


def write_config(path: Path, site: Path, *, header: str = "one", more: str = "") -> None:
    server = f"[server]\nlisten = 127.0.0.1:0\n{more}"
    path.write_text(f"{server}[site main]\nroot = {site}\nheader = X-Is: {header}\n")


def header_of(running: Server) -> str | None:
    with connect(running.address) as connection:
        return connection.get("/hello.txt").get("X-Is")


def has_header(running: Server, value: str) -> bool:
    return header_of(running) == value


def test_reload_returns_when_the_new_configuration_is_in_force(
    server: ServerFactory, site: Path, tmp_path: Path, place: Place
) -> None:
    config = tmp_path / "weir.conf"
    write_config(config, site)
    running = server("-c", str(config), folder=None, listen=(), environment=place.environment)
    assert header_of(running) == "one"
    for name in ("two", "three"):
        write_config(config, site, header=name)
        done = place.weir("reload")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == f"weir: process {running.popen.pid} serves the new configuration\n"
        # The old workers can still accept connections for a moment.
        wait_until(partial(has_header, running, name), f"{name} is in force")


def test_reload_prints_the_errors_and_changes_nothing(
    server: ServerFactory, site: Path, tmp_path: Path, place: Place
) -> None:
    config = tmp_path / "weir.conf"
    write_config(config, site)
    running = server("-c", str(config), folder=None, listen=(), environment=place.environment)
    write_config(config, site, header="two", more="cache-sise = 1M\nmodel = epol\n")
    checked = place.weir("check", str(config))
    done = place.weir("reload", str(running.popen.pid))
    assert done.returncode == 1
    assert done.stdout == ""
    *problems, last = done.stderr.splitlines()
    assert problems == checked.stderr.splitlines()[:-1]  # but for how many there are
    assert "did you mean `cache-size`?" in problems[0]
    assert last == f"weir: process {running.popen.pid} keeps the old configuration"
    assert header_of(running) == "one"


def test_a_reload_that_cannot_take_effect_prints_why(
    server: ServerFactory, site: Path, tmp_path: Path, place: Place
) -> None:
    config = tmp_path / "weir.conf"
    write_config(config, site)
    running = server("-c", str(config), folder=None, listen=(), environment=place.environment)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        write_config(config, site, header="two", more=f"listen = 127.0.0.1:{port}\n")
        done = place.weir("reload")
    assert done.returncode == 1
    assert f"127.0.0.1:{port}" in done.stderr
    assert "keeps the old configuration" in done.stderr
    assert header_of(running) == "one"


def test_stop_returns_when_the_server_has_ended(server: ServerFactory, place: Place) -> None:
    running = server(environment=place.environment)
    control = place.socket_of(running)
    assert stat.S_IMODE(control.stat().st_mode) == 0o600
    done = place.weir("stop")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"weir: process {running.popen.pid} has stopped\n"
    assert running.wait() == 0
    assert not control.exists()


def test_stop_waits_for_a_download_but_stop_now_does_not(
    server: ServerFactory, site: Path, place: Place
) -> None:
    running = server(environment=place.environment)
    download = begin_download(running, site)
    try:
        with subprocess.Popen(
            [WEIR, "stop"],
            env={"PATH": os.defpath, **place.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as patient:
            wait_until_stopping(running)
            assert patient.poll() is None
            assert running.popen.poll() is None
            again = place.weir("stop", "--now", str(running.popen.pid))
            assert again.returncode == 0, again.stderr
            out, _ = patient.communicate(timeout=LIMIT_S)
            assert patient.returncode == 0
            assert "has stopped" in out
        assert running.wait() == 0
    finally:
        download.close()


def test_on_a_terminal_stop_prints_what_it_waits_for(
    server: ServerFactory, site: Path, place: Place
) -> None:
    running = server(environment=place.environment)
    download = begin_download(running, site)
    terminal, end = os.openpty()
    try:
        with subprocess.Popen(
            [WEIR, "stop"],
            env={"PATH": os.defpath, **place.environment},
            stdout=subprocess.DEVNULL,
            stderr=end,
        ) as patient:
            os.close(end)
            text = b""
            while b"\n" not in text:
                text += os.read(terminal, 1000)
            assert re.match(rb"weir: waiting for [1-9]\d* workers? to finish\r?\n", text)
            download.read()
            download.close()
            assert patient.wait(LIMIT_S) == 0
        assert running.wait() == 0
    finally:
        download.close()
        os.close(terminal)


def test_with_several_servers_the_command_requires_a_process_id(
    server: ServerFactory, place: Place
) -> None:
    first = server(environment=place.environment)
    second = server(environment=place.environment)
    for command in ("reload", "stop"):
        done = place.weir(command)
        assert done.returncode == 2
        heading, *lines = done.stderr.splitlines()
        assert heading == (
            f"weir: 2 servers are running; name one by its process id: weir {command} PID"
        )
        for running in (first, second):
            [line] = [line for line in lines if line.split()[0] == str(running.popen.pid)]
            assert running.urls[0] in line
            assert re.search(r" since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d", line)
    assert place.weir("stop", str(first.popen.pid)).returncode == 0
    assert first.wait() == 0
    assert place.weir("stop").returncode == 0
    assert second.wait() == 0


def test_without_a_server_the_error_names_a_remedy(place: Place) -> None:
    for arguments, said in (
        (["reload"], "no server of this user has its socket in"),
        (["stop"], "--control PATH"),
        (["stop", "--now", "1"], "there is no such socket"),
        (["reload", "--control", "/nowhere/weir.sock"], "there is no such socket"),
        (["stop", "--control", "/dev/null"], "it is no socket"),
        (["reload", "--control", "/"], "it is no socket"),
    ):
        done = place.weir(*arguments)
        assert done.returncode == 1
        assert done.stderr.startswith("weir: ")
        assert done.stderr.count("\n") == 1
        assert said in done.stderr


def test_the_control_socket_of_a_killed_server_is_removed(
    server: ServerFactory, place: Place
) -> None:
    running = server(environment=place.environment)
    control = place.socket_of(running)
    killed = running.master.descendants()
    running.kill()
    wait_until(lambda: not any(each.alive for each in killed), "no process has the socket")
    running.popen.returncode = 0  # the fixture expects this status
    assert control.exists()
    assert "no server of this user has its socket in" in place.weir("reload").stderr
    assert not control.exists()
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(control))
    server(environment=place.environment)
    assert not control.exists()


def test_the_control_socket_can_have_another_path(server: ServerFactory, place: Place) -> None:
    control = place.folder / "own"
    running = server("--control", str(control), environment=place.environment)
    assert not place.socket_of(running).exists()
    assert place.weir("reload").returncode == 1
    assert place.weir("reload", "--control", str(control)).returncode == 0
    assert place.weir("stop", "--control", str(control)).returncode == 0
    assert running.wait() == 0
    assert not control.exists()


def test_the_server_serves_without_a_control_socket(server: ServerFactory, place: Place) -> None:
    running = server("--control", "off", environment=place.environment)
    assert list(place.folder.iterdir()) == []
    assert "control" not in running.messages()

    nowhere = server("--control", "/nowhere/w.sock", environment=place.environment)
    with connect(nowhere.address) as connection:
        assert connection.get("/hello.txt").status == 200
    [warning] = [line for line in nowhere.messages().splitlines() if "control socket" in line]
    assert "warning" in warning
    assert "/nowhere/w.sock: No such file or directory" in warning
    assert "--control PATH" in warning
    assert "--control off" in warning


def test_a_folder_that_other_users_can_write_to_is_not_trusted(
    server: ServerFactory, place: Place
) -> None:
    place.folder.chmod(0o777)
    running = server(environment=place.environment)
    assert f"cannot open the control socket {place.folder}: others than" in running.messages()
    done = place.weir("stop")
    assert done.returncode == 1
    for said in (running.messages(), done.stderr):
        assert "others than you can write to it or own it, so it is not trusted; " in said


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_cannot_send_requests(server: ServerFactory, place: Place) -> None:
    running = server(environment=place.environment)
    control = place.socket_of(running)
    place.folder.chmod(0o755)
    asking = (
        "import os, socket, sys\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "s = socket.socket(socket.AF_UNIX); s.settimeout(20); s.connect(sys.argv[1])\n"
        "print(s.makefile().read())\n"
    )

    def ask() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["python3", "-c", asking, str(control)],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )

    assert "PermissionError" in ask().stderr
    control.chmod(0o666)
    answer = ask()
    assert "only root and the user that the server runs as" in answer.stdout
    assert answer.stdout.endswith("failed\n\n")
    assert running.popen.poll() is None


@pytest.mark.parametrize("model", ["percore"])  # the master is the same in every model
def test_idle_control_clients_delay_neither_requests_nor_reloads(
    server: ServerFactory, place: Place
) -> None:
    running = server(environment=place.environment)
    idle = []
    for _ in range(12):
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(place.socket_of(running)))
        client.sendall(b"rel")
        idle.append(client)
    try:
        running.signal(signal.SIGHUP)
        with connect(running.address) as connection:
            assert connection.get("/hello.txt").status == 200

        def reloaded() -> bool:
            """Succeeds once the server has closed the first of the idle connections."""
            done = place.weir("reload")
            assert done.returncode == 0 or "busy with other requests; try again" in done.stderr
            return done.returncode == 0

        wait_until(reloaded, "a reload is accepted")
    finally:
        for client in idle:
            client.close()


@pytest.mark.parametrize("named", [False, True])
def test_a_reload_makes_a_control_socket_whose_file_was_removed(
    server: ServerFactory, place: Place, named: bool
) -> None:
    path = place.folder / "named.sock"
    running = server(*(("--control", str(path)) if named else ()), environment=place.environment)
    path = path if named else place.socket_of(running)
    target = ("--control", str(path)) if named else ()
    path.unlink()
    assert place.weir("reload", *target).returncode == 1
    running.signal(signal.SIGHUP)
    wait_until(lambda: "reloaded" in running.messages(), running.messages)
    inode = path.stat().st_ino
    assert place.weir("reload", *target).returncode == 0
    assert path.stat().st_ino == inode
    assert place.weir("stop", *target).returncode == 0
    assert running.wait() == 0
    assert not path.exists()
