# SPDX-License-Identifier: MIT
"""The folder that a soak serves. Every body names its version, so every answer can be judged."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

SIZES = (10, 300, 4_000, 30_000, 150_000)
LARGE_BYTES = 1_500_000
ABSENT = "/absent"
KEPT_VERSIONS = 400


@lru_cache(KEPT_VERSIONS)
def content(number: int, size: int) -> bytes:
    """What a file holds in this version. Its length depends on the version, too."""
    return (b"version %07d\n" % number * (size // 16 + 2))[: size + 16 + number % 7]


@dataclass
class Site:
    """Files that are replaced while they are served."""

    root: Path
    versions: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    large: str = "/large.bin"

    def __post_init__(self) -> None:
        self.root.mkdir(exist_ok=True)
        self.root.chmod(0o755)
        for size in SIZES:
            for copy in range(8):
                self.sizes[f"/{size}-{copy}.bin"] = size
        self.sizes[self.large] = LARGE_BYTES
        for path in self.sizes:
            self.replace(path)

    def choose(self, chance: random.Random) -> str:
        return chance.choice([*self.sizes, ABSENT]) if chance.random() < 0.3 else "/300-0.bin"

    def replace(self, path: str) -> None:
        """Puts the next version in the place of the file, in one step."""
        number = self.versions.get(path, 0) + 1
        self.versions[path] = number  # before the rename: from then on this version can be served
        beside = self.root / "next"
        beside.write_bytes(content(number, self.sizes[path]))
        beside.chmod(0o644)
        beside.rename(self.root / path[1:])

    def trouble(self, path: str, status: int, body: bytes) -> str:
        """Why an answer is wrong. Empty when it is right."""
        if status in (429, 503):
            return ""
        if path == ABSENT:
            return "" if status == 404 else f"{status} for a file that never was there"
        if status != 200:
            return f"{status} for {path}"
        if body[:8] != b"version " or not body[8:15].isdigit():
            return f"{path}: no version begins with {body[:20]!r}"
        number = int(body[8:15])
        if not 1 <= number <= self.versions[path] or body != content(number, self.sizes[path]):
            return f"{path}: {len(body)} bytes that are no version, but begin as version {number}"
        return ""
