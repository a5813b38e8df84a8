# SPDX-License-Identifier: MIT
"""The pilot of a sweep: short runs that choose the levels, and keep the generator from the limit.

The first probe has few users. Each next one has as many as the CPU per request of the probe before
says that the server can carry, until the server or the generator is busy. Where the generator would
be the limit, the pilot changes the work: first a heavier page, then a part of a core for the
server, then fewer levels. The decision is in the head of the results, so that an interrupted sweep
continues with the same one.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

from weir_lab.capacity.records import server_s
from weir_lab.experiments.experiment import InterruptedExperimentError, Step
from weir_lab.rim.errors import LabError
from weir_lab.rim.store import Record, Store

HEAD = "setup"  # the field in the head of the results
PAGE = 308  # bytes
HEAVY_PAGES = (65_536, 262_144)
PROBES_MAX = 6
PROBE_S = 0.7
FIRST_USERS, FIRST_THINKERS = 2, 20
BUSY = 0.9  # utilisation of a core: the server or the generator is at its limit
GENERATOR_MAX = 0.9  # of its cores, when the server is saturated; probes scatter by some 5 %
GENERATOR_AIM = 0.75  # the same, where a part of a core is chosen for the server
SHARE_MIN = 0.1  # of a core
PAST_KNEE = 0.6  # of the best throughput per user
GROWTH_MAX = 60  # of the users, from one probe to the next
KNEE_MIN = 4.0  # users; below, whole numbers cannot surround the knee
TRAINING = (0.15, 0.3, 0.45, 0.6, 0.8, 1.0, 1.25, 1.5)  # parts of the knee
HELD_OUT = (2.0, 2.5, 3.2, 4.0)
BEFORE_KNEE = (0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0)  # where the knee cannot be reached
BEFORE_KNEE_TRAINED = 5  # of these levels
USERS_MAX = 20_000


@dataclass(frozen=True, kw_only=True)
class Probe:
    """A short run at one level."""

    users: int
    rate: float
    server: float  # utilisation of its cores, or of its part of a core; 0: not known
    generator: float  # utilisation of its cores

    @property
    def cycle_s(self) -> float:
        """The time from one answer of a user to its next."""
        return self.users / self.rate

    @property
    def ratio(self) -> float:
        """The generator's utilisation when the server is saturated."""
        return self.generator / self.server if self.server > 0 else self.generator


@dataclass(frozen=True, kw_only=True)
class Work:
    """What a probe varies besides the users."""

    page_bytes: int = PAGE
    share: float = 1.0  # of the server's cores that the server may use

    def key(self, users: int) -> str:
        """The key of its record."""
        return f"probe/{self.page_bytes}/{self.share:g}/{users}"


@dataclass(frozen=True, kw_only=True)
class Setup:
    """The decision of the pilot."""

    users: tuple[int, ...]
    train_to: int
    page_bytes: int = PAGE
    share: float = 1.0
    generator: float = 0.0  # its utilisation when the server is saturated, or at the last level
    changed: bool = False  # whether the work or the levels are others than they would have been
    did: str = ""  # one line for the report

    @property
    def work(self) -> Work:
        """The page and the server's part of a core."""
        return Work(page_bytes=self.page_bytes, share=self.share)


@dataclass(frozen=True, kw_only=True)
class Means:
    """What the pilot may change."""

    think_s: float
    heavier_pages: bool = True
    shares: bool = True
    fewer_levels: bool = True
    users: tuple[int, ...] = ()  # the levels that the user chose; empty: the pilot chooses
    train_to: int = 0  # 0: the pilot chooses
    most: int = USERS_MAX  # users that this machine can be


Measure = Callable[[Work, int], Probe]


def probe_of(record: Record, server_cores: float, generator_cores: int) -> Probe:
    """A record of a run as a probe."""
    load = record["load"]
    answered = max(1, load["requests"])
    return Probe(
        users=record["users"],
        rate=max(load["rate"], 1e-9),
        server=server_s(record) * load["rate"] / server_cores,
        generator=load["generator_cpu_s"] / answered * load["rate"] / generator_cores,
    )


# ---- the knee ----


