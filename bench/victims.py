# SPDX-License-Identifier: MIT
"""The response times of an honest client, without an attack and beside each one.

The server has one core. The attacker and the honest client share the other one. The honest client
is `weir load` at a fixed rate, on connections that stay open and on a new one for each request. It
measures from the time at which each request was due, and has real-time priority where root runs
this. The attacker has the lowest priority. So the figures show what the server does, and as little
as possible of how the attacker's own CPU time delays the honest client.
"""

import contextlib
import json
import math
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench import process
from bench.attacks import ATTACKS, SETTLE_S, Attack, Target, attack_table, make_site
from bench.measure import Cores
from bench.process import BenchError
from bench.report import DASH, Row, number
from bench.rounds import Progress
from tests.e2e.running import WEIR, Server, start
from tests.e2e.statistics import Numbers, read

WORKERS = {"prefork": 4}  # by default; `connections` is for each worker
MODELS = ("percore", "pool", "prefork", "uring")
RATIO_AT_MOST = 2.0
WITHOUTS = 2  # measurements without an attack in each round
EARLIER_S = 0.2  # the honest clients come before the attack
STEP_S = 1.2  # of a measurement, beside its seconds
GRACE_S = 20
UNDER_WAY = 2  # requests that may be unanswered because the measurement ended
FAILED_SHARE_MAX = 0.01  # above it, p99 is the response time of a request that has failed

# The honest clients come from ten addresses, so that each is below the limits of an address.
HONEST = ",".join(f"127.0.1.{host}" for host in range(1, 11))
KEPT = ("--users", "10", "--pace", "20ms")
FRESH = ("--users", "25", "--pace", "100ms", "--no-keepalive")

MOVED = (
    *("connections_displaced", "connections_limited", "connections_refused"),
    *("requests_limited", "listings_refused", "accept_overflows", "worker_deaths"),
    *("timeouts_idle", "timeouts_head", "timeouts_body", "timeouts_send"),
    *("http2_floods", "http2_violations", "http2_resets_sent"),
)


@dataclass(frozen=True, kw_only=True)
class Honest:
    """The answers of one honest client. A percentile is infinite when too many are missing."""

    p99_us: float
    lag_p99_us: float  # how late the client itself was
    answers: int
    failed: int


@dataclass(frozen=True, kw_only=True)
class Round:
    """One measurement of one model, under an attack or without."""

    attack: str  # empty: without one
    http2: bool  # the protocol of the honest clients
    number: int
    kept: Honest
    fresh: Honest
    requests_per_s: float  # of all clients
    connections_per_s: float
    core_share: float  # of the server's core, used by the server
    counters: dict[str, int]


@contextlib.contextmanager
def _serving(
    model: str, options: tuple[str, ...], folder: Path, root: Path, cpu: int
) -> Iterator[Server]:
    """A server on its core. It lists folders, and writes its access log to a file."""
    words = [str(root), "--listen", "127.0.0.1:0", "--model", model, "--listing", "on"]
    words += ["--access-log", str(folder / "access.log"), "--h2c", "on", *options]
    server = start(words, folder / "messages", wrapper=("taskset", "-c", str(cpu)))
    try:
        yield server
    finally:
        if server.popen.poll() is None:
            server.stop()


def _be_least(cpu: int) -> Callable[[], None]:
    """What the attacker's process does before it begins."""

    def prepare() -> None:
        os.sched_setaffinity(0, {cpu})
        os.nice(19)

    return prepare


def _be_first(cpu: int) -> Callable[[], None]:
    """What the honest client's process does before it begins."""

    def prepare() -> None:
        os.sched_setaffinity(0, {cpu})
        with contextlib.suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))

    return prepare


@contextlib.contextmanager
def _attacking(attack: Attack, target: Target, cpu: int) -> Iterator[None]:
    """The attack, from its first connections on."""
    popen = subprocess.Popen(
        attack.command(target),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=_be_least(cpu),
    )
    try:
        if not attack.floods:
            assert popen.stdout
            process.wait_until_readable(popen.stdout, GRACE_S, attack.name)
        yield
        if popen.poll() is not None:
            raise BenchError(f"{attack.name}: the attacker ended with {popen.returncode}")
    finally:
        popen.kill()
        popen.communicate()


@contextlib.contextmanager
def _honest(
    target: Target, words: tuple[str, ...], warmup_s: float, seconds: int, cpu: int
) -> Iterator[subprocess.Popen[str]]:
    load = ["load", f"{target.url}/", *words, "--source", HONEST, "--json"]
    load += ["--duration", f"{seconds}s", "--warmup", f"{warmup_s:.1f}s"]
    popen = subprocess.Popen(
        [str(WEIR), *load],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_be_first(cpu),
    )
    try:
        yield popen
    finally:
        popen.kill()
        popen.communicate()


def _failures(step: dict[str, Any]) -> int:
    """Requests that ended with an error, or with another status than 2xx."""
    counts: list[int] = [*step["errors"].values()]
    counts += [step["classes"][each] for each in ("3xx", "4xx", "5xx")]
    return sum(counts)


