# SPDX-License-Identifier: MIT
"""Configurations that `weir check` refuses."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.test_check import weir


def refusal(site: Path, *, server: str = "", of_site: str = "") -> str:
    """The message of `weir check` about a file with these lines, without the path of the file."""
    conf = site.parent / "weir.conf"
    conf.write_text(f"[server]\n{server}\n[site a]\nroot = {site}\n{of_site}\n")
    done = weir("check", "-c", str(conf), cwd=site.parent)
    assert done.returncode != 0
    return done.stderr.replace(str(conf), "weir.conf")
