# SPDX-License-Identifier: MIT
"""The benchmark's command line and its order of work: who is measured when, in which rounds.

Rounds are interleaved (A B C, C B A, A B C, ...) and every measurement starts its server afresh,
so that neither the machine's mood nor one lucky memory layout favours anybody.
"""

import argparse
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType

from bench import machine, measure, report, scenarios, servers
from bench.measure import Cores
from bench.process import BenchError
from bench.report import Results
from bench.scenarios import IDLE, SCENARIOS, SYSCALLS, Scenario
from bench.servers import FLOOR, Product, Running, Setup

REPOSITORY = Path(__file__).resolve().parent.parent
RECORD = REPOSITORY / "docs" / "performance.md"
RECORD_BEGIN = "<!-- written by bench/run.py --record{options} -->"
RECORD_END = "<!-- end -->"
JSON_SCHEMA = 1
SPARE_DESCRIPTORS = 200
SYSCALL_SCENARIOS = ("keepalive", "close")
CHECK_S = 0.3  # what a start, the comparison of the bytes and a stop take
IDLE_S = 4.0
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


@dataclass(kw_only=True)
class Progress:
    """One line per step on standard error, with the time that is left."""

    expected_s: float
    done_s: float = 0.0  # of what was expected
    started: float = field(default_factory=time.monotonic)

    def tell(self, text: str, step_s: float) -> None:
        """Shows what a step gave; `step_s` is what it was expected to take."""
        self.done_s += step_s
        left_s = self.expected_s - self.done_s
        if self.done_s > self.expected_s / 10:  # before that, the estimate knows better
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
    model = next((answers[s] for s in results.servers if s != FLOOR and s in answers), None)
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
        return f"answers {sizes.head_bytes} + {sizes.body_bytes} bytes"

    # The floor comes last here: it is told what the others answer.
    for product in sorted(found, key=lambda p: p.name == FLOOR):
        attempt(product, verify, f"{scenario.name} check", CHECK_S)
    for number in range(settings.rounds):

        def load(server: Running, number: int = number) -> str:
            sizes = measure.verify(server, scenario, settings.root)
            result = measure.load_round(
                server, scenario, sizes, number, settings.seconds, settings.cores
            )
            rounds.append(result)
            return f"{report.number(result.cpu_us_per_request)} µs"

        for product in found if number % 2 == 0 else reversed(found):
            what = f"{scenario.name} {number + 1}/{settings.rounds}"
            attempt(product, load, what, settings.seconds + CHECK_S)


def measure_idle(
    found: list[Product], settings: Settings, results: Results, progress: Progress
) -> None:
    """Memory per idle connection, once per server: it does not vary."""
    scenario = SCENARIOS[0]
    for product in found:
        try:
            with running(product, setup_for(product, scenario, settings, results)) as server:
                measure.verify(server, scenario, settings.root)
                idle = measure.idle_memory(server, settings.idle_connections)
            results.idle[product.name] = idle
            said = f"{report.number(idle.kib_per_connection)} KiB"
        except BenchError as error:
            results.failures.append(f"{IDLE}, {product.name}: {error}")
            said = f"FAILED: {error}"
        progress.tell(f"{IDLE} {product.name}: {said}", IDLE_S)


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


