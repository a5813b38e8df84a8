# SPDX-License-Identifier: MIT
"""The load generators under comparison: how each produces the same load, and what that costs.

The load is a closed loop without think time, on one thread pinned to one core. The figure is the
generator's own CPU time, user and system, from its start to its end, divided by the answers that
it reports. The figure includes starting, connecting and reporting.
"""

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench import measure, process, servers
from bench.measure import Cores
from bench.process import BenchError, Done
from bench.scenarios import SCENARIOS, SMALL_FILE
from bench.servers import Running

WEIR_LOAD = "weir load"
WEIR_SPIN = "weir load --spin"
FLOOR = "floor-load"  # the least work that still makes the load
FLOOR_SPIN = "floor-load --spin"
WRK = "wrk"
H2LOAD = "h2load"
KEEP_ALIVE = SCENARIOS[0]
USERS = KEEP_ALIVE.connections
GRACE_S = 30  # for ending and reporting
AB_ANSWERS_PER_S = 200_000  # ab allocates memory for this count and never reaches it
INVALID = 4  # exit status of `weir load`

CROWD_USERS = 10_000
CROWD_THINK = "exp:1s"
CROWD_WARM_UP_S = 2
CROWD_READ_BEFORE_END_S = 0.5


@dataclass(frozen=True, kw_only=True)
class Said:
    """What a generator reports of a load."""

    answers: int
    answers_per_s: float
    mean_us: float | None  # of the response time; None: not reported
    errors: int
    cpu_ns: int
    doubts: tuple[str, ...] = ()  # why the generator calls its result invalid


@dataclass(frozen=True, kw_only=True)
class Generator:
    """One load generator."""

    name: str
    version: str
    load: Callable[[int, int, int], Said]  # of a port, for seconds, on a core


@dataclass(frozen=True, kw_only=True)
class Take:
    """One round of one generator against one server."""

    generator: str
    server: str
    round: int
    answers: int
    answers_per_s: float
    cpu_ns: int
    cpu_us_per_answer: float
    mean_us: float | None
    errors: int
    doubts: tuple[str, ...]
    server_share: float  # of the server's core, used by the server
    generator_share: float  # of the generator's core, used by the generator
    foreign_share: float  # of the core with more foreign use


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """One run of `weir load` with users that think."""

    server: str
    users: int
    answers_per_s: float
    mean_us: float
    lag_p50_us: float
    lag_p99_us: float
    lag_max_us: float
    cpu_us_per_answer: float
    core_share: float
    memory_kib: float  # proportional set size shortly before the end
    errors: int
    doubts: tuple[str, ...]


def _url(port: int) -> str:
    return f"http://127.0.0.1:{port}{SMALL_FILE}"


def _found(pattern: str, name: str, done: Done) -> list[float]:
    """The numbers that the pattern finds in what a generator printed.

    Raises:
        BenchError: it printed something else.
    """
    found = re.search(pattern, done.output)
    if found is None:
        raise BenchError(f"{name} ended with {done.status}: {done.output[-300:]} {done.errors}")
    return [float(number) for number in found.groups()]


def _wrk(port: int, seconds: int, cpu: int) -> Said:
    counts, cpu_ns = measure.run_generator(_url(port), KEEP_ALIVE, [], seconds, cpu)
    kinds = ("connect_errors", "read_errors", "write_errors", "timeouts", "status_errors")
    return Said(
        answers=counts["requests"],
        answers_per_s=counts["requests"] / (counts["duration_us"] / 1e6),
        mean_us=float(counts["mean_us"]),
        errors=sum(counts[kind] for kind in kinds),
        cpu_ns=cpu_ns,
    )


