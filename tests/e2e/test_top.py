# SPDX-License-Identifier: MIT
"""`weir top` in a terminal: what it shows, what its keys do, and that it restores the terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.load import Load
from tests.e2e.running import WEIR, Process, Server, start
from tests.e2e.sharing import own_shared_memory
from tests.e2e.statistics import read, settled, wait_for
from tests.e2e.terminal import SHELL, Terminal
from tests.e2e.test_upgrade import replace, upgrade
from tests.e2e.wire import connect
from tests.waiting import LIMIT_S, wait_until

pytestmark = pytest.mark.skipif(not shutil.which("tmux"), reason="no tmux")

HELLO = b"hello\n"


@pytest.fixture
def epoll(tmp_path: Path, site: Path) -> Iterator[Server]:
    running = start([str(site), "--listen", "127.0.0.1:0", "--model", "epoll"], tmp_path / "stderr")
    yield running
    if running.popen.poll() is None:
        running.stop()


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    with Terminal(tmp_path) as made:
        yield made


def top(terminal: Terminal, server: Server, *options: str) -> None:
    terminal.run(f"{WEIR} top {' '.join(options)} {server.master.pid}; echo status $?")
    terminal.wait_for(r"q quit")


def number(text: str) -> float:
    return float(text.replace(",", ""))


# ---- what it shows ----


def row(terminal: Terminal) -> tuple[float, int]:
    """The rate and the total of the requests on the screen."""
    found = terminal.wait_for(r"^ Requests +([\d,.]+) /s .* ([\d,]+)$")
    return number(found[1]), int(number(found[2]))


def next_row(terminal: Terminal, after: int) -> tuple[float, int]:
    wait_until(lambda: row(terminal)[1] != after, f"another total than {after}")
    return row(terminal)


def test_rates_and_totals_agree_with_the_counters(terminal: Terminal, epoll: Server) -> None:
    with Load(epoll.address, "/hello.txt", HELLO, clients=2, keep=True) as load:
        load.wait_for(50)
        before = read(epoll.master.pid)["counters"]["requests"]
        top(terminal, epoll)
        _, last = row(terminal)
        assert last >= before
        for _ in range(3):
            rate, total = next_row(terminal, last)
            assert rate > 0
            assert total > last
            last = total
        assert last <= read(epoll.master.pid)["counters"]["requests"]
        answers = load.stop().answers
    assert settled(epoll)["counters"]["requests"] == answers
    terminal.wait_for(rf"^ Requests +0 /s .* {answers:,}$")
    # The chart is drawn in eighths of blocks and ends with the lowest one.
    assert re.search(r"^ Requests .*[▂-█].*▁", terminal.text(), re.MULTILINE)
    terminal.keys("2")
    terminal.wait_for(rf"^ requests +0/s +{answers:,} requests$")
    terminal.wait_for(rf"^ requests http 1 1 +0/s +{answers:,} requests$")
    terminal.keys("3")
    terminal.wait_for(rf"^ default +0 +- +{answers:,} ")


def test_charts_begin_with_the_last_minute(terminal: Terminal, epoll: Server) -> None:
    with Load(epoll.address, "/hello.txt", HELLO, clients=1, keep=True) as load:
        wait_for(epoll, lambda numbers: len(numbers["moments"]) >= 4)
        load.wait_for(1)
        top(terminal, epoll, "--interval", "60s")  # the statistics are read only once
        terminal.keys("-", "-", "-", "-")  # 30 s, 10 s, 5 s, 2 s
        terminal.wait_for(r"every 2 s")
        assert row(terminal)[0] > 0
        assert re.search(r"^ Requests +[\d,.]+ /s .*[▁-█]", terminal.text(), re.MULTILINE)


def test_every_key_does_what_the_help_describes(terminal: Terminal, epoll: Server) -> None:
    with connect(epoll.address) as connection:
        assert connection.get("/hello.txt").status == 200
    settled(epoll)
    top(terminal, epoll)
    signs = {
        "1": r"^ Latency +p50",
        "2": r"^ requests reusing",
        "3": r"^ default",
        "4": r"^ +thread 1",
        "5": r"^ +latency +queue wait +disk wait +handshake +sending",
        "6": r"^ +ago +why +took +id +request",
    }
    for key, sign in signs.items():
        terminal.keys(key)
        terminal.wait_for(sign)
    for key, order in (
        ("Tab", "123456"),
        ("Right", "123456"),
        ("BTab", "654321"),
        ("Left", "654321"),
    ):
        terminal.keys(order[0])
        for screen in order:
            terminal.wait_for(signs[screen])
            terminal.keys(key)
        terminal.wait_for(signs[order[0]])
    for key in ("?", "h"):
        terminal.keys(key)
        terminal.wait_for(r"^ q, Ctrl-C +quit")
        terminal.keys(key)
        terminal.wait_until_gone(r"Ctrl-C")
    terminal.keys("?")
    terminal.wait_for(r"Ctrl-C")
    terminal.keys("Escape")
    terminal.wait_until_gone(r"Ctrl-C")
    check_choosing(terminal)
    check_time(terminal)
    terminal.keys("q")
    terminal.wait_for(r"^status 0$")


def check_choosing(terminal: Terminal) -> None:
    """The screen of counters explains the selected counter."""
    terminal.keys("2")
    first = "Requests answered, with any status"
    second = "Requests answered 429 because"
    last = "Durations missing from the histograms below"
    terminal.wait_for(first)
    for key, sentence in (
        ("Down", second),
        ("Up", first),
        ("j", second),
        ("k", first),
        ("G", last),
        ("g", first),
        ("End", last),
        ("Home", first),
    ):
        terminal.keys(key)
        terminal.wait_for(sentence)
    terminal.keys("NPage")
    terminal.wait_until_gone(first)
    terminal.keys("PPage")
    terminal.wait_for(first)


def check_time(terminal: Terminal) -> None:
    terminal.wait_for(r"every 1 s$")
    terminal.keys("+")
    terminal.wait_for(r"every 2 s$")
    terminal.keys("-", "-", "-")
    terminal.wait_for(r"every 0.2 s$")
    terminal.keys("Space")
    terminal.wait_for(r"^ PAUSED")
    terminal.keys("Space")
    terminal.wait_until_gone(r"PAUSED")


def test_the_screen_follows_the_size_of_the_terminal(terminal: Terminal, epoll: Server) -> None:
    top(terminal, epoll)
    for columns, rows in ((120, 40), (60, 15), (40, 10), (80, 24)):
        terminal.resize(columns, rows)
        for screen in "123456":
            terminal.keys(screen)
            terminal.wait_for(rf"^ .*{screen} (Overview|Counters|Sites|Workers|Latency|Recent)")
            wait_until(partial(fits, terminal, columns, rows), terminal.text)
    terminal.resize(39, 9)
    terminal.wait_for(r"^weir top needs 40x10")
    terminal.resize(80, 24)
    terminal.wait_for(r"q quit")


def test_the_recent_screen_says_which_answers_are_slow(terminal: Terminal, epoll: Server) -> None:
    top(terminal, epoll)
    terminal.keys("6")
    terminal.wait_for(r"request, slow from 1\.00 s on")


def fits(terminal: Terminal, columns: int, rows: int) -> bool:
    """Whether the screen fills the terminal."""
    lines = terminal.lines()
    titled = lines[0].startswith(" weir ") and re.search(r"every 1 s$", lines[0].rstrip())
    wide = len(lines[0].rstrip()) == columns - 1
    return len(lines) == rows and bool(titled) and wide and lines[-1].startswith(" q quit")


def test_without_colours_and_without_utf_8(tmp_path: Path, epoll: Server) -> None:
    coloured = re.compile(r"\033\[(?:\d+;)*3[0-7][;m]")
    for name, variables, colours, blocks in (
        ("usual", {}, True, True),
        ("none", {"NO_COLOR": "1"}, False, True),
        ("empty", {"NO_COLOR": ""}, True, True),
        ("old", {"TERM": "vt100", "LC_ALL": "C"}, False, False),
    ):
        folder = tmp_path / name
        folder.mkdir()
        with Terminal(folder, environment=variables) as terminal:
            top(terminal, epoll)
            with connect(epoll.address) as connection:
                connection.get("/hello.txt")
                terminal.wait_for(r"^ Open +1  .*[█#]")
                text = terminal.text(escapes=True)
                assert bool(coloured.search(text)) is colours, name
                assert ("█" in text) is blocks, name
                assert text.isascii() is not blocks, name
            terminal.keys("q")
            terminal.wait_for(r"^status 0$")


# ---- how the server is ----


def times_asleep(process: Process) -> int:
    """How often a program that waits now has begun to wait. 0: it runs."""
    (status,) = process.of_threads("status")
    found = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    return int(found["voluntary_ctxt_switches"]) if found["State"].startswith("S") else 0


def test_a_terminal_that_does_not_block_gets_whole_pictures(epoll: Server) -> None:
    ours, its = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    os.set_blocking(its, False)
    words = [str(WEIR), "top", "--interval", "60s", str(epoll.master.pid)]
    environment = {**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8"}
    popen = subprocess.Popen(words, stdin=its, stdout=its, stderr=its, env=environment)
    shown = b""

    def shows(text: bytes) -> bool:
        nonlocal shown
        if select.select([ours], [], [], 0)[0]:
            shown += os.read(ours, 4096)
        return text in shown

    try:
        wait_until(lambda: shows(b"quit"), lambda: f"the keys in {shown!r}")
        process = Process.of(popen.pid)
        assert process
        before = wait_until(lambda: times_asleep(process), "the program waits for a key")
        termios.tcflow(its, termios.TCOOFF)
        os.write(ours, b"3")
        wait_until(lambda: times_asleep(process) > before, "the program has drawn")
        termios.tcflow(its, termios.TCOON)
        wait_until(lambda: shows(b"req/s"), lambda: f"the titles of the sites in {shown!r}")
    finally:
        popen.kill()
        popen.wait()
        os.close(ours)
        os.close(its)


def test_a_server_that_hangs_is_reported(terminal: Terminal, epoll: Server) -> None:
    top(terminal, epoll)
    os.kill(epoll.master.pid, signal.SIGSTOP)
    try:
        terminal.wait_for(r"^ HANGS: the last heartbeat of the master was \d+ s ago\.")
    finally:
        os.kill(epoll.master.pid, signal.SIGCONT)
    terminal.wait_until_gone(r"HANGS")


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder whose path leaves space for a message on a line of the terminal."""
    with tempfile.TemporaryDirectory(prefix="weir-") as name:
        yield Path(name)


