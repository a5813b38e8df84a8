# SPDX-License-Identifier: MIT
"""Runs a program with a /dev/shm of its own.

A server that starts removes the statistics of dead servers. A test that reads
the statistics of a dead server therefore needs a folder that no other server
sees.
"""

from __future__ import annotations

import contextlib
import functools
import subprocess
from collections.abc import Iterator

import pytest

NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c")
MOUNT = 'mount -t tmpfs none /dev/shm && exec "$@"'


@functools.cache
def is_allowed() -> bool:
    with contextlib.suppress(FileNotFoundError):
        words = [*NAMESPACE, MOUNT, "sh", "true"]
        return subprocess.run(words, stderr=subprocess.DEVNULL, check=False).returncode == 0
    return False


def own_shared_memory() -> tuple[str, ...]:
    """The words that run a program with a new /dev/shm. Skips the test where that is forbidden."""
    if not is_allowed():
        pytest.skip("no namespace may be made here")
    return (*NAMESPACE, MOUNT, "sh")


@contextlib.contextmanager
def shared_memory_of_several() -> Iterator[tuple[str, ...]]:
    """The words that run each of several programs with the same new /dev/shm."""
    holder = subprocess.Popen(
        [*own_shared_memory(), "sh", "-c", "echo made && exec cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout
        assert holder.stdout.readline() == b"made\n"
        yield ("nsenter", f"--target={holder.pid}", "--user", "--mount", "--preserve-credentials")
    finally:
        holder.communicate()
