# SPDX-License-Identifier: MIT
"""A start that fails reports why on standard error, wherever the error log is. What a start reports
to its operator can be used as it stands."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.running import RUNTIME, WEIR
from tests.e2e.statistics import weir_stats
from tests.e2e.test_listeners import needs_ipv6
from tests.e2e.wire import connect
from tests.waiting import LIMIT_S, wait_until

OWN = {**os.environ, "WEIR_STATS_LISTEN": "", "RUNTIME_DIRECTORY": str(RUNTIME)}
one_model = pytest.mark.parametrize("model", ["epoll"])


def weir(*words: str | Path, cwd: Path, before: tuple[str, ...] = ()) -> tuple[int, str]:
    """Runs weir until it ends; returns its status and its standard error."""
    done = subprocess.run(
        [*before, WEIR, *words],
        cwd=cwd,
        env=OWN,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.fixture
def taken() -> Iterator[int]:
    """A port at which another process listens."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


def write(folder: Path, site: Path, *lines: str) -> Path:
    text = "\n".join(lines)
    conf = folder / "weir.conf"
    conf.write_text(f"[server]\nerror-log = {folder}/error.log\n{text}\n[site a]\nroot = {site}\n")
    return conf


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("listen = 127.0.0.1:{taken}", "choose another port with --listen"),
        ("stats-listen = 127.0.0.1:{taken}", "choose another port with --stats-listen"),
        ("access-log = /proc/no", "cannot open the access log /proc/no: "),
        ("pid-file = /proc/no", "cannot open the pid file /proc/no: "),
    ],
)
def test_a_failed_start_is_reported_on_standard_error_and_in_the_log(
    tmp_path: Path, site: Path, taken: int, line: str, reason: str
) -> None:
    line = line.format(taken=taken)
    free = [] if line.startswith("listen") else ["listen = 127.0.0.1:0"]
    status, errors = weir("serve", "-c", write(tmp_path, site, line, *free), cwd=tmp_path)
    assert status == 1
    setting = line.partition(" ")[0]
    assert errors.startswith(f"weir: {tmp_path}/weir.conf:3: {setting}: cannot ")
    assert reason in errors
    logged = (tmp_path / "error.log").read_text()
    assert errors.removeprefix("weir: ") in logged


def test_an_error_log_that_cannot_be_opened_is_reported(tmp_path: Path, site: Path) -> None:
    conf = tmp_path / "weir.conf"
    conf.write_text(
        f"[server]\nlisten = 127.0.0.1:0\nerror-log = /proc/no\n[site a]\nroot = {site}\n"
    )
    status, errors = weir("serve", "-c", conf, cwd=tmp_path)
    assert status == 1
    assert f"{conf}:3: error-log: cannot open the error log /proc/no: " in errors


def test_an_option_is_named_where_it_is_wrong(tmp_path: Path, site: Path, taken: int) -> None:
    status, errors = weir("serve", site, "--listen", f"127.0.0.1:{taken}", cwd=tmp_path)
    assert status == 1
    assert f"--listen: cannot listen on 127.0.0.1:{taken}: Address already in use" in errors


def test_a_user_that_does_not_exist_is_an_error_of_start_and_check(
    tmp_path: Path, site: Path
) -> None:
    conf = write(tmp_path, site, "user = no-such-user", "listen = 127.0.0.1:0")
    for command in ("serve", "check"):
        status, errors = weir(command, "-c", conf, cwd=tmp_path)
        assert status == 1
        assert f"{conf}:3: error: user: there is no user `no-such-user`" in errors


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_without_root_another_user_and_a_low_port_are_errors(
    public_folder: Path,
) -> None:
    as_nobody = ("setpriv", "--reuid", "nobody", "--clear-groups", "--")
    conf = public_folder / "weir.conf"
    conf.write_text(f"[server]\nlisten = 0\nuser = daemon\n[site a]\nroot = {public_folder}\n")
    for command in ("serve", "check"):
        status, errors = weir(command, "-c", conf, cwd=public_folder, before=as_nobody)
        assert status == 1
        assert f"{conf}:3: error: user: this process may not become `daemon`" in errors
    conf.write_text(f"[server]\nuser = nobody\n[site a]\nroot = {public_folder}\n")
    status, errors = weir("check", "-c", conf, cwd=public_folder, before=as_nobody)
    assert (status, errors) == (0, "")
    if int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text()) <= 80:
        return
    conf.write_text(f"[server]\nlisten = 127.0.0.1:80\n[site a]\nroot = {public_folder}\n")
    status, errors = weir("serve", "-c", conf, cwd=public_folder, before=as_nobody)
    assert status == 1
    assert f"{conf}:2: listen: cannot listen on 127.0.0.1:80: Permission denied" in errors


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_check_warns_of_folders_that_the_workers_cannot_read(
    public_folder: Path,
) -> None:
    names = ("conf", "closed", "errors", "errors-of-path")
    conf, closed, errors_folder, of_path = (public_folder / name for name in names)
    closed.mkdir(mode=0o700)
    for folder in (errors_folder, of_path):
        folder.mkdir(mode=0o755)
        (folder / "404.html").write_text("gone\n")
        (folder / "404.html").chmod(0o600)
    conf.write_text(
        "[server]\nuser = nobody\n"
        f"[site a]\nroot = {closed}\nerror-pages = {errors_folder}\n"
        f"[site b]\nhost = b.test\nroot = {public_folder}\n"
        f"[path /a/**]\nlisting = on\n[path /b/**]\nerror-pages = {of_path}\n"
    )
    status, errors = weir("check", "-c", conf, cwd=public_folder)
    assert status == 0
    lines = errors.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith(f"{conf}:4: warning: user nobody cannot read {closed}; ")
    assert lines[1].startswith(f"{conf}:5: warning: user nobody cannot read {errors_folder}/404")
    assert lines[2].startswith(f"{conf}:12: warning: user nobody cannot read {of_path}/404.html; ")
    for folder in (errors_folder, of_path):
        (folder / "404.html").chmod(0o640)
        os.chown(folder / "404.html", 0, 65534)
    os.chown(closed, 65534, 0)
    assert weir("check", "-c", conf, cwd=public_folder) == (0, "")


