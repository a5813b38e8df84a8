# SPDX-License-Identifier: MIT
"""`weir check`: its messages, its exit status, and that it has no side effects."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from tests.e2e.running import TOP, WEIR
from tests.e2e.test_container import after, needs_mounts
from tests.waiting import LIMIT_S


def weir(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs weir with no other variables than these."""
    return subprocess.run(
        [WEIR, *arguments],
        cwd=cwd,
        env={"PATH": os.defpath, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


def explained(text: str, section: str) -> dict[str, tuple[str, str]]:
    """The settings of a section as --explain prints them: name -> (value, origin)."""
    found: dict[str, tuple[str, str]] = {}
    inside = False
    for line in text.splitlines():
        if line.startswith("["):
            inside = line.split("]")[0] + "]" == section
        elif inside and line.startswith("  "):
            name, value, origin = line[2:25].strip(), *line[27:].split("  ", 1)
            found[name] = (value, origin.strip())
    return found


@pytest.fixture
def folder(tmp_path: Path, site: Path) -> Path:
    """A folder with site/ in it and a valid configuration."""
    assert site.parent == tmp_path
    (tmp_path / "weir.conf").write_text(
        "[server]\nlisten = 0, [::1]:0, unix:weir.sock\naccess-log = access.log\n"
        "[site a]\nroot = site\n[site b]\nroot = site\nhost = b.example\n"
    )
    return tmp_path


def test_a_valid_file_is_reported_as_ok(folder: Path) -> None:
    for arguments in (["weir.conf"], ["-c", "weir.conf"], ["--config=weir.conf"], []):
        done = weir("check", *arguments, cwd=folder)
        assert (done.returncode, done.stdout, done.stderr) == (
            0,
            "weir.conf: ok (2 sites, 3 listeners)\n",
            "",
        )


def test_every_error_is_reported_with_its_line_and_a_remedy(folder: Path) -> None:
    (folder / "bad.conf").write_text(
        "[server]\n"
        "lisen = 80\n"
        "listen = example.org:80\n"
        "cache-size = 64Q\n"
        "idle-timeout = 10\n"
        "garbage\n"
        "[site a]\n"
        "root = nowhere\n"
        "index = a/b\n"
        "[sit b]\n"
    )
    done = weir("check", "bad.conf", cwd=folder)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        "bad.conf:2: error: unknown setting `lisen`; did you mean `listen`?",
        "bad.conf:3: error: listen: `example.org` is not an IP address; write one of this "
        "machine's, or * for all",
        "bad.conf:4: error: cache-size: `64Q` is not a size; write a number of bytes, or "
        "256K, 64M, 1G",
        "bad.conf:5: error: idle-timeout: `10` has no unit; write 10s for seconds, or use ms, "
        "m or h",
        "bad.conf:6: error: this is neither `[section]` nor `name = value`",
        "bad.conf:8: error: root: `nowhere` cannot be served: there is no such folder",
        "bad.conf:9: error: index: `a/b` has a slash; an index file is a name alone, looked for "
        "in each folder",
        "bad.conf:10: error: unknown section [sit b]; did you mean [site NAME]?",
        "bad.conf: 8 errors",
    ]


def test_a_check_shows_all_errors_and_a_start_the_first_twenty(folder: Path) -> None:
    text = "[server]\n" + "garbage\n" * 30 + "[site a]\nroot = site\n"
    (folder / "bad.conf").write_text(text)
    error = "bad.conf:{}: error: this is neither `[section]` nor `name = value`"
    errors = [error.format(line) for line in range(2, 32)]
    done = weir("check", "bad.conf", cwd=folder)
    assert done.stderr.splitlines() == [*errors, "bad.conf: 30 errors"]
    done = weir("serve", "-c", "bad.conf", cwd=folder)
    assert done.stderr.splitlines() == [*errors[:20], "and 10 more errors"]


def test_warnings_leave_the_exit_status_at_zero(folder: Path) -> None:
    (folder / "trap.conf").write_text("[server]\nidle-timeout = 0\n[site a]\nroot = site\n")
    done = weir("check", "trap.conf", cwd=folder)
    assert done.returncode == 0
    assert done.stderr.startswith("trap.conf:2: warning: idle-timeout: ")
    assert done.stdout == "trap.conf: ok (1 site, 2 listeners, 1 warning)\n"


def test_a_folder_that_a_service_manager_makes_at_the_start_is_a_warning(folder: Path) -> None:
    text = "[server]\nlisten = 0\npid-file = {}/no-weir/weir.pid\n[site a]\nroot = site\n"
    (folder / "stopped.conf").write_text(text.format("/run"))
    done = weir("check", "stopped.conf", cwd=folder)
    assert (done.returncode, done.stdout) == (
        0,
        "stopped.conf: ok (1 site, 1 listener, 1 warning)\n",
    )
    assert "the folder of `/run/no-weir/weir.pid` is not there now" in done.stderr
    (folder / "stopped.conf").write_text(text.format(""))
    assert weir("check", "stopped.conf", cwd=folder).returncode == 1


def test_explain_names_the_origin_of_every_value(folder: Path) -> None:
    done = weir(
        "check", "weir.conf", "--explain", "--threads", "3", cwd=folder, WEIR_CACHE_SIZE="1M"
    )
    assert done.returncode == 0
    server = explained(done.stdout, "[server]")
    assert server["threads"] == ("3", "flag --threads")
    assert server["cache-size"] == ("1M", "environment WEIR_CACHE_SIZE")
    assert server["access-log"] == ("access.log", "weir.conf:3")
    assert server["workers"] == ("auto", "default")
    assert explained(done.stdout, "[site b]")["host"] == ("b.example", "weir.conf:8")
    assert done.stdout.splitlines()[-1] == "weir.conf: ok (2 sites, 3 listeners)"


@needs_mounts
@pytest.mark.parametrize("setting", ["access-log", "error-log", "pid-file"])
def test_a_file_that_a_start_cannot_write_is_an_error(folder: Path, setting: str) -> None:
    (folder / "closed").mkdir()
    (folder / "closed/there").touch()
    mount = (
        f"mount --bind {folder}/closed {folder}/closed; mount -o remount,bind,ro {folder}/closed"
    )

    def check(path: str) -> subprocess.CompletedProcess[str]:
        (folder / "weir.conf").write_text(f"[server]\n{setting} = {path}\n[site a]\nroot = site\n")
        words = [*after(mount), str(WEIR), "check"]
        return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)

    for name in ("new", "there"):
        refused = check(f"closed/{name}")
        assert refused.returncode == 1
        assert refused.stderr.splitlines() == [
            f"weir.conf:2: error: {setting}: cannot write closed/{name}: Read-only file "
            "system; give this user the right to write there, or choose another file",
            "weir.conf: 1 error",
        ]
    (folder / "empty").touch()
    assert check("empty").returncode == 0
    assert check("new").returncode == 0
    assert not (folder / "new").exists(), "a check has made a file"