def _heard(popen: subprocess.Popen[str], seconds: int) -> Honest:
    """The result of an honest client that runs."""
    try:
        output, errors = popen.communicate(timeout=seconds + GRACE_S)
    except subprocess.TimeoutExpired as error:
        raise BenchError(f"an honest client did not end: {error}") from error
    if not output.startswith("{"):
        raise BenchError(f"weir load: {output[-300:]} {errors[-300:]}")
    (step,) = json.loads(output)["steps"]
    answers = step["classes"]["2xx"]
    p99_ns, lag_ns = step["intended"]["p99_ns"], step["lag"]["p99_ns"]
    known = answers + _failures(step)
    failed = known - answers + max(0, step["requests"] - known - UNDER_WAY)
    missing = p99_ns is None or failed > FAILED_SHARE_MAX * step["requests"]
    return Honest(
        p99_us=math.inf if missing else p99_ns / 1e3,
        lag_p99_us=math.inf if lag_ns is None else lag_ns / 1e3,
        answers=answers,
        failed=failed,
    )


def _counters(numbers: Numbers) -> dict[str, int]:
    counters: dict[str, int] = numbers["counters"]
    return counters


@dataclass(frozen=True, kw_only=True)
class Step:
    """One measurement: of a model, with an attack or without."""

    model: str
    turn: int
    attack: Attack | None
    http2: bool


def _observe(step: Step, seconds: int, cores: Cores, work: Path) -> Round:
    """One server, both honest clients, and soon afterwards an attack or none."""
    model, attack = step.model, step.attack
    options = attack.words(WORKERS.get(model, 1)) if attack else ()
    protocol = ("--http2",) if step.http2 else ()
    warmup_s = EARLIER_S + (attack.settle_s if attack else SETTLE_S)
    cpu = cores.generator
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(_serving(model, options, work, work / "site", cores.server))
        target, pid = Target(port=server.address[1], work=work), server.popen.pid
        clients = [
            stack.enter_context(_honest(target, (*words, *protocol), warmup_s, seconds, cpu))
            for words in (KEPT, FRESH)
        ]
        started_s = time.monotonic()
        time.sleep(EARLIER_S)
        if attack:
            stack.enter_context(_attacking(attack, target, cpu))
        if time.monotonic() > started_s + warmup_s:
            raise BenchError("the attack began too late: the machine is busy")
        before, cpu_ns, began = _counters(read(pid)), process.cpu_ns(pid), time.monotonic()
        kept, fresh = [_heard(client, seconds) for client in clients]
        cpu_ns, elapsed_s = process.cpu_ns(pid) - cpu_ns, time.monotonic() - began
        after = _counters(read(pid))
    made = {name: after[name] - before[name] for name in after}
    return Round(
        attack=attack.name if attack else "",
        http2=step.http2,
        number=step.turn,
        kept=kept,
        fresh=fresh,
        requests_per_s=made["requests"] / elapsed_s,
        connections_per_s=made["connections_accepted"] / elapsed_s,
        core_share=cpu_ns / 1e9 / elapsed_s,
        counters={name: made[name] for name in MOVED if made[name] > 0},
    )


