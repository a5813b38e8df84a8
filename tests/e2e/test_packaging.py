# SPDX-License-Identifier: MIT
"""The unit files: systemd accepts them and finds the service well confined."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.running import TOP, WEIR
from tests.waiting import LIMIT_S

EXPOSURE_MOST = 20  # tenths of a point; 100 is a service without any confinement

needs_systemd = pytest.mark.skipif(
    not shutil.which("systemd-analyze"), reason="there is no systemd-analyze here"
)


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """The unit files with the path of the built server: systemd checks that the program exists."""
    for name in ("weir.service", "weir.socket"):
        text = (TOP / "packaging" / name).read_text()
        (tmp_path / name).write_text(text.replace("/usr/bin/weir", str(WEIR)))
    return tmp_path


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemd-analyze", "--no-pager", *arguments],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


@needs_systemd
def test_systemd_accepts_the_units(units: Path) -> None:
    done = analyze("verify", "--man=no", str(units / "weir.service"), str(units / "weir.socket"))
    said = [line for line in done.stderr.splitlines() if "weir." in line]
    assert done.returncode == 0, done.stderr
    assert said == []


@needs_systemd
def test_systemd_finds_the_service_well_confined(units: Path) -> None:
    done = analyze(
        "security", "--offline=yes", f"--threshold={EXPOSURE_MOST}", str(units / "weir.service")
    )
    if "Unknown" in done.stderr or "unrecognized option" in done.stderr:
        pytest.skip("this systemd-analyze looks at running services only")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_units_name_existing_commands() -> None:
    text = (TOP / "packaging/weir.service").read_text()
    listed = subprocess.run([WEIR, "help"], capture_output=True, text=True, check=True).stdout
    commands = re.findall(r"^Exec\w+=/usr/bin/weir (\w+)", text, re.MULTILINE)
    assert commands == ["serve", "reload"]
    for command in commands:
        assert f"weir {command}" in listed
