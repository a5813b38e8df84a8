# SPDX-License-Identifier: MIT
"""Starts the server, waits until it accepts connections, and ends it by its process id."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import itertools
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from tests.waiting import LIMIT_S, wait_until

TOP = Path(__file__).resolve().parent.parent.parent
WEIR = Path(os.environ.get("WEIR", TOP / "build/weir")).resolve()

# Servers under test have their control sockets here, apart from those of any other server. The path
# is short because the address of a Unix socket has at most 107 bytes.
RUNTIME = Path(tempfile.mkdtemp(prefix="weir-run-"))
atexit.register(shutil.rmtree, RUNTIME, ignore_errors=True)

# By default every server would want the same address for its statistics page, so the page is off
# unless a test requests it. The variable overrides a configuration file: a test with such a file
# clears the variable.
os.environ["WEIR_STATS_LISTEN"] = "off"
# The processes of the master that are no workers, as the kernel names them.
STATISTICS = "weir-stats"  # of the statistics page
ERRAND = "weir-disk"  # looks at a disk, and ends


@functools.cache
def models() -> tuple[str, ...]:
    """The names of the concurrency models, as the server lists them. It is asked once: hundreds of
    tests want them while pytest collects."""
    listed = subprocess.run([WEIR, "models"], capture_output=True, text=True, check=True)
    lines = itertools.takewhile(str.strip, listed.stdout.splitlines())
    return tuple(line.split()[0] for line in lines)


def played() -> tuple[str, ...]:
    """The models that play the tests of every model: those that PLAYED_MODELS names, or all."""
    return tuple(os.environ.get("PLAYED_MODELS", "").split()) or models()


def playing(test: str, models: Sequence[str]) -> list[str]:
    """Those of `models` that play the test with this name: as many as PLAYED_EACH says, or all.

    The name chooses them. So every run is the same, and the tests are spread over the models.
    """
    count = min(int(os.environ.get("PLAYED_EACH", len(models))), len(models))
    first = zlib.crc32(test.encode())
    return [models[(first + i) % len(models)] for i in range(count)]


@dataclass(frozen=True)
class Process:
    """One process. Its start time distinguishes it from a later process with the same id."""

    pid: int
    started: str

    @classmethod
    def of(cls, pid: int) -> Process | None:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return None
        fields = stat.rpartition(")")[2].split()
        ended = fields[0] in "ZX"  # a zombie, or being reaped
        return None if ended else cls(pid, fields[19])

    @property
    def alive(self) -> bool:
        return Process.of(self.pid) == self

    def cpu_s(self) -> float:
        """User and system time of all threads."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def descriptors(self) -> dict[int, str]:
        """The open descriptors and what each refers to. Empty once the process has ended."""
        found = {}
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for fd in Path(f"/proc/{self.pid}/fd").iterdir():
                with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                    found[int(fd.name)] = os.readlink(fd)
        return found

    @property
    def comm(self) -> str:
        """The name that the kernel shows. Empty once the process has ended."""
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            return Path(f"/proc/{self.pid}/comm").read_text().rstrip("\n")
        return ""

    def sockets(self) -> set[str]:
        """The open sockets by inode. Several processes can hold the same socket."""
        return {link for link in self.descriptors().values() if link.startswith("socket:")}

    def of_threads(self, name: str) -> list[str]:
        """What /proc says of each thread in the file of this name. Those that end are left out."""
        found = []
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for thread in os.listdir(f"/proc/{self.pid}/task"):
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    found.append(Path(f"/proc/{self.pid}/task/{thread}/{name}").read_text())
        return found

    def children(self) -> list[Process]:
        pids = " ".join(self.of_threads("children")).split()
        return [child for pid in pids if (child := Process.of(int(pid)))]

    def descendants(self) -> list[Process]:
        found = []
        for child in self.children():
            found += [child, *child.descendants()]
        return found


@dataclass
class Server:
    """A running server."""

    popen: subprocess.Popen[bytes]
    urls: list[str]
    stderr: Path
    seen: set[Process] = field(default_factory=set)

    @property
    def url(self) -> str:
        return self.urls[0].rstrip("/")

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        assert parts.hostname
        assert parts.port
        return parts.hostname, parts.port

    @property
    def master(self) -> Process:
        master = Process.of(self.popen.pid)
        assert master
        return master

    def workers(self) -> list[Process]:
        """The children of the master that serve."""
        children = self.master.children()
        self.seen.update(children)
        return [child for child in children if child.comm not in (STATISTICS, ERRAND)]

    def messages(self) -> str:
        return self.stderr.read_text(errors="replace")

    def signal(self, number: signal.Signals) -> None:
        self.popen.send_signal(number)

    def wait(self) -> int:
        """Waits until a server that has been asked to stop has ended; returns its exit status."""
        try:
            return self.popen.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"it did not stop in {LIMIT_S} s: {self.messages()}") from None

    def kill(self) -> None:
        if master := Process.of(self.popen.pid):
            for process in [*master.descendants(), master]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
        self.popen.wait()

    def stop(self) -> None:
        """Stops the server as an operator does, and checks that no process is left.

        A server that the test has asked to stop may end meanwhile.
        """
        if master := Process.of(self.popen.pid):
            self.seen.update(master.descendants())
            self.signal(signal.SIGTERM)
        status = self.wait()
        assert status == 0, f"exit status {status}: {self.messages()}"
        # A process that looks at the disk may have a moment left.
        wait_until(lambda: not any(each.alive for each in self.seen), "every process has ended")


def _read_urls(fd: int, count: int | None) -> list[str]:
    """Reads what the server writes to --ready-fd, up to the end or up to `count` addresses."""
    text = b""
    until = time.monotonic() + LIMIT_S
    while (left := until - time.monotonic()) > 0 and text.count(b"\n") != count:
        if not select.select([fd], [], [], left)[0]:
            break
        if not (got := os.read(fd, 4096)):
            break
        text += got
    return text.decode().splitlines()


def start(
    arguments: list[str],
    stderr: Path,
    *,
    wrapper: tuple[str, ...] = (),
    stdout: Path | None = None,
    environment: Mapping[str, str] | None = None,
    descriptors: tuple[int, ...] = (),
    weir: Path = WEIR,
    addresses: int | None = None,
) -> Server:
    """Starts `weir serve` with these arguments and waits until it accepts connections.

    It then closes its end of the pipe that says so. A wrapper that stays may hold that end: then
    `addresses` is how many the server prints.
    """
    ready, low_end = os.pipe()
    # A service manager passes sockets from descriptor 3 on: keep away from those numbers.
    ready_end = fcntl.fcntl(low_end, fcntl.F_DUPFD_CLOEXEC, 100)
    os.close(low_end)
    try:
        with stderr.open("wb") as errors, (stdout or Path(os.devnull)).open("wb") as output:
            command = [*wrapper, str(weir), "serve", *arguments, "--ready-fd", str(ready_end)]
            popen = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                pass_fds=(ready_end, *descriptors),
                env={**os.environ, "RUNTIME_DIRECTORY": str(RUNTIME), **(environment or {})},
            )
    finally:
        os.close(ready_end)
    with os.fdopen(ready, "rb"):
        urls = _read_urls(ready, addresses)
    server = Server(popen, urls, stderr)
    if not urls:
        with contextlib.suppress(subprocess.TimeoutExpired):
            popen.wait(LIMIT_S)
        if popen.poll() is None:
            server.kill()
        raise AssertionError(f"it did not start: {server.messages()}")
    return server
