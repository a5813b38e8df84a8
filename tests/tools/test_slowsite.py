# SPDX-License-Identifier: MIT
"""A run beside a slow disk measures both sites. No test judges a figure."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench import slowsite
from bench.process import BenchError
from bench.slowdisk import SlowDisk, SlowDiskError

TOP = Path(__file__).resolve().parent.parent.parent
WEIR = Path(os.environ.get("WEIR", TOP / "build/weir")).resolve()
QUICK = slowsite.Setting(weir=WEIR, delay_s=0.01, slow_clients=2, clients=2, seconds=1)


@pytest.mark.skipif(not WEIR.exists(), reason="weir is not built")
def test_a_run_measures_both_sites() -> None:
    try:
        found = slowsite.measure(QUICK, "epoll")
    except BenchError as reason:
        if "/dev/fuse" not in str(reason):
            raise
        pytest.skip(str(reason))
    assert found.alone.per_s > 0
    assert found.slow.refused == 0


def test_there_are_files_for_all_requests_of_the_slow_clients() -> None:
    assert QUICK.files == 2 * (100 + 10)


def test_a_disk_that_cannot_be_mounted_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_source: Path, _mountpoint: Path) -> SlowDisk:
        raise SlowDiskError("no slow disk can be mounted here: Operation not permitted")

    monkeypatch.setattr(SlowDisk, "mount", refuse)
    with pytest.raises(BenchError, match=r"not permitted\. A slow disk needs /dev/fuse"):
        slowsite.measure(QUICK, "epoll")
