# SPDX-License-Identifier: MIT
"""The three measurements: CPU under a load, memory per idle connection, system calls per request.

Each takes a server that runs already and returns plain numbers. The server's answers have been
compared with the file's bytes before (see `verify`).
"""

import json
import re
import signal
import subprocess
import time
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from bench import h2client, h2load, handshakes, http1, many, process
from bench.handshakes import Handshakes
from bench.process import BenchError, Done
from bench.scenarios import AB, CLOSE_FIELD, H2LOAD, SMALL_FILE, Scenario
from bench.servers import FLOOR, Running

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

WARM_UP_REQUESTS = 50
WRK_SCRIPT = Path(__file__).with_name("wrk.lua")
GRACE_S = 30  # for ending and reporting
OBSERVED_S = 1
CODED_WITHIN_S = 20.0
AB_REQUESTS_PER_S = 50_000  # ab allocates memory for this count and never reaches it
SETTLE_READINGS = 15
SETTLE_INTERVAL_S = 0.3


class Closable(Protocol):
    """A connection that is held."""

    def close(self) -> None:
        """Closes it."""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The size of a server's answer."""

    status: int
    head_bytes: int
    body_bytes: int


@dataclass(frozen=True, kw_only=True)
class Round:
    """One measurement of one server under one load."""

    server: str
    round: int
    requests: float  # completed, as the generator counts; by bytes in bulk scenarios
    bytes: int
    duration_s: float
    cpu_ns: int  # used by the server's processes, user and system
    cpu_us_per_request: float
    requests_per_s: float
    p50_us: int  # 0: h2load reports none
    p99_us: int
    errors: dict[str, int]
    foreign_share: float  # of the server's core, used by anything but the server
    generator_share: float  # of the generator's core, used by anything


@dataclass(frozen=True, kw_only=True)
class Idle:
    """Memory of a server's processes without and with idle connections."""

    server: str
    connections: int
    before_kib: float
    after_kib: float
    kib_per_connection: float


@dataclass(frozen=True, kw_only=True)
class Syscalls:
    """System calls per request under one load."""

    server: str
    scenario: str
    requests: int
    per_request: float
    by_name: dict[str, float]


def headers_for(running: Running, scenario: Scenario) -> list[tuple[str, str]]:
    """The request fields of the scenario, with the server's own ETag where it takes one."""
    fields = [CLOSE_FIELD] if scenario.closes else []
    fields += [("Accept-Encoding", scenario.coding)] if scenario.coding else []
    if scenario.status == 304 and running.product.name != FLOOR:
        answer = http1.fetch(running.port, scenario.path, tls=running.is_tls)
        tag = answer.fields.get("etag")
        if tag is None:
            raise BenchError(f"{running.product.name} sends no ETag")
        fields.append(("If-None-Match", tag))
    return fields


def is_right(body: bytes, path: Path) -> bool:
    """Whether a body equals the file, or names every file of the folder."""
    if path.is_dir():
        return all(entry.name.encode() in body for entry in path.iterdir())
    return body == path.read_bytes()


def decode(body: bytes, coding: str) -> bytes:
    """The content of a body with this coding.

    Raises:
        BenchError: it is not of this coding, or the program for it is missing.
    """
    try:
        if coding == "gzip":
            return zlib.decompress(body, 16 + zlib.MAX_WBITS)
        program = ["brotli", "-d", "-c"]
        return subprocess.run(program, input=body, stdout=subprocess.PIPE, check=True).stdout
    except (zlib.error, OSError, subprocess.CalledProcessError) as error:
        raise BenchError(f"the body cannot be decoded as {coding}: {error}") from error


