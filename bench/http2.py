# SPDX-License-Identifier: MIT
"""The cost of a request over HTTP/2: weir beside nginx and h2o, over TLS 1.3 with ECDSA P-256.

The generator is h2load, which keeps `streams` requests under way on each connection. It reports
the protocol of its connections, and h2load.py refuses every load that was not HTTP/2.
"""

from bench import report, tls
from bench.report import OVER_HTTP1, Results, Row
from bench.scenarios import H2LOAD, IDLE, Scenario
from bench.servers import WEIR, Choice, Product
from bench.tls import Goal

PEERS = ("nginx", "h2o")
IDLE_CONNECTIONS = 9000
IDLE_MORE_KIB = 1.0


def _scenario(name: str, size: str, streams: int, connections: int, path: str) -> Scenario:
    load = f"{streams} stream{'s' * (streams > 1)} on each of {connections} connections"
    return Scenario(
        name=name,
        what=f"{size} file, {load}",
        path=path,
        connections=connections,
        streams=streams,
        bulk=path in ("/100k.bin", "/10m.bin"),
        generator=H2LOAD,
    )


SCENARIOS = (
    _scenario("1x64", "308-byte", 1, 64, "/308.bin"),
    _scenario("16x32", "308-byte", 16, 32, "/308.bin"),
    _scenario("100x8", "308-byte", 100, 8, "/308.bin"),
    _scenario("10k-16x32", "10 KiB", 16, 32, "/10k.bin"),
    _scenario("100k-8x16", "100 KiB", 8, 16, "/100k.bin"),
    _scenario("10m-1x4", "10 MiB", 1, 4, "/10m.bin"),
)

GOALS = (
    Goal(scenario="1x64", peers=("h2o",), at_most=0.75),
    Goal(scenario="16x32", peers=("h2o",), at_most=0.85),
    Goal(scenario="100x8", peers=("h2o",), at_most=0.85),
    Goal(scenario="10k-16x32", peers=("h2o",), at_most=0.85),
    Goal(scenario="100k-8x16", peers=("h2o",), at_most=0.80),
    Goal(scenario="10m-1x4", peers=("h2o",), at_most=0.80),
)


def products(choice: Choice) -> tuple[list[Product], list[str]]:
    """weir, nginx and h2o.

    Raises:
        BenchError: an unknown name.
    """
    return tls.chosen_products(choice, (WEIR, *PEERS))


def goal_table(results: Results) -> list[Row]:
    """Every goal of what was measured."""
    rows = tls.goal_rows(results, GOALS)
    if WEIR in results.idle and OVER_HTTP1 in results.idle:
        more = results.idle[WEIR].kib_per_connection - results.idle[OVER_HTTP1].kib_per_connection
        text = f"{IDLE}: at most {IDLE_MORE_KIB:.2f} KiB more than over HTTP/1.1"
        rows.append([text, f"{more:.2f}", "met" if more <= IDLE_MORE_KIB else "MISSED"])
    return rows


def tables(results: Results) -> list[list[Row]]:
    """Everything that is printed and recorded."""
    makers = (
        report.cpu_table,
        report.peer_table,
        report.idle_table,
        report.answers_table,
        goal_table,
    )
    return [table for maker in makers if (table := maker(results))]
