# SPDX-License-Identifier: MIT
"""`weir-lab report`: its options."""

from pathlib import Path
from typing import Annotated

from weir_lab.commands.options import Show, finish
from weir_lab.commands.typed import argument, option
from weir_lab.experiments import remake as remaking


def report(
    folder: Annotated[Path, argument(help="The folder with results.jsonl, or a tour's folder.")],
    out_folder: Annotated[
        Path | None, option("--out", help="The folder for the report. Default: the same.")
    ] = None,
    show: Show = False,
) -> None:
    """Write the report again from existing results; nothing is measured."""
    finish(remaking.run(folder), out_folder or folder, show=show)
