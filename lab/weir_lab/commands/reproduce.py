# SPDX-License-Identifier: MIT
"""`weir-lab reproduce`: its options."""

from dataclasses import replace
from typing import Annotated

from weir_lab.commands.options import (
    BUILT,
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
from weir_lab.commands.typed import argument, option
from weir_lab.experiments import experiment, sync
from weir_lab.experiments import reproduce as reproducing
from weir_lab.report.page import write
from weir_lab.rim.errors import LabError
from weir_lab.rim.machine import Placement

SYNC = "sync"


def reproduce(
    documents: Annotated[
        list[str] | None, argument(help="Any of a b c d e, and sync. Default: all.")
    ] = None,
    build: Build = BUILT,
    folder: Out = None,
    fresh: Fresh = False,
    seed: Seed = 1,
    quick: Quick = False,
    part: Annotated[
        float, option(min=0.01, max=1, help="Part of the documents' requests and seconds.")
    ] = 1,
    tiny: Annotated[bool, option("--tiny", hidden=True)] = False,
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
    named = documents or [*(d.letter for d in reproducing.DOCUMENTS), SYNC]
    letters = [name for name in named if name != SYNC]
    if not letters:
        raise LabError("sync alone is `weir-lab sync`")
    if SYNC in named:
        question = sync.question(quick=quick or tiny, parts=sync.PARTS, seed=seed)
        report = reproducing.run(options, letters, scale, then_s=sync.expected_s(question))
        apart = replace(
            options, out=options.out / SYNC, placement=Placement(server=None, generator=None)
        )
        shared_report = sync.run(apart, question)
        write(shared_report, apart.out)
        report = reproducing.with_sync(report, shared_report)
    else:
        report = reproducing.run(options, letters, scale)
    finish(report, options.out, show=show)
    if record:
        experiment.record(report, record, "reproduce", but=("-levels", "-precision"))
