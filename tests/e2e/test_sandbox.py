# SPDX-License-Identifier: MIT
"""The sandbox: workers give up what they do not need before they accept a connection."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import resource
import signal
import socket
import struct
import subprocess
import time
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.conftest import ServerFactory
from tests.e2e.planting import in_force, planted
from tests.e2e.running import WEIR, Process, Server
from tests.e2e.sockets import tcp_sockets
from tests.e2e.statistics import segment
from tests.e2e.test_page import numbers, page_of
from tests.e2e.wire import connect
from tests.waiting import wait_until


def status(process: Process) -> dict[str, str]:
    """The fields of /proc/PID/status."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def may_gain_nothing(process: Process) -> bool:
    return status(process)["NoNewPrivs"] == "1"


def test_a_worker_and_the_page_have_no_capability(server: ServerFactory) -> None:
    running = server("--sandbox", "on", environment={"WEIR_STATS_LISTEN": "127.0.0.1:0"})
    with connect(running.address) as client:
        assert client.get("/hello.txt").status == 200
    confined = running.master.children()
    assert len(confined) > len(running.workers()), "the page has no process"
    for process in confined:
        # The server may be ready before its page is. This comes after the capabilities.
        wait_until(partial(may_gain_nothing, process), "it is confined")
        fields = status(process)
        # Only root can change the bounding set.
        bounding = ("CapBnd",) if os.geteuid() == 0 else ()
        for name in ("CapInh", "CapPrm", "CapEff", "CapAmb", *bounding):
            assert int(fields[name], 16) == 0, (process.comm, name)


SETGID, SETUID, SETPCAP, NET_BIND, SYS_PTRACE, SYS_ADMIN = 6, 7, 8, 10, 19, 21


def has(process: Process, capability: int) -> bool:
    return bool(int(status(process)["CapEff"], 16) >> capability & 1)


@pytest.mark.skipif(os.geteuid() != 0, reason="not root")
@pytest.mark.parametrize("model", ["prefork"])
def test_the_master_keeps_what_its_configuration_needs(
    server: ServerFactory, public_folder: Path
) -> None:
    running = server("--sandbox", "on", "--user", "nobody", folder=public_folder)
    assert status(running.master)["NoNewPrivs"] == "1"
    for capability in (SYS_PTRACE, SYS_ADMIN, NET_BIND):
        assert not has(running.master, capability), capability
    for capability in (SETUID, SETGID, SETPCAP):
        assert has(running.master, capability), capability
    first = running.workers()[0]
    os.kill(first.pid, signal.SIGKILL)
    wait_until(
        lambda: first not in running.workers() and len(running.workers()) == 4,
        "the worker is replaced, and becomes another user again",
    )
    running.signal(signal.SIGHUP)
    wait_until(lambda: "reloaded" in running.messages(), "the reload has taken effect")


def test_the_statistics_show_what_is_in_force(server: ServerFactory) -> None:
    assert "no_new_privs" in in_force(server("--sandbox", "on"))


@pytest.mark.parametrize("model", ["percore"])
def test_off_leaves_everything_out(server: ServerFactory) -> None:
    running = server("--sandbox", "off")
    assert in_force(running).startswith("off, user ")
    assert status(running.workers()[0])["NoNewPrivs"] == status(running.master)["NoNewPrivs"]


@pytest.mark.parametrize("model", ["percore"])
def test_a_kernel_without_landlock_gives_a_line_that_says_so(server: ServerFactory) -> None:
    running = server(
        "--sandbox", "on", wrapper=("python3", "-m", "tests.e2e.without_call", "444", "ENOSYS")
    )
    assert "landlock" not in in_force(running)
    assert running.messages().count("this system lacks Landlock") == 1


@pytest.mark.parametrize("model", ["percore"])
def test_a_kernel_without_seccomp_gives_a_line_that_says_so(server: ServerFactory) -> None:
    wrapper = ("python3", "-m", "tests.e2e.without_call", "317", "ENOSYS")
    running = server("--sandbox", "on", wrapper=wrapper)
    if "sanitizer" in in_force(running):
        pytest.skip("a build with a sanitizer has no filter of system calls")
    assert "seccomp" not in in_force(running)
    assert running.messages().count("this system lacks seccomp") == 1


