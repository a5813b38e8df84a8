# SPDX-License-Identifier: MIT
"""Whether other programs used the cores during a run, and which time is compared then.

The programs of bench/ report elapsed time and CPU time. Elapsed time is what a client waits, but it
contains the time that other programs used the cores. CPU time hardly depends on other programs.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

QUIET = 0.95  # the share of a core that a single worker has when nothing else runs

Record = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure that is compared."""

    name: str
    of: Callable[[Record], float]


def share_of_core(alone: Iterable[Record]) -> float | None:
    """The share of a core that single workers had; they wait for nothing else."""
    shares = [float(run["cpu_ns"] / run["ns"]) for run in alone if run["ns"] > 0]
    return float(np.mean(shares)) if shares else None


def believable(alone: Iterable[Record], wall: Figure, cpu: Figure) -> Figure:
    """Elapsed time where the machine was quiet, else CPU time."""
    had = share_of_core(alone)
    return wall if had is None or had >= QUIET else cpu


def warning(alone: Iterable[Record]) -> str | None:
    """A warning where the machine was not quiet."""
    had = share_of_core(alone)
    if had is None or had >= QUIET:
        return None
    return (
        f"The machine was not quiet: workers that ran alone had a core for {had:.0%} of the time. "
        "So CPU time is compared, which does not contain waiting."
    )
