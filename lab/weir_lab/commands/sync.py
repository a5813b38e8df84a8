# SPDX-License-Identifier: MIT
"""`weir-lab sync`: its options."""

from typing import Annotated

from weir_lab.commands.options import (
    BUILT,
    Build,
    Fresh,
    Out,
    Quick,
    RecordPage,
    Seed,
    Show,
    finish,
    options_for,
)
from weir_lab.commands.typed import argument, option
from weir_lab.experiments import experiment, parse
from weir_lab.experiments import sync as sharing


def sync(
    parts: Annotated[list[str] | None, argument(help="counters or caches. Default: both.")] = None,
    workers: Annotated[str, option(help="Numbers of workers. Default: 1 to 4 x cores.")] = "",
    repeats: Annotated[
        int | None, option(min=1, help="Runs of each. Default: 6, or 3 with --quick.")
    ] = None,
    additions: Annotated[
        int, option(min=0, help="Additions in each run of counters. Default: about 0.2 s.")
    ] = 0,
    objects: Annotated[int | None, option(min=100, help="Number of different objects.")] = None,
    requests: Annotated[int | None, option(min=1, help="Requests in each trace.")] = None,
    exponents: Annotated[str, option(help="Exponents of Zipf's law: 0.6,0.8,1,1.2.")] = "",
    sizes: Annotated[str, option(help="Sizes of caches in % of the objects: 1,10,50.")] = "",
    build: Build = BUILT,
    folder: Out = None,
    fresh: Fresh = False,
    seed: Seed = 1,
    quick: Quick = False,
    record: RecordPage = None,
    show: Show = False,
) -> None:
    """Measure shared counters and caches: updates lost, hits, and the cost of sharing."""
    options = options_for("sync", build, folder, fresh=fresh, seed=seed, shared=True)
    question = sharing.question(
        workers=parse.levels(workers) if workers else (),
        quick=quick,
        parts=tuple(parts or sharing.PARTS),
        repeats=repeats,
        additions=additions,
        objects=objects,
        requests=requests,
        exponents=parse.numbers(exponents),
        sizes=parse.numbers(sizes),
        seed=seed,
    )
    report = sharing.run(options, question)
    finish(report, options.out, show=show)
    if record:
        experiment.record(report, record, "sync", but=("-times", "-how"))
