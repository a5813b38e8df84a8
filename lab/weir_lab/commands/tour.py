# SPDX-License-Identifier: MIT
"""`weir-lab tour`: its options."""

from typing import Annotated

from weir_lab.commands.options import (
    BUILT,
    Build,
    Fresh,
    Out,
    Seed,
    ServerCore,
    Show,
    finish,
    options_for,
)
from weir_lab.commands.typed import option
from weir_lab.experiments import tour as touring


def tour(
    build: Build = BUILT,
    folder: Out = None,
    fresh: Fresh = False,
    seed: Seed = 1,
    tiny: Annotated[bool, option("--tiny", hidden=True)] = False,
    server_core: ServerCore = None,
    show: Show = False,
) -> None:
    """Run all experiments briefly, in five minutes, with one report."""
    options = options_for("tour", build, folder, fresh=fresh, seed=seed, server_core=server_core)
    finish(touring.run(options, tiny=tiny), options.out, show=show)
