# SPDX-License-Identifier: MIT
"""Stops one thread of a server while its other threads run on, as a debugger does.

SIGSTOP would stop the whole process. A thread that is stopped for certain lets
a test fill the queue before it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator

import pytest

PTRACE_DETACH = 17
PTRACE_SEIZE = 0x4206
PTRACE_INTERRUPT = 0x4207
WAIT_FOR_THREADS = 0x40000000  # __WALL

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
LIBC.ptrace.restype = ctypes.c_long


@contextlib.contextmanager
def stopped_threads(tids: list[int]) -> Iterator[None]:
    """Stops these threads; skips the test where this process may not trace others."""
    try:
        for tid in tids:
            if LIBC.ptrace(PTRACE_SEIZE, tid, None, None) != 0:
                pytest.skip(f"ptrace: {os.strerror(ctypes.get_errno())}")
            assert LIBC.ptrace(PTRACE_INTERRUPT, tid, None, None) == 0
            os.waitpid(tid, WAIT_FOR_THREADS)
        yield
    finally:
        for tid in tids:
            LIBC.ptrace(PTRACE_DETACH, tid, None, None)