def arguments(argv: list[str]) -> argparse.Namespace:
    """Parses the command line."""
    names = [s.name for s in SCENARIOS] + [IDLE, SYSCALLS]
    parser = argparse.ArgumentParser(
        prog="bench/run.py",
        description="Server CPU per request, memory per idle connection and system calls per "
        "request of weir beside a floor server, nginx, h2o and lighttpd.",
        epilog=f"Scenarios: {', '.join(names)}. bench/README.md describes the method and the JSON.",
    )
    add = parser.add_argument
    quick = f"3 rounds, without extras and {servers.TUNED}: about 2 minutes instead of 6"
    add("--quick", action="store_true", help=quick)
    add("--only", nargs="+", metavar="SCENARIO", choices=names, help="measure just these")
    add("--servers", nargs="+", metavar="NAME", default=[], help="measure just these")
    add("--rounds", type=int, help="rounds for each scenario (default 6)")
    add("--seconds", type=int, default=1, help="length of a round (default 1)")
    add("--connections", type=int, default=9000, help="idle connections (default 9000)")
    listener = "congestion control of floor's and weir's listeners in 100k and 10m only"
    add("--listener-congestion", metavar="NAME", help=listener)
    everybody = "congestion control of everybody, in a private network namespace"
    add("--system-congestion", metavar="NAME", help=everybody)
    add("--build", type=Path, default=REPOSITORY / "build", help="the build folder to measure")
    add("--versus", type=Path, metavar="PATH", help="another weir, measured as 'other'")
    add("--model", default="epoll", help="weir's concurrency model (default epoll)")
    add("--weir-options", default="", metavar="OPTIONS", help="further options for weir")
    add("--server-core", type=int, help="default: the last core")
    add("--generator-core", type=int, help="default: the first core")
    add("--json", type=Path, metavar="FILE", help="write every round there")
    add("--markdown", action="store_true", help="print tables in Markdown")
    add("--record", action="store_true", help="put the tables into docs/performance.md")
    return parser.parse_args(argv)


def choose_cores(args: argparse.Namespace) -> Cores:
    """One core for the server, another for the generator."""
    allowed = sorted(os.sched_getaffinity(0))
    cores = Cores(
        server=allowed[-1] if args.server_core is None else args.server_core,
        generator=allowed[0] if args.generator_core is None else args.generator_core,
    )
    if cores.server == cores.generator or not {cores.server, cores.generator} <= set(allowed):
        raise BenchError(f"two different cores are needed; this process may use {allowed}")
    return cores


