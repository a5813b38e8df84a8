# SPDX-License-Identifier: MIT
"""The packages that the tests of this folder install."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.running import TOP


@pytest.fixture(scope="session")
def built() -> Path:
    """The folder with the packages."""
    if not (shutil.which("dh") and shutil.which("dh_python3")):
        pytest.skip("debhelper and dh-python are not installed")
    done = subprocess.run(
        ["packaging/build-deb"], cwd=TOP, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return TOP / "build-deb"


def lay_out_source(folder: Path) -> None:
    """The part of the source that the tests of the packages use."""
    shutil.copytree(TOP / "packaging/debian", folder / "debian")
    recorded = "lab/tests/sweeps/nginx-close.jsonl.xz"
    (folder / recorded).parent.mkdir(parents=True)
    shutil.copy(TOP / recorded, folder / recorded)
