# SPDX-License-Identifier: MIT
"""The files to serve, the loads, and the goals for weir's figures."""

import random
from dataclasses import dataclass
from pathlib import Path

FILES = {
    "308.bin": 308,
    "10k.bin": 10 * 1024,
    "100k.bin": 100 * 1024,
    "10m.bin": 10 * 1024 * 1024,
}
SMALL_FILE = "/308.bin"
SCRIPT = "/script.js"
SCRIPT_BYTES = 100 * 1024
IDLE = "idle"
SYSCALLS = "syscalls"
CLOSE_FIELD = ("Connection", "close")
WRK, AB, H2LOAD = "wrk", "ab", "h2load"
FULL, RESUMED = "full", "resumed"


@dataclass(frozen=True, kw_only=True)
class Many:
    """A site of many files, and the requests for them (many.py)."""

    folder: str  # below the root
    files: int
    size: int  # of each, bytes
    asked: int  # of the files, so many are requested
    zipf: float = 0.0  # exponent of Zipf's law; 0: all alike
    links: bool = False  # files share contents
    fills: bool = False  # the cache is filled before a round, in place of a warm-up
    fills_all: bool = False  # with every file; else with those that are requested
    cache_bytes: int = 0  # of weir; 0: that of the study


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One load: one request, repeated, or requests for many files."""

    name: str
    what: str
    path: str = SMALL_FILE
    connections: int = 64
    depth: int = 1  # requests sent at once
    streams: int = 0  # of each connection, under way at once; 0: HTTP/1.1
    closes: bool = False  # a connection for each request
    bulk: bool = False  # dominated by bytes: counted by bytes, sensitive to congestion control
    status: int = 200
    extra: bool = False  # left out of --quick
    generator: str = WRK
    handshake: str = ""  # TLS handshake of each request: "full" or "resumed"
    coding: str = ""  # content coding that the client accepts, and that the answer has
    servers: tuple[str, ...] = ()  # those that are measured; empty: all
    many: Many | None = None  # requests for its files, in place of those for `path`
    listed: Path | None = None  # the paths of these requests
    start: int = 0  # the first of them


SCENARIOS = (
    Scenario(name="keepalive", what="308-byte file, 64 keep-alive connections"),
    Scenario(name="close", what="308-byte file, a connection for each request", closes=True),
    Scenario(name="pipeline16", what="308-byte file, 16 requests at once", depth=16),
    Scenario(name="10k", what="10 KiB file", path="/10k.bin"),
    Scenario(name="100k", what="100 KiB file", path="/100k.bin", bulk=True),
    Scenario(name="10m", what="10 MiB file, 8 of them", path="/10m.bin", connections=8, bulk=True),
    Scenario(name="304", what="308-byte file, If-None-Match with its ETag", status=304, extra=True),
    Scenario(name="404", what="a file that does not exist", path="/absent", status=404, extra=True),
)


def script() -> bytes:
    """A script that compresses as scripts do, to about a third."""
    chance = random.Random(SCRIPT)
    words = ["".join(chance.choices("etaoinsrhldcum", k=chance.randint(2, 9))) for _ in range(900)]
    lines, size = [], 0
    while size < SCRIPT_BYTES:
        name, left, right = (chance.choice(words) for _ in range(3))
        lines.append(f"  const {name} = {left}({right}, {chance.randrange(1000)});\n")
        size += len(lines[-1])
    return "".join(lines).encode()[:SCRIPT_BYTES]


def make_files(root: Path) -> None:
    """Writes the files to serve, the same in every run. Only the script compresses."""
    root.mkdir(parents=True)
    for name, size in FILES.items():
        (root / name).write_bytes(random.Random(name).randbytes(size))
    (root / SCRIPT[1:]).write_bytes(script())


@dataclass(frozen=True, kw_only=True)
class Goal:
    """`subject`'s figure must lie within bounds, as a multiple of the same figure of `peer`."""

    scenario: str
    figure: str  # "cpu": CPU per request; "idle": KiB per connection; "syscalls": per request
    peer: str | None  # None: absolute
    at_most: float
    at_least: float = 0.0
    strict: bool = False  # below at_most, not equal to it


GOALS = (
    Goal(scenario="keepalive", figure="cpu", peer="floor", at_most=1.10),
    Goal(scenario="keepalive", figure="cpu", peer="h2o", at_most=1.0, strict=True),
    Goal(scenario="keepalive", figure="cpu", peer="nginx", at_most=1.0, strict=True),
    Goal(scenario="pipeline16", figure="cpu", peer="nginx", at_most=0.20),
    Goal(scenario="close", figure="cpu", peer="nginx", at_most=0.95),
    Goal(scenario="10k", figure="cpu", peer="h2o", at_most=1.0, strict=True),
    Goal(scenario="100k", figure="cpu", peer="h2o", at_most=1.0, strict=True),
    Goal(scenario="10m", figure="cpu", peer="nginx", at_most=1.0),
    Goal(scenario="keepalive", figure="syscalls", peer=None, at_most=2.1, at_least=2.0),
    Goal(scenario=IDLE, figure="idle", peer=None, at_most=0.25),
)
