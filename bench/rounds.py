# SPDX-License-Identifier: MIT
"""The order of the rounds.

Rounds are interleaved (A B C, C B A, A B C, ...), and every measurement starts its server again. So
neither a change of the machine's speed nor a lucky memory layout favours one server.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench import many, measure, report, servers
from bench.certificate import Identity
from bench.measure import Cores, Sizes
from bench.process import BenchError
from bench.report import OVER_HTTP1, Results
from bench.scenarios import IDLE, SCENARIOS, SYSCALLS, Scenario
from bench.servers import FLOORS, WEIR, Product, Running, Setup

SYSCALL_SCENARIOS = ("keepalive", "close")
CHECK_S = 0.3  # for a start, the comparison of the bytes and a stop
IDLE_S = 4.0
IDLE_TLS_S = 20.0
FILL_S = 25.0  # for a cache of 1,000,000 entries
STRACE_S = 1.0  # to attach and detach


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How much is measured, and where."""

    rounds: int
    seconds: int
    idle_connections: int
    listener_congestion: str | None
    cores: Cores
    root: Path
    work: Path
    identity: Identity | None = None  # None: plain HTTP
    idle_scenario: Scenario = SCENARIOS[0]  # names the protocol of idle connections


@dataclass(kw_only=True)
class Progress:
    """One line per step on standard error, with the time that is left."""

    expected_s: float
    done_s: float = 0.0  # of what was expected
    started: float = field(default_factory=time.monotonic)

    def tell(self, text: str, step_s: float) -> None:
        """Prints the result of a step. `step_s` is its expected duration."""
        self.done_s += step_s
        left_s = self.expected_s - self.done_s
        if self.done_s > self.expected_s / 10:  # before that, the estimate is better
            left_s *= (time.monotonic() - self.started) / self.done_s
        clock = f"{int(left_s) // 60}:{int(left_s) % 60:02d} left"
        print(f"[{clock}] {text}", file=sys.stderr, flush=True)


@contextmanager
def running(product: Product, setup: Setup) -> Iterator[Running]:
    """A server for the time of the block."""
    server = servers.start(product, setup)
    try:
        yield server
    finally:
        server.stop()


def setup_for(product: Product, scenario: Scenario, settings: Settings, results: Results) -> Setup:
    """How to start the server for the scenario: the floor imitates weir, or else the next one."""
    answers = results.answers.get(scenario.name, {})
    model = next((answers[s] for s in results.servers if s not in FLOORS and s in answers), None)
    file = settings.root / scenario.path[1:]
    return Setup(
        root=settings.root,
        work=settings.work / product.name,
        cpu=settings.cores.server,
        scenario=scenario,
        congestion=settings.listener_congestion if scenario.bulk else None,
        head_bytes=model.head_bytes if model else Setup.head_bytes,
        body_bytes=model.body_bytes if model else Setup.body_bytes,
        file=file if file.exists() else None,
        identity=settings.identity,
    )