@pytest.mark.parametrize(
    ("setting", "kind", "reason"),
    [
        ("access-log", "link", "it is a link; name the file itself"),
        ("error-log", "link", "it is a link; name the file itself"),
        ("pid-file", "link", "it is a link; name the file itself"),
        ("access-log", "socket", "it is a socket; for a receiver of syslog write syslog: before "),
        ("pid-file", "fifo", "it is no regular file; choose another file"),
        ("pid-file", "second name", "it has a second name (a hard link), so another user may "),
        ("pid-file", "text", "it has other contents than a process id; choose another file"),
    ],
)
def test_a_start_and_a_check_refuse_the_same_files(
    folder: Path, setting: str, kind: str, reason: str
) -> None:
    path = folder / "written"
    (folder / "there").touch()
    with socket.socket(socket.AF_UNIX) as made:
        if kind == "link":
            path.symlink_to(folder / "there")
        elif kind == "socket":
            made.bind(str(path))
        elif kind == "fifo":
            os.mkfifo(path)
        elif kind == "text":
            path.write_text("[server]\n")
        else:
            path.hardlink_to(folder / "there")
    (folder / "weir.conf").write_text(
        f"[server]\nlisten = 127.0.0.1:0\n{setting} = written\n[site a]\nroot = site\n"
    )
    checked = weir("check", "weir.conf", cwd=folder)
    assert checked.returncode == 1
    assert f"weir.conf:3: error: {setting}: cannot write written: {reason}" in checked.stderr
    served = weir("serve", "-c", "weir.conf", cwd=folder)
    assert served.returncode == 1
    assert f"written: {reason}" in served.stderr
    assert kind != "text" or path.read_text() == "[server]\n"


