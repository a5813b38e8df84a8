# SPDX-License-Identifier: MIT
"""A file system that answers late, or not until it is told to.

It shows a folder, read-only, through FUSE. Like a disk it is asked only for what the kernel does
not have in memory: names, folders and pages. Opening, closing and the attributes of a known file
wait for nothing. A file that appears later under a name that was missing is not seen.

It needs /dev/fuse and a mount namespace. A user without rights gets the namespace with a user
namespace. No library is needed: the kernel's protocol is a few structs (linux/fuse.h).

The mount exists only in its namespace. A program that is started with the words of `inside` sees
it. When this process ends, the kernel ends the mount, and every call that waits for it fails.

    disk = SlowDisk.mount(folder, mountpoint)
    disk.hold()                    # from now on, requests wait
    disk.wait_held("READ", "a.bin")
    disk.release()

As a program it is the process that answers: `python3 -m bench.slowdisk SOURCE MOUNTPOINT FD`.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import heapq
import os
import select
import socket
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
WITHIN_S = 60.0

# ---- the kernel's side (linux/fuse.h, sched.h, sys/mount.h) ----

LOOKUP, FORGET, GETATTR, READLINK, OPEN, READ, STATFS = 1, 2, 3, 5, 14, 15, 17
INIT, READDIR, INTERRUPT, DESTROY, BATCH_FORGET = 26, 28, 36, 38, 42
NAMES = {LOOKUP: "LOOKUP", READ: "READ", READDIR: "READDIR", GETATTR: "GETATTR"}
DISK = {LOOKUP, READ, READDIR}  # what a disk is asked for. Another machine is asked for all NAMES
NOTIFY_INVAL_INODE = 2

IN_HEADER = struct.Struct("=IIQQIIII")  # len opcode unique nodeid uid gid pid padding
OUT_HEADER = struct.Struct("=IiQ")  # len error unique
INIT_IN = struct.Struct("=IIII")
INIT_OUT = struct.Struct("=IIIIHHIIHHI28x")
ATTRIBUTES = struct.Struct("=QQQQQQIIIIIIIIII")
ENTRY = struct.Struct("=QQQQII")  # nodeid generation entry_valid attr_valid and their nanoseconds
ATTR_OUT = struct.Struct("=QII")
READ_IN = struct.Struct("=QQIIQII")
DIRENT = struct.Struct("=QQII")
STATFS_OUT = struct.Struct("=QQQQQIIII24x")
INVAL_INODE = struct.Struct("=Qqq")

ROOT = 1
LONG_S = 1 << 31  # names and attributes stay valid
ASYNC_READ, NO_OPEN, PARALLEL_DIROPS, NO_OPENDIR = 1 << 0, 1 << 17, 1 << 18, 1 << 24
REQUEST_BYTES = 256 * 1024

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REC, MS_PRIVATE = 1, 2, 4, 1 << 14, 1 << 18

_libc = ctypes.CDLL(None, use_errno=True)


def _call(what: str, result: int) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _separate() -> None:
    """Moves this process into a mount namespace of its own."""
    uid, gid = os.geteuid(), os.getegid()
    _call("unshare", _libc.unshare(CLONE_NEWNS | (CLONE_NEWUSER if uid else 0)))
    if uid:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    _call("mount /", _libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None))


def _mount(device: int, mountpoint: Path) -> None:
    words = f"fd={device},rootmode=40000,user_id={os.geteuid()},group_id={os.getegid()},allow_other"
    flags = MS_RDONLY | MS_NOSUID | MS_NODEV
    path = os.fsencode(mountpoint)
    _call("mount", _libc.mount(b"slowdisk", path, b"fuse.slowdisk", flags, words.encode()))


# ---- the process that answers ----


class _Answers:
    """The file system: requests of the kernel in, answers out, some of them later."""

    def __init__(self, source: Path, device: int, control: socket.socket) -> None:
        self.source = source
        self.device = device
        self.control = control
        self.paths = {ROOT: ""}
        self.numbers = {"": ROOT}
        self.holding: set[int] = set()  # of NAMES
        self.hangs = False
        self.delay_s = 0.0
        self.names: dict[int, list[str]] = {}
        self.held: dict[int, bytes] = {}
        self.later: list[tuple[float, int, bytes]] = []  # a heap

    def _reply(self, unique: int, body: bytes = b"", error: int = 0) -> None:
        out = OUT_HEADER.pack(OUT_HEADER.size + len(body), -error, unique) + body
        with contextlib.suppress(FileNotFoundError):  # the request was interrupted
            os.write(self.device, out)

    def _attributes(self, node: int) -> bytes:
        found = os.lstat(self.source / self.paths[node])
        times = (found.st_atime_ns, found.st_mtime_ns, found.st_ctime_ns)
        return ATTRIBUTES.pack(
            node,
            found.st_size,
            found.st_blocks,
            *(each // 10**9 for each in times),
            *(each % 10**9 for each in times),
            found.st_mode,
            found.st_nlink,
            found.st_uid,
            found.st_gid,
            0,
            4096,
            0,
        )

    def _node(self, parent: int, name: str) -> int:
        path = os.path.join(self.paths[parent], name)
        node = self.numbers.setdefault(path, len(self.numbers) + 1)
        self.paths[node] = path
        return node

    def _look_up(self, node: int, body: bytes) -> bytes:
        """The kernel remembers a missing name, too, as it does for a disk."""
        name = os.fsdecode(body.rstrip(b"\0"))
        if not os.path.lexists(self.source / self.paths[node] / name):
            return ENTRY.pack(0, 0, LONG_S, 0, 0, 0) + bytes(ATTRIBUTES.size)
        found = self._node(node, name)
        attributes = self._attributes(found)
        return ENTRY.pack(found, 0, LONG_S, LONG_S, 0, 0) + attributes

    def _read(self, node: int, body: bytes) -> bytes:
        _, offset, size, *_ = READ_IN.unpack_from(body)
        with (self.source / self.paths[node]).open("rb") as file:
            return os.pread(file.fileno(), size, offset)

    def _read_folder(self, node: int, body: bytes) -> bytes:
        _, offset, size, *_ = READ_IN.unpack_from(body)
        if offset == 0:
            self.names[node] = [".", "..", *sorted(os.listdir(self.source / self.paths[node]))]
        names = self.names[node]
        out = b""
        for at, name in enumerate(names[offset:], offset + 1):
            text = os.fsencode(name)
            mode = os.lstat(self.source / self.paths[node] / name).st_mode
            number = node if at <= 2 else self._node(node, name)
            entry = DIRENT.pack(number, at, len(text), stat.S_IFMT(mode) >> 12) + text
            entry += bytes(-len(entry) % 8)
            if len(out) + len(entry) > size:
                break
            out += entry
        return out

    def _init(self, body: bytes) -> bytes:
        major, minor, _, offered = INIT_IN.unpack_from(body)
        flags = offered & (ASYNC_READ | NO_OPEN | PARALLEL_DIROPS | NO_OPENDIR)
        return INIT_OUT.pack(major, min(minor, 31), 0, flags, 64, 48, 4096, 1, 0, 0, 0)

    def _answer(self, request: bytes) -> None:
        """Answers one request now."""
        _, opcode, unique, node, *_ = IN_HEADER.unpack_from(request)
        body = request[IN_HEADER.size :]
        try:
            if opcode == LOOKUP:
                self._reply(unique, self._look_up(node, body))
            elif opcode == GETATTR:
                self._reply(unique, ATTR_OUT.pack(LONG_S, 0, 0) + self._attributes(node))
            elif opcode == READ:
                self._reply(unique, self._read(node, body))
            elif opcode == READDIR:
                self._reply(unique, self._read_folder(node, body))
            elif opcode == READLINK:
                self._reply(unique, os.fsencode(os.readlink(self.source / self.paths[node])))
            elif opcode == STATFS:
                self._reply(unique, STATFS_OUT.pack(0, 0, 0, 0, 0, 4096, 255, 4096, 0))
            elif opcode == INIT:
                self._reply(unique, self._init(body))
            else:  # OPEN and OPENDIR too: then the kernel opens without a request
                self._reply(unique, error=errno.ENOSYS)
        except OSError as error:
            self._reply(unique, error=error.errno or errno.EIO)

    def _report(self, opcode: int, node: int, body: bytes) -> None:
        path = self.paths[node]
        if opcode == LOOKUP:
            path = os.path.join(path, os.fsdecode(body.rstrip(b"\0")))
        self.control.sendall(f"{NAMES[opcode]} {path}\n".encode())

    def _take(self, request: bytes) -> None:
        _, opcode, unique, node, *_ = IN_HEADER.unpack_from(request)
        body = request[IN_HEADER.size :]
        if opcode in (FORGET, BATCH_FORGET):
            return
        if opcode == INTERRUPT:
            # A fatal signal: a thread that waits for a page of a disk can be killed, too. Without
            # an answer, the kernel waits on, and no signal ends the thread.
            (interrupted,) = struct.unpack_from("=Q", body)
            if not self.hangs and interrupted in self.held:
                del self.held[interrupted]
                self._reply(interrupted, error=errno.EINTR)
            return
        if opcode in self.holding:
            self.held[unique] = request
            self._report(opcode, node, body)
        elif opcode in DISK and self.delay_s > 0:
            heapq.heappush(self.later, (time.monotonic() + self.delay_s, unique, request))
        else:
            self._answer(request)

    def _release(self, what: str) -> None:
        """Answers what is held: all of it, or the requests of one name in NAMES."""
        released = {opcode for opcode, name in NAMES.items() if what in ("", name)}
        self.holding = self.holding - released
        self.hangs = False
        for unique, request in list(self.held.items()):
            if IN_HEADER.unpack_from(request)[1] in released:
                del self.held[unique]
                self._answer(request)

    def _forget(self, path: str) -> None:
        """Makes the kernel drop the pages of a file."""
        self._invalidate(self.numbers[path], 0)

    def _invalidate(self, node: int, offset: int) -> None:
        """Drops attributes of a file, and its pages from an offset on (-1: none)."""
        body = INVAL_INODE.pack(node, offset, 0)
        out = OUT_HEADER.pack(OUT_HEADER.size + len(body), NOTIFY_INVAL_INODE, 0) + body
        with contextlib.suppress(FileNotFoundError):  # the kernel does not know the file
            os.write(self.device, out)

    def _forget_attributes(self) -> None:
        for node in self.paths:
            self._invalidate(node, -1)

    def _obey(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word in ("hold", "hang"):
            self.holding = DISK
            self.hangs = word == "hang"
        elif word == "silence":
            self.holding = set(NAMES)
            self.hangs = True
            self._forget_attributes()
        elif word == "release":
            self._release(rest)
        elif word == "delay":
            self.delay_s = float(rest)
        elif word == "forget":
            self._forget(rest)
        self.control.sendall(b"done\n")

    def _answer_due(self) -> float | None:
        """Answers what has waited long enough. Returns when the next one is due, in seconds."""
        while self.later and self.later[0][0] <= time.monotonic():
            self._answer(heapq.heappop(self.later)[2])
        return max(0.0, self.later[0][0] - time.monotonic()) if self.later else None

    def serve(self) -> None:
        waiting = select.poll()
        waiting.register(self.device, select.POLLIN)
        waiting.register(self.control, select.POLLIN)
        orders = self.control.makefile("r")
        while True:
            left_s = self._answer_due()
            for fd, _ in waiting.poll(None if left_s is None else left_s * 1000 + 1):
                if fd == self.device:
                    try:
                        self._take(os.read(self.device, REQUEST_BYTES))
                    except OSError as error:
                        if error.errno == errno.ENODEV:  # unmounted
                            return
                        if error.errno not in (errno.ENOENT, errno.EINTR, errno.EAGAIN):
                            raise
                elif line := orders.readline():
                    self._obey(line.rstrip("\n"))
                else:
                    return


def main(source: Path, mountpoint: Path, control: socket.socket) -> None:
    """Mounts, reports `mounted` or why not, and answers until the control socket ends."""
    try:
        _separate()  # first: a device that is opened outside of a user namespace is refused inside
        # Not blocking: the kernel takes a request back when its process is killed before the read.
        device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
        _mount(device, mountpoint)
    except OSError as error:
        control.sendall(f"{error.strerror}\n".encode())
        return
    answers = _Answers(source, device, control)
    control.sendall(b"mounted\n")
    answers.serve()


# ---- the side of a test or of a measurement ----


class SlowDiskError(Exception):
    """This machine does not allow the mount. The message says why."""


class SlowDisk:
    """A mounted slow disk. Its orders return when they are in effect."""

    def __init__(
        self, process: subprocess.Popen[bytes], control: socket.socket, mountpoint: Path
    ) -> None:
        self._process = process
        self._control = control
        self._lines = control.makefile("r")
        self._held: list[str] = []
        self.root = mountpoint

    @classmethod
    def mount(cls, source: Path, mountpoint: Path) -> SlowDisk:
        """Shows `source` at the empty folder `mountpoint`, in a namespace of its own.

        Raises:
            SlowDiskError: it cannot be mounted here.
        """
        ours, theirs = socket.socketpair()
        ours.settimeout(WITHIN_S)
        with theirs:
            words = (str(source), str(mountpoint), str(theirs.fileno()))
            process = subprocess.Popen(
                [sys.executable, "-m", "bench.slowdisk", *words],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                cwd=TOP,
            )
        disk = cls(process, ours, mountpoint)
        said = disk._lines.readline().rstrip("\n")
        if said != "mounted":
            disk.end()
            raise SlowDiskError(f"no slow disk can be mounted here: {said or 'it did not start'}")
        return disk

    @property
    def inside(self) -> tuple[str, ...]:
        """The words before a command that make it see the mount."""
        user = ("--user", "--preserve-credentials") if os.geteuid() else ()
        return ("nsenter", "--target", str(self._process.pid), *user, "--mount", "--")

    def _line(self) -> str:
        line = self._lines.readline()
        if not line:
            raise SlowDiskError("the slow disk has ended")
        return line.rstrip("\n")

    def _order(self, order: str) -> None:
        self._control.sendall(f"{order}\n".encode())
        while (line := self._line()) != "done":
            self._held.append(line)

    def hold(self) -> None:
        """Nothing is answered until `release`."""
        self._order("hold")

    def hang(self) -> None:
        """The same, and a process that waits for a name cannot be killed until `release`."""
        self._order("hang")

    def silence(self) -> None:
        """The same, as by another machine that has gone: the kernel asks it for attributes, too."""
        self._order("silence")

    def release(self, what: str = "") -> None:
        """Answers what waits, and all that follows: one of NAMES, or each of them."""
        self._order(f"release {what}")
        self._held = [line for line in self._held if what and not line.startswith(f"{what} ")]

    def delay(self, seconds: float) -> None:
        """Each answer comes so late. Answers do not wait for each other."""
        self._order(f"delay {seconds}")

    def forget(self, path: str) -> None:
        """Drops the pages of a file from memory. No request for them may wait."""
        self._order(f"forget {path}")

    def wait_held(self, what: str, path: str) -> None:
        """Returns when a request is held: one of NAMES, and its path."""
        sought = f"{what} {path}"
        while sought not in self._held:
            self._held.append(self._line())
        self._held.remove(sought)

    def end(self) -> None:
        """Ends the mount. Calls that still wait for it fail."""
        if self._process.poll() is None:
            self._control.shutdown(socket.SHUT_RDWR)
        self._process.wait(WITHIN_S)
        self._lines.close()
        self._control.close()

    def __enter__(self) -> SlowDisk:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


@contextlib.contextmanager
def slow_disk(source: Path, mountpoint: Path) -> Iterator[SlowDisk]:
    """Mounts for the length of a block."""
    with SlowDisk.mount(source, mountpoint) as disk:
        yield disk


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), socket.socket(fileno=int(sys.argv[3])))
