# SPDX-License-Identifier: MIT
"""Measures what weir promises about time, precision and fairness: one row with a verdict a claim.

A busy machine changes these figures, so no test asserts them. Each claim is a function here that
returns the measured figure. It starts servers with the helpers of the end-to-end tests.
"""

import base64
import contextlib
import json
import os
import re
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from bench import slowsite
from bench.process import BenchError
from bench.report import DASH, Row
from tests.e2e import metronome
from tests.e2e.crowd import Crowd
from tests.e2e.load import Load
from tests.e2e.running import TOP, WEIR, Process, Server, models, start
from tests.e2e.wire import Connection, WireError, connect
from tests.waiting import wait_until

ROUNDS = 5
MS = 1_000_000
HELLO = b"GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A promise, the bound of its figure, and how to measure it. Without a figure it is skipped."""

    text: str
    bound: float
    unit: str
    measure: Callable[[], float | None]
    at_least: bool = False

    def row(self) -> Row:
        promised = f"{'at least' if self.at_least else 'at most'} {self.bound:,g} {self.unit}"
        try:
            figure = self.measure()
        except (AssertionError, BenchError, OSError) as error:
            return [self.text, promised, DASH, f"not measured: {error}"]
        if figure is None:
            return [self.text, promised, DASH, "not measured: a program is missing"]
        met = figure >= self.bound if self.at_least else figure <= self.bound
        shown = f"{figure:,.0f}" if figure >= 100 else f"{figure:.3g}"
        return [self.text, promised, f"{shown} {self.unit}", "met" if met else "MISSED"]


@contextlib.contextmanager
def serving(*arguments: str, wrapper: tuple[str, ...] = ()) -> Iterator[tuple[Server, Path]]:
    """A server on a free port, and the folder that it serves."""
    with tempfile.TemporaryDirectory(prefix="weir-claims-") as name:
        site = Path(name) / "site"
        site.mkdir()
        (site / "hello.txt").write_text("hello\n")
        words = [str(site), "--listen", "127.0.0.1:0", *arguments]
        running = start(words, Path(name) / "stderr", wrapper=wrapper)
        try:
            yield running, site
        finally:
            if running.popen.poll() is None:
                running.stop()


def load(*words: str) -> dict[str, Any]:
    """The only step of a load by `weir load`."""
    done = subprocess.run(
        [WEIR, "load", *words, "--json"], stdout=subprocess.PIPE, text=True, check=False
    )
    (step,) = json.loads(done.stdout)["steps"]
    assert isinstance(step, dict)
    return step


# ---- the precision of weir load ----


def added_us(mode: str, ns: int, *words: str) -> Callable[[], float]:
    """How much a response time exceeds the server's own, less 1 %: the least of some rounds.

    Other programs on the machine only add to a response time, and the generator adds every time.
    """

    def measure() -> float:
        over = []
        for _ in range(ROUNDS):
            with metronome.running(mode, ns) as server:
                step = load(server.url, *words)
                given = server.end()
            over.append(float(step["response"]["mean_ns"] - 1.01 * given["mean_ns"]))
        return max(0.0, min(over)) / 1000

    return measure


@dataclass(frozen=True)
class Said:
    """What a generator reports of a load."""

    per_s: float
    mean_ns: float


def by_weir(url: str, users: int) -> Said:
    step = load(url, "--users", str(users), "--duration", "2s", "--warmup", "0")
    return Said(step["throughput_per_second"], step["response_mean_ns"])


def output_of(*words: str) -> str:
    return subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False).stdout


def by_wrk(url: str, users: int) -> Said:
    script = str(TOP / "bench/wrk.lua")
    out = output_of("wrk", "-t1", f"-c{users}", "-d2s", "-s", script, url, "--", "1")
    found = re.search(r"^BENCH (\{.*\})$", out, re.MULTILINE)
    assert found, out
    counts = json.loads(found[1])
    return Said(counts["requests"] / (counts["duration_us"] / 1e6), counts["mean_us"] * 1e3)


def by_h2load(url: str, users: int) -> Said:
    out = output_of("h2load", "--h1", "-t1", f"-c{users}", "-D2", url)
    rate = re.search(r"finished in .*?, ([\d.]+) req/s", out)
    mean = re.search(r"time for request:\s+\S+\s+\S+\s+([\d.]+)(us|ms|s)\b", out)
    assert rate, out
    assert mean, out
    return Said(float(rate[1]), float(mean[1]) * {"us": 1e3, "ms": 1e6, "s": 1e9}[mean[2]])


