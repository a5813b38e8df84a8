# SPDX-License-Identifier: MIT
"""Clocks of several machines: how far apart they are, at most, and how well all began together.

All times are Unix times in nanoseconds, each by the clock named.
"""

from collections.abc import Sequence
from dataclasses import dataclass

# By which a clock gains or loses: crystals do better, and the kernel slews no faster. A daemon that
# corrects a clock by more is found out, as what was known before and after contradict each other.
DRIFT_MAX = 500e-6


class ClockError(Exception):
    """No offset fits: a clock was set meanwhile."""


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """A question and its answer, as in NTP: our clock, theirs in between, and ours again."""

    asked_ns: int
    there_ns: int
    answered_ns: int


@dataclass(frozen=True, kw_only=True)
class Offset:
    """How far another clock is ahead of ours: no less than `low_ns`, no more than `high_ns`."""

    low_ns: int
    high_ns: int
    at_ns: int  # when, by our clock

    @property
    def value_ns(self) -> int:
        """The middle, which cannot be off by more than `error_ns`."""
        return (self.low_ns + self.high_ns) // 2

    @property
    def error_ns(self) -> int:
        """Half of what is not known."""
        return (self.high_ns - self.low_ns + 1) // 2

    def at(self, at_ns: int) -> "Offset":
        """The same at another time, for which it is known less well."""
        drift_ns = round(DRIFT_MAX * abs(at_ns - self.at_ns))
        return Offset(low_ns=self.low_ns - drift_ns, high_ns=self.high_ns + drift_ns, at_ns=at_ns)

    def also(self, other: "Offset") -> "Offset":
        """What both say of the same time.

        Raises:
            ClockError: they contradict each other.
        """
        theirs = other.at(self.at_ns)
        low, high = max(self.low_ns, theirs.low_ns), min(self.high_ns, theirs.high_ns)
        if low > high:
            raise ClockError("a clock was set meanwhile")
        return Offset(low_ns=low, high_ns=high, at_ns=self.at_ns)


def offset(exchanges: Sequence[Exchange]) -> Offset:
    """What at least one exchange tells of the other clock, at the end of the last one.

    The other clock was read somewhere between question and answer: this bounds the offset from
    both sides, whatever the ways there and back took. Of many exchanges all bounds hold, so that
    the fastest ones count, each for the direction in which it was fast.

    Raises:
        ClockError: the bounds leave nothing.
    """
    at_ns = max(e.answered_ns for e in exchanges)
    bounds = [
        Offset(
            low_ns=e.there_ns - e.answered_ns, high_ns=e.there_ns - e.asked_ns, at_ns=e.asked_ns
        ).at(at_ns)
        for e in exchanges
    ]
    found = bounds[0]
    for bound in bounds[1:]:
        found = found.also(bound)
    return found


@dataclass(frozen=True, kw_only=True)
class Beginning:
    """When one of several began, by its own clock, and how long it went on."""

    began_ns: int
    lasted_ns: int
    offset: Offset

    @property
    def ours_ns(self) -> int:
        """When it began by our clock, most likely."""
        return self.began_ns - self.offset.value_ns


@dataclass(frozen=True, kw_only=True)
class Skew:
    """From the first beginning to the last."""

    likely_ns: int
    most_ns: int  # if all clocks were as far off as they can be


def skew(beginnings: Sequence[Beginning]) -> Skew:
    """How well several began together."""
    if len(beginnings) < 2:
        return Skew(likely_ns=0, most_ns=0)
    ours = [b.ours_ns for b in beginnings]
    latest = [b.began_ns - b.offset.low_ns for b in beginnings]
    earliest = [b.began_ns - b.offset.high_ns for b in beginnings]
    first, second = sorted(range(len(earliest)), key=lambda i: earliest[i])[:2]
    most_ns = max(
        late - earliest[second if number == first else first] for number, late in enumerate(latest)
    )
    return Skew(likely_ns=max(ours) - min(ours), most_ns=most_ns)


def overlap(beginnings: Sequence[Beginning]) -> float:
    """The part of the whole time in which all were at it."""
    ends = [b.ours_ns + b.lasted_ns for b in beginnings]
    begins = [b.ours_ns for b in beginnings]
    whole_ns = max(ends) - min(begins)
    return max(0.0, (min(ends) - max(begins)) / whole_ns) if whole_ns > 0 else 0.0
