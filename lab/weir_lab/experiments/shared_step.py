# SPDX-License-Identifier: MIT
"""One step of a load that several hosts share: a command for each host, and the merged result.

The lab compares the clocks of the hosts and gives them a common start. `weir load merge` merges
their results.
"""

import json
import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from weir_lab.analysis.clocks import Beginning, ClockError, Offset, overlap, skew
from weir_lab.experiments import parse
from weir_lab.experiments.experiment import Step
from weir_lab.rim import generators
from weir_lab.rim.cluster import Tls
from weir_lab.rim.errors import LabError
from weir_lab.rim.fleet import Fleet, Host, Wish
from weir_lab.rim.store import Record

LEAD_S = 1.0  # from the call to the common start; longer after a late start
LEAD_MOST_S = 8.0
LEAD_HOST_S = 0.02  # added for each host
LATE_S = 0.001
AROUND_S = 0.5  # expected time for comparing clocks and merging
SLACK_S = 60.0  # a generator that runs longer than this over its time has failed
OVERLAP_LEAST = 0.9
SHARDS = "shards"  # the folder with the result of each host
BEGIN, END = "the server, at the start", "the server, at the end"
MISSED, INVALID = 3, 4  # exit status, as of `weir load`


@dataclass(frozen=True, kw_only=True)
class Question:
    """The load, and the hosts that generate it."""

    scheduler: str = ""
    local: int = 0  # or this many Dask workers on this machine
    words: tuple[str, ...] = ()  # passed to weir load unchanged: URLs and its other options
    users: int | None = None
    steps: str = ""
    rates: str = ""
    requests: int | None = None
    duration: str = ""
    warmup: str = ""
    slos: tuple[str, ...] = ()
    repeats: int = 1
    server_pid: int | None = None
    skew_limit: str = "50ms"
    train_to: int | None = None
    wish: Wish = field(default_factory=Wish)
    tls: Tls = field(default_factory=Tls)

    @property
    def is_open(self) -> bool:
        """Whether the load is open: steps are rates and not users."""
        return bool(self.rates)

    @property
    def levels(self) -> tuple[str, ...]:
        """The users of each step, or its requests per second.

        Raises:
            LabError: they are not numbers.
        """
        if not self.is_open:
            steps = parse.levels(self.steps) if self.steps else (self.users or 10,)
            return tuple(str(n) for n in steps)
        for rate in self.rates.split(","):
            if not re.fullmatch(r"\d+(\.\d+)?", rate) or float(rate) <= 0:
                raise LabError(f"{rate!r} is no rate; write requests per second, like 500,1000")
        return tuple(self.rates.split(","))

    @property
    def warmup_s(self) -> float:
        """The time before the measurement."""
        default = 0.0 if self.requests else 1.0
        return parse.seconds("--warmup", self.warmup) if self.warmup else default

    @property
    def duration_s(self) -> float | None:
        """The time of the measurement; None: until all requests are done."""
        return None if self.requests else parse.seconds("--duration", self.duration or "10s")

    def command(self, level: str, shard: int, shards: int, start_ns: int) -> list[str]:
        """The command of a host."""
        argv = [self.wish.weir, "load", *self.words]
        if self.is_open:
            argv += ["--rate", level]
            argv += ["--users", str(self.users)] if self.users else []
        else:
            argv += ["--users", level]
        if self.requests:
            argv += ["--requests", str(self.requests)]
        else:
            argv += ["--duration", self.duration or "10s"]
        argv += ["--warmup", self.warmup] if self.warmup else []
        return [*argv, "--shard", f"{shard}/{shards}", "--start-at", str(start_ns), "--json"]

    def plan(self) -> dict[str, Any]:
        """The plan of the experiment. The hosts are not part of it and can change."""
        return {
            "command": "spread",
            "words": list(self.words),
            "users": self.users,
            "steps": list(self.levels),
            "open": self.is_open,
            "requests": self.requests,
            "duration": self.duration,
            "warmup": self.warmup,
            "slos": list(self.slos),
            "repeats": self.repeats,
            "server_looked_at": self.server_pid is not None,
        }


@dataclass(frozen=True, kw_only=True)
class Part:
    """The part of one host in a step."""

    host: Host
    command: Sequence[str]
    result: Record  # of weir load, with times by the host's clock
    before: Offset
    after: Offset

    @property
    def measured(self) -> Record:
        """The only step of the result."""
        found: Record = self.result["steps"][0]
        return found

    def offset(self) -> Offset:
        """The offset of the host's clock at its start; both comparisons have to agree.

        Raises:
            ClockError: a clock was set in between.
        """
        began_ns = self.measured["began_unix_ns"] - self.before.value_ns
        return self.before.at(began_ns).also(self.after)

    @property
    def beginning(self) -> Beginning:
        """The start of its measurement, and the duration."""
        try:
            known = self.offset()
        except ClockError:
            known = self.before
        return Beginning(
            began_ns=self.measured["began_unix_ns"],
            lasted_ns=self.measured["measured_ns"],
            offset=known,
        )

    def by_our_clock(self) -> Record:
        """Its result, with times by our clock."""
        step = {**self.measured, "began_unix_ns": self.beginning.ours_ns}
        return {**self.result, "steps": [step]}


