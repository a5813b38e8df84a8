# SPDX-License-Identifier: MIT
"""The last answers that failed, were slow or were cut: in JSON, in the table and on the page."""

from __future__ import annotations

import re
import select
import socket
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.e2e.certificates import Pair, secure, trusting
from tests.e2e.conftest import ServerFactory
from tests.e2e.http2 import Client, connect2
from tests.e2e.running import Server
from tests.e2e.statistics import (
    Numbers,
    Seen,
    Talk,
    ask,
    read,
    segment,
    settled,
    wait_for,
    weir_stats,
)
from tests.e2e.test_page_browser import opened, page_of
from tests.e2e.test_reload import reload
from tests.e2e.wire import connect
from tests.waiting import wait_until

STALL_S = 1.2  # an answer is slow from 1 s on
LARGE = 64 << 20  # more than all buffers between server and client hold

ORDINARY = b"GET /an-ordinary-path-of-some-length"
HOSTILE = b"GET /\x1b[31m<b>\xff\xe2\x80\xae\n".ljust(len(ORDINARY), b"x")


def recent(numbers: Numbers, request: str) -> dict[str, Any]:
    """The only such answer."""
    (found,) = (one for one in numbers["recent"] if one["request"] == request)
    assert isinstance(found, dict)
    return found


@pytest.fixture
def large(site: Path) -> Path:
    path = site / "large.bin"
    with path.open("wb") as file:
        file.truncate(LARGE)
    return path


def test_refusals_are_noted_with_path_cause_and_id(server: ServerFactory) -> None:
    running = server()
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").status == 200
        missing = connection.get("/nothing?secret=1")
        assert missing.status == 404
    with connect(running.address) as connection:
        connection.send(ask("/a%zz"))
        assert connection.read().status == 400
    numbers = settled(running)
    assert len(numbers["recent"]) == 2
    one = recent(numbers, "GET /nothing")
    assert (one["kind"], one["status"], one["cause"]) == ("4xx", 404, "Not Found")
    assert one["site"] == "default"
    assert one["id"].encode() in missing.body
    assert one["body_bytes"] == len(missing.body)
    assert 0 < one["duration_seconds"] <= numbers["durations"]["latency"]["max_seconds"] * 1.01
    assert one["seconds_ago"] >= recent(numbers, "GET /a%zz")["seconds_ago"]
    assert "hexadecimal" in recent(numbers, "GET /a%zz")["cause"]
    shown = weir_stats(str(running.master.pid)).stdout
    assert re.search(rf"^ +\d+ s ago  4xx  404 .*{one['id']}  GET /nothing$", shown, re.M)
    assert "secret" not in shown


def test_streams_are_noted_too(server: ServerFactory) -> None:
    running = server("--h2c", "on")
    with connect2(running.address) as client:
        for path in ("/hello.txt", "/nothing", "/nothing-else"):
            client.answer(client.ask(path))
    numbers = wait_for(running, lambda now: len(now["recent"]) == 2)
    for path in ("/nothing", "/nothing-else"):
        one = recent(numbers, f"GET {path}")
        assert (one["kind"], one["status"]) == ("4xx", 404)
    settled(running)


@pytest.mark.parametrize("protocol", ["http/1.1", "h2"])
def test_refusals_over_tls_are_noted(server: ServerFactory, pair: Pair, protocol: str) -> None:
    running = server(*pair.flags(), listen=("https://127.0.0.1:0",))
    context = trusting(pair)
    context.set_alpn_protocols([protocol])
    with secure(running.address, context) as connection:
        paths = ("/hello.txt", "/nothing?secret=1", "/nothing-else")
        if protocol == "h2":
            client = Client(connection)
            answers = [client.answer(client.ask(path)) for path in paths]
        else:
            answers = [connection.get(path) for path in paths]
    assert [answer.status for answer in answers] == [200, 404, 404]
    numbers = wait_for(running, lambda now: len(now["recent"]) == 2)
    for path, answer in zip(("/nothing", "/nothing-else"), answers[1:], strict=True):
        one = recent(numbers, f"GET {path}")
        assert (one["kind"], one["status"], one["cause"]) == ("4xx", 404, "Not Found")
        assert one["id"].encode() in answer.body
        assert one["body_bytes"] == len(answer.body)


def test_cut_and_slow_answers_over_tls_are_noted(
    server: ServerFactory, pair: Pair, large: Path
) -> None:
    running = server(*pair.flags(), "--stats-slow", "1us", listen=("https://127.0.0.1:0",))
    with secure(running.address, trusting(pair)) as connection:
        connection.send(ask("/large.bin"))
        assert connection.socket.recv(1)
    one = a_kind_is_noted(running, "cut")
    assert (one["status"], one["cause"]) == (200, "the connection ended before the answer did")
    assert one["body_bytes"] < LARGE
    with secure(running.address, trusting(pair)) as connection:
        connection.send(ask("/large.bin?secret"))
        assert len(connection.read().body) == large.stat().st_size
    numbers = wait_for(running, lambda now: slow_ones(now) == ["GET /large.bin"])
    assert {one["kind"] for one in numbers["recent"]} == {"cut", "slow"}


def a_kind_is_noted(running: Server, kind: str) -> dict[str, Any]:
    numbers = wait_for(running, lambda now: any(one["kind"] == kind for one in now["recent"]))
    return recent(numbers, "GET /large.bin")