def _h2load(port: int, seconds: int, cpu: int) -> Said:
    argv = ["h2load", "--h1", "-t1", f"-c{USERS}", f"-D{seconds}", _url(port)]
    done = process.run(argv, cpu=cpu, within_s=seconds + GRACE_S)
    (rate,) = _found(r"finished in .*?, ([\d.]+) req/s", "h2load", done)
    answers, failed = _found(r"(\d+) succeeded, (\d+) failed", "h2load", done)
    units = {"us": 1.0, "ms": 1e3, "s": 1e6}
    mean = re.search(r"time for request:\s+\S+\s+\S+\s+([\d.]+)(us|ms|s)\b", done.output)
    return Said(
        answers=int(answers),
        answers_per_s=rate,
        mean_us=float(mean[1]) * units[mean[2]] if mean else None,
        errors=int(failed),
        cpu_ns=done.cpu_ns,
    )


def _ab(port: int, seconds: int, cpu: int) -> Said:
    argv = ["ab", "-q", "-k", f"-c{USERS}", f"-t{seconds}", f"-n{seconds * AB_ANSWERS_PER_S}"]
    done = process.run([*argv, _url(port)], cpu=cpu, within_s=seconds + GRACE_S)
    (answers,) = _found(r"Complete requests:\s+(\d+)", "ab", done)
    (failed,) = _found(r"Failed requests:\s+(\d+)", "ab", done)
    (rate,) = _found(r"Requests per second:\s+([\d.]+)", "ab", done)
    return Said(
        answers=int(answers),
        answers_per_s=rate,
        mean_us=None,  # in whole milliseconds
        errors=int(failed),
        cpu_ns=done.cpu_ns,
    )


def _step(output: str, said_besides: str = "") -> dict[str, Any]:
    """The one step of a result of `weir load --json`.

    Raises:
        BenchError: there is none.
    """
    line = next((line for line in output.splitlines() if line.startswith("{")), None)
    if line is None:
        raise BenchError(f"weir load: {output[-300:]} {said_besides}")
    steps: list[dict[str, Any]] = json.loads(line)["steps"]
    if not steps or not steps[0]["answers"]:
        raise BenchError("weir load: no request was answered")
    return steps[0]


def _doubts(step: dict[str, Any]) -> tuple[str, ...]:
    return tuple(doubt["name"] for doubt in step["doubts"] if doubt["makes_invalid"])


def _percentile_us(durations: dict[str, Any], name: str) -> float:
    """The percentile, or the maximum where there are too few to tell."""
    value: float = durations["max_ns"] if durations[name] is None else durations[name]
    return value / 1e3


def _errors(step: dict[str, Any]) -> int:
    counts: dict[str, int] = {**step["errors"], **step["classes"]}
    return sum(counts[kind] for kind in [*step["errors"], "4xx", "5xx"])


def _weir_load(weir: Path, options: tuple[str, ...], port: int, seconds: int, cpu: int) -> Said:
    argv = [str(weir), "load", _url(port), "--users", str(USERS), "--json", *options]
    argv += ["--duration", f"{seconds}s", "--warmup", "0s"]
    done = process.run(argv, cpu=cpu, within_s=seconds + GRACE_S)
    if done.status not in (0, INVALID):
        raise BenchError(f"weir load ended with {done.status}: {done.errors}")
    step = _step(done.output, done.errors)
    return Said(
        answers=step["answers"],
        answers_per_s=step["answers_per_second"],
        mean_us=step["response"]["mean_ns"] / 1e3,
        errors=_errors(step),
        cpu_ns=done.cpu_ns,
        doubts=_doubts(step),
    )


def _floor(binary: Path, options: tuple[str, ...], port: int, seconds: int, cpu: int) -> Said:
    argv = [str(binary), f"--port={port}", f"--users={USERS}", f"--seconds={seconds}"]
    argv += [f"--path={SMALL_FILE}", *options]
    done = process.run(argv, cpu=cpu, within_s=seconds + GRACE_S)
    answers, took_ns = _found(r"(\d+) answers in (\d+) ns", FLOOR, done)
    return Said(
        answers=int(answers),
        answers_per_s=answers / (took_ns / 1e9),
        mean_us=None,  # not measured
        errors=0,  # the first one ends it
        cpu_ns=done.cpu_ns,
    )


PEERS = ((WRK, "-v", _wrk), (H2LOAD, "--version", _h2load), ("ab", "-V", _ab))


