# SPDX-License-Identifier: MIT
"""`weir-lab compare`: its options."""

from typing import Annotated

from weir_lab.commands.options import (
    BUILT,
    Build,
    Fresh,
    Out,
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


def compare(
    servers: Annotated[
        list[str],
        argument(
            help="Models of weir, nginx, nginx-tuned, h2o, lighttpd, caddy, apache-prefork, "
            "apache-worker, apache-event. The others are compared with the first. A server that is "
            "named twice is compared with itself."
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
    question = comparing.Question(
        servers=comparing.numbered(servers),
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
