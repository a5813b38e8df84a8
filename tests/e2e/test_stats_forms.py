# SPDX-License-Identifier: MIT
"""The forms of `weir stats` for people and for monitoring: sizes, addresses, changes, checks."""

from __future__ import annotations

import json
import re
import select
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.load import Load
from tests.e2e.running import WEIR, Server, start
from tests.e2e.statistics import read, settled, weir_stats
from tests.e2e.wire import connect
from tests.waiting import LIMIT_S, wait_until

OK, WARNING, CRITICAL, UNKNOWN = range(4)


@pytest.fixture
def running(tmp_path: Path, site: Path) -> Iterator[Server]:
    (site / "large.bin").write_bytes(bytes(3 << 20))
    server = start(
        [str(site), "--listen", "127.0.0.1:0", "--model", "epoll", "--stats-listen", "127.0.0.1:0"],
        tmp_path / "stderr",
    )
    yield server
    if server.popen.poll() is None:
        server.stop()


def test_the_table_shows_sizes_for_people_and_the_json_shows_bytes(running: Server) -> None:
    pid = str(running.master.pid)
    with connect(running.address) as connection:
        assert connection.get("/large.bin").status == 200
    assert settled(running)["counters"]["body_bytes"] == 3 << 20
    shown = weir_stats(pid).stdout
    assert re.search(r"^  body bytes +3\.00 MiB$", shown, re.M)
    assert re.search(r"^  resident memory +[\d.]+ [KM]iB$", shown, re.M)
    assert re.search(r"^  default +1 +1 +0 +0 +0 +3\.00 MiB$", shown, re.M)
    assert "bytes\n" not in shown


def test_the_estimates_of_the_cache_have_names_and_a_meaning(running: Server) -> None:
    pid = str(running.master.pid)
    shown = weir_stats(pid).stdout
    assert re.search(r"^  another cache-size ", shown, re.M)
    assert "estimate" not in shown
    explained = weir_stats("--explain", pid).stdout
    for name in ("half the size", "this size", "twice the size", "4 x the size"):
        assert re.search(rf"^  estimate, {name} +\d+ misses\n      Estimate", explained, re.M)


def test_check_shows_the_number_of_the_configuration_that_is_in_force(
    running: Server, site: Path
) -> None:
    shown = weir_stats(str(running.master.pid)).stdout
    number = re.search(r"^  configuration +number 1 \(([0-9a-f]{16})\), ", shown, re.M)
    assert number
    words = ["--listen", "127.0.0.1:0", "--model", "epoll", "--stats-listen", "127.0.0.1:0"]
    for more, same in (((), True), (("--idle-timeout", "7s"), False)):
        done = subprocess.run(
            [WEIR, "check", str(site), *words, *more, "--explain"], capture_output=True, text=True
        )
        assert done.returncode == 0
        assert (f"configuration {number[1]}: " in done.stdout) is same, done.stdout


def test_the_addresses_are_in_every_form(running: Server) -> None:
    pid = running.master.pid
    url = f"http://127.0.0.1:{running.address[1]}/"
    configuration = read(pid)["configuration"]
    assert configuration["urls"] == [url]
    (page,) = configuration["page_urls"]
    assert f"statistics: {page}\n" in running.messages()
    shown = weir_stats(str(pid)).stdout
    assert re.search(
        rf"^  serves +{re.escape(url)}\n  statistics page +{re.escape(page)}$", shown, re.M
    )
    assert f" serving {url}, " in weir_stats("--check", str(pid)).stdout


# ---- over time ----


