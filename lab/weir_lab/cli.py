# SPDX-License-Identifier: MIT
"""The command line: `weir-lab --help`."""

import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from rich.markup import escape

from bench.process import BenchError
from weir_lab.commands import capacity as sweeping
from weir_lab.commands import compare as comparing
from weir_lab.commands import experiment, shared_step
from weir_lab.commands import remake as remaking
from weir_lab.commands import reproduce as reproducing
from weir_lab.commands import spread as spreading
from weir_lab.commands import sync as sharing
from weir_lab.commands import tour as touring
from weir_lab.commands.experiment import (
    InterruptedExperimentError,
    Options,
    console,
    out,
    stop_asked,
)
from weir_lab.report.page import Report, write
from weir_lab.rim import machine
from weir_lab.rim.cluster import Tls
from weir_lab.rim.errors import LabError
from weir_lab.rim.fleet import Wish
from weir_lab.rim.machine import Placement

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Build = Annotated[Path, typer.Option(help="The build folder that has weir.")]
Out = Annotated[Path | None, typer.Option(help="Where results and report go.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Begin anew; keep nothing.")]
Seed = Annotated[int, typer.Option(help="Of orders and resampling.")]
Quick = Annotated[bool, typer.Option("--quick", help="Less of everything: a look, no figures.")]
Shared = Annotated[
    bool, typer.Option("--shared", help="Server and generator share all cores; else a core each.")
]
Record = Annotated[
    Path | None, typer.Option(help="A page with marks to put findings and tables into.")
]
ServerCore = Annotated[int | None, typer.Option(help="The server's core. Default: the last.")]


def _options(
    command: str,
    build: Path,
    folder: Path | None,
    *,
    fresh: bool,
    seed: int,
    shared: bool = False,
    server_core: int | None = None,
) -> Options:
    placement = Placement(server=None, generator=None) if shared else machine.pinned(server_core)
    return Options(
        build=build,
        out=folder or Path("lab-results") / command,
        fresh=fresh,
        seed=seed,
        placement=placement,
    )


def _finish(report: Report, folder: Path) -> None:
    page = write(report, folder)
    for section in report.sections:
        out.print(f"[bold]{escape(section.title)}[/bold]", highlight=False)
        for finding in section.verdict:
            out.print(f"  - {escape(finding)}", highlight=False, soft_wrap=not out.is_terminal)
    for note in report.notes:
        out.print(f"  {escape(note)}", style="dim", highlight=False, soft_wrap=not out.is_terminal)
    out.print(str(page.resolve()), highlight=False, soft_wrap=True)


@app.callback()
def experiments() -> None:
    """Experiments with weir: repeated, compared, predicted, reported."""


@app.command()
def reproduce(
    documents: Annotated[
        list[str] | None, typer.Argument(help="Which: a b c d e. Default: all.")
    ] = None,
    build: Build = Path("build"),
    folder: Annotated[Path | None, typer.Option("--out", help="Where results go.")] = None,
    fresh: Fresh = False,
    seed: Seed = 1,
    quick: Quick = False,
    part: Annotated[
        float, typer.Option(min=0.01, max=1, help="Of the documents' requests and seconds.")
    ] = 1,
    tiny: Annotated[bool, typer.Option("--tiny", hidden=True)] = False,
    shared: Shared = False,
    server_core: ServerCore = None,
    record: Record = None,
) -> None:
    """Repeat the source documents' experiments beside their published tables."""
    options = _options(
        "reproduce",
        build,
        folder,
        fresh=fresh,
        seed=seed,
        shared=shared,
        server_core=server_core,
    )
    full = reproducing.FULL.part(part)
    scale = reproducing.TINY if tiny else reproducing.QUICK if quick else full
    letters = documents or [d.letter for d in reproducing.DOCUMENTS]
    report = reproducing.run(options, letters, scale)
    _finish(report, options.out)
    if record:
        experiment.record(report, record, "reproduce", but=("-levels", "-precision"))


