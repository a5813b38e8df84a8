# SPDX-License-Identifier: MIT
"""The command line of the benchmark: what it measures, prints and records."""

import argparse
import json
import os
import resource
import shutil
import signal
import ssl
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from types import FrameType

from bench import (
    certificate,
    cores,
    generators,
    load,
    machine,
    many,
    measure,
    report,
    rounds,
    scenarios,
    servers,
)
from bench.measure import Cores
from bench.process import BenchError
from bench.report import Results, Row
from bench.rounds import (
    CHECK_S,
    IDLE_S,
    IDLE_TLS_S,
    STRACE_S,
    SYSCALL_SCENARIOS,
    Progress,
    Settings,
)
from bench.scenarios import IDLE, SCENARIOS, SYSCALLS, Scenario
from bench.servers import FLOORS, Choice, Product
from bench.studies import FILES, HTTP2, LOAD, MODELS, PEERS, REPOSITORY, RULES, TLS, Study

RECORD_BEGIN = "<!-- written by bench/run.py {options} -->"
RECORD_END = "<!-- end -->"
SECURITY_PAGE = REPOSITORY / "docs" / "security.md"
JSON_SCHEMA = 1
SPARE_DESCRIPTORS = 200


def arguments(argv: list[str]) -> argparse.Namespace:
    """Parses the command line."""
    found = [s.name for study in (PEERS, MODELS, TLS, HTTP2, RULES, FILES) for s in study.scenarios]
    names = [*dict.fromkeys(found), IDLE, SYSCALLS]
    parser = argparse.ArgumentParser(
        prog="bench/run.py",
        description="Server CPU per request, memory per idle connection and system calls per "
        "request of weir beside a floor server, nginx, h2o and lighttpd.",
        epilog=f"Scenarios: {', '.join(names)}. bench/README.md describes the method and the JSON.",
    )
    add = parser.add_argument
    quick = f"3 rounds, without extras and {servers.TUNED}: about 2 minutes instead of 6"
    studies = parser.add_mutually_exclusive_group()
    studies.add_argument(
        "--models", action="store_true", help="compare weir's models with each other, and Apache's"
    )
    studies.add_argument(
        "--load", action="store_true", help="compare `weir load` with wrk, h2load and ab"
    )
    studies.add_argument("--tls", action="store_true", help="compare over https")
    studies.add_argument("--http2", action="store_true", help="compare over HTTP/2 and https")
    studies.add_argument(
        "--rules", action="store_true", help="measure rules, redirects and compressed text"
    )
    studies.add_argument("--files", action="store_true", help="measure sites of many files")
    studies.add_argument(
        "--cores", action="store_true", help="measure `percore` with 1, 2, 4 and more loops"
    )
    studies.add_argument(
        "--claims", action="store_true", help="measure what weir promises about time and fairness"
    )
    studies.add_argument(
        "--attacks", action="store_true", help="measure honest clients of weir beside attackers"
    )
    add("--quick", action="store_true", help=quick)
    add("--only", nargs="+", metavar="SCENARIO", choices=names, help="measure just these")
    only = "with --attacks: measure just these, or all with HTTP/2 (`http2`)"
    add("--only-attacks", nargs="+", metavar="ATTACK", default=[], help=only)
    add("--servers", nargs="+", metavar="NAME", default=[], help="measure just these")
    add("--rounds", type=int, help="rounds for each scenario (default 6)")
    rounds_of = f"length of a round (default {PEERS.seconds}; with --load {LOAD.seconds})"
    add("--seconds", type=int, help=rounds_of)
    add("--connections", type=int, help="idle connections (default 9000; with --models 1000)")
    listener = "congestion control of floor's and weir's listeners in 100k and 10m only"
    add("--listener-congestion", metavar="NAME", help=listener)
    everybody = "congestion control of every server, in a private network namespace"
    add("--system-congestion", metavar="NAME", help=everybody)
    add("--build", type=Path, default=REPOSITORY / "build", help="the build folder to measure")
    add("--versus", type=Path, metavar="PATH", help="another weir, measured as 'other'")
    add("--model", default="epoll", help="weir's concurrency model (default epoll)")
    add("--weir-options", default="", metavar="OPTIONS", help="further options for weir")
    add("--server-core", type=int, help="default: the last core")
    add("--generator-core", type=int, help="default: the first core")
    add("--json", type=Path, metavar="FILE", help="write every round there")
    add("--markdown", action="store_true", help="print tables in Markdown")
    page = "put the tables into docs/performance.md, models.md, load.md or security.md"
    add("--record", action="store_true", help=page)
    args = parser.parse_args(argv)
    if args.load and (args.only or args.system_congestion or args.listener_congestion):
        parser.error("--load goes neither with --only nor with congestion control")
    return args


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
    """Raises the limit of open files for the idle connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise BenchError(f"{needed} descriptors are needed and {hard} allowed (ulimit -Hn)")
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def chosen_scenarios(args: argparse.Namespace, study: Study) -> tuple[list[Scenario], bool, bool]:
    """The loads to run, and whether to measure idle memory and system calls."""
    if args.only:
        loads = [s for s in study.scenarios if s.name in args.only]
        return loads, IDLE in args.only, SYSCALLS in args.only
    loads = [s for s in study.scenarios if not (args.quick and s.extra)]
    if not study.syscalls:
        return loads, study.idle_connections > 0, False
    if shutil.which("strace") is None:
        print("strace is not installed: system calls are not counted", file=sys.stderr)
    return loads, True, shutil.which("strace") is not None


def measure_all(
    args: argparse.Namespace, study: Study, found: list[Product], settings: Settings
) -> Results:
    """Measures everything that the arguments name."""
    if study is LOAD:
        return measure_generators(args, found, settings)
    loads, wants_idle, wants_syscalls = chosen_scenarios(args, study)
    results = Results(servers=[p.name for p in found], scenarios=loads)
    each_s = len(loads) * (settings.rounds * (settings.seconds + CHECK_S) + CHECK_S)
    each_s += wants_idle * (IDLE_TLS_S if settings.identity else IDLE_S)
    each_s += len(loads) * measure.OBSERVED_S * bool(settings.identity)
    each_s += wants_syscalls * len(SYSCALL_SCENARIOS) * (settings.seconds + STRACE_S)
    each_s += settings.rounds * sum(map(rounds.warm_up_s, loads))
    progress = Progress(expected_s=len(found) * each_s)
    for scenario in (many.prepare(s, settings.root, settings.work) for s in loads):
        chosen = [p for p in found if not scenario.servers or p.name in scenario.servers]
        rounds.measure_load(chosen, scenario, settings, results, progress)
    if wants_idle:
        raise_descriptor_limit(settings.idle_connections + SPARE_DESCRIPTORS)
        rounds.measure_idle(found, settings, results, progress)
    if wants_syscalls:
        rounds.measure_syscalls(found, settings, results, progress)
    return results


def measure_generators(
    args: argparse.Namespace, found: list[Product], settings: Settings
) -> Results:
    """Measures every installed generator on every server."""
    weir = args.build.resolve() / "weir"
    if not weir.exists():
        raise BenchError(f"{weir} is not built; run `make build` first")
    results = Results(servers=[p.name for p in found])
    compared, _ = generators.all_of(weir)
    raise_descriptor_limit(generators.CROWD_USERS + SPARE_DESCRIPTORS)
    load.measure(found, compared, weir, settings, results)
    return results


def generator_facts(args: argparse.Namespace, study: Study) -> str:
    """The generators and their versions."""
    if study is HTTP2:
        return f"h2load {servers.version('h2load', '--version')}"
    if study is TLS:
        return f"{machine.wrk_version()}, ab {servers.version('ab', '-V')}"
    if study is not LOAD:
        return machine.wrk_version()
    compared, missing = generators.all_of(args.build.resolve() / "weir")
    if missing:
        print(f"not compared because not there: {', '.join(missing)}", file=sys.stderr)
    return "generators: " + ", ".join(f"{g.name} {g.version}".rstrip() for g in compared)


def describe(found: list[Product], settings: Settings, facts: dict[str, object]) -> list[str]:
    """The servers and the machine, one fact per line."""
    versions = ", ".join(f"{p.name} {p.version}" for p in found if p.name not in FLOORS)
    where = f"server on core {settings.cores.server}, generator on {settings.cores.generator}"
    congestion = str(facts["congestion_control"])
    if settings.listener_congestion:
        congestion += f"; floor's and weir's listeners {settings.listener_congestion} in 100k, 10m"
    agreed = [f"{certificate.AGREED}; {ssl.OPENSSL_VERSION}"] if settings.identity else []
    return [
        f"{facts['kernel']}, {facts['processor']}, {facts['cores']} cores, {facts['memory']}"
        + (", virtual machine" if facts["hypervisor"] else ""),
        f"{versions}; {facts['generator']}",
        f"{where}; rounds: {settings.rounds} of {settings.seconds} s",
        f"congestion control: {congestion}; files on {facts['file_system']}",
        *agreed,
        f"load average at start {facts['load_average_at_start']:.2f}; {facts['date']}",
    ]


def to_json(
    study: Study,
    found: list[Product],
    settings: Settings,
    facts: dict[str, object],
    results: Results,
) -> dict[str, object]:
    """All results in the form that bench/README.md documents."""
    commands = {}
    for product in found:
        setup = rounds.setup_for(product, study.scenarios[0], settings, results)
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
        "filled": [
            {"scenario": scenario, **measure.as_json(v)}
            for (scenario, _), v in results.filled.items()
        ],
        "handshakes": {
            name: {k: measure.as_json(v) for k, v in seen.items()}
            for name, seen in results.handshakes.items()
        },
        "syscalls": {
            name: {k: measure.as_json(v) for k, v in counted.items()}
            for name, counted in results.syscalls.items()
        },
        "generators": [measure.as_json(t) for t in results.takes],
        "crowds": [measure.as_json(c) for c in results.crowds],
        "goals": [
            dict(zip(("goal", "measured", "verdict"), row, strict=True))
            for row in study.goals(results)[1:]
        ],
        "notes": report.notes(results),
        "failures": results.failures,
    }


def record(page: Path, options: list[str], lines: list[str], tables: list[list[Row]]) -> None:
    """Replaces a measured part of the page. A page can have several, by their options.

    Raises:
        BenchError: the page has lost the marks around it.
    """
    mark = RECORD_BEGIN.format(options=" ".join(options))
    before, begin, rest = page.read_text().partition(mark)
    _, end, after = rest.partition(RECORD_END)
    if not begin or not end:
        raise BenchError(f"{page} has lost its marks: {mark} and {RECORD_END}")
    parts = ["\n".join(f"- {line}" for line in lines), *map(report.as_markdown, tables)]
    page.write_text(f"{before}{begin}\n\n" + "\n\n".join(parts) + f"\n\n{end}{after}")


def run_claims(args: argparse.Namespace) -> int:
    """Measures the claims and prints a row with a verdict for each."""
    os.environ["WEIR"] = str(args.build.resolve() / "weir")
    from bench import claims  # it changes the environment, which no other study may notice

    as_table = report.as_markdown if args.markdown else report.as_text
    print(as_table(claims.table()))
    return 0


def run_attacks(args: argparse.Namespace) -> int:
    """Measures honest clients beside attacks; prints and records the tables."""
    os.environ["WEIR"] = str(args.build.resolve() / "weir")
    from bench import victims  # it changes the environment, which no other study may notice

    rounds, seconds = args.rounds or (1 if args.quick else 3), args.seconds or 2
    chosen = choose_cores(args)
    facts = machine.facts(args.build, "", "")
    failures: list[str] = []
    models = tuple(args.servers) or victims.MODELS
    attacks = victims.chosen(args.only_attacks)
    found = victims.measure(models, rounds, seconds, chosen, failures, attacks)
    lines = victims.describe(facts, chosen, rounds, seconds)
    lines += [f"FAILED: {failure}" for failure in failures]
    as_table = report.as_markdown if args.markdown else report.as_text
    print("\n".join(lines), *map(as_table, victims.tables(found)), sep="\n\n")
    if args.record:
        record(SECURITY_PAGE, ["--attacks", "--record"], lines, victims.tables(found))
    return 1 if failures else 0


def run_cores(args: argparse.Namespace, choice: Choice) -> int:
    """Measures a request's cost with several numbers of loops, and prints a table."""
    cores.check(choice)
    facts = machine.facts(args.build, "", "")
    rounds_of, seconds = args.rounds or (1 if args.quick else 6), args.seconds or 1
    takes = cores.measured(choice, rounds_of, seconds)
    as_table = report.as_markdown if args.markdown else report.as_text
    where = f"{facts['kernel']}, {facts['processor']}, {facts['cores']} cores"
    print(where, as_table(cores.table(takes)), sep="\n\n")
    return 0


