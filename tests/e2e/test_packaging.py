# SPDX-License-Identifier: MIT
"""The unit files: systemd accepts them and finds the service well confined."""

from __future__ import annotations

import re
import shutil
import signal
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


def test_the_service_starts_when_its_addresses_and_folders_are_there() -> None:
    text = (TOP / "packaging/weir.service").read_text()
    after = " ".join(re.findall(r"^After=(.*)$", text, re.MULTILINE)).split()
    assert {"network-online.target", "remote-fs.target"} <= set(after)
    assert re.search(r"^Wants=network-online\.target$", text, re.MULTILINE)


@needs_systemd
def test_systemd_finds_the_service_well_confined(units: Path) -> None:
    done = analyze(
        "security", "--offline=yes", f"--threshold={EXPOSURE_MOST}", str(units / "weir.service")
    )
    if "Unknown" in done.stderr or "unrecognized option" in done.stderr:
        pytest.skip("this systemd-analyze looks at running services only")
    assert done.returncode == 0, done.stdout + done.stderr


def script_of(name: str, pid_file: Path, program: Path) -> str:
    """The lines of a maintainer script, or of a rotation, that send a signal."""
    text = (TOP / "packaging/debian" / name).read_text()
    found = re.search(r"^\s*if .*?^\s*fi$", text, re.MULTILINE | re.DOTALL)
    assert found
    script = found[0].replace("/run/weir/weir.pid", str(pid_file))
    return script.replace("/usr/bin/weir", str(program))


def pending(pid: int) -> int:
    """The signals that a process has been sent and has not taken, as bits."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"^ShdPnd:\s*(\w+)", status, re.MULTILINE)
    assert found
    return int(found[1], 16)


@pytest.mark.skipif(not shutil.which("start-stop-daemon"), reason="there is no dpkg here")
@pytest.mark.parametrize("name", ["weir.logrotate", "weir.postinst"])
def test_root_signals_no_process_but_weir(name: str, tmp_path: Path) -> None:
    """The user of the service can write the pid file, and root reads it."""
    pid_file, sleep = tmp_path / "weir.pid", Path(shutil.which("sleep") or "").resolve()
    blocked = {signal.SIGUSR1, signal.SIGUSR2}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    other = subprocess.Popen([sleep, "600"])
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    try:
        pid_file.write_text(f"{other.pid}\n")
        for program in (WEIR, sleep):
            arguments = ["sh", "-ec", script_of(name, pid_file, program), "sh", "configure", "0.1"]
            done = subprocess.run(arguments, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            assert (pending(other.pid) != 0) == (program == sleep)
    finally:
        other.kill()
        other.wait()


def test_the_units_name_existing_commands() -> None:
    text = (TOP / "packaging/weir.service").read_text()
    listed = subprocess.run([WEIR, "help"], capture_output=True, text=True, check=True).stdout
    commands = re.findall(r"^Exec\w+=/usr/bin/weir (\w+)", text, re.MULTILINE)
    assert commands == ["serve", "reload"]
    for command in commands:
        assert f"weir {command}" in listed


def test_the_service_has_the_pid_file_that_the_scripts_read() -> None:
    """Also with a weir.conf that has no pid-file. Otherwise a rotation moves a log to which the
    server then writes on."""
    text = (TOP / "packaging/weir.service").read_text()
    (name,) = re.findall(r"^ExecStart=.* --pid-file (\S+)$", text, re.MULTILINE)
    (folder,) = re.findall(r"^RuntimeDirectory=(.*)$", text, re.MULTILINE)
    assert name == f"/run/{folder}/weir.pid"
    for script in ("weir.logrotate", "weir.postinst"):
        assert f"--pidfile {name} " in (TOP / "packaging/debian" / script).read_text()
