# SPDX-License-Identifier: MIT
"""Compares src/server/syscalls.def with the system calls of real runs, in both directions."""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e import certificates
from tests.e2e.planting import in_force
from tests.e2e.running import STATISTICS, TOP, Server, models, start
from tests.waiting import wait_until

TABLE = TOP / "src/server/syscalls.def"
ENTRY = re.compile(r'^CALL\((\w+), ([A-Z_ |]+), (\w+), "(.*)"\)$', re.MULTILINE)
MODEL = re.compile(r"^MODEL\((\w+), (\w+), (\w+), \w+, (\w+),", re.MULTILINE)
LINE = re.compile(r"^(\d+)\s+(<\.\.\. )?(\w+)(.*)$")

pytestmark = pytest.mark.skipif(not shutil.which("strace"), reason="no strace")


@dataclass(frozen=True)
class Entry:
    """A line of the table."""

    name: str
    groups: frozenset[str]
    reason: str


@dataclass
class Recording:
    """The names of the calls that confined processes have made, and those that were refused."""

    worker: set[str] = field(default_factory=set)
    page: set[str] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)


def table() -> list[Entry]:
    found = ENTRY.findall(TABLE.read_text())
    entries = [
        Entry(name, frozenset(part.strip() for part in groups.split("|")), reason)
        for name, groups, _, reason in found
    ]
    assert len(entries) == TABLE.read_text().count("\nCALL("), "an entry cannot be read"
    return entries


def groups_of(model: str) -> set[str]:
    """As server_calls_of_model in src/server/calls.c."""
    listed = MODEL.findall((TOP / "src/model/models.def").read_text())
    accepts, serves, _ = next(rest for name, *rest in listed if name == model)
    groups = {"CALLS_ALL", "CALLS_SERVING"}
    groups.add("CALLS_PASSED" if accepts == "MASTER" else "CALLS_ACCEPT")
    groups.add("CALLS_RING" if model == "uring" else "CALLS_READINESS")
    groups.add("CALLS_PROCESSES" if serves == "PROCESS" else "CALLS_THREADS")
    groups.add("CALLS_LOOPS" if serves == "LOOP" else "CALLS_BLOCKING")
    return groups


def has_threads_setting(model: str) -> bool:
    listed = MODEL.findall((TOP / "src/model/models.def").read_text())
    return any(name == model and threads != "MODEL_DECIDES" for name, _, _, threads in listed)


def read_trace(trace: Path) -> Recording:
    """A process is confined from its call of seccomp(2) on. Its children and threads are, too."""
    recording = Recording()
    confined: dict[str, set[str]] = {}
    filtering: dict[str, bool] = {}
    pages: set[str] = set()
    for line in trace.read_text(errors="replace").splitlines():
        if "--- SIGSYS" in line:
            recording.refused.append(line)
        if not (found := LINE.match(line)):
            continue
        pid, resumed, name, rest = found.groups()
        if STATISTICS in rest and name == "prctl":
            pages.add(pid)
        calls = confined.get(pid)
        if calls is not None and not resumed:
            calls.add(name)
        child = re.search(r"= (\d+)$", rest) if name.startswith("clone") else None
        if child and calls is not None:
            confined[child[1]] = calls
        if name == "seccomp" and not resumed:
            filtering[pid] = "SET_MODE_FILTER" in rest
        if name == "seccomp" and filtering[pid] and rest.endswith("= 0"):
            confined[pid] = recording.page if pid in pages else recording.worker
    return recording


def request(path: str, *fields: str, method: str = "GET", close: bool = True) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *fields]
    return "\r\n".join([*lines, *(["Connection: close"] if close else []), "", ""]).encode()


def send(address: tuple[str, int], sent: bytes, *, slowly: bool = False) -> bytes:
    """Everything that the server answers, up to the end of the connection."""
    with socket.socket() as client:
        if slowly:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(60)
        client.connect(address)
        client.sendall(sent)
        if slowly:
            time.sleep(0.2)  # the server's send fills the buffers, and is continued later
        got = b""
        while more := client.recv(1 << 16):
            got += more
        return got


def fill(site: Path) -> None:
    (site / "large").write_bytes(os.urandom(3_000_000))
    (site / "middle").write_bytes(os.urandom(100_000))
    (site / "a.css").write_text("y" * 5000)
    (site / "a.css.gz").write_bytes(gzip.compress(b"y" * 5000))
    (site / "text.txt").write_text("a line of text\n" * 100)
    (site / "folder").mkdir()
    (site / "folder" / "file").write_text("1")
    (site / "link").symlink_to("hello.txt")
    for number in range(100):
        (site / f"small{number}").write_text("z" * 2000)


def make_requests(address: tuple[str, int], site: Path) -> None:
    for path in ("/", "/hello.txt", "/large", "/middle", "/a.css", "/folder", "/folder/", "/link"):
        for method in ("GET", "HEAD"):
            send(address, request(path, method=method))
    for path in ("/missing", "/../x", "/missing.css"):
        send(address, request(path))
    send(address, request("/missing", "Accept: text/html"))
    send(address, request("/a.css", "Accept-Encoding: gzip"))
    for ranges in ("0-10", "0-10,50-90", "99999999-"):
        send(address, request("/large", f"Range: bytes={ranges}"))
    send(address, request("/large"), slowly=True)
    send(address, request("/hello.txt", close=False) * 5 + request("/middle"))
    send(address, b"GET bad\r\n\r\n")
    send(address, request("/hello.txt", "Content-Length: 5", method="POST") + b"hello")
    send(address, b"GET / HT")  # 408
    (site / "hello.txt").write_text("changed\n")
    small = b"".join(request(f"/small{number}", close=False) for number in range(100))
    send(address, small + request("/"))  # more than the cache holds
    crowd = [socket.create_connection(address) for _ in range(20)]
    for client in crowd:
        client.sendall(request("/large"))
    for client in crowd[:5]:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()
    for client in crowd[5:]:
        while client.recv(1 << 16):
            pass
        client.close()