def raise_descriptor_limit(needed: int) -> None:
    """Lets this process hold the idle connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise BenchError(f"{needed} descriptors are needed and {hard} allowed (ulimit -Hn)")
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def chosen_scenarios(args: argparse.Namespace) -> tuple[list[Scenario], bool, bool]:
    """The loads to run, and whether idle memory and system calls are wanted."""
    if args.only:
        loads = [s for s in SCENARIOS if s.name in args.only]
        return loads, IDLE in args.only, SYSCALLS in args.only
    loads = [s for s in SCENARIOS if not (args.quick and s.extra)]
    if shutil.which("strace") is None:
        print("strace is not installed: system calls are not counted", file=sys.stderr)
    return loads, True, shutil.which("strace") is not None


def measure_all(args: argparse.Namespace, found: list[Product], settings: Settings) -> Results:
    """Runs everything that was asked for."""
    loads, wants_idle, wants_syscalls = chosen_scenarios(args)
    results = Results(servers=[p.name for p in found], scenarios=loads)
    each_s = len(loads) * (settings.rounds * (settings.seconds + CHECK_S) + CHECK_S)
    each_s += wants_idle * IDLE_S
    each_s += wants_syscalls * len(SYSCALL_SCENARIOS) * (settings.seconds + STRACE_S)
    progress = Progress(expected_s=len(found) * each_s)
    for scenario in loads:
        measure_load(found, scenario, settings, results, progress)
    if wants_idle:
        raise_descriptor_limit(settings.idle_connections + SPARE_DESCRIPTORS)
        measure_idle(found, settings, results, progress)
    if wants_syscalls:
        measure_syscalls(found, settings, results, progress)
    return results


def describe(found: list[Product], settings: Settings, facts: dict[str, object]) -> list[str]:
    """What was measured where, one fact per line."""
    versions = ", ".join(f"{p.name} {p.version}" for p in found if p.name != FLOOR)
    where = f"server on core {settings.cores.server}, generator on {settings.cores.generator}"
    congestion = str(facts["congestion_control"])
    if settings.listener_congestion:
        congestion += f"; floor's and weir's listeners {settings.listener_congestion} in 100k, 10m"
    return [
        f"{facts['kernel']}, {facts['processor']}, {facts['cores']} cores, {facts['memory']}"
        + (", virtual machine" if facts["hypervisor"] else ""),
        f"{versions}; {facts['generator']}",
        f"{where}; rounds: {settings.rounds} of {settings.seconds} s",
        f"congestion control: {congestion}; files on {facts['file_system']}",
        f"load average at start {facts['load_average_at_start']:.2f}; {facts['date']}",
    ]


def to_json(
    found: list[Product], settings: Settings, facts: dict[str, object], results: Results
) -> dict[str, object]:
    """Everything, in the form that bench/README.md documents."""
    commands = {}
    for product in found:
        setup = setup_for(product, SCENARIOS[0], settings, results)
        setup.work.mkdir(parents=True, exist_ok=True)
        launch = product.launch(setup)
        commands[product.name] = {
            "version": product.version,
            "command": launch.argv,
            "config": launch.config,
        }
    return {
        "schema": JSON_SCHEMA,
        "machine": facts,
        "settings": {
            "rounds": settings.rounds,
            "seconds": settings.seconds,
            "listener_congestion": settings.listener_congestion,
            "cores": asdict(settings.cores),
        },
        "servers": commands,
        "scenarios": {
            s.name: {
                "what": s.what,
                "answers": {k: measure.as_json(v) for k, v in results.answers[s.name].items()},
                "rounds": [measure.as_json(r) for r in results.rounds[s.name]],
            }
            for s in results.scenarios
        },
        "idle": {k: measure.as_json(v) for k, v in results.idle.items()},
        "syscalls": {
            name: {k: measure.as_json(v) for k, v in counted.items()}
            for name, counted in results.syscalls.items()
        },
        "goals": [
            dict(zip(("goal", "measured", "verdict"), row, strict=True))
            for row in report.goal_table(results)[1:]
        ],
        "notes": report.notes(results),
        "failures": results.failures,
    }


def record(lines: list[str], results: Results, *, is_one_congestion: bool) -> None:
    """Replaces a measured part of docs/performance.md; there are two, by congestion control.

    Raises:
        BenchError: the page has lost the marks around it.
    """
    mark = RECORD_BEGIN.format(options=" --system-congestion" if is_one_congestion else "")
    before, begin, rest = RECORD.read_text().partition(mark)
    _, end, after = rest.partition(RECORD_END)
    if not begin or not end:
        raise BenchError(f"{RECORD} has lost its marks: {mark} and {RECORD_END}")
    parts = ["\n".join(f"- {line}" for line in lines + report.notes(results))]
    parts += [report.as_markdown(table) for table in report.tables(results)]
    RECORD.write_text(f"{before}{begin}\n\n" + "\n\n".join(parts) + f"\n\n{end}{after}")


def run(args: argparse.Namespace) -> int:
    """Measures, prints, records. Returns the exit status."""
    if args.system_congestion:
        machine.enter_namespace(args.system_congestion, sys.argv)
    if shutil.which("wrk") is None:
        raise BenchError("the generator is missing: apt-get install wrk")
    choice = servers.Choice(
        build=args.build,
        other=args.versus,
        model=args.model,
        weir_options=args.weir_options,
        only=args.servers,
    )
    found, missing = servers.products(choice)
    if args.quick and not args.servers:
        found = [p for p in found if p.name != servers.TUNED]
    if missing:
        print(f"not measured because not there: {', '.join(missing)}", file=sys.stderr)
    work = Path(tempfile.mkdtemp(prefix="run-", dir=args.build.resolve() / "bench"))
    work.chmod(0o755)
    settings = Settings(
        rounds=args.rounds or (3 if args.quick else 6),
        seconds=args.seconds,
        idle_connections=args.connections,
        listener_congestion=args.listener_congestion,
        cores=choose_cores(args),
        root=work / "root",
        work=work,
    )
    try:
        scenarios.make_files(settings.root)
        facts = machine.facts(work)
        lines = describe(found, settings, facts)
        results = measure_all(args, found, settings)
        as_table = report.as_markdown if args.markdown else report.as_text
        print("\n".join(lines), *map(as_table, report.tables(results)), sep="\n\n")
        print("", *report.notes(results), sep="\n")
        if args.json:
            document = to_json(found, settings, facts, results)
            args.json.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
        if args.record:
            record(lines, results, is_one_congestion=args.system_congestion is not None)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return 1 if results.failures else 0


def main() -> int:
    """Runs the benchmark; ends its servers also when interrupted."""

    def interrupted(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, interrupted)
    try:
        return run(arguments(sys.argv[1:]))
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
