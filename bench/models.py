# SPDX-License-Identifier: MIT
"""The concurrency models of weir beside each other, and beside Apache's: the loads, the goals, and
the one table they give. What the tables are made of is measured as everywhere else.
"""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench import apache, servers
from bench.process import BenchError
from bench.report import DASH, Results, Row, number
from bench.scenarios import Scenario
from bench.servers import Choice, Product

CONNECTIONS = (1, 10, 100, 1000)
IDLE_CONNECTIONS = 1000


def name_of(connections: int, *, closes: bool) -> str:
    """The name of a load in the JSON and on the command line."""
    return f"{'close' if closes else 'keepalive'}-{connections}"


def _scenario(connections: int, *, closes: bool) -> Scenario:
    how = "a connection for each request" if closes else "keep-alive"
    return Scenario(
        name=name_of(connections, closes=closes),
        what=f"308-byte file, {connections} clients, {how}",
        connections=connections,
        closes=closes,
    )


SCENARIOS = tuple(_scenario(n, closes=closes) for closes in (False, True) for n in CONNECTIONS)


@dataclass(frozen=True, kw_only=True)
class Goal:
    """The CPU per request of one server, as a multiple of another's under the same load."""

    server: str
    peer: str
    at_most: float
    closes: bool = False


GOALS = (
    Goal(server="thread", peer="percore", at_most=1.6),
    Goal(server="pool", peer="percore", at_most=1.6),
    Goal(server="uring", peer="percore", at_most=1.05),
    Goal(server="fork", peer="apache-prefork", at_most=1.0),
    Goal(server="thread", peer="apache-worker", at_most=1.0),
    Goal(server="percore", peer="apache-event", at_most=1.0),
    Goal(server="fork", peer="apache-prefork", at_most=1.0, closes=True),
    Goal(server="thread", peer="apache-worker", at_most=1.0, closes=True),
    Goal(server="percore", peer="apache-event", at_most=1.0, closes=True),
)
GOAL_CONNECTIONS = 100


def _listed(weir: Path) -> list[str]:
    """The names of the models, as `weir models` has them."""
    said = subprocess.run([weir, "models"], capture_output=True, text=True, check=True).stdout
    return [line.split()[0] for line in said.splitlines() if line.strip()]


def products(choice: Choice) -> tuple[list[Product], list[str]]:
    """Every model of weir and of Apache as a server, and the missing programs."""
    weir = choice.build.resolve() / "weir"
    if not weir.exists():
        raise BenchError(f"{weir} is not built; run `make build` first")
    found = [servers.weir_product(choice, name=model, model=model) for model in _listed(weir)]
    theirs = apache.products()
    missing = [] if theirs else ["apache2"]
    found += theirs
    known = {product.name for product in found}
    if unknown := set(choice.only) - known:
        there = ", ".join(sorted(known))
        raise BenchError(f"no server called {', '.join(sorted(unknown))}; there are: {there}")
    return [p for p in found if not choice.only or p.name in choice.only], missing


def _cells(results: Results, scenario: str, server: str) -> list[str]:
    rounds = [r for r in results.rounds.get(scenario, ()) if r.server == server]
    if not rounds:
        return [DASH] * 4
    return [
        number(median(r.cpu_us_per_request for r in rounds)),
        f"{median(r.requests_per_s for r in rounds):,.0f}",
        number(median(r.p50_us for r in rounds) / 1000),
        number(median(r.p99_us for r in rounds) / 1000),
    ]


def model_table(results: Results) -> list[Row]:
    """One line for each server and number of clients."""
    figures = ("CPU µs", "req/s", "p50 ms", "p99 ms")
    head = [f"{how}: {figure}" for how in ("keep-alive", "close") for figure in figures]
    rows = [["model", "clients", *head, "KiB per idle connection"]]
    for server in results.servers:
        idle = results.idle.get(server)
        memory = number(idle.kib_per_connection) if idle else DASH
        for connections in CONNECTIONS:
            cells = _cells(results, name_of(connections, closes=False), server)
            cells += _cells(results, name_of(connections, closes=True), server)
            rows.append([server, str(connections), *cells, memory])
            memory = ""
    return rows


def goal_table(results: Results) -> list[Row]:
    """Every goal: its ratio and whether the goal is met."""
    rows = [["goal", "measured", ""]]
    for goal in GOALS:
        load = name_of(GOAL_CONNECTIONS, closes=goal.closes)
        ratio = results.ratio(load, goal.server, goal.peer)
        text = f"{load}: {goal.server} at most {goal.at_most:.2f} times {goal.peer}"
        if ratio is None:
            rows.append([text, DASH, "not measured"])
        else:
            verdict = "met" if round(ratio, 2) <= goal.at_most else "MISSED"
            rows.append([text, f"{ratio:.2f}", verdict])
    return rows


def tables(results: Results) -> list[list[Row]]:
    """Everything that is printed and recorded."""
    return [model_table(results), goal_table(results)]
