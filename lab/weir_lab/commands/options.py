# SPDX-License-Identifier: MIT
"""Options that several commands share, and the output at the end of each command."""

import os
import shutil
import webbrowser
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from weir_lab.commands.typed import option
from weir_lab.experiments.experiment import Options, announce, out
from weir_lab.report import distribution, terminal
from weir_lab.report.page import Report, write
from weir_lab.rim import machine
from weir_lab.rim.machine import Placement


class Tls(StrEnum):
    """The handshakes of a load."""

    NO = "no"
    RESUME = "resume"
    FULL = "full"

    @property
    def asked(self) -> str:
        """As Work.tls."""
        return "" if self is Tls.NO else self.value


def built() -> Path:
    """The folder of weir: `build` in a clone of the repository, else that of the installed one."""
    own = Path("build")
    found = None if (own / "weir").exists() else shutil.which("weir")
    return Path(found).resolve().parent if found else own


BUILT = built()
Build = Annotated[Path, option(help="The folder with weir, built or installed.")]
Out = Annotated[Path | None, option("--out", help="The folder for results and report.")]
Fresh = Annotated[bool, option("--fresh", help="Start again; delete earlier results.")]
Seed = Annotated[int, option(help="Seed of random orders and resampling.")]
Quick = Annotated[bool, option("--quick", help="A first impression: fewer and shorter runs.")]
Shared = Annotated[
    bool,
    option("--shared", help="Server and generator share all cores. Default: a core each."),
]
RecordPage = Annotated[
    Path | None, option(help="Write findings and tables into this page of docs/.")
]
Handshakes = Annotated[
    Tls,
    option(
        "--tls",
        help="resume or full: over https, and a user's later connections resume its session or "
        "make full handshakes. no: plain HTTP.",
    ),
]
Show = Annotated[bool, option("--open", help="Open the report in the browser.")]
ServerCore = Annotated[int | None, option(help="The server's core. Default: the last.")]


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


def finish(report: Report, folder: Path, *, show: bool = False) -> None:
    """Writes the report, prints its answer and its path, and opens it where that was asked for."""
    page = write(report, folder)
    terminal.show(report, out)
    if not distribution.READS_HISTOGRAMS:
        announce(
            "The report has no picture of all percentiles. `pip install hdrhistogram` adds it."
        )
    if show:
        open_page(page)
    out.print(str(page.resolve()), soft_wrap=True)


def open_page(page: Path) -> None:
    """Opens the page in the browser; a machine without a desktop gets a sentence instead."""
    has_desktop = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
    if not has_desktop or not webbrowser.open(page.resolve().as_uri()):
        announce("No browser was found here. Open the file below in a browser.")
