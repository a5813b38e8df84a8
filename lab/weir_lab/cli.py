# SPDX-License-Identifier: MIT
"""The program `weir-lab`: its commands, and how it ends."""

import signal
import sys
from types import FrameType

import typer
from rich.markup import escape

from bench.process import BenchError
from weir_lab.commands import capacity, compare, report, reproduce, spread, sync, tour
from weir_lab.experiments.experiment import InterruptedExperimentError, console, stop_asked
from weir_lab.rim.errors import LabError

app = typer.Typer(
    help="Experiments with weir: repeat, compare, predict, report.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(reproduce.reproduce)
app.command()(compare.compare)
app.command()(capacity.capacity)
app.command(context_settings={"ignore_unknown_options": True})(spread.spread)
app.command()(sync.sync)
app.command()(report.report)
app.command()(tour.tour)


def _terminated(_number: int, _frame: FrameType | None) -> None:
    stop_asked.set()
    raise KeyboardInterrupt


def main() -> None:
    """Runs a command; an error is printed as one line."""
    stop_asked.clear()
    signal.signal(signal.SIGTERM, _terminated)
    signal.signal(signal.SIGINT, _terminated)
    try:
        app()
    except InterruptedExperimentError as error:
        console.print(f"weir-lab: {escape(str(error))}", highlight=False)
        sys.exit(130)
    except KeyboardInterrupt:
        console.print("weir-lab: interrupted")
        sys.exit(130)
    except (LabError, BenchError) as error:
        console.print(f"weir-lab: {escape(str(error))}", highlight=False)
        sys.exit(1)