OTHERS: dict[str, Callable[[str, int], Said]] = {"wrk": by_wrk, "h2load": by_h2load}


def difference(mode: str, ns: int, users: int, other: str) -> Callable[[], float | None]:
    """By how many percent throughput or mean differ from those of another generator, at least.

    The server sets the rate itself, so the generators cannot change it.
    """

    def measure() -> float | None:
        if not shutil.which(other):
            return None
        seen = []
        for _ in range(ROUNDS):
            with metronome.running(mode, ns) as server:
                ours, theirs = by_weir(server.url, users), OTHERS[other](server.url, users)
            seen.append(
                max(abs(ours.per_s / theirs.per_s - 1), abs(ours.mean_ns / theirs.mean_ns - 1))
            )
        return 100 * min(seen)

    return measure


def unexplained_percent() -> float:
    """The part of a user's cycle that is neither thinking, connecting, waiting nor closing."""
    parts = []
    with serving("--model", "percore") as (running, _):
        for _ in range(ROUNDS):
            words = ["--no-keepalive", "--requests", "2000", "--users", "5"]
            step = load(running.url + "/hello.txt", *words)
            late_ns = step["lag"]["sum_ns"] / step["answers"]
            little = step["little"]
            parts.append(float(abs(little["residual_ns"] - late_ns) / little["cycle_ns"]))
    return 100 * min(parts)


def explained_percent() -> float:
    """Little's law, X (R + Z) / N, for users that think."""
    parts = []
    with serving("--model", "percore") as (running, _):
        for _ in range(ROUNDS):
            words = ["--users", "20", "--think", "exp:20ms", "--duration", "1s"]
            step = load(running.url + "/hello.txt", *words)
            spent_ns = step["response_mean_ns"] * step["answers"] + step["thought_ns"]
            parts.append(float(spent_ns / step["user_ns"]))
    return 100 * max(parts)


# ---- the server ----


def replacement_ms() -> float:
    """From the death of a worker to the start of its successor, by the log: the median."""
    killed: dict[int, float] = {}
    with serving("--model", "epoll", "--workers", "16") as (running, _):
        with Load(running.address, "/hello.txt", b"hello\n", clients=4, keep=True) as clients:
            while len(killed) < 50:
                clients.wait_for(40)
                victim = next(each for each in running.workers() if each.pid not in killed)
                killed[victim.pid] = time.time()
                os.kill(victim.pid, signal.SIGKILL)
        wait_until(lambda: len(running.workers()) == 16, running.messages)
        lines = running.messages()
    found = re.findall(r"^(\S+) info \[\d+\] worker \d+ serves in place of (\d+)$", lines, re.M)
    delays_s = [
        datetime.fromisoformat(at).timestamp() - killed[int(pid)]
        for at, pid in found
        if int(pid) in killed
    ]
    if not delays_s:
        raise BenchError("the log names no replacement")
    return 1000 * statistics.median(delays_s)


def backoff_ms() -> float:
    """The time of eight restarts of a worker that dies each time."""
    with serving("--model", "epoll", "--workers", "1") as (running, _):
        began = time.monotonic()
        for _ in range(8):
            (victim,) = wait_until(running.workers, "there is a worker")
            os.kill(victim.pid, signal.SIGKILL)
            wait_until(lambda victim=victim: not victim.alive, "it has ended")  # type: ignore[misc]
        wait_until(running.workers, "there is a worker")
        return 1000 * (time.monotonic() - began)


def noticed_ms() -> float:
    """From a change of a file to the first answer with it: the longest of ten."""
    longest_s = 0.0
    with serving("--model", "percore") as (running, site), connect(running.address) as client:
        for number in range(10):
            content = b"version %d\n" % number
            (site / "changing.txt").write_bytes(content)
            changed = time.monotonic()
            while client.get("/changing.txt").body != content:
                time.sleep(0.002)
            longest_s = max(longest_s, time.monotonic() - changed)
    return 1000 * longest_s


def fairness() -> float:
    """Jain's index of the answers to a thousand clients of ten threads."""
    with (
        serving("--model", "pool", "--threads", "10") as (running, _),
        Crowd(running.address, 1000) as crowd,
    ):
        crowd.ask_until(60_000)
        counts = [member.answers for member in crowd.members]
    return sum(counts) ** 2 / (len(counts) * sum(count * count for count in counts))


