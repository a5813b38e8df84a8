# SPDX-License-Identifier: MIT
"""Options that several commands share, and the output at the end of each command."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from weir_lab.experiments.experiment import Options, out
from weir_lab.report.page import Report, write
from weir_lab.rim import machine
from weir_lab.rim.machine import Placement

Build = Annotated[Path, typer.Option(help="The folder with the built weir.")]
Out = Annotated[Path | None, typer.Option("--out", help="The folder for results and report.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Start again; delete earlier results.")]
Seed = Annotated[int, typer.Option(help="Seed of random orders and resampling.")]
Quick = Annotated[bool, typer.Option("--quick", help="A first impression: fewer and shorter runs.")]
Shared = Annotated[
    bool,
    typer.Option("--shared", help="Server and generator share all cores. Default: a core each."),
]
RecordPage = Annotated[
    Path | None, typer.Option(help="Write findings and tables into this page of docs/.")
]
ServerCore = Annotated[int | None, typer.Option(help="The server's core. Default: the last.")]


def options_for(
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


def finish(report: Report, folder: Path) -> None:
    page = write(report, folder)
    for section in report.sections:
        out.print(f"[bold]{escape(section.title)}[/bold]", highlight=False)
        for finding in section.verdict:
            out.print(f"  - {escape(finding)}", highlight=False, soft_wrap=not out.is_terminal)
    for note in report.notes:
        out.print(f"  {escape(note)}", style="dim", highlight=False, soft_wrap=not out.is_terminal)
    out.print(str(page.resolve()), highlight=False, soft_wrap=True)