def measure_load(
    found: list[Product],
    scenario: Scenario,
    settings: Settings,
    results: Results,
    progress: Progress,
) -> None:
    """All rounds of one scenario. A server that fails is left out of the rest of them."""
    answers = results.answers.setdefault(scenario.name, {})
    rounds = results.rounds.setdefault(scenario.name, [])
    failed: set[str] = set()

    def attempt(product: Product, step: Callable[[Running], str], what: str, step_s: float) -> None:
        if product.name in failed:
            progress.tell(f"{what} {product.name}: left out", step_s)
            return
        try:
            with running(product, setup_for(product, scenario, settings, results)) as server:
                progress.tell(f"{what} {product.name}: {step(server)}", step_s)
        except BenchError as error:
            failed.add(product.name)
            results.failures.append(f"{scenario.name}, {product.name}: {error}")
            progress.tell(f"{what} {product.name}: FAILED: {error}", step_s)

    def verify(server: Running) -> str:
        sizes = measure.verify(server, scenario, settings.root)
        answers[server.product.name] = sizes
        if server.is_tls:
            seen = measure.observe_handshakes(
                server, scenario, settings.cores.generator, settings.work
            )
            results.handshakes.setdefault(scenario.name, {})[server.product.name] = seen
        return f"answers {sizes.head_bytes} + {sizes.body_bytes} bytes"

    check_s = CHECK_S + (measure.OBSERVED_S if settings.identity else 0)
    # The floors are last: they imitate the answers of the others.
    for product in sorted(found, key=lambda p: p.name in FLOORS):
        attempt(product, verify, f"{scenario.name} check", check_s)
    for number in range(settings.rounds):

        def load(server: Running, number: int = number) -> str:
            sizes = measure.verify(server, scenario, settings.root)
            warm_up(server, scenario, sizes, settings, results)
            result = measure.load_round(
                server, many.measured(scenario), sizes, number, settings.seconds, settings.cores
            )
            rounds.append(result)
            return f"{report.number(result.cpu_us_per_request)} µs"

        for product in found if number % 2 == 0 else reversed(found):
            what = f"{scenario.name} {number + 1}/{settings.rounds}"
            attempt(product, load, what, settings.seconds + CHECK_S + warm_up_s(scenario))


def warm_up_s(scenario: Scenario) -> float:
    """The expected duration of a warm-up. The comparison of the bytes warms up the other loads."""
    if scenario.many is None:
        return 0.0
    return FILL_S * scenario.many.fills_all if scenario.many.fills else many.WARM_S


def warm_up(
    server: Running, scenario: Scenario, sizes: Sizes, settings: Settings, results: Results
) -> None:
    """Brings a server into the state that it has after a while of requests for many files."""
    key = scenario.name, server.product.name
    if scenario.many and not scenario.many.fills:
        measure.load(server, scenario, [], many.WARM_S, settings.cores.generator)
    elif weighed := measure.fill_cache(server, scenario, sizes, weighed=key not in results.filled):
        results.filled[key] = weighed


def measure_idle(
    found: list[Product], settings: Settings, results: Results, progress: Progress
) -> None:
    """Memory per idle connection, once per server: it does not vary."""
    scenario = settings.idle_scenario
    wanted = [(product, scenario, product.name) for product in found]
    if scenario.streams:
        wanted += [(p, SCENARIOS[0], OVER_HTTP1) for p in found if p.name == WEIR]
    for product, load, name in wanted:
        try:
            with running(product, setup_for(product, load, settings, results)) as server:
                measure.verify(server, load, settings.root)
                idle = measure.idle_memory(
                    server, settings.idle_connections, http2=load.streams > 0
                )
            results.idle[name] = idle
            said = f"{report.number(idle.kib_per_connection)} KiB"
        except BenchError as error:
            results.failures.append(f"{IDLE}, {name}: {error}")
            said = f"FAILED: {error}"
        progress.tell(f"{IDLE} {name}: {said}", IDLE_TLS_S if settings.identity else IDLE_S)


def measure_syscalls(
    found: list[Product], settings: Settings, results: Results, progress: Progress
) -> None:
    """System calls per request, kept alive and closing, once per server: they do not vary."""
    for scenario in (s for s in SCENARIOS if s.name in SYSCALL_SCENARIOS):
        counts = results.syscalls.setdefault(scenario.name, {})
        for product in found:
            what = f"{SYSCALLS} {scenario.name} {product.name}"
            try:
                with running(product, setup_for(product, scenario, settings, results)) as server:
                    measure.verify(server, scenario, settings.root)
                    counted = measure.count_syscalls(
                        server, scenario, settings.seconds, settings.cores, settings.work
                    )
                counts[product.name] = counted
                said = f"{counted.per_request:.2f}"
            except BenchError as error:
                results.failures.append(f"{what}: {error}")
                said = f"FAILED: {error}"
            progress.tell(f"{what}: {said}", settings.seconds + STRACE_S)