@one_model
def test_the_configuration_of_the_folder_is_served(server: ServerFactory, tmp_path: Path) -> None:
    (tmp_path / "weir.conf").write_text("[server]\nlisten = 127.0.0.1:0\n[site a]\nroot = site\n")
    with contextlib.chdir(tmp_path):
        running = server(folder=None, listen=())
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").body == b"hello\n"
    running.signal(signal.SIGHUP)
    wait_until(lambda: "reloaded: " in running.messages(), "the reload reads the same file")


@one_model
@needs_ipv6
@pytest.mark.parametrize("wildcard", ["*:0", "0.0.0.0:0"])
def test_a_wildcard_is_announced_as_addresses_that_clients_can_use(
    server: ServerFactory, wildcard: str
) -> None:
    running = server(listen=(wildcard,))
    urls = re.findall(r"^weir serves (http://\S+)$", running.messages(), re.MULTILINE)
    port = running.address[1]
    assert f"http://127.0.0.1:{port}/" in urls
    assert (f"http://[::1]:{port}/" in urls) == (wildcard == "*:0")
    assert not [url for url in urls if "0.0.0.0" in url or "[::]" in url or "fe80:" in url]
    for url in urls:
        host, _, number = url.removeprefix("http://").rstrip("/").rpartition(":")
        with connect((host.strip("[]"), int(number))) as connection:
            assert connection.get("/hello.txt").body == b"hello\n"


@one_model
def test_a_rotation_is_confirmed_by_a_line(server: ServerFactory, tmp_path: Path) -> None:
    access, error = tmp_path / "access.log", tmp_path / "error.log"
    running = server("--access-log", str(access), "--error-log", str(error))
    error.rename(tmp_path / "error.old")
    running.signal(signal.SIGUSR1)
    line = f"SIGUSR1 opened the logs again: {error}, {access}"
    wait_until(lambda: error.exists() and line in error.read_text(), "the confirmation")
    other = server()
    other.signal(signal.SIGUSR1)
    wait_until(lambda: "SIGUSR1 has no effect: no log is a file" in other.messages(), "the line")


@one_model
def test_an_upgrade_with_a_good_configuration_ends_the_verdict_of_a_failed_reload(
    server: ServerFactory, site: Path, tmp_path: Path
) -> None:
    conf, pid_file = tmp_path / "weir.conf", tmp_path / "pid"
    good = f"[server]\nlisten = 127.0.0.1:0\npid-file = {pid_file}\n[site a]\nroot = {site}\n"

    def failed(pid: int) -> list[str]:
        text = weir_stats(str(pid)).stdout
        return [line for line in text.splitlines() if "the last reload failed" in line]

    conf.write_text(good)
    running = server("-c", str(conf), folder=None, listen=())
    conf.write_text(good + "nonsense = 1\n")
    running.signal(signal.SIGHUP)
    wait_until(lambda: "the reload failed" in running.messages(), "the reload")
    wait_until(lambda: failed(running.master.pid), "the verdict")
    assert "\\x0a" not in weir_stats(str(running.master.pid)).stdout
    conf.write_text(good)
    first = pid_file.read_text()
    running.signal(signal.SIGUSR2)
    wait_until(lambda: pid_file.exists() and pid_file.read_text() != first, "the successor")
    successor = int(pid_file.read_text())
    assert not failed(successor)
    os.kill(successor, signal.SIGTERM)
    running.wait()