@pytest.mark.parametrize("log", ["on", "off"])
def test_a_cut_answer_is_noted(
    server: ServerFactory, large: Path, tmp_path: Path, log: str
) -> None:
    running = server("--access-log", str(tmp_path / "access.log") if log == "on" else "off")
    talk = Talk(running.address, Seen())
    talk.connection.send(ask("/large.bin?secret"))
    assert talk.connection.socket.recv(1)
    talk.reset()
    one = a_kind_is_noted(running, "cut")
    assert one["status"] == 200
    assert one["body_bytes"] < LARGE == large.stat().st_size
    assert one["cause"] == "the connection ended before the answer did"


def test_an_answer_that_takes_long_is_noted(server: ServerFactory, large: Path) -> None:
    running = server()
    with connect(running.address) as connection:
        connection.send(ask("/large.bin"))
        assert connection.socket.recv(1, socket.MSG_PEEK)  # the request has begun
        select.select([], [], [], STALL_S)  # the client takes nothing meanwhile
        assert len(connection.read().body) == large.stat().st_size
    one = a_kind_is_noted(running, "slow")
    assert (one["status"], one["body_bytes"]) == (200, LARGE)
    assert one["duration_seconds"] >= STALL_S * 0.99  # durations have buckets


def take_large(running: Server) -> None:
    """An answer that no buffers hold, so the server sends it in several turns."""
    with connect(running.address) as connection:
        connection.send(ask("/large.bin"))
        assert len(connection.read().body) == LARGE


def slow_ones(numbers: Numbers) -> list[str]:
    return [one["request"] for one in numbers["recent"] if one["kind"] == "slow"]


def test_a_reload_changes_which_answers_are_slow(
    server: ServerFactory, large: Path, tmp_path: Path
) -> None:
    lines = f"[site main]\nroot = {large.parent}\n"
    configuration = tmp_path / "weir.conf"
    configuration.write_text(f"[server]\nstats-slow = 0\n{lines}")
    running = server("-c", str(configuration), folder=None)
    take_large(running)
    numbers = settled(running)
    assert (slow_ones(numbers), numbers["configuration"]["slow_seconds"]) == ([], 0)

    configuration.write_text(f"[server]\nstats-slow = 1us\n{lines}")
    assert reload(running)[0], running.messages()

    def noted() -> bool:  # a worker that drains may still accept a connection
        take_large(running)
        return bool(slow_ones(read(running.master.pid)))

    wait_until(noted, "a slow answer is noted")
    numbers = read(running.master.pid)
    assert numbers["configuration"]["slow_seconds"] == 1e-6
    one = next(one for one in numbers["recent"] if one["kind"] == "slow")
    assert one["request"] == "GET /large.bin"
    assert one["cause"] == "the answer took `stats-slow` or longer" or one["disk_wait_seconds"] > 0
    shown = weir_stats(str(running.master.pid)).stdout
    assert "\nRecent answers that failed, took 1.00 us or longer, or were cut\n" in shown


@pytest.mark.parametrize("model", ["epoll"])
def test_many_answers_of_a_kind_leave_the_others(server: ServerFactory) -> None:
    running = server()
    with connect(running.address) as connection:
        for number in range(100):
            assert connection.get(f"/missing-{number}").status == 404
        connection.send(b"PUT / HTTP/9.9\r\nHost: a\r\n\r\n")
        assert connection.read().status == 505
    numbers = settled(running)
    assert recent(numbers, "PUT /")["kind"] == "5xx"
    missing = [one["request"] for one in numbers["recent"] if one["kind"] == "4xx"]
    assert missing == [f"GET /missing-{number}" for number in range(99, 83, -1)]


def overwrite(pid: int, text: bytes, other: bytes) -> None:
    """Writes into the memory of a worker, as one that was taken over can."""
    for file in segment(pid).iterdir():
        at = file.read_bytes().find(text)
        if at >= 0:
            with file.open("r+b") as opened_file:
                opened_file.seek(at)
                opened_file.write(other)


@pytest.mark.parametrize("model", ["percore"])
def test_no_byte_of_a_client_reaches_a_terminal_or_a_page_as_it_is(
    server: ServerFactory, browser: Browser
) -> None:
    running = server("--stats-listen", "127.0.0.1:0", "--stats-slow", "1500ms")
    pid = running.master.pid
    with connect(running.address) as connection:
        assert connection.get(ORDINARY.split()[1].decode()).status == 404
    recent(settled(running), ORDINARY.decode())
    overwrite(pid, ORDINARY, HOSTILE)
    (one,) = read(pid)["recent"]
    assert one["request"].startswith("GET /\x1b[31m<b>")
    shown = weir_stats("--explain", str(pid)).stdout
    assert "GET /\\x1b[31m<b>\\xff\\xe2\\x80\\xae\\x0ax" in shown
    assert all(each == "\n" or " " <= each <= "~" for each in shown)
    with opened(browser, page_of(running)) as (page, _):
        wait_until(lambda: page.locator("#recent tbody tr").count() == 1, "the page has the row")
        title = page.locator("#recent-title").inner_text()
        assert (
            title.replace("\u00a0", " ")
            == "Recent answers that failed, took 1.5 s or longer, or were cut"
        )
        cells = page.locator("#recent tbody tr").locator("th, td").all_inner_texts()
        assert cells[4].startswith("GET /\\u{1b}[31m<b>")
        assert "\u202e" not in cells[4]
        assert cells[7] == one["id"]
        assert page.locator("#recent b").count() == 0