def test_paths_are_shown_without_dots(folder: Path) -> None:
    (folder / "in/side").mkdir(parents=True)
    (folder / "in/side/weir.conf").write_text(
        "[server]\naccess-log = ../../in/../log\n[site a]\nroot = ../../site\n"
    )
    done = weir("check", "--explain", "-c", "in/side/weir.conf", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert explained(done.stdout, "[server]")["access-log"][0] == f"{folder}/log"
    assert explained(done.stdout, "[site a]")["root"][0] == f"{folder}/site"
    (folder / "in/side/weir.conf").write_text("[site a]\nroot = ../../nowhere\n")
    done = weir("check", "in/side/weir.conf", cwd=folder)
    assert f"`{folder}/nowhere` cannot be served" in done.stderr


def test_a_path_to_explain_stands_before_or_behind_what_is_checked(
    folder: Path, tmp_path: Path
) -> None:
    (folder / "paths.conf").write_text("[site a]\nroot = site\n[path /**]\nstatus = 410\n")
    for path in ("/no/such/file", str(tmp_path)):  # a path of a request can be one of the disk, too
        behind = weir("check", "paths.conf", "--explain", path, cwd=folder)
        before = weir("check", "--explain", path, "paths.conf", cwd=folder)
        assert (before.returncode, before.stderr) == (0, "")
        assert before.stdout == behind.stdout
        assert f"path {path}\n" in before.stdout
        assert "[path /**]; answers with 410" in before.stdout
        assert weir("check", "--explain", path, "site", cwd=folder).returncode == 0
    two = weir("check", str(folder / "paths.conf"), "--explain", "style.css", cwd=folder)
    assert two.returncode == 2
    assert (
        "`style.css` is one argument too many; a path to explain begins with a slash" in two.stderr
    )


def test_a_folder_is_explained_as_it_would_be_served(folder: Path) -> None:
    done = weir("check", "site", "--explain", "--hidden", cwd=folder)
    assert done.returncode == 0
    site = explained(done.stdout, "[site default]")
    assert site["root"] == ("site", "command line")
    assert site["listing"] == ("on", "default, for a folder on the command line")
    assert site["hidden"] == ("on", "flag --hidden")
    assert explained(done.stdout, "[server]")["access-log"] == ("off", "default")


@pytest.mark.parametrize(
    "arguments",
    [
        ["nowhere.conf", "--listen"],
        ["--bogus"],
        ["weir.conf", "other.conf"],
        ["weir.conf", "-c", "weir.conf"],
        ["weir.conf", "--cache-size", "much"],
        ["weir.conf", "--listing", "on"],
        ["weir.conf", "--explain=yes"],
        ["weir.conf", "--ready-fd", "1"],
    ],
)
def test_an_invalid_command_line_exits_with_2(folder: Path, arguments: list[str]) -> None:
    done = weir("check", *arguments, cwd=folder)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("weir: ")


def test_an_invalid_variable_or_a_missing_file_exits_with_1(folder: Path) -> None:
    done = weir("check", cwd=folder, WEIR_MODEL="bogus")
    assert done.returncode == 1
    assert done.stderr.startswith("weir: WEIR_MODEL: `bogus` is not auto, ")
    done = weir("check", "nowhere.conf", cwd=folder)
    assert done.returncode == 1
    assert done.stderr.startswith("nowhere.conf: error: cannot be read: ")


def test_without_arguments_the_message_names_what_to_give(tmp_path: Path) -> None:
    done = weir("check", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "weir check FILE" in done.stderr


def test_a_check_writes_no_file(folder: Path) -> None:
    def listed() -> list[tuple[str, int]]:
        return sorted((str(path), path.stat().st_mtime_ns) for path in folder.rglob("*"))

    before = listed()
    assert weir("check", "--explain", cwd=folder).returncode == 0
    assert listed() == before


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
def test_a_check_opens_no_socket_and_no_file_for_writing(folder: Path) -> None:
    text = (folder / "weir.conf").read_text()
    full = text.replace("[server]\n", "[server]\nuser = nobody\ncongestion = cubic\n")
    (folder / "weir.conf").write_text(full)
    strace = [shutil.which("strace") or "", "-f", "-qq", "-o", "trace"]
    probe = subprocess.run(
        [*strace, "-e", "trace=%file", "true"], cwd=folder, capture_output=True, check=False
    )
    if probe.returncode != 0:
        pytest.skip("strace may not trace here")
    done = subprocess.run(
        [*strace, "-e", "trace=%network,%file,%process", WEIR, "check", "-c", "weir.conf"],
        cwd=folder,
        env={"PATH": os.defpath},
        capture_output=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0
    calls = (folder / "trace").read_text().splitlines()
    assert any("weir.conf" in call for call in calls)
    for word in ("socket(", "bind(", "connect(", "O_WRONLY", "O_RDWR", "O_CREAT", "unlink", "fork"):
        assert not [call for call in calls if word in call]


def test_the_examples_of_the_documents_are_valid(folder: Path) -> None:
    """All but what another machine has: files, folders and certificates."""
    absent = re.compile(r"there is no such|cannot be (read|reached)|No such file|tls-certificate")
    examples = 0
    for document in [TOP / "README.md", *sorted((TOP / "docs").glob("*.md"))]:
        for text in re.findall(r"(?ms)^```ini\n(.*?)^```", document.read_text()):
            if re.search(r"^\[(Service|Socket)\]", text):  # a unit of systemd
                continue
            site = "[site example]\nroot = site\n"
            begins_a_file = text.startswith(("[server]", "[site ", "#"))
            whole = "[site " in text
            (folder / "example.conf").write_text(
                text if whole else text + site if begins_a_file else site + text
            )
            for line in weir("check", "example.conf", cwd=folder).stderr.splitlines()[:-1]:
                if ": error: " in line:
                    assert absent.search(line), f"{document.name}: {line}\n{text}"
            examples += 1
    assert examples > 20


def test_the_example_configuration_is_valid() -> None:
    done = weir("check", "weir.conf.example", cwd=TOP)
    assert (done.returncode, done.stderr) == (0, "")