def doubts(
    parts: Sequence[Part], whole: Record, start_ns: int, limit_s: float, *, timed: bool
) -> list[str]:
    """The reasons why a step is void, without those that the merged result `whole` has."""
    found = []
    said = {doubt["name"] for doubt in whole["doubts"] if doubt["makes_invalid"]}
    for part in parts:
        try:
            part.offset()
        except ClockError as error:
            found.append(f"{part.host.label}: {error}")
    apart = skew([p.beginning for p in parts])
    if apart.most_ns > limit_s * 1e9:
        found.append(
            f"the hosts may have begun {apart.most_ns / 1e6:.1f} ms apart; "
            f"the limit is {limit_s * 1e3:g} ms"
        )
    late_ns = max(p.beginning.ours_ns for p in parts) - start_ns
    if late_ns > limit_s * 1e9:
        found.append(f"the last host began {late_ns / 1e6:.1f} ms after the common start")
    together = overlap([p.beginning for p in parts])
    if timed and together < OVERLAP_LEAST:
        found.append(f"all hosts measured together for only {together:.0%} of the time")
    for part in parts:
        found += [
            f"{part.host.label}: {doubt['reason']}"
            for doubt in part.measured["doubts"]
            if doubt["makes_invalid"] and doubt["name"] not in said
        ]
    return found


def of_host(part: Part, whole: Mapping[str, Any], start_ns: int) -> Record:
    """The record of one host in a step."""
    step = part.measured
    response = step["response"]
    answers = max(1, whole["answers"])
    return {
        "host": part.host.label,
        "hostname": part.host.facts["hostname"],
        "cpus": part.host.facts["cpus"],
        "kernel": part.host.facts["kernel"],
        "weir": f"{part.host.facts['version']} at {part.host.facts['weir']}",
        "address": part.host.place.address,
        "command": list(part.command),
        "users": step["users"],
        "answers": step["answers"],
        "failed": sum(step["errors"].values()) + step["answers"] - step["classes"]["2xx"],
        "rate": step["answers_per_second"],
        "share": step["answers"] / answers,
        "mean_s": (step["response_mean_ns"] or 0) / 1e9,
        "p50_s": (response["p50_ns"] or 0) / 1e9 or None,
        "p99_s": (response["p99_ns"] or 0) / 1e9 or None,
        "busiest_thread_share": step["generator"]["busiest_thread_share"],
        "clock_s": part.beginning.offset.value_ns / 1e9,
        "clock_error_s": part.beginning.offset.error_ns / 1e9,
        "late_s": (part.beginning.ours_ns - start_ns) / 1e9,
    }


