# SPDX-License-Identifier: MIT
"""`weir-lab capacity`: its options."""

from typing import Annotated

from weir_lab.commands.options import (
    BUILT,
    Build,
    Fresh,
    Handshakes,
    Out,
    RecordPage,
    Seed,
    ServerCore,
    Shared,
    Show,
    Tls,
    finish,
    options_for,
)
from weir_lab.commands.typed import argument, option
from weir_lab.experiments import capacity as sweeping
from weir_lab.experiments import experiment, parse


def capacity(
    server: Annotated[str, argument(help="A model of weir, or nginx, h2o, ...")] = "epoll",
    users: Annotated[
        str, option(help="Levels to measure, as 1..20,25..60:5. Default: by a pilot.")
    ] = "",
    train_to: Annotated[
        int, option(min=0, help="Train models on levels up to this one. Default: by a pilot.")
    ] = 0,
    think_ms: Annotated[float, option(min=0, help="Mean think time; needs weir load.")] = 0,
    seconds: Annotated[float, option(min=0.5, help="Length of each run.")] = 2,
    repeats: Annotated[int, option(min=1, help="Runs of each level.")] = 3,
    keep_alive: Annotated[
        bool,
        option(
            "--keep-alive/--close",
            help="--close: a connection for each request. Means have the time to connect; "
            "percentiles of weir load do not.",
        ),
    ] = True,
    generator: Annotated[str, option(help="load or ab.")] = "load",
    p99_ms: Annotated[float | None, option(help="Find the users that keep p99 below this.")] = None,
    for_users: Annotated[
        int | None, option(min=1, help="Find the cores for so many users; --p99-ms applies.")
    ] = None,
    for_think_ms: Annotated[
        float | None, option(min=0, help="Think time of these users. Default: --think-ms.")
    ] = None,
    server_options: Annotated[str, option(help="Further options for weir.")] = "",
    url: Annotated[str, option(help="URL of a server that runs already.")] = "",
    tls: Handshakes = Tls.NO,
    cacert: Annotated[
        str, option(help="File of the authorities to trust, for a --url with https.")
    ] = "",
    insecure: Annotated[
        bool, option("--insecure", help="Accept any certificate of a --url with https.")
    ] = False,
    pid: Annotated[int | None, option(help="Process of that server, to measure its CPU.")] = None,
    halve: Annotated[bool, option(help="Confirm the bottleneck by halving the CPU.")] = True,
    pilot: Annotated[
        float,
        option(min=0, help="Seconds of the pilot run that decides the warm-up; 0: none."),
    ] = 17,
    adapt: Annotated[
        bool,
        option(
            "--adapt/--as-given",
            help="Where the generator would be the limit, change the page, the server's part of "
            "its core, or the levels.",
        ),
    ] = True,
    build: Build = BUILT,
    folder: Out = None,
    fresh: Fresh = False,
    seed: Seed = 1,
    shared: Shared = False,
    server_core: ServerCore = None,
    record: RecordPage = None,
    show: Show = False,
) -> None:
    """Sweep users, fit models of capacity, and report where the server saturates and why."""
    options = options_for(
        "capacity", build, folder, fresh=fresh, seed=seed, shared=shared, server_core=server_core
    )
    question = sweeping.Question(
        server=url or server,
        users=parse.levels(users) if users else (),
        train_to=train_to,
        think_s=think_ms / 1e3,
        seconds=seconds,
        repeats=repeats,
        keep_alive=keep_alive,
        generator=generator,
        server_options=server_options,
        url=url,
        tls=tls.asked or ("resume" if url.startswith("https://") else ""),
        cacert=cacert,
        insecure=insecure,
        pid=pid,
        halve=halve,
        pilot_s=pilot,
        adapt=adapt,
        p99_limit_s=None if p99_ms is None else p99_ms / 1e3,
        need=sweeping.need(for_users, think_ms if for_think_ms is None else for_think_ms, p99_ms),
    )
    report = sweeping.run(options, question)
    finish(report, options.out, show=show)
    if record:
        experiment.record(report, record, "capacity", but=("-levels", "-precision"))
