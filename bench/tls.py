# SPDX-License-Identifier: MIT
"""The cost of TLS: weir over https beside nginx, h2o and lighttpd, and beside weir without TLS.

Every handshake of these loads is TLS 1.3 with AES-128-GCM, X25519 and an ECDSA P-256 certificate,
and `handshakes.py` checks that before each load is measured.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench import report, servers
from bench.process import BenchError
from bench.report import DASH, Results, Row
from bench.scenarios import AB, FULL, IDLE, RESUMED, Scenario
from bench.servers import OTHER, WEIR, Choice, Launch, Product, Setup

WITHOUT_TLS = "weir-plain"
PEERS = ("nginx", "h2o", "lighttpd")
IDLE_CONNECTIONS = 9000

SCENARIOS = (
    Scenario(name="keepalive", what="308-byte file, 64 keep-alive connections"),
    Scenario(name="100k", what="100 KiB file", path="/100k.bin", bulk=True),
    Scenario(
        name=FULL,
        what="308-byte file, a full handshake for each request",
        closes=True,
        generator=AB,
        handshake=FULL,
    ),
    Scenario(
        name=RESUMED,
        what="308-byte file, a resumed handshake for each request",
        closes=True,
        handshake=RESUMED,
    ),
)


@dataclass(frozen=True, kw_only=True)
class Goal:
    """weir's figure, as a multiple of the best one of the peers."""

    scenario: str
    peers: tuple[str, ...]
    at_most: float


GOALS = (
    Goal(scenario="keepalive", peers=("h2o",), at_most=0.80),
    Goal(scenario="100k", peers=("h2o",), at_most=0.90),
    Goal(scenario=FULL, peers=("nginx",), at_most=0.80),
    Goal(scenario=RESUMED, peers=("nginx",), at_most=0.70),
    Goal(scenario=IDLE, peers=("nginx", "h2o"), at_most=0.70),
)


def _without_tls(product: Product) -> Product:
    """The same server over plain HTTP."""

    def launch(setup: Setup) -> Launch:
        return product.launch(replace(setup, identity=None))

    return Product(name=WITHOUT_TLS, version=product.version, launch=launch)


def products(choice: Choice) -> tuple[list[Product], list[str]]:
    """The servers with TLS, and weir without it.

    Raises:
        BenchError: an unknown name.
    """
    return chosen_products(choice, (WITHOUT_TLS, WEIR, *PEERS))


def chosen_products(choice: Choice, known: Sequence[str]) -> tuple[list[Product], list[str]]:
    """Of the known servers those that are chosen and there, and the names of those that are not.

    Raises:
        BenchError: an unknown name is chosen.
    """
    if unknown := set(choice.only) - set(known):
        there = ", ".join(known)
        raise BenchError(f"no server called {', '.join(sorted(unknown))}; there are: {there}")
    everything, missing = servers.products(replace(choice, only=[]))
    wanted = {*(choice.only or known), OTHER}
    found = [_without_tls(p) for p in everything if p.name == WEIR] + everything
    missing = [m for m in missing if m.split()[0] in wanted]
    return [p for p in found if p.name in wanted], missing


def _value(goal: Goal, results: Results) -> float | None:
    """The multiple; None when a part of it was not measured."""
    if goal.scenario != IDLE:
        (peer,) = goal.peers
        return results.ratio(goal.scenario, WEIR, peer)
    if any(name not in results.idle for name in (WEIR, *goal.peers)):
        return None
    best = min(results.idle[name].kib_per_connection for name in goal.peers)
    return results.idle[WEIR].kib_per_connection / best


def goal_table(results: Results) -> list[Row]:
    """Every goal of what was measured."""
    return goal_rows(results, GOALS)


def goal_rows(results: Results, goals: Sequence[Goal]) -> list[Row]:
    """Those of the goals that were measured: the multiple, and whether the goal is met."""
    rows = [["goal", "measured", ""]]
    run = {*results.rounds, *([IDLE] if results.idle else [])}
    for goal in (g for g in goals if g.scenario in run):
        name = " or ".join(goal.peers) + ", the better" * (len(goal.peers) > 1)
        text = f"{goal.scenario}: at most {goal.at_most:.2f} times {name}"
        value = _value(goal, results)
        if value is None:
            rows.append([text, DASH, "not measured"])
        else:
            verdict = "met" if round(value, 2) <= goal.at_most else "MISSED"
            if goal.scenario == RESUMED and _mixed(results, (WEIR, *goal.peers)):
                verdict = "not comparable"
            rows.append([text, f"{value:.2f}", verdict])
    return rows


def _mixed(results: Results, names: Sequence[str]) -> list[str]:
    """The servers that make full handshakes where the generator can resume sessions."""
    seen = results.handshakes.get(RESUMED, {})
    return [name for name in names if name in seen and not seen[name].are_resumed]


def handshake_table(results: Results) -> list[Row]:
    """The handshakes that were watched, and the resumed ones among them."""
    rows = [["resumed of watched handshakes", *results.servers]]
    for scenario in results.scenarios:
        found = [results.handshakes.get(scenario.name, {}).get(s) for s in results.servers]
        cells = [f"{h.resumed:,} of {h.count:,}" if h else DASH for h in found]
        rows.append([scenario.name, *cells])
    return rows if len(rows) > 1 else []


def tables(results: Results) -> list[list[Row]]:
    """Everything that is printed and recorded."""
    makers = (
        report.cpu_table,
        report.peer_table,
        report.idle_table,
        handshake_table,
        report.answers_table,
        goal_table,
    )
    return [table for maker in makers if (table := maker(results))]