def test_a_failed_reload_is_reported(
    terminal: Terminal, tmp_path: Path, site: Path, short_folder: Path
) -> None:
    configuration = short_folder / "weir.conf"
    good = f"[server]\nlisten = 127.0.0.1:0\n[site a]\nroot = {site}\n"
    configuration.write_text(good)
    running = start(["-c", str(configuration)], tmp_path / "stderr")
    try:
        top(terminal, running)
        configuration.write_text(good.replace("listen", "listne"))
        running.signal(signal.SIGHUP)
        terminal.wait_for(r"^ warning +the last reload failed")
        terminal.wait_for(r"unknown setting `listne`")
        terminal.keys("3")
        terminal.wait_for(r"^ the last reload failed")
    finally:
        running.stop()


def test_the_last_numbers_of_a_stopped_server_stay(terminal: Terminal, epoll: Server) -> None:
    with connect(epoll.address) as connection:
        assert connection.get("/hello.txt").status == 200
    settled(epoll)
    top(terminal, epoll)
    pid = epoll.master.pid
    epoll.stop()
    terminal.wait_for(rf"^ STOPPED: process {pid} has gone\. These are its last numbers\.")
    terminal.wait_for(r"^ Requests .* 1$")
    terminal.keys("q")
    terminal.wait_for(r"^status 0$")