def sockets_by_thread(running: Server) -> list[int]:
    """How many sockets each epoll instance of the worker watches."""
    (worker,) = running.workers()
    links = worker.descriptors()
    counts = []
    for fd, link in links.items():
        if link == "anon_inode:[eventpoll]":
            lines = Path(f"/proc/{worker.pid}/fdinfo/{fd}").read_text().splitlines()
            watched = [links.get(int(line.split()[1])) for line in lines if line.startswith("tfd:")]
            counts.append(sum(str(each).startswith("socket:") for each in watched))
    return counts


def share_percent() -> float:
    """The share of 64 connections on the fuller of two event loops."""
    with serving("--model", "percore", "--threads", "2") as (running, _):
        before = sockets_by_thread(running)
        with Crowd(running.address, 64) as crowd:
            crowd.ask_in_turn()
            time.sleep(1)  # several balancing periods
            now = sockets_by_thread(running)
    return 100 * max(b - a for a, b in zip(before, now, strict=True)) / 64


def cpu_s(running: Server) -> float:
    return sum(process.cpu_s() for process in [running.master, *running.workers()])


def starved_percent() -> float:
    """The CPU of a server that lacks descriptors while clients wait: the most of all models."""
    most = 0.0
    if not shutil.which("prlimit"):
        raise BenchError("prlimit is not installed")
    for model in models():
        with serving("--model", model, wrapper=("prlimit", "--nofile=64:64")) as (running, _):
            crowd = [Connection.to(running.address) for _ in range(256)]
            time.sleep(0.5)
            before_s = cpu_s(running)
            time.sleep(1)
            most = max(most, cpu_s(running) - before_s)
            for connection in crowd:
                connection.close()
    return 100 * most


def late_ms() -> float:
    """How late a timeout of 300 ms closes an unfinished request: the most of all models."""
    latest_s = 0.0
    for model in models():
        with serving("--model", model, "--header-timeout", "300ms") as (running, _):
            with connect(running.address) as client:
                client.send(b"GET / HT")
                began = time.monotonic()
                client.read_to_end()
                latest_s = max(latest_s, time.monotonic() - began - 0.3)
    return 1000 * latest_s


def stop_ms() -> float:
    """The time that an idle server with one connection needs to stop: the most of all models."""
    longest_s = 0.0
    for model in models():
        with serving("--model", model) as (running, _), connect(running.address) as client:
            client.get("/hello.txt")
            began = time.monotonic()
            running.signal(signal.SIGTERM)
            running.wait()
            longest_s = max(longest_s, time.monotonic() - began)
    return 1000 * longest_s