@dataclass(kw_only=True)
class Command:
    """The parameters that all steps share."""

    question: Question
    weir: Path  # on this machine, for merging
    folder: Path
    fleet: Fleet
    lead_s: float = LEAD_S

    def step(self, level: str, repeat: int) -> Step:
        """One level of load, generated by all hosts together."""
        asked = self.question
        known_s = asked.warmup_s + (asked.duration_s or 5.0)
        key = f"{level} {'per second' if asked.is_open else 'users'}/{repeat}"
        return Step(
            key=key,
            seconds=LEAD_S + known_s + AROUND_S,
            measure=lambda: self._measure(level, key),
        )

    def _measure(self, level: str, key: str) -> Record:
        asked = self.question
        hosts = self.fleet.hosts()
        users = asked.users or len(hosts) if asked.is_open else int(level)
        hosts = hosts[: min(len(hosts), users, asked.requests or users)]
        before = self.fleet.offsets(hosts)
        lead_s = self.lead_s + LEAD_HOST_S * len(hosts)
        at_ns = time.time_ns() + round(lead_s * 1e9)
        commands = {
            host.label: asked.command(
                level, shard, len(hosts), at_ns + before[host.label].at(at_ns).value_ns
            )
            for shard, host in enumerate(hosts)
        }
        limit_s = None
        if asked.duration_s is not None:
            limit_s = lead_s + asked.warmup_s + asked.duration_s + SLACK_S
        results = self.fleet.generate(commands, hosts, limit_s, self._server_readings(at_ns))
        if asked.server_pid and END not in results:
            results[END] = self.fleet.used(asked.server_pid, 0)
        after = self.fleet.offsets(hosts)
        parts = [
            Part(
                host=host,
                command=commands[host.label],
                result=_one_step(host.label, results[host.label]),
                before=before[host.label],
                after=after[host.label],
            )
            for host in hosts
        ]
        start_ns = at_ns + round(asked.warmup_s * 1e9)
        record = self._record(parts, self._merged(key, parts), results, start_ns)
        if max(h["late_s"] for h in record["hosts"]) > LATE_S:
            self.lead_s = min(LEAD_MOST_S, 2 * self.lead_s)
        return record | {"level": float(level)}

    def _server_readings(self, at_ns: int) -> dict[str, Callable[[], Any]]:
        """The readings of the server's CPU: at the start and at the end of the measurement."""
        asked = self.question
        if (pid := asked.server_pid) is None:
            return {}
        ahead_ns = self.fleet.offset(self.fleet.server).value_ns if self.fleet.server else 0
        begin_ns = at_ns + round(asked.warmup_s * 1e9) + ahead_ns
        readings = {BEGIN: lambda: self.fleet.used(pid, begin_ns)}
        if (lasts_s := asked.duration_s) is not None:
            end_ns = begin_ns + round(lasts_s * 1e9)
            readings[END] = lambda: self.fleet.used(pid, end_ns)
        return readings

    def _merged(self, key: str, parts: Sequence[Part]) -> str:
        """The result of `weir load merge`; the parts stay in the folder.

        Raises:
            LabError: `weir load merge` refuses the parts.
        """
        folder = self.folder / SHARDS / key.replace("/", "-").replace(" ", "-")
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.json"):
            old.unlink()
        paths = []
        for number, part in enumerate(parts):
            path = folder / f"{number}.json"
            path.write_text(json.dumps(part.by_our_clock()) + "\n")
            paths.append(str(path))
        argv = [str(self.weir), "load", "merge", "--json"]
        for slo in self.question.slos:
            argv += ["--slo", slo]
        done = subprocess.run([*argv, *paths], capture_output=True, text=True, check=False)
        if done.returncode not in (0, MISSED, INVALID):
            said = (done.stderr.strip() or "nothing").splitlines()[-1]
            raise LabError(f"weir load merge said: {said}")
        return done.stdout

    def _record(
        self,
        parts: Sequence[Part],
        merged: str,
        results: Mapping[str, Any],
        start_ns: int,
    ) -> Record:
        asked = self.question
        result = _one_step("weir load merge", merged)
        step, plan = result["steps"][0], result["plan"]
        if step["answers"] == 0:
            errors = ", ".join(f"{n} {kind}" for kind, n in step["errors"].items() if n)
            raise LabError(f"no request was answered ({errors or 'none was sent'})")
        outcome = generators.parse_weir_load(merged, [str(self.weir), "load", "merge"], 0.0)
        cpu_s = (
            (results[END]["cpu_ns"] - results[BEGIN]["cpu_ns"]) / 1e9 if asked.server_pid else 0.0
        )
        limit_s = parse.seconds("--skew-limit", asked.skew_limit)
        more = doubts(parts, step, start_ns, limit_s, timed=asked.duration_s is not None)
        outcome = replace(
            outcome,
            doubts=[*outcome.doubts, *more],
            server_demand_s=cpu_s / step["answers"],
        )
        apart = skew([p.beginning for p in parts])
        return {
            "server": " ".join(f"{t['host']}{t['path']}" for t in plan["targets"]),
            "began_unix_s": round(step["began_unix_ns"] / 1e9, 3),
            "users": step["users"],
            "loop": plan["loop"],
            "keep_alive": bool(plan["keep_alive"]),
            "think_s": (plan["think"]["low_ns"] + plan["think"]["high_ns"]) / 2e9,
            "load": outcome.record(),
            "server_cpu_s": cpu_s,
            "server_cpus": results[END]["cpus"] if asked.server_pid else 0,
            "memory_kib": results[END]["memory_kib"] if asked.server_pid else 0.0,
            "counted": None,
            "threads": plan["threads"],
            "start": {
                "skew_s": apart.likely_ns / 1e9,
                "skew_most_s": apart.most_ns / 1e9,
                "overlap": overlap([p.beginning for p in parts]),
            },
            "slos_met": result["slos_met"],
            "hosts": [of_host(p, step, start_ns) for p in parts],
            "result": result,
        }


def _one_step(who: str, text: str) -> Record:
    """A result of weir load with one step.

    Raises:
        LabError: the text is not such a result.
    """
    try:
        found: Record = json.loads(text)
        if found["interrupted"]:
            raise LabError(f"{who}: the run was interrupted")
        found["steps"][0]["began_unix_ns"] + found["steps"][0]["measured_ns"]
    except (KeyError, IndexError, TypeError, json.JSONDecodeError) as error:
        raise LabError(f"{who}: the output of weir load cannot be read: {error!r}") from error
    return found