def all_of(weir: Path) -> tuple[list[Generator], list[str]]:
    """`weir load` and the floor, sleeping and polling, and those of the peers that are installed.

    Returns:
        The generators, and the names of the peers that are missing.
    """
    version = servers.version(str(weir), "--version")
    # This process is pinned to one core, and the server to another: hence "anyway".
    ways = ((WEIR_LOAD, ()), (WEIR_SPIN, ("--spin-anyway",)))
    found = [
        Generator(name=name, version=version, load=partial(_weir_load, weir, options))
        for name, options in ways
    ]
    missing = []
    for name, flag, load in PEERS:
        if servers.installed(name):
            found.append(Generator(name=name, version=servers.version(name, flag), load=load))
        else:
            missing.append(name)
    binary = weir.parent / "bench" / FLOOR
    found += [
        Generator(name=name, version="", load=partial(_floor, binary, options))
        for name, options in ((FLOOR, ()), (FLOOR_SPIN, ("--spin",)))
    ]
    return found, missing


def take(running: Running, generator: Generator, number: int, seconds: int, cores: Cores) -> Take:
    """Lets the generator load the server for a while."""
    before = process.busy_ns(cores.server), process.busy_ns(cores.generator)
    server_ns = process.cpu_ns(running.process.pid)
    said = generator.load(running.port, seconds, cores.generator)
    server_ns = process.cpu_ns(running.process.pid) - server_ns
    busy = process.busy_ns(cores.server) - before[0], process.busy_ns(cores.generator) - before[1]
    running.check_alive()
    if said.answers == 0:
        raise BenchError(f"{generator.name}: no request was answered")
    duration_ns = said.answers / said.answers_per_s * 1e9
    foreign_ns = max(busy[0] - server_ns, busy[1] - said.cpu_ns, 0)
    return Take(
        generator=generator.name,
        server=running.product.name,
        round=number,
        answers=said.answers,
        answers_per_s=said.answers_per_s,
        cpu_ns=said.cpu_ns,
        cpu_us_per_answer=said.cpu_ns / said.answers / 1e3,
        mean_us=said.mean_us,
        errors=said.errors,
        doubts=said.doubts,
        server_share=server_ns / duration_ns,
        generator_share=said.cpu_ns / duration_ns,
        foreign_share=foreign_ns / duration_ns,
    )


def crowd(running: Running, weir: Path, users: int, seconds: int, cpu: int, work: Path) -> Crowd:
    """Runs `weir load` with users that think, and reads its memory shortly before the end.

    Raises:
        BenchError: it failed, or ended before its time.
    """
    log = work / f"crowd-{users}.log"
    log.unlink(missing_ok=True)
    argv = [str(weir), "load", _url(running.port), "--users", str(users), "--think", CROWD_THINK]
    argv += ["--duration", f"{seconds}s", "--warmup", f"{CROWD_WARM_UP_S}s", "--json"]
    load = process.start(argv, cpu=cpu, nofile=servers.DESCRIPTORS, log=log)
    try:
        time.sleep(CROWD_WARM_UP_S + seconds - CROWD_READ_BEFORE_END_S)
        memory_kib = process.memory_kib(load.pid)
        process.wait_until(lambda: load.poll() is not None, "weir load to end", GRACE_S)
    finally:
        process.stop(load)
    step = _step(log.read_text(errors="replace"))
    if not memory_kib:
        raise BenchError("weir load ended before its time")
    running.check_alive()
    lag, generator = step["lag"], step["generator"]
    return Crowd(
        server=running.product.name,
        users=users,
        answers_per_s=step["answers_per_second"],
        mean_us=step["response"]["mean_ns"] / 1e3,
        lag_p50_us=_percentile_us(lag, "p50_ns"),
        lag_p99_us=_percentile_us(lag, "p99_ns"),
        lag_max_us=lag["max_ns"] / 1e3,
        cpu_us_per_answer=generator["cpu_ns_per_answer"] / 1e3,
        core_share=generator["cores_used"],
        memory_kib=memory_kib,
        errors=_errors(step),
        doubts=_doubts(step),
    )