def fetch_coded(running: Running, scenario: Scenario) -> http1.Answer:
    """Fetches until the answer has the scenario's coding. weir sends the plain file until it has
    compressed it. The body of the result is decoded, and the sizes of the head are as sent.

    Raises:
        BenchError: it does not have the coding in time.
    """
    end = time.monotonic() + CODED_WITHIN_S
    headers = headers_for(running, scenario)
    while time.monotonic() < end:
        answer = http1.fetch(running.port, scenario.path, headers, 1, tls=running.is_tls)
        if answer.fields.get("content-encoding") == scenario.coding:
            return answer
        time.sleep(0.01)
    raise BenchError(f"{running.product.name} does not send {scenario.path} as {scenario.coding}")


def verify(running: Running, scenario: Scenario, root: Path) -> Sizes:
    """Checks the status and every byte of the body, and warms the server up on the way.

    Of the page of a folder it checks that every file in there is named.

    Raises:
        BenchError: the server answers something else than the file.
    """
    name = running.product.name
    headers = headers_for(running, scenario)
    repeat = 1 if scenario.closes or scenario.bulk else WARM_UP_REQUESTS
    if scenario.coding:
        answer = fetch_coded(running, scenario)
        if decode(answer.body, scenario.coding) != (root / scenario.path[1:]).read_bytes():
            raise BenchError(f"{name} sends other bytes than {scenario.path} has")
        size = len(answer.body)
        return Sizes(status=answer.status, head_bytes=answer.head_bytes, body_bytes=size)
    if scenario.streams:
        answer = h2client.fetch(running.port, scenario.path, repeat, tls=running.is_tls)
    else:
        answer = http1.fetch(running.port, scenario.path, headers, repeat, tls=running.is_tls)
    if name != FLOOR:
        if answer.status != scenario.status:
            raise BenchError(f"{name} answers {answer.status} for {scenario.path}")
        if answer.status == 200 and not is_right(answer.body, root / scenario.path[1:]):
            raise BenchError(f"{name} sends other bytes than {scenario.path} has")
    return Sizes(status=answer.status, head_bytes=answer.head_bytes, body_bytes=len(answer.body))


def generator_argv(
    url: str,
    scenario: Scenario,
    headers: list[tuple[str, str]],
    seconds: int,
    threads: int = 1,
) -> list[str]:
    """The command of the scenario's generator. wrk has this number of threads."""
    if scenario.generator == H2LOAD:
        return h2load.argv(url, scenario, seconds)
    if scenario.generator == AB:
        count = seconds * AB_REQUESTS_PER_S
        return ["ab", "-q", f"-c{scenario.connections}", f"-t{seconds}", f"-n{count}", url]
    argv = [
        "wrk",
        f"-t{threads}",
        f"-c{scenario.connections}",
        f"-d{seconds}s",
        "-s",
        str(WRK_SCRIPT),
    ]
    for name, value in headers:
        argv += ["-H", f"{name}: {value}"]
    argv += [url, "--", str(scenario.depth)]
    return [*argv, str(scenario.listed), str(scenario.start)] if scenario.listed else argv


def _wrk_counts(done: Done) -> dict[str, int]:
    """The counts of wrk.lua.

    Raises:
        BenchError: wrk failed.
    """
    found = re.search(r"^BENCH (\{.*\})$", done.output, re.MULTILINE)
    if found is None:
        raise BenchError(f"wrk failed: {done.output} {done.errors}")
    counts: dict[str, int] = json.loads(found[1])
    return counts


def _ab_counts(done: Done) -> dict[str, int]:
    """The same counts of ab, as far as it has them. Its times are whole milliseconds.

    Raises:
        BenchError: ab failed.
    """

    def find(pattern: str) -> float:
        found = re.search(pattern, done.output, re.MULTILINE)
        if found is None:
            raise BenchError(f"ab failed: {done.output[-300:]} {done.errors[-300:]}")
        return float(found[1])

    return {
        "requests": int(find(r"^Complete requests:\s+(\d+)")),
        "bytes": int(find(r"^Total transferred:\s+(\d+)")),
        "duration_us": round(1e6 * find(r"^Time taken for tests:\s+([\d.]+)")),
        "read_errors": int(find(r"^Failed requests:\s+(\d+)")),
        "p50_us": 1000 * int(find(r"^ +50%\s+(\d+)")),
        "p99_us": 1000 * int(find(r"^ +99%\s+(\d+)")),
    }