def request_variant(address: tuple[str, int]) -> None:
    """A worker makes the variant in a thread, and another request finds it."""
    asked = request("/text.txt", "Accept-Encoding: gzip")
    wait_until(lambda: b"Content-Encoding: gzip" in send(address, asked), "a variant")


def make_tls_requests(address: tuple[str, int], pair: certificates.Pair) -> None:
    client = certificates.Client(pair, address)
    assert [client.resumes(), client.resumes()] == [False, True]
    newest = certificates.trusting(pair)
    for path in ("/hello.txt", "/large", "/folder/", "/missing"):
        with (
            socket.create_connection(address, 60) as plain,
            newest.wrap_socket(plain, server_hostname="localhost") as wrapped,
        ):
            wrapped.sendall(request(path))
            while wrapped.recv(1 << 16):
                pass
    for wrong in (request("/"), b"\x16\x03\x01\x00\x05hello", b"\x16\x03"):
        with contextlib.suppress(ConnectionError):
            send(address, wrong)


@contextlib.contextmanager
def traced(server: Server, trace: Path) -> Iterator[None]:
    command = ["strace", "-f", "-qq", "-o", str(trace), "-p", str(server.popen.pid)]
    tracer = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    status = Path(f"/proc/{server.popen.pid}/status")
    wait_until(lambda: "TracerPid:\t0\n" not in status.read_text(), "strace is attached")
    try:
        yield
    finally:
        if server.popen.poll() is None:
            server.kill()
        tracer.wait()


def record(model: str, folder: Path) -> Recording:
    """The calls of one server from a reload to its end. The page's process starts again."""
    site = folder / "site"
    site.mkdir(parents=True)
    (site / "index.html").write_text("x" * 300)
    (site / "hello.txt").write_text("hello\n")
    fill(site)
    access, errors = folder / "access.log", folder / "error.log"
    arguments = [str(site), "--listen", "127.0.0.1:0", "--model", model, "--listing", "on"]
    arguments += ["--access-log", str(access), "--error-log", str(errors), "--stats", "on"]
    arguments += ["--spa", "index.html", "--header-timeout", "1s", "--idle-timeout", "2s"]
    arguments += ["--cache-size", "64K", "--sandbox", "on", "--stats-listen", "127.0.0.1:0"]
    pair = certificates.make(folder, "cert", "localhost")
    arguments += ["--listen", "https://127.0.0.1:0", *pair.flags()]
    if has_threads_setting(model):
        arguments += ["--threads", "2"]
    server = start(arguments, folder / "stderr")
    if "sanitizer" in in_force(server):
        server.stop()
        pytest.skip("a build with a sanitizer has no filter of system calls")
    with traced(server, folder / "trace"):
        before = server.workers()
        server.signal(signal.SIGHUP)
        wait_until(lambda: not any(worker.alive for worker in before), "the workers are new")
        page = next(child for child in server.master.children() if child.comm == STATISTICS)
        os.kill(page.pid, signal.SIGKILL)
        wait_until(
            lambda: any(
                child.comm == STATISTICS and child != page for child in server.master.children()
            ),
            "the page has another process",
        )
        make_requests(server.address, site)
        if model != "fork":
            request_variant(server.address)
        make_tls_requests(("127.0.0.1", urlsplit(server.urls[1]).port or 0), pair)
        port = re.search(r"statistics: http://127.0.0.1:(\d+)/", server.messages())
        assert port
        for path in ("/", "/stats.json", "/metrics", "/healthz"):
            assert b" 200 " in send(("127.0.0.1", int(port[1])), request(path))[:20]
        access.rename(folder / "access.old")
        server.signal(signal.SIGUSR1)
        wait_until(access.exists, "the access log is new")
        send(server.address, request("/"))
        with socket.create_connection(server.address) as idle:
            idle.sendall(request("/", close=False))
            assert idle.recv(100)
            server.signal(signal.SIGTERM)
            assert server.wait() == 0
    recording = read_trace(folder / "trace")
    assert "refused" not in errors.read_text()
    return recording


def test_the_table_has_the_calls_of_every_model_and_no_other(tmp_path: Path) -> None:
    entries = table()
    seen: set[str] = set()
    with ThreadPoolExecutor() as pool:  # a recording mostly waits
        recordings = list(pool.map(lambda model: record(model, tmp_path / model), models()))
    for model, recording in zip(models(), recordings, strict=True):
        allowed = groups_of(model)
        for calls, groups in (
            (recording.worker, allowed),
            (recording.page, {"CALLS_ALL", "CALLS_PAGE"}),
        ):
            assert calls, f"{model}: nothing was recorded"
            listed = {entry.name for entry in entries if entry.groups & groups}
            assert calls <= listed, f"{model}: not in the table: {sorted(calls - listed)}"
        assert not recording.refused, model
        seen |= recording.worker | recording.page
    idle = {entry.name for entry in entries if not entry.reason} - seen
    assert not idle, f"no run makes these calls, and the table gives no reason: {sorted(idle)}"
