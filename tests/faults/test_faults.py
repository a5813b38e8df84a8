# SPDX-License-Identifier: MIT
"""The i-th call of every kind fails, in every way in which it can fail, in every model.

The test first records an undisturbed life of a server, which shows how many calls of each kind
there are. In each further life one call fails. `make test-all` takes a sample, the same each time.
FAULTS=all takes every call (`make faults`). FAULTS=recv:7:EINTR takes one.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.certificates import Pair, make
from tests.e2e.running import WEIR, models
from tests.faults.plan import KINDS, Fault
from tests.faults.scenario import (
    BIG_REQUEST,
    LIBRARY,
    BrokenRuleError,
    Life,
    Scenario,
    SealedScenario,
    make_site,
)
from tests.waiting import wait_until

CHOICE = os.environ.get("FAULTS", "")
AT_ONCE = 2
# How many calls of a kind fail while the server starts, while it serves, and while it stops.
SAMPLE = (3, 12, 2)
EVERYTHING = (150, 150, 50)
# How many calls fail while the server serves over TLS. The models share the ways to fail.
OVER_TLS = {
    "accept": 1,
    "epoll_ctl": 1,
    "memory": 5,
    "open": 1,
    "pread": 1,
    "recv": 2,
    "send": 2,
    "sendmsg": 1,
    "stat": 1,
}

# System calls of a server that no test makes fail.
NEVER_FAIL = set(
    "clock_gettime exit _exit geteuid getpid getppid getrlimit64 kill munmap prctl"
    " sched_yield setitimer".split()
)
A_FAILURE_IS_AN_ANSWER = set(
    "access connect faccessat fstatfs64 readahead rmdir sched_getaffinity unlink unlinkat".split()
)
OF_ROOT_ONLY = set("setresgid setresuid setuid".split())
# Other tests make an upgrade and a message to the service manager fail.
# `weir top`, `weir trace` and `weir load` make some of these calls. They are not servers. A server
# that makes a certificate for this machine, or ticket keys, makes others (tests/unit/tls). The
# thread that compresses files lowers its priority, if it can. Only a folder in which several files
# were loaded is read for its siblings.
NOT_IN_THE_SCENARIO = set(
    "chdir dup2 execve flock fstatfs fsync getrusage ioctl lseek64 memfd_create mlock readlinkat"
    " rename renameat sched_setaffinity sendto setpriority sigaltstack".split()
)
LEFT_OUT = NEVER_FAIL | A_FAILURE_IS_AN_ANSWER | OF_ROOT_ONLY | NOT_IN_THE_SCENARIO
KERNEL_CALLS = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")

pytestmark = [
    pytest.mark.skipif(not LIBRARY.is_file(), reason=f"no {LIBRARY}: `make faults` builds it"),
    pytest.mark.timeout(7200 if CHOICE else 1800),
]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if not WEIR.is_file():
        raise pytest.UsageError(f"no server at {WEIR}: `make faults`, or set WEIR")
    if "model" in metafunc.fixturenames:
        metafunc.parametrize("model", models(), scope="module")


@dataclass(frozen=True)
class Recorded:
    """An undisturbed life, with its model and its site."""

    model: str
    site: Path
    life: Life
    pair: Pair | None = None  # the server speaks TLS

    def run(self, fault: Fault) -> tuple[Fault, Life | None, str]:
        with tempfile.TemporaryDirectory(prefix="weir-fault-") as scratch:
            scenario = scenario_of(self.model, self.site, Path(scratch), self.life, self.pair)
            try:
                return fault, scenario.run(fault), ""
            except BrokenRuleError as broken:
                return fault, None, str(broken)


def scenario_of(
    model: str, site: Path, scratch: Path, recorded: Life | None, pair: Pair | None
) -> Scenario:
    answers = recorded.answers if recorded else None
    if pair:
        return SealedScenario(model, site, scratch, answers, pair)
    return Scenario(model, site, scratch, answers)


@pytest.fixture(scope="module")
def site() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="weir-faults-") as name:
        yield make_site(Path(name) / "site")


def record(model: str, site: Path, pair: Pair | None = None) -> Recorded:
    def live() -> Life | None:
        with tempfile.TemporaryDirectory(prefix="weir-faults-") as scratch:
            life = scenario_of(model, site, Path(scratch), None, pair).run()
        assert life.served
        assert life.cuts == life.errors == 0
        # A file that has just changed has no entity tag yet. Later its tag stays the same.
        return life if b"ETag: " in life.answers[BIG_REQUEST] else None

    life = wait_until(live, "an answer with an entity tag")
    assert life
    return Recorded(model, site, life, pair)


@pytest.fixture(scope="module")
def recorded(model: str, site: Path) -> Recorded:
    return record(model, site)


@pytest.fixture(scope="module")
def recorded_over_tls(model: str, site: Path, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return record(model, site, make(tmp_path_factory.mktemp("pair"), "a", "localhost"))


def spread(first: int, last: int, most: int) -> list[int]:
    """At most `most` numbers from first to last, evenly spread, with both ends."""
    count = min(most, last - first + 1)
    if count <= 1:
        return [first] if count == 1 else []
    return [first + at * (last - first) // (count - 1) for at in range(count)]


def faults_of(kind: str, life: Life) -> list[Fault]:
    """The faults of one kind: all failures of all calls, or each failure at some call."""
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


def faults_over_tls(recorded: Recorded) -> list[Fault]:
    """Faults while the server serves. The next model has the next ways to fail."""
    if ":" in CHOICE:
        return [Fault.read(CHOICE)]
    turn = models().index(recorded.model)
    faults = []
    for kind, most in OVER_TLS.items():
        calls = spread(recorded.life.ready[kind] + 1, recorded.life.stop[kind], most)
        ways = KINDS[kind]
        faults += [
            Fault(kind, call, ways[(turn * most + at) % len(ways)]) for at, call in enumerate(calls)
        ]
    return faults


@pytest.mark.parametrize("kind", KINDS)
def test_the_server_keeps_serving_when_a_call_fails(recorded: Recorded, kind: str) -> None:
    check(recorded, faults_of(kind, recorded.life))


def test_a_server_of_tls_keeps_serving_when_a_call_fails(recorded_over_tls: Recorded) -> None:
    """One handshake may fail, or one connection end. All others get right answers."""
    check(recorded_over_tls, faults_over_tls(recorded_over_tls))


def check(recorded: Recorded, faults: list[Fault]) -> None:
    """Lives through each fault."""
    usual = sum(recorded.life.end.values())
    broken, failed = [], 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for fault, life, why in pool.map(recorded.run, faults):
            if life is None:
                broken.append(f"{fault}: {why}")
                continue
            failed += life.failed
            if life.failed and sum(life.end.values()) > 4 * usual + 2000:
                broken.append(f"{fault}: the server spins: {life.end}")
    assert not broken, f"{len(broken)} of {len(faults)} lives broke a rule\n" + "\n".join(broken)
    assert failed or not faults, "the server made none of these calls"


def symbols(path: Path, which: str) -> set[str]:
    listed = subprocess.run(["nm", "-D", which, path], capture_output=True, text=True, check=True)
    return {line.split()[-1].partition("@")[0] for line in listed.stdout.splitlines()}


@pytest.mark.skipif(not KERNEL_CALLS.is_file(), reason=f"no {KERNEL_CALLS}")
def test_every_system_call_of_the_server_can_fail_or_is_left_out() -> None:
    kernel = set(re.findall(r"__NR_(\w+)", KERNEL_CALLS.read_text()))
    used = symbols(WEIR, "--undefined-only") - symbols(LIBRARY, "--defined-only") - LEFT_OUT
    forgotten = {name for name in used if name.strip("_").removesuffix("_chk") in kernel}
    forgotten |= {name for name in used if name.removesuffix("64") in kernel}
    assert not forgotten, "these calls are neither in fail.c nor in LEFT_OUT"
