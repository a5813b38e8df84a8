#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a bill of materials: what weir is built from, as CycloneDX 1.5 in JSON.

    tools/sbom.py BUILD >weir.cdx.json

Meson knows the libraries of a configured build. The same build and commit give the same bytes: the
text has no time, and its serial number is made from its content. It lists what is linked and what
is embedded, and not what a library itself needs.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parent.parent
CHART = Path("/usr/share/javascript/chart.js/chart.min.js")
ONLY_TESTS = {"cmocka", "libnghttp2", "systemd", "threads"}  # not in the program
LICENCES = {
    "chart.js": "MIT",
    "jansson": "MIT",
    "libbrotlienc": "MIT",
    "libcrypt": "LGPL-2.1-or-later",
    "liburing": "MIT",
    "libseccomp": "LGPL-2.1-only",
    "libzstd": "BSD-3-Clause",
    "ncursesw": "X11-distribute-modifications-variant",
    "openssl": "Apache-2.0",
    "zlib": "Zlib",
}


def introspect(build: Path, what: str) -> Any:  # noqa: ANN401
    words = ["meson", "introspect", f"--{what}", str(build)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def component(name: str, version: str) -> dict[str, Any]:
    made: dict[str, Any] = {
        "type": "library",
        "bom-ref": f"{name}@{version}",
        "name": name,
        "version": version,
        "purl": f"pkg:generic/{name}@{version}",
    }
    if licence := LICENCES.get(name):
        made["licenses"] = [{"license": {"id": licence}}]
    return made


def chart() -> dict[str, Any] | None:
    """The chart library, which the program embeds. Its file begins with its version."""
    if not CHART.exists():
        return None
    found = re.search(r"Chart\.js v([\d.]+)", CHART.read_text(errors="replace")[:500])
    return component("chart.js", found[1] if found else "unknown")


def components(dependencies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each library once, by name. Meson lists some twice, and some that were not found."""
    found = {
        str(each["name"]): component(str(each["name"]), str(each["version"]))
        for each in dependencies
        if each["name"] not in ONLY_TESTS
        and not str(each["name"]).startswith(("dep", "_"))
        and each.get("version") not in (None, "", "unknown", "undefined", "none")
    }
    if embedded := chart():
        found["chart.js"] = embedded
    return [found[name] for name in sorted(found)]


def bill(build: Path) -> dict[str, Any]:
    project = introspect(build, "projectinfo")
    listed = components(introspect(build, "dependencies"))
    commit = subprocess.run(
        [TOP / "packaging/commit"], capture_output=True, text=True, check=True
    ).stdout.strip()
    version = str(project["version"])
    ours = {
        "type": "application",
        "bom-ref": f"weir@{version}",
        "name": "weir",
        "version": version,
        "purl": f"pkg:generic/weir@{version}",
        "licenses": [{"license": {"id": "MIT"}}],
        "properties": [{"name": "weir:commit", "value": commit}],
    }
    depends = [{"ref": ours["bom-ref"], "dependsOn": [each["bom-ref"] for each in listed]}]
    content = {
        "metadata": {"component": ours},
        "components": listed,
        "dependencies": depends,
    }
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(content, sort_keys=True))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{number}",
        "version": 1,
        **content,
    }


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("sbom: name the folder of a configured build: tools/sbom.py BUILD")
    json.dump(bill(Path(sys.argv[1])), sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