def test_require_refuses_to_start_without_landlock(site: Path) -> None:
    command = [str(WEIR), "serve", str(site), "--listen", "127.0.0.1:0", "--sandbox", "require"]
    wrapper = ["python3", "-m", "tests.e2e.without_call", "444", "EOPNOTSUPP"]
    done = subprocess.run([*wrapper, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "sandbox = require, and this system lacks Landlock" in done.stderr
    assert "switched off at boot" in done.stderr


OPENAT, OPENAT2, CONNECT, SOCKET, EXECVE, KILL, IO_URING_SETUP = 257, 437, 42, 41, 59, 62, 425
AT_FDCWD, EXEC, PRIVATE_ANONYMOUS, MMAP = -100, 7, 0x22, 9
# A worker of the same user as the master: then only the sandbox is between them.
SAME_USER = ("--user", "root") if os.geteuid() == 0 else ()
REFUSED = (-errno.ENOSYS, -errno.EACCES, -errno.EPERM)


def refusals(running: Server) -> int:
    command = [str(WEIR), "stats", "--json", str(running.popen.pid)]
    read = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(json.loads(read.stdout)["counters"]["calls_refused"])


def test_a_fault_in_a_worker_stays_in_the_worker(
    server: ServerFactory, site: Path, tmp_path: Path
) -> None:
    """Each call is one that an attacker would make first."""
    log = tmp_path / "access.log"
    running = server("--sandbox", "on", "--access-log", str(log), *SAME_USER)
    if "sanitizer" in in_force(running):
        pytest.skip("a build with a sanitizer has no filter of system calls")
    worker = running.workers()[0]
    before = refusals(running)
    with planted(worker.pid) as thread:
        results = {
            "open /etc/passwd": thread.call(OPENAT, AT_FDCWD, thread.write(b"/etc/passwd\0"), 0),
            "write a file of the site": thread.call(
                OPENAT, AT_FDCWD, thread.write(bytes(site / "hello.txt") + b"\0"), os.O_WRONLY
            ),
            "make a file beside the log": thread.call(
                OPENAT,
                AT_FDCWD,
                thread.write(bytes(tmp_path / "planted") + b"\0"),
                os.O_WRONLY | os.O_CREAT,
                0o644,
            ),
            "make a socket": thread.call(SOCKET, socket.AF_INET, socket.SOCK_STREAM, 0),
            "connect": thread.call(CONNECT, 0, thread.write(bytes(16)), 16),
            "execute a program": thread.call(EXECVE, thread.write(b"/bin/true\0"), 0, 0),
            "signal the master": thread.call(KILL, running.popen.pid, signal.SIGUSR1),
            "make a ring": thread.call(IO_URING_SETUP, 4, thread.write(bytes(120))),
            "get executable memory": thread.call(MMAP, 0, 4096, EXEC, PRIVATE_ANONYMOUS, -1, 0),
        }
        allowed = thread.call(
            OPENAT, AT_FDCWD, thread.write(bytes(site / "hello.txt") + b"\0"), os.O_RDONLY
        )
    done = {what for what, result in results.items() if result not in REFUSED}
    assert not done, results
    assert allowed >= 0, "a file of the site can be read, so the test can fail"
    assert not (tmp_path / "planted").exists()
    with connect(running.address) as client:
        assert client.get("/hello.txt").status == 200
    assert worker.alive
    assert refusals(running) >= before + 4
    assert f"the sandbox refused system call number {EXECVE}" in running.messages()


PRLIMIT64, FCNTL, FALLOCATE, SETSOCKOPT, SHUTDOWN, SENDTO = 302, 72, 285, 54, 48, 44
F_SETOWN, F_SETSIG = 8, 10
PWRITEV2, NOAPPEND = 328, 0x20  # RWF_NOAPPEND, since Linux 6.9
PUNCH_HOLE = 3  # FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE
SO_LOCK_FILTER, MSG_FASTOPEN, TCP_MAXSEG = 44, 0x20000000, 2


def listeners_of(worker: Process, port: int) -> list[int]:
    """The descriptors of the sockets that listen on the port."""
    found = {each.link for each in tcp_sockets(port) if each.listens}
    return [fd for fd, link in worker.descriptors().items() if link in found]


def test_a_worker_changes_nothing_that_it_shares_with_other_processes(
    server: ServerFactory, tmp_path: Path
) -> None:
    log = tmp_path / "access.log"
    running = server("--sandbox", "on", "--access-log", str(log), *SAME_USER)
    if "sanitizer" in in_force(running):
        pytest.skip("a build with a sanitizer has no filter of system calls")
    with connect(running.address) as client:
        assert client.get("/hello.txt").status == 200
    wait_until(log.read_bytes, "the line is written")
    worker, master = running.workers()[0], running.popen.pid
    held = next(fd for fd, link in worker.descriptors().items() if link == str(log))
    descriptor = next(fd for fd, link in worker.descriptors().items() if "socket:" in link)
    with planted(worker.pid) as thread:
        data = thread.write(bytes(16))
        results = {
            "limit the master": thread.call(PRLIMIT64, master, resource.RLIMIT_NOFILE, data, 0),
            "own the signals of a socket": thread.call(FCNTL, descriptor, F_SETOWN, master),
            "choose that signal": thread.call(FCNTL, descriptor, F_SETSIG, signal.SIGKILL),
            "make it send signals": thread.call(FCNTL, descriptor, fcntl.F_SETFL, os.O_ASYNC),
            "overwrite a log": thread.call(FCNTL, held, fcntl.F_SETFL, os.O_WRONLY),
            "overwrite it with one call": thread.call(
                PWRITEV2, held, thread.write(struct.pack("QQ", data, 8)), 1, 0, 0, NOAPPEND
            ),
            "erase a log": thread.call(FALLOCATE, held, PUNCH_HOLE, 0, 4096),
            "lock the filter of a socket": thread.call(
                SETSOCKOPT, descriptor, socket.SOL_SOCKET, SO_LOCK_FILTER, data, 4
            ),
            "set an option of a socket": thread.call(
                SETSOCKOPT, descriptor, socket.IPPROTO_TCP, TCP_MAXSEG, data, 4
            ),
        }
    done = {what for what, result in results.items() if result != -errno.ENOSYS}
    assert not done, results
    assert log.read_bytes().count(b"GET /hello.txt") == 1


def test_a_worker_connects_with_none_of_its_sockets(server: ServerFactory) -> None:
    """A TCP socket that listens can be shut down, and sending with MSG_FASTOPEN then connects it.
    Landlock does not see that."""
    running = server("--sandbox", "on", *SAME_USER)
    if "sanitizer" in in_force(running):
        pytest.skip("a build with a sanitizer has no filter of system calls")
    worker = running.workers()[0]
    with socket.create_server(("127.0.0.1", 0)) as target, planted(worker.pid) as thread:
        port = target.getsockname()[1]
        to = struct.pack("=H", socket.AF_INET) + struct.pack("!H4s8x", port, b"\x7f\0\0\1")
        for fd in listeners_of(worker, running.address[1]):
            thread.call(SHUTDOWN, fd, socket.SHUT_RD)
            data = thread.write(to)
            flags = MSG_FASTOPEN | socket.MSG_DONTWAIT
            result = thread.call(SENDTO, fd, data, 16, flags, data, 16)
            assert result in (-errno.ENOSYS, -errno.EISCONN)
        target.setblocking(False)
        with pytest.raises(BlockingIOError):
            target.accept()


@pytest.mark.parametrize("model", ["epoll"])
def test_without_the_sandbox_the_same_calls_succeed(server: ServerFactory) -> None:
    """The planted calls are real ones."""
    running = server("--sandbox", "off", *SAME_USER)
    with planted(running.workers()[0].pid) as thread:
        assert thread.call(OPENAT, AT_FDCWD, thread.write(b"/etc/passwd\0"), 0) >= 0
        assert thread.call(SOCKET, socket.AF_INET, socket.SOCK_STREAM, 0) >= 0
        assert thread.call(KILL, running.popen.pid, 0) == 0


SEQUENCE_AT = 116  # in struct stats_header


@pytest.mark.parametrize("model", ["epoll"])
def test_the_page_may_wait_until_the_master_has_written(server: ServerFactory) -> None:
    """The head of the statistics is marked as being written, and the page reads it again."""
    running = server("--sandbox", "on", "--stats-listen", "127.0.0.1:0")
    page = page_of(running)
    with (segment(running.master.pid) / "head").open("r+b", buffering=0) as head:

        def sequence() -> int:
            (number,) = struct.unpack("=I", os.pread(head.fileno(), 4, SEQUENCE_AT))
            return int(number)

        before = sequence()
        wait_until(lambda: sequence() > before, "the master writes once a second")
        os.pwrite(head.fileno(), struct.pack("=I", sequence() | 1), SEQUENCE_AT)
        marked_s = time.monotonic()
        wait_until(
            lambda: numbers(page)["read_monotonic_seconds"] > marked_s,
            "the page reads while the master seems to write",
        )
    assert "the sandbox refused" not in running.messages()
