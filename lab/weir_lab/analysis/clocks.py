# SPDX-License-Identifier: MIT
"""Clocks of several machines: bounds of their offsets, and of the skew between starts.

All times are Unix times in nanoseconds, each by the clock named.
"""

from collections.abc import Sequence
from dataclasses import dataclass

# The most that a clock gains or loses. Crystals do better, and the kernel slews no faster. A daemon
# that corrects a clock by more is detected: the bounds before and after contradict each other.
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
        """The middle of the bounds; its error is at most `error_ns`."""
        return (self.low_ns + self.high_ns) // 2

    @property
    def error_ns(self) -> int:
        """Half of the distance between the bounds."""
        return (self.high_ns - self.low_ns + 1) // 2

    def at(self, at_ns: int) -> "Offset":
        """The same at another time; drift makes the bounds wider."""
        drift_ns = round(DRIFT_MAX * abs(at_ns - self.at_ns))
        return Offset(low_ns=self.low_ns - drift_ns, high_ns=self.high_ns + drift_ns, at_ns=at_ns)

    def also(self, other: "Offset") -> "Offset":
        """The offset that satisfies both bounds.

        Raises:
            ClockError: they contradict each other.
        """
        theirs = other.at(self.at_ns)
        low, high = max(self.low_ns, theirs.low_ns), min(self.high_ns, theirs.high_ns)
        if low > high:
            raise ClockError("a clock was set meanwhile")
        return Offset(low_ns=low, high_ns=high, at_ns=self.at_ns)


def offset(exchanges: Sequence[Exchange]) -> Offset:
    """The offset that one or more exchanges allow, at the end of the last one.

    The other clock was read between question and answer. This bounds the offset from both sides,
    however long the ways there and back took. The bounds of all exchanges hold, so the fastest
    exchange in each direction decides.

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
    """The start of one host by its own clock, and how long it measured."""

    began_ns: int
    lasted_ns: int
    offset: Offset

    @property
    def ours_ns(self) -> int:
        """The most likely start by our clock."""
        return self.began_ns - self.offset.value_ns


@dataclass(frozen=True, kw_only=True)
class Skew:
    """The time from the first start to the last."""

    likely_ns: int
    most_ns: int  # if all clocks were as far off as they can be


def skew(beginnings: Sequence[Beginning]) -> Skew:
    """The skew between the starts of several hosts."""
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
    """The part of the whole time in which all hosts measured."""
    ends = [b.ours_ns + b.lasted_ns for b in beginnings]
    begins = [b.ours_ns for b in beginnings]
    whole_ns = max(ends) - min(begins)
    return max(0.0, (min(ends) - max(begins)) / whole_ns) if whole_ns > 0 else 0.0
