# SPDX-License-Identifier: MIT
"""Makes a thread of a server do a system call, as an attacker does who controls the process.

The thread is stopped as by a debugger, where it waits in the kernel. It makes one call with the
given arguments, and then continues its wait.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.running import WEIR, Server
from tests.e2e.tracing import LIBC, PTRACE_DETACH, PTRACE_INTERRUPT, PTRACE_SEIZE, WAIT_FOR_THREADS
from tests.waiting import wait_until

PTRACE_GETREGS = 12
PTRACE_SETREGS = 13
PTRACE_SYSCALL = 24
PTRACE_SETOPTIONS = 0x4200
MARK_SYSCALLS = 1  # PTRACE_O_TRACESYSGOOD
SYSCALL_STOP = signal.SIGTRAP | 0x80
INSTRUCTION = b"\x0f\x05"  # syscall
RT_SIGRETURN = 15
WAITS = ("232", "281", "426")  # epoll_wait, epoll_pwait, io_uring_enter
BELOW_STACK = 4096  # the C library keeps its data above the stack pointer, or 128 bytes below

NAMES = (
    "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss "
    "fs_base gs_base ds es fs gs"
).split()


def in_force(running: Server) -> str:
    """The sandbox of the workers, in the words of `weir stats`."""
    command = [str(WEIR), "stats", "--json", str(running.popen.pid)]
    read = subprocess.run(command, capture_output=True, text=True, check=True)
    return str(json.loads(read.stdout)["configuration"]["sandbox"])


class Registers(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in NAMES)


class Planted:
    """A thread that is stopped, and makes calls on request."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.saved = self._registers()
        self.scratch: int = (self.saved.rsp - BELOW_STACK) & ~0xFFF

    def _registers(self) -> Registers:
        registers = Registers()
        assert LIBC.ptrace(PTRACE_GETREGS, self.pid, None, ctypes.addressof(registers)) == 0
        return registers

    def _set(self, registers: Registers) -> None:
        assert LIBC.ptrace(PTRACE_SETREGS, self.pid, None, ctypes.addressof(registers)) == 0

    def _run(self, number: int = 0) -> int:
        """Continues, with this signal, to the next stop, and returns its cause."""
        assert LIBC.ptrace(PTRACE_SYSCALL, self.pid, None, number) == 0
        _, status = os.waitpid(self.pid, WAIT_FOR_THREADS)
        assert os.WIFSTOPPED(status), f"the thread ended: {status:#x}"
        return os.WSTOPSIG(status)

    def write(self, data: bytes) -> int:
        """Puts bytes into the thread's memory, and returns the address."""
        with open(f"/proc/{self.pid}/mem", "r+b", buffering=0) as memory:
            memory.seek(self.scratch)
            memory.write(data)
        return self.scratch

    def call(self, number: int, *arguments: int) -> int:
        """The result of a system call: a negative number is an error."""
        registers = Registers.from_buffer_copy(self.saved)
        with open(f"/proc/{self.pid}/mem", "rb", buffering=0) as memory:
            memory.seek(self.saved.rip - 2)
            assert memory.read(2) == INSTRUCTION, "the thread does not wait in a system call"
        registers.rip = self.saved.rip - 2
        registers.rax = number
        registers.orig_rax = (1 << 64) - 1  # it does not repeat the call that was interrupted
        for name, value in zip(("rdi", "rsi", "rdx", "r10", "r8", "r9"), arguments, strict=False):
            setattr(registers, name, value & ((1 << 64) - 1))
        self._set(registers)
        assert self._run() == SYSCALL_STOP
        assert self._run() == SYSCALL_STOP
        registers = self._registers()
        if self._has_pending(signal.SIGSYS):
            self._run_handler()
        result: int = ctypes.c_int64(self._registers().rax).value
        return result

    def _has_pending(self, number: int) -> bool:
        status = Path(f"/proc/{self.pid}/status").read_text()
        pending = next(line for line in status.splitlines() if line.startswith("SigPnd:"))
        return bool(int(pending.split()[1], 16) >> (number - 1) & 1)

    def _run_handler(self) -> None:
        """Runs the handler of SIGSYS to its end, which restores the registers."""
        assert self._run() == signal.SIGSYS
        stop = self._run(signal.SIGSYS)
        while not (stop == SYSCALL_STOP and self._registers().orig_rax == RT_SIGRETURN):
            stop = self._run()
        assert self._run() == SYSCALL_STOP

    def restore(self) -> None:
        self._set(self.saved)


@contextmanager
def planted(pid: int) -> Iterator[Planted]:
    """Stops the main thread of a process; skips where this process may not trace others."""
    if os.uname().machine != "x86_64":
        pytest.skip("the registers are those of x86-64")
    if LIBC.ptrace(PTRACE_SEIZE, pid, None, MARK_SYSCALLS) != 0:
        pytest.skip(f"ptrace: {os.strerror(ctypes.get_errno())}")
    try:
        now = Path(f"/proc/{pid}/syscall")
        wait_until(lambda: now.read_text().split()[0] in WAITS, "the thread waits for events")
        assert LIBC.ptrace(PTRACE_INTERRUPT, pid, None, None) == 0
        os.waitpid(pid, WAIT_FOR_THREADS)
        thread = Planted(pid)
        yield thread
        thread.restore()
    finally:
        LIBC.ptrace(PTRACE_DETACH, pid, None, None)
