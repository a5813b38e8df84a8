# SPDX-License-Identifier: MIT
"""The conformance cases over HTTP/2, on every model: both spellings must be answered alike.

A connection carries the requests of many cases, up to 100 of them at the same time. So this also
tests that streams do not disturb each other.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.e2e.cases import Case, read_cases
from tests.e2e.certificates import Pair
from tests.e2e.running import Server
from tests.e2e.spelling import Library, Outcome, Request, answers_of, requests_of, same
from tests.e2e.test_conformance import (
    connect_alone,
    converse,
    etag_of,
    folder,
    one_of_each_model,
    pair,
)
from tests.e2e.wire import Answer

__all__ = ["folder", "pair"]

CASES_AT_ONCE = 30
REQUESTS_MAX = 200  # of a case; those with more run on one model

Spelled = tuple[Case, list[Answer], list[Request]]


@pytest.fixture(scope="module")
def servers(folder: Path, pair: Pair) -> Iterator[dict[str, Server]]:
    with one_of_each_model(folder, pair, "http2", "--h2c", "on") as running:
        yield running


@pytest.fixture(scope="module")
def spelled(servers: dict[str, Server]) -> list[Spelled]:
    """Each case that has a second spelling, with the answers to its first one."""
    found = []
    server = servers.get("percore") or next(iter(servers.values()))
    for case in read_cases():
        filled = case.filled(functools.partial(etag_of, server))
        requests = requests_of(filled)
        if requests is None:
            continue
        with connect_alone(server.address) as connection:
            closes = case.end in ("closed", "cut")
            data = converse(connection, filled, until_closed=closes)
        found.append((filled, answers_of(data, filled), requests))
    return found


def show(case: Case, first: Answer, second: Outcome) -> str:
    return (
        f"{case.id}: HTTP/1.1 {first.status} {first.fields} {first.body[:100]!r}\n"
        f"    HTTP/2 {second.status} {second.fields} {second.body[:100]!r}, reset {second.reset}"
    )


def compare(batch: list[Spelled], outcomes: list[Outcome]) -> list[str]:
    wrong, at = [], 0
    for case, answers, requests in batch:
        mine = outcomes[at : at + len(requests)]
        at += len(requests)
        # HTTP/1.1 may have closed before the last requests.
        wrong += [
            show(case, first, second)
            for first, second in zip(answers, mine, strict=False)
            if not same(first, second)
        ]
    return wrong


def play(server: Server, batch: list[Spelled], splits: Random | None) -> list[str]:
    requests = [request for _, _, each in batch for request in each]
    try:
        with connect_alone(server.address) as connection:
            outcomes = Library(connection, splits=splits).play(requests)
    except AssertionError as error:
        return [f"{[case.id for case, _, _ in batch]}: {error}"]
    return compare(batch, outcomes)


def test_every_case_is_answered_as_in_its_first_spelling(
    servers: dict[str, Server], spelled: list[Spelled]
) -> None:
    """Every second connection sends its frames in pieces."""
    assert len(spelled) > 700
    wrong = []
    for number, (model, server) in enumerate(servers.items()):
        mine = [each for each in spelled if number == 0 or len(each[2]) <= REQUESTS_MAX]
        mixed = Random(number).sample(mine, len(mine))
        for first in range(0, len(mixed), CASES_AT_ONCE):
            pieces = (first // CASES_AT_ONCE + number) % 2 == 0
            batch = mixed[first : first + CASES_AT_ONCE]
            wrong += [
                f"{model}{', in pieces' if pieces else ''}: {text}"
                for text in play(server, batch, Random(first) if pieces else None)
            ]
    assert not wrong, f"{len(wrong)}:\n" + "\n".join(wrong[:50])
