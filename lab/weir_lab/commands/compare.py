# SPDX-License-Identifier: MIT
"""`weir-lab compare`: its options."""

from pathlib import Path
from typing import Annotated

from weir_lab.commands.options import (
    BUILT,
    Build,
    Fresh,
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
from weir_lab.experiments import compare as comparing
from weir_lab.experiments import experiment, slow_disk
from weir_lab.rim import runs
from weir_lab.rim.errors import LabError

SLOW_DISK = "compare --slow-disk"


def named(servers: list[str], build: Path) -> tuple[str, ...]:
    """The servers; `all` stands for every model of this weir."""
    if servers != ["all"] or not (build / "weir").exists():
        return comparing.numbered(servers)
    return tuple(runs.models(build / "weir"))


def beside_a_slow_disk(
    options: experiment.Options, question: slow_disk.Question, page: Path | None, *, show: bool
) -> None:
    """The other study of this command."""
    report = slow_disk.run(options, question)
    finish(report, options.out, show=show)
    if page:
        experiment.record(report, page, SLOW_DISK)


def compare(
    servers: Annotated[
        list[str],
        argument(
            help="Models of weir, nginx, nginx-tuned, h2o, lighttpd, caddy, apache-prefork, "
            "apache-worker, apache-event. The others are compared with the first. A server that is "
            "named twice is compared with itself. `all`: every model of weir."
        ),
    ],
    size: Annotated[list[int] | None, option(help="Size of the file in bytes.")] = None,
    users: Annotated[list[int] | None, option(help="Number of connections.")] = None,
    keep_alive: Annotated[
        bool | None, option("--keep-alive/--close", help="Use one of them. Default: both.")
    ] = None,
    http2: Annotated[
        list[int] | None,
        option(
            min=1,
            max=100,
            help="Compare over HTTP/2, with this many requests under way on each "
            "connection. For weir, nginx and h2o.",
        ),
    ] = None,
    tls: Annotated[
        list[Tls] | None,
        option(
            help="Over https, where later connections of a user resume its session or make full "
            "handshakes. Several are measured in turn. Default: no."
        ),
    ] = None,
    rounds: Annotated[int, option(min=3, help="Number of fresh starts of each server.")] = 6,
    seconds: Annotated[float, option(min=0.2, help="Length of each round.")] = 1,
    repeat: Annotated[
        int, option(min=1, help="Repeat the whole comparison, and count the differences.")
    ] = 1,
    generator: Annotated[str, option(help="load or ab.")] = "load",
    slow_disk_ms: Annotated[
        int | None,
        option(
            "--slow-disk",
            min=1,
            help="Another study: how much do clients of a fast site notice of a disk that answers "
            "after so many milliseconds? For models of weir. It needs /dev/fuse.",
        ),
    ] = None,
    slow_clients: Annotated[
        list[int] | None,
        option(min=1, help="With --slow-disk: number of clients of the disk. Default: 4 and 32."),
    ] = None,
    record: RecordPage = None,
    build: Build = BUILT,
    folder: Out = None,
    fresh: Fresh = False,
    seed: Seed = 1,
    shared: Shared = False,
    server_core: ServerCore = None,
    show: Show = False,
) -> None:
    """Compare servers on the same work: CPU, rate, percentiles, memory, with intervals."""
    options = options_for(
        "compare", build, folder, fresh=fresh, seed=seed, shared=shared, server_core=server_core
    )
    names = named(servers, build)
    if slow_disk_ms:
        if size or http2 or tls or keep_alive is not None or repeat > 1 or generator != "load":
            raise LabError(
                "--slow-disk goes with --users, --rounds, --seconds and --slow-clients alone"
            )
        asked = slow_disk.Question(
            servers=names,
            slow_disk_ms=slow_disk_ms,
            slow_clients=tuple(slow_clients or (4, 32)),
            users=(users or [8])[0],
            rounds=rounds,
            seconds=seconds,
        )
        beside_a_slow_disk(options, asked, record, show=show)
        return
    if slow_clients or record:
        raise LabError("--slow-clients and --record go with --slow-disk")
    question = comparing.Question(
        servers=names,
        sizes=tuple(size or (308,)),
        users=tuple(users or (64,)),
        keep_alive=(True, False) if keep_alive is None else (keep_alive,),
        streams=tuple(http2 or ()),
        tls=tuple(each.asked for each in tls or [Tls.NO]),
        rounds=rounds,
        seconds=seconds,
        generator=generator,
        repeats=repeat,
    )
    finish(comparing.run(options, question), options.out, show=show)