def beside_a_slow_reader_ms() -> float:
    """The longest response time while another client reads a large file slowly."""
    longest_s = 0.0
    for model in models():
        with serving("--model", model) as (running, site):
            (site / "big.bin").write_bytes(bytes(10_000_000))
            slow = Connection.to(running.address, receive_buffer=1024)
            slow.send(b"GET /big.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            with connect(running.address) as other:
                for _ in range(100):
                    if select.select([slow.socket], [], [], 0)[0]:
                        slow.socket.recv(4096)
                    began = time.monotonic()
                    other.get("/hello.txt")
                    longest_s = max(longest_s, time.monotonic() - began)
            slow.reset()
    return 1000 * longest_s


def logged_ms() -> float:
    """From an answer to its line in the access log."""
    with tempfile.TemporaryDirectory(prefix="weir-claims-") as name:
        log = Path(name) / "access.log"
        with serving("--access-log", str(log)) as (running, _):
            with connect(running.address) as client:
                client.get("/hello.txt")
                began = time.monotonic()
                wait_until(log.read_bytes, "the line is in the log")
                return 1000 * (time.monotonic() - began)


def page_of(running: Server) -> tuple[str, int]:
    found = re.search(r"^statistics: http://(\S+):(\d+)/$", running.messages(), re.MULTILINE)
    assert found
    return found[1], int(found[2])


def first_event_ms() -> float:
    """From the request of an event stream to its first numbers."""
    with serving("--stats-listen", "127.0.0.1:0") as (running, _):
        began = time.monotonic()
        with connect(page_of(running)) as client:
            client.send(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            data = b""
            while b"event: " not in data:
                if not (got := client.socket.recv(65536)):
                    raise WireError("the stream has ended")
                data += got
        return 1000 * (time.monotonic() - began)


def passwords_s() -> float:
    """The CPU of the page's process for a thousand wrong passwords."""
    made = subprocess.run(
        [WEIR, "password"], input="secret\n", stdout=subprocess.PIPE, text=True, check=True
    )
    with serving("--stats-listen", "127.0.0.1:0", "--stats-password", made.stdout.strip()) as (
        running,
        _,
    ):
        worker = {each.pid for each in running.workers()}
        (page,) = [each for each in running.master.children() if each.pid not in worker]
        with connect(page_of(running)) as client:
            for at in range(1000):
                guess = base64.b64encode(f"any:guess {at}".encode()).decode()
                client.get("/", "localhost", f"Authorization: Basic {guess}")
        return Process(page.pid, page.started).cpu_s()


def _delay(text: str, mode: str, ns: int, *words: str) -> Claim:
    return Claim(
        text=f"weir load adds to {text}, beside 1 %",
        bound=50,
        unit="µs",
        measure=added_us(mode, ns, *words),
    )


CLAIMS = (
    _delay("no delay, 1 user", "delay", 0, "--users", "1", "--requests", "3000"),
    _delay("1 ms, 1 user", "delay", MS, "--users", "1", "--requests", "300"),
    _delay("1 ms, 10 users", "delay", MS, "--users", "10", "--requests", "3000"),
    _delay("20 ms, 1 user", "delay", 20 * MS, "--users", "1", "--requests", "20"),
    _delay("20 ms, 10 users", "delay", 20 * MS, "--users", "10", "--requests", "200"),
    _delay(
        "5 ms, 10 users that think",
        "delay",
        5 * MS,
        *("--users", "10", "--think", "exp:5ms", "--requests", "500"),
    ),
    _delay(
        "5 ms, 500 requests/s",
        "delay",
        5 * MS,
        *("--users", "50", "--rate", "500", "--poisson", "--requests", "200"),
    ),
    _delay(
        "a queue of 200 µs, 10 users", "service", MS // 5, *("--users", "10", "--requests", "2000")
    ),
    *(
        Claim(
            text=f"weir load and {other} differ, {name}",
            bound=3,
            unit="%",
            measure=difference(mode, ns, users, other),
        )
        for other in OTHERS
        for name, mode, ns, users in (
            ("2,000 answers/s", "service", MS // 2, 30),
            ("20 ms, 20 users", "delay", 20 * MS, 20),
        )
    ),
    Claim(
        text="unexplained part of a user's cycle", bound=3, unit="%", measure=unexplained_percent
    ),
    Claim(
        text="Little's law explains the users' time",
        bound=95,
        unit="%",
        measure=explained_percent,
        at_least=True,
    ),
    Claim(text="a killed worker is replaced", bound=100, unit="ms", measure=replacement_ms),
    Claim(
        text="eight restarts of a dying worker",
        bound=310,
        unit="ms",
        measure=backoff_ms,
        at_least=True,
    ),
    Claim(text="a changed file is noticed", bound=1000, unit="ms", measure=noticed_ms),
    Claim(
        text="fairness of ten threads to 1,000 clients",
        bound=0.95,
        unit="(Jain)",
        measure=fairness,
        at_least=True,
    ),
    Claim(text="connections on one of two loops", bound=60, unit="%", measure=share_percent),
    Claim(text="CPU of a server without descriptors", bound=5, unit="%", measure=starved_percent),
    Claim(text="lateness of a timeout of 300 ms", bound=1500, unit="ms", measure=late_ms),
    Claim(text="an idle server stops", bound=3000, unit="ms", measure=stop_ms),
    Claim(
        text="an answer beside a slow reader",
        bound=1000,
        unit="ms",
        measure=beside_a_slow_reader_ms,
    ),
    Claim(text="a line is in the access log", bound=2500, unit="ms", measure=logged_ms),
    Claim(text="the first event of the page", bound=1000, unit="ms", measure=first_event_ms),
    *(
        Claim(
            text=f"p99 of other clients beside a disk of 200 ms, {model}",
            bound=2,
            unit="times",
            measure=slowsite.growth(WEIR, model, ROUNDS),
        )
        for model in ("epoll", "percore", "uring", "pool", "prefork")
    ),
    Claim(text="CPU for 1,000 wrong passwords", bound=5, unit="s", measure=passwords_s),
)


def table() -> list[Row]:
    """Measures every claim; reports each on standard error as it ends."""
    rows: list[Row] = [["claim", "promised", "measured", ""]]
    for claim in CLAIMS:
        rows.append(claim.row())
        print(f"{rows[-1][0]}: {rows[-1][2]}, {rows[-1][3]}", file=sys.stderr)
    return rows
