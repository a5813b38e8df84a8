# SPDX-License-Identifier: MIT
"""Half of a CPU, where control groups can be made."""

import os
import subprocess
from pathlib import Path

import pytest

from weir_lab.rim import quota
from weir_lab.rim.errors import LabError


def group_of(pid: int) -> Path | None:
    """The group that the lab has made for the process."""
    for top in (quota.FIRST_VERSION, quota.SECOND_VERSION):
        for group in top.glob(f"weir-lab-{os.getpid()}-*"):
            if str(pid) in (group / "cgroup.procs").read_text().split():
                return group
    return None


def allowed(group: Path) -> float:
    """The cores that processes of the group may use."""
    if (group / "cpu.max").exists():
        quota_us, period_us = (group / "cpu.max").read_text().split()
    else:
        quota_us = (group / "cpu.cfs_quota_us").read_text()
        period_us = (group / "cpu.cfs_period_us").read_text()
    return int(quota_us) / int(period_us)


def test_a_process_is_limited_for_the_time_of_the_block() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as idle:
        try:
            with quota.limited(idle.pid, 0.2):
                group = group_of(idle.pid)
                assert group is not None
                assert allowed(group) == 0.2
            assert not group.exists()
            assert idle.poll() is None
        except LabError as why:
            pytest.skip(str(why))
        finally:
            idle.kill()


def test_a_machine_without_control_groups_is_known_before_a_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(quota, "FIRST_VERSION", tmp_path / "first")
    monkeypatch.setattr(quota, "SECOND_VERSION", tmp_path / "second")
    assert not quota.is_possible()
    with pytest.raises(LabError, match="no control group"), quota.limited(os.getpid(), 0.5):
        pass


@pytest.mark.parametrize("cores", [0.1, 0.32, 0.75, 2.0])
def test_a_short_period_holds_the_least_quota_of_the_kernel(cores: float) -> None:
    period_us = quota.short_period_us(cores)
    assert cores * period_us >= quota.QUOTA_MIN_US
    assert quota.SHORT_PERIOD_US <= period_us <= 10_000