def knee(probes: Sequence[Probe]) -> float:
    """N*: the users of the least cycle that the highest throughput serves.

    The highest throughput is m/D, unless the rates show that something else limits the server.
    """
    cycle_s = min(p.cycle_s for p in probes)
    last = max(probes, key=lambda p: p.users)
    seen = max(p.rate for p in probes)
    elsewhere = is_past_knee(probes) and last.server < BUSY
    most = seen if elsewhere or last.server <= 0 else max(seen, last.rate / last.server)
    return most * cycle_s


def is_past_knee(probes: Sequence[Probe]) -> bool:
    """Whether the last probe has clearly less throughput per user than another one."""
    each = [p.rate / p.users for p in probes]
    return each[-1] < PAST_KNEE * max(each)


def is_at_limit(probes: Sequence[Probe]) -> bool:
    """Whether the last probe saturated the server or the generator, or is past the knee."""
    return max(probes[-1].server, probes[-1].generator) >= BUSY or is_past_knee(probes)


def next_users(probes: Sequence[Probe], most: int) -> int:
    """The users of the next probe."""
    last = probes[-1]
    wanted = ceil(knee(probes)) if last.server > 0 else last.users * 4
    return min(most, last.users * GROWTH_MAX, max(last.users * 2, wanted))


def search(measure: Measure, work: Work, means: Means) -> list[Probe]:
    """Probes from few users up to the limit of the server or the generator."""
    most = max(means.users) if means.users else means.most
    users = min(most, FIRST_THINKERS if means.think_s > 0 else FIRST_USERS)
    probes = [measure(work, users)]
    if is_at_limit(probes) or probes[0].server == 0:  # no probe shows the cycle without queues
        fewer = max(1, min(FIRST_USERS, users - 1))
        probes.insert(0, measure(work, fewer))
    while len(probes) < PROBES_MAX and not is_at_limit(probes) and probes[-1].users < most:
        probes.append(measure(work, next_users(probes, most)))
    return probes


# ---- the levels ----


def rounded(value: float) -> int:
    """To two significant digits, at least 1."""
    return max(1, int(float(f"{value:.1e}")))


def levels(users_at_knee: float, most: int) -> tuple[tuple[int, ...], int]:
    """The levels on both sides of the knee, and the last one of the training."""
    at = max(KNEE_MIN, users_at_knee)
    if at * HELD_OUT[0] > most:
        return levels_before(min(at, most))
    training = sorted({rounded(part * at) for part in TRAINING})
    held_out = sorted({min(most, rounded(part * at)) for part in HELD_OUT} - set(training))
    return (*training, *held_out), training[-1]


