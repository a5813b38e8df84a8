# SPDX-License-Identifier: MIT
"""The server of a soak: what can happen to it, and what it holds.

Every action works on the running master, which changes with each upgrade.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import resource
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.running import ERRAND, STATISTICS, Process, Server, start
from tests.e2e.statistics import Numbers, read
from tests.waiting import wait_until

PR_SET_CHILD_SUBREAPER = 36
LOG_DISK = "64m"
LINE = re.compile(
    rb'\S+ - - \[[^\]]+\] "(?:[^"\\]|\\.)*" (\d{3}) (?:\d+|-) "[^"]*" "[^"]*" [0-9a-f]{16}'
)
MAPPING = re.compile(r"[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \d+ *(.*)")  # its name, in smaps
STATISTICS_MAPPINGS = ("/dev/shm/weir-", "/memfd:weir ")
MARK = re.compile(rb'"GET [^" ]*\?soak=([a-z]+) ')
CONFIGURATION = """\
[server]
model = {model}
listen = {listen}
cache-size = 64M
access-log = {log}
header-timeout = 20s
idle-timeout = 30s
send-timeout = 30s
drain-timeout = 20s
[site soak]
root = {root}
"""


@dataclass(frozen=True)
class Memory:
    """Resident memory. That of the statistics has its size from the start of the server. A page of
    it becomes resident when a thread first counts there."""

    own_kib: int
    statistics_kib: int


def adopt_orphans() -> None:
    """Makes this process the parent of each master that an upgrade has started."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def limit_descriptors(process: Process, soft: int) -> None:
    """Sets the soft limit of a process that may end meanwhile.

    The program runs as the user of the process: without CAP_SYS_RESOURCE, as in many containers,
    root may not change the limits of another user's process.
    """
    command = ["prlimit", f"--pid={process.pid}", f"--nofile={soft}:"]
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        status = Path(f"/proc/{process.pid}/status").read_text()
        owner = [re.search(rf"^{key}:\s+(\d+)", status, re.MULTILINE) for key in ("Uid", "Gid")]
        if os.geteuid() == 0 and owner[0] and owner[1]:
            as_owner = ["setpriv", f"--reuid={owner[0][1]}", f"--regid={owner[1][1]}"]
            command = [*as_owner, "--clear-groups", *command]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0 or "No such process" in done.stderr, done.stderr


@dataclass
class Lines:
    """What the access log holds so far."""

    whole: int = 0
    marked: Counter[str] = field(default_factory=Counter)
    broken: list[bytes] = field(default_factory=list)

    def add(self, data: bytes) -> None:
        for line in data.splitlines():
            if not line:
                continue  # a writer that died, or had to wait long, may leave an empty line
            if not LINE.fullmatch(line):
                self.broken.append(line[:200])
                continue
            self.whole += 1
            if found := MARK.search(line):
                self.marked[found[1].decode()] += 1


