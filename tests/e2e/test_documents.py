# SPDX-License-Identifier: MIT
"""The configurations in the documents: weir check accepts each of them as it is written, where the
files and the folders exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.command import attempt
from tests.e2e import certificates
from tests.e2e.running import TOP, WEIR
from tests.e2e.test_auth import ALICE

PAGES = [TOP / "README.md", *sorted((TOP / "docs").glob("*.md"))]
HOSTS = ("shop.example.org", "staff.example.org", "docs.example.org")


def blocks() -> list[tuple[str, str]]:
    """Those that have a server and a site, and so are whole. Others are parts of one. The page
    from-nginx.md has a test of its own."""
    found = []
    for page in PAGES:
        if page.name == "from-nginx.md":
            continue
        for text in re.findall(r"^```ini\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL):
            if "[server]" in text and "[site " in text:
                found.append((page.name, text))
    return found


def lay_out(top: Path, text: str) -> str:
    """Makes what the text names below `top`, and returns the text with these paths."""
    text = re.sub(r"^user = .*\n", "", text, flags=re.MULTILINE)  # this machine may lack it
    text = re.sub(r"(?<== )/", f"{top}/", text)
    pair = certificates.make(top, "made", *HOSTS)
    for name, value in re.findall(r"^([\w-]+) = (.*)$", text, re.MULTILINE):
        path = top / value
        path.parent.mkdir(parents=True, exist_ok=True)
        if name in ("root", "error-pages"):
            path.mkdir(exist_ok=True)
        elif name == "auth":
            path.write_text(ALICE)
            path.chmod(0o640)
        elif name == "tls-certificate":
            path.write_bytes(pair.certificate.read_bytes())
        elif name == "tls-key":
            path.write_bytes(pair.key.read_bytes())
            path.chmod(0o600)
    return text


def test_there_are_whole_configurations() -> None:
    assert {"README.md", "configuration.md", "https.md", "passwords.md"} <= {
        page for page, _ in blocks()
    }


@pytest.mark.parametrize(("page", "text"), blocks(), ids=[page for page, _ in blocks()])
def test_check_accepts_the_configurations_of_the_documents(
    page: str, text: str, tmp_path: Path
) -> None:
    conf = tmp_path / "weir.conf"
    conf.write_text(lay_out(tmp_path, text))
    done = attempt([str(WEIR), "check", str(conf)])
    assert done.returncode == 0, f"{page}\n{text}\n{done.stdout}"
