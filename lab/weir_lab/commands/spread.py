# SPDX-License-Identifier: MIT
"""`weir-lab spread`: its options."""

from pathlib import Path
from typing import Annotated

import typer

from weir_lab.commands.options import BUILT, Build, Fresh, Out, Show, finish
from weir_lab.commands.typed import argument, option
from weir_lab.experiments import parse, shared_step
from weir_lab.experiments import spread as spreading
from weir_lab.experiments.experiment import Options
from weir_lab.rim.cluster import Tls
from weir_lab.rim.fleet import Wish


def spread(
    words: Annotated[
        list[str],
        argument(
            metavar="SCHEDULER URL...",
            help="Address of the Dask scheduler, tcp://HOST:8786, and the URLs. Options of `weir "
            "load` that are not below are passed to it: --think, --no-keepalive, ...",
        ),
    ],
    users: Annotated[
        int | None, option("--users", "-u", min=1, help="Users of all hosts together.")
    ] = None,
    steps: Annotated[str, option(help="Levels of users: 10,20,50..100:10.")] = "",
    rate: Annotated[
        str, option("--rate", "-r", help="Levels of requests per second: 500,1000.")
    ] = "",
    requests: Annotated[
        int | None,
        option("--requests", "-n", min=1, help="Requests of each step, of all hosts."),
    ] = None,
    duration: Annotated[str, option("--duration", "-d", help="Length of each step: 10s.")] = "",
    warmup: Annotated[str, option("--warmup", "-w", help="Warm-up before each step: 1s.")] = "",
    slo: Annotated[list[str] | None, option(help="Objectives: 'p99<10ms'.")] = None,
    repeats: Annotated[int, option(min=1, help="Runs of each step.")] = 1,
    local: Annotated[
        int, option(min=0, help="Use this many Dask workers here, without a scheduler.")
    ] = 0,
    hosts: Annotated[int | None, option(min=1, help="Use exactly this many hosts.")] = None,
    workers_per_host: Annotated[int, option(min=1, help="Dask workers to use on each host.")] = 1,
    wait: Annotated[str, option(help="How long to wait for scheduler and hosts.")] = "10s",
    weir: Annotated[str, option(help="Path of weir on the hosts.")] = "",
    server_pid: Annotated[
        int | None, option(help="Process of the server, to measure its CPU.")
    ] = None,
    server_host: Annotated[
        str,
        option(help="Dask worker on the server's host; it generates no load. Default: here."),
    ] = "",
    skew_limit: Annotated[
        str, option(help="A step with more skew between starts is void.")
    ] = "50ms",
    train_to: Annotated[
        int | None, option(help="Fit models of capacity to levels up to this one.")
    ] = None,
    tls_ca_file: Annotated[str, option(help="As for `dask worker`.")] = "",
    tls_cert: Annotated[str, option(help="As for `dask worker`.")] = "",
    tls_key: Annotated[str, option(help="As for `dask worker`.")] = "",
    build: Build = BUILT,
    folder: Out = None,
    fresh: Fresh = False,
    show: Show = False,
) -> None:
    """Generate load on several machines: each host of a Dask cluster runs a part."""
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
            wait_s=parse.seconds("--wait", wait),
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
    finish(report, options.out, show=show)
    if status:
        raise typer.Exit(status)