class Subject:
    """A running server with a log on a small disk of its own."""

    def __init__(self, model: str, root: Path, folder: Path) -> None:
        self.model = model
        self.root = root
        self.folder = folder
        self.logs = folder / "logs"
        self.logs.mkdir()
        self.disk = os.geteuid() == 0
        if self.disk:
            command = ["mount", "-t", "tmpfs", "-o", f"size={LOG_DISK}", "none", str(self.logs)]
            subprocess.run(command, check=True)
        self.log = self.logs / "access.log"
        self.configuration = folder / "weir.conf"
        self.lines = Lines()
        self.listen = "127.0.0.1:0"
        self.configure()
        self.server: Server = start(["-c", str(self.configuration)], folder / "messages")
        self.listen = f"127.0.0.1:{self.server.address[1]}"
        self.configure()
        self.pid = self.server.popen.pid
        self.usual_processes = len(self.processes())
        self.upgrades = 0

    # ---- what can happen ----

    def configure(self, extra: str = "") -> None:
        fresh = self.folder / "weir.conf.new"
        fresh.write_text(
            CONFIGURATION.format(model=self.model, listen=self.listen, log=self.log, root=self.root)
            + extra
        )
        fresh.rename(self.configuration)

    def reload(self, *, broken: bool = False) -> None:
        name = "reloads_failed" if broken else "reloads"
        before = self.numbers()["counters"][name]
        if broken:
            self.configure("no-such-setting = 1\n")
        os.kill(self.pid, signal.SIGHUP)
        wait_until(lambda: self.numbers()["counters"][name] > before, self.server.messages)
        self.configure()

    def upgrade(self) -> None:
        """Replaces the master. Returns when the old one has ended."""
        self.upgrades += 1
        os.kill(self.pid, signal.SIGUSR2)
        pattern = r"SIGUSR2: started \S+ as process (\d+)"
        found: list[str] = []

        def started() -> bool:
            found[:] = re.findall(pattern, self.server.messages())
            return len(found) == self.upgrades

        wait_until(started, self.server.messages)
        self.await_end()
        self.pid = int(found[-1])

    def await_end(self) -> None:
        if self.pid == self.server.popen.pid:
            status = self.server.wait()
        else:
            status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        assert status == 0, f"exit status {status}: {self.server.messages()}"

    def kill_worker(self, choice: float) -> None:
        if workers := self.workers():
            with contextlib.suppress(ProcessLookupError):
                os.kill(workers[int(choice * len(workers))].pid, signal.SIGKILL)

    def rotate(self) -> None:
        """Renames the log, lets the server open another, and counts the lines of the old one."""
        old = self.logs / "access.log.1"
        self.log.rename(old)
        os.kill(self.pid, signal.SIGUSR1)
        wait_until(self.log.exists, "there is a new log")
        # The processes of earlier generations close the old log, too.
        wait_until(lambda: not self.holders(old), lambda: f"nobody writes into {old}")
        self.lines.add(old.read_bytes())
        old.unlink()

    def holders(self, path: Path) -> list[Process]:
        return [each for each in self.processes() if str(path) in each.descriptors().values()]

    @contextlib.contextmanager
    def few_descriptors(self, choice: float) -> Iterator[None]:
        """Leaves one worker almost no free descriptor."""
        workers = self.workers()
        worker = workers[int(choice * len(workers))] if workers else None
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]  # the server inherited it
        if worker:
            limit_descriptors(worker, max(worker.descriptors(), default=0) + 4)
        try:
            yield
        finally:
            if worker:
                limit_descriptors(worker, soft)

    # ---- what it holds ----

    def master(self) -> Process:
        master = Process.of(self.pid)
        assert master, self.server.messages()
        return master

    def processes(self) -> list[Process]:
        return [self.master(), *self.master().descendants()]

    def workers(self) -> list[Process]:
        return [each for each in self.master().children() if each.comm not in (STATISTICS, ERRAND)]

    def numbers(self) -> Numbers:
        return read(self.pid)

    def memory(self) -> Memory:
        """The resident memory of all processes. Shared pages are divided among them."""
        pages: Counter[bool] = Counter()
        for process in self.processes():
            with contextlib.suppress(OSError):
                of_statistics = False
                for line in Path(f"/proc/{process.pid}/smaps").read_text().splitlines():
                    if begins := MAPPING.match(line):
                        of_statistics = begins[1].startswith(STATISTICS_MAPPINGS)
                    elif line.startswith("Pss:"):
                        pages[of_statistics] += int(line.split()[1])
        return Memory(own_kib=pages[False], statistics_kib=pages[True])

    def descriptors(self) -> int:
        return sum(len(process.descriptors()) for process in self.processes())

    def stop(self) -> list[str]:
        """Stops it. Returns what it left behind."""
        seen = self.processes()
        os.kill(self.pid, signal.SIGTERM)
        self.await_end()
        left = [f"process {each.pid} still runs" for each in seen if each.alive]
        segments = Path("/dev/shm").glob(f"weir-{os.geteuid()}-*")
        pids = {str(self.pid), str(self.server.popen.pid)}
        left += [f"{each} is left" for each in segments if each.name.split("-")[2] in pids]
        children = Process(os.getpid(), "").children()
        zombies = [each for each in seen if each.pid in {child.pid for child in children}]
        left += [f"process {each.pid} is a zombie" for each in zombies]
        self.lines.add(self.log.read_bytes())
        if self.disk:
            subprocess.run(["umount", str(self.logs)], check=True)
        return left
