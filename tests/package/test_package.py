# SPDX-License-Identifier: MIT
"""The Debian packages: installed, configured, served from, rotated, upgraded under load, and
purged, on a machine of its own."""

from __future__ import annotations

import json
import lzma
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.running import TOP
from tests.package.conftest import lay_out_source
from tests.package.machine import Machine, machine, refusal
from tests.waiting import LIMIT_S, wait_until

needs_dpkg = pytest.mark.skipif(
    not (shutil.which("dh") and shutil.which("dh_python3")),
    reason="debhelper and dh-python are not installed",
)
AUTOPKGTEST_LIMIT_S = 1800.0  # it builds an archive and installs from it; only a hang is longer
LOGROTATE = "/usr/sbin/logrotate"
PID = "/run/weir/weir.pid"
LOG = "/var/log/weir/access.log"


LAB_RUNS_WITH = "jinja2 matplotlib numpy rich scipy typer".split()  # Python packages of Debian
needs_python_packages = pytest.mark.skipif(
    not all(Path("/usr/lib/python3/dist-packages", name).exists() for name in LAB_RUNS_WITH),
    reason="the Python packages of Debian that weir-lab needs are not installed",
)


@pytest.fixture
def package(built: Path) -> Path:
    (found,) = built.glob("weir_*.deb")
    return found


@pytest.fixture
def lab_package(built: Path) -> Path:
    (found,) = built.glob("weir-lab_*_all.deb")
    return found


@pytest.fixture
def packages(package: Path, lab_package: Path, tmp_path: Path) -> Path:
    """A folder with the packages, with weir of a later version, and with recorded results."""
    folder = tmp_path / "packages"
    folder.mkdir()
    shutil.copy(package, folder / "weir.deb")
    shutil.copy(lab_package, folder / "weir-lab.deb")
    recorded = TOP / "lab/tests/sweeps/nginx-close.jsonl.xz"
    (folder / "results.jsonl").write_bytes(lzma.decompress(recorded.read_bytes()))
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
def test_lintian_finds_nothing(package: Path, lab_package: Path) -> None:
    files = [str(package), str(lab_package)]
    words = ["lintian", "--allow-root", "--fail-on", "error,warning", *files]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def files_of(package: Path) -> set[str]:
    listed = subprocess.run(
        ["dpkg-deb", "--contents", package], capture_output=True, text=True, check=True
    ).stdout
    return {line.split()[5].removeprefix(".") for line in listed.splitlines()}


@needs_dpkg
def test_the_package_has_all_that_a_server_has(package: Path) -> None:
    files = files_of(package)
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


@needs_dpkg
def test_the_package_of_the_lab_has_its_modules_its_manual_and_completion(
    package: Path, lab_package: Path
) -> None:
    files = files_of(lab_package)
    assert {
        "/usr/bin/weir-lab",
        "/usr/share/man/man1/weir-lab.1.gz",
        "/usr/share/bash-completion/completions/weir-lab",
        "/usr/share/zsh/site-functions/_weir-lab",
        "/usr/share/fish/vendor_completions.d/weir-lab.fish",
        "/usr/share/weir-lab/options",
        "/usr/share/weir-lab/bench/process.py",
    } <= files
    for source in (TOP / "lab/weir_lab").rglob("*"):
        if source.suffix in (".py", ".j2", ".css", ".js"):
            assert f"/usr/share/weir-lab/{source.relative_to(TOP / 'lab')}" in files
    shared = {name for name in files & files_of(package) if not name.endswith("/")}
    assert shared == set()


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
@pytest.mark.skipif(not Path(LOGROTATE).exists(), reason="logrotate is not installed")
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
    bare.run(f"{LOGROTATE} --state /tmp/status --force /etc/logrotate.d/weir")
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


@needs_dpkg
@needs_python_packages
@pytest.mark.skipif(not shutil.which("autopkgtest"), reason="autopkgtest is not installed")
def test_the_tests_that_come_with_the_packages_pass(bare: Machine, packages: Path) -> None:
    lay_out_source(packages / "source")
    bare.run("rm -f /var/lib/man-db/auto-update")  # its index takes minutes
    words = "autopkgtest /mnt/weir.deb /mnt/weir-lab.deb /mnt/source/ -- null"
    testing = bare.start(f"cd /tmp && exec {words} 2>&1")
    text, _ = testing.communicate(timeout=AUTOPKGTEST_LIMIT_S)
    assert testing.returncode == 0, text
    named = re.findall(r"(?m)^Tests: (\w+)", (TOP / "packaging/debian/tests/control").read_text())
    summary = text.partition("@ summary\n")[2]
    assert re.findall(r"(?m)^(\w+) +PASS$", summary) == named, text


@needs_dpkg
@needs_python_packages
def test_the_installed_lab_finds_the_installed_weir_and_writes_a_report(bare: Machine) -> None:
    untouched = bare.changed()
    bare.run("dpkg -i /mnt/weir.deb /mnt/weir-lab.deb")
    at_home = "cd /tmp && HOME=/tmp"  # a user's results and caches do not belong to the package
    version = bare.run(f"{at_home} weir-lab --version").split()
    assert version[0] == "weir-lab"
    installed = bare.run("dpkg-query --show --showformat='${Version}' weir-lab")
    assert installed.startswith(version[1])
    overview = bare.run(f"{at_home} weir-lab --help")
    for line in bare.run("cat /usr/share/weir-lab/options").splitlines():
        assert line.partition(":")[0] in overview
    assert "/usr/bin" in bare.run(f"{at_home} weir-lab compare --help")
    bare.run("mkdir /tmp/recorded && cp /mnt/results.jsonl /tmp/recorded")
    said = bare.run(f"{at_home} weir-lab report /tmp/recorded")
    assert "requests per second" in said
    page = bare.run("cat /tmp/recorded/report.html")
    assert "<svg" in page
    assert "held out" in page
    bare.run("dpkg --purge weir-lab weir")
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