def run_generator(
    url: str,
    scenario: Scenario,
    headers: list[tuple[str, str]],
    seconds: int,
    cpu: process.Cpus,
    env: dict[str, str] | None = None,
) -> tuple[dict[str, int], int]:
    """Runs the generator pinned to its cores, with a thread of wrk on each. Returns its counts, and
    the CPU time it took, in ns.

    Raises:
        BenchError: it failed or did not end.
    """
    threads = 1 if isinstance(cpu, int) else len(cpu)
    argv = generator_argv(url, scenario, headers, seconds, threads)
    done = process.run(argv, cpu=cpu, within_s=seconds + GRACE_S, env=env)
    if scenario.generator == H2LOAD:
        counts = h2load.counts(done, seconds)
    else:
        counts = _ab_counts(done) if scenario.generator == AB else _wrk_counts(done)
    if counts["requests"] == 0:
        raise BenchError(f"no request was answered: {counts}")
    return counts, done.cpu_ns


def load(
    running: Running, scenario: Scenario, headers: list[tuple[str, str]], seconds: int, cpu: int
) -> tuple[dict[str, int], int]:
    """Runs the generator on a server, over TLS when the server has it."""
    env = running.client_environment()
    return run_generator(running.url(scenario.path), scenario, headers, seconds, cpu, env)


def observe_handshakes(running: Running, scenario: Scenario, cpu: int, work: Path) -> Handshakes:
    """Runs the scenario's load for a second through a relay, and checks its handshakes.

    Raises:
        BenchError: the generator and the server do something else than the scenario says.
    """
    headers = headers_for(running, scenario)

    def command(port: int) -> list[str]:
        return generator_argv(running.url(scenario.path, port), scenario, headers, OBSERVED_S)

    seen = handshakes.observe(
        running.port,
        command,
        env=running.client_environment(),
        cpu=cpu,
        log=work / "observed.log",
        within_s=OBSERVED_S + GRACE_S,
    )
    running.check_alive()
    return handshakes.check(seen, scenario)


@dataclass(frozen=True, kw_only=True)
class Cores:
    """The cores of the server and the generator."""

    server: int
    generator: int


def load_round(
    running: Running, scenario: Scenario, sizes: Sizes, number: int, seconds: int, cores: Cores
) -> Round:
    """Loads the server for a while and returns what a request cost it."""
    headers = headers_for(running, scenario)
    busy = process.busy_ns(cores.server), process.busy_ns(cores.generator)
    used_ns = process.cpu_ns(running.process.pid)
    counts, _ = load(running, scenario, headers, seconds, cores.generator)
    process.settle(running.process.pid)
    used_ns = process.cpu_ns(running.process.pid) - used_ns
    busy = process.busy_ns(cores.server) - busy[0], process.busy_ns(cores.generator) - busy[1]
    running.check_alive()
    duration_s = counts["duration_us"] / 1e6
    # Half a big answer is half a request; wrk counts only whole ones. h2load counts no head.
    answer_bytes = sizes.body_bytes + (0 if scenario.streams else sizes.head_bytes)
    requests = counts["bytes"] / answer_bytes if scenario.bulk else float(counts["requests"])
    kinds = ("connect_errors", "read_errors", "write_errors", "timeouts", "status_errors")
    expected = {"status_errors"} if scenario.status >= 400 else set()
    return Round(
        server=running.product.name,
        round=number,
        requests=requests,
        bytes=counts["bytes"],
        duration_s=duration_s,
        cpu_ns=used_ns,
        cpu_us_per_request=used_ns / requests / 1e3,
        requests_per_s=requests / duration_s,
        p50_us=counts["p50_us"],
        p99_us=counts["p99_us"],
        errors={k: counts[k] for k in kinds if counts.get(k) and k not in expected},
        foreign_share=max(0.0, (busy[0] - used_ns) / 1e9 / duration_s),
        generator_share=busy[1] / 1e9 / duration_s,
    )


