# SPDX-License-Identifier: MIT
"""The bill of materials names what is linked and embedded, and is the same each time."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from tests.e2e.running import TOP, WEIR

BUILD = WEIR.parent


def write() -> str:
    done = subprocess.run(
        [TOP / "tools/sbom.py", BUILD], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not (BUILD / "meson-info").exists(), reason="weir is not in a build folder")
def test_the_bill_names_each_library_once_and_is_reproducible() -> None:
    text = write()
    assert text == write()
    bill: dict[str, Any] = json.loads(text)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    assert bill["metadata"]["component"]["name"] == "weir"
    listed = [each["name"] for each in bill["components"]]
    assert listed == sorted(set(listed))
    assert {"openssl", "zlib", "liburing", "libseccomp", "jansson", "chart.js"} <= set(listed)
    assert not {"cmocka", "libnghttp2", "systemd", "threads"} & set(listed)
    assert all(each["version"][0].isdigit() and each["licenses"] for each in bill["components"])
    (ours,) = bill["dependencies"]
    assert ours["dependsOn"] == [each["bom-ref"] for each in bill["components"]]


def test_a_wrong_command_line_is_refused() -> None:
    done = subprocess.run([TOP / "tools/sbom.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "name the folder of a configured build" in done.stderr
