# SPDX-License-Identifier: MIT
"""The lab as a wheel: it installs with pip, holds all its files, and finds an installed weir."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parent.parent.parent
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("setuptools") is None or importlib.util.find_spec("pip") is None,
    reason="setuptools and pip are not installed",
)


def run(words: list[str], folder: Path, **variables: str) -> str:
    done = subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the lab. setuptools writes beside the source, so a copy is built."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in ("lab", "bench"):
        ignored = shutil.ignore_patterns("build", "*.egg-info", "__pycache__", "results", ".*")
        shutil.copytree(TOP / name, folder / name, ignore=ignored)
    build = ["wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", "made", "./lab"]
    run([*PIP, *build], folder)
    (wheel,) = (folder / "made").glob("weir_lab-*-none-any.whl")
    run([*PIP, "install", "--no-deps", "--no-index", "--target", "site", str(wheel)], folder)
    return folder / "site"


def test_the_wheel_holds_every_module_and_file_of_the_lab(installed: Path) -> None:
    for source in (TOP / "lab/weir_lab").rglob("*"):
        if source.suffix in (".py", ".j2", ".css", ".js"):
            assert (installed / source.relative_to(TOP / "lab")).exists(), source


def test_the_installed_lab_finds_the_installed_weir(installed: Path, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "weir").write_text("#!/bin/sh\n")
    (programs / "weir").chmod(0o755)
    ask = "from weir_lab.commands import options; print(options.__file__); print(options.BUILT)"
    path = f"{programs}:{os.environ['PATH']}"
    words = [sys.executable, "-c", ask]
    file, built = run(words, tmp_path, PATH=path, PYTHONPATH=str(installed)).splitlines()
    assert Path(file).is_relative_to(installed)
    assert Path(built) == programs.resolve()
    (tmp_path / "build").mkdir()
    shutil.copy(programs / "weir", tmp_path / "build/weir")
    assert run(words, tmp_path, PATH=path, PYTHONPATH=str(installed)).splitlines()[1] == "build"
    assert (installed / "bin/weir-lab").exists()
