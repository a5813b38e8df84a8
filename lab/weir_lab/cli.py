# SPDX-License-Identifier: MIT
"""The program `weir-lab`: its commands, and how it ends."""

import io
import signal
import subprocess
import sys
from types import FrameType
from typing import Annotated

import typer

from bench.process import BenchError
from weir_lab import __version__
from weir_lab.commands import capacity, compare, report, reproduce, spread, sync, tour
from weir_lab.commands.typed import option, readable
from weir_lab.experiments.experiment import InterruptedExperimentError, console, out, stop_asked
from weir_lab.rim.errors import LabError, words

app = typer.Typer(
    help="Experiments with weir: repeat, compare, predict, report.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        out.print(f"weir-lab {__version__}")
        raise typer.Exit


def _begin(
    _version: Annotated[
        bool,
        option("--version", callback=_version, is_eager=True, help="Print the version, and end."),
    ] = False,
) -> None:
    pass


app.callback()(readable(_begin))
app.command()(readable(reproduce.reproduce))
app.command()(readable(compare.compare))
app.command()(readable(capacity.capacity))
app.command(context_settings={"ignore_unknown_options": True})(readable(spread.spread))
app.command()(readable(sync.sync))
app.command()(readable(report.report))
app.command()(readable(tour.tour))


def _terminated(_number: int, _frame: FrameType | None) -> None:
    if stop_asked.is_set():
        return  # a second signal would stop the end of the server and the generator
    stop_asked.set()
    raise KeyboardInterrupt


def _speak_any_encoding() -> None:
    """What the encoding of the terminal lacks is escaped. It would end the command otherwise."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def main() -> None:
    """Runs a command; an error is printed as one line."""
    _speak_any_encoding()
    stop_asked.clear()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # by nohup
            signal.signal(number, _terminated)
    try:
        app()
    except InterruptedExperimentError as error:
        console.print(f"weir-lab: {error}", soft_wrap=True)
        sys.exit(130)
    except KeyboardInterrupt:
        console.print("weir-lab: interrupted")
        sys.exit(130)
    except (LabError, BenchError, OSError, subprocess.SubprocessError) as error:
        console.print(f"weir-lab: {words(error)}", soft_wrap=True)
        sys.exit(1)