@app.command()
def compare(
    servers: Annotated[
        list[str],
        typer.Argument(
            help="Models of weir, nginx, nginx-tuned, h2o, lighttpd, caddy, apache-prefork, "
            "apache-worker, apache-event. The others are compared with the first; one named twice "
            "is compared with itself."
        ),
    ],
    size: Annotated[list[int] | None, typer.Option(help="Bytes of the file.")] = None,
    users: Annotated[list[int] | None, typer.Option(help="Connections.")] = None,
    keep_alive: Annotated[
        bool | None, typer.Option("--keep-alive/--close", help="One of them. Default: both.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=3, help="Fresh starts of each server.")] = 6,
    seconds: Annotated[float, typer.Option(min=0.2, help="Of each round.")] = 1,
    repeat: Annotated[
        int, typer.Option(min=1, help="The whole comparison so often: how often does it differ?")
    ] = 1,
    generator: Annotated[str, typer.Option(help="load or ab.")] = "load",
    build: Build = Path("build"),
    folder: Annotated[Path | None, typer.Option("--out", help="Where results go.")] = None,
    fresh: Fresh = False,
    seed: Seed = 1,
    shared: Shared = False,
    server_core: ServerCore = None,
) -> None:
    """Compare servers on the same work: CPU, rate, percentiles, memory, with intervals."""
    options = _options(
        "compare", build, folder, fresh=fresh, seed=seed, shared=shared, server_core=server_core
    )
    question = comparing.Question(
        servers=comparing.numbered(servers),
        sizes=tuple(size or (308,)),
        users=tuple(users or (64,)),
        keep_alive=(True, False) if keep_alive is None else (keep_alive,),
        rounds=rounds,
        seconds=seconds,
        generator=generator,
        repeats=repeat,
    )
    _finish(comparing.run(options, question), options.out)


@app.command()
def capacity(
    server: Annotated[str, typer.Argument(help="A model of weir, or nginx, h2o, ...")] = "epoll",
    users: Annotated[str, typer.Option(help="Levels to measure.")] = "1..20,25..60:5",
    train_to: Annotated[int, typer.Option(help="Models see levels up to this one.")] = 20,
    think_ms: Annotated[float, typer.Option(min=0, help="Mean think time (weir load).")] = 0,
    seconds: Annotated[float, typer.Option(min=0.5, help="Of each level.")] = 2,
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each level.")] = 3,
    keep_alive: Annotated[bool, typer.Option("--keep-alive/--close")] = True,
    generator: Annotated[str, typer.Option(help="load or ab.")] = "load",
    p99_ms: Annotated[float | None, typer.Option(help="Users that keep p99 below this.")] = None,
    server_options: Annotated[str, typer.Option(help="Further options for weir.")] = "",
    url: Annotated[str, typer.Option(help="A server that runs already.")] = "",
    pid: Annotated[
        int | None, typer.Option(help="Its process: without, its CPU is not known.")
    ] = None,
    halve: Annotated[bool, typer.Option(help="Confirm the bottleneck by halving it.")] = True,
    pilot: Annotated[
        float, typer.Option(min=0, help="Seconds of the run that decides the warm-up; 0: none.")
    ] = 20,
    build: Build = Path("build"),
    folder: Annotated[Path | None, typer.Option("--out", help="Where results go.")] = None,
    fresh: Fresh = False,
    seed: Seed = 1,
    shared: Shared = False,
    server_core: ServerCore = None,
    record: Record = None,
) -> None:
    """Sweep users, fit models of capacity, say where the server saturates and why."""
    options = _options(
        "capacity", build, folder, fresh=fresh, seed=seed, shared=shared, server_core=server_core
    )
    question = sweeping.Question(
        server=url or server,
        users=sweeping.levels(users),
        train_to=train_to,
        think_s=think_ms / 1e3,
        seconds=seconds,
        repeats=repeats,
        keep_alive=keep_alive,
        generator=generator,
        server_options=server_options,
        url=url,
        pid=pid,
        halve=halve,
        pilot_s=pilot,
        p99_limit_s=None if p99_ms is None else p99_ms / 1e3,
    )
    report = sweeping.run(options, question)
    _finish(report, options.out)
    if record:
        experiment.record(report, record, "capacity", but=())


@app.command(context_settings={"ignore_unknown_options": True})
def spread(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="SCHEDULER URL...",
            help="Where the Dask scheduler is, tcp://HOST:8786; what is asked for. All options "
            "of `weir load` that are not below go to it as they are: --think, --no-keepalive, ...",
        ),
    ],
    users: Annotated[int | None, typer.Option("--users", "-u", min=1, help="Of all hosts.")] = None,
    steps: Annotated[str, typer.Option(help="Levels of users: 10,20,50..100:10.")] = "",
    rate: Annotated[str, typer.Option("--rate", "-r", help="Or requests a second: a list.")] = "",
    requests: Annotated[
        int | None, typer.Option("--requests", "-n", min=1, help="Of each step, of all hosts.")
    ] = None,
    duration: Annotated[str, typer.Option("--duration", "-d", help="Or: 10s.")] = "",
    warmup: Annotated[str, typer.Option("--warmup", "-w", help="Before each step: 1s.")] = "",
    slo: Annotated[list[str] | None, typer.Option(help="Objectives: 'p99<10ms'.")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each step.")] = 1,
    local: Annotated[int, typer.Option(min=0, help="So many workers here, no scheduler.")] = 0,
    hosts: Annotated[int | None, typer.Option(min=1, help="So many, no fewer.")] = None,
    workers_per_host: Annotated[int, typer.Option(min=1, help="That are used.")] = 1,
    wait: Annotated[str, typer.Option(help="For the scheduler and for hosts.")] = "10s",
    weir: Annotated[str, typer.Option(help="Where weir is on the hosts.")] = "",
    server_pid: Annotated[int | None, typer.Option(help="The server: its CPU is measured.")] = None,
    server_host: Annotated[
        str, typer.Option(help="The worker beside it, which generates no load. Default: here.")
    ] = "",
    skew_limit: Annotated[str, typer.Option(help="A step is void beyond it.")] = "50ms",
    train_to: Annotated[
        int | None, typer.Option(help="Fit models of capacity to levels up to this one.")
    ] = None,
    tls_ca_file: Annotated[str, typer.Option(help="As of `dask worker`.")] = "",
    tls_cert: Annotated[str, typer.Option(help="As of `dask worker`.")] = "",
    tls_key: Annotated[str, typer.Option(help="As of `dask worker`.")] = "",
    build: Build = Path("build"),
    folder: Annotated[Path | None, typer.Option("--out", help="Where results go.")] = None,
    fresh: Fresh = False,
) -> None:
    """Put load on a server from several machines at once: a host of a Dask cluster each."""
    scheduler, rest = spreading.split(words, local=local)
    question = shared_step.Question(
        scheduler=scheduler,
        local=local,
        words=rest,
        users=users,
        steps=steps,
        rates=rate,
        requests=requests,
        duration=duration,
        warmup=warmup,
        slos=tuple(slo or ()),
        repeats=repeats,
        server_pid=server_pid,
        skew_limit=skew_limit,
        train_to=train_to,
        wish=Wish(
            weir=weir or (str((build / "weir").resolve()) if local else "weir"),
            hosts=hosts,
            per_host=local or workers_per_host,
            server_host=server_host,
            wait_s=shared_step.seconds("--wait", wait),
        ),
        tls=Tls(ca_file=tls_ca_file, cert=tls_cert, key=tls_key),
    )
    options = Options(
        build=build,
        out=folder or Path("lab-results/spread"),
        fresh=fresh,
        placement=spreading.Elsewhere(),
    )
    report, status = spreading.run(options, question)
    _finish(report, options.out)
    if status:
        raise typer.Exit(status)


@app.command()
def sync(
    parts: Annotated[
        list[str] | None, typer.Argument(help="counters, caches. Default: both.")
    ] = None,
    workers: Annotated[str, typer.Option(help="How many. Default: 1 to 4 x cores.")] = "",
    repeats: Annotated[
        int | None, typer.Option(min=1, help="Runs of each. Default: 6, or 3 with --quick.")
    ] = None,
    additions: Annotated[
        int, typer.Option(min=0, help="Of each run of counters. Default: what suits the way.")
    ] = 0,
    objects: Annotated[int | None, typer.Option(min=100, help="That caches are of.")] = None,
    requests: Annotated[int | None, typer.Option(min=1, help="In each trace.")] = None,
    exponents: Annotated[str, typer.Option(help="Of Zipf's law: 0.6,0.8,1,1.2.")] = "",
    sizes: Annotated[str, typer.Option(help="Of caches, % of the objects: 1,10,50.")] = "",
    build: Build = Path("build"),
    folder: Annotated[Path | None, typer.Option("--out", help="Where results go.")] = None,
    fresh: Fresh = False,
    seed: Seed = 1,
    quick: Quick = False,
    record: Annotated[
        Path | None, typer.Option(help="A page with marks to put findings and tables into.")
    ] = None,
) -> None:
    """Share counters and caches: updates lost, hits, and what care costs."""
    options = _options("sync", build, folder, fresh=fresh, seed=seed, shared=True)
    question = sharing.question(
        workers=sweeping.levels(workers) if workers else (),
        quick=quick,
        parts=tuple(parts or sharing.PARTS),
        repeats=repeats,
        additions=additions,
        objects=objects,
        requests=requests,
        exponents=sharing.numbers(exponents),
        sizes=sharing.numbers(sizes),
        seed=seed,
    )
    report = sharing.run(options, question)
    _finish(report, options.out)
    if record:
        sharing.record(report, record)


@app.command("report")
def remake(
    folder: Annotated[Path, typer.Argument(help="Where results.jsonl is, or a tour's folder.")],
    out_folder: Annotated[
        Path | None, typer.Option("--out", help="Where the report goes. Default: beside them.")
    ] = None,
) -> None:
    """Make the report again from the results; nothing is measured."""
    _finish(remaking.run(folder), out_folder or folder)


@app.command()
def tour(
    build: Build = Path("build"),
    folder: Annotated[Path | None, typer.Option("--out", help="Where results go.")] = None,
    fresh: Fresh = False,
    seed: Seed = 1,
    tiny: Annotated[bool, typer.Option("--tiny", hidden=True)] = False,
    server_core: ServerCore = None,
) -> None:
    """A bit of everything in five minutes, in one report."""
    options = _options("tour", build, folder, fresh=fresh, seed=seed, server_core=server_core)
    _finish(touring.run(options, tiny=tiny), options.out)


def _terminated(_number: int, _frame: FrameType | None) -> None:
    stop_asked.set()
    raise KeyboardInterrupt


def main() -> None:
    """Runs a command; what went wrong is one line."""
    stop_asked.clear()
    signal.signal(signal.SIGTERM, _terminated)
    signal.signal(signal.SIGINT, _terminated)
    try:
        app()
    except InterruptedExperimentError as error:
        console.print(f"weir-lab: {escape(str(error))}", highlight=False)
        sys.exit(130)
    except KeyboardInterrupt:
        console.print("weir-lab: interrupted")
        sys.exit(130)
    except (LabError, BenchError) as error:
        console.print(f"weir-lab: {escape(str(error))}", highlight=False)
        sys.exit(1)