def test_the_new_master_after_an_upgrade_is_followed(
    terminal: Terminal, tmp_path: Path, site: Path
) -> None:
    binary = tmp_path / "weir"
    shutil.copy2(WEIR, binary)
    running = start(
        [str(site), "--listen", "127.0.0.1:0", "--model", "epoll"], tmp_path / "stderr", weir=binary
    )
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").status == 200
    settled(running)
    top(terminal, running)
    old = running.master.pid
    replace(binary)
    new = upgrade(running)
    children = new.descendants()
    try:
        terminal.wait_for(rf"^ FOLLOWED: process {new.pid} has taken the place of {old}\.")
        terminal.wait_for(rf"^ weir \S+  process {new.pid} ")
        with connect(running.address) as connection:
            assert connection.get("/hello.txt").status == 200
        terminal.wait_for(r"^ Requests .* 2$")
    finally:
        os.kill(new.pid, signal.SIGTERM)
    terminal.wait_for(rf"^ STOPPED: process {new.pid} has gone\. These are its last numbers\.")
    terminal.keys("q")
    terminal.wait_for(r"^status 0$")
    assert not any(process.alive for process in children)


def shared_memory_of_its_own() -> tuple[str, ...]:
    """The words of a shell that sees no other server of this machine."""
    return (*own_shared_memory(), *SHELL)


def serve(terminal: Terminal, site: Path, number: int) -> int:
    """Starts a server from the shell; returns its process id."""
    ready, pid = terminal.folder / f"ready-{number}", terminal.folder / f"pid-{number}"
    terminal.finish(f"mkfifo {ready}; true")
    words = f"{WEIR} {site} --listen 127.0.0.1:0 --control off --quiet --error-log {ready}.log"
    terminal.finish(
        f"{words} --ready-fd 3 3>{ready} >{ready}.out 2>&1 & echo $! >{pid}; cat {ready}"
    )
    return int(pid.read_text())


