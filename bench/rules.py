# SPDX-License-Identifier: MIT
"""The cost of rules for paths, of redirects, and of text that is sent compressed.

weir is measured without rules, with twenty of them, and with compressed forms that are stored
beside the file. nginx compresses each answer at level 6.
"""

import shutil
import subprocess
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from bench import report, servers
from bench.process import BenchError
from bench.report import DASH, Results, Row
from bench.scenarios import SCRIPT, Scenario
from bench.servers import OTHER, WEIR, Choice, Launch, Product, Setup

WITH_RULES = "weir-rules"
STORED = "weir-stored"
NGINX = "nginx"
NAMES = (WEIR, WITH_RULES, STORED, NGINX)
GZIP_LEVEL = 6
# Of each kind a few, so that twenty sections stand before and behind those that cover the paths.
RULES = (
    "".join(
        f"[path /part{at}/**]\nheader = X-Part: {at}\ncache-control = max-age={60 + at}\n"
        for at in range(9)
    )
    + "[path /**]\nheader = X-Frame-Options: DENY\n"
    + "[path /*.bin]\ncache-control = max-age=3600\ncors = https://app.example.org\n"
    + "[path /old/**]\nredirect = 301 /new/**\n"
    + "".join(f"[path /gone{at}/*.html]\nstatus = 410\n" for at in range(8))
)

KEEP_ALIVE = Scenario(
    name="keepalive", what="308-byte file, 64 keep-alive connections", servers=NAMES
)
REDIRECT = Scenario(
    name="redirect",
    what="a redirect whose target has a part of the path",
    path="/old/page",
    status=301,
    servers=(WITH_RULES, NGINX),
)
BROTLI = Scenario(
    name="script-br",
    what="script of 100 KB, Accept-Encoding: br",
    path=SCRIPT,
    coding="br",
    servers=(WEIR, STORED),
)
GZIP = Scenario(
    name="script-gzip",
    what="script of 100 KB, Accept-Encoding: gzip",
    path=SCRIPT,
    coding="gzip",
    servers=(WEIR, STORED, NGINX),
)
SCENARIOS = (KEEP_ALIVE, REDIRECT, BROTLI, GZIP)


@dataclass(frozen=True, kw_only=True)
class Goal:
    """A server's figure, as a multiple of that of a peer, maybe in another scenario."""

    scenario: Scenario
    server: str
    peer: str
    peer_scenario: Scenario
    at_most: float


GOALS = (
    Goal(scenario=KEEP_ALIVE, server=WITH_RULES, peer=WEIR, peer_scenario=KEEP_ALIVE, at_most=1.02),
    Goal(
        scenario=REDIRECT,
        server=WITH_RULES,
        peer=WITH_RULES,
        peer_scenario=KEEP_ALIVE,
        at_most=1.0,
    ),
    Goal(scenario=BROTLI, server=WEIR, peer=STORED, peer_scenario=BROTLI, at_most=1.03),
    Goal(scenario=GZIP, server=WEIR, peer=STORED, peer_scenario=GZIP, at_most=1.03),
    Goal(scenario=GZIP, server=WEIR, peer=NGINX, peer_scenario=GZIP, at_most=1.0),
)


def _with_rules(plain: Callable[[Setup], Launch]) -> Callable[[Setup], Launch]:
    def launch(setup: Setup) -> Launch:
        config = f"[site bench]\nroot = {setup.root}\n{RULES}"
        path = setup.work / "weir.conf"
        path.write_text(config)
        made = plain(setup)
        argv = [word for word in made.argv if word != str(setup.root)]
        at = argv.index("--listing")  # a flag for the folder of the command line
        return replace(made, argv=[*argv[:at], *argv[at + 2 :], "-c", str(path)], config=config)

    return launch


def _store(root: Path) -> Path:
    """A folder with the same files, and the script's compressed forms. It is made once."""
    folder = root.parent / "stored"
    if folder.exists():
        return folder
    shutil.copytree(root, folder)
    script = folder / SCRIPT[1:]
    packer = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    packed = packer.compress(script.read_bytes()) + packer.flush()
    script.with_name(f"{script.name}.gz").write_bytes(packed)
    if program := shutil.which("brotli"):
        subprocess.run([program, "-q", "11", "-k", script], check=True)
        # brotli gives its output the time of the script in whole seconds, which is older.
        script.with_name(f"{script.name}.br").touch()
    return folder


def _with_stored(plain: Callable[[Setup], Launch]) -> Callable[[Setup], Launch]:
    return lambda setup: plain(replace(setup, root=_store(setup.root)))


def _with_gzip(plain: Callable[[Setup], Launch]) -> Callable[[Setup], Launch]:
    """nginx with compression, and with the redirect."""

    def launch(setup: Setup) -> Launch:
        made = plain(setup)
        path = setup.work / "nginx.conf"
        config = made.config.replace(
            f"        root {setup.root};\n",
            f"        root {setup.root};\n        gzip on;\n        gzip_comp_level {GZIP_LEVEL};\n"
            "        gzip_types text/javascript;\n        absolute_redirect off;\n"
            "        location /old/ {\n"
            "            rewrite ^/old/(.*)$ /new/$1 permanent;\n        }\n",
        ).replace("types { text/html html; }", "types { text/html html; text/javascript js; }")
        path.write_text(config)
        return replace(made, config=config)

    return launch


def products(choice: Choice) -> tuple[list[Product], list[str]]:
    """The four servers, and the names of those that are not there.

    Raises:
        BenchError: an unknown name.
    """
    if unknown := set(choice.only) - set(NAMES):
        raise BenchError(f"no server called {', '.join(sorted(unknown))}; there are: {NAMES}")
    everything, missing = servers.products(replace(choice, only=[]))
    made = {p.name: p for p in everything}
    found = []
    for name, source, change in (
        (WEIR, WEIR, None),
        (WITH_RULES, WEIR, _with_rules),
        (STORED, WEIR, _with_stored),
        (NGINX, NGINX, _with_gzip),
    ):
        if source not in made or (choice.only and name not in choice.only):
            continue
        launch = made[source].launch
        found.append(
            Product(
                name=name,
                version=made[source].version,
                launch=change(launch) if change else launch,
            )
        )
    return found, [m for m in missing if m.split()[0] in (WEIR, NGINX, OTHER)]


def _median(results: Results, scenario: Scenario, server: str) -> float | None:
    values = results.of(scenario.name, server).values()
    return median(values) if values else None


def goal_table(results: Results) -> list[Row]:
    """Every goal: the multiple, and whether it is met."""
    rows = [["goal", "measured", ""]]
    for goal in GOALS:
        ours = _median(results, goal.scenario, goal.server)
        theirs = _median(results, goal.peer_scenario, goal.peer)
        if goal.scenario == goal.peer_scenario:
            value = results.ratio(goal.scenario.name, goal.server, goal.peer)
        else:
            value = ours / theirs if ours and theirs else None
        text = f"{goal.scenario.name}: {goal.server} at most {goal.at_most:.2f} times {goal.peer}"
        if goal.scenario != goal.peer_scenario:
            text += f" in {goal.peer_scenario.name}"
        if value is None:
            rows.append([text, DASH, "not measured"])
        else:
            verdict = "met" if round(value, 2) <= goal.at_most else "MISSED"
            rows.append([text, f"{value:.2f}", verdict])
    return rows


def tables(results: Results) -> list[list[Row]]:
    """Everything that is printed and recorded."""
    makers = (report.cpu_table, report.answers_table, goal_table)
    return [table for maker in makers if (table := maker(results))]
