# SPDX-License-Identifier: MIT
"""The file that a server under fail.c maps: the call that is to fail, and the counts of calls."""

from __future__ import annotations

import errno
import mmap
import os
import re
import struct
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

TABLE = Path(__file__).resolve().parent / "calls.def"
FEW = -1
HEAD = struct.Struct("<QQqQQ")


def read_table() -> dict[str, list[str]]:
    """The kinds of calls, in order, each with the ways it can fail."""
    found = re.findall(r"^CALL\((\w+), ([A-Z0-9 ]+)\)$", TABLE.read_text(), re.MULTILINE)
    return {kind: failures.split() for kind, failures in found}


KINDS = read_table()


@dataclass(frozen=True)
class Fault:
    """One call that fails, and how."""

    kind: str
    call: int  # which of its kind, from 1
    failure: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.call}:{self.failure}"

    @classmethod
    def read(cls, text: str) -> Fault:
        kind, call, failure = text.split(":")
        return cls(kind, int(call), failure)

    @property
    def code(self) -> int:
        return FEW if self.failure == "FEW" else int(getattr(errno, self.failure))


class Plan:
    """The mapped file. A context manager."""

    def __init__(self, path: Path, fault: Fault | None) -> None:
        self.path = path
        place = 1 + list(KINDS).index(fault.kind) if fault else 0
        head = (place, fault.call, fault.code) if fault else (0, 0, 0)
        path.write_bytes(HEAD.pack(*head, 0, 0) + bytes(8 * len(KINDS)))
        fd = os.open(path, os.O_RDONLY)
        try:
            self.memory = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
        finally:
            os.close(fd)

    def __enter__(self) -> Plan:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.memory.close()

    @property
    def failed(self) -> bool:
        """Whether the planned call has failed."""
        return bool(HEAD.unpack_from(self.memory)[3])

    @property
    def killed(self) -> int:
        """Processes that died by a signal."""
        return int(HEAD.unpack_from(self.memory)[4])

    def counts(self) -> dict[str, int]:
        """How many calls of each kind the server has made."""
        counts = struct.unpack_from(f"<{len(KINDS)}Q", self.memory, HEAD.size)
        return dict(zip(KINDS, counts, strict=True))

    def total(self) -> int:
        return sum(self.counts().values())