def idle_memory(running: Running, connections: int, *, http2: bool = False) -> Idle:
    """Opens connections, one request on each, and returns what holding them costs."""
    pid = running.process.pid
    before_kib = _settled_memory_kib(pid)
    held: Sequence[Closable]
    if http2:
        held = h2client.hold_connections(running.port, SMALL_FILE, connections)
    else:
        held = http1.hold_connections(running.port, SMALL_FILE, connections, tls=running.is_tls)
    try:
        after_kib = _settled_memory_kib(pid)
        running.check_alive()
    finally:
        for connection in held:
            connection.close()
    return Idle(
        server=running.product.name,
        connections=connections,
        before_kib=before_kib,
        after_kib=after_kib,
        kib_per_connection=(after_kib - before_kib) / connections,
    )


def fill_cache(running: Running, scenario: Scenario, sizes: Sizes, *, weighed: bool) -> Idle | None:
    """Fills the server's cache as the scenario says. With `weighed`, returns what the entries use.

    Raises:
        BenchError: an answer is not that of a file.
    """
    if scenario.many is None:
        return None
    pid = running.process.pid
    before_kib = _settled_memory_kib(pid) if weighed else 0.0
    paths = many.filled(scenario.many)
    entries = many.fill(running.port, paths, sizes.head_bytes + sizes.body_bytes)
    if not weighed:
        return None
    after_kib = _settled_memory_kib(pid)
    return Idle(
        server=running.product.name,
        connections=entries,
        before_kib=before_kib,
        after_kib=after_kib,
        kib_per_connection=(after_kib - before_kib) / entries,
    )


def _settled_memory_kib(pid: int) -> float:
    """The memory of the tree once two readings agree, or the last reading."""
    last = process.memory_kib(pid)
    for _ in range(SETTLE_READINGS):
        time.sleep(SETTLE_INTERVAL_S)
        previous, last = last, process.memory_kib(pid)
        if previous == last:
            break
    return last


def count_syscalls(
    running: Running, scenario: Scenario, seconds: int, cores: Cores, work: Path
) -> Syscalls:
    """Counts with strace, attached only while the load runs.

    The load's connections are set up and closed within the count; over thousands of requests on
    64 connections that adds about 0.01. strace slows the server down, so more connections wait in
    each epoll_wait than without it.
    """
    headers = headers_for(running, scenario)
    output = work / "strace.txt"
    pids = [f"-p{pid}" for pid in process.tree(running.process.pid)]
    strace = process.start(
        ["strace", "-f", "-c", "-o", str(output), *pids],
        cpu=cores.generator,
        log=work / "strace.log",
    )

    def is_attached() -> bool:
        if strace.poll() is not None:
            raise BenchError(f"strace: {(work / 'strace.log').read_text().strip()}")
        return all(process.is_traced(tid) for tid in process.threads(running.process.pid))

    try:
        process.wait_until(is_attached, "strace to attach")
        counts, _ = load(running, scenario, headers, seconds, cores.generator)
        strace.send_signal(signal.SIGINT)
        strace.wait(10)
    finally:
        process.stop(strace)
    by_name = {}
    for line in output.read_text().splitlines():
        columns = line.split()
        if len(columns) >= 5 and columns[0][0].isdigit() and columns[-1] != "total":
            by_name[columns[-1]] = int(columns[3]) / counts["requests"]
    return Syscalls(
        server=running.product.name,
        scenario=scenario.name,
        requests=counts["requests"],
        per_request=sum(by_name.values()),
        by_name=dict(sorted(by_name.items(), key=lambda item: -item[1])),
    )


def as_json(value: "DataclassInstance") -> dict[str, object]:
    """A result for the JSON file, rounded to its precision."""
    return {k: round(v, 4) if isinstance(v, float) else v for k, v in asdict(value).items()}
