# SPDX-License-Identifier: MIT
"""Processes: start them pinned, read what their whole tree has used, end them by id.

This is the only module that knows /proc. CPU time comes from each process's own CPU clock
(clock_getcpuclockid(3): nanoseconds, every thread living or dead), not from the 10 ms ticks of
/proc/PID/stat, so that short rounds are exact. Children that have ended count through their
parent's cutime and cstime, which are exact sums too, but told in ticks.
"""

import contextlib
import ctypes
import os
import resource
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

CLOCK_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
CPU_CLOCK_OF_A_PROCESS = 2  # CPUCLOCK_SCHED, process-wide
PR_SET_PDEATHSIG = 1


Cpus = int | frozenset[int]  # one core, or several


class BenchError(Exception):
    """A measurement is not possible. The message is for the user."""


def ending_with_parent(number: signal.Signals) -> Callable[[], None]:
    """Returns what a new process must do before exec, to get the signal when its parent dies.

    The signal also comes when the thread that started it ends.
    """
    parent, prctl = os.getpid(), ctypes.CDLL(None).prctl

    def prepare() -> None:
        prctl(PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:
            os._exit(1)

    return prepare


def prepared(cpu: Cpus | None, nofile: int | None) -> Callable[[], None]:
    """Returns what a new process must do before exec: its cores, so many descriptors, its end."""
    end_with_parent = ending_with_parent(signal.SIGTERM)

    def prepare() -> None:
        end_with_parent()
        if cpu is not None:
            os.sched_setaffinity(0, {cpu} if isinstance(cpu, int) else cpu)
        if nofile is not None:
            hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
            limit = nofile if hard == resource.RLIM_INFINITY else min(nofile, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))

    return prepare


def start(
    argv: Sequence[str],
    *,
    cpu: Cpus | None = None,
    nofile: int | None = None,
    log: Path,
    cwd: Path | None = None,
    pass_fds: Sequence[int] = (),
    env: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Starts a program in the foreground with its output appended to `log`."""
    with log.open("ab") as out:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            cwd=cwd,
            pass_fds=pass_fds,
            env=env,
            process_group=0,  # Apache ends its whole group
            preexec_fn=prepared(cpu, nofile),
        )


@dataclass(frozen=True, kw_only=True)
class Done:
    """A program that has run and ended."""

    output: str
    errors: str
    status: int
    cpu_ns: int  # user and system, with those of its children


def run(
    argv: Sequence[str], *, cpu: Cpus, within_s: float, env: Mapping[str, str] | None = None
) -> Done:
    """Runs a program to its end, pinned to its cores. `env` replaces the environment.

    Raises:
        BenchError: it could not start, or did not end.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=within_s,
            check=False,
            env=env,
            preexec_fn=prepared(cpu, None),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BenchError(f"{argv[0]}: {error}") from error
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Done(
        output=done.stdout, errors=done.stderr, status=done.returncode, cpu_ns=round(used_s * 1e9)
    )


def _stat_fields(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the third (state) on; empty when the process is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return text.rpartition(")")[2].split()


def tree(root: int) -> list[int]:
    """The process and all its living descendants, root first."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (fields := _stat_fields(int(entry))):
            children.setdefault(int(fields[1]), []).append(int(entry))
    found = [root]
    for pid in found:
        found.extend(children.get(pid, ()))
    return found


def cpu_ns(root: int) -> int:
    """CPU time used so far by the process and all its descendants, user and system."""
    total = 0
    for pid in tree(root):
        with contextlib.suppress(OSError):
            total += time.clock_gettime_ns((~pid << 3) | CPU_CLOCK_OF_A_PROCESS)
        if fields := _stat_fields(pid):
            total += (int(fields[13]) + int(fields[14])) * CLOCK_TICK_NS
    return total


def settle(root: int) -> None:
    """Waits until no process of the tree starts or ends, for half a second at most.

    The time of a process for one connection counts once its parent has waited for it.
    """
    end = time.monotonic() + 0.5
    last: list[int] = []
    while (now := tree(root)) != last and time.monotonic() < end:
        last = now
        time.sleep(0.01)


def memory_kib(root: int) -> float:
    """Proportional set size of the whole tree: shared pages are counted once."""
    total = 0
    for pid in tree(root):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
    return float(total)


def busy_ns(cpu: int) -> int:
    """Time that one core has spent on anything but idling, since boot; 10 ms ticks."""
    for line in Path("/proc/stat").read_text().splitlines():
        if line.startswith(f"cpu{cpu} "):
            user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, line.split()[1:9])
            return (user + nice + system + irq + softirq + steal) * CLOCK_TICK_NS
    raise BenchError(f"/proc/stat does not list core {cpu}")


def threads(root: int) -> list[int]:
    """The thread ids of the whole tree."""
    return [int(t) for pid in tree(root) for t in os.listdir(f"/proc/{pid}/task")]


def is_traced(tid: int) -> bool:
    """Whether a tracer has attached to this thread."""
    for line in Path(f"/proc/{tid}/status").read_text().splitlines():
        if line.startswith("TracerPid:"):
            return line.split()[1] != "0"
    return False


def wait_until(condition: Callable[[], bool], what: str, deadline_s: float = 10.0) -> None:
    """Polls until true.

    Raises:
        BenchError: not within the deadline.
    """
    end = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > end:
            raise BenchError(f"{what}: not within {deadline_s:.0f} s")
        time.sleep(0.005)


def wait_until_readable(file: IO[str], deadline_s: float, what: str) -> None:
    """Waits for a line or for the end of the file.

    Raises:
        BenchError: neither within the deadline.
    """
    if not select.select([file], [], [], deadline_s)[0]:
        raise BenchError(f"{what} said nothing for {deadline_s:.0f} s")


def stop(process: subprocess.Popen[bytes], grace_s: float = 3.0) -> None:
    """Ends a process and its descendants: by SIGTERM, then by SIGKILL."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(grace_s)
    except subprocess.TimeoutExpired:
        family = tree(process.pid)
        process.kill()
        process.wait()
        # The master dies first: it would replace a worker that dies before it.
        for pid in family[1:]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
