# SPDX-License-Identifier: MIT
"""Half of a CPU, where control groups may be made."""

import os
import subprocess
import sys
import time

import pytest

from bench import process
from weir_lab.rim import quota
from weir_lab.rim.errors import LabError

SPIN = "while True: pass"


def used_share(pid: int, seconds: float) -> float:
    """The part of a core that a process uses."""
    before, began = process.cpu_ns(pid), time.monotonic()
    time.sleep(seconds)  # the share of a time is what is looked at
    return (process.cpu_ns(pid) - before) / 1e9 / (time.monotonic() - began)


def test_a_process_is_kept_to_its_part_and_let_go_again() -> None:
    with subprocess.Popen([sys.executable, "-c", SPIN]) as spinning:
        try:
            with quota.limited(spinning.pid, 0.2):
                limited = used_share(spinning.pid, 0.6)
                group = quota._group()[0].parent
                assert any(group.glob("weir-lab-*"))
            assert not any(group.glob(f"weir-lab-{os.getpid()}-*"))
        except LabError as why:
            pytest.skip(str(why))
        finally:
            spinning.kill()
    assert limited < 0.3
