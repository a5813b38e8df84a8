# SPDX-License-Identifier: MIT
"""The installed service with its AppArmor profile in force: a kernel permits all that the service
does, and denies what it never does.

The kernel and systemd run in a virtual machine (guest.py). `make package VM=1` installs what that
needs. guest/scenario is what happens there.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from tests.e2e.certificates import HERE, make
from tests.e2e.running import TOP
from tests.package import guest
from tests.package.conftest import lay_out_source

SCENARIO = (guest.GUEST / "scenario").read_text()
MODELS = re.findall(r"(?m)^MODEL\((\w+)", (TOP / "src/model/models.def").read_text())


def steps() -> dict[str, list[str]]:
    """The names of the steps of each group, in the order of the scenario."""
    found: dict[str, list[str]] = {}
    group = ""
    for named, step in re.findall(r'(?m)^\s*(?:group=(\S+)|step "(.*?)")', SCENARIO):
        group = named or group
        if step:
            found.setdefault(group, []).append(step)
    day = found.pop("$1")
    return found | dict.fromkeys(MODELS, day)


@pytest.fixture(scope="module")
def transcript(built: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the virtual machine printed."""
    if os.geteuid() != 0:
        pytest.skip("only root can read all that a virtual machine boots from")
    if reason := guest.refusal():
        pytest.skip(reason)
    place = tmp_path_factory.mktemp("guest")
    payload = place / "payload"
    lay_out_source(payload / "source")
    for name in ("weir", "weir-lab"):
        (found,) = built.glob(f"{name}_*.deb")
        shutil.copy(found, payload / f"{name}.deb")
    (payload / "models").write_text("\n".join(MODELS))
    pair = make(place, "own", *HERE)
    shutil.copy(pair.certificate, payload / "cert.pem")
    shutil.copy(pair.key, payload / "key.pem")
    text = guest.boot(payload, place)
    assert "end of the scenario" in text, text
    return text


@pytest.mark.parametrize("group", steps())
def test_a_kernel_that_enforces_the_profile(transcript: str, group: str) -> None:
    failed = re.findall(rf"(?m)^not ok {group}:.*\n(?:    .*\n)*", transcript)
    assert not failed, "".join(failed)
    assert re.findall(rf"(?m)^ok {group}: (.*)$", transcript) == steps()[group]
