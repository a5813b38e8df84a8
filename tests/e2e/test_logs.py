# SPDX-License-Identifier: MIT
"""The access log has one complete line for each answer, whatever happens to the file."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.load import Load
from tests.e2e.running import RUNTIME, WEIR
from tests.e2e.wire import Connection, connect
from tests.waiting import LIMIT_S, wait_until

COMBINED = re.compile(
    rb"127\.0\.0\.1 - - \[\d{2}/[A-Z][a-z]{2}/\d{4}:\d{2}:\d{2}:\d{2} [+-]\d{4}\] "
    rb'"((?:[^"\\]|\\.)*)" (\d{3}) (\d+|-) "((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)" ([0-9a-f]{16})'
)
FORMATS = ["combined", "json"]


def converse(connection: Connection) -> int:
    """Sends requests of many kinds; returns the number of answers."""
    big = "/big.bin"
    tag = connection.get("/hello.txt").get("ETag")
    statuses = [
        connection.get("/nothing-here").status,
        connection.get("/hello.txt", "a", f"If-None-Match: {tag}").status,
        connection.get("/hello.txt", "a", "Range: bytes=1-2").status,
        connection.get(big).status,
        connection.get(big, "a", "Range: bytes=0-0,-1").status,
        connection.get("/hello.txt", "a", "Range: bytes=100-").status,
    ]
    assert statuses == [404, 304, 206, 200, 206, 416]
    connection.send(b"HEAD /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n")
    connection.read(bodiless=True)
    connection.send(b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n" * 50)
    for _ in range(50):
        connection.read()
    connection.send(b"nonsense\r\n\r\n")
    assert connection.read().status == 400
    assert connection.read_to_end() == b""
    return 1 + len(statuses) + 1 + 50 + 1


@pytest.mark.parametrize("form", FORMATS)
def test_there_is_a_line_for_each_answer(
    server: ServerFactory, site: Path, tmp_path: Path, form: str
) -> None:
    log = tmp_path / "access.log"
    (site / "big.bin").write_bytes(bytes(300_000))
    running = server("--access-log", str(log), "--log-format", form)
    answers = 0
    for _ in range(10):
        with connect(running.address) as connection:
            answers += converse(connection)
    running.stop()
    lines = log.read_bytes().splitlines()
    assert len(lines) == answers
    for line in lines:
        if form == "json":
            assert isinstance(json.loads(line), dict)
        else:
            assert COMBINED.fullmatch(line), line


@pytest.mark.parametrize("form", FORMATS)
def test_a_line_describes_the_request_and_the_answer(
    server: ServerFactory, tmp_path: Path, form: str
) -> None:
    log = tmp_path / "access.log"
    running = server("--access-log", str(log), "--log-format", form)
    with connect(running.address) as connection:
        connection.get("/hello.txt?q", "a", "Referer: http://b/", "User-Agent: test/1.0")
    running.stop()
    line = log.read_bytes().rstrip(b"\n")
    if form == "json":
        record = json.loads(line)
        assert 200 in record.values()
        assert 6 in record.values()
        assert {"http://b/", "test/1.0"} <= set(map(str, record.values()))
        assert "/hello.txt?q" in line.decode()
        return
    match = COMBINED.fullmatch(line)
    assert match
    assert match.groups()[:-1] == (
        b"GET /hello.txt?q HTTP/1.1",
        b"200",
        b"6",
        b"http://b/",
        b"test/1.0",
    )


def id_of(line: bytes) -> str:
    """The id of the request in a line of either format."""
    if line.startswith(b"{"):
        return str(json.loads(line)["id"])
    return line.split()[-1].decode()


@pytest.mark.parametrize("form", FORMATS)
def test_an_error_page_shows_the_id_of_its_line(
    server: ServerFactory, tmp_path: Path, form: str
) -> None:
    log = tmp_path / "access.log"
    running = server("--access-log", str(log), "--log-format", form)
    shown = []
    requests = [b"GET /nothing HTTP/1.1", b"POST / HTTP/1.1", b"GET /../x HTTP/1.1"]
    with connect(running.address) as connection:
        for request in [*requests[:2], *requests]:
            connection.send(request + b"\r\nHost: a\r\n\r\n")
            answer = connection.read()
            found = re.findall(rb"Request ([0-9a-f]{16})<", answer.body)
            assert len(found) == 1, answer
            shown.append((request, found[0].decode()))
    with connect(running.address) as connection:
        connection.send(b"HEAD /nothing HTTP/1.1\r\nHost: a\r\n\r\n")
        head = connection.read(bodiless=True)
        assert head.get("Content-Length") == str(len(connection.get("/nothing").body))
    running.stop()
    lines = {id_of(line): line for line in log.read_bytes().splitlines()}
    assert len(lines) == len(shown) + 2
    assert all(request in lines[shown_id] for request, shown_id in shown)


def test_no_two_requests_have_one_id(server: ServerFactory, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    for turn in range(2):  # a restarted server begins with other ids
        running = server("--access-log", str(log), "--workers", "2")
        for keep in (True, False):
            with Load(running.address, "/hello.txt", b"hello\n", clients=4, keep=keep) as load:
                load.wait_for(400 if keep else 100)
                if keep:
                    running.signal(
                        signal.SIGHUP
                    )  # the workers after a reload do not repeat an id either
                load.stop()
        running.stop()
        ids = [id_of(line) for line in log.read_bytes().splitlines()]
        assert len(ids) > 400 * (turn + 1)
        assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("form", FORMATS)
def test_hostile_bytes_are_escaped(server: ServerFactory, tmp_path: Path, form: str) -> None:
    log = tmp_path / "access.log"
    running = server("--access-log", str(log), "--log-format", form)
    hostile = b'"\\\x80\xff\xe9 " 200 1 "\xc2\x9b31m'
    with connect(running.address) as connection:
        connection.send(
            b"GET /%22\xff?\\x HTTP/1.1\r\nHost: a\r\nReferer: "
            + hostile
            + b"\r\nUser-Agent: "
            + hostile
            + b"\r\n\r\n"
        )
        connection.read()
        connection.send(b"GET /\x1b]0;x\x07 HTTP/1.1\r\nHost: a\r\n\r\n")
        assert connection.read().status == 400
    running.stop()
    text = log.read_bytes()
    assert not re.search(rb"[^ -~\n]", text)
    assert text.count(b"\n") == 2
    for line in text.splitlines():
        assert json.loads(line) if form == "json" else COMBINED.fullmatch(line)


@pytest.mark.parametrize("form", FORMATS)
def test_rotation_loses_no_line(server: ServerFactory, tmp_path: Path, form: str) -> None:
    log = tmp_path / "access.log"
    running = server("--access-log", str(log), "--log-format", form)
    with Load(running.address, "/hello.txt", b"hello\n", clients=4, keep=True) as load:
        for number in range(4):
            load.wait_for(300)
            log.rename(tmp_path / f"access.log.{number}")
            running.signal(signal.SIGUSR1)
            wait_until(log.exists, "the log is opened again")
        load.wait_for(300)
        count = load.stop()
    running.stop()
    texts = [path.read_bytes() for path in tmp_path.glob("access.log*")]
    assert count.unanswered == count.parted == count.cut == 0
    assert sum(text.count(b"\n") for text in texts) == count.answers
    assert all(text.endswith(b"\n") for text in texts if text)


def test_a_line_is_written_before_the_buffer_is_full(server: ServerFactory, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    running = server("--access-log", str(log))
    with connect(running.address) as connection:
        connection.get("/hello.txt")
        wait_until(log.read_bytes, "the line has left the buffer")


def test_a_full_disk_loses_lines_but_no_requests(server: ServerFactory) -> None:
    running = server("--access-log", "/dev/full")
    with Load(running.address, "/hello.txt", b"hello\n", clients=4, keep=True) as load:
        load.wait_for(3000)
        count = load.stop()
    assert count.wrong == []
    assert count.unanswered == count.parted == count.cut == count.refused == 0
    workers = len(running.workers())
    running.stop()
    said = running.messages()
    reports = said.count("lines of the access log are lost: No space left on device; ")
    lost = re.findall(r"(\d+) lines? of the access log (?:was|were) lost before the end\n", said)
    assert 1 <= reports == len(lost) <= workers, said
    assert sum(map(int, lost)) >= 3000


def test_a_log_reader_that_stops_reading_does_not_stop_the_server(
    server: ServerFactory, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR)
    try:
        running = server("--access-log", str(pipe))
        with Load(running.address, "/hello.txt", b"hello\n", clients=4, keep=True) as load:
            load.wait_for(4000)
            count = load.stop()
        assert count.wrong == []
        assert count.unanswered == count.parted == count.cut == 0
        running.stop()
    finally:
        os.close(reader)


@pytest.mark.parametrize("setting", ["access-log", "error-log", "pid-file"])
def test_a_file_that_cannot_be_opened_is_named_with_its_setting_and_a_cure(
    site: Path, tmp_path: Path, setting: str
) -> None:
    # In this folder nobody can make a file, not even root.
    text = f"[server]\nlisten = 127.0.0.1:0\n{setting} = /proc/no\n[site a]\nroot = {site}\n"
    (tmp_path / "weir.conf").write_text(text)
    done = subprocess.run(
        [WEIR, "serve", "-c", "weir.conf"],
        cwd=tmp_path,
        env={**os.environ, "RUNTIME_DIRECTORY": str(RUNTIME)},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert f"weir.conf:3: {setting}: cannot open the " in last
    assert last.endswith(
        " /proc/no: No such file or directory; give this user the right to write there, or "
        f"choose another file with --{setting}"
    )
