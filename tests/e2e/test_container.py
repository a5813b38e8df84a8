# SPDX-License-Identifier: MIT
"""The server in a container: with a share of the CPUs, little shared memory, a read-only file
system and fewer system calls."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.running import TOP, WEIR, start
from tests.e2e.test_page import page_of
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
    """The words that start a program in a mount namespace of its own, after a script."""
    return (*NEW_MOUNTS, "sh", "-c", f'set -e; {script}; exec "$@"', "sh")


def groups(**quotas: str) -> tuple[str, ...]:
    """The same, with the control groups of a container, whose own group is the root.

    /proc/self/cgroup names the folder of a process in a group below it.
    """
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
def test_the_cpu_quota_decides_the_number_of_threads(
    server: ServerFactory, quota: str, threads: int
) -> None:
    running = server(wrapper=groups(root=quota))
    ((_, count),) = THREADS.findall(running.messages())
    assert int(count) == (threads or len(os.sched_getaffinity(0)))


@needs_mounts
@needs_two_cpus
@pytest.mark.parametrize("model", ["auto"])
def test_a_quota_of_one_cpu_gives_one_loop(server: ServerFactory) -> None:
    running = server(wrapper=groups(root="100000 100000"))
    assert THREADS.findall(running.messages()) == [("epoll", "1")]


@needs_mounts
@needs_two_cpus
@one_model
def test_the_smallest_quota_up_to_the_root_applies(server: ServerFactory) -> None:
    running = server(wrapper=groups(own="400000 100000", root="100000 100000"))
    groups_differ = Path("/proc/self/cgroup").read_text().splitlines()[-1] != "0::/"
    ((_, count),) = THREADS.findall(running.messages())
    assert int(count) == 1
    if not groups_differ:
        pytest.skip("this process is in the root of the control groups: there was one quota only")


@needs_mounts
@needs_two_cpus
@one_model
def test_the_metrics_show_the_quota(server: ServerFactory) -> None:
    running = server("--stats-listen", "127.0.0.1:0", wrapper=groups(root="100000 100000"))
    with connect(page_of(running)) as page:
        assert b"\nweir_cpus 1\n" in page.get("/metrics", "localhost").body


@needs_mounts
@one_model
def test_a_cache_has_a_share_of_the_memory_of_the_control_group(server: ServerFactory) -> None:
    limit = "mount -t tmpfs none /sys/fs/cgroup; echo 536870912 >/sys/fs/cgroup/memory.max"
    running = server("--stats-listen", "127.0.0.1:0", wrapper=after(limit))
    said = "; cache 64M (auto: a share of the 512M of the control group)"
    assert said in running.messages()
    with connect(page_of(running)) as page:
        assert b"\nweir_cache_limit_bytes 67108864\n" in page.get("/metrics", "localhost").body


@needs_mounts
@pytest.mark.parametrize("size", ["160k", "1m"])
def test_a_small_shared_memory_is_enough(server: ServerFactory, size: str) -> None:
    """Statistics that do not fit are left out, and no request is refused."""
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
    assert "`weir stats` cannot find this server: no shared memory in /dev/shm" in (
        running.messages()
    )
    with connect(running.address) as connection:
        connection.get("/hello.txt")
    with connect(page_of(running)) as page:
        assert b'weir_answers_total{status="200"} 1' in page.get("/metrics", "localhost").body


# ---- the image ----

CONTAINER = TOP / "packaging/container"
IMAGE = """
mount --bind {image} {image}
mount -t proc none {image}/proc
mount -t tmpfs -o mode=755 none {image}/dev
mkdir {image}/dev/shm
mount -t tmpfs -o size=64m,mode=1777 none {image}/dev/shm
mount -t tmpfs -o size=1m,mode=1777 none {image}/tmp
mount --bind {site} {image}/srv/www
mount -o remount,bind,ro {image}
"""

# Runs a shell as process 1 and waits for it. The outer shell closes its copies of the descriptors,
# because the test waits until the server closes them.
AS_PROCESS_1 = """sh -c "$0" sh "$@" &
for fd in /proc/$$/fd/*; do fd=${fd##*/}; [ $fd -le 2 ] || eval "exec $fd>&-"; done; wait $!"""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")


def instructions() -> dict[str, str]:
    """The instructions of the last stage, which makes the image."""
    text = (CONTAINER / "Containerfile").read_text().replace("\\\n", " ")
    lines = re.findall(r"^([A-Z]+) +(.*)$", text.rpartition("\nFROM ")[2], re.M)
    return dict(lines)


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """The contents of the image, and the folders that a container runtime adds."""
    folder = tmp_path / "image"
    subprocess.run([CONTAINER / "collect", WEIR, folder], check=True)
    for name in ("proc", "dev"):
        (folder / name).mkdir()
    return folder


@needs_mounts
@needs_root
def test_the_image_contains_all_that_the_server_needs(
    image: Path, site: Path, tmp_path: Path
) -> None:
    """The server runs as process 1, as an unprivileged user, on a read-only file system."""
    said = instructions()
    enter = ("chroot", f"--userspec={said['USER']}", str(image))
    running = start(
        ["/srv/www", "--listen", "127.0.0.1:0", "--stats-listen", "127.0.0.1:0"],
        tmp_path / "stderr",
        wrapper=(
            *("unshare", "--mount", "--pid", "bash", "-c", AS_PROCESS_1),
            f'set -e; {IMAGE.format(image=image, site=site)} exec setpriv --no-new-privs "$@"',
            *enter,
        ),
        environment={"RUNTIME_DIRECTORY": ""},
        weir=Path(json.loads(said["ENTRYPOINT"])[0]),
    )
    (weir,) = running.master.children()
    try:
        with connect(running.address) as connection:
            assert connection.get("/hello.txt").status == 200
        assert "warning" not in running.messages()
        with connect(page_of(running)) as page:
            assert page.get("/healthz", "localhost").status == 200
        inside = ["nsenter", f"--target={weir.pid}", "--mount", "--pid", *enter]
        healthy = json.loads(said["HEALTHCHECK"].removeprefix("CMD "))
        for command in (healthy, [healthy[0], "reload"]):
            subprocess.run([*inside, *command], check=True, capture_output=True)
    finally:
        os.kill(weir.pid, signal.Signals[said["STOPSIGNAL"]])
        status = running.wait()
    assert status == 0


def test_the_command_of_the_image_is_valid(site: Path) -> None:
    words = json.loads(instructions()["CMD"])
    assert words[0] == "serve"
    words[1:2] = [str(site)]
    done = subprocess.run([WEIR, "check", *words[1:]], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_image_installs_every_build_dependency() -> None:
    """scripts/bootstrap lists them. The image does not use make."""
    bootstrap = (TOP / "scripts/bootstrap").read_text().partition('if [ "$group" != run ]')[0]
    needed = set(re.findall(r"^need \".*\" (\S+)$", bootstrap, re.M)) - {"make"}
    text = (CONTAINER / "Containerfile").read_text()
    assert needed <= set(text.split())


def not_sent() -> set[str]:
    """What .dockerignore keeps from the builder of the image."""
    lines = (TOP / ".dockerignore").read_text().splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def test_the_image_knows_its_commit() -> None:
    """packaging/commit needs git, and the folder of git."""
    text = (CONTAINER / "Containerfile").read_text()
    assert "git" in text.split()
    assert ".git" not in not_sent()


def test_what_was_built_here_is_not_sent_to_the_builder_of_the_image() -> None:
    """.gitignore names it. Patterns in .dockerignore begin at the top."""
    ours = {
        line.strip("/")
        for line in (TOP / ".gitignore").read_text().split()
        if line.strip("/").startswith((".", "build", "lab-"))
    }
    assert len(ours) > 4
    assert ours <= not_sent()
