# SPDX-License-Identifier: MIT
"""Without a package: the files that `make install` installs and `make uninstall` removes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.command import run
from tests.e2e.running import WEIR

BUILD = WEIR.parent
INSTALLED = {
    "bin/weir",
    "share/man/man1/weir.1",
    "share/man/man5/weir.conf.5",
    "share/bash-completion/completions/weir",
    "share/zsh/site-functions/_weir",
    "share/fish/vendor_completions.d/weir.fish",
    "share/doc/weir/weir.conf.example",
}


def files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if not path.is_dir()}


@pytest.mark.skipif(not shutil.which("meson"), reason="meson is not installed")
@pytest.mark.skipif(not (BUILD / "build.ninja").exists(), reason="this weir was not built here")
def test_all_that_is_installed_is_removed_again(tmp_path: Path) -> None:
    root = tmp_path / "root"
    log = BUILD / "meson-logs/install-log.txt"
    earlier = log.read_bytes() if log.exists() else None
    try:
        run(["meson", "install", "-C", str(BUILD), "--no-rebuild", "--destdir", str(root)])
        installed = {str(path) for path in files(root)}
        for name in INSTALLED:
            assert any(path.endswith(f"/{name}") for path in installed), name
        assert any(path.endswith("systemd/system/weir.service") for path in installed)
        run(["env", "-C", str(BUILD), "meson", "--internal", "uninstall"])
        assert files(root) == set()
    finally:
        if earlier is not None:
            log.write_bytes(earlier)
