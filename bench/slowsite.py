# SPDX-License-Identifier: MIT
"""What the clients of a fast site notice of a slow disk, with one model of weir.

A server has two sites: one in memory, and one on a disk that answers late (slowdisk.py). `weir
load` requests a file of the fast site, alone, and then beside clients that request files of the
slow site, each file once. So each of their requests waits for the disk.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import urlsplit

from bench import process
from bench.process import BenchError
from bench.slowdisk import SlowDisk, SlowDiskError

ANSWER_WITHIN_S = 60.0
FILES_MAX = 50_000
THINK = "exp:1ms"  # without a pause, the 99th percentile is the scheduler's


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The load, and how late the disk is."""

    weir: Path
    delay_s: float = 0.2
    slow_clients: int = 4
    clients: int = 8  # of the fast site
    seconds: float = 3
    server_cpu: int | None = None
    generator_cpu: int | None = None

    @property
    def files(self) -> int:
        """How many files the slow clients can request: one in each delay, and some at the end."""
        each = math.ceil(self.seconds / self.delay_s) + 10
        return min(FILES_MAX, self.slow_clients * each)


@dataclass(frozen=True, kw_only=True)
class Fast:
    """A load of the fast site. The percentiles are infinite where no request was answered."""

    p50_s: float
    p99_s: float
    per_s: float


@dataclass(frozen=True, kw_only=True)
class Slow:
    """The clients of the slow site. `refused` is their answers other than 200."""

    answers: int
    refused: int
    per_s: float
    median_s: float  # of a response time; infinite: no answer


@dataclass(frozen=True, kw_only=True)
class Found:
    """One run of one model."""

    alone: Fast
    beside: Fast
    slow: Slow

    @property
    def ratio(self) -> float:
        """How many times the 99th percentile grows."""
        return self.beside.p99_s / max(self.alone.p99_s, 1e-9)


class _SlowClients:
    """Clients that request one file of the slow site after the other."""

    def __init__(self, port: int, setting: Setting) -> None:
        self._port, self._setting = port, setting
        self._numbers = iter(range(setting.files))
        self._times_s: list[float] = []
        self._refused = 0
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._began_s = time.monotonic()
        self._threads = [
            threading.Thread(target=self._request_all, daemon=True)
            for _ in range(setting.slow_clients)
        ]
        for each in self._threads:
            each.start()

    def _request_all(self) -> None:
        while not self._over.is_set():
            with self._lock:
                number = next(self._numbers, None)
            if number is None:
                return
            with contextlib.suppress(OSError, HTTPException):
                self._request(f"/cold-{number}.txt")

    def _request(self, path: str) -> None:
        began_s = time.monotonic()
        connection = HTTPConnection("127.0.0.1", self._port, timeout=ANSWER_WITHIN_S)
        with contextlib.closing(connection):
            connection.request("GET", path, headers={"Host": "slow"})
            good = connection.getresponse().status == 200
        with self._lock:
            if good and not self._over.is_set():
                self._times_s.append(time.monotonic() - began_s)
            self._refused += not good
        if not good:
            self._over.wait(self._setting.delay_s)

    def stop_counting(self) -> Slow:
        """Begins no further requests. The disk can then be as fast as others."""
        self._over.set()
        lasted_s = time.monotonic() - self._began_s
        with self._lock:
            times_s = list(self._times_s)
            return Slow(
                answers=len(times_s),
                refused=self._refused,
                per_s=len(times_s) / lasted_s,
                median_s=statistics.median(times_s) if times_s else math.inf,
            )

    def wait(self) -> None:
        """Returns when the last request is over."""
        for each in self._threads:
            each.join()


def _load(setting: Setting, port: int) -> Fast:
    words = ["--users", str(setting.clients), "--think", THINK]
    words += ["--duration", f"{round(1000 * setting.seconds)}ms", "--json"]
    url = f"http://127.0.0.1:{port}/fast.txt"
    cpu = setting.generator_cpu
    done = process.run(
        [str(setting.weir), "load", url, *words],
        cpu=frozenset(os.sched_getaffinity(0)) if cpu is None else cpu,
        within_s=setting.seconds + ANSWER_WITHIN_S,
    )
    try:
        (step,) = json.loads(done.output)["steps"]
        p50_ns, p99_ns = (step["response"][name] for name in ("p50_ns", "p99_ns"))
        return Fast(
            p50_s=p50_ns / 1e9 if p50_ns else math.inf,
            p99_s=p99_ns / 1e9 if p99_ns else math.inf,
            per_s=step["throughput_per_second"],
        )
    except (ValueError, KeyError) as error:
        raise BenchError(
            f"weir load gave no result: {(done.errors or done.output)[:200]}"
        ) from error


@contextlib.contextmanager
def _serving(setting: Setting, disk: SlowDisk, model: str, top: Path) -> Iterator[int]:
    settings, log = top / "weir.conf", top / "server.log"
    settings.write_text(
        f"[site fast]\nroot = {top / 'fast'}\n\n[site slow]\nroot = {disk.root}\nhost = slow\n"
    )
    ready, ready_end = os.pipe()
    argv = [*disk.inside, str(setting.weir), "serve", "-c", str(settings), "--model", model]
    argv += ["--listen", "127.0.0.1:0", "--stats-listen", "off", "--ready-fd", str(ready_end)]
    running = process.start(argv, cpu=setting.server_cpu, log=log, pass_fds=(ready_end,))
    os.close(ready_end)
    try:
        with os.fdopen(ready) as urls:
            port = urlsplit(urls.readline().strip()).port
        if port is None:
            raise BenchError(f"weir did not start: {log.read_text(errors='replace').strip()}")
        yield port
    finally:
        process.stop(running)


@contextlib.contextmanager
def mounted(files: int) -> Iterator[tuple[SlowDisk, Path]]:
    """A slow disk with so many empty files, and a folder that has the fast site in `fast`.

    Raises:
        BenchError: no slow disk can be mounted here.
    """
    with tempfile.TemporaryDirectory(prefix="weir-slow-") as name:
        top = Path(name)
        top.chmod(0o755)
        for folder in ("source", "slow", "fast"):
            (top / folder).mkdir()
        for number in range(files):
            (top / "source" / f"cold-{number}.txt").touch()
        (top / "fast/fast.txt").write_text("a file of the fast site\n")
        try:
            disk = SlowDisk.mount(top / "source", top / "slow")
        except SlowDiskError as error:
            raise BenchError(
                f"{error}. A slow disk needs /dev/fuse, and the right to make a mount namespace: "
                "run as root, or allow user namespaces"
            ) from error
        with disk:
            yield disk, top


def measure(setting: Setting, model: str) -> Found:
    """One run: a fresh disk and a fresh server.

    Raises:
        BenchError: no slow disk can be mounted here, or the server or the generator failed.
    """
    with mounted(setting.files) as (disk, top), _serving(setting, disk, model, top) as port:
        alone = _load(setting, port)
        disk.delay(setting.delay_s)
        clients = _SlowClients(port, setting)
        try:
            beside = _load(setting, port)
        finally:
            slow = clients.stop_counting()
            disk.delay(0)
            clients.wait()
        return Found(alone=alone, beside=beside, slow=slow)


def growth(weir: Path, model: str, rounds: int) -> Callable[[], float]:
    """How many times the 99th percentile of the fast site's clients grows: the median of rounds."""
    setting = Setting(weir=weir)
    return lambda: statistics.median(measure(setting, model).ratio for _ in range(rounds))