@contextmanager
def watching(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    popen = subprocess.Popen(
        [WEIR, "stats", "--watch", "--interval", "100ms", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield popen
    finally:
        popen.kill()
        popen.communicate()


def next_line(popen: subprocess.Popen[str]) -> str:
    assert popen.stdout
    assert select.select([popen.stdout], [], [], LIMIT_S)[0], "no line"
    return popen.stdout.readline()


def until(popen: subprocess.Popen[str], condition: Callable[[str], object]) -> str:
    while line := next_line(popen):
        if condition(line):
            return line
    raise AssertionError("it ended")


def test_changes_are_shown_with_rates(running: Server) -> None:
    hello = ("/hello.txt", b"hello\n")
    with (
        Load(running.address, *hello, clients=2, keep=True) as load,
        watching("--diff", str(running.master.pid)) as popen,
    ):
        first = next_line(popen)
        assert re.match(rf"weir \S+, process {running.master.pid}, changes in [\d.]+ m?s$", first)
        until(popen, re.compile(r"  requests +[1-9]\d* requests +[\d.]+/s$").match)
        until(popen, re.compile(r"  200 +[1-9]\d* answers +[\d.]+/s$").match)
        until(popen, re.compile(r"  latency +[1-9]\d* ").match)
        until(popen, re.compile(r"  default +[1-9]\d* requests +[\d.]+/s$").match)
        load.stop()
        until(popen, "nothing has changed\n".__eq__)


def test_each_watched_object_is_one_line(running: Server) -> None:
    with watching("--json", str(running.master.pid)) as popen:
        first, second = (json.loads(next_line(popen)) for _ in range(2))
    assert first["read_monotonic_seconds"] < second["read_monotonic_seconds"]
    assert first["pid"] == second["pid"] == running.master.pid


def test_watching_ends_with_the_server(running: Server) -> None:
    pid = running.master.pid
    with watching(str(pid)) as popen:
        until(popen, re.compile(r"  requests +0 requests$").match)
        running.stop()
        _, errors = popen.communicate(timeout=LIMIT_S)
    assert popen.returncode == 1
    assert errors == f"weir: process {pid} has stopped, and its numbers are gone\n"


# ---- monitoring ----

PLUGIN = re.compile(r"WEIR (OK|WARNING|CRITICAL|UNKNOWN) - [^|\n]+(\|[^|\n]+)?\n")
NUMBER = re.compile(r"(\w+)=([\d.]+)(c|B|s)?(;[\d:.]*){0,4}")


def test_a_healthy_server_is_ok_and_its_numbers_can_be_drawn(running: Server) -> None:
    pid = str(running.master.pid)
    with connect(running.address) as connection:
        for path in ("/hello.txt", "/nothing"):
            connection.get(path)
    settled(running)
    # A busy machine may cause a verdict for a moment.
    wait_until(lambda: weir_stats("--check", pid).returncode == OK, lambda: weir_stats(pid).stdout)
    line = weir_stats("--check", pid).stdout
    assert PLUGIN.fullmatch(line)
    numbers = {}
    for word in line.split("|")[1].split():
        found = NUMBER.fullmatch(word)
        assert found, word
        numbers[found[1]] = (float(found[2]), found[3])
    assert numbers["requests"] == (2, "c")
    assert numbers["answers_4xx"] == (1, "c")
    assert numbers["answers_5xx"] == (0, "c")
    assert numbers["connections_open"] == (0, None)
    assert numbers["resident"][0] > 0


def test_a_check_that_cannot_be_written_is_unknown(running: Server) -> None:
    pid = str(running.master.pid)
    wait_until(lambda: weir_stats("--check", pid).returncode == OK, lambda: weir_stats(pid).stdout)
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [WEIR, "stats", "--check", pid],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )
    assert done.returncode == UNKNOWN
    assert done.stderr.startswith("weir: cannot write to standard output: ")


def test_errors_that_a_request_or_a_rule_asks_for_are_no_failures(
    server: ServerFactory, tmp_path: Path, site: Path
) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "503.html").write_text("back at noon")
    conf = tmp_path / "weir.conf"
    conf.write_text(
        f"[site a]\nroot = {site}\nerror-pages = {pages}\n[path /closed]\nstatus = 503\n"
    )
    running = server("-c", str(conf), folder=None)
    asked = (
        (b"GET /closed HTTP/1.1\r\nHost: a\r\n\r\n", 503),
        (b"FOO / HTTP/1.1\r\nHost: a\r\n\r\n", 501),
        (b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
        (b"GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505),
    )
    for request, status in asked:
        with connect(running.address) as connection:
            connection.send(request)
            assert connection.read().status == status
    numbers = settled(running)
    assert numbers["counters"]["answers_5xx_expected"] == len(asked)
    shown = weir_stats(str(running.master.pid)).stdout
    assert "status of 5xx" not in shown, shown


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["4194304"], CRITICAL, "no server runs"),
        (["soon"], UNKNOWN, "cannot be checked"),
    ],
)
def test_what_cannot_be_checked_has_a_state_too(
    arguments: list[str], status: int, said: str
) -> None:
    done = weir_stats("--check", *arguments)
    assert done.returncode == status
    assert PLUGIN.fullmatch(done.stdout)
    assert said in done.stdout
    assert done.stderr.startswith("weir: ")


def test_a_check_takes_no_other_form() -> None:
    done = weir_stats("--check", "--json")
    assert (done.returncode, done.stdout) == (UNKNOWN, "")
    assert "--check prints one line" in done.stderr
