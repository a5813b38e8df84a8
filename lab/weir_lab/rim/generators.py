# SPDX-License-Identifier: MIT
"""Load generators: one form of load and one form of result for all.

The source documents used `ab`. It sends HTTP/1.0 requests over a fixed number of connections, in
one thread, without think time. `weir load` emulates users who think.
"""

import json
import os
import re
import resource
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from bench import process
from weir_lab.rim import machine
from weir_lab.rim.errors import LabError

SLACK_S = 60.0
SECOND_MIN_S = 0.05  # a shorter rest of a second has no meaningful rate
AB_ENDLESS = 100_000_000  # requests, for a run that ends by time
RESUME, FULL = "resume", "full"  # handshakes of TLS, as `weir load --tls` names them
PERCENTILES = (50, 75, 90, 95, 99, 99.9)


@dataclass(frozen=True, kw_only=True)
class Load:
    """The load of a run."""

    url: str
    users: int
    keep_alive: bool = True
    streams: int = 0  # of each connection, over HTTP/2; 0: HTTP/1.1
    requests: int | None = None  # None: the run ends after `seconds`
    seconds: float | None = None
    think_s: float = 0.0
    think: str = "constant"
    warmup_s: float = 0.0
    tls: str = ""  # handshakes of later connections, over https: RESUME or FULL
    cacert: str = ""  # file of the authorities to trust; empty: those of the system
    insecure: bool = False  # any certificate is accepted
    client_settings: Path | None = None  # of OpenSSL, which limit the TLS of the generator


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of a run. Times are in seconds."""

    command: list[str]
    requests: int  # answered
    failed: int
    kept_alive: int
    seconds: float
    rate: float
    mean_s: float
    percentiles_s: dict[str, float]
    total_ms: dict[str, float] = field(default_factory=dict)  # ab's: min mean sd median max
    generator_cpu_s: float = 0.0
    bytes: int = 0
    server_demand_s: float = 0.0  # CPU per answer; 0 where the generator does not measure it
    histogram: str = ""  # HdrHistogram V2, nanoseconds
    warmup_s: float = 0.0  # before the measurement
    series: list[dict[str, float]] = field(default_factory=list)  # second by second
    judged: bool = False  # whether the generator judges its own result
    doubts: list[str] = field(default_factory=list)  # the generator's, in sentences
    doubt_names: list[str] = field(default_factory=list)  # of the same doubts, for programs
    late_s: float = 0.0  # mean lateness of the generator: users thought for this much longer

    def record(self) -> dict[str, Any]:
        """The result as JSON types."""
        return asdict(self)


def _run(
    argv: list[str],
    core: int | None,
    seconds: float,
    expected: tuple[int, ...] = (0,),
    settings: Path | None = None,
) -> tuple[str, float]:
    """Runs a generator; returns its output and its CPU time.

    Raises:
        LabError: it failed, with its last words, or did not end.
    """
    limits = {"OPENSSL_CONF": str(settings)} if settings else {}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
            env={**os.environ, **limits},
            preexec_fn=process.prepared(core, None),
        )
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{argv[0]} did not end within {seconds:.0f} s") from error
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in expected or not done.stdout:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        last = said[-1] if said else "nothing"
        raise LabError(f"{Path(argv[0]).name} ended with {done.returncode} and said: {last}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.stdout, used


def ab(load: Load, core: int | None) -> Outcome:
    """Runs ApacheBench.

    Raises:
        LabError: it is missing or failed, or it cannot do what is asked.
    """
    if load.think_s > 0:
        raise LabError("ab has no think time; use weir load")
    if load.streams > 0:
        raise LabError("ab has no HTTP/2; use weir load")
    if load.tls == RESUME and not load.keep_alive:
        raise LabError("ab resumes no sessions of TLS; use --tls full, or weir load")
    amount = ["-n", str(load.requests)]
    if load.requests is None:
        # -t implies a number of requests, so -n must come after it.
        amount = ["-t", str(max(1, round(load.seconds or 1))), "-n", str(AB_ENDLESS)]
    with tempfile.NamedTemporaryFile(prefix="ab-", suffix=".csv") as table:
        argv = [machine.need("ab"), "-q", *amount, "-c", str(load.users), "-e", table.name]
        argv += ["-k"] if load.keep_alive else []
        argv.append(load.url)
        limit_s = (load.seconds or 0) + SLACK_S + (load.requests or 0) / 200
        text, used_s = _run(argv, core, limit_s, settings=load.client_settings)
        spread = Path(table.name).read_text()
    return parse_ab(text, spread, argv, used_s)


def parse_ab(text: str, spread: str, argv: list[str], used_s: float) -> Outcome:
    """Reads the output of ab, and the table of percentiles that ab wrote.

    Raises:
        LabError: it is not what ApacheBench prints.
    """

    def number(pattern: str, default: float | None = None) -> float:
        if found := re.search(pattern, text, re.MULTILINE):
            return float(found[1])
        if default is None:
            raise LabError(f"ab printed no line like {pattern!r}")
        return default

    total = re.search(r"^Total:\s+(\d+)\s+(\d+)\s+([\d.]+)\s+(\d+)\s+(\d+)", text, re.MULTILINE)
    names = ("min", "mean", "sd", "median", "max")
    by_percent = {}
    for line in spread.splitlines()[1:]:
        percent, _, milliseconds = line.partition(",")
        by_percent[float(percent)] = float(milliseconds) / 1e3
    return Outcome(
        command=argv,
        requests=int(number(r"^Complete requests:\s+(\d+)")),
        failed=int(number(r"^Failed requests:\s+(\d+)") + number(r"^Non-2xx.*:\s+(\d+)", 0)),
        kept_alive=int(number(r"^Keep-Alive requests:\s+(\d+)", 0)),
        seconds=number(r"^Time taken for tests:\s+([\d.]+)"),
        rate=number(r"^Requests per second:\s+([\d.]+)"),
        mean_s=number(r"^Time per request:\s+([\d.]+) \[ms\] \(mean\)$") / 1e3,
        percentiles_s={f"{p:g}": by_percent[p] for p in PERCENTILES if p in by_percent},
        total_ms=dict(zip(names, map(float, total.groups()), strict=True)) if total else {},
        generator_cpu_s=used_s,
        bytes=int(number(r"^Total transferred:\s+(\d+)", 0)),
    )


def weir_load(weir: Path, load: Load, core: int | None, server_pid: int | None) -> Outcome:
    """Runs weir's own generator.

    Raises:
        LabError: it failed.
    """
    argv = [str(weir), "load", load.url, "--users", str(load.users), "--json"]
    if load.think_s > 0:
        kind = {"constant": "", "exponential": "exp:"}[load.think]
        argv += ["--think", f"{kind}{load.think_s * 1e6:.0f}us"]
    if load.requests is None:
        argv += ["--duration", f"{(load.seconds or 1) * 1e3:.0f}ms"]
    else:
        argv += ["--requests", str(load.requests)]
    argv += ["--warmup", f"{load.warmup_s * 1e3:.0f}ms"] if load.warmup_s else []
    argv += [] if load.keep_alive else ["--no-keepalive"]
    argv += ["--http2", "--pipeline", str(load.streams)] if load.streams else []
    argv += ["--server-pid", str(server_pid)] if server_pid else []
    argv += ["--tls", load.tls] if load.tls else []
    argv += ["--cacert", load.cacert] if load.cacert else []
    argv += ["--insecure"] if load.insecure else []
    limit_s = (load.seconds or 0) + load.warmup_s + SLACK_S
    # 3: an objective was missed. 4: the result is in doubt. In both cases it is printed.
    text, used_s = _run(argv, core, limit_s, expected=(0, 3, 4), settings=load.client_settings)
    return replace(parse_weir_load(text, argv, used_s), warmup_s=load.warmup_s)


def second_by_second(step: Mapping[str, Any]) -> list[dict[str, float]]:
    """Each second of a step: its length (the last is shorter), rate, errors, percentiles."""
    left_s = step["measured_ns"] / 1e9
    found = []
    for second in step.get("seconds", []):
        long_s = min(1.0, left_s)
        if long_s < SECOND_MIN_S:
            break
        left_s -= long_s
        row = {"seconds": long_s, "rate": second["answers"] / long_s, "errors": second["errors"]}
        for name in ("p50", "p99", "max"):
            if second.get(f"{name}_ns") is not None:
                row[f"{name}_s"] = second[f"{name}_ns"] / 1e9
        found.append(row)
    return found


def parse_weir_load(text: str, argv: list[str], used_s: float) -> Outcome:
    """The only step of a result, in the format of docs/load-json.md.

    Raises:
        LabError: it is something else.
    """
    try:
        step = json.loads(text)["steps"][0]
        response = step["response"]
        named = {f"{p:g}": response.get(f"p{p:g}_ns".replace(".", "_")) for p in PERCENTILES}
        cpu_ns = step["generator"]["cpu_ns_per_answer"] * step["answers"]
        ok = step["classes"]["2xx"]
        return Outcome(
            command=argv,
            requests=step["answers"],
            failed=sum(step["errors"].values()) + step["answers"] - ok,
            kept_alive=step["answers_reused"],
            seconds=step["measured_ns"] / 1e9,
            rate=step["answers_per_second"],
            # Without keep-alive a user also waits for the connection. ab counts this time, too.
            mean_s=(step["response_mean_ns"] + (step["little"]["connect_ns"] or 0)) / 1e9,
            percentiles_s={name: ns / 1e9 for name, ns in named.items() if ns},
            generator_cpu_s=cpu_ns / 1e9 if cpu_ns else used_s,
            bytes=step["received_bytes"],
            server_demand_s=((step["server"] or {}).get("demand_ns") or 0.0) / 1e9,
            histogram=response["hdr_v2_ns"],
            series=second_by_second(step),
            judged=True,
            doubts=[doubt["reason"] for doubt in step["doubts"] if doubt["makes_invalid"]],
            doubt_names=[doubt["name"] for doubt in step["doubts"] if doubt["makes_invalid"]],
            late_s=(step["little"].get("late_ns") or 0) / 1e9,
        )
    except (KeyError, IndexError, TypeError, json.JSONDecodeError) as error:
        raise LabError(f"the output of weir load cannot be read: {error!r}") from error
