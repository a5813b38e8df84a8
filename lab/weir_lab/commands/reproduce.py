# SPDX-License-Identifier: MIT
"""`weir-lab reproduce`: its options."""

from pathlib import Path
from typing import Annotated

import typer

from weir_lab.commands.options import (
    Build,
    Fresh,
    Out,
    Quick,
    RecordPage,
    Seed,
    ServerCore,
    Shared,
    Show,
    finish,
    options_for,
)
from weir_lab.experiments import experiment
from weir_lab.experiments import reproduce as reproducing


def reproduce(
    documents: Annotated[
        list[str] | None, typer.Argument(help="Any of a b c d e. Default: all.")
    ] = None,
    build: Build = Path("build"),
    folder: Out = None,
    fresh: Fresh = False,
    seed: Seed = 1,
    quick: Quick = False,
    part: Annotated[
        float, typer.Option(min=0.01, max=1, help="Part of the documents' requests and seconds.")
    ] = 1,
    tiny: Annotated[bool, typer.Option("--tiny", hidden=True)] = False,
    shared: Shared = False,
    server_core: ServerCore = None,
    record: RecordPage = None,
    show: Show = False,
) -> None:
    """Repeat the source documents' experiments beside their published tables."""
    options = options_for(
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
    finish(report, options.out, show=show)
    if record:
        experiment.record(report, record, "reproduce", but=("-levels", "-precision"))
