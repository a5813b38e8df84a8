# SPDX-License-Identifier: MIT
"""Runs a program in which one system call fails: `without_call.py NUMBER ERRNO PROGRAM ...`.

By seccomp, the kernel answers the call with that error in the program and its children. This needs
no privileges.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys

PR_SET_SECCOMP = 22
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_MODE_FILTER = 2
RETURN_ERRNO = 0x00050000
RETURN_ALLOW = 0x7FFF0000
LOAD_NUMBER = 0x20  # the first word of the filter's input is the number of the call
JUMP_IF_EQUAL = 0x15
RETURN = 0x06


class Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("if_true", ctypes.c_uint8),
        ("if_false", ctypes.c_uint8),
        ("operand", ctypes.c_uint32),
    )


class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("first", ctypes.POINTER(Instruction)))


def forbid(number: int, error: int) -> None:
    """Makes the call fail with this error in this process from now on."""
    instructions = (Instruction * 4)(
        Instruction(LOAD_NUMBER, 0, 0, 0),
        Instruction(JUMP_IF_EQUAL, 0, 1, number),
        Instruction(RETURN, 0, 0, RETURN_ERRNO | error),
        Instruction(RETURN, 0, 0, RETURN_ALLOW),
    )
    program = Program(len(instructions), instructions)
    libc = ctypes.CDLL(None, use_errno=True)
    zero = ctypes.c_ulong(0)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), zero, zero, zero) != 0:
        raise OSError(ctypes.get_errno(), "prctl: no new privileges")
    mode = ctypes.c_ulong(SECCOMP_MODE_FILTER)
    if libc.prctl(PR_SET_SECCOMP, mode, ctypes.byref(program), zero, zero) != 0:
        raise OSError(ctypes.get_errno(), "prctl: seccomp")


if __name__ == "__main__":
    forbid(int(sys.argv[1]), getattr(errno, sys.argv[2]))
    os.execvp(sys.argv[3], sys.argv[3:])
