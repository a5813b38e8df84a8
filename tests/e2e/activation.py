# SPDX-License-Identifier: MIT
"""Starts a server with passed sockets, as a service manager does (sd_listen_fds)."""

from __future__ import annotations

import socket
import sys
from typing import TypedDict

# Moves the descriptors to 3, 4, ... and executes the command in the same process, which LISTEN_PID
# names.
BECOME = """
import os, sys
fds = sys.argv[1].split(',')
kept = [os.dup2(int(fd), 500 + i) for i, fd in enumerate(fds)]
for i, fd in enumerate(kept):
    os.dup2(fd, 3 + i)
    os.close(fd)
os.environ['LISTEN_PID'] = str(os.getpid())
os.execv(sys.argv[2], sys.argv[2:])
"""


class Activation(TypedDict):
    """Arguments for the start of a server."""

    wrapper: tuple[str, ...]
    environment: dict[str, str]
    descriptors: tuple[int, ...]


def activation(*listeners: socket.socket, names: str | None = None) -> Activation:
    """The arguments that start a server with these sockets."""
    fds = [each.fileno() for each in listeners]
    environment = {"LISTEN_FDS": str(len(fds))}
    if names:
        environment["LISTEN_FDNAMES"] = names
    return {
        "wrapper": (sys.executable, "-c", BECOME, ",".join(map(str, fds))),
        "environment": environment,
        "descriptors": tuple(fds),
    }