def chosen_study(args: argparse.Namespace) -> Study:
    """The comparison that the flags name."""
    chosen = (
        (args.models, MODELS),
        (args.load, LOAD),
        (args.tls, TLS),
        (args.http2, HTTP2),
        (args.rules, RULES),
        (args.files, FILES),
    )
    return next((study for flag, study in chosen if flag), PEERS)


def check_generators(study: Study) -> None:
    """Checks that the generators of the study are installed.

    Raises:
        BenchError: one is missing.
    """
    packages = {"wrk": "wrk", "ab": "apache2-utils", "h2load": "nghttp2-client"}
    needed = ["h2load"] if study is HTTP2 else ["wrk", *(["ab"] if study is TLS else [])]
    for name in needed:
        if shutil.which(name) is None:
            raise BenchError(f"{name} is missing: apt-get install {packages[name]}")


def run(args: argparse.Namespace) -> int:
    """Measures, prints, records. Returns the exit status."""
    if args.claims:
        return run_claims(args)
    if args.attacks:
        return run_attacks(args)
    if args.system_congestion:
        machine.enter_namespace(args.system_congestion, sys.argv)
    study = chosen_study(args)
    check_generators(study)
    choice = Choice(
        build=args.build,
        other=args.versus,
        model=args.model,
        weir_options=args.weir_options,
        only=args.servers,
    )
    if args.cores:
        return run_cores(args, choice)
    found, missing = study.products(choice)
    if args.quick and not args.servers and study is PEERS:
        found = [p for p in found if p.name != servers.TUNED]
    if missing:
        print(f"not measured because not there: {', '.join(missing)}", file=sys.stderr)
    work = Path(tempfile.mkdtemp(prefix="run-", dir=args.build.resolve() / "bench"))
    work.chmod(0o755)
    settings = Settings(
        rounds=args.rounds or (3 if args.quick else 6),
        seconds=args.seconds or (1 if args.quick else study.seconds),
        idle_connections=args.connections or study.idle_connections,
        listener_congestion=args.listener_congestion,
        cores=choose_cores(args),
        root=work / "root",
        work=work,
        identity=certificate.make(work / "tls") if study in (TLS, HTTP2) else None,
        idle_scenario=study.scenarios[0] if study is HTTP2 else SCENARIOS[0],
    )
    try:
        scenarios.make_files(settings.root)
        command = " ".join(["bench/run.py", *sys.argv[1:]])
        facts = machine.facts(work, generator_facts(args, study), command)
        lines = describe(found, settings, facts)
        results = measure_all(args, study, found, settings)
        as_table = report.as_markdown if args.markdown else report.as_text
        print("\n".join(lines), *map(as_table, study.tables(results)), sep="\n\n")
        print("", *report.notes(results), sep="\n")
        if args.json:
            document = to_json(study, found, settings, facts, results)
            args.json.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
        if args.record:
            options = [study.flag] if study.flag else []
            options += ["--record", *(["--system-congestion"] if args.system_congestion else [])]
            notes = report.notes(results)
            record(study.page, options, lines + notes, study.tables(results))
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
