# SPDX-License-Identifier: MIT
"""The clients of a soak judge a cut answer by the age of its request."""

from __future__ import annotations

import asyncio
import re

import pytest

from tests.soak.clients import YOUNG_S, Connection, Count, GoneError
from tests.soak.soak import GROWTH_KIB, Judgement, hidden_leak_bytes, memory_growth
from tests.soak.subject import CONFIGURATION

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"


class Nowhere:
    """A writer that discards."""

    def write(self, data: bytes) -> None:
        del data


async def cut_after(received: bytes, age_s: float) -> Count:
    """What a client counts when its connection ends after these bytes."""
    reader = asyncio.StreamReader()
    count = Count()
    connection = Connection(reader, Nowhere(), count)  # type: ignore[arg-type]
    connection.send("/")
    connection.sent_s -= age_s
    reader.feed_data(received)
    reader.feed_eof()
    with pytest.raises(GoneError):
        await connection.body((await connection.head())[1])
    return count


@pytest.mark.parametrize("received", [HEAD[:9], HEAD + b"12345"])
@pytest.mark.parametrize(("age_s", "cut", "late"), [(0, 1, 0), (YOUNG_S, 0, 1)])
def test_only_a_young_request_makes_a_cut_a_fault(
    received: bytes, age_s: float, cut: int, late: int
) -> None:
    count = asyncio.run(cut_after(received, age_s))
    assert (count.cut, count.late) == (cut, late)


def test_every_timeout_of_the_server_is_longer_than_a_request_is_young() -> None:
    found = re.findall(r"-timeout = (\d+)s$", CONFIGURATION, re.MULTILINE)
    assert len(found) == 4
    assert min(map(int, found)) > YOUNG_S


@pytest.mark.parametrize(
    ("samples", "flat"),
    [
        ([10_000, 20_000, 20_100, 20_050], True),
        ([10_000, 16_000, 18_000, 20_000], False),
        ([10_000, 16_000, 18_000, 20_000, 20_100, 20_200], True),  # two rounds more: it was warm
        ([10_000, 16_000, 20_000, 24_000, 28_000, 32_000], False),  # it leaks
    ],
)
def test_memory_may_grow_until_the_server_is_warm(samples: list[int], flat: bool) -> None:
    judgement = Judgement("epoll", memory_kib=samples)
    assert (memory_growth(judgement, 4) == "") is flat


@pytest.mark.parametrize(
    ("share", "flat"),
    [(0.9, True), (1.1, False)],
)
def test_a_leak_above_the_reported_size_is_growth(share: float, *, flat: bool) -> None:
    """Each of nine rounds has 100,000 requests, and memory grows by a part of the reported leak."""
    requests = [100_000 * (at + 1) for at in range(9)]
    judgement = Judgement("epoll", memory_kib=[10_000] * 9, steady_requests=requests)
    hidden = hidden_leak_bytes(judgement, 9)
    assert hidden == GROWTH_KIB * 1024 / 600_000
    judgement.memory_kib = [10_000 + round(n * share * hidden / 1024) for n in requests]
    assert (memory_growth(judgement, 9) == "") is flat


def test_without_requests_every_leak_stays_hidden() -> None:
    judgement = Judgement("epoll", memory_kib=[10_000] * 4, steady_requests=[5] * 4)
    assert hidden_leak_bytes(judgement, 4) == float("inf")
