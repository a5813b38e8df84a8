# SPDX-License-Identifier: MIT
"""Whether others used the cores meanwhile, and which time is to be believed then.

The programs of bench/ tell the time that has passed and the time that they had on cores. The first
is what somebody waits; but where others take the cores it is theirs as well, and the second is
hardly touched.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

QUIET = 0.95  # what a worker has of a core, if nothing else runs

Record = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """What is compared."""

    name: str
    of: Callable[[Record], float]


def share_of_core(alone: Iterable[Record]) -> float | None:
    """What workers without companions had of a core: they wait for nothing else."""
    shares = [float(run["cpu_ns"] / run["ns"]) for run in alone if run["ns"] > 0]
    return float(np.mean(shares)) if shares else None


def believable(alone: Iterable[Record], wall: Figure, cpu: Figure) -> Figure:
    """The time that passed on a quiet machine, else that on cores."""
    had = share_of_core(alone)
    return wall if had is None or had >= QUIET else cpu


def warning(alone: Iterable[Record]) -> str | None:
    """What a reader must know of a machine that was not quiet."""
    had = share_of_core(alone)
    if had is None or had >= QUIET:
        return None
    return (
        f"The machine was not quiet: workers that ran alone had a core for {had:.0%} of the time. "
        "So CPU time is compared, which leaves out waiting."
    )