def _each_round(model: str, turn: int, attacks: tuple[Attack, ...]) -> list[Step]:
    """The steps of a round: with each protocol its attacks, and measurements without one evenly
    between them."""
    steps: list[Step] = []
    for http2 in (False, True):
        chosen = [each for each in attacks if each.http2 == http2]
        order: list[Attack | None] = [*(chosen if turn % 2 == 0 else reversed(chosen))]
        for index in range(WITHOUTS if chosen else 0):
            order.insert(index * len(chosen) // (WITHOUTS - 1) + index, None)
        steps += [Step(model=model, turn=turn, attack=each, http2=http2) for each in order]
    return steps


def chosen(names: list[str]) -> tuple[Attack, ...]:
    """The attacks with these names; `http2`: all those with HTTP/2. Without names all."""
    known = {each.name for each in ATTACKS} | {"http2"}
    if unknown := set(names) - known:
        raise BenchError(f"there is no attack {sorted(unknown)}; there are {sorted(known)}")
    return tuple(
        each
        for each in ATTACKS
        if not names or each.name in names or (each.http2 and "http2" in names)
    )


def _without(http2: bool) -> str:
    return "no attack, HTTP/2" if http2 else "no attack"


def measure(
    models: tuple[str, ...],
    rounds: int,
    seconds: int,
    cores: Cores,
    failures: list[str],
    attacks: tuple[Attack, ...] = ATTACKS,
) -> dict[str, list[Round]]:
    """All rounds of all models. A step that fails is reported and left out."""
    found: dict[str, list[Round]] = {model: [] for model in models}
    steps = [
        step
        for turn in range(rounds)
        for model in models
        for step in _each_round(model, turn, attacks)
    ]
    progress = Progress(expected_s=len(steps) * (seconds + STEP_S))
    with tempfile.TemporaryDirectory(prefix="weir-attacks-") as name:
        work = Path(name)
        work.chmod(0o755)  # root serves it as another user
        make_site(work / "site")
        for step in steps:
            name = step.attack.name if step.attack else _without(step.http2)
            label = f"{step.turn + 1}/{rounds} {step.model}, {name}"
            try:
                one = _observe(step, seconds, cores, work)
                found[step.model].append(one)
                said = f"p99 {number(one.kept.p99_us)} and {number(one.fresh.p99_us)} us"
            except (AssertionError, BenchError, OSError) as error:
                failures.append(f"{label}: {error}")
                said = f"FAILED: {error}"
            progress.tell(f"{label}: {said}", seconds + STEP_S)
    return found


# ---- the tables ----


def describe(facts: dict[str, object], cores: Cores, rounds: int, seconds: int) -> list[str]:
    """The machine and the method, as lines of text."""
    virtual = ", virtual machine" if facts["hypervisor"] else ""
    machine = f"{facts['processor']}, {facts['cores']} cores, {facts['memory']}{virtual}"
    first = os.geteuid() == 0
    priority = "at real-time priority" if first else "at the priority of other programs"
    return [
        f"{facts['kernel']}, {machine}; {facts['congestion_control']}",
        f"server on core {cores.server}, all clients on core {cores.generator}, "
        f"the honest ones {priority}",
        f"rounds: {rounds} of {seconds} s, and {WITHOUTS} without an attack in each",
        f"load average at start {facts['load_average_at_start']:.2f}; {facts['date']}",
    ]


def _ratio(found: list[Round], attack: str, p99_us: Callable[[Round], float]) -> float | None:
    """The median over the rounds of p99 with the attack, divided by p99 without in that round."""
    ratios = []
    for each in (r for r in found if r.attack == attack):
        without = [
            p99_us(r)
            for r in found
            if not r.attack and (r.number, r.http2) == (each.number, each.http2)
        ]
        if without:
            ratios.append(p99_us(each) / median(without))
    return median(ratios) if ratios else None


def _kept_us(each: Round) -> float:
    return each.kept.p99_us


def _fresh_us(each: Round) -> float:
    return each.fresh.p99_us


def _verdict(attack: Attack, ratios: list[float | None], failed: int) -> str:
    if attack.control:
        return "control"
    if None in ratios:
        return "not measured"
    met = failed == 0 and all(round(r, 2) <= RATIO_AT_MOST for r in ratios if r is not None)
    return "met" if met else "MISSED"


def _rate(found: list[Round], chosen: list[Round], rate: Callable[[Round], float]) -> str:
    """How much of the attack arrived: the rate of all clients without that of honest ones."""
    http2 = chosen[0].http2
    without = median(rate(r) for r in found if not r.attack and r.http2 == http2)
    return f"{max(0.0, median(map(rate, chosen)) - without):,.0f}"


def _cells(found: list[Round], chosen: list[Round]) -> list[str]:
    """What the server did, and the answers of the honest clients."""
    both = [honest for r in chosen for honest in (r.kept, r.fresh)]
    moved: dict[str, int] = {}
    for each in chosen:
        for name, count in each.counters.items():
            moved[name] = moved.get(name, 0) + count
    return [
        f"{sum(h.answers for h in both):,} / {sum(h.failed for h in both):,}",
        number(max(h.lag_p99_us for h in both)),
        _rate(found, chosen, lambda r: r.requests_per_s),
        _rate(found, chosen, lambda r: r.connections_per_s),
        f"{median(r.core_share for r in chosen):.0%}",
        ", ".join(f"{name} {count:,}" for name, count in sorted(moved.items())) or DASH,
    ]


def model_table(model: str, found: list[Round]) -> list[Row]:
    """One line for each attack."""
    head = [model, "kept p99 us", "ratio", "new p99 us", "ratio", "", "answered / failed"]
    head += ["lag p99 us", "attack req/s", "attack conn/s", "core", "counters"]
    rows = [head]
    lines: list[tuple[Attack | None, bool]] = []
    for protocol in (False, True):
        lines.append((None, protocol))
        lines += [(each, protocol) for each in ATTACKS if each.http2 == protocol]
    for attack, http2 in lines:
        name = attack.name if attack else ""
        same = [r for r in found if r.http2 == http2]
        chosen = [r for r in same if r.attack == name]
        if not chosen or not any(not r.attack for r in same):
            continue
        ratios = [_ratio(found, name, figure) for figure in (_kept_us, _fresh_us)]
        row = [name or _without(http2)]
        for figure, ratio in zip((_kept_us, _fresh_us), ratios, strict=True):
            shown = DASH if ratio is None or not attack else f"{ratio:.2f}"
            row += [number(median(map(figure, chosen))), shown]
        failed = sum(h.failed for r in chosen for h in (r.kept, r.fresh))
        row.append(_verdict(attack, ratios, failed) if attack else "")
        rows.append(row + _cells(found, chosen))
    return rows


def tables(found: dict[str, list[Round]]) -> list[list[Row]]:
    """Everything that is printed and recorded."""
    return [attack_table(), *(model_table(model, rounds) for model, rounds in found.items())]
