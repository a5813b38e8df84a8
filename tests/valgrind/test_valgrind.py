# SPDX-License-Identifier: MIT
"""Every model under Valgrind, in a short scenario.

memcheck watches every model, and helgrind the models that have threads. One error in any process of
a server fails the test.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.running import Server, models, start
from tests.e2e.wire import Connection, WireError, connect
from tests.waiting import wait_until

HERE = Path(__file__).resolve().parent
SUMMARY = re.compile(r"ERROR SUMMARY: (\d+) errors")

SHORT_QUEUE = ("--pool-queue", "1000")

# The models without Helgrind. While one thread waits in io_uring_enter, Valgrind (3.19) runs no
# other thread. So `uring` has a single loop here, and asks for nothing that a fetching thread does:
# no listing, and only files that are always in memory.
WITHOUT_THREADS = {
    "epoll": "it has no threads",
    "fork": "it has no threads",
    "uring": "Valgrind stops the other rings while one waits",
}
# Helgrind supports semaphores up to 10,000 only.
ARGUMENTS = {"uring": ("--threads", "1"), "pool": SHORT_QUEUE, "prefork": SHORT_QUEUE}

pytestmark = pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not installed")

# AddressSanitizer looks for leaks. Valgrind would read all address space that the statistics
# reserve, page by page, which takes half a minute for each process.
MEMCHECK = ("--leak-check=no",)
HELGRIND = ("--tool=helgrind", "--history-level=none", f"--suppressions={HERE}/helgrind.supp")

LARGE = bytes(range(256)) * 12_000  # more than the cache keeps in memory


@pytest.fixture
def top(model: str, tmp_path: Path) -> Iterator[Path]:
    """Where the site is. The kernel may drop a file of a disk from memory at any time."""
    if model != "uring":
        yield tmp_path
        return
    shared = "/dev/shm"
    kind = subprocess.run(["stat", "-f", "-c", "%T", shared], capture_output=True, text=True)
    if kind.stdout.strip() != "tmpfs":
        pytest.skip(f"{model}: {shared} is not in memory (tmpfs)")
    with tempfile.TemporaryDirectory(prefix="valgrind-", dir=shared) as made:
        yield Path(made)


def make_site(top: Path) -> Path:
    site = top / "site"
    (site / "folder").mkdir(parents=True)
    (site / "index.html").write_text("<!doctype html><title>site</title>\n")
    (site / "hello.txt").write_text("hello\n")
    (site / "folder/one.txt").write_text("1\n")
    (site / "large.bin").write_bytes(LARGE)
    return site


def request_one_by_one(running: Server, *, lists: bool) -> None:
    with connect(running.address) as connection:
        small = connection.get("/hello.txt")
        assert small.body == b"hello\n"
        assert connection.get("/hello.txt").body == b"hello\n"
        tag = small.get("ETag")
        assert connection.get("/hello.txt", "a", f"If-None-Match: {tag}").status == 304
        assert connection.get("/large.bin").body == LARGE
        assert connection.get("/large.bin", "a", "Range: bytes=-2000000").body == LARGE[-2000000:]
        parts = connection.get("/large.bin", "a", "Range: bytes=0-9,500-509")
        assert parts.status == 206
        if lists:
            assert connection.get("/folder/").status == 200
        assert connection.get("/nothing").status == 404
        connection.send(b"POST /hello.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc")
        assert connection.read().status == 405
        assert connection.get("/", "a", "Connection: close").closes


def pipeline(running: Server) -> None:
    """Pipelined requests, at once and byte by byte. The last one is malformed."""
    requests = b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n" * 5 + b"no request\r\n\r\n"
    with connect(running.address) as connection:
        connection.send(requests)
        assert [connection.read().status for _ in range(6)] == [200] * 5 + [400]
    with connect(running.address) as connection:
        for byte in requests[:60]:
            connection.send(bytes([byte]))
        connection.send(requests[60:])
        assert [connection.read().status for _ in range(6)] == [200] * 5 + [400]


def disconnect_early(running: Server) -> None:
    with connect(running.address) as connection:
        connection.send(b"GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n")
        assert connection.socket.recv(100)
        connection.reset()
    with connect(running.address) as connection:
        connection.send(b"GET /hello.txt HT")


def request_repeatedly(address: tuple[str, int], count: int, wrong: list[str]) -> None:
    try:
        for path, body in (("/hello.txt", b"hello\n"), ("/large.bin", LARGE)) * count:
            with connect(address) as connection:
                for _ in range(2):
                    answer = connection.get(path)
                    if answer.body != body:
                        wrong.append(f"{path}: {answer.status}")
    except (OSError, WireError) as error:
        wrong.append(str(error))


def request_concurrently(running: Server) -> None:
    wrong: list[str] = []
    clients = [
        threading.Thread(target=request_repeatedly, args=(running.address, 3, wrong))
        for _ in range(4)
    ]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert wrong == []


def reload(running: Server) -> None:
    running.signal(signal.SIGUSR1)
    running.signal(signal.SIGHUP)
    wait_until(lambda: "reload" in running.messages(), running.messages)
    with connect(running.address) as connection:
        assert connection.get("/hello.txt").body == b"hello\n"


def play(running: Server, *, lists: bool) -> None:
    request_one_by_one(running, lists=lists)
    pipeline(running)
    disconnect_early(running)
    request_concurrently(running)
    reload(running)
    idle = Connection.to(running.address)
    idle.get("/hello.txt")
    running.stop()
    idle.close()


def verify_logs(logs: Path) -> None:
    """Valgrind has written its summary for every process, and each summary has no error."""
    texts = {log.name: log.read_text(errors="replace") for log in logs.iterdir()}
    assert len(texts) >= 3, "a master and workers before and after the reload"
    for name, text in texts.items():
        found = SUMMARY.search(text)
        assert found, f"{name} ended before its summary: {text}"
        assert int(found[1]) == 0, text


TOOLS = [pytest.param(MEMCHECK, id="memcheck"), pytest.param(HELGRIND, id="helgrind")]


@pytest.mark.parametrize("model", models())
@pytest.mark.parametrize("tool", TOOLS)
def test_valgrind_finds_no_error(
    model: str, tool: tuple[str, ...], top: Path, tmp_path: Path
) -> None:
    if tool == HELGRIND and model in WITHOUT_THREADS:
        pytest.skip(f"{model}: {WITHOUT_THREADS[model]}")
    logs = tmp_path / "logs"
    logs.mkdir()
    wrapper = ("valgrind", "--trace-children=yes", "--fair-sched=try", f"--log-file={logs}/%p")
    arguments = [str(make_site(top)), "--listen", "127.0.0.1:0", "--model", model]
    arguments += ["--access-log", str(tmp_path / "access.log"), *ARGUMENTS.get(model, ())]
    # Valgrind opens files in each process: its log, and those with the names of functions.
    # A process ends slowly. A client that has just connected may wait for a processor.
    arguments += ["--kill-timeout", "2m", "--drain-idle", "5s"]
    arguments += ["--sandbox", "off", *(["--user", "root"] if os.geteuid() == 0 else [])]
    running = start(arguments, tmp_path / "stderr", wrapper=(*wrapper, *tool))
    messages = running.messages()
    if f"model {model}," not in messages:
        running.stop()
        pytest.skip(f"{model} cannot run here: {messages}")
    try:
        play(running, lists=model != "uring")
    finally:
        if running.popen.poll() is None:
            running.kill()
    verify_logs(logs)
    assert os.path.getsize(tmp_path / "access.log") > 0
