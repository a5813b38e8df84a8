# SPDX-License-Identifier: MIT
"""The attacks that `bench/run.py --attacks` puts beside an honest client, and their settings.

An attack that holds resources is as large as its text says. A flood of requests has a bounded
rate: a flood without a bound uses up the core, and every server then makes every client wait. Two
control rows are floods of plain files, at the rates of the other floods.

The timeouts are shorter than the defaults, so that they end connections within a round.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.report import Row
from tests.e2e import attackers
from tests.e2e.running import WEIR

SETTLE_S = 0.4
FILL_S = 1.2  # each connection is used once in a second
LISTED_FILES = 20_000
FLOOD_PER_S = 10_000
BULK_PER_S = 200
PATHS = 2_000  # distinct URLs of a flood
RANGES = ",".join(f"{at}-{at}" for at in range(0, 16_000, 1000))
LIMITS = (  # as docs/security.md recommends
    *("--address-connections", "100", "--address-connection-rate", "50"),
    *("--address-request-rate", "200", "--send-rate", "1K"),
)


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where an attacker finds the server, and a folder for its files."""

    port: int
    work: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@dataclass(frozen=True, kw_only=True)
class Attack:
    """An attack, and the settings of the server under it."""

    name: str
    what: str
    command: Callable[[Target], list[str]]
    options: tuple[str, ...] = ()
    places: int = 0  # connections that the workers together may have open; 0: the default
    settle_s: float = SETTLE_S  # from its start until response times count
    floods: bool = False  # with `weir load`; attackers.py reports when its connections are begun
    control: bool = False
    http2: bool = False  # the attack and the honest clients speak HTTP/2

    @property
    def settings(self) -> str:
        options = ("--connections", str(self.places)) if self.places else self.options
        pairs = zip(options[::2], options[1::2], strict=True)
        return ", ".join(f"`{name[2:]} = {value}`" for name, value in pairs) or "defaults"

    def words(self, workers: int) -> tuple[str, ...]:
        """The options of a server with this many workers."""
        places = ("--connections", str(self.places // workers)) if self.places else ()
        return (*self.options, *places)


def _slow(
    manner: str, connections: int, at_once: int, turns_per_s: int
) -> Callable[[Target], list[str]]:
    """Connections as attackers.py makes them."""

    def command(target: Target) -> list[str]:
        sizes = [str(connections), str(at_once), str(turns_per_s)]
        return [sys.executable, attackers.__file__, manner, str(target.port), *sizes]

    return command


def _flood(
    rate: int, paths: Callable[[int], str], *words: str, urls: int = 1
) -> Callable[[Target], list[str]]:
    """A flood of requests at a fixed rate over 50 connections from the attackers' address."""

    def command(target: Target) -> list[str]:
        listed = target.work / "urls"
        listed.write_text("".join(f"{target.url}{paths(number)}\n" for number in range(urls)))
        flood = ["load", "--urls", str(listed), "--rate", str(rate), "--users", "50", "--poisson"]
        flood += ["--source", attackers.SOURCE, "--duration", "1m", "--warmup", "0s", "--json"]
        return [str(WEIR), *flood, *words]

    return command


def _listing(index: int) -> str:
    """Every order of the listing, each time with another query."""
    sort, order = ("name", "size", "time")[index % 3], ("asc", "desc")[index // 3 % 2]
    return f"/listed/?sort={sort}&order={order}&n={index}"


ATTACKS = (
    Attack(
        name="slow head",
        what="1,000 connections, each sends one byte of a head in a second",
        command=_slow("slow-head", 1000, 0, 1000),
        settle_s=FILL_S,
        options=("--header-timeout", "2s"),
    ),
    Attack(
        name="slow body",
        what="1,000 connections, each sends a chunk of one byte in a second",
        command=_slow("slow-body", 1000, 0, 1000),
        settle_s=FILL_S,
        options=("--body-timeout", "2s"),
    ),
    Attack(
        name="slow read",
        what="500 connections with a small window, each reads 500 bytes of 10 MB in a second",
        command=_slow("slow-read", 500, 0, 500),
        settle_s=FILL_S,
        options=("--send-timeout", "2s", "--send-rate", "1K"),
    ),
    Attack(
        name="zero window",
        what="500 connections with a small window request 10 MB and read nothing",
        command=_slow("zero-window", 500, 0, 500),
        settle_s=FILL_S,
        options=("--send-timeout", "2s"),
    ),
    Attack(
        name="half-open",
        what="1,000 new connections in a second, held for 2 s, send nothing",
        command=_slow("silent", 2000, 0, 1000),
    ),
    Attack(
        name="full server",
        what="50 new connections in a second, after 200 at once; idle after one request",
        command=_slow("idle", 10_000, 200, 50),
        places=200,
        settle_s=2.0,  # none makes space before it has been idle for a second
    ),
    Attack(
        name="connection flood",
        what="1,000 new connections in a second, held for 2 s, send one request",
        command=_slow("idle", 2000, 0, 1000),
    ),
    Attack(
        name="connection flood, limited",
        what="the same, with the limits of an address",
        command=_slow("idle", 2000, 0, 1000),
        options=LIMITS,
    ),
    Attack(
        name="control: small files",
        what=f"{FLOOD_PER_S:,} requests in a second for a file of 308 bytes",
        command=_flood(FLOOD_PER_S, lambda _: attackers.SMALL),
        floods=True,
        control=True,
    ),
    Attack(
        name="404 flood",
        what=f"{FLOOD_PER_S:,} requests in a second for {PATHS:,} absent paths",
        command=_flood(FLOOD_PER_S, lambda index: f"/absent/{index}.php", urls=PATHS),
        floods=True,
    ),
    Attack(
        name="range flood",
        what=f"{FLOOD_PER_S:,} requests in a second, each for 16 ranges of a file of 64 KB",
        command=_flood(FLOOD_PER_S, lambda _: "/ranges.bin", "-H", f"Range: bytes={RANGES}"),
        floods=True,
    ),
    Attack(
        name="pipelined flood",
        what=f"{FLOOD_PER_S:,} requests in a second for the small file, 16 sent at once",
        command=_slow("pipelined", 50, 50, FLOOD_PER_S // attackers.PIPELINED),
    ),
    Attack(
        name="control: 1 MB files",
        what=f"{BULK_PER_S} requests in a second for a file of 1 MB",
        command=_flood(BULK_PER_S, lambda _: "/bulk.bin"),
        floods=True,
        control=True,
    ),
    Attack(
        name="listing flood",
        what=f"{BULK_PER_S} requests in a second for a folder of {LISTED_FILES:,} files, "
        "each with another query",
        command=_flood(BULK_PER_S, _listing, urls=PATHS),
        settle_s=1.2,  # each order is rendered once in 20 s: not in these 2 s alone
        floods=True,
    ),
    Attack(
        name="rapid reset",
        what=f"{FLOOD_PER_S:,} streams in a second that the client resets at once, 100 at a time",
        command=_slow("rapid-reset", 50, 50, FLOOD_PER_S // attackers.STREAMS),
        http2=True,
    ),
    Attack(
        name="made you reset",
        what=f"{FLOOD_PER_S:,} streams in a second that the server must reset, 100 at a time",
        command=_slow("made-you-reset", 50, 50, FLOOD_PER_S // attackers.STREAMS),
        http2=True,
    ),
    Attack(
        name="CONTINUATION flood",
        what="200 header blocks in a second, each of 100 CONTINUATION frames and without an end",
        command=_slow("continuation", 50, 50, 200),
        http2=True,
    ),
    Attack(
        name="HPACK bomb",
        what="200 header blocks of 16 KB in a second, each of 2 MB when decoded",
        command=_slow("hpack-bomb", 50, 50, 200),
        http2=True,
    ),
    Attack(
        name="PING flood",
        what="200,000 PING frames in a second, 1,000 at a time",
        command=_slow("ping", 50, 50, 200),
        http2=True,
    ),
    Attack(
        name="SETTINGS flood",
        what="200,000 SETTINGS frames in a second, 1,000 at a time",
        command=_slow("settings", 50, 50, 200),
        http2=True,
    ),
    Attack(
        name="empty DATA",
        what="200,000 empty DATA frames in a second, 1,000 at a time",
        command=_slow("empty-data", 50, 50, 200),
        http2=True,
    ),
    Attack(
        name="tiny windows",
        what="200 connections request 10 MB on 100 streams each, with windows of 0, "
        "and open one of them by a byte in a second",
        command=_slow("tiny-windows", 200, 0, 200),
        settle_s=FILL_S,
        options=("--send-timeout", "2s"),
        http2=True,
    ),
)


def make_site(root: Path) -> None:
    """The files that the clients request."""
    root.mkdir()
    (root / "index.html").write_bytes(b"i" * 308)
    (root / attackers.SMALL[1:]).write_bytes(b"s" * 308)
    (root / "ranges.bin").write_bytes(os.urandom(64_000))
    (root / "bulk.bin").write_bytes(os.urandom(1_000_000))
    (root / attackers.LARGE[1:]).write_bytes(os.urandom(10_000_000))
    (root / "listed").mkdir()
    for index in range(LISTED_FILES):
        (root / "listed" / f"file-{index:05d}.html").touch()


def attack_table() -> list[Row]:
    """What each attack is."""
    rows = [["attack", "from one address", "settings of the server"]]
    for each in ATTACKS:
        name = f"{each.name} (HTTP/2)" if each.http2 else each.name
        rows.append([name, each.what, each.settings])
    return rows
