# SPDX-License-Identifier: MIT
"""`weir-lab report`: its options."""

from pathlib import Path
from typing import Annotated

import typer

from weir_lab.commands.options import finish
from weir_lab.experiments import remake as remaking


def report(
    folder: Annotated[Path, typer.Argument(help="Where results.jsonl is, or a tour's folder.")],
    out_folder: Annotated[
        Path | None, typer.Option("--out", help="Where the report goes. Default: beside them.")
    ] = None,
) -> None:
    """Make the report again from the results; nothing is measured."""
    finish(remaking.run(folder), out_folder or folder)
