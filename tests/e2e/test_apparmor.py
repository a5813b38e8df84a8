# SPDX-License-Identifier: MIT
"""The profile for AppArmor: the parser accepts it, and it permits all that a server opens.

No kernel enforces it here. A run with the places of the Debian package is traced, and each file
that a process opens or locks needs a rule of the profile. tests/package/test_apparmor_kernel.py
has a kernel that enforces it.
"""

from __future__ import annotations

import re
import shutil
import signal
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.command import attempt, run
from tests.e2e.certificates import Pair, secure, trusting
from tests.e2e.conftest import ServerFactory
from tests.e2e.planting import in_force
from tests.e2e.running import TOP, WEIR
from tests.e2e.statistics import weir_stats
from tests.e2e.wire import connect
from tests.waiting import wait_until

PROFILE = TOP / "packaging/debian/usr.bin.weir"
PARSER = shutil.which("apparmor_parser") or shutil.which("apparmor_parser", path="/usr/sbin:/sbin")
CALLS = "open,openat,openat2,execve,bind,connect,mkdir,mkdirat,rename,renameat,renameat2,unlink,"
CALLS += "unlinkat,flock,fcntl"

needs_parser = pytest.mark.skipif(PARSER is None, reason="apparmor_parser is not installed")


@needs_parser
def test_the_parser_compiles_the_profile() -> None:
    words = [str(PARSER), "--skip-kernel-load", "--skip-cache", str(PROFILE)]
    done = attempt(words)
    assert done.returncode == 0, done.stdout


@needs_parser
def test_the_parser_refuses_a_profile_with_an_error(tmp_path: Path) -> None:
    wrong = tmp_path / "profile"
    wrong.write_text(PROFILE.read_text().replace("capability setuid,", "capability setiud,"))
    done = attempt([str(PARSER), "--skip-kernel-load", "--skip-cache", str(wrong)])
    assert done.returncode != 0


def capabilities() -> set[str]:
    return set(re.findall(r"^ +capability (\w+),$", PROFILE.read_text(), re.MULTILINE))


def test_the_profile_has_the_capabilities_that_a_master_keeps_and_no_other() -> None:
    kept = re.findall(r"CAP_([A-Z_]+)", (TOP / "src/server/sandbox.c").read_text())
    assert len(kept) > 5
    assert capabilities() == {name.lower() for name in kept}


@dataclass(frozen=True)
class Rule:
    path: re.Pattern[str]
    access: str
    denies: bool


def expanded(path: str, variables: dict[str, list[str]]) -> list[str]:
    """The path with each value of its variables."""
    found = re.search(r"@\{(\w+)\}", path)
    if not found:
        return [path]
    paths = [path.replace(found[0], value) for value in variables[found[1]]]
    return [each for one in paths for each in expanded(one, variables)]


def pattern_of(path: str) -> re.Pattern[str]:
    """A path of a rule, whose `*` does not cross a folder and whose `**` does."""
    parts = {"**": ".*", "*": "[^/]*", "?": "[^/]", "{": "(?:", "}": ")", ",": "|"}
    tokens = re.findall(r"\*\*|\[[^]]*\]|\\.|.", re.sub(r"/+", "/", path))
    text = "".join(
        parts[each] if each in parts else each if each[0] in "[\\" else re.escape(each)
        for each in tokens
    )
    return re.compile(text)


def rules() -> list[Rule]:
    """The rules for files, with those of the files that the profile includes."""
    text = re.sub(r"#.*", "", run([str(PARSER), "--preprocess", str(PROFILE)]))
    variables: dict[str, list[str]] = {}
    for name, values in re.findall(r"^\s*@\{(\w+)\}\s*\+?=\s*(.+)$", text, re.MULTILINE):
        variables.setdefault(name, []).extend(values.split())
    found = []
    for words, path, access in re.findall(
        r"^\s*((?:(?:owner|audit|deny|allow)\s+)*)\"?((?:/|@\{)[^\s\"]*)\"?\s+([a-zA-Z]+)\s*,",
        text,
        re.MULTILINE,
    ):
        for each in expanded(path, variables):
            found.append(Rule(pattern_of(each), access, "deny" in words))
    return found


def calls(trace: str) -> Iterator[tuple[str, str, str]]:
    """Name, arguments and result of each call. A call that another process interrupts has two
    lines."""
    begun: dict[str, str] = {}
    for line in trace.splitlines():
        pid, _, text = line.partition(" ")
        text = text.strip()
        if text.endswith("<unfinished ...>"):
            begun[pid] = text.removesuffix("<unfinished ...>")
            continue
        if resumed := re.match(r"<\.\.\. \w+ resumed>", text):
            text = begun.pop(pid, "") + text[resumed.end() :]
        if found := re.fullmatch(r"(\w+)\((.*)\)\s+= (.*)", text):
            yield found[1], found[2], found[3]


