# SPDX-License-Identifier: MIT
"""The sockets that the kernel has, as it lists them in /proc/net."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from pathlib import Path

ESTABLISHED, LISTEN = 0x01, 0x0A  # enum tcp_state of the kernel
ACCEPTS = 0x10000  # __SO_ACCEPTCON of the kernel


def link_of(inode: int) -> str:
    """The name of a socket among the descriptors of a process (Process.sockets)."""
    return f"socket:[{inode}]"


@dataclass(frozen=True)
class TcpSocket:
    """A socket of IPv4."""

    host: str
    port: int
    peer_port: int
    state: int
    inode: int  # 0: no process has it, as before accept and after close

    @property
    def link(self) -> str:
        return link_of(self.inode)

    @property
    def listens(self) -> bool:
        return self.state == LISTEN

    @property
    def is_established(self) -> bool:
        return self.state == ESTABLISHED


@dataclass(frozen=True)
class UnixSocket:
    path: str  # empty: it has none
    type: int  # socket.SOCK_STREAM, ...
    listens: bool  # a connection that waits for accept bears the path, too, but does not listen
    inode: int

    @property
    def link(self) -> str:
        return link_of(self.inode)

    @property
    def is_datagram(self) -> bool:
        return self.type == socket.SOCK_DGRAM


def _rows(name: str) -> list[list[str]]:
    """The fields of each row, without the title."""
    return [row.split() for row in Path("/proc/net", name).read_text().splitlines()[1:]]


def tcp_sockets(port: int) -> list[TcpSocket]:
    """The sockets with this local port."""
    found = []
    for _, local, peer, state, *rest in _rows("tcp"):
        host, _, local_port = local.partition(":")
        if int(local_port, 16) == port:
            number = int.from_bytes(bytes.fromhex(host), "little")
            found.append(
                TcpSocket(
                    host=str(ipaddress.IPv4Address(number)),
                    port=port,
                    peer_port=int(peer.partition(":")[2], 16),
                    state=int(state, 16),
                    inode=int(rest[5]),
                )
            )
    return found


def unix_sockets() -> list[UnixSocket]:
    """All sockets of this network namespace."""
    return [
        UnixSocket(
            path="".join(rest),
            type=int(kind, 16),
            listens=bool(int(flags, 16) & ACCEPTS),
            inode=int(inode),
        )
        for _, _, _, flags, kind, _, inode, *rest in _rows("unix")
    ]
