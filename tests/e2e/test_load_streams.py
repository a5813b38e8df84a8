# SPDX-License-Identifier: MIT
"""`weir load --http2 --pipeline N` with each loop: when the requests of several streams start, and
from when their response times count.

The servers here answer nothing until several requests are under way. So a load that started them
one after the other would never end well, however slow the machine is.
"""

from __future__ import annotations

import pytest

from tests.e2e.framed import Framed, framed, ok
from tests.e2e.http2 import Kind, Setting, ping
from tests.e2e.loading import accounts_for, errors, step_of, weir_load
from tests.e2e.misbehaving import GoneError
from tests.waiting import wait_until

STREAMS = 4
ONE_USER = ("--http2", "--users", "1", "--pipeline", str(STREAMS), "--warmup", "0")
OPEN_OR_PACED = pytest.mark.parametrize("loop", [("--rate", "200"), ("--pace", "5ms")])


def in_groups(connection: Framed) -> None:
    """Answers a group of requests once all of them are under way, the last one first."""
    while True:
        streams = [connection.request() for _ in range(STREAMS)]
        connection.send(b"".join(ok(stream) for stream in reversed(streams)))


@OPEN_OR_PACED
def test_a_request_does_not_wait_for_the_answers_of_other_streams(loop: tuple[str, str]) -> None:
    with framed(in_groups) as server:
        step = step_of(server.url, *ONE_USER, *loop, "--requests", "40")
    accounts_for(step, 40)
    assert errors(step) == {}
    assert step["connects"] == 1
    assert step["intended"]["count"] == step["answers"] == 40


@OPEN_OR_PACED
def test_the_wait_for_a_free_stream_counts_from_when_the_request_was_due(
    loop: tuple[str, str],
) -> None:
    """The server allows one stream, and holds its first answer until later requests are overdue."""

    def behave(connection: Framed) -> None:
        first = connection.request()
        connection.peer.wait(0.5)
        connection.send(ok(first))
        while True:
            connection.send(ok(connection.request()))

    with framed(behave, {Setting.MAX_CONCURRENT_STREAMS: 1}) as server:
        step = step_of(server.url, *ONE_USER, *loop, "--requests", "20")
    accounts_for(step, 20)
    assert errors(step) == {}
    # 20 requests are due within 100 ms, and none but the first is sent before the first answer.
    assert step["intended"]["sum_ns"] > 10 * 400_000_000
    assert step["response"]["sum_ns"] < step["intended"]["sum_ns"]


@pytest.mark.parametrize("threads", ["1", "2"])
def test_an_open_loop_spreads_its_requests_over_the_connections(threads: str) -> None:
    """Each connection answers its first request only after a second one."""

    def behave(connection: Framed) -> None:
        streams = [connection.request(), connection.request()]
        for stream in streams:
            connection.send(ok(stream))
        while True:
            connection.send(ok(connection.request()))

    words = ("--http2", "--users", "4", "--pipeline", "2", "--rate", "400", "--threads", threads)
    with framed(behave) as server:
        step = step_of(server.url, *words, "--requests", "200", "--warmup", "0")
        requests = [peer.requests for peer in server.peers if peer.requests]
    accounts_for(step, 200)
    assert errors(step) == {}
    assert len(requests) == step["connects"] == 4
    assert min(requests) >= 2  # one whose answers are late gets no more meanwhile


def test_a_connection_for_each_batch_carries_all_its_requests() -> None:
    ends: list[int] = []

    def behave(connection: Framed) -> None:
        in_the_batch = [connection.request() for _ in range(STREAMS)]
        connection.send(b"".join(ok(stream) for stream in in_the_batch))
        connection.until(Kind.GOAWAY)
        ends.append(len([got for got in connection.frames if got.kind == Kind.HEADERS]))

    with framed(behave) as server:
        step = step_of(server.url, *ONE_USER, "--no-keepalive", "--requests", "12")
        wait_until(lambda: len(ends) == 3, "three ends")
    accounts_for(step, 12)
    assert (errors(step), step["connects"]) == ({}, 3)
    assert ends == [0, 0, 0]  # no request followed the batch


def test_think_time_follows_the_last_answer_of_a_batch() -> None:
    """The next batch starts only after all answers, on the same connection."""
    early: list[bool] = []

    def behave(connection: Framed) -> None:
        while True:
            streams = [connection.request() for _ in range(STREAMS)]
            for stream in streams[:-1]:
                connection.send(ok(stream))
            connection.send(ping(b"settled?"))
            connection.until(Kind.PING)
            early.append(any(got.kind == Kind.HEADERS for got in connection.frames))
            connection.send(ok(streams[-1]))

    with framed(behave) as server:
        step = step_of(server.url, *ONE_USER, "--think", "1ms", "--requests", "40")
    accounts_for(step, 40)
    assert (errors(step), step["connects"]) == ({}, 1)
    assert early == [False] * 10


@OPEN_OR_PACED
def test_a_load_with_streams_continues_after_failures(loop: tuple[str, str]) -> None:
    """Every third connection closes while its streams are open. Each request still ends once."""

    def behave(connection: Framed) -> None:
        streams = [connection.request() for _ in range(STREAMS)]
        if connection.peer.number % 3 == 1:
            connection.send(ok(streams[0])[:20])
            raise GoneError
        connection.send(b"".join(ok(stream) for stream in streams))
        in_groups(connection)

    with framed(behave) as server:
        words = ("--users", "3", "--pipeline", str(STREAMS), "--warmup", "0")
        step = step_of(server.url, "--http2", *words, *loop, "--duration", "1s")
    assert step["answers"] > 0
    assert errors(step)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--rate", "5"], "streams (--http2) go with them"),
        (["--pace", "1s"], "streams (--http2) go with them"),
        (["--no-keepalive"], "streams (--http2) go with them"),
        (["--http2", "--no-keepalive", "--rate", "5"], "with --rate each request"),
        (["--http2", "--no-keepalive", "--pace", "1s"], "with --pace each request"),
    ],
)
def test_a_loop_without_a_meaning_for_several_requests_is_refused(
    words: list[str], said: str
) -> None:
    done = weir_load("http://127.0.0.1:1/", "--pipeline", "4", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_report_names_the_batches() -> None:
    with framed(in_groups) as server:
        words = [server.url, *ONE_USER, "--think", "1ms", "--requests", "8"]
        text = weir_load(*words).stdout
        again = weir_load(server.url, *ONE_USER, "--no-keepalive", "--requests", "4").stdout
    assert "think time 1.00 ms; keep-alive; 4 streams each" in text
    assert "no think time; a connection for each 4 streams" in again
