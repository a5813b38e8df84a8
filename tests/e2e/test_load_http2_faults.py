# SPDX-License-Identifier: MIT
"""`weir load --http2` with servers that break the rules of HTTP/2: each request ends once, and each
error has its kind."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.e2e.framed import Framed, Framing, framed, head, ok
from tests.e2e.http2 import (
    ACK,
    END_HEADERS,
    END_STREAM,
    PADDED,
    Code,
    Kind,
    Setting,
    frame,
    goaway,
    reset,
    settings,
    window_update,
)
from tests.e2e.loading import accounts_for, errors, step_of
from tests.e2e.misbehaving import Peer, misbehaving
from tests.waiting import wait_until


def answers_with(*pieces: Callable[[int], bytes]) -> Framing:
    def behave(connection: Framed) -> None:
        while True:
            stream = connection.request()
            for piece in pieces:
                connection.send(piece(stream))

    return behave


def closes_amid(connection: Framed) -> None:
    connection.send(ok(connection.request(), length=10)[:-3])
    connection.end()


def closes_before(connection: Framed) -> None:
    connection.request()
    connection.end()


def resets_amid(connection: Framed) -> None:
    connection.send(ok(connection.request(), length=10)[:-3])
    connection.peer.wait(0.05)
    connection.peer.reset()


def never_answers(connection: Framed) -> None:
    connection.until(0xFF)


def one_byte_at_a_time(connection: Framed) -> None:
    stream = connection.request()
    connection.send(frame(Kind.HEADERS, stream, head(200), END_HEADERS))
    for _ in range(200):
        connection.send(frame(Kind.DATA, stream, b"x"))
        connection.peer.wait(0.02)


def ends_with_an_error(connection: Framed) -> None:
    connection.request()
    connection.send(goaway(0, Code.ENHANCE_YOUR_CALM))
    connection.end()


def ends_amid_with_an_error(connection: Framed) -> None:
    stream = connection.request()
    connection.send(
        frame(Kind.HEADERS, stream, head(5), END_HEADERS) + goaway(stream, Code.ENHANCE_YOUR_CALM)
    )
    connection.end()


def interim_ends(stream: int) -> bytes:
    return frame(Kind.HEADERS, stream, b"\x08\x03103", END_HEADERS | END_STREAM)


def upgrade(stream: int) -> bytes:
    return frame(Kind.HEADERS, stream, b"\x08\x03101", END_HEADERS)


FAULTS: dict[str, tuple[Framing, list[str], str]] = {
    "closed in a body": (closes_amid, [], "closed_amid"),
    "closed before an answer": (closes_before, [], "closed_before"),
    "reset in a body": (resets_amid, [], "reset_amid"),
    "never answers": (never_answers, ["--first-byte-timeout", "200ms"], "first_byte_timeout"),
    "too slow": (one_byte_at_a_time, ["--response-timeout", "300ms"], "response_timeout"),
    "a stream reset": (answers_with(lambda s: reset(s, Code.CANCEL)), [], "stream_reset"),
    "a stream refused": (
        answers_with(lambda s: reset(s, Code.REFUSED_STREAM)),
        [],
        "stream_refused",
    ),
    "reset amid": (
        answers_with(lambda s: ok(s, length=9)[:-14], lambda s: reset(s, Code.PROTOCOL_ERROR)),
        [],
        "stream_reset",
    ),
    "goaway with an error": (ends_with_an_error, [], "goaway"),
    "goaway amid": (ends_amid_with_an_error, [], "goaway"),
    "too short": (answers_with(lambda s: ok(s, length=9)), [], "bad_framing"),
    "too long": (answers_with(lambda s: ok(s, length=2)), [], "bad_framing"),
    "no body": (
        answers_with(lambda s: frame(Kind.HEADERS, s, head(5), END_HEADERS | END_STREAM)),
        [],
        "bad_framing",
    ),
    "no status": (
        answers_with(lambda s: frame(Kind.HEADERS, s, b"\0\1a\1b", END_HEADERS | END_STREAM)),
        [],
        "bad_framing",
    ),
    "no head": (
        answers_with(lambda s: frame(Kind.DATA, s, b"hello", END_STREAM)),
        [],
        "bad_framing",
    ),
    "interim at the end": (answers_with(interim_ends), [], "bad_framing"),
    "an upgrade": (answers_with(upgrade), [], "bad_framing"),
    "two heads": (
        answers_with(lambda s: ok(s)[:-14], lambda s: frame(Kind.HEADERS, s, head(5), END_HEADERS)),
        [],
        "bad_framing",
    ),
    "a window of 0": (answers_with(lambda s: window_update(s, 0)), [], "bad_framing"),
    "a window that overflows": (
        answers_with(lambda s: window_update(s, 2**31 - 1)),
        [],
        "bad_framing",
    ),
    "no compression": (
        answers_with(lambda s: frame(Kind.HEADERS, s, b"\xff\xff\xff\xff\xff\xff", END_HEADERS)),
        [],
        "bad_http2",
    ),
    "a missing table entry": (
        answers_with(lambda s: frame(Kind.HEADERS, s, b"\x88\xbe", END_HEADERS | END_STREAM)),
        [],
        "bad_http2",
    ),
    "a push": (
        answers_with(lambda s: frame(Kind.PUSH_PROMISE, s, bytes(3) + b"\2\x82", END_HEADERS)),
        [],
        "bad_http2",
    ),
    "a stream that was never opened": (answers_with(lambda s: ok(s + 2)), [], "bad_http2"),
    "a stream of the server": (answers_with(lambda _: ok(2)), [], "bad_http2"),
    "a long frame": (answers_with(lambda s: frame(Kind.DATA, s, bytes(16385))), [], "bad_http2"),
    "padding beyond the frame": (
        answers_with(lambda s: frame(Kind.DATA, s, b"\5abc", PADDED)),
        [],
        "bad_http2",
    ),
    "CONTINUATION alone": (
        answers_with(lambda s: frame(Kind.CONTINUATION, s, head(5), END_HEADERS)),
        [],
        "bad_http2",
    ),
    "a frame within a block": (
        answers_with(lambda s: frame(Kind.HEADERS, s, head(5)) + ok(s)),
        [],
        "bad_http2",
    ),
    "a short PING": (answers_with(lambda _: frame(Kind.PING, 0, b"short")), [], "bad_http2"),
    "a window of 0 for all": (answers_with(lambda _: window_update(0, 0)), [], "bad_http2"),
    "HTTP/1.1 suddenly": (
        answers_with(lambda _: b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        [],
        "bad_http2",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_counted_by_its_kind(name: str) -> None:
    behaviour, words, kind = FAULTS[name]
    with framed(behaviour) as server:
        step = step_of(server.url, "--http2", "--users", "2", "--requests", "4", *words)
    accounts_for(step, 4)
    assert errors(step) == {kind: 4}


def test_an_answer_of_http_1_in_place_of_settings_is_no_http2() -> None:
    def behave(connection: Peer) -> None:
        connection.request()  # the preface looks like one
        if connection.number == 0:
            connection.send(frame(Kind.SETTINGS, 0))
        else:
            connection.send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        connection.wait_for_close()

    with misbehaving(behave) as server:
        step = step_of(server.url, "--http2", "--users", "1", "--requests", "2")
    assert errors(step) == {"no_http": 2}


def test_a_broken_rule_is_answered_with_its_code() -> None:
    codes: list[int] = []

    def behave(connection: Framed) -> None:
        connection.send(ok(connection.request() + 2))
        codes.append(int.from_bytes(connection.until(Kind.GOAWAY).payload[4:], "big"))

    with framed(behave) as server:
        step = step_of(server.url, "--http2", "--users", "1", "--requests", "2")
        wait_until(lambda: len(codes) == 2, "two ends")
    assert errors(step) == {"bad_http2": 2}
    assert codes == [Code.PROTOCOL_ERROR] * 2


def test_one_stream_fails_and_the_others_end() -> None:
    def behave(connection: Framed) -> None:
        connection.send(ok(connection.request()))
        while True:
            streams = [connection.request() for _ in range(4)]
            connection.send(reset(streams[1], Code.CANCEL))
            for stream in (streams[3], streams[0], streams[2]):
                connection.send(ok(stream))

    with framed(behave) as server:
        words = ["--users", "1", "--pipeline", "4", "--duration", "500ms", "--warmup", "0"]
        step = step_of(server.url, "--http2", *words)
    assert set(errors(step)) == {"stream_reset"}
    assert step["connects"] == 1
    assert step["errors"]["stream_reset"] == step["http2"]["resets"]
    assert step["answers"] >= 3 * (step["errors"]["stream_reset"] - 1)


def test_a_refused_stream_is_tried_again() -> None:
    def behave(connection: Framed) -> None:
        while True:
            connection.send(reset(connection.request(), Code.REFUSED_STREAM))
            connection.send(ok(connection.request()))

    with framed(behave) as server:
        step = step_of(server.url, "--http2", "--users", "1", "--requests", "10")
    assert (step["answers"], errors(step), step["connects"]) == (10, {}, 1)
    assert (step["http2"]["unprocessed"], step["http2"]["resets"]) == (10, 10)


def test_a_graceful_goaway_lets_open_streams_end() -> None:
    def behave(connection: Framed) -> None:
        connection.send(ok(connection.request()))
        answered, _ = connection.request(), connection.request()
        connection.send(goaway(2**31 - 1))
        connection.send(goaway(answered))
        connection.send(ok(answered))
        connection.until(Kind.GOAWAY)

    with framed(behave) as server:
        words = ["--users", "1", "--pipeline", "4", "--requests", "29"]
        step = step_of(server.url, "--http2", *words)
    accounts_for(step, 29)
    assert (step["answers"], errors(step)) == (29, {})
    assert step["connects"] == 15
    assert step["http2"]["unprocessed"] > 0


def test_streams_are_opened_after_the_settings_and_within_their_limit() -> None:
    opened: list[int] = []

    def behave(connection: Framed) -> None:
        connection.peer.wait(0.05)
        first = connection.request()
        connection.send(settings((Setting.MAX_CONCURRENT_STREAMS, 3)))
        connection.until(Kind.SETTINGS)
        connection.send(ok(first))
        while True:
            streams = [connection.request() for _ in range(3)]
            connection.send(frame(Kind.PING, 0, b"how many"))
            got = connection.until(Kind.PING)
            assert got.flags & ACK
            opened.append(sum(got.kind == Kind.HEADERS for got in connection.frames))
            for stream in streams:
                connection.send(ok(stream))

    def serve(peer: Peer) -> None:
        connection = Framed(peer)
        connection.preface()
        if peer.number == 0:
            connection.send(settings())
        behave(connection)

    with misbehaving(serve) as server:
        words = ["--users", "1", "--pipeline", "8", "--requests", "31", "--warmup", "0"]
        step = step_of(server.url, "--http2", *words)
    assert errors(step) == {}
    assert step["http2"]["streams_missing"] == 5
    assert opened
    assert not any(opened)


def test_a_small_table_of_the_server_is_respected() -> None:
    blocks: list[bytes] = []

    def behave(connection: Framed) -> None:
        connection.send(settings((1, 0)))
        while True:
            got = connection.until(Kind.HEADERS)
            blocks.append(got.payload)
            connection.send(ok(got.stream))

    with framed(behave) as server:
        step = step_of(server.url, "--http2", "--users", "1", "--requests", "4")
    assert (step["answers"], errors(step)) == (4, {})
    # The first one may be sent before the settings arrive. Then the table shrinks to 0, once.
    plain = blocks[2:]
    assert plain[0] == plain[1]
    assert blocks[1] == b"\x20" + plain[0]


def erratic(seed: int) -> Framing:
    """Answers in random order, and resets, refuses, pings, changes settings and ends at random."""

    def behave(connection: Framed) -> None:
        chance = random.Random(seed * 1000 + connection.peer.number)
        waiting: list[int] = []
        last = 0
        while True:
            if not waiting or connection.ready():
                got = connection.frame()
                if got.kind == Kind.HEADERS:
                    last = got.stream
                    waiting.append(last)
                if chance.random() < 0.7:
                    continue
            if not waiting:
                continue
            stream = waiting.pop(chance.randrange(len(waiting)))
            done = ok(stream, bytes(chance.randrange(3000)))
            other = [
                reset(stream, Code.CANCEL),
                reset(stream, Code.REFUSED_STREAM),
                done[:9] + b"\x88" + done[10:],
                done + frame(Kind.PING, 0, bytes(8)),
                settings(
                    (Setting.MAX_CONCURRENT_STREAMS, chance.randrange(1, 9)),
                    (Setting.INITIAL_WINDOW_SIZE, 70_000),
                )
                + done,
                done + reset(stream, Code.CANCEL) + window_update(stream, 1),
            ]
            connection.send(chance.choice(other) if chance.random() < 0.3 else done)
            if chance.random() < 0.05:
                excluded = [one for one in waiting if one > stream]
                answered = max(stream, max((one for one in waiting if one < stream), default=0))
                connection.send(
                    goaway(
                        answered if excluded else last,
                        chance.choice((0, 0, Code.ENHANCE_YOUR_CALM)),
                    )
                )
                for one in waiting:
                    if one <= answered and chance.random() < 0.8:
                        connection.send(ok(one))
                connection.end()

    return behave


@pytest.mark.parametrize("seed", range(12))
def test_each_request_ends_once_whatever_the_server_does(seed: int) -> None:
    with framed(erratic(seed)) as server:
        words = ["--users", "4", "--threads", "2", "--pipeline", str(1 + seed % 5 * 2)]
        limits = ["--response-timeout", "1s"]
        step = step_of(server.url, "--http2", "--requests", "300", *words, *limits)
    accounts_for(step, 300)
    assert step["answers"] > 0
