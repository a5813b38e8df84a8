# SPDX-License-Identifier: MIT
"""A machine of its own for a test: the packages of this one, and nothing shared.

Its file system is an overlay over that of this machine, and is gone afterwards. Its network is a
loopback interface, so its ports are its own. No systemd runs in it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.command import attempt, run
from tests.e2e.running import Process
from tests.waiting import LIMIT_S

MAKE = """set -e
mount -t tmpfs none "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
mount --rbind /dev "$1/root/dev"
mount -t proc proc "$1/root/proc"
for folder in run tmp mnt dev/shm; do mount -t tmpfs none "$1/root/$folder"; done
mount --bind "$2" "$1/root/mnt"
ip link set lo up
echo made
exec chroot "$1/root" sleep infinity
"""
SEPARATE = ("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child")

# What the user who runs the tests has installed, or set, is not a part of that machine.
ENVIRONMENT = ("HOME=/root", "LANG=C.UTF-8", "PATH=/usr/sbin:/usr/bin:/sbin:/bin")
# What dpkg and its triggers write for every package.
OF_DPKG = ("var/lib/dpkg/", "var/cache/", "var/log/dpkg.log", "var/log/alternatives.log")


@dataclass(frozen=True)
class Machine:
    init: int  # the id, on this machine, of the process 1
    place: Path

    def words(self, command: str, *, root: bool = True) -> list[str]:
        enter = ["nsenter", f"--target={self.init}", "--mount", "--net", "--pid"]
        enter = ["env", "--ignore-environment", *ENVIRONMENT, *enter]
        return [*enter, *(["--root", "--wd"] if root else []), "sh", "-c", command]

    def start(self, command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.words(command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def attempt(self, command: str, *, root: bool = True) -> subprocess.CompletedProcess[str]:
        return attempt(self.words(command, root=root))

    def run(self, command: str, *, root: bool = True) -> str:
        return run(self.words(command, root=root))

    def changed(self) -> set[str]:
        """The files that differ from those of this machine, without those of dpkg itself."""
        listed = self.run(
            f"cd {self.place}/upper && find . -not -type d -printf '%P\\n'", root=False
        )
        return {path for path in listed.splitlines() if not path.startswith(OF_DPKG)}


def refusal() -> str:
    """Why such a machine cannot be made here. Empty: it can."""
    script = "mount -t tmpfs none /mnt && mkdir /mnt/a /mnt/b /mnt/c && mount -t overlay overlay"
    options = "-o lowerdir=/,upperdir=/mnt/a,workdir=/mnt/b /mnt/c && ip link set lo up"
    words = [*SEPARATE, "sh", "-c", f"{script} {options}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"no overlay and network of its own: {done.stderr}"


@contextmanager
def machine(place: Path, packages: Path) -> Iterator[Machine]:
    """`packages` is its /mnt."""
    words = [*SEPARATE, "sh", "-c", MAKE, "sh", str(place), str(packages)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        assert process.stdout.readline() == "made\n"
        outer = Process.of(process.pid)
        assert outer
        (init,) = outer.children()
        yield Machine(init.pid, place)
    finally:
        process.kill()
        process.wait(LIMIT_S)
        if process.stdout:
            process.stdout.close()