def opened(trace: str) -> set[tuple[str, str]]:
    """The paths that were opened, made, locked or used as sockets, and the access that each
    needs."""
    needed: set[tuple[str, str]] = set()
    for name, arguments, result in calls(trace):
        if result.startswith("-1"):
            continue
        if name.startswith("open"):
            got = re.match(r"\d+<(/.*)>", result)
            # AppArmor does not mediate O_PATH, nor memory that has no name in a file system.
            if not got or "O_PATH" in arguments or got[1].startswith("/memfd:"):
                continue
            is_folder = "O_DIRECTORY" in arguments or Path(got[1]).is_dir()
            path = got[1].rstrip("/") + "/" if is_folder else got[1]
            if "O_WRONLY" not in arguments:
                needed.add((path, "r"))
            if re.search("O_WRONLY|O_RDWR|O_CREAT", arguments):
                needed.add((path, "w"))
        elif name in ("flock", "fcntl"):
            locked = re.match(r"\d+<(/.*?)>, (?:LOCK_|F_(?:OFD_)?SETLK)", arguments)
            needed |= {(locked[1], "k")} if locked and "memfd:" not in locked[1] else set()
        elif name == "execve":
            needed.add((re.findall(r'"(.*?)"', arguments)[0], "x"))
        elif name in ("bind", "connect"):
            needed |= {(path, "w") for path in re.findall(r'sun_path="(/.*?)"', arguments)}
        else:
            end = "/" if name.startswith("mkdir") or "AT_REMOVEDIR" in arguments else ""
            below = re.findall(r'<(/[^>]*)>, "([^/"][^"]*)"', arguments)
            paths = [*re.findall(r'"(/.*?)"', arguments), *("/".join(each) for each in below)]
            needed |= {(path + end, "w") for path in paths}
    return needed


def refused(needed: set[tuple[str, str]]) -> list[str]:
    """Those that no rule permits."""
    table = rules()

    def permits(rule: Rule, path: str, access: str) -> bool:
        return access in rule.access and rule.path.fullmatch(path) is not None

    return sorted(
        f"{path} {access}"
        for path, access in needed
        if not any(permits(rule, path, access) for rule in table if not rule.denies)
        or any(permits(rule, path, access) for rule in table if rule.denies)
    )


@needs_parser
def test_the_comparison_finds_what_no_rule_permits() -> None:
    needed = {("/etc/shadow-", "r"), ("/srv/a/b", "w"), ("/srv/a/b", "r"), ("/usr/bin/weir", "x")}
    assert refused(needed) == ["/etc/shadow- r", "/srv/a/b w"]


def places(folder: Path) -> dict[str, str]:
    """The folders and files of a run, and their places in the package."""
    return {
        str(folder / "etc"): "/etc/weir",
        str(folder / "log"): "/var/log/weir",
        str(folder / "run"): "/run/weir",
        str(folder / "srv"): "/srv",
        str(folder / "notify"): "/run/systemd/notify",
        str(WEIR): "/usr/bin/weir",
    }


def moved(path: str, to: dict[str, str]) -> str:
    for here, there in to.items():
        if path == here or path.startswith(f"{here}/"):
            return there + path[len(here) :]
    return path


CONFIGURATION = """\
[server]
listen = 127.0.0.1:0
listen = https://127.0.0.1:0
stats-listen = 127.0.0.1:0
access-log = {log}/access.log
error-log = {log}/error.log
pid-file = {run}/weir.pid

[site default]
root = {srv}
listing = on
{pair}
"""


@needs_parser
@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
@pytest.mark.parametrize("model", ["prefork", "uring"])
def test_the_profile_permits_every_file_that_a_server_opens(
    server: ServerFactory, pair: Pair, tmp_path: Path
) -> None:
    etc, log, run_folder, srv = (tmp_path / name for name in ("etc", "log", "run", "srv"))
    for folder in (etc, log, run_folder, srv):
        folder.mkdir()
    (srv / "a.txt").write_text("text " * 10_000)
    kept = Pair(etc / "cert.pem", etc / "key.pem")
    shutil.copy(pair.certificate, kept.certificate)
    shutil.copy(pair.key, kept.key)
    conf = etc / "weir.conf"
    conf.write_text(CONFIGURATION.format(log=log, run=run_folder, srv=srv, pair=kept.settings()))
    trace = tmp_path / "trace"
    words = ("strace", "-D", "-f", "-y", "-s", "256", "-e", f"trace={CALLS}", "-o", str(trace))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
        notified.bind(str(tmp_path / "notify"))
        running = server(
            *("-c", str(conf)),
            folder=None,
            listen=(),
            wrapper=words,
            addresses=2,  # strace holds the pipe
            environment={
                "RUNTIME_DIRECTORY": str(run_folder),
                "NOTIFY_SOCKET": str(tmp_path / "notify"),
            },
        )
        if "sanitizer" in in_force(running):
            pytest.skip("the run-time of a sanitizer opens files of its own")
        with connect(running.address) as connection:
            for path in ("/", "/a.txt", "/missing"):
                connection.get(path)
        https = int(running.urls[1].rsplit(":", 1)[1].strip("/"))
        with secure(("127.0.0.1", https), trusting(kept)) as sealed:
            assert sealed.get("/a.txt").status == 200
        assert weir_stats(str(running.master.pid)).returncode == 0
        running.signal(signal.SIGHUP)
        wait_until(lambda: "reloaded" in (log / "error.log").read_text(), "the reload")
        running.signal(signal.SIGUSR1)
        wait_until(lambda: "opened the logs" in (log / "error.log").read_text(), "the signal")
        pid = running.master.pid
        running.stop()
    ended = re.compile(rf"^{pid} +\+\+\+ exited", re.MULTILINE)
    wait_until(lambda: bool(ended.search(trace.read_text(errors="replace"))), "the trace is whole")
    needed = {
        (moved(path, places(tmp_path)), access)
        for path, access in opened(trace.read_text(errors="replace"))
    }
    assert ("/srv/a.txt", "r") in needed
    assert ("/var/log/weir/access.log", "w") in needed
    assert ("/run/weir/weir.pid", "k") in needed
    # With DynamicUser=yes, systemd makes the folder of the logs a link.
    needed |= {
        (path.replace("/var/log/weir/", "/var/log/private/weir/"), access)
        for path, access in needed
    }
    assert any(path.startswith("/dev/shm/weir-") for path, _ in needed)
    assert refused(needed) == []