def levels_before(users: float) -> tuple[tuple[int, ...], int]:
    """The levels up to this number of users, and the last one of the training."""
    found = sorted({rounded(part * max(KNEE_MIN, users)) for part in BEFORE_KNEE})
    return tuple(found), found[min(BEFORE_KNEE_TRAINED, len(found) * 2 // 3)]


def chosen(means: Means, found: tuple[tuple[int, ...], int]) -> tuple[tuple[int, ...], int]:
    """The levels of the user where there are any, else those of the pilot."""
    users = means.users or found[0]
    train_to = means.train_to or (found[1] if not means.users else users[len(users) * 2 // 3])
    return users, train_to


# ---- the decision ----


def generator_at_top(probes: Sequence[Probe]) -> float:
    """The utilisation of the generator at the highest useful load."""
    last = probes[-1]
    return last.ratio if is_at_limit(probes) and last.server > 0 else last.generator


def decide(measure: Measure, means: Means) -> Setup:
    """Chooses levels, and changes the work where the generator would be the limit."""
    probes = search(measure, Work(), means)
    busy = generator_at_top(probes)
    if busy <= GENERATOR_MAX or not means.fewer_levels:
        users, train_to = chosen(means, levels(knee(probes), means.most))
        did = _fine(busy) if means.fewer_levels else ""
        return Setup(users=users, train_to=train_to, generator=busy, did=did)
    for work, busy_now, tried in _remedies(measure, means, probes):
        if busy_now <= GENERATOR_MAX:
            users, train_to = chosen(means, levels(knee(tried), means.most))
            return Setup(
                users=users,
                train_to=train_to,
                page_bytes=work.page_bytes,
                share=work.share,
                generator=busy_now,
                changed=True,
                did=f"{_limit(busy)} {_changed(work, busy_now)}",
            )
    return _fewer_levels(means, probes, busy)


def _remedies(
    measure: Measure, means: Means, probes: Sequence[Probe]
) -> Iterator[tuple[Work, float, list[Probe]]]:
    """Other work, with the generator's utilisation that it leads to, and its probes."""
    users = max(2, probes[-1].users)
    for page in HEAVY_PAGES if means.heavier_pages else ():
        work = Work(page_bytes=page)
        tried = [measure(work, max(1, users // 4)), measure(work, users)]
        yield work, generator_at_top(tried), tried
    share = round(GENERATOR_AIM / max(p.ratio for p in probes[-1:]), 2)
    if not means.shares or share < SHARE_MIN:
        return
    work = Work(share=share)
    try:
        tried = [measure(work, max(1, users // 4)), measure(work, users)]
    except InterruptedExperimentError:
        raise
    except LabError:  # no control group can be made here
        return
    yield work, max(p.generator for p in tried), tried


def _fewer_levels(means: Means, probes: Sequence[Probe], busy: float) -> Setup:
    """The levels that the generator can still serve."""
    spare = [p for p in probes if p.generator <= GENERATOR_MAX]
    best = max(spare, key=lambda p: p.users) if spare else probes[0]
    top = best.users * max(1.0, GENERATOR_MAX / max(best.generator, 0.01))
    top = min(top, probes[-1].users) if len(probes) > 1 else top
    found, trained = levels_before(top)
    kept = tuple(n for n in means.users if n <= top)
    if len(kept) > 2:
        found = kept
        trained = min(means.train_to or found[-1], found[len(found) * 2 // 3])
    return Setup(
        users=found,
        train_to=trained,
        generator=min(busy, GENERATOR_MAX),
        changed=True,
        did=f"{_limit(busy)} So the levels end at {found[-1]:,} users, where the generator is "
        "still free.",
    )


def _fine(busy: float) -> str:
    return f"The pilot saw the generator busy for {busy:.0%} of the time at the highest load."


def _limit(busy: float) -> str:
    if busy < 1:
        return (
            f"The generator would be busy for {busy:.0%} of the time when the server is saturated."
        )
    return (
        f"The generator would be the limit: it needs {busy:.1f} times the CPU time of the server."
    )


def _changed(work: Work, busy: float) -> str:
    if work.page_bytes != PAGE:
        how = f"the page has {work.page_bytes // 1024} KiB instead of {PAGE} bytes"
    else:
        how = (
            f"the server has {work.share:.0%} of its core by a control group. All times of the "
            "server are those of such a slower core"
        )
    return f"So {how}. The generator is then busy for {busy:.0%}."


# ---- in the results ----


def known(store: Store) -> Setup | None:
    """The decision in the head of the results."""
    said: dict[str, Any] | None = store.head.get(HEAD)
    return Setup(**{**said, "users": tuple(said["users"])}) if said else None


@dataclass(kw_only=True)
class Prober:
    """Measures probes as steps of the experiment, or reads those that are finished."""

    store: Store
    step: Callable[[Work, int], Step]
    perform: Callable[[list[Step]], None]
    server_cores: int
    generator_cores: int

    def __call__(self, work: Work, users: int) -> Probe:
        """One probe.

        Raises:
            LabError: it could not be measured.
        """
        key = work.key(users)
        if not self.store.has(key):
            self.perform([self.step(work, users)])
        record = self.store.records[key]
        if "error" in record:
            raise LabError(f"the pilot could not be measured: {record['error']}")
        if not record["load"]["requests"]:
            raise LabError("the pilot had no answer")
        return probe_of(record, self.server_cores * work.share, self.generator_cores)


def said(store: Store) -> list[str]:
    """What the pilot saw, where it changed nothing."""
    found = known(store)
    return [found.did] if found and found.did and not found.changed else []


def changes(store: Store) -> list[str]:
    """What the pilot changed, and why."""
    found = known(store)
    return [found.did] if found and found.changed else []


def settle(store: Store, measure: Measure, means: Means) -> Setup:
    """The decision in the store, or a new one, which is then stored."""
    if found := known(store):
        return found
    found = decide(measure, means)
    store.annotate(HEAD, asdict(found))
    return found
