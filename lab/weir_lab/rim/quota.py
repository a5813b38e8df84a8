# SPDX-License-Identifier: MIT
"""Limits a server's CPU by a control group, to confirm that CPU is the bottleneck.

The group contains the server alone and is removed again. No setting of the machine changes.
"""

import contextlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from pathlib import Path

from bench import process
from weir_lab.rim.errors import LabError

PERIOD_US = 20_000
QUOTA_MIN_US = 1_000  # of the kernel
SHORT_PERIOD_US = 4_000  # a long one would stop the server for longer than a request takes
REMOVE_WITHIN_S = 3.0
FIRST_VERSION = Path("/sys/fs/cgroup/cpu")
SECOND_VERSION = Path("/sys/fs/cgroup")


def _group() -> tuple[Path, bool]:
    """The path of a new group, and whether it is of cgroup version 2."""
    name = f"weir-lab-{os.getpid()}-{time.monotonic_ns()}"
    if (FIRST_VERSION / "cpu.shares").exists():
        return FIRST_VERSION / name, False
    if "cpu" in _words(SECOND_VERSION / "cgroup.subtree_control"):
        return SECOND_VERSION / name, True
    raise LabError("no control group for CPU can be made here")


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


def is_possible() -> bool:
    """Whether a control group for CPU can be made here."""
    try:
        group, _ = _group()
        group.mkdir()
        group.rmdir()
    except (LabError, OSError):
        return False
    return True


def short_period_us(cores: float) -> int:
    """The shortest useful period for this many cores."""
    return max(SHORT_PERIOD_US, ceil(QUOTA_MIN_US / cores))


@contextmanager
def limited(root: int, cores: float, period_us: int = PERIOD_US) -> Iterator[None]:
    """Limits a process and its descendants to this many cores for the time of the block.

    Raises:
        LabError: no control group can be made here.
    """
    group, is_second = _group()
    try:
        group.mkdir()
        quota_us = max(QUOTA_MIN_US, round(cores * period_us))
        if is_second:
            (group / "cpu.max").write_text(f"{quota_us} {period_us}")
        else:
            (group / "cpu.cfs_period_us").write_text(str(period_us))
            (group / "cpu.cfs_quota_us").write_text(str(quota_us))
        for pid in process.tree(root):
            (group / "cgroup.procs").write_text(str(pid))
    except OSError as error:
        _remove(group)
        raise LabError(f"a control group could not be made: {error.strerror}") from error
    try:
        yield
    finally:
        _remove(group)


def _remove(group: Path) -> None:
    """Moves the processes back to the parent group, and removes the group."""
    end = time.monotonic() + REMOVE_WITHIN_S
    while group.exists() and time.monotonic() < end:
        for pid in _words(group / "cgroup.procs"):
            with contextlib.suppress(OSError):  # the process has ended, or is ending
                (group.parent / "cgroup.procs").write_text(pid)
        with contextlib.suppress(OSError):
            group.rmdir()
            return
        time.sleep(0.01)  # children may be starting or ending
