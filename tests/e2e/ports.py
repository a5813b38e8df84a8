# SPDX-License-Identifier: MIT
"""Ports that no other program takes until a test has used them.

A port that was only found to be free can be taken by a test that runs beside
this one. A reserved port is bound here, without a listener: the kernel gives it
to no other program, but a server that sets SO_REUSEADDR can still listen on it.

It is bound at every address. The kernel would else give the same port to a test
at another address, such as 127.0.0.2, and a server could not listen at all of them.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator


@contextlib.contextmanager
def reserved_port() -> Iterator[int]:
    """A port of this machine on which a server may listen."""
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("0.0.0.0", 0))
        port = held.getsockname()[1]
        assert isinstance(port, int)
        yield port
