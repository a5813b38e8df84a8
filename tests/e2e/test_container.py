# SPDX-License-Identifier: MIT
"""What a container gives a server: a part of the machine's CPUs, little shared memory, a file
system that cannot be written, system calls that it may not make."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.wire import connect

THREADS = re.compile(r"^model (\w+).* x (\d+) thread", re.M)
NEW_MOUNTS = ("unshare", "--mount") if os.geteuid() == 0 else ("unshare", "--mount", "-r")

one_model = pytest.mark.parametrize("model", ["percore"])
needs_mounts = pytest.mark.skipif(
    subprocess.run([*NEW_MOUNTS, "true"], capture_output=True, check=False).returncode != 0,
    reason="no mount namespace may be made here",
)
needs_two_cpus = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="there is one CPU, and no part of it to give"
)


def after(script: str) -> tuple[str, ...]:
    """What starts a program in a mount namespace of its own, after a script."""
    return (*NEW_MOUNTS, "sh", "-c", f'set -e; {script}; exec "$@"', "sh")


def groups(**quotas: str) -> tuple[str, ...]:
    """The same, with the control groups of a container, which has its own as the root. A process
    of a group below it is in the folder that /proc/self/cgroup names."""
    make = "mount -t tmpfs none /sys/fs/cgroup; cd /sys/fs/cgroup"
    own = "$(sed -n s/^0::.//p /proc/self/cgroup)"
    for place, quota in quotas.items():
        folder = f"./{own}" if place == "own" else "."
        make += f"; mkdir -p {folder}; echo '{quota}' >{folder}/cpu.max"
    return after(make)


@needs_mounts
@needs_two_cpus
@pytest.mark.parametrize("model", ["percore", "uring"])
@pytest.mark.parametrize(
    ("quota", "threads"),
    [
        ("100000 100000", 1),
        ("50000 100000", 1),
        ("150000 100000", 2),
        ("max 100000", 0),
        ("0 0", 0),
        ("much", 0),
    ],
)
def test_there_are_as_many_threads_as_the_quota_has_cpus(
    server: ServerFactory, quota: str, threads: int
) -> None:
    running = server(wrapper=groups(root=quota))
    ((_, count),) = THREADS.findall(running.messages())
    assert int(count) == (threads or len(os.sched_getaffinity(0)))


@needs_mounts
@needs_two_cpus
@pytest.mark.parametrize("model", ["auto"])
def test_with_one_cpu_of_many_there_is_one_loop(server: ServerFactory) -> None:
    running = server(wrapper=groups(root="100000 100000"))
    assert THREADS.findall(running.messages()) == [("epoll", "1")]


@needs_mounts
@needs_two_cpus
@one_model
def test_the_least_quota_on_the_way_to_the_root_counts(server: ServerFactory) -> None:
    running = server(wrapper=groups(own="400000 100000", root="100000 100000"))
    groups_differ = Path("/proc/self/cgroup").read_text().splitlines()[-1] != "0::/"
    ((_, count),) = THREADS.findall(running.messages())
    assert int(count) == 1
    if not groups_differ:
        pytest.skip("this process is in the root of the control groups: there was one quota only")


@needs_mounts
@pytest.mark.parametrize("size", ["64k", "1m"])
def test_a_little_shared_memory_is_enough(server: ServerFactory, size: str) -> None:
    """Numbers that find no room in it are missing, and told to be; nobody is turned away."""
    running = server(wrapper=after(f"mount -t tmpfs -o size={size} none /dev/shm"))
    for _ in range(5):
        with connect(running.address) as connection:
            assert connection.get("/hello.txt").status == 200
    assert "shared memory" not in running.messages()


@needs_mounts
@pytest.mark.parametrize("option", ["size=16k", "ro"])
def test_without_shared_memory_it_serves_and_counts(server: ServerFactory, option: str) -> None:
    running = server(
        *("--stats-listen", "127.0.0.1:0"),
        wrapper=after(f"mount -t tmpfs -o {option} none /dev/shm"),
    )
    assert "`weir stats` will not find this server: no shared memory in /dev/shm" in (
        running.messages()
    )
    with connect(running.address) as connection:
        connection.get("/hello.txt")
    (port,) = re.findall(r"^statistics: http://127\.0\.0\.1:(\d+)/", running.messages(), re.M)
    with connect(("127.0.0.1", int(port))) as page:
        assert b'weir_answers_total{status="200"} 1' in page.get("/metrics", "localhost").body