def test_a_restarted_server_is_found_again(tmp_path: Path, site: Path) -> None:
    with Terminal(tmp_path, shell=shared_memory_of_its_own()) as terminal:
        first = serve(terminal, site, 1)
        terminal.run(f"{WEIR} top; echo status $?")
        terminal.wait_for(rf"^ weir \S+  process {first} ")
        os.kill(first, signal.SIGKILL)
        terminal.wait_for(rf"^ DIED: process {first} was killed; waiting for another\.")
        terminal.keys("C-z")
        terminal.wait_for(r"Stopped")
        second = serve(terminal, site, 2)
        terminal.run("fg %2")
        terminal.wait_for(rf"^ weir \S+  process {second} ")
        os.kill(second, signal.SIGTERM)
        terminal.wait_for(rf"^ STOPPED: process {second} has gone; waiting for another\.")
        terminal.keys("q")
        terminal.wait_for(r"^\$ ")
        done = terminal.finish(f"{WEIR} top 2>&1")
        assert done == ""


# ---- leaving ----


def begin(terminal: Terminal, server: Server) -> str:
    """Starts `weir top`; returns the modes that the terminal had before."""
    before = terminal.finish("stty -g")
    assert terminal.state() == (True, False)
    top(terminal, server)
    assert terminal.state() == (False, True)
    return before


def check_left_as_found(terminal: Terminal, before: str) -> None:
    wait_until(lambda: terminal.state() == (True, False), "the shell's screen is shown")
    assert terminal.finish("stty -g") == before


@pytest.mark.parametrize(
    ("ends", "status"),
    [
        ("q", 0),
        ("C-c", 128 + signal.SIGINT),
        ("C-\\", 128 + signal.SIGQUIT),
        (signal.SIGTERM, 128 + signal.SIGTERM),
        (signal.SIGHUP, 128 + signal.SIGHUP),
        (signal.SIGSEGV, 128 + signal.SIGSEGV),
        (signal.SIGABRT, 128 + signal.SIGABRT),
    ],
)
def test_the_terminal_is_restored_at_the_end(
    terminal: Terminal, epoll: Server, ends: str | signal.Signals, status: int
) -> None:
    terminal.run("ulimit -c 0; trap : INT QUIT")
    before = begin(terminal, epoll)
    if isinstance(ends, str):
        terminal.keys(ends)
    else:
        os.kill(terminal.child().pid, ends)
    terminal.wait_for(rf"^status {status}$")
    check_left_as_found(terminal, before)


def test_the_program_can_be_suspended_and_continued(terminal: Terminal, epoll: Server) -> None:
    before = begin(terminal, epoll)
    process = terminal.child()
    for _ in range(2):
        terminal.keys("C-z")
        terminal.wait_for(r"Stopped")
        check_left_as_found(terminal, before)
        terminal.resize(100, 30)
        terminal.run("fg")
        terminal.wait_for(r"q quit")
        assert terminal.state() == (False, True)
        terminal.resize(80, 24)
    os.kill(process.pid, signal.SIGSTOP)  # the program cannot catch this signal
    terminal.wait_for(r"Stopped")
    terminal.keys("f", "g", "C-j")  # in this mode of the terminal Enter ends no line
    terminal.wait_until_gone(r"Stopped")
    terminal.wait_for(r"q quit")
    terminal.keys("2")
    terminal.wait_for(r"^ requests reusing")
    terminal.keys("q")
    terminal.wait_for(r"^\$ $|^\$$")
    check_left_as_found(terminal, before)


# ---- where it cannot be used ----


def test_an_unsuitable_terminal_is_an_error(terminal: Terminal, epoll: Server) -> None:
    command = [str(WEIR), "top", str(epoll.master.pid)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "`weir stats` prints" in done.stderr
    mistakes = (
        (f"{WEIR} top {epoll.master.pid} </dev/null", "standard input is no terminal", 2),
        (f"TERM=nonsense {WEIR} top {epoll.master.pid}", "type `nonsense`", 1),
        (f"TERM=dumb {WEIR} top {epoll.master.pid}", "type `dumb`", 1),
        (f"TERM= {WEIR} top {epoll.master.pid}", "TERM does not say", 1),
        (f"{WEIR} top --interval 10ms", "`10ms` is not a time from 100 ms to 60.0 s", 2),
        (f"{WEIR} top nonsense", "`nonsense` is not a process id", 2),
        (f"{WEIR} top {os.getpid()}", "has no statistics", 1),
    )
    for case, (words, said, status) in enumerate(mistakes):
        terminal.run(f"clear; {words}; echo case {case} status $?")
        terminal.wait_for(rf"^case {case} status {status}$")
        assert said in terminal.text().replace("\n", ""), words
        assert terminal.state() == (True, False)


def test_the_numbers_of_a_dead_server_are_shown(tmp_path: Path, site: Path) -> None:
    with Terminal(tmp_path, shell=shared_memory_of_its_own()) as terminal:
        pid = serve(terminal, site, 1)
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: Process.of(pid) is None, "the server has ended")
        terminal.run(f"{WEIR} top {pid}")
        terminal.wait_for(rf"^ DIED: process {pid} was killed\.")
