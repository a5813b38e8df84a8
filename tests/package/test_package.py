# SPDX-License-Identifier: MIT
"""The Debian package: installed, configured, served from, rotated, upgraded under load, and purged,
on a machine of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.running import TOP
from tests.package.machine import Machine, machine, refusal
from tests.waiting import LIMIT_S, wait_until

needs_dpkg = pytest.mark.skipif(not shutil.which("dh"), reason="debhelper is not installed")
PID = "/run/weir/weir.pid"
LOG = "/var/log/weir/access.log"


@pytest.fixture(scope="session")
def package() -> Path:
    done = subprocess.run(
        ["packaging/build-deb"], cwd=TOP, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (built,) = (TOP / "build-deb").glob("weir_*.deb")
    return built


@pytest.fixture
def packages(package: Path, tmp_path: Path) -> Path:
    """A folder with the package, and with the same package of a later version."""
    folder = tmp_path / "packages"
    folder.mkdir()
    shutil.copy(package, folder / "weir.deb")
    unpacked = tmp_path / "unpacked"
    subprocess.run(["dpkg-deb", "--raw-extract", package, unpacked], check=True)
    control = unpacked / "DEBIAN/control"
    control.write_text(re.sub(r"(?m)^(Version: .*)$", r"\1.1", control.read_text()))
    later = folder / "later.deb"
    build = ["dpkg-deb", "--root-owner-group", "--build", str(unpacked), str(later)]
    subprocess.run(build, check=True, capture_output=True)
    return folder


@pytest.fixture
def bare(packages: Path, tmp_path: Path) -> Iterator[Machine]:
    if os.geteuid() != 0:
        pytest.skip("only root can install a package")
    if reason := refusal():
        pytest.skip(reason)
    place = tmp_path / "machine"
    place.mkdir()
    with machine(place, packages) as made:
        yield made


@needs_dpkg
@pytest.mark.skipif(not shutil.which("lintian"), reason="lintian is not installed")
def test_lintian_finds_nothing(package: Path) -> None:
    words = ["lintian", "--allow-root", "--fail-on", "error,warning", str(package)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_dpkg
def test_the_package_has_all_that_a_server_has(package: Path) -> None:
    listed = subprocess.run(
        ["dpkg-deb", "--contents", package], capture_output=True, text=True, check=True
    ).stdout
    files = {line.split()[5].removeprefix(".") for line in listed.splitlines()}
    assert {
        "/usr/bin/weir",
        "/etc/weir/weir.conf",
        "/etc/logrotate.d/weir",
        "/usr/share/apparmor/extra-profiles/usr.bin.weir",
        "/usr/share/weir/welcome/index.html",
        "/usr/share/man/man1/weir.1.gz",
        "/usr/share/man/man5/weir.conf.5.gz",
        "/usr/share/bash-completion/completions/weir",
        "/usr/share/zsh/site-functions/_weir",
        "/usr/share/fish/vendor_completions.d/weir.fish",
    } <= files
    assert any(name.endswith("systemd/system/weir.service") for name in files)
    assert any(name.endswith("systemd/system/weir.socket") for name in files)


def unit_command(bare: Machine) -> str:
    """The command with which systemd would start the service."""
    listed = bare.run("cat $(dpkg --listfiles weir | grep 'weir.service$')")
    found = re.search(r"(?m)^ExecStart=(.*)$", listed)
    assert found
    return found[1]


def start_service(bare: Machine) -> subprocess.Popen[str]:
    service = bare.start(f"exec {unit_command(bare)}")
    wait_until(
        lambda: service.poll() is not None or bare.attempt(f"test -s {PID}").returncode == 0,
        "the service has started",
    )
    assert service.poll() is None, service.communicate()
    return service


def fetch(bare: Machine, path: str = "/") -> str:
    return bare.run(f"curl --fail --silent --show-error http://127.0.0.1{path}")


def upgrade_under_load(bare: Machine) -> None:
    """New connections all the time, while the package is upgraded. None is refused."""
    before = bare.run(f"cat {PID}")
    load = bare.start(
        "echo $$ > /tmp/load; exec weir load http://127.0.0.1/a --users 4 --no-keepalive"
        " --warmup 0 --duration 10m --json"
    )
    wait_until(lambda: int(bare.run(f"wc -l < {LOG}")) > 10, "the load has begun")
    bare.run("dpkg -i /mnt/later.deb")
    wait_until(lambda: bare.run(f"cat {PID}") != before, "the next master serves")
    old = int(before)
    wait_until(
        lambda: bare.attempt(f"kill -0 {old}").returncode != 0, "the earlier master has ended"
    )
    served = int(bare.run(f"wc -l < {LOG}"))
    wait_until(lambda: int(bare.run(f"wc -l < {LOG}")) > served, "the next master answers the load")
    bare.run("kill -INT $(cat /tmp/load)")
    text, problems = load.communicate(timeout=LIMIT_S)
    (step,) = json.loads(text)["steps"]
    assert step["answers"] > 0, problems
    assert not any(step["errors"].values()), step["errors"]
    assert set(step["status"]) == {"200"}, step["status"]


@needs_dpkg
def test_the_first_days_of_an_installed_server(bare: Machine) -> None:
    untouched = bare.changed()
    bare.run("dpkg -i /mnt/weir.deb")
    bare.run("mkdir -p /run/weir /var/log/weir")  # systemd makes them for the service
    configuration = "/etc/weir/weir.conf"
    bare.run(f"weir check -c {configuration}")

    bare.run(f"echo 'rooot = /srv' >> {configuration}")
    refused = bare.attempt(f"weir check -c {configuration}")
    assert refused.returncode != 0
    assert re.search(r"weir\.conf:\d+: .*rooot.*root", refused.stdout), refused.stdout
    bare.run(f"sed -i '$d' {configuration}")

    service = start_service(bare)
    assert "weir is installed" in fetch(bare)

    # A site of the administrator, and a deployment by a link.
    bare.run("mkdir -p /srv/1 /srv/2 && echo one > /srv/1/a && echo two > /srv/2/a")
    bare.run(f"ln -s 1 /srv/now && sed -i 's#^root = .*#root = /srv/now#' {configuration}")
    bare.run(f"weir check -c {configuration} && weir reload $(cat {PID})")
    assert fetch(bare, "/a") == "one\n"
    bare.run("ln -s 2 /srv/next && mv -T /srv/next /srv/now")
    wait_until(lambda: fetch(bare, "/a") == "two\n", "the next release is served")

    lines = int(bare.run(f"wc -l < {LOG}"))
    if bare.attempt("command -v logrotate").returncode == 0:
        bare.run("logrotate --state /tmp/status --force /etc/logrotate.d/weir")
        wait_until(lambda: bare.attempt(f"test -e {LOG}").returncode == 0, "the log is new")
        fetch(bare, "/a")
        wait_until(lambda: int(bare.run(f"wc -l < {LOG}")) > 0, "the new log is written")
        assert int(bare.run(f"wc -l < {LOG}.1")) >= lines

    upgrade_under_load(bare)
    bare.run(f"weir stop $(cat {PID})")
    service.wait(LIMIT_S)
    service.communicate()
    bare.run("rm -r /srv/1 /srv/2 /srv/now && dpkg --purge weir")
    assert bare.changed() - untouched == set()


def test_the_source_archive_is_the_same_each_time() -> None:
    if not (TOP / ".git").exists():
        pytest.skip("this is not a clone")
    texts = [
        subprocess.run(
            ["packaging/build-dist"], cwd=TOP, capture_output=True, text=True, check=True
        )
        for _ in range(2)
    ]
    assert texts[0].stdout == texts[1].stdout
    assert texts[0].stdout.split()[1].startswith("weir-")
