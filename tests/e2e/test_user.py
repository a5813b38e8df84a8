# SPDX-License-Identifier: MIT
"""Started as root, weir serves as another user by itself, and says which."""

from __future__ import annotations

import os
import pwd
import subprocess
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.running import RUNTIME, WEIR, Process, Server
from tests.e2e.statistics import wait_for
from tests.e2e.wire import connect
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

one_model = pytest.mark.parametrize("model", ["epoll"])


def default_user() -> str:
    """`weir` where there is such a user, else `nobody`."""
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "weir" if "weir" in names else "nobody"


def ids(process: Process) -> tuple[set[int], set[int]]:
    """The user ids of a process, and its supplementary groups."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    fields = {line.split()[0]: {int(word) for word in line.split()[1:]} for line in lines[6:14]}
    return fields["Uid:"], fields["Groups:"]


def weir(command: str, running: Server) -> None:
    done = subprocess.run(
        [WEIR, command, str(running.master.pid)],
        capture_output=True,
        text=True,
        env={**os.environ, "RUNTIME_DIRECTORY": str(RUNTIME)},
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_every_process_but_the_master_becomes_another_user(
    server: ServerFactory, tmp_path: Path
) -> None:
    running = server(
        "--stats-listen",
        "127.0.0.1:0",
        "--pid-file",
        str(tmp_path / "pid"),
        listen=("0", "[::1]:0"),
    )
    user = pwd.getpwnam(default_user())
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").body == b"hello\n"
        others = running.master.descendants()
        assert len(others) >= 2  # a worker and the page
        wait_until(
            lambda: all(ids(each)[0] == {user.pw_uid} for each in others), "the change of user"
        )
        assert all(0 not in ids(each)[1] for each in others)
    assert ids(running.master)[0] == {0}
    assert f"the workers run as {user.pw_name}" in running.messages()
    weir("reload", running)
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").body == b"hello\n"
    wait_for(running, lambda now: now["counters"]["requests"] == 2)
    weir("stop", running)
    assert not (tmp_path / "pid").exists()


def test_a_site_below_a_closed_folder_is_served(
    server: ServerFactory, site: Path, tmp_path: Path
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    folder = site.rename(closed / "site")
    running = server(folder=folder)
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").body == b"hello\n"
        (folder / "later.txt").write_text("later\n")
        assert connection.get("/later.txt").body == b"later\n"
    assert "warning" not in running.messages()


@one_model
@pytest.mark.parametrize(("mode", "status"), [(0o700, 403), (0o711, 200)])
def test_a_site_that_the_user_cannot_read_is_a_warning(
    server: ServerFactory, site: Path, mode: int, status: int
) -> None:
    """To list a folder is another right than to open the files in it."""
    (site / "index.html").unlink()
    site.chmod(mode)
    running = server("--listing", "on")
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").status == status
        assert connection.get("/").status == 403
    (line,) = [line for line in running.messages().splitlines() if "cannot read" in line]
    assert f"user {default_user()} cannot read {site}" in line
    assert "--user" in line


@pytest.mark.parametrize(
    ("setting", "closed", "line"),
    [("root = site", "site", 2), ("error-pages = pages", "pages/404.html", 3)],
)
def test_a_check_refuses_what_the_user_cannot_read(
    site: Path, setting: str, closed: str, line: int
) -> None:
    folder = site.parent
    (folder / "pages").mkdir()
    (folder / "pages/404.html").write_text("none\n")
    lines = ["[site a]", "root = site", setting] if line == 3 else ["[site a]", setting]
    (folder / "weir.conf").write_text("\n".join(lines) + "\n")

    def check(*arguments: str) -> subprocess.CompletedProcess[str]:
        words = [str(WEIR), "check", *arguments]
        return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)

    assert check().returncode == 0
    (folder / closed).chmod(0o600 if closed.endswith("html") else 0o700)
    refused = check()
    assert refused.returncode == 1, refused.stdout
    assert refused.stderr.splitlines() == [
        f"weir.conf:{line}: error: user {default_user()} cannot read {closed}; give this user "
        "the right, or choose another user with --user",
        "weir.conf: 1 error",
    ]
    assert "ok" not in refused.stdout
    assert check("--user", "root").returncode == 0
    if setting == "root = site":
        site.chmod(0o711)
        assert check().returncode == 0
        (folder / "weir.conf").write_text("\n".join([*lines, "listing = on"]) + "\n")
        assert check().stderr == refused.stderr


@one_model
def test_root_is_kept_only_by_name(server: ServerFactory, site: Path) -> None:
    site.chmod(0o700)
    running = server("--user", "root")
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").body == b"hello\n"
    assert all(ids(each)[0] == {0} for each in running.workers())
    assert "cannot read" not in running.messages()
    assert "run as" not in running.messages()


@one_model
def test_root_without_another_user_serves_and_says_so(server: ServerFactory) -> None:
    inside = ("unshare", "--user", "--map-root-user")
    if subprocess.run([*inside, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this system allows no user namespaces")
    running = server(wrapper=inside)
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").body == b"hello\n"
    assert "the workers stay root" in running.messages()
