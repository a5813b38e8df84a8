# SPDX-License-Identifier: MIT
"""The i-th call of every kind fails, in every way it can, in every model.

A life of a server is recorded first, which tells how many calls of each kind there are. Then one
of them fails in each life. `make test` takes a sample, the same each time; FAULTS=all is everything
(`make faults`), and FAULTS=recv:7:EINTR is one.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.running import WEIR, models
from tests.faults.plan import KINDS, Fault
from tests.faults.scenario import LIBRARY, BrokenRuleError, Life, Scenario, make_site

CHOICE = os.environ.get("FAULTS", "")
AT_ONCE = 2
SETTLED_S = 10.0
# How many calls of a kind fail: while it starts, while it serves, while it stops.
SAMPLE = (3, 12, 2)
EVERYTHING = (150, 150, 50)

# The kernel's calls that a server makes and none of which is made to fail.
NEVER_FAIL = set(
    "clock_gettime exit _exit geteuid getpid getppid getrlimit64 kill munmap prctl"
    " sched_yield setitimer".split()
)
TAKEN_AS_AN_ANSWER = set("access connect faccessat sched_getaffinity unlink".split())
OF_ROOT_ONLY = set("setresgid setresuid setuid".split())
# Replacing the binary, and a service manager that listens: tests of their own have them fail.
# What `weir top`, `weir trace` and `weir load` ask of the kernel is of no server.
NOT_IN_THE_SCENARIO = set(
    "chdir dup2 execve getrusage ioctl lseek64 memfd_create readlinkat rename"
    " sched_setaffinity sendto sigaltstack".split()
)
LEFT_OUT = NEVER_FAIL | TAKEN_AS_AN_ANSWER | OF_ROOT_ONLY | NOT_IN_THE_SCENARIO
KERNEL_CALLS = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")

pytestmark = [
    pytest.mark.skipif(not LIBRARY.is_file(), reason=f"no {LIBRARY}: `make faults` builds it"),
    pytest.mark.timeout(3600 if CHOICE else 120),
]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if not WEIR.is_file():
        raise pytest.UsageError(f"no server at {WEIR}: `make faults`, or set WEIR")
    if "model" in metafunc.fixturenames:
        metafunc.parametrize("model", models(), scope="module")


@dataclass(frozen=True)
class Recorded:
    """An undisturbed life, and where it was lived."""

    model: str
    site: Path
    life: Life

    def run(self, fault: Fault) -> tuple[Fault, Life | None, str]:
        with tempfile.TemporaryDirectory(prefix="weir-fault-") as scratch:
            scenario = Scenario(self.model, self.site, Path(scratch), self.life.answers)
            try:
                return fault, scenario.run(fault), ""
            except BrokenRuleError as broken:
                return fault, None, str(broken)


@pytest.fixture(scope="module")
def site() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="weir-faults-") as name:
        yield make_site(Path(name) / "site")


@pytest.fixture(scope="module")
def recorded(model: str, site: Path) -> Recorded:
    # What was changed just now has no tag for a while, and the same one ever after.
    until = time.monotonic() + SETTLED_S
    answer = b""
    while b"ETag: " not in answer:
        assert time.monotonic() < until
        with tempfile.TemporaryDirectory(prefix="weir-faults-") as scratch:
            life = Scenario(model, site, Path(scratch), None).run()
        assert life.served
        assert life.cuts == life.errors == 0
        answer = life.answers[("/big.bin",)]
    return Recorded(model, site, life)


def spread(first: int, last: int, most: int) -> list[int]:
    """At most so many numbers from first to last, evenly, with both ends."""
    count = min(most, last - first + 1)
    if count <= 1:
        return [first] if count == 1 else []
    return [first + at * (last - first) // (count - 1) for at in range(count)]


def faults_of(kind: str, life: Life) -> list[Fault]:
    """What is tried of one kind: all failures of all calls, or each failure somewhere."""
    if ":" in CHOICE:
        return [fault] if (fault := Fault.read(CHOICE)).kind == kind else []
    ends = [0, life.ready[kind], life.stop[kind], life.end[kind]]
    most = EVERYTHING if CHOICE == "all" else SAMPLE
    calls = [
        call for phase in range(3) for call in spread(ends[phase] + 1, ends[phase + 1], most[phase])
    ]
    if CHOICE == "all":
        return [Fault(kind, call, failure) for call in calls for failure in KINDS[kind]]
    count = max(len(calls), len(KINDS[kind])) if calls else 0
    return [
        Fault(kind, calls[at % len(calls)], KINDS[kind][at % len(KINDS[kind])])
        for at in range(count)
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_fails_the_server_serves(recorded: Recorded, kind: str) -> None:
    faults = faults_of(kind, recorded.life)
    usual = sum(recorded.life.end.values())
    broken, failed = [], 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for fault, life, why in pool.map(recorded.run, faults):
            if life is None:
                broken.append(f"{fault}: {why}")
                continue
            failed += life.failed
            if life.failed and sum(life.end.values()) > 4 * usual + 2000:
                broken.append(f"{fault}: it spins: {life.end}")
    assert not broken, f"{len(broken)} of {len(faults)} broke a rule\n" + "\n".join(broken)
    assert failed or not faults, "none of these calls was made"


def symbols(path: Path, which: str) -> set[str]:
    listed = subprocess.run(["nm", "-D", which, path], capture_output=True, text=True, check=True)
    return {line.split()[-1].partition("@")[0] for line in listed.stdout.splitlines()}


@pytest.mark.skipif(not KERNEL_CALLS.is_file(), reason=f"no {KERNEL_CALLS}")
def test_no_call_is_forgotten() -> None:
    kernel = set(re.findall(r"__NR_(\w+)", KERNEL_CALLS.read_text()))
    used = symbols(WEIR, "--undefined-only") - symbols(LIBRARY, "--defined-only") - LEFT_OUT
    forgotten = {name for name in used if name.strip("_").removesuffix("_chk") in kernel}
    forgotten |= {name for name in used if name.removesuffix("64") in kernel}
    assert not forgotten, "neither in fail.c nor left out with a reason"
