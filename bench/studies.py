# SPDX-License-Identifier: MIT
"""The comparisons of the benchmark: servers, loads, tables, and the page for the figures of each.

The command line (main.py) chooses one. The studies of claims and attacks are no comparisons.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench import files, generators, http2, load, models, report, rules, servers, tls
from bench.report import Results, Row
from bench.scenarios import SCENARIOS, Scenario
from bench.servers import Choice, Product

REPOSITORY = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, kw_only=True)
class Study:
    """A comparison: its servers, its loads, and the page for its figures."""

    scenarios: tuple[Scenario, ...]
    products: Callable[[Choice], tuple[list[Product], list[str]]]
    tables: Callable[[Results], list[list[Row]]]
    goals: Callable[[Results], list[Row]]
    idle_connections: int
    syscalls: bool  # whether they are counted unless --only says so
    page: Path
    flag: str = ""
    seconds: int = 1  # of a round


PEERS = Study(
    scenarios=SCENARIOS,
    products=servers.products,
    tables=report.tables,
    goals=report.goal_table,
    idle_connections=9000,
    syscalls=True,
    page=REPOSITORY / "docs" / "performance.md",
)
MODELS = Study(
    scenarios=models.SCENARIOS,
    products=models.products,
    tables=models.tables,
    goals=models.goal_table,
    idle_connections=models.IDLE_CONNECTIONS,
    syscalls=False,
    page=REPOSITORY / "docs" / "models.md",
    flag="--models",
)
LOAD = Study(
    scenarios=(generators.KEEP_ALIVE,),
    products=load.products,
    tables=load.tables,
    goals=load.goal_table,
    idle_connections=0,
    syscalls=False,
    page=REPOSITORY / "docs" / "load.md",
    flag="--load",
    seconds=load.SECONDS,
)
TLS = Study(
    scenarios=tls.SCENARIOS,
    products=tls.products,
    tables=tls.tables,
    goals=tls.goal_table,
    idle_connections=tls.IDLE_CONNECTIONS,
    syscalls=False,
    page=REPOSITORY / "docs" / "performance.md",
    flag="--tls",
)

HTTP2 = Study(
    scenarios=http2.SCENARIOS,
    products=http2.products,
    tables=http2.tables,
    goals=http2.goal_table,
    idle_connections=http2.IDLE_CONNECTIONS,
    syscalls=False,
    page=REPOSITORY / "docs" / "performance.md",
    flag="--http2",
)

RULES = Study(
    scenarios=rules.SCENARIOS,
    products=rules.products,
    tables=rules.tables,
    goals=rules.goal_table,
    idle_connections=0,
    syscalls=False,
    page=REPOSITORY / "docs" / "performance.md",
    flag="--rules",
)

FILES = Study(
    scenarios=files.SCENARIOS,
    products=files.products,
    tables=files.tables,
    goals=files.goal_table,
    idle_connections=0,
    syscalls=False,
    page=REPOSITORY / "docs" / "performance.md",
    flag="--files",
)
